"""Parallel patterns: loops over counters, scans and words, with every memory and transfer explicit.

This is the second contract beside the graph.  A front end that has decided where arrays live and
when they move writes a ``PatternProgram``; a backend prints it for a machine whose language has
these patterns, and turns it into units of that machine.  The patterns and memories are those of
Spatial as Stardust uses them [Stardust, sec. 4 and 6].

``interpret.py`` defines the meaning of a program, and ``verify.py`` the well-formed ones.
Expressions are those of ``t2s.core.expr`` over locals and parameters (the arguments and the
environment); everything with an effect is a statement that binds a local, so that the order is
explicit.

Two choices of the hardware are fixed here:

* A ``Reduce`` whose pattern takes ``p`` iterations at once combines each group of ``p`` values as
  the balanced tree of ``ReduceLanes``, and adds the groups to an accumulator in order.  Lanes that
  are missing, and the accumulator at first, are ``start_of``.  A scan takes iterations of one
  window of ``WINDOW_BITS`` bits at once.  So floats round alike everywhere.
* The iterations of a pattern are independent, but for ``Update``, which happens in the order of
  the iterations if it is ``ordered``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.core.ops import Op, neutral_element
from t2s.core.types import Type
from t2s.core.walk import Term

WORD_BITS = 32
"""Bits in a word of a bit vector."""

SCAN_BITS = 1 << 16
"""The most bits that a scan covers."""

WINDOW_BITS = 512
"""What a scanner looks at in one piece; bit vectors have a multiple of it."""

NOWHERE = -1
"""The position of a coordinate in an operand that does not have it."""


class MemoryKind(Enum):
    """The location of an array and its access; the value is the text for users."""

    DRAM = "dense DRAM"
    SPARSE_DRAM = "sparse DRAM"
    SRAM = "dense SRAM"
    SPARSE_SRAM = "sparse SRAM"
    PARTITIONED_SRAM = "partitioned sparse SRAM"
    FIFO = "FIFO"
    BITS = "bit vector"
    REGISTER = "register"

    @property
    def off_chip(self) -> bool:
        return self in (MemoryKind.DRAM, MemoryKind.SPARSE_DRAM)

    @property
    def sparse(self) -> bool:
        """Whether it takes addresses in any order, several at once, and updates."""
        return self in (
            MemoryKind.SPARSE_DRAM,
            MemoryKind.SPARSE_SRAM,
            MemoryKind.PARTITIONED_SRAM,
        )

    @property
    def queue(self) -> bool:
        """Whether its words are taken in order, each once."""
        return self in (MemoryKind.FIFO, MemoryKind.BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Term):
    """The content of a memory: an array of a level of a user's tensor, or ``vals``.

    ``level`` counts from 0, in the order of storage; it is ``None`` for values.
    """

    tensor: str
    array: str
    level: int | None = None

    def __str__(self) -> str:
        return f"{self.tensor}.{self.array}" + ("" if self.level is None else str(self.level))


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternMemory(Term):
    """An array of words of one type.

    Attributes
    ----------
    name: unique in the program.
    size: words, over arguments, environment and, for those declared inside of a pattern, locals.
        Of a queue it is the depth in vectors, which only time depends on.
    partitions: the units that it is spread over, of a partitioned sparse SRAM; the ports of a
        sparse DRAM.
    swizzled: addresses are spread over the partitions by a hash, for memories that are only read.
    alias: of a sparse DRAM the dense DRAM that it is another view of.
    holds, rule: what is in it, and why it is of this kind, for reports.
    """

    name: str
    kind: MemoryKind
    type: Type
    size: Expr
    partitions: int = 1
    swizzled: bool = False
    alias: str | None = None
    holds: Held | None = None
    rule: str = ""
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramArgument(Term):
    """A scalar that the host gives, read by ``Parameter`` expressions."""

    name: str
    type: Type
    holds: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternStatement(Term):
    """Base of statements; ``location`` is the user's line that made it."""

    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclareMemory(PatternStatement):
    """A memory on the chip, new for each iteration of the enclosing patterns, initially zero."""

    memory: PatternMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind(PatternStatement):
    """Bind the local ``target`` to a value."""

    target: str
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBlock(PatternStatement):
    """Words ``begin`` to ``begin + length - 1`` of a DRAM into an SRAM, from its word 0 on."""

    memory: str
    source: str
    begin: Expr
    length: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBlock(PatternStatement):
    """The first ``length`` words of an SRAM into a DRAM, from its word ``begin`` on."""

    target: str
    begin: Expr
    length: Expr
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStream(PatternStatement):
    """Words ``begin`` to ``begin + length - 1`` of a DRAM into a FIFO, as it takes them."""

    queue: str
    source: str
    begin: Expr
    length: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStream(PatternStatement):
    """``length`` words of a FIFO into a DRAM, from its word ``begin`` on."""

    target: str
    begin: Expr
    length: Expr
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildBits(PatternStatement):
    """Takes ``count`` coordinates, which increase, and puts the words of ``bits`` bits.

    Bit ``c % 32`` of word ``c // 32`` is set for each coordinate ``c``; all words are put, also for
    no coordinates.  ``bits`` is a multiple of ``WORD_BITS``.
    """

    coordinates: str
    count: Expr
    words: str
    bits: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Pop(PatternStatement):
    """Take the next word of a queue and bind it."""

    target: str
    queue: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(PatternStatement):
    """Put a word into a queue."""

    queue: str
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMemory(PatternStatement):
    """Bind a word of a memory; ``NOWHERE`` as the index of a sparse memory gives 0."""

    target: str
    memory: str
    index: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMemory(PatternStatement):
    """Set a word of a memory."""

    memory: str
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Update(PatternStatement):
    """Combine a value into a word of a sparse memory, and bind the new word.

    ``ordered`` updates happen in the order of the iterations, in whatever partition they are.
    """

    target: str
    memory: str
    index: Expr
    value: Expr
    operator: Op = Op.ADD
    ordered: bool = True


class JoinKind(Enum):
    """The bits at which a scan of two operands stops."""

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Term):
    """Iterations at a time: a number, or the environment variable that gives it."""

    factor: int = 1
    variable: str | None = None

    def __str__(self) -> str:
        return self.variable or str(self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountHeader(Term):
    """``extent`` iterations.  Binds the number of the iteration, from 0."""

    extent: Expr
    parallel: Parallel = Parallel()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanHeader(Term):
    """An iteration for each set bit of one bit vector, or of two joined, in increasing order.

    Takes ``bits`` bits of each operand.  Binds the coordinate and its position in the operand; of
    two operands the coordinate, the position in ``left``, the number of the output, and the
    position in ``right``.  A position is the number of set bits below, ``NOWHERE`` in an operand
    that does not have the bit.
    """

    bits: Expr
    left: str
    right: str | None = None
    join: JoinKind = JoinKind.AND
    parallel: Parallel = Parallel()


Header = CountHeader | ScanHeader


def binder_count(header: Header) -> int:
    """The number of locals that a header binds."""
    match header:
        case CountHeader():
            return 1
        case ScanHeader(right=None):
            return 2
        case ScanHeader():
            return 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreach(PatternStatement):
    """The body for each iteration of the header, whose locals are ``binders``."""

    header: Header
    binders: tuple[str, ...]
    body: tuple[PatternStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduce(PatternStatement):
    """The ``value`` of each iteration, combined into a register: neutral where there are none.

    Binds ``target`` to the result.
    """

    target: str
    header: Header
    binders: tuple[str, ...]
    body: tuple[PatternStatement, ...]
    value: Expr
    operator: Op = Op.ADD


def start_of(reduction: Reduce) -> int | float | bool | None:
    """The initial value of a reduction, also used for lanes without an iteration: 0 for sums."""
    if reduction.operator is Op.ADD:
        return 0
    return neutral_element(reduction.operator, reduction.value.type)


@dataclass(frozen=True, kw_only=True)
class PatternProgram(Term):
    """A whole program.

    Attributes
    ----------
    environment: the variables of the hardware by which factors are given.
    arguments: scalars of the host.
    memories: off chip, filled and read by the host.
    """

    name: str
    environment: tuple[tuple[str, int], ...] = ()
    arguments: tuple[ProgramArgument, ...] = ()
    memories: tuple[PatternMemory, ...] = ()
    body: tuple[PatternStatement, ...] = ()
    results: tuple[ProgramResult, ...] = ()
    location: SourceLocation | None = None

    def declared(self) -> Iterator[PatternMemory]:
        """All memories, those off chip first, in the order of the program."""
        yield from self.memories
        for statement in statements(self.body):
            if isinstance(statement, DeclareMemory):
                yield statement.memory


def statements(body: tuple[PatternStatement, ...]) -> Iterator[PatternStatement]:
    """All statements, those around before those inside."""
    for statement in body:
        yield statement
        if isinstance(statement, Foreach | Reduce):
            yield from statements(statement.body)


# The results of a program of patterns: the memories of their levels and values.
#
# A level of a result with the structure of an operand's is not computed: the host shares the
# operand's arrays, which saves their traffic.


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLevel(Term):
    """A level of a result that has the coordinates of an operand's level: the host shares them."""

    tensor: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullLevel(Term):
    """A compressed level of a result in which every fiber has all ``extent`` coordinates.

    ``extent`` is over the arguments of the program.
    """

    extent: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedLevel(Term):
    """A compressed level of a result whose arrays the program stores."""

    positions: str
    coordinates: str


ResultLevel = SharedLevel | FullLevel | ComputedLevel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult(Term):
    """A result tensor: the memory of its values, and its levels.

    ``levels`` are in the order of storage; ``None`` is a dense one.  A scalar has no levels and
    ``values`` names the local that is handed back.
    """

    tensor: str
    values: str
    levels: tuple[ResultLevel, ...] = ()
