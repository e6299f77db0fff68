"""Ranges of values: what integers an expression may be, and what a condition says about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from t2s.backends.verilog.verilog_ast import Bits
from t2s.core.expr import Apply, Cast, Const, Expr, Index, Local, Select
from t2s.core.ops import Op
from t2s.core.types import Type, integer_range


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from ``low`` to ``high``, both included; there is at least one."""

    low: int
    high: int

    def __contains__(self, value: int) -> bool:
        return self.low <= value <= self.high

    def __le__(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high

    def join(self, other: Range | None) -> Range:
        """The smallest range that has both."""
        if other is None:
            return self
        return Range(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Range) -> Range | None:
        """What is in both; ``None`` if that is nothing."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high) if low <= high else None

    def in_bits(self) -> Range:
        """All integers of as many bits."""
        bits = self.bits
        if bits.signed:
            return Range(-(1 << (bits.width - 1)), (1 << (bits.width - 1)) - 1)
        return Range(0, (1 << bits.width) - 1)

    @property
    def bits(self) -> Bits:
        """The fewest bits that have room for all; with a sign if there are negative ones."""
        if self.low >= 0:
            return Bits(width=max(1, self.high.bit_length()))
        most = max((-self.low - 1).bit_length(), self.high.bit_length())
        return Bits(width=most + 1, signed=True)


FALSE, TRUE = Range(0, 0), Range(1, 1)

Known: TypeAlias = Mapping[str, Range]
"""Ranges by the names of locals and of space indices; others have all values of their types."""


def range_of_type(type: Type) -> Range:
    """All values of an integer type or bool; of any other type, the numbers of its patterns."""
    if type.lanes == 1 and not type.is_float:
        return Range(*integer_range(type))
    return Range(0, (1 << (type.lanes * (1 if type.is_bool else type.bits))) - 1)


def range_of(expr: Expr, known: Known) -> Range:
    """The values that an expression may have; arithmetic that wraps around may have all."""
    every = range_of_type(expr.type)
    found = _range_of(expr, known) if _is_number(expr.type) else None
    return every if found is None or not found <= every else found


def _is_number(type: Type) -> bool:
    return type.lanes == 1 and not type.is_float


def _range_of(expr: Expr, known: Known) -> Range | None:
    match expr:
        case Const(value=value):
            return Range(int(value), int(value))
        case Local(name=name) | Index(name=name):
            return known.get(name)
        case Cast(value=value) if _is_number(value.type):
            return range_of(value, known)
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            found: Range | None = None
            for truth, side in ((True, if_true), (False, if_false)):
                inside = assume(condition, known, truth)
                if inside is not None:
                    found = range_of(side, inside).join(found)
            return found
        case Apply(operator=operator, operands=operands) if all(
            _is_number(operand.type) for operand in operands
        ):
            return _applied(operator, [range_of(operand, known) for operand in operands])
    return None


def _applied(operator: Op, operands: list[Range]) -> Range | None:
    match operator, operands:
        case Op.ADD, [a, b]:
            return Range(a.low + b.low, a.high + b.high)
        case Op.SUBTRACT, [a, b]:
            return Range(a.low - b.high, a.high - b.low)
        case Op.MULTIPLY, [a, b]:
            corners = (a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high)
            return Range(min(corners), max(corners))
        case Op.MINIMUM, [a, b]:
            return Range(min(a.low, b.low), min(a.high, b.high))
        case Op.MAXIMUM, [a, b]:
            return Range(max(a.low, b.low), max(a.high, b.high))
        case Op.NEGATE, [a]:
            return Range(-a.high, -a.low)
        case Op.FLOOR_DIVIDE, [a, b] if b.low == b.high > 0:
            return Range(a.low // b.low, a.high // b.low)
        case Op.MODULO, [a, b] if b.low == b.high > 0:
            return a if a <= Range(0, b.low - 1) else Range(0, b.low - 1)
        case Op.AND, [a, b] if a.low >= 0 and b.low >= 0:
            return Range(0, min(a.high, b.high)) if (a, b) != (TRUE, TRUE) else TRUE
        case Op.OR, [a, b] if a.low >= 0 and b.low >= 0:
            return Range(max(a.low, b.low), a.join(b).in_bits().high)
        case (
            (Op.EQUAL | Op.NOT_EQUAL | Op.LESS | Op.LESS_EQUAL | Op.GREATER | Op.GREATER_EQUAL),
            [
                a,
                b,
            ],
        ):
            return _compared(operator, a, b)
    return None


_NEGATED = {
    Op.EQUAL: Op.NOT_EQUAL,
    Op.NOT_EQUAL: Op.EQUAL,
    Op.LESS: Op.GREATER_EQUAL,
    Op.GREATER_EQUAL: Op.LESS,
    Op.GREATER: Op.LESS_EQUAL,
    Op.LESS_EQUAL: Op.GREATER,
}


def _compared(operator: Op, a: Range, b: Range) -> Range:
    """Whether a comparison always holds, or never, or is either."""
    if all(side is not None for side in _sides(operator, a, b)):
        never = any(side is None for side in _sides(_NEGATED[operator], a, b))
        return TRUE if never else Range(0, 1)
    return FALSE


def _sides(operator: Op, a: Range, b: Range) -> tuple[Range | None, Range | None]:
    """What is left of both sides of a comparison that holds."""
    match operator:
        case Op.EQUAL:
            both = a.meet(b)
            return both, both
        case Op.NOT_EQUAL:
            return _without(a, b), _without(b, a)
        case Op.LESS:
            return _up_to(a, b.high - 1), _from(b, a.low + 1)
        case Op.LESS_EQUAL:
            return _up_to(a, b.high), _from(b, a.low)
        case Op.GREATER:
            return _from(a, b.low + 1), _up_to(b, a.high - 1)
        case _:
            return _from(a, b.low), _up_to(b, a.high)


def _up_to(range: Range, high: int) -> Range | None:
    return Range(range.low, min(range.high, high)) if range.low <= high else None


def _from(range: Range, low: int) -> Range | None:
    return Range(max(range.low, low), range.high) if low <= range.high else None


def _without(range: Range, other: Range) -> Range | None:
    """The range without a single other value, where that is at one of its ends."""
    if other.low != other.high:
        return range
    if range.low == range.high == other.low:
        return None
    low = range.low + (range.low == other.low)
    return Range(low, range.high - (range.high == other.low))


def assume(condition: Expr, known: Known, truth: bool = True) -> Known | None:
    """What is known where a condition holds, or does not; ``None`` if that never happens."""
    match condition:
        case Apply(operator=Op.NOT, operands=(inner,)) if inner.type.is_bool:
            return assume(inner, known, not truth)
        case Apply(operator=(Op.AND | Op.OR) as operator, operands=(left, right)) if (
            condition.type.is_bool
        ):
            if (operator is Op.AND) == truth:
                first = assume(left, known, truth)
                return None if first is None else assume(right, first, truth)
            first, second = assume(left, known, truth), assume(right, known, truth)
            if first is None or second is None:
                return second if first is None else first
            return known
        case Apply(operator=operator, operands=(left, right)) if (
            operator in _NEGATED and _is_number(left.type)
        ):
            chosen = operator if truth else _NEGATED[operator]
            sides = _sides(chosen, range_of(left, known), range_of(right, known))
            inside: Known | None = known
            for expr, side in zip((left, right), sides, strict=True):
                if inside is not None:
                    inside = None if side is None else restrict(expr, side, inside)
            return inside
    return restrict(condition, TRUE if truth else FALSE, known)


def restrict(expr: Expr, to: Range, known: Known) -> Known | None:
    """What is known where the value of an expression is in a range; ``None`` if it never is."""
    value = range_of(expr, known).meet(to)
    if value is None:
        return None
    match expr:
        case Local(name=name):
            return {**known, name: value}
        case Apply(operator=Op.ADD, operands=(inner, Const(value=by))) if _never_wraps(expr, known):
            return restrict(inner, Range(value.low - int(by), value.high - int(by)), known)
        case Apply(operator=Op.SUBTRACT, operands=(inner, Const(value=by))) if _never_wraps(
            expr, known
        ):
            return restrict(inner, Range(value.low + int(by), value.high + int(by)), known)
    return known


def _never_wraps(expr: Apply, known: Known) -> bool:
    found = _applied(expr.operator, [range_of(operand, known) for operand in expr.operands])
    return found is not None and found <= range_of_type(expr.type)
