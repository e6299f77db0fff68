"""What a program of patterns takes of the chip: PCU, PMU, MC and shuffle networks.

The chip is that of papers/000 (section 8): 200 pattern compute units (PCU) of 6 stages and 16
lanes, 200 pattern memory units (PMU) of 65536 words, 80 memory controllers (MC) and 16 shuffle
networks.  The rules, with "copies" as the product of the factors of the patterns around that have
patterns or transfers inside; the factor of an innermost pattern is lanes of a vector:

* MC: one for each copy of a transfer, and one for each port of a sparse DRAM.
* Shuf: one for each partition of the partitioned sparse SRAMs that an outermost pattern reaches;
  the most of any of them, as they follow one another.  There are never more than 16, which more
  partitions share.
* PMU: one for each copy of a memory on the chip and each 65536 words, two if it is declared inside
  of a pattern (the next iteration fills one while this one reads the other); one for each
  partition, for each port of a sparse DRAM (requests under way), and for each copy of a queue.
  Bits that a loop takes word by word pass through without one.
* PCU: for each copy of a body one for six operations, each different one once, without the
  addresses of dense SRAMs, which memory units compute.  A body with patterns or transfers inside
  takes at least one.  It is cut where it waits for words of a sparse DRAM: operations on them are
  in other units.  A reduction adds the tree of its lanes and an accumulator, a stage each; results
  of copies are added by one more operation for each.  A block transfer takes one for its commands
  and one for its words, one more if it begins anywhere in a burst, and one more for the answers to
  stores.

MC and Shuf are exact for the published kernels, up to what docs/capstan.md says.  PMU and PCU are
estimates: nobody has published how the tools cut bodies into units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from t2s.core.expr import Apply, Const, Expr, Local, Select
from t2s.core.tables import Table
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
"""The units of the chip of papers/000, section 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipUse(Term):
    """How many units of a kind a program takes, and how many there are."""

    unit: ChipUnit
    used: int
    available: int

    @property
    def share(self) -> float:
        """The part of the units that is used: above 1 if there are too few."""
        return self.used / self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipResources(Term):
    """What a program takes of the chip, a row for each kind of unit; ``[unit]`` finds a row.

    ``outer_par`` is the environment's factor of outermost patterns.
    """

    program: str
    outer_par: int
    rows: tuple[ChipUse, ...]

    def __iter__(self) -> Iterator[ChipUse]:
        return iter(self.rows)

    def __getitem__(self, unit: ChipUnit | str) -> ChipUse:
        for row in self.rows:
            if unit in (row.unit, row.unit.value):
                return row
        raise KeyError(unit)

    @property
    def limiting(self) -> ChipUse:
        """The unit of which the greatest part is used."""
        return max(self.rows, key=lambda row: row.share)

    @property
    def fits(self) -> bool:
        """Whether the chip has all units."""
        return all(row.used <= row.available for row in self.rows)

    @property
    def table(self) -> Table:
        """Used and available units, the share in percent, and a mark at the limiting one."""
        limit = self.limiting.unit
        rows = tuple(
            (
                row.unit.value,
                str(row.used),
                str(row.available),
                f"{row.share:.0%}",
                _mark(row, row.unit is limit),
            )
            for row in self.rows
        )
        return Table(
            title=f"{self.program}: units of the chip, outer_par {self.outer_par}",
            headers=("unit", "used", "available", "share", ""),
            rows=rows,
            left=frozenset({0, 4}),
        )

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def _repr_html_(self) -> str:
        return self.table.html()


def _mark(row: ChipUse, limits: bool) -> str:
    if row.used > row.available:
        return "too many"
    return "limits" if limits else ""


def count_resources(program: PatternProgram) -> ChipResources:
    """The units that a program takes, by the rules above; it may take more than there are."""
    count = _UnitCount(program)
    used = {
        ChipUnit.PCU: count.compute(program.body, 1),
        ChipUnit.PMU: count.memories(),
        ChipUnit.MC: count.controllers(),
        ChipUnit.SHUFFLE: min(count.shuffles(), CHIP[ChipUnit.SHUFFLE]),
    }
    return ChipResources(
        program=program.name,
        outer_par=count.environment.get("bp", 1),
        rows=tuple(ChipUse(unit=unit, used=used[unit], available=CHIP[unit]) for unit in ChipUnit),
    )


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

    def controllers(self) -> int:
        """Memory controllers."""
        moved = sum(
            copies
            for statement, copies in self.placed(self.program.body)
            if isinstance(statement, Transfer)
        )
        return moved + self.ports()

    def ports(self) -> int:
        """Ports of sparse DRAMs."""
        return sum(
            memory.partitions
            for memory in self.program.memories
            if memory.kind is MemoryKind.SPARSE_DRAM
        )

    def shuffles(self) -> int:
        """Partitions behind the network that one outermost pattern reaches, at most."""
        return max(map(self._partitions, self.program.body), default=0)

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

    def memories(self) -> int:
        """Memory units."""
        outermost = set(map(id, self.program.body))
        return self.ports() + sum(
            copies * self.units(statement.memory, inside=id(statement) not in outermost)
            for statement, copies in self.placed(self.program.body)
            if isinstance(statement, DeclareMemory)
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

    def compute(self, body: tuple[PatternStatement, ...], copies: int) -> int:
        """Compute units of a body that is there a number of times, and of what is in it."""
        total = copies * _units_of(self.operations(body))
        for statement in body:
            total += self.parts(statement, copies)
        return total

    def parts(self, statement: PatternStatement, copies: int) -> int:
        """Compute units of a transfer or a pattern in a body."""
        match statement:
            case LoadBlock(begin=begin):
                return copies * (2 + _anywhere(begin))
            case StoreBlock(begin=begin):
                return copies * (3 + _anywhere(begin))
            case Foreach() | Reduce():
                return self.pattern(statement, copies)
        return 0

    def pattern(self, pattern: Pattern, copies: int) -> int:
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
        nested = sum(self.parts(statement, inside) for statement in pattern.body)
        return inside * needed + combined + nested

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
