"""Writes statements of patterns: names, memories, transfers, and small arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum

from t2s.core.expr import Const, Expr, Local, Parameter, Select, const, simplify
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.types import INT32, Type, UInt
from t2s.core.walk import Term
from t2s.patterns.ir import (
    NOWHERE,
    WORD_BITS,
    Bind,
    DeclareMemory,
    Foreach,
    Held,
    MemoryKind,
    PatternMemory,
    PatternStatement,
    Pop,
    ProgramArgument,
    ReadMemory,
    Reduce,
)

WORD = UInt(WORD_BITS)
ZERO, ONE = const(0), const(1)
QUEUE_DEPTH = 16
"""Vectors that a queue holds."""
BITS_DEPTH = 4096
"""Words that a queue of bits holds: a scan of 65536 bits and as many waiting."""


def add(left: Expr, right: Expr) -> Expr:
    """The sum of two indices."""
    return simplify(left + right)


def times(left: Expr, right: Expr) -> Expr:
    """The product of two indices."""
    return simplify(left * right)


def is_there(position: Expr) -> Expr:
    """Whether a position is valid."""
    return position >= ZERO


def where_there(position: Expr, index: Expr) -> Expr:
    """An index guarded by the validity of a position."""
    return Select(condition=is_there(position), if_true=index, if_false=const(NOWHERE), type=INT32)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtentOf(Term):
    """The extent of a variable."""

    variable: str

    def __str__(self) -> str:
        return f"extent of {self.variable}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BitsOf(Term):
    """The bits of a vector over the coordinates of a variable: a multiple of ``WINDOW_BITS``."""

    variable: str

    def __str__(self) -> str:
        return f"bits of a vector over {self.variable}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesOf(Term):
    """The entries of a compressed level of an operand."""

    tensor: str
    level: int

    def __str__(self) -> str:
        return f"entries of {self.tensor}.{self.level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarOf(Term):
    """The value of an operand without variables."""

    tensor: str

    def __str__(self) -> str:
        return f"value of {self.tensor}"


ArgumentMeaning = ExtentOf | BitsOf | EntriesOf | ScalarOf
"""What a scalar of the host is."""


@dataclass
class PatternEmitter:
    """The program so far; statements are appended to ``body``, which scopes replace."""

    partitions: int
    lanes: int
    names: NameSupply
    location: SourceLocation | None
    meanings: dict[ArgumentMeaning, ProgramArgument] = field(default_factory=dict)
    far: dict[str, PatternMemory] = field(default_factory=dict)
    near: dict[str, PatternMemory] = field(default_factory=dict)
    far_names: dict[tuple[object, ...], str] = field(default_factory=dict)
    head: list[PatternStatement] = field(default_factory=list)
    body: list[PatternStatement] = field(default_factory=list)

    def put(self, *statements: PatternStatement) -> None:
        """Append statements to the body."""
        self.body += statements

    @contextmanager
    def scope(self) -> Iterator[list[PatternStatement]]:
        """A new body for the statements inside the block."""
        around, self.body = self.body, []
        try:
            yield self.body
        finally:
            self.body = around

    def argument(self, name: str, type: Type, meaning: ArgumentMeaning) -> Parameter:
        """A scalar argument from the host, one for each meaning."""
        if meaning not in self.meanings:
            argument = ProgramArgument(name=self.names.fresh(name), type=type, holds=str(meaning))
            self.meanings[meaning] = argument
        return Parameter(name=self.meanings[meaning].name, type=type)

    def extent(self, variable: str) -> Expr:
        """The extent of a variable."""
        return self.argument(f"{variable}_size", INT32, ExtentOf(variable=variable))

    def bits(self, variable: str) -> Expr:
        """Bits of the vectors of its coordinates: the extent, rounded up to vectors of words."""
        return self.argument(f"{variable}_bits", INT32, BitsOf(variable=variable))

    def entries(self, tensor: str, level: int) -> Expr:
        """Entries of a compressed level of an operand."""
        meaning = EntriesOf(tensor=tensor, level=level)
        return self.argument(f"{tensor}_entries{level}", INT32, meaning)

    def far_memory(self, held: Held, type: Type, size: Expr) -> str:
        """The DRAM of an array, which the host fills or reads."""
        key = ("far", held)
        if key not in self.far_names:
            name = self.names.fresh(_named(held, "host"))
            self.far_names[key] = name
            self.far[name] = PatternMemory(
                name=name,
                kind=MemoryKind.DRAM,
                type=type,
                size=size,
                holds=held,
                rule=PinningRule.OFF_CHIP.value,
                location=self.location,
            )
        return self.far_names[key]

    def view(self, held: Held, type: Type, size: Expr, rule: PinningRule) -> str:
        """The DRAM of an array, accessed word by word."""
        key = ("view", held)
        if key not in self.far_names:
            alias = self.far_memory(held, type, size)
            name = self.names.fresh(_named(held, "sparse"))
            self.far_names[key] = name
            self.far[name] = PatternMemory(
                name=name,
                kind=MemoryKind.SPARSE_DRAM,
                type=type,
                size=size,
                partitions=self.partitions,
                alias=alias,
                holds=held,
                rule=rule.value,
                location=self.location,
            )
        return self.far_names[key]

    def chip(
        self,
        prefix: str,
        kind: MemoryKind,
        type: Type,
        size: Expr,
        rule: PinningRule,
        held: Held | None = None,
        *,
        swizzled: bool = False,
        whole: bool = False,
    ) -> str:
        """Declare a memory on chip here; ``whole``: at the beginning of the program."""
        name = self.names.fresh(prefix)
        spread = kind is MemoryKind.PARTITIONED_SRAM
        memory = PatternMemory(
            name=name,
            kind=kind,
            type=type,
            size=size,
            partitions=self.partitions if spread else 1,
            swizzled=swizzled and spread,
            holds=held,
            rule=rule.value,
            location=self.location,
        )
        self.near[name] = memory
        statement = DeclareMemory(memory=memory)
        (self.head if whole else self.body).append(statement)
        return name

    def held_by(self, name: str) -> Held | None:
        """The content of a memory on chip."""
        return self.near[name].holds

    def queue(self, prefix: str, type: Type, rule: PinningRule, held: Held | None = None) -> str:
        """Declare a FIFO."""
        return self.chip(prefix, MemoryKind.FIFO, type, const(QUEUE_DEPTH), rule, held)

    def bit_queue(self, prefix: str, held: Held | None) -> str:
        """Declare a queue of the words of a bit vector."""
        kind, rule = MemoryKind.BITS, PinningRule.BITS
        return self.chip(prefix, kind, WORD, const(BITS_DEPTH), rule, held)

    def local(self, prefix: str, type: Type = INT32) -> Local:
        """A new local, which the caller binds."""
        return Local(name=self.names.fresh(prefix), type=type)

    def bind(self, prefix: str, value: Expr) -> Expr:
        """A value under a name; constants and names stay what they are."""
        if isinstance(value, Local | Parameter | Const):
            return value
        target = self.local(prefix, value.type)
        self.put(Bind(target=target.name, value=value))
        return target

    def read(self, prefix: str, memory: str, index: Expr, type: Type = INT32) -> Local:
        """Read a word of a memory."""
        target = self.local(prefix, type)
        self.put(ReadMemory(target=target.name, memory=memory, index=index))
        return target

    def pop(self, local: Local, queue: str) -> Pop:
        """The statement that takes the next word of a queue."""
        return Pop(target=local.name, queue=queue)


def located(
    body: Sequence[PatternStatement], location: SourceLocation | None
) -> tuple[PatternStatement, ...]:
    """The statements with the user's line, where they do not have one of their own."""

    def visit(statement: PatternStatement) -> PatternStatement:
        if isinstance(statement, Foreach | Reduce):
            statement = replace(statement, body=located(statement.body, location))
        return replace(statement, location=statement.location or location)

    return tuple(map(visit, body))


def _named(held: Held, last: str) -> str:
    level = "" if held.level is None else str(held.level)
    return f"{held.tensor}_{held.array}{level}_{last}"


# The memory of an array, and the rule that chose it [Stardust, sec. 6.2].
#
# The rules are those of the paper, from the most to the least restricted memory, with exact
# conditions.  Users see the ``PinningRule`` of each memory.

CAPACITY = 1 << 16
"""Words of one memory unit: 256 KiB of 32-bit words."""


class PinningRule(Enum):
    """The reason for the memory of an array."""

    OFF_CHIP = "0: off chip, filled or read by the host"
    AT_COORDINATES = "1: found at coordinates, and too large to be brought on chip"
    JOINED_VALUES = "1: values of a level that is joined, found by the scanner's positions"
    SEGMENTS_AT_COORDINATES = "1: segments below a level that is found at coordinates"
    BELOW_COMPRESSED = "1: dense levels below a compressed one, found at positions"
    ALLOCATED = "1: a result whose places are allocated while it is written"
    SCATTERED = "1: a result that is written at coordinates, or added up in memory"
    SEGMENTS = "2: segments that counters walk"
    COUNTED = "2: a dense tensor that counters address"
    TILE = "2: a part of a dense tensor, brought on chip before its loop"
    STAGED = "2: a dense result, stored behind its loop"
    VECTOR = "3: a dense vector that is brought on chip and read at any address"
    WORKSPACE = "3: a workspace on chip that is read or written at any address"
    ALLOCATOR = "3: the number of entries so far"
    BITS = "4: coordinates of a level that is joined, as bits"
    POSITIONS_AMONG_ALL = "3: where the visited bits of an operand are among all of its bits"
    POSITIONS = "5: positions of an operand, one for each coordinate that several join to"
    IN_ORDER = "5: taken in order, each word once"
    RESULT_IN_ORDER = "5: values of a result in the order of an operand's entries"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedMemory(Term):
    """A kind of memory and the rule that chose it."""

    kind: MemoryKind
    rule: PinningRule


def pin_dense(order: int, *, irregular: bool, partitions: int) -> PinnedMemory:
    """A dense operand off chip; ``irregular``: some of its coordinates are those of entries."""
    if order == 1:
        return PinnedMemory(kind=shared_memory(partitions), rule=PinningRule.VECTOR)
    if irregular:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.AT_COORDINATES)
    return PinnedMemory(kind=MemoryKind.SRAM, rule=PinningRule.COUNTED)


def pin_positions(*, irregular: bool) -> PinnedMemory:
    """The segments of a compressed level."""
    if irregular:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.SEGMENTS_AT_COORDINATES)
    return PinnedMemory(kind=MemoryKind.SRAM, rule=PinningRule.SEGMENTS)


def pin_values(*, joined: bool, ends_compressed: bool) -> PinnedMemory:
    """The values of a compressed operand off chip."""
    if joined:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.JOINED_VALUES)
    if not ends_compressed:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.BELOW_COMPRESSED)
    return PinnedMemory(kind=MemoryKind.FIFO, rule=PinningRule.IN_ORDER)


def shared_memory(partitions: int) -> MemoryKind:
    """The sparse memory on chip that all partitions of a program reach."""
    return MemoryKind.PARTITIONED_SRAM if partitions > 1 else MemoryKind.SPARSE_SRAM
