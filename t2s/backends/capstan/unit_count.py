"""The units that each pattern, transfer and memory of a program takes: the rules of ``resources``.

In goes a program of patterns, out come ``OwnedUnits``: so many units of a kind for a memory, a
transfer or a body, by the user's names.  Their sums are the rows of ``ChipResources``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from t2s.core.expr import Apply, Const, Expr, Local, Select
from t2s.core.walk import Term, walk
from t2s.patterns.ir import (
    Bind,
    BuildBits,
    CountHeader,
    DeclareMemory,
    Foreach,
    LoadBlock,
    LoadStream,
    MemoryKind,
    Parallel,
    PatternMemory,
    PatternProgram,
    PatternStatement,
    Pop,
    Push,
    ReadMemory,
    Reduce,
    ScanHeader,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
    statements,
)

LANES = 16
STAGES = 6
UNIT_WORDS = 1 << 16
Transfer = LoadBlock | StoreBlock | LoadStream | StoreStream
Pattern = Foreach | Reduce


class ChipUnit(Enum):
    """A kind of unit of the chip; the value is what users read."""

    PCU = "PCU"
    PMU = "PMU"
    MC = "MC"
    SHUFFLE = "Shuf"


CHIP = {ChipUnit.PCU: 200, ChipUnit.PMU: 200, ChipUnit.MC: 80, ChipUnit.SHUFFLE: 16}
"""The units of the chip of [Stardust, sec. 8]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedUnits(Term):
    """Units of one kind and what they are for: an array, a transfer or the body of a pattern."""

    unit: ChipUnit
    owner: str
    used: int


def owned_units(program: PatternProgram) -> tuple[OwnedUnits, ...]:
    """All units, the kinds in the order of ``ChipUnit``, each in the order of the program.

    There may be more than the chip has, but of shuffle networks, which partitions share.
    """
    count = _UnitCount(program)
    kinds = {
        ChipUnit.PCU: count.compute(program.body, 1, "the program"),
        ChipUnit.PMU: count.memories(),
        ChipUnit.MC: count.controllers(),
        ChipUnit.SHUFFLE: count.networks(),
    }
    return tuple(
        OwnedUnits(unit=unit, owner=owner, used=used)
        for unit, owned in kinds.items()
        for owner, used in owned
        if used
    )


Owned = Iterator[tuple[str, int]]
"""So many units for an owner."""


class _UnitCount:
    """The counts of one program."""

    def __init__(self, program: PatternProgram) -> None:
        self.program = program
        self.environment = dict(program.environment)
        self.kinds = {memory.name: memory for memory in program.declared()}
        self.scanned = {
            queue
            for statement in statements(program.body)
            if isinstance(statement, Pattern) and isinstance(statement.header, ScanHeader)
            for queue in (statement.header.left, statement.header.right)
        }

    def factor(self, parallel: Parallel) -> int:
        """Iterations at a time."""
        if parallel.variable is None:
            return parallel.factor
        return self.environment[parallel.variable]

    def copies(self, pattern: Pattern) -> int:
        """How often the body of a pattern is there: an innermost one has 16 lanes in each."""
        factor = self.factor(pattern.header.parallel)
        return factor if _has_parts(pattern.body) else -(-factor // LANES)

    def placed(
        self, body: tuple[PatternStatement, ...], copies: int = 1
    ) -> Iterator[tuple[PatternStatement, int]]:
        """All statements with the number of their copies."""
        for statement in body:
            yield statement, copies
            if isinstance(statement, Pattern):
                yield from self.placed(statement.body, copies * self.copies(statement))

    def name(self, memory: str) -> str:
        """What a memory holds, by the user's name, or its own name."""
        return str(self.kinds[memory].holds or memory)

    def controllers(self) -> Owned:
        """Memory controllers: those of transfers, and ports of sparse DRAMs."""
        for statement, copies in self.placed(self.program.body):
            match statement:
                case LoadBlock(source=array) | LoadStream(source=array):
                    yield f"load {self.name(array)}", copies
                case StoreBlock(target=array) | StoreStream(target=array):
                    yield f"store {self.name(array)}", copies
        yield from self.ports()

    def ports(self) -> Owned:
        """Ports of sparse DRAMs."""
        for memory in self.program.memories:
            if memory.kind is MemoryKind.SPARSE_DRAM:
                yield f"ports of {self.name(memory.name)}", memory.partitions

    def networks(self) -> Owned:
        """Networks of the partitions that one outermost pattern reaches, at most."""
        reached = max(map(self._partitions, self.program.body), default=0)
        yield "partitions", min(reached, CHIP[ChipUnit.SHUFFLE])

    def _partitions(self, statement: PatternStatement) -> int:
        if not isinstance(statement, Pattern):
            return 0
        reached = {
            one.memory
            for one in statements(statement.body)
            if isinstance(one, ReadMemory | WriteMemory | Update)
        }
        return sum(
            self.kinds[name].partitions
            for name in reached
            if self.kinds[name].kind is MemoryKind.PARTITIONED_SRAM
        )

    def memories(self) -> Owned:
        """Memory units: those of arrays, and of requests under way at ports of sparse DRAMs."""
        outermost = set(map(id, self.program.body))
        for statement, copies in self.placed(self.program.body):
            if isinstance(statement, DeclareMemory):
                inside = id(statement) not in outermost
                used = copies * self.units(statement.memory, inside=inside)
                if not inside:
                    used *= self.duplicates(statement.memory)
                yield self.name(statement.memory.name), used
        yield from self.ports()

    def duplicates(self, memory: PatternMemory) -> int:
        """How often a memory is there that a transfer fills: once for each copy of a reader."""
        loaded = any(
            isinstance(one, LoadBlock) and one.memory == memory.name
            for one in statements(self.program.body)
        )
        if memory.kind is not MemoryKind.SPARSE_SRAM or not loaded:
            return 1
        return max(
            (
                copies
                for one, copies in self.placed(self.program.body)
                if isinstance(one, ReadMemory) and one.memory == memory.name
            ),
            default=1,
        )

    def units(self, memory: PatternMemory, *, inside: bool) -> int:
        """Memory units of one copy of a memory."""
        match memory.kind:
            case MemoryKind.FIFO:
                return 1
            case MemoryKind.BITS:
                return 1 if memory.name in self.scanned else 0
            case MemoryKind.REGISTER:
                return 0
        words = int(memory.size.value) if isinstance(memory.size, Const) else 0
        each = max(memory.partitions, -(-words // UNIT_WORDS))
        return each * (2 if inside else 1)

    def compute(self, body: tuple[PatternStatement, ...], copies: int, owner: str) -> Owned:
        """Compute units of a body that is there a number of times, and of what is in it."""
        yield owner, copies * _units_of(self.operations(body))
        for statement in body:
            yield from self.parts(statement, copies)

    def parts(self, statement: PatternStatement, copies: int) -> Owned:
        """Compute units of a transfer or a pattern in a body."""
        match statement:
            case LoadBlock(begin=begin, source=array):
                yield f"load {self.name(array)}", copies * (2 + _anywhere(begin))
            case StoreBlock(begin=begin, target=array):
                yield f"store {self.name(array)}", copies * (3 + _anywhere(begin))
            case Foreach() | Reduce():
                yield from self.pattern(statement, copies)

    def pattern(self, pattern: Pattern, copies: int) -> Owned:
        """Compute units of all copies of a pattern."""
        inside = copies * self.copies(pattern)
        value = pattern.value if isinstance(pattern, Reduce) else None
        stages = self.operations(pattern.body, value)
        combined = 0
        if isinstance(pattern, Reduce):
            lanes = 1 if _has_parts(pattern.body) else self.factor(pattern.header.parallel)
            last = max(stages, default=0)
            stages[last] += (min(lanes, LANES) - 1).bit_length() + 1
            combined = copies * -(-(self.copies(pattern) - 1) // STAGES)
        needed = max(_units_of(stages), 1 if _has_parts(pattern.body) else 0)
        kind = "reduce" if isinstance(pattern, Reduce) else "foreach"
        yield f"{kind} {pattern.binders[0]}", inside * needed + combined
        for statement in pattern.body:
            yield from self.parts(statement, inside)

    def operations(
        self, body: tuple[PatternStatement, ...], value: Expr | None = None
    ) -> Counter[int]:
        """The different operations of a body, not of patterns inside.

        They are counted by how many words of sparse DRAMs, one after the other, they wait for.
        """
        waits: dict[str, int] = {}
        found: dict[Expr, int] = {}

        def wait(root: Expr) -> int:
            behind = max(
                (waits.get(n.name, 0) for n in walk(root) if isinstance(n, Local)), default=0
            )
            for node in walk(root):
                if isinstance(node, Apply | Select) and node not in found:
                    locals = (n.name for n in walk(node) if isinstance(n, Local))
                    found[node] = max((waits.get(name, 0) for name in locals), default=0)
            return behind

        for statement in body:
            behind = max(map(wait, self.computed(statement)), default=0)
            match statement:
                case Bind(target=target):
                    waits[target] = behind
                case ReadMemory(target=target, memory=memory):
                    far = self.kinds[memory].kind is MemoryKind.SPARSE_DRAM
                    waits[target] = behind + (1 if far else 0)
        if value is not None:
            wait(value)
        return Counter(found.values())

    def computed(self, statement: PatternStatement) -> tuple[Expr, ...]:
        """The expressions of a statement that a compute unit has the values of."""
        match statement:
            case Bind(value=value) | Push(value=value):
                return (value,)
            case LoadBlock() | StoreBlock() | LoadStream() | StoreStream():
                return statement.begin, statement.length
            case BuildBits(count=count, bits=bits):
                return count, bits
            case ReadMemory(index=index):
                return (index,) if self.kinds[statement.memory].kind.sparse else ()
            case WriteMemory(index=index, value=value):
                return (index, value) if self.kinds[statement.memory].kind.sparse else (value,)
            case Update(index=index, value=value):
                return index, value
            case Foreach(header=header) | Reduce(header=header):
                return (header.extent if isinstance(header, CountHeader) else header.bits,)
            case DeclareMemory() | Pop():
                return ()
        raise TypeError(f"{statement.__class__.__name__} has no units")


def _units_of(operations: Mapping[int, int]) -> int:
    """Units of six stages for operations that wait differently."""
    return sum(-(-count // STAGES) for count in operations.values())


def _anywhere(begin: Expr) -> int:
    """1 if a transfer may begin inside of a burst."""
    return 0 if isinstance(begin, Const) and begin.value == 0 else 1


def _has_parts(body: tuple[PatternStatement, ...]) -> bool:
    """Whether patterns or transfers are in a body, which it starts."""
    return any(isinstance(one, Pattern | Transfer) for one in body)
