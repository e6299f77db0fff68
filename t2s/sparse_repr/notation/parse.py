"""Index notation as text: ``y(i) = A(i,j)*x(j)`` and options such as ``-f=A:ds:0,1``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.sparse_repr.formats import Format, as_format, checked_shape, dense, make_format
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.notation.blocks import usual_blocks
from t2s.sparse_repr.notation.ir import (
    LEAST_VARIANCE,
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Extent,
    Negative,
    Number,
    OfRow,
    RowFunction,
    Sum,
    TensorDeclaration,
    Unary,
    accesses,
)
from t2s.sparse_repr.notation.legality import check_sums_are_clear, make_assignment, stored_only

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>[-+*/(),;=])|(?P<bad>\S))"
)

_EXTREMES = {"min": Op.MINIMUM, "max": Op.MAXIMUM}
_FUNCTIONS = {function.value: function for function in Function}
_ROW_FUNCTIONS = {function.value: function for function in RowFunction}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str
    column: int


def as_mapping(
    what: str, mapping: object, expected: str, location: SourceLocation | None
) -> dict[str, Any]:
    """A mapping of names, empty for ``None``.  Raises ``UserError`` for anything else."""
    if mapping is None:
        return {}
    if isinstance(mapping, Mapping) and all(isinstance(name, str) for name in mapping):
        return dict(mapping)
    raise UserError(
        f"the {what} must be a mapping of names",
        location=location,
        expected=expected,
        given=repr(mapping),
    )


def parse_assignment(
    text: str,
    formats: Mapping[str, Format | str] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    location: SourceLocation | None = None,
) -> Assignment:
    """Parse an assignment; tensors without a format are dense.

    Raises ``UserError`` with the column for text that is not index notation, and for a format or a
    shape of a tensor that does not occur.
    """
    if not isinstance(text, str):
        raise UserError("index notation is a text", location=location, given=repr(text))
    result, value = _Parser(text, location).assignment()
    formats = as_mapping("formats", formats, 'names and formats, such as {"A": csr}', location)
    shapes = as_mapping("shapes", shapes, 'names and shapes, such as {"y": (3,)}', location)
    stored = {
        name: as_format(format, what=str(name), location=location)
        for name, format in formats.items()
    }
    names = tuple(dict.fromkeys(access.tensor for access in (result, *accesses(value))))
    for what, mapping in (("format", formats), ("shape", shapes)):
        for name in mapping:
            if name not in names:
                raise UserError(
                    f"there is a {what} for {name}, but no tensor of that name in {text}",
                    location=location,
                    expected=f"one of {', '.join(names)}",
                    given=name,
                )
    declared = []
    blocks = usual_blocks([(result, value)], stored)
    for name in names:
        order = next(len(a.variables) for a in (result, *accesses(value)) if a.tensor == name)
        shape = shapes.get(name)
        declared.append(
            TensorDeclaration(
                name=name,
                format=stored.get(name, dense(order).in_blocks(blocks[name])),
                shape=None if shape is None else checked_shape(shape, name, location),
                location=location,
            )
        )
    check_sums_are_clear(result, value, location)
    return make_assignment(result, value, tuple(declared), location)


def parse_statement(text: str, *, location: SourceLocation | None) -> tuple[Access, Expression]:
    """The result and the expression of a statement, as they are written."""
    return _Parser(text, location, in_program=True).assignment()


def parse_expression(text: str, *, location: SourceLocation | None = None) -> Expression:
    """Parse an expression.  Raises ``UserError`` with the column of a syntax error."""
    return _Parser(text, location).expression()


def parse_format(option: str, *, location: SourceLocation | None = None) -> tuple[str, Format]:
    """A tensor's name and format of ``A:ds``, ``A:ds:1,0`` or, with TACO's prefix, ``-f=A:ds``."""
    name, *rest = option.removeprefix("-f=").split(":")
    modes: list[int] | None = None
    good = re.fullmatch(r"[A-Za-z_]\w*", name) and 1 <= len(rest) <= 2
    if good and len(rest) == 2 and rest[1]:
        words = rest[1].split(",")
        good = all(word.isdecimal() for word in words)
        modes = [int(word) for word in words] if good else None
    if not good:
        raise UserError(
            f"{option} does not say a format",
            location=location,
            expected="NAME:LEVELS or NAME:LEVELS:MODES, for example A:ds or A:ds:1,0",
        )
    return name, make_format(rest[0], modes, location=location)


class _Parser:
    """Recursive descent over the tokens of one assignment."""

    def __init__(
        self, text: str, location: SourceLocation | None, *, in_program: bool = False
    ) -> None:
        self.text = text
        self.in_program = in_program  # elsewhere extent(k) is a tensor of that name
        self.location = location
        self.tokens = [
            _Token(m.group(m.lastgroup or ""), m.lastgroup or "", m.start(m.lastgroup or ""))
            for m in _TOKEN.finditer(text)
            if m.lastgroup
        ]
        self.at = 0

    def expression(self) -> Expression:
        value = self._sum()
        if self.at < len(self.tokens):
            raise self._error("an operator or the end")
        return value

    def assignment(self) -> tuple[Access, Expression]:
        name = self._take("a result", "name")
        if name.text == "extent" and self.in_program and self._next() == "(":
            self.at = self.tokens.index(name)
            raise self._error(
                "another name for a result, as extent(k) is how many coordinates k has"
            )
        result = self._access(name)
        self._take("=", "=")
        return result, self.expression()

    def _sum(self) -> Expression:
        value = self._product()
        while self._next() in ("+", "-"):
            operator = Op.ADD if self._take("", self._next()).text == "+" else Op.SUBTRACT
            value = Combine(operator=operator, left=value, right=self._product())
        return value

    def _product(self) -> Expression:
        value = self._factor()
        while self._next() in ("*", "/"):
            operator = Op.MULTIPLY if self._take("", self._next()).text == "*" else Op.DIVIDE
            value = Combine(operator=operator, left=value, right=self._factor())
        return value

    def _factor(self) -> Expression:
        match self._next():
            case "-":
                self._take("", "-")
                return Negative(value=self._factor())
            case "+":
                self._take("", "+")
                return self._factor()
            case "(":
                self._take("", "(")
                value = self._sum()
                self._take(")", ")")
                return value
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is not None and token.kind == "number":
            self.at += 1
            plain = token.text.isdecimal()
            return Number(value=int(token.text) if plain else float(token.text))
        name = self._take("a tensor, a number or (", "name")
        if name.text in _ROW_FUNCTIONS and self._is_along_row():
            return self._of_row(_ROW_FUNCTIONS[name.text])
        if name.text == "extent" and self.in_program and self._next() == "(":
            return self._extent()
        if name.text in _EXTREMES and self._next() == "(":
            return self._extreme(_EXTREMES[name.text])
        if name.text in _FUNCTIONS and self._next() == "(":
            return Unary(function=_FUNCTIONS[name.text], value=self._only_operand(name))
        if name.text == "inf" and self._next() != "(":
            return Number(value=inf)
        if name.text == "where" and self._next() == "(":
            return self._choice()
        if name.text == "stored" and self._next() == "(":
            return stored_only(self._only_operand(name), self.location)
        if name.text == "sum" and self._next() == "(":
            return self._sum_over(name)
        return self._access(name)

    def _sum_over(self, name: _Token) -> Expression:
        """``sum(k, ...)`` over variables; names alone are a tensor of that name."""
        start = self.at
        self._take("", "(")
        variables: list[str] = []
        while self._is_name_before(","):
            variables.append(self._take("an index variable", "name").text)
            self._take("", ",")
        if not variables or self._is_name_before(")"):
            self.at = start
            return self._access(name)
        value = self._sum()
        self._take("an operator or )", ")")
        return Sum(variables=tuple(variables), value=value)

    def _is_along_row(self) -> bool:
        """Whether index variables and a semicolon come next, as in ``max(k; ...)``."""
        at = self.at + 1
        while at < len(self.tokens) and self.tokens[at].text not in "(;)":
            at += 1
        return self._next() == "(" and at < len(self.tokens) and self.tokens[at].text == ";"

    def _of_row(self, function: RowFunction) -> Expression:
        """``softmax(k; ...)``; the layer normalization may have an epsilon behind a comma."""
        self._take("", "(")
        variables = [self._take("an index variable", "name").text]
        while self._next() == ",":
            self._take("", ",")
            variables.append(self._take("an index variable", "name").text)
        self._take("a comma or ;", ";")
        value = self._sum()
        epsilon = LEAST_VARIANCE if function is RowFunction.LAYERNORM else 0.0
        if function is RowFunction.LAYERNORM and self._next() == ",":
            self._take("", ",")
            epsilon = float(self._take("a number that is added to the variance", "number").text)
        elif self._next() == ",":
            raise self._error(f"an operator or ), as {function.value} takes one value")
        self._take("an operator or )", ")")
        return OfRow(function=function, variables=tuple(variables), value=value, epsilon=epsilon)

    def _extent(self) -> Expression:
        self._take("", "(")
        variable = self._take("an index variable", "name").text
        self._take(")", ")")
        return Extent(variable=variable)

    def _is_name_before(self, mark: str) -> bool:
        """Whether a name and that mark come next."""
        two = self.tokens[self.at : self.at + 2]
        return len(two) == 2 and two[0].kind == "name" and two[1].text == mark

    def _only_operand(self, name: _Token) -> Expression:
        self._take("", "(")
        value = self._sum()
        if self._next() == ",":
            raise self._error(f"an operator or ), as {name.text} takes one value")
        self._take("an operator or )", ")")
        return value

    def _extreme(self, operator: Op) -> Expression:
        """``min`` or ``max`` of two or more operands."""
        self._take("", "(")
        value = self._sum()
        self._take("a comma and another operand", ",")
        value = Combine(operator=operator, left=value, right=self._sum())
        while self._next() == ",":
            self._take("", ",")
            value = Combine(operator=operator, left=value, right=self._sum())
        self._take(", or )", ")")
        return value

    def _choice(self) -> Expression:
        """``where(condition, value, otherwise)``."""
        self._take("", "(")
        condition = self._sum()
        self._take("an operator, or a comma and the value where it is not zero", ",")
        value = self._sum()
        self._take("an operator, or a comma and the value elsewhere", ",")
        otherwise = self._sum()
        self._take("an operator or )", ")")
        return Choice(condition=condition, value=value, otherwise=otherwise)

    def _access(self, name: _Token) -> Access:
        variables: list[str] = []
        if self._next() == "(":
            self._take("", "(")
            while self._next() != ")" or variables:
                variables.append(self._take("an index variable", "name").text)
                if self._next() == "(":
                    self.at = self.tokens.index(name)
                    known = ", ".join((*_EXTREMES, *_FUNCTIONS, "where", "stored"))
                    rows = ", ".join(f"{row}(k; ...)" for row in _ROW_FUNCTIONS)
                    raise self._error(
                        f"the variable that it is along, as in {name.text}(k; ...)"
                        if name.text in _ROW_FUNCTIONS
                        else f"a tensor at index variables, or a function: {known}, {rows}"
                    )
                if self._next() != ",":
                    break
                self._take("", ",")
            self._take(")", ")")
        return Access(tensor=name.text, variables=tuple(variables), location=self.location)

    def _next(self) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].kind != "mark":
            return ""
        return self.tokens[self.at].text

    def _take(self, expected: str, what: str) -> _Token:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or (token.kind if what in ("name", "number") else token.text) != what:
            raise self._error(expected)
        self.at += 1
        return token

    def _error(self, expected: str) -> UserError:
        ended = self.at >= len(self.tokens)
        column = len(self.text) if ended else self.tokens[self.at].column
        given = "the end" if ended else self.tokens[self.at].text
        return UserError(
            f"this is not index notation, at column {column + 1}:\n"
            f"    {self.text}\n    {' ' * column}^",
            location=self.location,
            expected=expected,
            given=given,
        )
