"""Triggered instructions: the instruction set, and programs of cells.

A cell has no program counter.  In every cycle it fires the first of its instructions, in the order
of the text, whose *trigger* holds: the predicates match, the input channels that it checks have a
token with the required tag, and every output channel that it writes has room.  A firing computes
one operation, takes tokens and sets predicates, all at once, based on the state at the start of the
cycle.

Predicates and output channels are sets of bits or tuples of numbers; bit 0 is ``%p0``.  Words are
bit patterns; a float64 is held as its pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPosition:
    """A position in a text, counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCheck:
    """An input channel needs a token whose tag is ``tag``, or (``equal=False``) is another one."""

    channel: int
    tag: int
    equal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Predicates that have to be one, those that have to be zero (bits), and channel checks."""

    ones: int = 0
    zeros: int = 0
    checks: tuple[TagCheck, ...] = ()

    def matches(self, predicates: int) -> bool:
        """Whether predicates (bits) match."""
        return not (self.ones & ~predicates or self.zeros & predicates)


@dataclass(frozen=True, slots=True)
class FromRegister:
    """``%r3``: the register's value at the start of the cycle."""

    number: int


@dataclass(frozen=True, slots=True)
class FromChannel:
    """``%i0``: the value of the head, without taking it."""

    number: int


@dataclass(frozen=True, slots=True)
class Immediate:
    """``$-5``: a bit pattern of the immediate's width, which is sign-extended to the word."""

    pattern: int


Source = FromRegister | FromChannel | Immediate


@dataclass(frozen=True, slots=True)
class ToRegister:
    """The result goes to ``%r3``."""

    number: int


@dataclass(frozen=True, slots=True)
class ToPredicate:
    """``%p2`` becomes 1 if the result is not zero."""

    number: int


@dataclass(frozen=True, slots=True)
class ToOutputs:
    """The result goes to one or more output channels (in increasing order) with one tag."""

    channels: tuple[int, ...]
    tag: int


Destination = ToRegister | ToPredicate | ToOutputs | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A trigger and what a firing does.

    ``takes`` are the input channels whose heads are taken; ``sets`` and ``clears`` are the
    predicates (bits) that become one and zero.  ``position`` and ``comment`` (lines above it in the
    text) have no effect, and instructions that differ only in them are equal.
    """

    trigger: Trigger
    opcode: Opcode
    destination: Destination = None
    sources: tuple[Source, ...] = ()
    takes: tuple[int, ...] = ()
    sets: int = 0
    clears: int = 0
    position: TextPosition | None = field(default=None, compare=False)
    comment: tuple[str, ...] = field(default=(), compare=False)

    @property
    def outputs(self) -> tuple[int, ...]:
        """The output channels that it writes."""
        return self.destination.channels if isinstance(self.destination, ToOutputs) else ()

    @property
    def line_text(self) -> str:
        """`` (line 12)``, for messages; empty for an instruction that does not come from a text."""
        return "" if self.position is None else f" (line {self.position.line})"

    @property
    def unchecked(self) -> tuple[int, ...]:
        """The input channels that it reads or takes from without a check in its trigger.

        The trigger does not wait for them: a firing that finds one of them empty is an error.
        """
        if not self.takes and not self.sources:
            return ()
        used = {source.number for source in self.sources if isinstance(source, FromChannel)}
        checked = {check.channel for check in self.trigger.checks}
        return tuple(sorted(used.union(self.takes) - checked))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgram:
    """The instructions of a cell in the order of the text, and initial values of its registers.

    ``initial`` has pairs of a register and a word (a bit pattern); all others start at zero.  The
    ``label`` is for readers only.
    """

    label: str = field(default="", compare=False)
    initial: tuple[tuple[int, int], ...] = ()
    instructions: tuple[Instruction, ...] = ()
    position: TextPosition | None = field(default=None, compare=False)


# The operators of triggered instructions.
#
# Codes, operands and meanings are those of the public tools (profile A), where operators on floats
# have codes but no meaning.  Profile B defines their meaning: float64, each rounded once.


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


# The prologue of a program: what a cell does before it reaches the state that it stays in.
#
# A cell that keeps a value in a register first fires an instruction that takes the value and sets a
# predicate, so that this instruction never fires again.  All such instructions, in sequence, are
# the *prologue*; those of the state that no instruction leaves are *steady*.

_Instructions = tuple[Instruction, ...]


def prologue_of(instructions: Sequence[Instruction]) -> tuple[_Instructions, _Instructions]:
    """The instructions of the prologue, and the steady ones.

    The latter are empty if no state is steady.
    """
    predicates, prologue = 0, list[Instruction]()
    while len(prologue) <= len(instructions):
        matching = tuple(i for i in instructions if i.trigger.matches(predicates))
        if not any(i.sets & ~predicates or i.clears & predicates for i in matching):
            return tuple(prologue), matching
        if len(matching) != 1:
            break
        predicates = predicates & ~matching[0].clears | matching[0].sets
        prologue.append(matching[0])
    return (), ()
