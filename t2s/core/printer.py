"""Stable text of expressions, in Python's syntax."""

from __future__ import annotations

from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    Read,
    ReduceLanes,
    Select,
)
from t2s.core.ops import OPERATORS, Op

_PRECEDENCE: dict[Op, int] = {
    Op.OR: 1,
    Op.XOR: 1,
    Op.AND: 2,
    Op.NOT: 3,
    Op.EQUAL: 4,
    Op.NOT_EQUAL: 4,
    Op.LESS: 4,
    Op.LESS_EQUAL: 4,
    Op.GREATER: 4,
    Op.GREATER_EQUAL: 4,
    Op.ADD: 5,
    Op.SUBTRACT: 5,
    Op.MULTIPLY: 6,
    Op.DIVIDE: 6,
    Op.FLOOR_DIVIDE: 6,
    Op.MODULO: 6,
}


def show(expr: Expr, outer: int = 0) -> str:
    """The expression as text; ``outer`` is the precedence of the surrounding operator."""
    match expr:
        case Const(value=value, type=type):
            return repr(bool(value)) if type.is_bool else repr(value)
        case Index(name=name) | Parameter(name=name) | Local(name=name):
            return name
        case Read(source=source, indices=indices):
            return f"{source}[{', '.join(show(index) for index in indices)}]"
        case Apply(operator=Op.NOT, operands=(operand,)):
            text = f"not {show(operand, 9)}"
            return f"({text})" if _PRECEDENCE[Op.NOT] < outer else text
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            return f"-{show(operand, 9)}"
        case Apply(operator=operator, operands=(left, right)) if operator in _PRECEDENCE:
            inner = _PRECEDENCE[operator]
            chains = OPERATORS[operator].comparison  # a < b < c would mean a < b and b < c
            left_text = show(left, inner + 1 if chains else inner)
            text = f"{left_text} {operator.value} {show(right, inner + 1)}"
            return f"({text})" if inner < outer else text
        case Apply(operator=operator, operands=operands):
            return f"{operator.value}({', '.join(show(operand) for operand in operands)})"
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            return f"select({show(condition)}, {show(if_true)}, {show(if_false)})"
        case Cast(value=value, type=type):
            return f"{type}({show(value)})"
        case Broadcast(value=value, type=type):
            return f"broadcast({show(value)}, {type.lanes})"
        case LaneNumbers(type=type):
            return f"lane_numbers({type.lanes})"
        case ReduceLanes(operator=operator, value=value):
            return f"reduce_lanes({operator.value!r}, {show(value)})"
        case Insert(vector=vector, lane=lane, value=value):
            return f"insert({show(vector)}, {show(lane)}, {show(value)})"
    raise TypeError(f"cannot print {expr!r}")
