"""Interval arithmetic over index expressions: cheap bounds that need no enumeration."""

from __future__ import annotations

from collections.abc import Mapping

from t2s.core.expr import Apply, Cast, Const, Expr, Index, Parameter, Select
from t2s.core.ops import Array, Op

Interval = tuple[int, int]


def interval(expr: Expr, names: Mapping[str, Array]) -> Interval | None:
    """Bounds of an integer expression where every name lies in the range of its array.

    The bounds are attained if no name occurs twice; ``None`` where nothing is known.
    """
    match expr:
        case Const(value=int() as value):
            return value, value
        case Index(name=name) | Parameter(name=name):
            values = names[name]
            return (int(values.min()), int(values.max())) if values.size else None
        case Cast(value=value, type=type) if type.is_integer and value.type.is_integer:
            return interval(value, names)
        case Select(if_true=if_true, if_false=if_false):
            left, right = interval(if_true, names), interval(if_false, names)
            if left is None or right is None:
                return None
            return min(left[0], right[0]), max(left[1], right[1])
        case Apply(operator=operator, operands=(first, second)):
            left, right = interval(first, names), interval(second, names)
            return None if left is None or right is None else _combined(operator, left, right)
    return None


def _combined(operator: Op, left: Interval, right: Interval) -> Interval | None:
    match operator:
        case Op.ADD:
            return left[0] + right[0], left[1] + right[1]
        case Op.SUBTRACT:
            return left[0] - right[1], left[1] - right[0]
        case Op.MULTIPLY:
            products = [a * b for a in left for b in right]
            return min(products), max(products)
        case Op.MINIMUM:
            return min(left[0], right[0]), min(left[1], right[1])
        case Op.MAXIMUM:
            return max(left[0], right[0]), max(left[1], right[1])
        case Op.FLOOR_DIVIDE if right[0] == right[1] > 0:
            return left[0] // right[0], left[1] // right[0]
        case Op.MODULO if right[0] == right[1] > 0:
            by = right[0]
            if left[0] // by == left[1] // by:
                return left[0] % by, left[1] % by
            return 0, by - 1
    return None
