"""Loops that are digits of a sum: ``t = 28 i + 14 j + k`` gives ``j = t // 14 % 2``.

Where new loops are sums of old ones with number factors, the old loops are quotients and remainders
of what is left of a sum when all that is known is subtracted.  That says in one formula what isl
says case by case.  The formulas are guesses: whoever uses them proves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2s.core.affine import tidy
from t2s.core.expr import Const, Expr, Index, apply, const, substitute
from t2s.core.isl import Interval
from t2s.core.ops import Op


@dataclass(slots=True)
class _Row:
    """``value`` is the sum of the unknown loops with these factors."""

    value: Expr
    factors: dict[str, int]


def as_digits(intervals: Sequence[Interval], new: Mapping[str, Expr]) -> dict[str, Expr] | None:
    """Old loops over new ones, if each is a difference or a digit; ``None`` if one is not.

    Right only where new loops are sums of old ones, and no digit overflows.
    """
    names = [interval.name for interval in intervals]
    rows = [_row(name, expr, names) for name, expr in new.items()]
    known: dict[str, Expr] = {}
    left = [row for row in rows if row is not None]
    while left:
        row = min(left, key=lambda row: len(row.factors))
        left.remove(row)
        found = _digits(row, {interval.name: interval for interval in intervals})
        if found is None:
            return None
        known |= found
        for other in left:
            for name, value in found.items():
                factor = other.factors.pop(name, 0)
                if factor:
                    term = apply(Op.MULTIPLY, const(factor), value)
                    other.value = tidy(apply(Op.SUBTRACT, other.value, term))
    return {name: tidy(known[name]) for name in names} if set(known) == set(names) else None


def _row(name: str, expr: Expr, names: Sequence[str]) -> _Row | None:
    origin = substitute(expr, {other: const(0) for other in names})
    if not isinstance(origin, Const):
        return None
    factors: dict[str, int] = {}
    for one in names:
        point = {other: const(int(other == one)) for other in names}
        there = substitute(expr, dict(point))
        if not isinstance(there, Const):
            return None
        factor = int(there.value) - int(origin.value)
        if factor:
            factors[one] = factor
    return _Row(apply(Op.SUBTRACT, Index(name=name), origin), factors)


def _digits(row: _Row, intervals: Mapping[str, Interval]) -> dict[str, Expr] | None:
    """The unknown loops of one sum, from the one with the largest factor on."""
    found: dict[str, Expr] = {}
    rest, above = row.value, 0
    lows: dict[str, int] = {}
    for name, factor in row.factors.items():
        bounds = intervals[name].constant
        if len(row.factors) == 1 and abs(factor) == 1:
            return {name: apply(Op.MULTIPLY, const(factor), rest)}
        if bounds is None:
            return None
        lows[name] = bounds[0] if factor > 0 else bounds[0] + bounds[1] - 1
        rest = apply(Op.SUBTRACT, rest, const(factor * lows[name]))
    rest = tidy(rest)
    for name, factor in sorted(row.factors.items(), key=lambda item: -abs(item[1])):
        digit = rest if not above else apply(Op.MODULO, rest, const(above))
        digit = apply(Op.FLOOR_DIVIDE, digit, const(abs(factor)))
        sign = Op.ADD if factor > 0 else Op.SUBTRACT
        found[name] = apply(sign, const(lows[name]), digit)
        above = abs(factor)
    return found
