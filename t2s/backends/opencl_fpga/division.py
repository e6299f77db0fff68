"""Bodies of the helper functions for integer division and shifts, of ``a`` by ``b``."""

from __future__ import annotations

from t2s.backends.opencl_fpga.c_types import scalar_name
from t2s.backends.opencl_fpga.kernel_ast import (
    CastTo,
    Declare,
    Return,
)
from t2s.backends.text.expressions import (
    Expression,
    If,
    Name,
    TargetStatement,
    Ternary,
    Unary,
    binary,
    number,
)
from t2s.core.ops import Op
from t2s.core.types import Kind, Type


def _a_and_b() -> tuple[Name, Name]:
    return Name(name="a"), Name(name="b")


def _is(value: Expression, constant: int) -> Expression:
    return binary("==", value, number(constant))


def _signs_differ(left: Expression, right: Expression) -> Expression:
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
    nothing: Expression = number(0)
    if not left and type.kind is Kind.INT:
        negative = binary("<", a, number(0))
        nothing = Ternary(condition=negative, if_true=number(-1), if_false=number(0))
    return (
        Declare(type=unsigned, name="amount", initial=CastTo(type=unsigned, values=(b,))),
        Return(value=Ternary(condition=within, if_true=moved, if_false=nothing)),
    )
