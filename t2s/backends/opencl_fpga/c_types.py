"""How t2s types are spelled in OpenCL C.

A scalar is a built-in type; a bool is ``bool`` in a variable and ``uchar`` in arrays, channels and
memory.  A vector of 2, 4, 8 or 16 lanes is a built-in vector; of any other number, a struct of an
array (``float_x10``).  Lanes of a bool vector are the bytes 0 and 1.
"""

from __future__ import annotations

import math

import numpy as np

from t2s.backends.opencl_fpga.kernel_ast import (
    CastTo,
    FieldOf,
    Struct,
    Subscript,
    TypedName,
)
from t2s.backends.text.expressions import (
    Expression,
    Literal,
    Name,
    number,
)
from t2s.core.types import Kind, Type

NATIVE_LANES = (2, 4, 8, 16)
_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}
_FLOATS = {32: "float", 64: "double"}


def unsupported_type(type: Type) -> str | None:
    """Why the backend has no spelling for a type; ``None`` if it has one."""
    if type.kind is Kind.BFLOAT:
        return "OpenCL for Intel FPGAs has no bfloat16; use float32"
    if type.kind is Kind.FLOAT and type.bits not in _FLOATS:
        return (
            "float16 needs cl_khr_fp16, which Intel's FPGA emulator does not have, "
            "so the design could not be tested; use float32"
        )
    return None


def scalar_name(type: Type) -> str:
    """One lane in memory: ``float``, ``uint``, and ``uchar`` for a bool."""
    match type.kind:
        case Kind.BOOL:
            return "uchar"
        case Kind.INT:
            return _INTEGERS[type.bits]
        case Kind.UINT:
            return "u" + _INTEGERS[type.bits]
        case _:
            return _FLOATS[type.bits]


def is_struct(type: Type) -> bool:
    """Whether the type is a vector that OpenCL has no built-in type for."""
    return type.lanes > 1 and type.lanes not in NATIVE_LANES


def storage_name(type: Type) -> str:
    """The type in arrays, structs, channels and memory."""
    if type.lanes == 1:
        return scalar_name(type)
    if is_struct(type):
        return f"{scalar_name(type)}_x{type.lanes}"
    return f"{scalar_name(type)}{type.lanes}"


def value_name(type: Type) -> str:
    """The type of a variable: as in storage, but ``bool`` for a single bool."""
    return "bool" if type.is_bool and type.lanes == 1 else storage_name(type)


def suffix_name(type: Type) -> str:
    """What names of helper functions end in: as in storage, but bools and bytes differ."""
    return storage_name(type).replace("uchar", "bool") if type.is_bool else storage_name(type)


def struct_of(type: Type) -> Struct:
    """The definition of a vector that OpenCL has no built-in type for."""
    field = TypedName(type=scalar_name(type), name="s", dimensions=(type.lanes,))
    return Struct(name=storage_name(type), fields=(field,))


def literal(value: int | float | bool, type: Type) -> Expression:
    """A scalar constant of one lane of ``type``."""
    match type.kind:
        case Kind.BOOL:
            return Literal(text="true" if value else "false")
        case Kind.INT | Kind.UINT:
            return _integer(int(value), type)
        case _:
            return _float(float(value), type)


def _integer(value: int, type: Type) -> Expression:
    suffix = ("u" if type.kind is Kind.UINT else "") + ("L" if type.bits == 64 else "")
    if type.kind is Kind.INT and value == -(2 ** (type.bits - 1)) and type.bits >= 32:
        return Literal(text="LONG_MIN" if type.bits == 64 else "INT_MIN")
    return Literal(text=f"{value}{suffix if type.bits >= 32 else ''}")


def _float(value: float, type: Type) -> Expression:
    single = type.bits == 32
    if math.isnan(value):
        return Literal(text="NAN")
    rounded = np.float32(value) if single else np.float64(value)
    if math.isinf(rounded):
        sign = "-" if rounded < 0 else ""
        return Literal(text=f"{sign}INFINITY")
    return Literal(text=f"{rounded!s}{'f' if single else ''}")


def zero(type: Type) -> Expression:
    """Zero of a scalar or of a built-in vector."""
    scalar = literal(0, type)
    if type.lanes == 1:
        return scalar
    if type.is_bool:
        scalar = number(0)
    return CastTo(type=storage_name(type), values=(scalar,))


def lane(vector: Expression, index: int, type: Type) -> Expression:
    """One lane of a vector: ``v.s[3]`` of a struct, ``v.s3`` of a built-in vector."""
    if is_struct(type):
        return Subscript(base=FieldOf(base=vector, field="s"), indices=(number(index),))
    return FieldOf(base=vector, field=f"s{index:x}")


def lane_at(vector: Expression, index: str, type: Type) -> Expression:
    """Lane ``index`` (a variable) of a struct vector."""
    return Subscript(base=FieldOf(base=vector, field="s"), indices=(Name(name=index),))
