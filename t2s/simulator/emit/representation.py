"""How values of t2s types are held in LLVM registers and in memory.

================  =========================  ======================
type              register                   memory (one lane)
================  =========================  ======================
bool              ``i1``                     a byte, 0 or 1
integers          ``i8`` to ``i64``          the same
float32, float64  ``float``, ``double``      the same
16-bit floats     ``i16``, the bit pattern   the same
================  =========================  ======================

A value with lanes is an LLVM vector of these.  16-bit floats are computed in float32 and rounded
to nearest even after every operator, as numpy and ``ml_dtypes`` do.
"""

from __future__ import annotations

import sys
from math import gcd

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.types import Kind, Type
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import (
    DOUBLE,
    FLOAT,
    I1,
    I8,
    LLVMType,
    Value,
    integer,
    integer_type,
    null,
    undefined,
    vector_type,
)
from t2s.simulator.values.layout import ALIGNMENT


def require_type(given: Type, due: Type, what: str) -> None:
    """Raise ``InternalError`` unless the types agree; graphs are checked long before."""
    if (given.kind, given.bits, given.lanes) != (due.kind, due.bits, due.lanes):
        raise InternalError(f"{what} has type {given} instead of {due}")


def is_narrow(type: Type) -> bool:
    """Whether this is a 16-bit float, which is held as a bit pattern."""
    return type.is_float and type.bits == 16


def vector_of(scalar: LLVMType, lanes: int) -> LLVMType:
    """The LLVM type of ``lanes`` scalars (the scalar itself for one lane)."""
    return scalar if lanes == 1 else vector_type(scalar, lanes)


def register_type(type: Type) -> LLVMType:
    """The LLVM type of a value in a register."""
    match type:
        case Type(kind=Kind.BOOL):
            scalar = I1
        case Type(kind=Kind.FLOAT, bits=32):
            scalar = FLOAT
        case Type(kind=Kind.FLOAT, bits=64):
            scalar = DOUBLE
        case _:
            scalar = integer_type(type.bits)
    return vector_of(scalar, type.lanes)


def zero(type: Type) -> Value:
    """The zero of a type, all lanes."""
    return null(register_type(type))


def constant(builder: Builder, value: int | float | bool, type: Type) -> Value:
    """A literal, rounded as numpy rounds it, in all lanes."""
    with np.errstate(all="ignore"):
        bits = np.asarray(value, type.numpy).tobytes()
    pattern = int.from_bytes(bits, sys.byteorder)
    if type.is_bool:
        return integer(int(pattern != 0), register_type(type))
    bit_type = vector_of(integer_type(type.bits), type.lanes)
    return builder.bitcast(integer(pattern, bit_type), register_type(type))


def pick_lanes(builder: Builder, vector: Value, lanes: list[int]) -> Value:
    """The given lanes of a vector, as a vector or, if there is one, as a scalar."""
    if len(lanes) == 1:
        return builder.extract_element(vector, lanes[0])
    return builder.shuffle_vector(vector, undefined(vector.type), lanes)


def offset_by(builder: Builder, pointer: Value, offset: Value | int) -> Value:
    """The pointer ``offset`` bytes further on."""
    return builder.offset(pointer, integer(offset) if isinstance(offset, int) else offset)


def token_alignment(type: Type) -> int:
    """The alignment of the elements of a packed array that starts on a cache line."""
    return gcd(type.bytes, ALIGNMENT)


def load_value(builder: Builder, pointer: Value, type: Type, align: int) -> Value:
    """Load a value of a t2s type."""
    if type.is_bool:
        stored = builder.load(pointer, vector_of(I8, type.lanes), align)
        return builder.icmp_unsigned("!=", stored, null(stored.type))
    return builder.load(pointer, register_type(type), align)


def store_value(builder: Builder, value: Value, pointer: Value, type: Type, align: int) -> None:
    """Store a value of a t2s type."""
    stored = builder.zext(value, vector_of(I8, type.lanes)) if type.is_bool else value
    builder.store(stored, pointer, align)
