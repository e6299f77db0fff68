"""Capabilities: what a function computes, in index notation with lists of variables; their text.

``z(I,J) = x(I,K) * y(K,J) when product(I) < 65536`` is a family of statements: a list stands for
any sequence of index variables, the same one wherever it is written.  Extents in a condition are
those of one call, which computes a tile if the statement is tiled [Mosaic, sec. 4.2].
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term, rewrite
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.notation.ir import (
    Access,
    Expression,
    Sum,
    accesses,
    print_expression,
    with_sums,
)
from t2s.sparse_repr.notation.parse import parse_expression
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumber(Term):
    """A number in a condition."""

    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableExtent(Term):
    """``i``: the extent of a variable in the call."""

    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionIn(Term):
    """``d`` inside of ``forall d in I``: a position of the list, from 0."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListExtent(Term):
    """``I[d]``, ``I[0]``: the extent of the variable at a position of a list."""

    of: str
    at: WholeNumber | PositionIn


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrder(Term):
    """``order(I)``: the length of a list."""

    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListProduct(Term):
    """``product(I)``: the product of the extents of a list, 1 of an empty one."""

    of: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated(Term):
    """``+``, ``-``, ``*``, ``/`` (rounded down) or ``%`` of two quantities."""

    operator: Op
    left: Quantity
    right: Quantity


Quantity = (
    WholeNumber | VariableExtent | PositionIn | ListExtent | ListOrder | ListProduct | Calculated
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Term):
    """Two quantities compared."""

    operator: Op
    left: Quantity
    right: Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class AllOf(Term):
    """All of these hold; true if there are none."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf(Term):
    """One of these holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantified(Term):
    """``forall d in I: ...`` over the positions of a list, or ``exists`` if not ``every``."""

    every: bool
    position: str
    of: str
    condition: Condition


Condition = Compared | AllOf | AnyOf | Quantified

ALWAYS = AllOf(parts=())


class Strides(Enum):
    """The strides that a function accepts for an operand."""

    ANY = "any"
    STEPS = "steps"
    ONE_IS_1 = "one is 1"
    ROWS = "rows"
    COLUMNS = "columns"
    DENSE = "dense"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandNeeds(Term):
    """Requirements on a tensor of a capability; without ``formats`` it is dense."""

    name: str
    formats: tuple[Format, ...] = ()
    strides: Strides = Strides.DENSE
    properties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability(Term):
    """A family of statements that a function computes.

    ``overwritten`` is the operand that the result replaces; ``accumulates`` says that the function
    adds to the old result.  No ``types`` means any type.
    """

    result: Access
    value: Expression
    lists: tuple[str, ...] = ()
    condition: Condition = ALWAYS
    needs: tuple[OperandNeeds, ...] = ()
    types: tuple[Type, ...] = ()
    semirings: tuple[Semiring, ...] = (PLUS_TIMES,)
    overwritten: str | None = None
    accumulates: bool = False
    location: SourceLocation | None = field(default=None, compare=False)

    def needs_of(self, tensor: str) -> OperandNeeds:
        """The requirements on a tensor."""
        for need in self.needs:
            if need.name == tensor:
                return need
        return OperandNeeds(name=tensor)


# Capabilities, conditions and quantities as text, in the form that ``parse`` reads.

_RANK = {Op.ADD: 1, Op.SUBTRACT: 1, Op.MULTIPLY: 2, Op.DIVIDE: 2, Op.MODULO: 2}


def print_capability(capability: Capability) -> str:
    """``z(i) = x(i) + y(i) when i == 8``."""
    sign = "+=" if capability.accumulates else "="
    value = rewrite(capability.value, lambda term: term.value if isinstance(term, Sum) else None)
    if with_sums(value, capability.result.variables) != capability.value:
        value = capability.value
    text = f"{print_expression(capability.result)} {sign} {print_expression(value)}"
    if capability.condition == ALWAYS:
        return text
    return f"{text} when {print_condition(capability.condition)}"


def print_condition(condition: Condition) -> str:
    """A condition, with as few parentheses as possible."""
    match condition:
        case Compared(operator=operator, left=left, right=right):
            return f"{print_quantity(left)} {operator.value} {print_quantity(right)}"
        case AllOf(parts=()):
            return "0 == 0"
        case AllOf(parts=parts):
            return " and ".join(_part(part, AnyOf, part is parts[-1]) for part in parts)
        case AnyOf(parts=parts):
            return " or ".join(_part(part, AllOf, part is parts[-1]) for part in parts)
        case Quantified(every=every, position=position, of=of, condition=inner):
            word = "forall" if every else "exists"
            return f"{word} {position} in {of}: {print_condition(inner)}"
        case _:
            assert_never(condition)


def _part(part: Condition, other: type[AllOf | AnyOf], last: bool) -> str:
    """Everything after a quantifier belongs to it, so one that is not last gets parentheses."""
    text = print_condition(part)
    closed = isinstance(part, other) or (isinstance(part, Quantified) and not last)
    return f"({text})" if closed else text


def print_quantity(quantity: Quantity) -> str:
    """A quantity of a condition."""
    return _quantity(quantity, 0)


def _quantity(quantity: Quantity, level: int) -> str:
    match quantity:
        case WholeNumber(value=value):
            return str(value)
        case VariableExtent(variable=name) | PositionIn(name=name):
            return name
        case ListExtent(of=of, at=at):
            return f"{of}[{print_quantity(at)}]"
        case ListOrder(of=of):
            return f"order({of})"
        case ListProduct(of=of):
            return f"product({of})"
        case Calculated(operator=operator, left=left, right=right):
            rank = _RANK[operator]
            text = f"{_quantity(left, rank)} {operator.value} {_quantity(right, rank + 1)}"
            return f"({text})" if level > rank else text
        case _:
            assert_never(quantity)


# Capabilities as text: ``z(I,J) = x(I,K) * y(K,J) when product(I) < 65536``.
#
# An index that begins with a capital letter is a list of variables.  Conditions are comparisons of
# extents, ``order(I)``, ``product(I)``, ``I[0]`` and numbers, joined by ``and`` and ``or``.
# ``forall d in I:`` and ``exists d in I:`` quantify everything after them.

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_]\w*)|(?P<mark>==|!=|<=|>=|[-+*/%()\[\]<>:])"
    r"|(?P<bad>\S))"
)
_COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")
_WORDS = ("and", "or", "forall", "exists", "in", "order", "product")


def is_list(name: str) -> bool:
    """Whether an index of a text is a list of variables."""
    return name[:1].isupper()


def parse_capability(text: str, location: SourceLocation | None = None) -> Capability:
    """Parse a statement with its condition.

    Raises ``UserError`` with the column for text that is not a capability.
    """
    if not isinstance(text, str):
        raise UserError(
            "the statement of a function must be a string",
            location=location,
            expected='such as "z(i,k) = x(i,j) * y(j,k)"',
            given=repr(text),
        )
    separator = re.search(r"\bwhen\b", text)
    statement = text if separator is None else text[: separator.start()]
    target, sign, right = statement.partition("=")
    accumulates = target.rstrip().endswith("+")
    target = target.rstrip().removesuffix("+")
    result = parse_expression(target, location=location) if target.strip() else None
    if not sign or not isinstance(result, Access):
        raise UserError(
            f"{text} does not say what a function computes",
            location=location,
            expected="a result, =, and an expression, such as z(i,k) = x(i,j) * y(j,k)",
        )
    value = parse_expression(right, location=location)
    condition: Condition = ALWAYS
    names = dict.fromkeys(
        name for access in (result, *accesses(value)) for name in access.variables
    )
    if separator is not None:
        condition = parse_condition(text, location=location, start=separator.end())
    return Capability(
        result=result,
        value=with_sums(value, result.variables),
        lists=tuple(name for name in names if is_list(name)),
        condition=condition,
        overwritten=_overwritten(result, value),
        accumulates=accumulates,
        location=location,
    )


def _overwritten(result: Access, value: object) -> str | None:
    names = {access.tensor for access in accesses(value)}  # type: ignore[arg-type]
    return result.tensor if result.tensor in names else None


def parse_condition(
    text: str, *, location: SourceLocation | None = None, start: int = 0
) -> Condition:
    """Parse the condition from a column on.  Raises ``UserError`` with the column."""
    return _ConditionParser(text, location, start).whole()


@dataclass(frozen=True, slots=True)
class _ConditionToken:
    text: str
    kind: str
    column: int


class _ConditionParser:
    """Recursive descent over the tokens of a condition."""

    def __init__(self, text: str, location: SourceLocation | None, start: int) -> None:
        self.text = text
        self.location = location
        self.tokens = [
            _ConditionToken(m.group(m.lastgroup), m.lastgroup, m.start(m.lastgroup))
            for m in _TOKEN.finditer(text, start)
            if m.lastgroup
        ]
        self.at = 0
        self.positions: list[str] = []

    def whole(self) -> Condition:
        condition = self._any()
        if self.at < len(self.tokens):
            raise self._error("and, or, or the end")
        return condition

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._word() == "or":
            self.at += 1
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(parts=tuple(parts))

    def _all(self) -> Condition:
        parts = [self._one()]
        while self._word() == "and":
            self.at += 1
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else AllOf(parts=tuple(parts))

    def _one(self) -> Condition:
        if self._word() in ("forall", "exists"):
            return self._quantified()
        start = self.at
        if self._word() == "(":  # a condition, or a quantity
            try:
                self.at += 1
                inner = self._any()
                self._take(")", ")")
            except UserError as error:
                self.at, failed = start, error
                try:
                    return self._compared()
                except UserError:
                    raise failed from None
            if self._word() not in (*_COMPARISONS, "+", "-", "*", "/", "%"):
                return inner
            self.at = start
        return self._compared()

    def _quantified(self) -> Condition:
        every = self.tokens[self.at].text == "forall"
        self.at += 1
        position = self._name("a name for the position")
        self._take("in", "in")
        of = self._list()
        self._take(":", ":")
        self.positions.append(position)
        inner = self._any()
        self.positions.pop()
        return Quantified(every=every, position=position, of=of, condition=inner)

    def _compared(self) -> Condition:
        terms = [self._sum()]
        operators: list[Op] = []
        while self._word() in _COMPARISONS:
            operators.append(Op(self.tokens[self.at].text))
            self.at += 1
            terms.append(self._sum())
        if not operators:
            raise self._error("a comparison: ==, !=, <, <=, > or >=")
        parts = tuple(
            Compared(operator=operator, left=left, right=right)
            for operator, left, right in zip(operators, terms, terms[1:], strict=False)
        )
        return parts[0] if len(parts) == 1 else AllOf(parts=parts)

    def _sum(self) -> Quantity:
        value = self._product()
        while self._word() in ("+", "-"):
            operator = Op(self.tokens[self.at].text)
            self.at += 1
            value = Calculated(operator=operator, left=value, right=self._product())
        return value

    def _product(self) -> Quantity:
        value = self._quantity()
        while self._word() in ("*", "/", "%"):
            operator = Op(self.tokens[self.at].text)
            self.at += 1
            value = Calculated(operator=operator, left=value, right=self._quantity())
        return value

    def _quantity(self) -> Quantity:
        if self._word() == "(":
            self.at += 1
            value = self._sum()
            self._take(")", ")")
            return value
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is not None and token.kind == "number":
            self.at += 1
            return WholeNumber(value=int(token.text))
        if self._word() in ("order", "product"):
            kind = ListOrder if self._word() == "order" else ListProduct
            self.at += 1
            self._take("(", "(")
            of = self._list()
            self._take(")", ")")
            return kind(of=of)
        name = self._name("an extent, order(I), product(I) or a number")
        if name in self.positions:
            return PositionIn(name=name)
        if not is_list(name):
            return VariableExtent(variable=name)
        self._take("[", f"[ and a position, as in {name}[0], or order({name}) or product({name})")
        at = self._quantity()
        if not isinstance(at, WholeNumber | PositionIn):
            raise self._error("a number or the name of a position")
        self._take("]", "]")
        return ListExtent(of=name, at=at)

    def _list(self) -> str:
        name = self._name("a list, which begins with a capital letter")
        if not is_list(name):
            self.at -= 1
            raise self._error("a list, which begins with a capital letter")
        return name

    def _word(self) -> str:
        if self.at >= len(self.tokens):
            return ""
        token = self.tokens[self.at]
        return token.text if token.kind == "mark" or token.text in _WORDS else ""

    def _name(self, expected: str) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or token.kind != "name" or token.text in _WORDS:
            raise self._error(expected)
        self.at += 1
        return token.text

    def _take(self, word: str, expected: str) -> None:
        if self._word() != word:
            raise self._error(expected)
        self.at += 1

    def _error(self, expected: str) -> UserError:
        ended = self.at >= len(self.tokens)
        column = len(self.text) if ended else self.tokens[self.at].column
        return UserError(
            f"not a condition, at column {column + 1}:\n    {self.text}\n    {' ' * column}^",
            location=self.location,
            expected=expected,
            given="the end" if ended else self.tokens[self.at].text,
        )
