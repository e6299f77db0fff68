"""Operators that OpenCL C has itself: one expression, on scalars and on built-in vectors.

``operators.py`` chooses between these and helper functions.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.opencl_fpga.c_types import scalar_name, storage_name
from t2s.backends.opencl_fpga.kernel_ast import CastTo
from t2s.backends.text.expressions import (
    Expression,
    Unary,
    binary,
    call,
    number,
)
from t2s.core.ops import Op
from t2s.core.types import Kind, Type

_INFIX = {
    Op.ADD: "+",
    Op.SUBTRACT: "-",
    Op.MULTIPLY: "*",
    Op.DIVIDE: "/",
    Op.EQUAL: "==",
    Op.NOT_EQUAL: "!=",
    Op.LESS: "<",
    Op.LESS_EQUAL: "<=",
    Op.GREATER: ">",
    Op.GREATER_EQUAL: ">=",
}
_LOGIC = {Op.AND: "&&", Op.OR: "||", Op.XOR: "!="}
_BITWISE = {Op.AND: "&", Op.OR: "|", Op.XOR: "^"}
_FUNCTIONS = {
    Op.SQUARE_ROOT: "sqrt",
    Op.RECIPROCAL_SQUARE_ROOT: "rsqrt",
    Op.EXPONENTIAL: "exp",
    Op.LOGARITHM: "log",
    Op.HYPERBOLIC_TANGENT: "tanh",
    Op.FLOOR: "floor",
    Op.CEILING: "ceil",
}
_COMPARISONS = {Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL}
NO_VECTOR_FORM = {
    Op.FLOOR_DIVIDE,
    Op.MODULO,
    Op.SHIFT_LEFT,
    Op.SHIFT_RIGHT,
} | _COMPARISONS
"""Operators that built-in vectors do not have, or not with the results of t2s."""
Operands = Sequence[Expression]


def scalar_operation(operator: Op, type: Type, operands: Operands) -> Expression:
    """Operators on scalars that C has, but for the division that rounds towards zero."""
    first, last = operands[0], operands[-1]
    match operator:
        case Op.AND | Op.OR | Op.XOR:
            return binary((_LOGIC if type.is_bool else _BITWISE)[operator], first, last)
        case Op.NOT if type.is_bool:
            return Unary(operator="!", operand=first)
        case Op.NOT:
            return _narrowed(Unary(operator="~", operand=first), type)
        case Op.NEGATE:
            return _narrowed(Unary(operator="-", operand=first), type)
        case Op.ABSOLUTE:
            return _absolute(first, type)
    if operator in _FUNCTIONS:
        return call(_FUNCTIONS[operator], first)
    result = binary(_INFIX[operator], first, last)
    return result if operator in _COMPARISONS else _narrowed(result, type)


def vector_operation(operator: Op, type: Type, operands: Operands) -> Expression:
    """Operators that OpenCL has on built-in vectors."""
    first, last = operands[0], operands[-1]
    match operator:
        case Op.AND | Op.OR | Op.XOR:
            return binary(_BITWISE[operator], first, last)
        case Op.NOT if type.is_bool:
            return binary("^", first, CastTo(type=storage_name(type), values=(number(1),)))
        case Op.NOT:
            return Unary(operator="~", operand=first)
        case Op.NEGATE:
            return Unary(operator="-", operand=first)
        case Op.ABSOLUTE:
            return _absolute(first, type)
    if operator in _FUNCTIONS:
        return call(_FUNCTIONS[operator], first)
    return binary(_INFIX[operator], first, last)


def _narrowed(value: Expression, type: Type) -> Expression:
    """C computes small integers as ``int``; wrap around to the type they have in t2s."""
    if type.lanes == 1 and type.is_integer and type.bits < 32:
        return CastTo(type=scalar_name(type), values=(value,))
    return value


def _absolute(operand: Expression, type: Type) -> Expression:
    if type.is_float:
        return call("fabs", operand)
    if type.kind is Kind.UINT:
        return operand
    return call(f"as_{storage_name(type)}", call("abs", operand))
