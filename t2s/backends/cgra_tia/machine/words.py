"""What the operators on words compute, for a width of 32 or 64 bits.

Goes in: words as bit patterns (whole numbers from 0).  Comes out: such a word.  Operators that no
machine has, and those of the scratchpad, which are no functions of words, are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from t2s.backends.cgra_tia.opcodes import Opcode

WordMeaning = Callable[[int, int, int], int]
"""The result for the operands a, b and c; missing ones are 0."""


@cache
def word_meanings(width: int) -> Mapping[Opcode, WordMeaning]:
    """The meaning of each operator on words of so many bits."""
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
