"""Simplify index arithmetic: cancel terms of sums and comparisons, and recognize digits of a sum.

``p + (t - p)`` is ``t``, ``i + j < j`` is ``i < 0``, and ``(8 * b + r) // 8`` is ``b + r // 8``.
An expression is rewritten only if that makes it shorter.  Quotients, remainders and minima are
terms like loop indices, and are simplified inside.  Comparisons of data stay unchanged: data may
wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from t2s.core.expr import Apply, Const, Expr, Index, Local, Read, apply, const, simplify, substitute
from t2s.core.isl import Interval
from t2s.core.ops import Op
from t2s.core.walk import Term, rewrite, walk

MOST_TIDIED = 256
"""Longer expressions are not simplified."""

_COMPARISONS = (
    Op.EQUAL,
    Op.NOT_EQUAL,
    Op.LESS,
    Op.LESS_EQUAL,
    Op.GREATER,
    Op.GREATER_EQUAL,
)
_SUMS = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.NEGATE)


def tidy(expr: Expr) -> Expr:
    """The expression with shorter sums; equal in value for every value of the indices."""
    if isinstance(expr, Index | Const):
        return expr
    parts = list(islice(walk(expr), MOST_TIDIED + 1))
    if len(parts) <= MOST_TIDIED and all(isinstance(x, Apply | Index | Const) for x in parts):
        return _tidied_arithmetic(expr)
    return _tidied(expr)


@lru_cache(maxsize=1 << 12)
def _tidied_arithmetic(expr: Expr) -> Expr:
    """``_tidied`` of index arithmetic, which every pass asks for again."""
    return _tidied(expr)


def _tidied(expr: Expr) -> Expr:
    def rule(node: Term) -> Term | None:
        if not isinstance(node, Apply) or not node.operands[0].type.is_integer:
            return None
        if node.operands[0].type.lanes > 1 or not _is_tidied(node):
            return None
        if node.operator in _COMPARISONS:
            return _compared(node)
        match node:
            case Apply(
                operator=Op.FLOOR_DIVIDE | Op.MODULO, operands=(whole, Const(value=int() as by))
            ) if by > 0:
                shorter = _divided(node, whole, by)
            case Apply(operator=operator) if operator in _SUMS:
                terms: dict[Expr, int] = {}
                number = _collect(node, 1, terms)
                shorter = _sum(terms, number, node)
            case _:
                return None
        shorter = simplify(shorter)
        return shorter if _size(shorter) < _size(node) else _positive(node)

    return simplify(rewrite(expr, rule))


def _is_tidied(node: Term) -> bool:
    """Whether a term is index arithmetic, and no longer than such is."""
    parts = list(islice(walk(node), MOST_TIDIED + 1))
    return len(parts) <= MOST_TIDIED and not any(isinstance(x, Local | Read) for x in parts)


def _divided(node: Apply, whole: Expr, by: int) -> Expr:
    """A quotient or remainder without multiples of the divisor in the dividend."""
    terms: dict[Expr, int] = {}
    number = _collect(whole, 1, terms)
    rest = {term: factor for term, factor in terms.items() if factor % by}
    left = apply(node.operator, _sum(rest, number % by, whole), const(by, node.type))
    if node.operator is Op.MODULO:
        return left
    multiples = {term: factor // by for term, factor in terms.items() if factor % by == 0}
    return _sum(multiples, number // by, whole) + left


def _positive(node: Apply) -> Expr | None:
    """``x + -1`` as ``x - 1``."""
    match node:
        case Apply(
            operator=Op.ADD | Op.SUBTRACT as operator,
            operands=(left, Const(value=int() as number, type=type)),
        ) if number < 0:
            other = Op.SUBTRACT if operator is Op.ADD else Op.ADD
            return apply(other, left, const(-number, type))
    return None


def _compared(node: Apply) -> Expr | None:
    """A comparison without the terms common to both sides."""
    if any(not isinstance(part, Apply | Index | Const) for part in walk(node)):
        return None
    left, right = node.operands
    terms: dict[Expr, int] = {}
    number = _collect(left, 1, terms) + _collect(right, -1, terms)
    more = {term: factor for term, factor in terms.items() if factor > 0}
    less = {term: -factor for term, factor in terms.items() if factor < 0}
    shorter = apply(
        node.operator,
        _sum(more, max(number, 0) if less else 0, left),
        _sum(less, max(-number, 0) if less else -number, right),
    )
    return shorter if _size(shorter) < _size(node) else None


def _size(expr: Term) -> int:
    return sum(1 for _ in walk(expr))


def _collect(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Add ``factor * expr`` to the terms; returns its constant part."""
    match expr:
        case Const(value=int() as value):
            return factor * value
        case Apply(operator=Op.ADD, operands=(left, right)):
            return _collect(left, factor, terms) + _collect(right, factor, terms)
        case Apply(operator=Op.SUBTRACT, operands=(left, right)):
            return _collect(left, factor, terms) + _collect(right, -factor, terms)
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            return _collect(operand, -factor, terms)
        case Apply(operator=Op.MULTIPLY, operands=(Const(value=int() as by), operand)):
            return _collect(operand, factor * by, terms)
        case Apply(operator=Op.MULTIPLY, operands=(operand, Const(value=int() as by))):
            return _collect(operand, factor * by, terms)
    terms[expr] = terms.get(expr, 0) + factor
    return 0


def _sum(terms: dict[Expr, int], number: int, like: Expr) -> Expr:
    """The sum of terms, positive ones first, in order of appearance."""
    type = like.type
    ordered = sorted(((t, f) for t, f in terms.items() if f), key=lambda item: item[1] < 0)
    total: Expr | None = None
    for term, factor in ordered:
        if total is None and factor < 0:
            total, number = const(number, type), 0
        scaled = simplify(term * const(abs(factor), type))
        if total is None:
            total = scaled
        else:
            total = apply(Op.ADD if factor > 0 else Op.SUBTRACT, total, scaled)
    if total is None:
        return const(number, type)
    if not number:
        return total
    return apply(Op.SUBTRACT if number < 0 else Op.ADD, total, const(abs(number), type))


@dataclass(slots=True)
class _Row:
    """``value`` is the sum of the unknown loops with these factors."""

    value: Expr
    factors: dict[str, int]


def as_digits(intervals: Sequence[Interval], new: Mapping[str, Expr]) -> dict[str, Expr] | None:
    """Old loops over new ones, if each is a difference or a digit; ``None`` if one is not.

    Correct only if new loops are sums of old ones, and no digit overflows.
    """
    names = [interval.name for interval in intervals]
    rows = [_row(name, expr, names) for name, expr in new.items()]
    known: dict[str, Expr] = {}
    left = [row for row in rows if row is not None]
    while left:
        row = min(left, key=lambda row: len(row.factors))
        left.remove(row)
        digits = _digits(row, {interval.name: interval for interval in intervals})
        if digits is None:
            return None
        known |= digits
        for other in left:
            for name, value in digits.items():
                factor = other.factors.pop(name, 0)
                if factor:
                    term = factor * value
                    other.value = tidy(other.value - term)
    return {name: tidy(known[name]) for name in names} if set(known) == set(names) else None


def _row(name: str, expr: Expr, names: Sequence[str]) -> _Row | None:
    origin = substitute(expr, {other: const(0) for other in names})
    if not isinstance(origin, Const):
        return None
    factors: dict[str, int] = {}
    for interval_name in names:
        point = {other: const(int(other == interval_name)) for other in names}
        at_point = substitute(expr, dict(point))
        if not isinstance(at_point, Const):
            return None
        factor = int(at_point.value) - int(origin.value)
        if factor:
            factors[interval_name] = factor
    return _Row(Index(name=name) - origin, factors)


def _digits(row: _Row, intervals: Mapping[str, Interval]) -> dict[str, Expr] | None:
    """The unknown loops of one sum, from the one with the largest factor on."""
    digits: dict[str, Expr] = {}
    rest, above = row.value, 0
    lows: dict[str, int] = {}
    for name, factor in row.factors.items():
        bounds = intervals[name].constant
        if len(row.factors) == 1 and abs(factor) == 1:
            return {name: factor * rest}
        if bounds is None:
            return None
        lows[name] = bounds[0] if factor > 0 else bounds[0] + bounds[1] - 1
        rest = rest - factor * lows[name]
    rest = tidy(rest)
    for name, factor in sorted(row.factors.items(), key=lambda item: -abs(item[1])):
        digit = rest if not above else rest % above
        digit = digit // abs(factor)
        sign = Op.ADD if factor > 0 else Op.SUBTRACT
        digits[name] = apply(sign, const(lows[name]), digit)
        above = abs(factor)
    return digits
