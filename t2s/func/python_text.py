"""Definitions as the Python text that a user would write: expressions, names, types and lines.

What goes in: typed expressions, as they are after conversions.  What comes out: text that makes an
equal expression when it is run, with as few casts and parentheses as that takes.  Python's numbers
are weak, so a constant needs a cast only where no other operand gives it its type.  What Python
would compute itself, or turn around, gets a cast too: ``-3``, and ``0 < x``, which is ``x > 0``.
"""

from __future__ import annotations

import keyword
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from t2s.core.errors import UnsupportedError
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Parameter, Read, Select
from t2s.core.let_binding import bottom_up
from t2s.core.location import user_location
from t2s.core.names import NameSupply
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import Kind, Type, unify
from t2s.core.walk import children

LINE = 100
"""Columns of a line."""

_COMPARISON, _UNARY, _ATOM = 1, 8, 9
_BINARY = {
    **dict.fromkeys((op for op, info in OPERATORS.items() if info.comparison), _COMPARISON),
    Op.OR: 2,
    Op.XOR: 3,
    Op.AND: 4,
    Op.SHIFT_LEFT: 5,
    Op.SHIFT_RIGHT: 5,
    Op.ADD: 6,
    Op.SUBTRACT: 6,
    Op.MULTIPLY: 7,
    Op.DIVIDE: 7,
    Op.FLOOR_DIVIDE: 7,
    Op.MODULO: 7,
}
"""Python's precedences, in which ``&`` binds tighter than ``==``; ``core.printer`` has ``and``."""

_SPELLED = {Op.AND: "&", Op.OR: "|", Op.XOR: "^", Op.NEGATE: "-", Op.NOT: "~"}

_SHARED_SIZE, _DEEPEST = 12, 40
"""A value that is used several times gets a name from this size on; any value at this depth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionText:
    """The text of an expression, and what Python makes of it.

    ``type`` is that of the value, weak until the surroundings decide; ``number``: it is a number of
    Python rather than an expression.
    """

    text: str
    type: Type
    precedence: int = _ATOM
    number: bool = False
    size: int = 1
    depth: int = 0

    def inside(self, precedence: int) -> str:
        """The text as an operand of an operator of this precedence."""
        return f"({self.text})" if self.precedence < precedence else self.text


class PythonNames:
    """Python names for objects: their own, unless Python or the text has another use for them."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._supply = NameSupply((*keyword.kwlist, *reserved))

    def fresh(self, name: str) -> str:
        """A name of its own, similar to this one."""
        plain = unicodedata.normalize("NFKC", name)  # as Python reads identifiers
        if plain.startswith("__"):
            plain = plain.strip("_") or "name"
        return self._supply.fresh(plain if plain.isidentifier() else "name")


def type_text(type: Type, used: Callable[[str], str]) -> str:
    """The type as it is written; ``used`` notes and spells a name of the package."""
    match type.kind:
        case Kind.BOOL:
            return f"{used('Bool')}()"
        case Kind.BFLOAT:
            return f"{used('BFloat')}()"
        case kind:
            name = {Kind.FLOAT: "Float", Kind.INT: "Int", Kind.UINT: "UInt"}[kind]
            return f"{used(name)}({type.bits})"


@dataclass(frozen=True, kw_only=True)
class ExpressionWriter:
    """Writes expressions.

    ``symbol`` names what has a name, ``read_type`` is the type of an element as it is when it is
    read, ``used`` spells a name of the package, ``let`` names a text by a line of its own.
    """

    symbol: Callable[[str], str]
    read_type: Callable[[Read], Type]
    used: Callable[[str], str]
    let: Callable[[str], str]

    def written(self, node: Expr) -> ExpressionText:
        """The text of an expression whose surroundings decide the type of its numbers."""
        uses = Counter(id(child) for term in bottom_up(node) for child in children(term))
        texts: dict[int, ExpressionText] = {}
        for term in bottom_up(node):
            assert isinstance(term, Expr)
            made = self._term(term, texts)
            shared = uses[id(term)] > 1 and made.size >= _SHARED_SIZE
            if term is not node and not made.number and (shared or made.depth >= _DEEPEST):
                made = ExpressionText(text=self.let(made.text), type=made.type)
            texts[id(term)] = made
        return texts[id(node)]

    def alone(self, node: Expr) -> str:
        """The text of an expression that has its type by itself."""
        made = self.written(node)
        return made.text if made.type == node.type else self._cast(node.type, made).text

    def _term(self, node: Expr, texts: dict[int, ExpressionText]) -> ExpressionText:
        match node:
            case Const():
                return _constant(node)
            case Index(name=name) | Parameter(name=name):
                return ExpressionText(text=self.symbol(name), type=node.type)
            case Read(source=source, indices=indices):
                parts = [texts[id(index)] for index in indices]
                subscripts = ", ".join(part.text for part in parts) or "()"
                text = f"{self.symbol(source)}[{subscripts}]"
                return _joined(text, self.read_type(node), parts)
            case Cast(value=value, type=type):
                return self._cast(type, self._castable(value, texts[id(value)], type))
            case Select(condition=condition, if_true=yes, if_false=no, type=type):
                sides = self._unified((yes, no), type, texts)
                parts = [texts[id(condition)], *sides]
                text = f"t2s.{self.used('select')}({', '.join(part.text for part in parts)})"
                return _joined(text, _common(sides), parts)
            case Apply(operator=operator, operands=operands):
                return self._apply(node, operator, self._operands(node, operands, texts))
        raise UnsupportedError(
            f"an expression of kind {node.__class__.__name__} cannot be written as Python text",
            location=user_location(),
        )

    def _operands(
        self, node: Apply, operands: tuple[Expr, ...], texts: dict[int, ExpressionText]
    ) -> list[ExpressionText]:
        """The operands, as expressions where Python would compute or turn around numbers."""
        operator, type = node.operator, operands[0].type
        parts = self._unified(operands, type, texts)
        comparison = OPERATORS[operator].comparison
        if comparison and _common(parts) != type:
            parts[0] = self._cast(type, parts[0])
        spelled = operator in _BINARY or operator in (Op.NEGATE, Op.NOT)
        if spelled and parts[0].number and (comparison or all(part.number for part in parts)):
            if type.weak:
                raise UnsupportedError(
                    f"the operator {operator.value} of numbers alone cannot be written as text",
                    location=user_location(),
                    given=", ".join(part.text for part in parts),
                    hint="give one of the numbers a type: t2s.cast(t2s.Int(32), x)",
                )
            parts[0] = self._cast(type, parts[0])
        return parts

    def _apply(self, node: Apply, operator: Op, parts: list[ExpressionText]) -> ExpressionText:
        type = node.type if OPERATORS[operator].comparison else _common(parts)
        sign = _SPELLED.get(operator, operator.value)
        if operator in _BINARY:
            inner = _BINARY[operator]
            first, second = parts
            left = first.inside(inner + (inner == _COMPARISON))
            return _joined(f"{left} {sign} {second.inside(inner + 1)}", type, parts, inner)
        if operator in (Op.NEGATE, Op.NOT):
            return _joined(f"{sign}{parts[0].inside(_UNARY)}", type, parts, _UNARY)
        function = self.used(operator.value)
        text = f"t2s.{function}({', '.join(part.text for part in parts)})"
        return _joined(text, type, parts)

    def _unified(
        self, operands: Sequence[Expr], type: Type, texts: dict[int, ExpressionText]
    ) -> list[ExpressionText]:
        """Operands that are unified to ``type``, without the casts that unification makes."""
        parts = [texts[id(operand)] for operand in operands]
        for at, operand in enumerate(operands):
            if isinstance(operand, Cast):
                shorter = [*parts[:at], texts[id(operand.value)], *parts[at + 1 :]]
                if not shorter[at].type.weak and _unify(shorter) == type:
                    parts = shorter
        common = _unify(parts)
        settled = common == type or (
            common is not None and common.weak and common.is_float == type.is_float
        )
        for at, part in enumerate(parts):
            if not settled and part.type.weak:
                parts[at] = self._cast(type, part)
        return parts

    def _castable(self, value: Expr, part: ExpressionText, type: Type) -> ExpressionText:
        """The operand of a cast, which gives a number its type if that can hold it."""
        if not part.type.weak:
            return part
        adopted = type if unify(part.type, type) == type else part.type.strengthened()
        return part if adopted == value.type else self._cast(value.type, part)

    def _cast(self, type: Type, part: ExpressionText) -> ExpressionText:
        text = f"t2s.{self.used('cast')}({type_text(type, self.used)}, {part.text})"
        return _joined(text, type, [part])


def _constant(node: Const) -> ExpressionText:
    value, type = node.value, node.type
    if type.is_bool:
        return ExpressionText(text=repr(bool(value)), type=type, number=True)
    weak = Type(Kind.FLOAT if type.is_float else Kind.INT, 32, weak=True)
    number = float(value) if type.is_float else int(value)
    text = repr(number) if math.isfinite(number) else f'float("{number}")'
    precedence = _UNARY if text.startswith("-") else _ATOM
    return ExpressionText(text=text, type=weak, precedence=precedence, number=True)


def _joined(
    text: str, type: Type, parts: Sequence[ExpressionText], precedence: int = _ATOM
) -> ExpressionText:
    return ExpressionText(
        text=text,
        type=type,
        precedence=precedence,
        size=1 + sum(part.size for part in parts),
        depth=1 + max((part.depth for part in parts), default=0),
    )


def _unify(parts: Sequence[ExpressionText]) -> Type | None:
    types: list[Type | None] = [part.type for part in parts]
    return reduce(lambda a, b: None if a is None or b is None else unify(a, b), types)


def _common(parts: Sequence[ExpressionText]) -> Type:
    common = _unify(parts)
    return parts[0].type if common is None else common


def assignment_lines(target: str, value: str) -> list[str]:
    """``target = value``, in parentheses over several lines if it is long."""
    whole = f"{target} {value}"
    if len(whole) <= LINE:
        return [whole]
    sign, _, body = value.partition(" ")
    return [f"{target} {sign} (", *filled(body), ")"]


def call_lines(start: str, arguments: str) -> list[str]:
    """``start(arguments)``, over several lines if it is long."""
    whole = f"{start}({arguments})"
    return [whole] if len(whole) <= LINE else [f"{start}(", *filled(arguments), ")"]


def filled(text: str) -> list[str]:
    """Indented lines that hold the words of a text; no word inside of quotes is cut off."""
    lines: list[str] = []
    line, quoted = "   ", False
    for word in text.split(" "):
        if not quoted and len(line) + 1 + len(word) > LINE and line.strip():
            lines.append(line)
            line = "   "
        line += f" {word}"
        quoted ^= word.count('"') % 2 == 1
    return [*lines, line]
