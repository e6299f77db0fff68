"""Types in OpenCL C, and users' names as C identifiers.

A scalar is a built-in type; a bool is ``bool`` in a variable and ``uchar`` in arrays, channels and
memory.  A vector of 2, 4, 8 or 16 lanes is a built-in vector; of any other number, a struct of an
array (``float_x10``).  Lanes of a bool vector are the bytes 0 and 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from math import prod

import numpy as np

from t2s.backends.opencl_fpga.kernel_ast import (
    CastTo,
    FieldOf,
    FilledInitializer,
    Struct,
    Subscript,
    TypedName,
    ZeroInitializer,
)
from t2s.backends.text.expressions import (
    Literal,
    Name,
    TargetExpression,
    number,
)
from t2s.backends.text.identifiers import MACRO, Identifiers, plain
from t2s.core.ops import C_FUNCTIONS
from t2s.core.types import Kind, Type
from t2s.graph.nodes import Register

NATIVE_LANES = (2, 4, 8, 16)
_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "long"}
_FLOATS = {32: "float", 64: "double"}


def unsupported_type(type: Type) -> str | None:
    """Why the backend does not support a type; ``None`` if it does."""
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
    """The suffix of helper functions: as in storage, but bools and bytes differ."""
    return storage_name(type).replace("uchar", "bool") if type.is_bool else storage_name(type)


def struct_of(type: Type) -> Struct:
    """The definition of a vector that OpenCL has no built-in type for."""
    field = TypedName(type=scalar_name(type), name="s", dimensions=(type.lanes,))
    return Struct(name=storage_name(type), fields=(field,))


def literal(value: int | float | bool, type: Type) -> TargetExpression:
    """A scalar constant of one lane of ``type``."""
    match type.kind:
        case Kind.BOOL:
            return Literal(text="true" if value else "false")
        case Kind.INT | Kind.UINT:
            return _integer(int(value), type)
        case _:
            return _float(float(value), type)


def _integer(value: int, type: Type) -> TargetExpression:
    suffix = ("u" if type.kind is Kind.UINT else "") + ("L" if type.bits == 64 else "")
    if type.kind is Kind.INT and value == -(2 ** (type.bits - 1)) and type.bits >= 32:
        return Literal(text="LONG_MIN" if type.bits == 64 else "INT_MIN")
    return Literal(text=f"{value}{suffix if type.bits >= 32 else ''}")


def _float(value: float, type: Type) -> TargetExpression:
    single = type.bits == 32
    if math.isnan(value):
        return Literal(text="NAN")
    rounded = np.float32(value) if single else np.float64(value)
    if math.isinf(rounded):
        sign = "-" if rounded < 0 else ""
        return Literal(text=f"{sign}INFINITY")
    return Literal(text=f"{rounded!s}{'f' if single else ''}")


def zero(type: Type) -> TargetExpression:
    """Zero of a scalar or of a built-in vector."""
    scalar = literal(0, type)
    if type.lanes == 1:
        return scalar
    if type.is_bool:
        scalar = number(0)
    return CastTo(type=storage_name(type), values=(scalar,))


def start_of(register: Register, dimensions: tuple[int, ...]) -> TargetExpression:
    """The initializer of a register file: of a variable, or of an array of these dimensions."""
    type = register.type
    if repr(register.initial) == "0":
        return ZeroInitializer() if dimensions or is_struct(type) else zero(type)
    scalar = literal(register.initial, type)
    count = prod(dimensions)
    if is_struct(type):
        return FilledInitializer(value=scalar, count=count * type.lanes)
    value = scalar if type.lanes == 1 else CastTo(type=storage_name(type), values=(scalar,))
    return FilledInitializer(value=value, count=count) if dimensions else value


def lane(vector: TargetExpression, index: int, type: Type) -> TargetExpression:
    """One lane of a vector: ``v.s[3]`` of a struct, ``v.s3`` of a built-in vector."""
    if is_struct(type):
        return Subscript(base=FieldOf(base=vector, field="s"), indices=(number(index),))
    return FieldOf(base=vector, field=f"s{index:x}")


def lane_at(vector: TargetExpression, index: str) -> TargetExpression:
    """Lane ``index`` (a variable) of a struct vector."""
    return Subscript(base=FieldOf(base=vector, field="s"), indices=(Name(name=index),))


_WORDS = """
bool char uchar short ushort int uint long ulong float double half size_t ptrdiff_t intptr_t
uintptr_t void unsigned signed auto break case const continue default do else enum extern for goto
if inline register restrict return sizeof static struct switch typedef union volatile while global
local constant private generic kernel channel pipe read_only write_only read_write uniform event_t
sampler_t complex imaginary quad main true false asm typeof
abs ceil fabs floor fma rsqrt sqrt mem_fence read_channel_intel write_channel_intel
"""
_FUNCTIONS = """
bitand acos asin atan atan2 cbrt clamp cos cross degrees distance dot erf exp2 expm1
fmax fmin fmod fract frexp half_exp hypot ilogb isinf isnan ldexp length log2 mad max min mix
modf normalize pow printf radians remainder rint round select shuffle sign sin smoothstep
step tan trunc any all barrier vec_step
"""
_RESERVED = frozenset((*_WORDS.split(), *C_FUNCTIONS.values()))
# Functions that no kernel calls: a variable may shadow them, another function may not.
_BUILT_IN = frozenset(_FUNCTIONS.split())
# Names of vectors, and of helper functions and vector types of this backend, end in a type; those
# of images, conversions, loads, queries and predefined macros have characteristic prefixes.
_RESERVED_END = re.compile(
    r"(.*_)?(u?(char|short|int|long)|float|double|half|bool|quad)(2|3|4|8|16|_x\d+)?"
)
_RESERVED_START = re.compile(r"image[123]d|vload|vstore|convert_|as_|get_|cl_")


def identifier(name: str, *, variable: bool = False) -> str:
    """A C identifier that resembles ``name`` and has no meaning in OpenCL.

    A ``variable`` of a kernel may have the name of a built-in function that no kernel calls.

    >>> identifier("A feeder"), identifier("kernel"), identifier("2nd")
    ('A_feeder', 'kernel_', 'v2nd')
    """
    text = plain(name)
    if _RESERVED_START.match(text):
        text = f"v_{text}"
    taken = text in _RESERVED or (text in _BUILT_IN and not variable)
    if taken or _RESERVED_END.fullmatch(text) or MACRO.fullmatch(text):
        text = f"{text}_"
    return text


def file_identifiers() -> Identifiers:
    """The identifiers of a file: kernels, channels, types and functions."""
    return Identifiers(identifier)


def variable_name(name: str) -> str:
    """The identifier of a variable of a kernel."""
    return identifier(name, variable=True)


def variables(taken: Iterable[str] = ()) -> Identifiers:
    """The identifiers of a kernel, distinct from those of its file."""
    return Identifiers(variable_name, taken)
