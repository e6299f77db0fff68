"""What is known of integer expressions before the design runs: ranges and linear forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from t2s.core.expr import Apply, Cast, Const, Expr, Index, Parameter, Select, apply, const, simplify
from t2s.core.ops import Op
from t2s.core.types import INT32, Kind, integer_range

Interval = tuple[int, int]
Ranges = Mapping[str, Interval]
LinearForm = tuple[dict[str, int], int]


def interval(expr: Expr, ranges: Ranges) -> Interval | None:
    """The smallest and largest value of a scalar integer or bool, or ``None`` if unknown.

    ``ranges`` holds those of loops, space dimensions and parameters, both ends included.
    """
    if expr.type.lanes > 1 or expr.type.is_float:
        return None
    result = _interval(expr, ranges)
    limits = integer_range(expr.type)
    if result is not None and limits[0] <= result[0] and result[1] <= limits[1]:
        return result
    return limits if expr.type.kind is Kind.UINT else None


def _interval(expr: Expr, ranges: Ranges) -> Interval | None:
    match expr:
        case Const(value=value):
            return int(value), int(value)
        case Index(name=name) | Parameter(name=name):
            return ranges.get(name)
        case Cast(value=value) if value.type.is_integer or value.type.is_bool:
            return interval(value, ranges)
        case Select(if_true=if_true, if_false=if_false):
            sides = interval(if_true, ranges), interval(if_false, ranges)
            if sides[0] is None or sides[1] is None:
                return None
            return min(sides[0][0], sides[1][0]), max(sides[0][1], sides[1][1])
        case Apply(operator=operator, operands=operands):
            known = [interval(operand, ranges) for operand in operands]
            present = [item for item in known if item is not None]
            return applied(operator, present) if len(present) == len(known) else None
    return None


def applied(operator: Op, operands: Sequence[Interval]) -> Interval | None:
    """What an operator of exact integers makes of ranges; ``None`` if that is unknown."""
    if len(operands) == 1:
        ((low, high),) = operands
        match operator:
            case Op.NEGATE:
                return -high, -low
            case Op.NOT if low >= 0 and high <= 1:
                return 1 - high, 1 - low
    if len(operands) != 2:
        return None
    (a, b), (c, d) = operands
    match operator:
        case Op.ADD:
            return a + c, b + d
        case Op.SUBTRACT:
            return a - d, b - c
        case Op.MULTIPLY:
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        case Op.FLOOR_DIVIDE if c > 0:
            corners = (a // c, a // d, b // c, b // d)
            return min(corners), max(corners)
        case Op.MODULO if c > 0:
            if c == d and a // c == b // c:
                return a % c, b % c
            return (a, b) if a >= 0 and b < c else (0, d - 1)
        case Op.MINIMUM:
            return min(a, c), min(b, d)
        case Op.MAXIMUM:
            return max(a, c), max(b, d)
    return _compare(operator, operands)


def _compare(operator: Op, operands: Sequence[Interval]) -> Interval | None:
    """Comparisons and logic of bools: (0, 0) is never, (1, 1) is always."""
    (a, b), (c, d) = operands
    match operator:
        case Op.EQUAL:
            return _truth(a == b == c == d, b < c or d < a)
        case Op.NOT_EQUAL:
            return _truth(b < c or d < a, a == b == c == d)
        case Op.LESS:
            return _truth(b < c, a >= d)
        case Op.LESS_EQUAL:
            return _truth(b <= c, a > d)
        case Op.GREATER:
            return _truth(a > d, b <= c)
        case Op.GREATER_EQUAL:
            return _truth(a >= d, b < c)
        case Op.AND if max(b, d) <= 1 and min(a, c) >= 0:
            return a and c, b and d
        case Op.OR if max(b, d) <= 1 and min(a, c) >= 0:
            return a or c, b or d
    return None


def _truth(always: bool, never: bool) -> Interval:
    return int(always), int(not never)


def non_negative(expr: Expr, ranges: Ranges) -> bool:
    """Whether the value is known to be at least 0."""
    bounds = interval(expr, ranges)
    return bounds is not None and bounds[0] >= 0


def linear_form(expr: Expr) -> LinearForm | None:
    """``expr`` as coefficients of indices and a constant, or ``None`` if it is not linear."""
    match expr:
        case Const(value=value):
            return {}, int(value)
        case Index(name=name):
            return {name: 1}, 0
        case Apply(operator=Op.ADD, operands=(left, right)):
            return _sum(linear_form(left), linear_form(right), 1)
        case Apply(operator=Op.SUBTRACT, operands=(left, right)):
            return _sum(linear_form(left), linear_form(right), -1)
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            return _sum(({}, 0), linear_form(operand), -1)
        case Apply(operator=Op.MULTIPLY, operands=(left, right)):
            first, second = linear_form(left), linear_form(right)
            if first is None or second is None or (first[0] and second[0]):
                return None
            form, factor = (second, first[1]) if not first[0] else (first, second[1])
            return _sum(({}, 0), form, factor)
    return None


def _sum(left: LinearForm | None, right: LinearForm | None, factor: int) -> LinearForm | None:
    if left is None or right is None:
        return None
    coefficients = dict(left[0])
    for name, coefficient in right[0].items():
        coefficients[name] = coefficients.get(name, 0) + factor * coefficient
    nonzero = {name: value for name, value in coefficients.items() if value}
    return nonzero, left[1] + factor * right[1]


def from_linear_form(form: LinearForm) -> Expr:
    """The expression of a linear form: positive terms first, then negative ones, the constant."""
    coefficients, constant = form
    result: Expr | None = None
    for name, coefficient in sorted(coefficients.items(), key=lambda item: item[1] < 0):
        size = abs(coefficient)
        term: Expr = Index(name=name)
        if size != 1:
            term = size * term
        if coefficient < 0:
            term = (const(0) if result is None else result) - term
        elif result is not None:
            term = result + term
        result = term
    if result is None:
        return const(constant)
    if constant:
        operator = Op.ADD if constant > 0 else Op.SUBTRACT
        result = apply(operator, result, const(abs(constant), INT32))
    return result


def bound_over(expr: Expr, ranges: Ranges, pick: Callable[[int, int], int]) -> Expr | None:
    """A lower bound (``pick=min``) or an upper bound (``max``) of an expression over the ranges.

    It is the minimum or maximum of a linear expression; minima and maxima of such are bounded part
    by part.  The indices of ``ranges`` vanish from the result; ``None`` for anything else.
    """
    form = linear_form(expr)
    if form is None:
        return _bound_of_parts(expr, ranges, pick)
    coefficients, constant = form
    inner: dict[str, int] = {}
    for name, coefficient in coefficients.items():
        if name in ranges:
            low, high = ranges[name]
            constant += pick(coefficient * low, coefficient * high)
        else:
            inner[name] = coefficient
    return from_linear_form((inner, constant))


def _bound_of_parts(expr: Expr, ranges: Ranges, pick: Callable[[int, int], int]) -> Expr | None:
    match expr:
        case Apply(operator=Op.MINIMUM | Op.MAXIMUM as operator, operands=(left, right)):
            parts = bound_over(left, ranges, pick), bound_over(right, ranges, pick)
            if parts[0] is None or parts[1] is None:
                return None
            if isinstance(parts[0], Const) and isinstance(parts[1], Const):
                chosen = min if operator is Op.MINIMUM else max
                return const(chosen(int(parts[0].value), int(parts[1].value)))
            return apply(operator, parts[0], parts[1])
        case Apply(operator=Op.ADD | Op.SUBTRACT as operator, operands=(left, Const() as right)):
            part = bound_over(left, ranges, pick)
            return None if part is None else simplify(apply(operator, part, right))
    return None
