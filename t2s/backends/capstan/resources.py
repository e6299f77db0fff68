"""Resource counts of a program of patterns: PCU, PMU, MC and shuffle networks.

The chip is that of [Stardust, sec. 8]: 200 pattern compute units (PCU) of 6 stages and 16
lanes, 200 pattern memory units (PMU) of 65536 words, 80 memory controllers (MC) and 16 shuffle
networks.  In the rules, "copies" is the product of the parallelization factors of the enclosing
patterns that contain patterns or transfers; the factor of an innermost pattern is vector lanes:

* MC: one for each copy of a transfer, and one for each port of a sparse DRAM.
* Shuf: one for each partition of the partitioned sparse SRAMs that an outermost pattern accesses;
  the maximum over outermost patterns, since these run one after the other.  Never more than 16,
  which more partitions share.
* PMU: one for each copy of an on-chip memory and each 65536 words, two if it is declared inside
  a pattern (the next iteration fills one while this one reads the other); one for each
  partition, for each port of a sparse DRAM (outstanding requests), and for each copy of a queue.
  Bit vectors that a loop reads word by word stream through without one.
  * PCU: for each copy of a body, one for every six distinct operations, without the addresses of
    dense SRAMs, which memory units compute.  A body that contains patterns or transfers takes at
    least one.  A body is split where it waits for words of a sparse DRAM: operations on them are in
    other units.  A reduction takes a stage for each level of the tree over its lanes and one for
    the accumulator; the results of copies take one more operation each.  A block transfer takes one
    for its commands and one for its words, one more if it may begin inside a burst, and one more
    for the acknowledgments of stores.

MC and Shuf match the published kernels, with the exceptions in docs/capstan.md.  PMU and PCU are
estimates: how the tools split bodies into units is not published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from t2s.core.display import NotebookCard, NotebookDisplay, Table
from t2s.core.expr import Apply, Const, Expr, Local, Select
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipUse(Term):
    """How many units of a kind a program uses, and how many the chip has."""

    unit: ChipUnit
    used: int
    available: int

    @property
    def share(self) -> float:
        """The fraction of the units that is used; above 1 if the chip has too few."""
        return self.used / self.available


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipResources(Term, NotebookDisplay):
    """The resources that a program uses, a row for each kind of unit; ``[unit]`` finds a row.

    ``outer_par`` is the parallelization factor of outermost patterns; ``owned`` attributes the
    units of a row to arrays, transfers and patterns.
    """

    program: str
    outer_par: int
    rows: tuple[ChipUse, ...]
    owned: tuple[OwnedUnits, ...]

    def __iter__(self) -> Iterator[ChipUse]:
        return iter(self.rows)

    def __getitem__(self, unit: ChipUnit | str) -> ChipUse:
        for row in self.rows:
            if unit in (row.unit, row.unit.value):
                return row
        raise KeyError(unit)

    @property
    def limiting(self) -> ChipUse:
        """The kind of unit with the largest share in use."""
        return max(self.rows, key=lambda row: row.share)

    @property
    def fits(self) -> bool:
        """Whether the chip has enough units."""
        return all(row.used <= row.available for row in self.rows)

    @property
    def table(self) -> Table:
        """Used and available units, the share in percent, and a mark at the limiting kind."""
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

    @property
    def owned_table(self) -> Table:
        """What each unit is used for: an array, a transfer, or the body of a pattern."""
        rows = tuple(
            (
                share.owner,
                share.unit.value,
                f"{share.used:,}",
                f"{share.used / CHIP[share.unit]:.1%}",
            )
            for share in self.owned
        )
        return Table(
            title=f"{self.program}: what the units are for",
            headers=("of", "unit", "used", "share"),
            rows=rows,
            left=frozenset({0, 1}),
        )

    def picture(self) -> SvgPicture:
        """The chip, with units colored by what they are used for; their places are schematic."""
        return chip_picture(self.program, self.owned)

    def __str__(self) -> str:
        return self.table.text()

    def __rich__(self) -> Any:
        return self.table.rich()

    def _card(self) -> NotebookCard:
        """The table of used and available units, and the picture."""
        return NotebookCard(title=f"{self.program} on the chip", parts=(self.table, self.picture()))


def _mark(row: ChipUse, limits: bool) -> str:
    if row.used > row.available:
        return "too many"
    return "limits" if limits else ""


def count_resources(program: PatternProgram) -> ChipResources:
    """The units that a program uses, by the rules above; may exceed what the chip has."""
    owned = owned_units(program)
    used = Counter[ChipUnit]()
    for units in owned:
        used[units.unit] += units.used
    return ChipResources(
        program=program.name,
        outer_par=dict(program.environment).get("bp", 1),
        rows=tuple(ChipUse(unit=unit, used=used[unit], available=CHIP[unit]) for unit in ChipUnit),
        owned=owned,
    )


# The units that each pattern, transfer and memory of a program uses, by the rules above.
#
# ``OwnedUnits`` attribute a number of units of a kind to a memory, a transfer or a body, by the
# user's names.  Their sums are the rows of ``ChipResources``.

LANES = 16
STAGES = 6
UNIT_WORDS = 1 << 16
Transfer = LoadBlock | StoreBlock | LoadStream | StoreStream
Pattern = Foreach | Reduce


class ChipUnit(Enum):
    """A kind of unit of the chip; the value is its name in tables."""

    PCU = "PCU"
    PMU = "PMU"
    MC = "MC"
    SHUFFLE = "Shuf"


CHIP = {ChipUnit.PCU: 200, ChipUnit.PMU: 200, ChipUnit.MC: 80, ChipUnit.SHUFFLE: 16}
"""The units of the chip of [Stardust, sec. 8]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedUnits(Term):
    """Units of one kind and what they are used for: an array, a transfer or the body of a
    pattern.
    """

    unit: ChipUnit
    owner: str
    used: int


def owned_units(program: PatternProgram) -> tuple[OwnedUnits, ...]:
    """All units, the kinds in the order of ``ChipUnit``, each in the order of the program.

    The sum may exceed what the chip has, except for shuffle networks, which partitions share.
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
"""The owner and its number of units."""


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
        """The parallelization factor."""
        if parallel.variable is None:
            return parallel.factor
        return self.environment[parallel.variable]

    def copies(self, pattern: Pattern) -> int:
        """The copies of a pattern's body; each copy of an innermost body covers 16 lanes."""
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
        """The user's name for what a memory holds, or the memory's own name."""
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
        """Shuffle networks: the maximum over outermost patterns of the partitions that each
        accesses.
        """
        reached = max(map(self._partitions, self.program.body), default=0)
        yield "partitions", min(reached, CHIP[ChipUnit.SHUFFLE])

    def _partitions(self, statement: PatternStatement) -> int:
        if not isinstance(statement, Pattern):
            return 0
        reached = {
            inner.memory
            for inner in statements(statement.body)
            if isinstance(inner, ReadMemory | WriteMemory | Update)
        }
        return sum(
            self.kinds[name].partitions
            for name in reached
            if self.kinds[name].kind is MemoryKind.PARTITIONED_SRAM
        )

    def memories(self) -> Owned:
        """Memory units: for arrays, and for outstanding requests at ports of sparse DRAMs."""
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
        """The copies of a memory that a transfer fills: one for each copy of a reader."""
        loaded = any(
            isinstance(statement, LoadBlock) and statement.memory == memory.name
            for statement in statements(self.program.body)
        )
        if memory.kind is not MemoryKind.SPARSE_SRAM or not loaded:
            return 1
        return max(
            (
                copies
                for reader, copies in self.placed(self.program.body)
                if isinstance(reader, ReadMemory) and reader.memory == memory.name
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
        """Compute units of a body with a number of copies, and of everything inside."""
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
        """The distinct operations of a body, without those of inner patterns.

        They are grouped by the length of the chain of sparse DRAM reads that they wait for.
        """
        waits: dict[str, int] = {}
        stages: dict[Expr, int] = {}

        def wait(root: Expr) -> int:
            behind = max(
                (waits.get(n.name, 0) for n in walk(root) if isinstance(n, Local)), default=0
            )
            for node in walk(root):
                if isinstance(node, Apply | Select) and node not in stages:
                    locals = (n.name for n in walk(node) if isinstance(n, Local))
                    stages[node] = max((waits.get(name, 0) for name in locals), default=0)
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
        return Counter(stages.values())

    def computed(self, statement: PatternStatement) -> tuple[Expr, ...]:
        """The expressions of a statement that compute units evaluate."""
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
    """Units of six stages, with operations of different groups in different units."""
    return sum(-(-count // STAGES) for count in operations.values())


def _anywhere(begin: Expr) -> int:
    """1 if a transfer may begin inside of a burst."""
    return 0 if isinstance(begin, Const) and begin.value == 0 else 1


def _has_parts(body: tuple[PatternStatement, ...]) -> bool:
    """Whether a body contains patterns or transfers, which it starts."""
    return any(isinstance(statement, Pattern | Transfer) for statement in body)


# The chip as a picture: compute and memory units in a checkerboard, controllers around it.
#
# The units of a pattern, a memory or a transfer have one color.  The placement is schematic: each
# owner takes the next free units of its kind along serpentine lines; the tools of the real chip
# place them otherwise.  The shuffle networks are a column beside the grid.

_SIDE = 20
"""Tiles in a row and in a column: half of them compute, half of them store."""

_PITCH, _TILE = 16, 13
_LEFT, _TOP = 34, 40
_LEGEND = _LEFT + (_SIDE + 5) * _PITCH
_LINE = 16


def chip_picture(program: str, owned: tuple[OwnedUnits, ...]) -> SvgPicture:
    """The units that a program uses, colored by owner; equal programs give the same bytes.

    Units that the chip does not have are not drawn; the line on top counts them.
    """
    owners = tuple(dict.fromkeys(units.owner for units in owned))
    colors = {owner: PALETTE[n % len(PALETTE)] for n, owner in enumerate(owners)}
    drawn = [
        _unit(unit, place, owner, colors)
        for unit in ChipUnit
        for place, owner in _placed(unit, owned)
    ]
    legend = _legend(owned, colors)
    height = max(_TOP + (_SIDE + 3) * _PITCH, _TOP + _LINE * (len(owners) + 2))
    used = {unit: sum(units.used for units in owned if units.unit is unit) for unit in ChipUnit}
    summary = ", ".join(f"{used[unit]} of {CHIP[unit]} {unit.value}" for unit in ChipUnit)
    return picture(
        _LEGEND + 300,
        height,
        element("text", text=f"{program}: {summary}", x=_LEFT - _PITCH, y=16),
        *drawn,
        *legend,
        title=f"units of the chip for {program}",
        description=f"{summary}. Squares compute, circles are memories, bars at the border memory "
        "controllers, the column at the right shuffle networks. Their places are schematic.",
    )


def _placed(unit: ChipUnit, owned: tuple[OwnedUnits, ...]) -> Iterator[tuple[int, str | None]]:
    """The numbers and owners of the units of a kind, in program order."""
    owners = [units.owner for units in owned if units.unit is unit for _ in range(units.used)]
    for place in range(CHIP[unit]):
        yield place, owners[place] if place < len(owners) else None


def _unit(unit: ChipUnit, place: int, owner: str | None, colors: dict[str, str]) -> str:
    """One unit at its place, in the color of its owner."""
    fill = "none" if owner is None else colors[owner]
    title = hover(f"{unit.value} {place}: {owner or 'free'}")
    look: dict[str, Any] = {"fill": fill, "stroke": "currentColor", "stroke_opacity": 0.4}
    match unit:
        case ChipUnit.PCU | ChipUnit.PMU:
            x, y = _tile(place, unit is ChipUnit.PMU)
            if unit is ChipUnit.PCU:
                return element("rect", title, x=x, y=y, width=_TILE, height=_TILE, **look)
            half = _TILE / 2
            return element("circle", title, cx=x + half, cy=y + half, r=half, **look)
        case ChipUnit.MC:
            x, y, across = _border(place)
            width, height = (_TILE, 7) if across else (7, _TILE)
            return element("rect", title, x=x, y=y, width=width, height=height, **look)
        case ChipUnit.SHUFFLE:
            x, y = _LEFT + (_SIDE + 2) * _PITCH, _TOP + place * _PITCH
            return element("rect", title, x=x, y=y, width=2 * _TILE, height=_TILE, rx=5, **look)


def _tile(number: int, memory: bool) -> tuple[int, int]:
    """The corner of a compute or memory unit: serpentine lines over the squares of its color."""
    row, along = divmod(number, _SIDE // 2)
    if row % 2:
        along = _SIDE // 2 - 1 - along
    column = 2 * along + (row + memory) % 2
    return _LEFT + column * _PITCH, _TOP + row * _PITCH


def _border(number: int) -> tuple[int, int, bool]:
    """The corner of a memory controller in the ring, clockwise, and whether it is horizontal."""
    side, along = divmod(number, _SIDE)
    near, far = -10, _SIDE * _PITCH
    step = along * _PITCH
    back = (_SIDE - 1) * _PITCH - step
    x, y = ((step, near), (far, step), (back, far), (near, back))[side]
    return _LEFT + x, _TOP + y, side % 2 == 0


def _legend(owned: tuple[OwnedUnits, ...], colors: dict[str, str]) -> Iterator[str]:
    """A line for each owner: its color, and its units by kind."""
    for line, (owner, color) in enumerate(colors.items()):
        y = _TOP + line * _LINE
        used = {
            unit: sum(units.used for units in owned if (units.unit, units.owner) == (unit, owner))
            for unit in ChipUnit
        }
        counts = ", ".join(f"{count} {unit.value}" for unit, count in used.items() if count)
        yield element("rect", x=_LEGEND, y=y, width=_TILE, height=_TILE, fill=color)
        yield element("text", text=f"{owner}: {counts}", x=_LEGEND + 20, y=y + 11)
    y = _TOP + len(colors) * _LINE + 11
    yield element("text", text="places are schematic", x=_LEGEND, y=y, fill_opacity=0.6)
