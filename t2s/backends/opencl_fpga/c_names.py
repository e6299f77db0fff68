"""User names as C identifiers: recognisable, legal and unique."""

from __future__ import annotations

import re
from collections.abc import Iterable

from t2s.backends.text.identifiers import MACRO, Identifiers, plain

_WORDS = """
bool char uchar short ushort int uint long ulong float double half size_t ptrdiff_t intptr_t
uintptr_t void unsigned signed auto break case const continue default do else enum extern for goto
if inline register restrict return sizeof static struct switch typedef union volatile while global
local constant private generic kernel channel pipe read_only write_only read_write uniform event_t
sampler_t complex imaginary quad main true false asm typeof
abs ceil exp fabs floor log rsqrt sqrt tanh mem_fence read_channel_intel write_channel_intel
"""
_FUNCTIONS = """
bitand acos asin atan atan2 cbrt clamp cos cross degrees distance dot erf exp2 expm1 fma
fmax fmin fmod fract frexp half_exp hypot ilogb isinf isnan ldexp length log2 mad max min mix
modf normalize pow printf radians remainder rint round select shuffle sign sin smoothstep
step tan trunc any all barrier vec_step
"""
_RESERVED = frozenset(_WORDS.split())
# Functions that no kernel calls: a variable may hide them, another function may not.
_BUILT_IN = frozenset(_FUNCTIONS.split())
# Vectors, and every helper function and vector type of this backend, end in the name of a type;
# images, conversions, loads, queries and predefined macros begin in a way of their own.
_RESERVED_END = re.compile(
    r"(.*_)?(u?(char|short|int|long)|float|double|half|bool|quad)(2|3|4|8|16|_x\d+)?"
)
_RESERVED_START = re.compile(r"image[123]d|vload|vstore|convert_|as_|get_|cl_")


def identifier(name: str, *, variable: bool = False) -> str:
    """A C identifier that resembles ``name`` and means nothing to OpenCL.

    A ``variable`` of a kernel may have the name of a built-in function that is not called.

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
    """The identifiers of a kernel, which does not use those of its file again."""
    return Identifiers(variable_name, taken)
