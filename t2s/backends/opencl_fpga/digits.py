"""Digits of loop counters: the divisions by constants that address and condition expressions hold.

``step / 4 % 8`` is a digit of ``step``.  The rules are those of floored division, and hold for
negative numbers too: ``x // a // b == x // (a * b)``, ``x % (a * b) // a == x // a % b``, and
``x // a + b == (x + a * b) // a``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.backends.opencl_fpga.intervals import Ranges, from_linear_form, interval, linear_form
from t2s.core.expr import Apply, Const, Expr, Index, apply, const, simplify
from t2s.core.ops import Op
from t2s.core.types import INT32


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """``(base + shift) // scale % count``; where ``count`` is ``None``, without the remainder.

    ``base`` is linear in the indices and has no constant.  A digit ``of`` another one, with a
    ``count`` of its own that this one's scale does not divide, takes that in place of ``base``.
    """

    base: Expr
    shift: int
    scale: int
    count: int | None
    of: Digit | None = None

    @property
    def end(self) -> int | None:
        """The scale of the next digit."""
        return None if self.count is None else self.scale * self.count

    @property
    def is_bits(self) -> bool:
        """Whether the digit is some bits of ``base + shift``."""
        return is_power_of_two(self.scale) and (self.count is None or is_power_of_two(self.count))

    def at(self, base: Expr) -> Expr:
        """The digit of another number, as an expression."""
        value = base if self.of is None else self.of.at(base)
        value = apply(Op.FLOOR_DIVIDE, apply(Op.ADD, value, const(self.shift)), const(self.scale))
        if self.count is not None:
            value = apply(Op.MODULO, value, const(self.count))
        return simplify(value)


def is_power_of_two(number: int) -> bool:
    """Whether a positive number is 1, 2, 4, ..."""
    return number & (number - 1) == 0


def digit_of(expr: Expr, ranges: Ranges) -> tuple[Digit, int] | None:
    """``expr`` as a digit and a constant to add to it, or ``None`` if it has no such form."""
    if expr.type != INT32:
        return None
    form = linear_form(expr)
    if form is not None:
        coefficients, constant = form
        known = isinstance(expr, Index) or interval(expr, ranges) is not None
        if not coefficients or not known:
            return None
        base = from_linear_form((coefficients, 0))
        return Digit(base=base, shift=constant, scale=1, count=None), 0
    match expr:
        case Apply(operator=operator, operands=(left, Const(value=int() as number))):
            found = digit_of(left, ranges)
            if found is None:
                return None
            digit, offset = found
            match operator:
                case Op.FLOOR_DIVIDE if number > 0:
                    return _divided(digit, offset, number), 0
                case Op.MODULO if number > 0:
                    return _remainder(digit, offset, number), 0
                case Op.ADD:
                    return digit, offset + number
                case Op.SUBTRACT:
                    return digit, offset - number
    return None


def _divided(digit: Digit, offset: int, by: int) -> Digit:
    if digit.count is None:
        shift = digit.shift + offset * digit.scale
        return replace(digit, shift=shift, scale=digit.scale * by)
    if offset or digit.count % by:
        return _part(digit, shift=offset, scale=by, count=None)
    return replace(digit, scale=digit.scale * by, count=digit.count // by)


def _remainder(digit: Digit, offset: int, by: int) -> Digit:
    if digit.count is None or digit.count % by == 0:
        return replace(digit, shift=digit.shift + offset * digit.scale, count=by)
    if not offset and digit.count <= by:
        return digit
    return _part(digit, shift=offset, scale=1, count=by)


def _part(digit: Digit, *, shift: int, scale: int, count: int | None) -> Digit:
    whole = replace(digit, shift=digit.shift % (digit.end or 1))
    return Digit(base=digit.base, shift=shift, scale=scale, count=count, of=whole)
