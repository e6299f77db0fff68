"""User names as C identifiers: recognisable, legal and unique."""

from __future__ import annotations

import re
from collections.abc import Iterable

from t2s.core.names import NameSupply

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
# Macros are written in capitals: NAN, NULL, M_PI, INT_MAX, CLK_LOCAL_MEM_FENCE and many more.
_MACRO = re.compile(r"(?=(?:[^A-Z]*[A-Z]){3})[A-Z][A-Z0-9_]+")


def identifier(name: str, *, variable: bool = False) -> str:
    """A C identifier that resembles ``name`` and means nothing to OpenCL.

    A ``variable`` of a kernel may have the name of a built-in function that is not called.

    >>> identifier("A feeder"), identifier("kernel"), identifier("2nd")
    ('A_feeder', 'kernel_', 'v2nd')
    """
    text = re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("_") or "v"
    if text[0].isdigit():
        text = f"v{text}"
    if _RESERVED_START.match(text):
        text = f"v_{text}"
    taken = text in _RESERVED or (text in _BUILT_IN and not variable)
    if taken or _RESERVED_END.fullmatch(text) or _MACRO.fullmatch(text):
        text = f"{text}_"
    return text


class Identifiers:
    """The identifiers of one scope; a kernel's scope does not reuse those of its file."""

    def __init__(self, taken: Iterable[str] = (), *, variables: bool = False) -> None:
        self._supply = NameSupply(taken)
        self._variables = variables

    def fresh(self, wanted: str) -> str:
        """A new identifier like ``wanted``; ``wanted_2`` and so on if it is taken."""
        return self._supply.fresh(identifier(wanted, variable=self._variables))
