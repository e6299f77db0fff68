"""The operators of triggered instructions: codes, operands, and who computes them.

Codes, operands and meanings are those of the public tools (profile A); the operators on floats
have codes there and no meaning.  Profile B gives them one: float64, each rounded once.
"""

from __future__ import annotations

from enum import Enum


class Opcode(Enum):
    """An operator, by its mnemonic."""

    NOP = "nop"
    MOV = "mov"
    ADD = "add"
    SUB = "sub"
    SL = "sl"
    ASR = "asr"
    LSR = "lsr"
    EQ = "eq"
    NE = "ne"
    SGT = "sgt"
    UGT = "ugt"
    SLT = "slt"
    ULT = "ult"
    SGE = "sge"
    UGE = "uge"
    SLE = "sle"
    ULE = "ule"
    BAND = "band"
    BNAND = "bnand"
    BOR = "bor"
    BNOR = "bnor"
    BXOR = "bxor"
    BXNOR = "bxnor"
    LAND = "land"
    LNAND = "lnand"
    LOR = "lor"
    LNOR = "lnor"
    LXOR = "lxor"
    LXNOR = "lxnor"
    GBY = "gby"
    SBY = "sby"
    CBY = "cby"
    MBY = "mby"
    GB = "gb"
    SB = "sb"
    CB = "cb"
    MB = "mb"
    CLZ = "clz"
    CTZ = "ctz"
    HALT = "halt"
    LSW = "lsw"
    SSW = "ssw"
    RLW = "rlw"
    OLW = "olw"
    SW = "sw"
    LMUL = "lmul"
    SHMUL = "shmul"
    UHMUL = "uhmul"
    MAC = "mac"
    ITF = "itf"
    UTF = "utf"
    FTI = "fti"
    FTU = "ftu"
    FEQ = "feq"
    FNE = "fne"
    FGT = "fgt"
    FLT = "flt"
    FLE = "fle"
    FGE = "fge"
    FADD = "fadd"
    FSUB = "fsub"
    FMUL = "fmul"
    FMAC = "fmac"

    @property
    def code(self) -> int:
        """The number in an encoded instruction."""
        return _CODES[self]


_CODES = {opcode: code for code, opcode in enumerate(Opcode)}

ON_FMA = frozenset({Opcode.FADD, Opcode.FSUB, Opcode.FMUL, Opcode.FMAC})
"""What only a cell with an FMA computes, in ``fma_latency`` cycles; all others take no time."""
