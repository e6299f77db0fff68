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
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.types import Kind, Type
from t2s.simulator.native.layout import ALIGNMENT
from t2s.simulator.native.llvm import Builder, Value, ir

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
FLOAT, DOUBLE, HALF, POINTER = ir.FloatType(), ir.DoubleType(), ir.HalfType(), ir.PointerType()


def require_type(given: Type, due: Type, what: str) -> None:
    """Raise ``InternalError`` unless the types agree; graphs are checked long before."""
    if (given.kind, given.bits, given.lanes) != (due.kind, due.bits, due.lanes):
        raise InternalError(f"{what} has type {given} instead of {due}")


def is_narrow(type: Type) -> bool:
    """Whether this is a 16-bit float, which is held as a bit pattern."""
    return type.is_float and type.bits == 16


def vector_of(scalar: Any, lanes: int) -> Any:
    """The LLVM type of ``lanes`` scalars (the scalar itself for one lane)."""
    return scalar if lanes == 1 else ir.VectorType(scalar, lanes)


def register_type(type: Type) -> Any:
    """The LLVM type of a value in a register."""
    match type:
        case Type(kind=Kind.BOOL):
            scalar = I1
        case Type(kind=Kind.FLOAT, bits=32):
            scalar = FLOAT
        case Type(kind=Kind.FLOAT, bits=64):
            scalar = DOUBLE
        case _:
            scalar = ir.IntType(type.bits)
    return vector_of(scalar, type.lanes)


def integer(value: int, type: Any = I64) -> Value:
    """An integer constant; a vector type repeats it over the lanes."""
    if isinstance(type, ir.VectorType):
        return ir.Constant(type, [ir.Constant(type.element, value)] * type.count)
    return ir.Constant(type, value)


def zero(type: Type) -> Value:
    """The zero of a type, all lanes."""
    return ir.Constant(register_type(type), None)


def constant(builder: Builder, value: int | float | bool, type: Type) -> Value:
    """A literal, rounded as numpy rounds it, in all lanes."""
    with np.errstate(all="ignore"):
        bits = np.asarray(value, type.numpy).tobytes()
    pattern = int.from_bytes(bits, sys.byteorder)
    if type.is_bool:
        return integer(int(pattern != 0), register_type(type))
    bit_type = vector_of(ir.IntType(type.bits), type.lanes)
    return builder.bitcast(integer(pattern, bit_type), register_type(type))


def splat(builder: Builder, scalar: Value, lanes: int) -> Value:
    """A scalar repeated over the lanes."""
    vector = vector_of(scalar.type, lanes)
    if lanes == 1:
        return scalar
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, integer(0, I32))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), integer(0, vector_of(I32, lanes))
    )


def pick_lanes(builder: Builder, vector: Value, lanes: list[int]) -> Value:
    """The given lanes of a vector, as a vector or, if there is one, as a scalar."""
    if len(lanes) == 1:
        return builder.extract_element(vector, integer(lanes[0], I32))
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), [integer(lane, I32) for lane in lanes])
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def offset_by(builder: Builder, pointer: Value, offset: Value | int) -> Value:
    """The pointer ``offset`` bytes further on."""
    distance = integer(offset) if isinstance(offset, int) else offset
    return builder.gep(pointer, [distance], inbounds=True, source_etype=I8)


def token_alignment(type: Type) -> int:
    """The alignment of the elements of a packed array that starts on a cache line."""
    return gcd(type.bytes, ALIGNMENT)


def load_value(builder: Builder, pointer: Value, type: Type, align: int) -> Value:
    """Load a value of a t2s type."""
    if type.is_bool:
        stored = builder.load(pointer, typ=vector_of(I8, type.lanes), align=align)
        return builder.icmp_unsigned("!=", stored, ir.Constant(stored.type, None))
    return builder.load(pointer, typ=register_type(type), align=align)


def store_value(builder: Builder, value: Value, pointer: Value, type: Type, align: int) -> None:
    """Store a value of a t2s type."""
    stored = builder.zext(value, vector_of(I8, type.lanes)) if type.is_bool else value
    builder.store(stored, pointer, align=align)


def call_intrinsic(
    builder: Builder, name: str, result: Any, operands: list[tuple[Value, Any]]
) -> Value:
    """Call the LLVM intrinsic of this full name, declaring it if need be."""
    module = builder.module
    function = module.globals.get(name)
    if function is None:
        signature = ir.FunctionType(result, [type for _, type in operands])
        function = ir.Function(module, signature, name=name)
    return builder.call(function, [value for value, _ in operands])


def mangled(type: Any) -> str:
    """The suffix of an overloaded intrinsic for this LLVM type."""
    if isinstance(type, ir.VectorType):
        return f"v{type.count}{mangled(type.element)}"
    return {FLOAT: "f32", DOUBLE: "f64"}.get(type) or f"i{type.width}"
