"""Conversions between t2s types in LLVM, with the rounding and saturation of ``cast_value``."""

from __future__ import annotations

from t2s.core.types import Kind, Type
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import DOUBLE, FLOAT, HALF, I16, I32, I64, Value, integer, null
from t2s.simulator.emit.representation import is_narrow, register_type, vector_of


def convert(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    """``value`` of type ``source`` as ``target``; both have the same number of lanes."""
    if (source.kind, source.bits) == (target.kind, target.bits):
        return value
    if source.is_float:
        return _from_float(builder, value, source, target)
    if target.is_bool:
        return builder.icmp_unsigned("!=", value, null(value.type))
    if target.is_float:
        return _integer_to_float(builder, value, source, target)
    return _resize(builder, value, source, target)


def expand(builder: Builder, value: Value, type: Type) -> Value:
    """A float of any width in a type that has arithmetic: 16-bit floats become float32."""
    if not is_narrow(type):
        return value
    wide = vector_of(FLOAT, type.lanes)
    if type.kind is Kind.FLOAT:
        half = builder.bitcast(value, vector_of(HALF, type.lanes))
        return builder.fpext(half, wide)
    bits = builder.zext(value, vector_of(I32, type.lanes))
    return builder.bitcast(builder.shl(bits, integer(16, bits.type)), wide)


def narrow(builder: Builder, value: Value, type: Type) -> Value:
    """The inverse of ``expand``: round a float32 to nearest even in ``type``."""
    if not is_narrow(type):
        return value
    if type.kind is Kind.FLOAT:
        half = builder.fptrunc(value, vector_of(HALF, type.lanes))
        return builder.bitcast(half, vector_of(I16, type.lanes))
    bits = builder.bitcast(value, vector_of(I32, type.lanes))

    def number(pattern: int) -> Value:
        return integer(pattern, bits.type)

    top = builder.lshr(bits, number(16))
    odd = builder.and_(top, number(1))
    rounded = builder.lshr(builder.add(builder.add(bits, number(0x7FFF)), odd), number(16))
    quiet = builder.or_(builder.and_(top, number(0x8000)), number(0x7FC0))
    unordered = builder.is_nan(value)
    return builder.trunc(builder.select(unordered, quiet, rounded), vector_of(I16, type.lanes))


def _resize(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    """Between integers (or from a bool): wrap around or extend by the sign of the source."""
    result = register_type(target)
    if source.is_bool or (target.bits > source.bits and source.kind is Kind.UINT):
        return builder.zext(value, result)
    if target.bits > source.bits:
        return builder.sext(value, result)
    return builder.trunc(value, result) if target.bits < source.bits else value


def _integer_to_float(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    """Round to nearest even; to a 16-bit float by way of float32, as numpy does."""
    wide = vector_of(FLOAT, target.lanes) if is_narrow(target) else register_type(target)
    to_float = builder.sitofp if source.kind is Kind.INT else builder.uitofp
    return narrow(builder, to_float(value, wide), target)


def _from_float(builder: Builder, value: Value, source: Type, target: Type) -> Value:
    wide = expand(builder, value, source)
    if target.is_bool:
        return builder.fcmp_unordered("!=", wide, null(wide.type))
    if target.is_integer:
        return _saturate(builder, wide, target)
    if is_narrow(target):
        if source.bits == 64:
            wide = _to_single(builder, wide, target)
        return narrow(builder, wide, target)
    if target.bits == 64:
        return builder.fpext(wide, register_type(target))
    return builder.fptrunc(wide, register_type(target)) if source.bits == 64 else wide


def _saturate(builder: Builder, value: Value, target: Type) -> Value:
    """Truncate towards zero and saturate; NaN becomes 0."""
    result = register_type(target)
    operation = "fptosi" if target.kind is Kind.INT else "fptoui"
    name = f"llvm.{operation}.sat.{result.suffix}.{value.type.suffix}"
    return builder.intrinsic(name, result, [value])


def _to_single(builder: Builder, value: Value, target: Type) -> Value:
    """A float64 in float32, on the way to a 16-bit float.

    numpy rounds float64 to float16 once: what float32 cannot hold is kept as a sticky last bit
    (round to odd), which makes the second rounding right.  ``ml_dtypes`` rounds twice.
    """
    single = vector_of(FLOAT, target.lanes)
    if target.kind is Kind.BFLOAT:
        return builder.fptrunc(value, single)
    bits = builder.bitcast(value, vector_of(I64, target.lanes))
    lost = builder.and_(bits, integer((1 << 29) - 1, bits.type))
    inexact = builder.icmp_unsigned("!=", lost, integer(0, bits.type))
    sticky = builder.shl(builder.zext(inexact, bits.type), integer(29, bits.type))
    odd = builder.or_(builder.xor(bits, lost), sticky)
    return builder.fptrunc(builder.bitcast(odd, vector_of(DOUBLE, target.lanes)), single)
