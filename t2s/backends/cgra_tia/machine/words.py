"""What the operators compute: on words of 32 or 64 bits, and on words that are float64.

Words are bit patterns (non-negative integers). A token of profile B holds its word as an integer or
as a Python float with the same bits, whichever the last operator produced, so that chains of one
kind need no conversions.  Float arithmetic rounds once per operator; ``fmac`` once in total, or
twice on request.  Operators that no machine has are not here, nor are those of the scratchpad,
which are not functions of words.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType

from t2s.backends.cgra_tia.program import Opcode

WordMeaning = Callable[[int, int, int], int]
"""The result for the operands a, b and c; missing ones are 0."""


@cache
def word_meanings(width: int) -> Mapping[Opcode, WordMeaning]:
    """The meaning of each operator on words of ``width`` bits."""
    mask = (1 << width) - 1
    top = 1 << width - 1

    def signed(word: int) -> int:
        return word - (mask + 1) if word & top else word

    def bit(number: int) -> int:
        return 1 << number if number < width else 0

    def leading(a: int, b: int, c: int) -> int:
        index = a.bit_length() - 1 if a else width
        return index if b else (width - 1 - index) & mask

    def trailing(a: int, b: int, c: int) -> int:
        return (a & -a).bit_length() - 1 if a else width

    return MappingProxyType(
        {
            Opcode.NOP: lambda a, b, c: 0,
            Opcode.HALT: lambda a, b, c: 0,
            Opcode.MOV: lambda a, b, c: a,
            Opcode.ADD: lambda a, b, c: a + b & mask,
            Opcode.SUB: lambda a, b, c: a - b & mask,
            Opcode.SL: lambda a, b, c: a << b & mask if b < width else 0,
            Opcode.ASR: lambda a, b, c: signed(a) >> min(b, width) & mask,
            Opcode.LSR: lambda a, b, c: a >> b if b < width else 0,
            Opcode.EQ: lambda a, b, c: int(a == b),
            Opcode.NE: lambda a, b, c: int(a != b),
            Opcode.SGT: lambda a, b, c: int(signed(a) > signed(b)),
            Opcode.UGT: lambda a, b, c: int(a > b),
            Opcode.SLT: lambda a, b, c: int(signed(a) < signed(b)),
            Opcode.ULT: lambda a, b, c: int(a < b),
            Opcode.SGE: lambda a, b, c: int(signed(a) >= signed(b)),
            Opcode.UGE: lambda a, b, c: int(a >= b),
            Opcode.SLE: lambda a, b, c: int(signed(a) <= signed(b)),
            Opcode.ULE: lambda a, b, c: int(a <= b),
            Opcode.BAND: lambda a, b, c: a & b,
            Opcode.BOR: lambda a, b, c: a | b,
            Opcode.BXOR: lambda a, b, c: a ^ b,
            Opcode.LAND: lambda a, b, c: int(bool(a) and bool(b)),
            Opcode.LOR: lambda a, b, c: int(bool(a) or bool(b)),
            Opcode.LXOR: lambda a, b, c: int(bool(a) is not bool(b)),
            Opcode.GB: lambda a, b, c: a >> b & 1 if b < width else 0,
            Opcode.SB: lambda a, b, c: a | bit(b) if c else a & ~bit(b),
            Opcode.CB: lambda a, b, c: a & ~bit(b),
            Opcode.MB: lambda a, b, c: a | bit(b),
            Opcode.CLZ: leading,
            Opcode.CTZ: trailing,
            Opcode.LMUL: lambda a, b, c: a * b & mask,
            Opcode.SHMUL: lambda a, b, c: signed(a) * signed(b) >> width & mask,
            Opcode.UHMUL: lambda a, b, c: a * b >> width,
            Opcode.MAC: lambda a, b, c: a + b * c & mask,
        }
    )


SCRATCHPAD = frozenset({Opcode.LSW, Opcode.SSW})
"""Operators that read or write the scratchpad of a cell."""


Word = int | float
TokenMeaning = Callable[[Word, Word, Word], Word]

WIDTH = 64
MASK = (1 << WIDTH) - 1

_PATTERN = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")
_SPLIT = float((1 << 27) + 1)
_LEAST, _MOST = 2.0**-400, 2.0**400


def bits(word: Word) -> int:
    """The word as a bit pattern."""
    if type(word) is float:
        pattern: int = _PATTERN.unpack(_DOUBLE.pack(word))[0]
        return pattern
    return int(word)


def double(word: Word) -> float:
    """The float64 whose bits the word has."""
    if type(word) is float:
        return word
    value: float = _DOUBLE.unpack(_PATTERN.pack(word))[0]
    return value


def signed(word: Word) -> int:
    """The word as a two's complement number."""
    pattern = bits(word)
    return pattern - (1 << WIDTH) if pattern >> WIDTH - 1 else pattern


def fused(a: float, b: float, c: float) -> float:
    """``a * b + c``, rounded once, to nearest even."""
    product = a * b
    if c == 0.0 and product != 0.0 and math.isfinite(product):
        return product
    if not (_LEAST < abs(product) < _MOST and (_LEAST < abs(c) < _MOST)):
        return _fused_exactly(a, b, c)
    if not (_LEAST < abs(a) < _MOST and _LEAST < abs(b) < _MOST):
        return _fused_exactly(a, b, c)
    error = _product_error(a, b, product)
    if error == 0.0:
        return product + c
    low, lower = _sum(c, error)
    high, middle = _sum(product, low)
    tail, lost = _sum(middle, lower)
    if lost != 0.0 and not bits(tail) & 1:  # round to odd, so that the next rounding is right
        tail = math.nextafter(tail, math.copysign(math.inf, lost))
    return high + tail


def _sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum, and what rounding lost; exact."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _product_error(a: float, b: float, product: float) -> float:
    """What rounding lost of a product; exact."""
    scaled = a * _SPLIT
    high_a = scaled - (scaled - a)
    scaled = b * _SPLIT
    high_b = scaled - (scaled - b)
    low_a, low_b = a - high_a, b - high_b
    return low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)


def _fused_exactly(a: float, b: float, c: float) -> float:
    """The same for very large or small numbers, with exact fractions."""
    if not (math.isfinite(a) and math.isfinite(b)) or a == 0.0 or b == 0.0:
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return 0.0
    try:
        rounded = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    return rounded if rounded else math.copysign(0.0, exact)


def _whole(value: float) -> int:
    """The integer towards zero; NaN becomes 0, and too large values saturate."""
    if math.isnan(value):
        return 0
    least, most = -(1 << WIDTH - 1), (1 << WIDTH - 1) - 1
    return least if value <= least else most if value >= most else int(value)


def _unsigned(value: float) -> int:
    if math.isnan(value) or value <= 0:
        return 0
    return MASK if value >= MASK else int(value)


def _on_words(meaning: Callable[[int, int, int], int]) -> TokenMeaning:
    return lambda a, b, c: meaning(bits(a), bits(b), bits(c))


def _on_floats(meaning: Callable[[float, float, float], Word]) -> TokenMeaning:
    return lambda a, b, c: meaning(double(a), double(b), double(c))


def _fmac_once(a: Word, b: Word, c: Word) -> Word:
    if type(a) is float and type(b) is float and type(c) is float:
        return fused(b, c, a)
    return fused(double(b), double(c), double(a))


def _fmac_twice(a: Word, b: Word, c: Word) -> Word:
    return double(a) + double(b) * double(c)


@cache
def token_meanings(once: bool) -> Mapping[Opcode, TokenMeaning]:
    """The meaning of each operator of profile B; with ``once``, ``fmac`` rounds only once."""
    table = {opcode: _on_words(meaning) for opcode, meaning in word_meanings(WIDTH).items()}
    table |= {
        opcode: _on_floats(meaning)
        for opcode, meaning in (
            (Opcode.FTI, lambda a, b, c: _whole(a) & MASK),
            (Opcode.FTU, lambda a, b, c: _unsigned(a)),
            (Opcode.FEQ, lambda a, b, c: int(a == b)),
            (Opcode.FNE, lambda a, b, c: int(a != b)),
            (Opcode.FGT, lambda a, b, c: int(a > b)),
            (Opcode.FLT, lambda a, b, c: int(a < b)),
            (Opcode.FLE, lambda a, b, c: int(a <= b)),
            (Opcode.FGE, lambda a, b, c: int(a >= b)),
            (Opcode.FADD, lambda a, b, c: a + b),
            (Opcode.FSUB, lambda a, b, c: a - b),
            (Opcode.FMUL, lambda a, b, c: a * b),
        )
    }
    table[Opcode.FMAC] = _fmac_once if once else _fmac_twice
    table[Opcode.MOV] = lambda a, b, c: a
    table[Opcode.ITF] = lambda a, b, c: float(signed(a))
    table[Opcode.UTF] = lambda a, b, c: float(bits(a))
    return MappingProxyType(table)
