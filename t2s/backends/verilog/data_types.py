"""How t2s types become bits.

An integer is a (signed) vector of its bits, a bool is one bit, a float is its IEEE 754 pattern; a
vector is a packed array of lanes, the first in the lowest bits.
"""

from __future__ import annotations

import numpy as np

from t2s.backends.text.expressions import (
    Expression,
    Literal,
    Unary,
    call,
)
from t2s.backends.verilog.verilog_ast import Bits
from t2s.core.types import Kind, Type

FLOAT_BITS = (32, 64)


def unsupported_type(type: Type) -> str | None:
    """Why the backend has no bits for a type; ``None`` if it has some."""
    if type.is_float and (type.kind is Kind.BFLOAT or type.bits not in FLOAT_BITS):
        return f"there are no operators for {type.scalar} in the simulation; use float32"
    return None


def width_of(type: Type) -> int:
    """Bits of one lane."""
    return 1 if type.is_bool else type.bits


def bits_of(type: Type) -> Bits:
    """The type of a variable."""
    signed = type.kind is Kind.INT and type.lanes == 1
    return Bits(width=width_of(type), signed=signed, lanes=type.lanes)


def suffix_of(type: Type) -> str:
    """What the functions of a type end in: ``s32``, ``u8``, ``f64``."""
    letter = {Kind.INT: "s", Kind.UINT: "u", Kind.FLOAT: "f"}[type.kind]
    return f"{letter}{type.bits}"


def literal(value: int | float | bool, type: Type) -> Expression:
    """A scalar constant."""
    match type.kind:
        case Kind.BOOL:
            return Literal(text="1'b1" if value else "1'b0")
        case Kind.UINT:
            return Literal(text=f"{type.bits}'d{int(value)}")
        case Kind.INT:
            return _signed(int(value), type.bits)
    pattern = np.asarray(value, type.numpy).view(f"uint{type.bits}")
    return Literal(text=f"{type.bits}'h{int(pattern):0{type.bits // 4}x}")


def _signed(value: int, bits: int) -> Expression:
    if value == -(2 ** (bits - 1)):
        return Literal(text=f"{bits}'sh{2 ** (bits - 1):x}")
    shown = Literal(text=str(abs(value)) if bits == 32 else f"{bits}'sd{abs(value)}")
    return Unary(operator="-", operand=shown) if value < 0 else shown


def signed_as(value: Expression, type: Type) -> Expression:
    """A pattern of bits, read as a number of that type."""
    return call("$signed", value) if type.kind is Kind.INT else value
