"""Stable text of expressions, in Python's syntax."""

from __future__ import annotations

from typing import cast

from t2s.core.expr import (
    Apply,
    Arrange,
    Broadcast,
    Cast,
    Const,
    Contract,
    CountBits,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    LowestBits,
    Parameter,
    RankBits,
    Read,
    ReduceLanes,
    ReduceRows,
    Select,
    SetBits,
)
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import BOOL
from t2s.core.walk import Term, children, rebuild

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
    Op.SHIFT_LEFT: 5,
    Op.SHIFT_RIGHT: 5,
    Op.ADD: 6,
    Op.SUBTRACT: 6,
    Op.MULTIPLY: 7,
    Op.DIVIDE: 7,
    Op.FLOOR_DIVIDE: 7,
    Op.MODULO: 7,
}


MOST_SHOWN = 20_000
"""Longer expressions are printed with their inner parts elided."""

DEEPEST_SHOWN = 150
"""Deeper ones too."""

_OUTER_PARTS = 6
_ELSEWHERE = Local(name="...", type=BOOL)


def show(expr: Expr, outer: int = 0) -> str:
    """The expression as text; ``outer`` is the precedence of the surrounding operator.

    What is too long or too deep to be read has ``...`` in place of its inner parts.
    """
    return _show(_readable(expr), outer)


def _readable(expr: Expr) -> Expr:
    """An expression of a size that can be printed."""
    level: list[Term] = [expr]
    size = depth = 0
    while level:
        size, depth = size + len(level), depth + 1
        if size > MOST_SHOWN or depth > DEEPEST_SHOWN:
            return _outer_parts(expr, _OUTER_PARTS)
        level = [child for term in level for child in children(term)]
    return expr


def _outer_parts(term: Expr, depth: int) -> Expr:
    if depth == 0:
        return _ELSEWHERE
    return rebuild(term, lambda child: _outer_parts(cast(Expr, child), depth - 1))


def _show(expr: Expr, outer: int = 0) -> str:
    match expr:
        case Const(value=value, type=type):
            return repr(bool(value)) if type.is_bool else repr(value)
        case Index(name=name) | Parameter(name=name) | Local(name=name):
            return name
        case Read(source=source, indices=indices):
            return f"{source}[{', '.join(_show(index) for index in indices)}]"
        case Apply(operator=Op.NOT, operands=(operand,)):
            text = f"not {_show(operand, 9)}"
            return f"({text})" if _PRECEDENCE[Op.NOT] < outer else text
        case Apply(operator=Op.NEGATE, operands=(operand,)):
            return f"-{_show(operand, 9)}"
        case Apply(operator=operator, operands=(left, right)) if operator in _PRECEDENCE:
            inner = _PRECEDENCE[operator]
            chains = OPERATORS[operator].comparison  # a < b < c would mean a < b and b < c
            left_text = _show(left, inner + 1 if chains else inner)
            text = f"{left_text} {operator.value} {_show(right, inner + 1)}"
            return f"({text})" if inner < outer else text
        case Apply(operator=operator, operands=operands):
            return f"{operator.value}({', '.join(_show(operand) for operand in operands)})"
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            return f"select({_show(condition)}, {_show(if_true)}, {_show(if_false)})"
        case Cast(value=value, type=type):
            return f"{type}({_show(value)})"
        case Broadcast(value=value, type=type):
            return f"broadcast({_show(value)}, {type.lanes})"
        case LaneNumbers(type=type):
            return f"lane_numbers({type.lanes})"
        case ReduceLanes(operator=operator, value=value):
            return f"reduce_lanes({operator.value!r}, {_show(value)})"
        case Insert(vector=vector, lane=lane, value=value):
            return f"insert({_show(vector)}, {_show(lane)}, {_show(value)})"
        case Arrange(value=value, shape=shape, strides=strides):
            return f"arrange({_show(value)}, {list(shape)}, {list(strides)})"
        case ReduceRows(operator=operator, value=value, type=type):
            return f"reduce_rows({operator.value!r}, {_show(value)}, {type.lanes})"
        case Contract(add=add, multiply=multiply, left=left, right=right, inner=inner):
            operators = f"{add.value!r}, {multiply.value!r}"
            return f"contract({operators}, {_show(left)}, {_show(right)}, {inner})"
        case CountBits(words=words):
            return f"ones({_show(words)})"
        case LowestBits(words=words, type=type):
            return f"lowest({_show(words)}, {type.lanes})"
        case RankBits(words=words, bits=bits):
            return f"rank({_show(words)}, {_show(bits)})"
        case SetBits(words=words, bits=bits):
            return f"set_bits({_show(words)}, {_show(bits)})"
    raise TypeError(f"cannot print {expr!r}")
