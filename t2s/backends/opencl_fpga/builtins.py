"""Operators that OpenCL C has itself: one expression, on scalars and on built-in vectors.

``operators.py`` chooses between these and helper functions; the bodies of those for integer
division and shifts are here too.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.opencl_fpga.c_types import scalar_name, storage_name
from t2s.backends.opencl_fpga.kernel_ast import (
    CastTo,
    Declare,
    Return,
)
from t2s.backends.text.expressions import (
    If,
    Name,
    TargetExpression,
    TargetStatement,
    Ternary,
    Unary,
    binary,
    call,
    number,
)
from t2s.core.ops import C_FUNCTIONS, Op
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
    Op.FLOOR: "floor",
    Op.CEILING: "ceil",
    Op.FUSED_MULTIPLY_ADD: "fma",
    **C_FUNCTIONS,
}
_COMPARISONS = {Op.EQUAL, Op.NOT_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL}
NO_VECTOR_FORM = {
    Op.FLOOR_DIVIDE,
    Op.MODULO,
    Op.SHIFT_LEFT,
    Op.SHIFT_RIGHT,
} | _COMPARISONS
"""Operators that built-in vectors do not have, or not with the results of t2s."""
Operands = Sequence[TargetExpression]


def scalar_operation(operator: Op, type: Type, operands: Operands) -> TargetExpression:
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
        case Op.FUSED_MULTIPLY_ADD if type.is_integer:
            return _narrowed(binary("+", binary("*", first, operands[1]), last), type)
    if operator in _FUNCTIONS:
        return call(_FUNCTIONS[operator], *operands)
    result = binary(_INFIX[operator], first, last)
    return result if operator in _COMPARISONS else _narrowed(result, type)


def vector_operation(operator: Op, type: Type, operands: Operands) -> TargetExpression:
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
        case Op.FUSED_MULTIPLY_ADD if type.is_integer:
            return _narrowed(binary("+", binary("*", first, operands[1]), last), type)
    if operator in _FUNCTIONS:
        return call(_FUNCTIONS[operator], *operands)
    return binary(_INFIX[operator], first, last)


def _narrowed(value: TargetExpression, type: Type) -> TargetExpression:
    """C computes small integers as ``int``; wrap around to the type they have in t2s."""
    if type.lanes == 1 and type.is_integer and type.bits < 32:
        return CastTo(type=scalar_name(type), values=(value,))
    return value


def _absolute(operand: TargetExpression, type: Type) -> TargetExpression:
    if type.is_float:
        return call("fabs", operand)
    if type.kind is Kind.UINT:
        return operand
    return call(f"as_{storage_name(type)}", call("abs", operand))


def _a_and_b() -> tuple[Name, Name]:
    return Name(name="a"), Name(name="b")


def _is(value: TargetExpression, constant: int) -> TargetExpression:
    return binary("==", value, number(constant))


def _signs_differ(left: TargetExpression, right: TargetExpression) -> TargetExpression:
    return binary("!=", binary("<", left, number(0)), binary("<", right, number(0)))


def floor_divide(type: str) -> tuple[TargetStatement, ...]:
    """``a / b`` rounded towards minus infinity; ``INT_MIN / -1`` wraps around."""
    a, b = _a_and_b()
    quotient = Name(name="quotient")
    inexact = binary("!=", binary("%", a, b), number(0))
    return (
        If(condition=_is(b, 0), then=(Return(value=number(0)),)),
        If(condition=_is(b, -1), then=(Return(value=Unary(operator="-", operand=a)),)),
        Declare(type=type, name="quotient", initial=binary("/", a, b)),
        Return(
            value=Ternary(
                condition=binary("&&", inexact, _signs_differ(a, b)),
                if_true=binary("-", quotient, number(1)),
                if_false=quotient,
            )
        ),
    )


def modulo(type: str) -> tuple[TargetStatement, ...]:
    """The rest that goes with ``floor_divide``: it has the sign of ``b``."""
    a, b = _a_and_b()
    rest = Name(name="rest")
    return (
        If(condition=binary("||", _is(b, 0), _is(b, -1)), then=(Return(value=number(0)),)),
        Declare(type=type, name="rest", initial=binary("%", a, b)),
        Return(
            value=Ternary(
                condition=binary("&&", binary("!=", rest, number(0)), _signs_differ(rest, b)),
                if_true=binary("+", rest, b),
                if_false=rest,
            )
        ),
    )


def unsigned_divide(type: str) -> tuple[TargetStatement, ...]:
    """``a / b`` of unsigned integers."""
    a, b = _a_and_b()
    safe = Ternary(condition=_is(b, 0), if_true=number(0), if_false=binary("/", a, b))
    return (Return(value=safe),)


def unsigned_modulo(type: str) -> tuple[TargetStatement, ...]:
    """``a % b`` of unsigned integers."""
    a, b = _a_and_b()
    safe = Ternary(condition=_is(b, 0), if_true=number(0), if_false=binary("%", a, b))
    return (Return(value=safe),)


def shift(operator: Op, type: Type) -> tuple[TargetStatement, ...]:
    """``a`` shifted by ``b``, taken as unsigned: by the width or more only the sign is left."""
    a, b = _a_and_b()
    name, unsigned = scalar_name(type), scalar_name(Type(Kind.UINT, type.bits))
    amount = Name(name="amount")
    within = binary("<", amount, number(type.bits))
    left = operator is Op.SHIFT_LEFT
    whole = CastTo(type=unsigned, values=(a,)) if left else a
    moved = CastTo(type=name, values=(binary("<<" if left else ">>", whole, amount),))
    nothing: TargetExpression = number(0)
    if not left and type.kind is Kind.INT:
        negative = binary("<", a, number(0))
        nothing = Ternary(condition=negative, if_true=number(-1), if_false=number(0))
    return (
        Declare(type=unsigned, name="amount", initial=CastTo(type=unsigned, values=(b,))),
        Return(value=Ternary(condition=within, if_true=moved, if_false=nothing)),
    )
