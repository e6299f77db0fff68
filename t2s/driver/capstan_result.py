"""``CapstanResult``: runs of patterns on Capstan's units, what bounds them, and their picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.backends.capstan.machines.chip_times import TIMES, CapstanTimes
from t2s.backends.capstan.machines.lower import machines_of
from t2s.backends.capstan.resources import count_resources
from t2s.backends.capstan.roofline_picture import Roofline, roofline_picture
from t2s.core.display import CardPart, NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.errors import UserError
from t2s.core.expr import evaluate
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.driver.page_writer import write_page
from t2s.graph.graph import Graph, TensorRole
from t2s.patterns.interpret import PatternOutcome
from t2s.patterns.ir import PatternProgram
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.limits import Progress, checked_limits
from t2s.simulator.memory.spec import IDEAL, Banked, Dram, find_memory
from t2s.simulator.report.errors import require_complete
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import retime_on, simulate
from t2s.simulator.timeline import PEState, Timeline
from t2s.sparse_repr.tensors.tensor import SparseTensor

if TYPE_CHECKING:
    from t2s.core.display import StallTable
    from t2s.simulator.memory.spec import Banked, Dram
    from t2s.simulator.report.result import NodeStatistics, SimResult


@dataclass(frozen=True, kw_only=True)
class CapstanResult(NotebookDisplay):
    """The result of ``CapstanKernel.simulate``.

    Attributes
    ----------
    tensor: the result as it is stored.
    memory: the name of the DRAM, or ``"ideal"``.
    times: the chip's latencies and sizes.
    run: the run of the graph of units; ``run.memory`` has the counters of the DRAM.
    program: the patterns.
    entries: stored entries of the compressed operands; of all operands if none is compressed.
    """

    tensor: SparseTensor
    memory: str
    times: CapstanTimes = field(repr=False)
    run: SimResult = field(repr=False)
    program: PatternProgram = field(repr=False)
    entries: int = field(repr=False)

    @property
    def cycles(self) -> int:
        """Cycles of the chip until the last word is stored."""
        return self.run.cycles

    @property
    def output(self) -> Array:
        """The result as a dense array."""
        return self.tensor.to_dense()

    @property
    def nanoseconds(self) -> float:
        """The run time at the chip's clock."""
        return self.run.seconds * 1e9

    @property
    def units(self) -> StallTable:
        """A row for each unit: cycles with a firing, starved, blocked, waiting and idle."""
        return self.run.stalls

    @property
    def dram_bytes(self) -> int:
        """Bytes of all bursts; 0 with ideal memory."""
        return 0 if self.run.memory is None else self.run.memory.bytes_moved

    @property
    def share_of_peak(self) -> float:
        """The share of the DRAM's bandwidth that was used; 0 with ideal memory."""
        return 0.0 if self.run.memory is None else self.run.memory.share_of_peak

    @property
    def network_words(self) -> float:
        """Words through the network per cycle of the run; 0 if nothing uses it."""
        return 0.0 if self.run.shared is None else self.run.shared.words / max(1, self.cycles)

    @property
    def parts(self) -> CycleParts:
        """The cycles by cause, which add up to all, and the bound, the largest of them.

        Times the run again with an ideal network and with ideal memory.  Raises ``UserError`` for
        a run by the plain engine, which keeps no trace of machines.
        """
        cache = vars(self)
        if "_parts" not in cache:
            unhindered = ideal = self.run
            if self.run.shared is not None:
                unhindered = ideal = self.retime(network=IDEAL).run
            if self.run.memory is not None:
                ideal = self.retime(memory=IDEAL).run
            cache["_parts"] = cycle_parts(self.run, unhindered, ideal)
        parts: CycleParts = cache["_parts"]
        return parts

    def retime(
        self,
        *,
        memory: str | Dram | None = None,
        times: CapstanTimes | None = None,
        network: str | Banked | None = None,
        max_cycles: int | None = None,
        progress: bool | None = None,
    ) -> CapstanResult:
        """The same run with another memory, network or latencies of the chip, without its values.

        ``network`` is ``"chip"``, ``"ideal"`` (no conflicts and no cycles) or a ``Banked`` with
        other queues, rounds or moves between lanes; with ideal memory it is ideal.  From a run with
        a DRAM to any memory, and from one with ideal memory to ideal memory: only the first one
        records addresses.  Sizes of the chip that determine the behavior of units cannot change.
        Raises ``UserError`` for anything else.
        """
        before = self.run.device
        network = before.banked or IDEAL if network is None else network
        dram = before.memory or IDEAL if memory is None else memory
        target = capstan_device(dram, times or self.times, network)
        name = self.memory if memory is None else memory_name(memory)
        latencies, capacities = changed_times(self.program, self.times, times or self.times)
        with Progress(progress) as observer:
            again = require_complete(
                retime_on(
                    self.run,
                    target,
                    latencies=latencies,
                    capacities=capacities,
                    limits=checked_limits(max_cycles),
                    observer=observer,
                )
            )
        run = replace(again, outputs=self.run.outputs)
        return replace(self, memory=name, run=run, times=times or self.times)

    def report(
        self, path: str | Path, *, windows: Sequence[tuple[int, int]] = (), depths: object = None
    ) -> Path:
        """Write a page about the units of the chip and their streams; see ``SimResult.report``."""
        resources = count_resources(self.program)
        units = (resources.table, resources.owned_table)
        name, runs = self.program.name, (self.run,)
        return write_page(name, runs, path, windows=windows, depths=depths, units=units)

    def picture(self) -> SvgPicture:
        """A time line of partitions: busy, waiting, starved and blocked units of each pattern.

        Below 300 kB: large programs have fewer bins.  Raises ``UserError`` for a run by the plain
        engine.
        """
        self._check_traced("a time line")
        bins = MOST_BINS
        while True:
            picture = run_picture(self.program.name, self.run.timeline(bins=bins))
            if len(picture.svg) <= MOST_CHARACTERS or bins == 1:
                return picture
            bins //= 2

    def roofline(self) -> SvgPicture:
        """Entries per cycle over bytes per entry, and the roofs of DRAM, network and datapath.

        Raises ``UserError`` for a run with ideal memory or without entries, which has no roofs.
        """
        return roofline_picture(self.roofs())

    def roofs(self) -> Roofline:
        """The numbers of ``roofline``; raises what it raises."""
        self._check_traced("roofs")
        if self.run.memory is None or not self.entries or not self.dram_bytes:
            raise UserError(
                "this run has no roofline",
                location=user_location(),
                expected="a run with a DRAM that moves entries",
                given=f"{self.entries:,} entries and {self.dram_bytes:,} bytes with memory "
                f"{self.memory}",
            )
        parts, shared, dram = self.parts, self.run.shared, self.run.memory.dram
        steps = parts.cycles[CycleCause.DATAPATH] + parts.cycles[CycleCause.SCANNER]
        peak = float(dram.peak_bytes_per_second) / self.run.device.clock_hz
        network = None
        if shared is not None and shared.words:
            network = shared.banked.ports * shared.banked.banks * self.entries / shared.words
        return Roofline(
            program=self.program.name,
            bytes_per_entry=self.dram_bytes / self.entries,
            achieved=self.entries / self.cycles,
            bytes_per_cycle=peak,
            network=network,
            datapath=self.entries / steps if steps else None,
            busiest=parts.busiest,
        )

    def _check_traced(self, wanted: str) -> None:
        if not self.run.program.is_recorded:
            raise UserError(
                f"this run recorded no per-cycle activity, which it takes for {wanted}",
                location=user_location(),
                expected="a run by the native engine",
                given=f"one by the engine {self.run.engine!r}",
                hint="simulate with engine='native'",
            )

    def _head(self) -> list[str]:
        lines = [f"{self.cycles:,} cycles, {self.nanoseconds:,.0f} ns with memory {self.memory}"]
        if self.run.memory is not None:
            lines.append(
                f"{self.dram_bytes:,} bytes of DRAM bursts, {self.share_of_peak:.1%} of the peak"
            )
        if self.run.shared is not None:
            shared = self.run.shared
            lines.append(
                f"{shared.words:,} words through the network, {self.network_words:.1f} in a cycle; "
                f"{shared.mean_wait:.1f} cycles lost by each; {shared.bank_utilization:.1%} of the "
                "banks"
            )
        return lines

    @property
    def _has_parts(self) -> bool:
        return self.run.memory is None or self.run.program.is_recorded

    def __str__(self) -> str:
        parts = [str(self.parts)] if self._has_parts else []
        return "\n\n".join(["\n".join(self._head()), *parts, str(self.units)])

    def _card(self) -> NotebookCard:
        """Its cycles by their cause, the time line of its units, what they did, and the tensor."""
        parts: list[CardPart | None] = [Preformatted(title=text) for text in self._head()]
        if self._has_parts:
            parts.append(self.parts.table)
        if self.run.program.is_recorded:
            parts.append(self.picture())
        tables = (self.units.table, self.tensor._card())
        return NotebookCard(title=f"result of {self.program.name}", parts=(*parts, *tables))


# The breakdown of a run on Capstan: its cycles by cause, which add up to all of them.
#
# A run is timed again with an ideal network between partitions and their memories, and then with
# ideal memory, too.  The cycles that the first one saves are those of the network and the banks,
# the cycles that the second one saves in addition those of the DRAM.  The rest is classified by the
# firings of units in the last run:
#
# * *transfers*: cycles in which only units outside of all loops fire, which move whole arrays;
# * *datapath*: the firings of the busiest unit of the loops, a cycle each; *scanner*, if that one
#   scans bit vectors or builds them;
# * *start-up*: the other cycles, in which tokens are on their way through the chain of units.


class CycleCause(Enum):
    """The cause of cycles; the value is the text for users."""

    DRAM = "DRAM"
    NETWORK = "network and banks"
    TRANSFERS = "whole transfers"
    DATAPATH = "datapath"
    SCANNER = "scanner"
    START_UP = "start-up"


SCANNING = ("scan_", "build_")
"""How the names of units begin that scan bit vectors, or build them."""

_ALWAYS = (CycleCause.DRAM, CycleCause.TRANSFERS, CycleCause.START_UP)
_OF_BUSIEST = (CycleCause.DATAPATH, CycleCause.SCANNER)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleParts(NotebookDisplay):
    """The cycles of a run by their cause; ``busiest`` names the unit of the loops that fires most.

    One of datapath and scanner is 0.  The *bound* is the cause of most cycles.
    """

    cycles: Mapping[CycleCause, int]
    busiest: str

    @property
    def total(self) -> int:
        """All cycles of the run."""
        return sum(self.cycles.values())

    @property
    def bound(self) -> CycleCause:
        """The cause of most cycles."""
        return max(CycleCause, key=lambda cause: self.cycles[cause])

    def share(self, cause: CycleCause) -> float:
        """The share of a cause in all cycles, 0 to 1."""
        return self.cycles[cause] / self.total if self.total else 0.0

    @property
    def table(self) -> Table:
        """A row for each cause; none for network, datapath and scanner if they take nothing."""
        rows = tuple(
            (
                cause.value + (f": {self.busiest}" if cause in _OF_BUSIEST else ""),
                f"{self.cycles[cause]:,}",
                f"{self.share(cause):.1%}",
            )
            for cause in CycleCause
            if self.cycles[cause] or cause in _ALWAYS
        )
        title = (
            f"bound by {self.bound.value}: {self.share(self.bound):.0%} of {self.total:,} cycles"
        )
        return Table(title=title, headers=("cycles by cause", "cycles", "share"), rows=rows)

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


def cycle_parts(run: SimResult, unhindered: SimResult, ideal: SimResult) -> CycleParts:
    """The parts of a run, given the same run with an ideal network, and with ideal memory, too."""
    regions = {node.name: node.region for node in run.program.graph.nodes}
    inside = [unit for name, unit in ideal.nodes.items() if regions[name] is not None]
    outside = [unit for name, unit in ideal.nodes.items() if regions[name] is None]
    looped = _covered(_spans(inside), ideal.cycles)
    both = _covered([*_spans(inside), *_spans(_busy(outside))], ideal.cycles)
    busiest = max(inside, key=lambda unit: -(-unit.firings // unit.pe_count), default=None)
    steps = 0 if busiest is None else -(-busiest.firings // busiest.pe_count)
    without_network = min(unhindered.cycles, run.cycles)
    begun = min(ideal.cycles, without_network)
    steps = min(steps, looped, begun)
    scans = busiest is not None and busiest.name.startswith(SCANNING)
    parts = {
        CycleCause.DRAM: without_network - begun,
        CycleCause.NETWORK: run.cycles - without_network,
        CycleCause.TRANSFERS: min(both - looped, begun - steps),
        CycleCause.DATAPATH: 0 if scans else steps,
        CycleCause.SCANNER: steps if scans else 0,
    }
    parts[CycleCause.START_UP] = run.cycles - sum(parts.values())
    return CycleParts(cycles=parts, busiest="-" if busiest is None else busiest.name)


def _busy(units: Iterable[NodeStatistics]) -> list[NodeStatistics]:
    """Units that move arrays: they fire more than once or twice."""
    return [unit for unit in units if unit.firings > 2 * unit.pe_count]


def _spans(units: Iterable[NodeStatistics]) -> list[tuple[int, int]]:
    """From the first to the last firing of each unit that fires."""
    return [
        (unit.first_firing, unit.last_firing)
        for unit in units
        if unit.first_firing is not None and unit.last_firing is not None
    ]


def _covered(spans: Iterable[tuple[int, int]], cycles: int) -> int:
    """The number of cycles covered by spans."""
    total = end = 0
    for first, last in sorted(spans):
        first = max(first, end + 1)
        if last >= first:
            total += last - first + 1
            end = last
    return min(total, cycles)


# The timeline of partitions: the activity of each pattern's units, partition by partition.
#
# A row is a pattern in a partition, and shows the unit of it that fires most.  Neighboring bins in
# the same state are one rectangle.  Long runs have wide bins, large programs fewer of them.

MOST_BINS = 240
MOST_CHARACTERS = 280_000

COLORS = {
    PEState.BUSY: PALETTE[0],
    PEState.WAITING: PALETTE[4],
    PEState.STARVED: PALETTE[1],
    PEState.BLOCKED: PALETTE[5],
}
"""Idle bins are not drawn."""

_LEFT, _TOP, _ROW, _WIDTH = 180, 56, 11, 720


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A row: the pattern, the partition, and the PE of the unit that fires most in it."""

    pattern: str
    partition: int
    unit: str
    pe: int


def rows_of(line: Timeline) -> list[PartitionRow]:
    """A row for each pattern and partition, the partitions of a pattern together."""
    fired = line.cycles[PEState.BUSY].sum(axis=1)
    best: dict[tuple[str, int], PartitionRow] = {}
    for pe, (timing, place) in enumerate(line.rows()):
        pattern = timing.node.region or "outside of loops"
        candidate = PartitionRow(pattern=pattern, partition=place, unit=timing.node.name, pe=pe)
        other = best.get((pattern, place))
        if other is None or fired[pe] > fired[other.pe]:
            best[pattern, place] = candidate
    order = {pattern: n for n, (pattern, _) in enumerate(best)}
    return sorted(best.values(), key=lambda row: (order[row.pattern], row.partition))


def run_picture(program: str, line: Timeline) -> SvgPicture:
    """The picture of a time line; the same bytes for the same run."""
    rows = rows_of(line)
    states = line.main_states()
    drawn = []
    for number, row in enumerate(rows):
        y = _TOP + number * _ROW
        if row.partition == 0:
            drawn.append(element("text", text=row.pattern, x=16, y=y + 9, font_size=10))
        text = f"{row.partition}"
        label = hover(f"{row.unit}, partition {row.partition} of {row.pattern}")
        drawn.append(
            element("text", label, text=text, x=_LEFT - 6, y=y + 9, text_anchor="end", font_size=9)
        )
        drawn.extend(_bars(line, row, states[row.pe], y))
    cycles = f"cycles {line.first:,} to {line.last:,}"
    return picture(
        _LEFT + _WIDTH + 20,
        _TOP + len(rows) * _ROW + 30,
        element("text", text=f"{program}: {cycles}, {line.bins} bins", x=16, y=16),
        *_legend(),
        *drawn,
        title=f"time line of {program}",
        description=f"{cycles}. A row for each pattern and partition shows the unit of it that "
        "fires most: busy, waiting, starved, blocked, or idle where nothing is drawn.",
    )


def _bars(line: Timeline, row: PartitionRow, states: np.ndarray, y: int) -> Iterator[str]:
    """The rectangles of a row, one for neighboring bins in the same state."""
    length = int(line.edges[-1] - line.edges[0])
    for state, group in groupby(range(line.bins), key=lambda number: int(states[number])):
        bins = list(group)
        if state == PEState.IDLE:
            continue
        first, last = int(line.edges[bins[0]]), int(line.edges[bins[-1] + 1])
        x = round(_LEFT + (first - int(line.edges[0])) / length * _WIDTH, 1)
        width = round((last - first) / length * _WIDTH, 1)
        share = line.cycles[state, row.pe, bins].sum() / (last - first)
        cause = line.cause(row.pe, bins[0]) if state in (PEState.STARVED, PEState.BLOCKED) else None
        by = f" by {cause}" if cause else ""
        name = PEState(state).name.lower()
        label = hover(f"{row.unit} {row.partition}: {name}{by} {share:.0%}, {first + 1}-{last}")
        yield element(
            "rect", label, x=x, y=y, width=width, height=_ROW - 2, fill=COLORS[PEState(state)]
        )


def _legend() -> Iterator[str]:
    """The legend of the colors."""
    for number, (state, color) in enumerate(COLORS.items()):
        x = _LEFT + 90 * number
        yield element("rect", x=x, y=28, width=12, height=12, fill=color)
        yield element("text", text=state.name.lower(), x=x + 18, y=39)


# Running patterns on Capstan's units: the graph, the device with its memory, and the result.

CAPSTAN = "capstan"
CHIP_NETWORK = "chip"
"""The network and the banks of the chip as it is."""


def capstan_device(
    memory: str | Dram, times: CapstanTimes = TIMES, network: str | Banked = CHIP_NETWORK
) -> Device:
    """The chip with a memory, which is a path away from the units, and a network.

    With ideal memory the network between partitions and their memories is ideal, too, and so it is
    if ``network`` is ``"ideal"``.  Raises ``UserError`` for an unknown network.
    """
    dram = find_memory(memory)
    banked: Banked | None
    match network:
        case Banked():
            banked = network
        case "ideal":
            banked = None
        case "chip":
            banked = DEVICES[CAPSTAN].banked
        case _:
            raise UserError(
                "unknown network",
                location=user_location(),
                expected='"chip", "ideal", or a Banked',
                given=repr(network),
            )
    if dram is None:
        return DEVICES[CAPSTAN].with_banked(None)
    units = replace(dram.units, path_cycles=times.dram_path)
    changed = replace(DEVICES[CAPSTAN], memory=replace(dram, units=units))
    return changed.with_banked(banked)


def run_units(
    graph: Graph,
    arrays: Mapping[str, Array],
    arguments: Mapping[str, Any],
    device: Device,
    engine: str,
    max_cycles: int | None,
    progress: bool | None,
) -> SimResult:
    """Run the graph of a program on the arrays of its memories.

    Raises what ``t2s.simulate`` raises, ``CycleLimitError`` at ``max_cycles`` and
    ``RunInterrupted`` at Ctrl-C, for then there is no result.
    """
    given = {
        tensor.array: np.ascontiguousarray(arrays[tensor.array], tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }
    return require_complete(
        simulate(
            graph,
            given,
            parameters=dict(arguments),
            device=device,
            engine=engine,
            max_cycles=max_cycles,
            progress=progress,
        )
    )


def outcome_of(
    program: PatternProgram, run: SimResult, arguments: Mapping[str, Any]
) -> PatternOutcome:
    """The final memories off chip; words that were never stored are zero."""
    scalars = {name: np.asarray(value) for name, value in arguments.items()}
    scalars |= {name: np.asarray(value) for name, value in program.environment}
    memories = {}
    for memory in program.memories:
        if memory.name in run.outputs:
            stored = run.outputs[memory.name]
            require_complete = np.zeros(int(evaluate(memory.size, scalars)), memory.type.numpy)
            require_complete[: len(stored)] = stored
            memories[memory.name] = require_complete
    returned = {
        result.values: run.outputs[result.values].reshape(())
        for result in program.results
        if not result.levels
    }
    return PatternOutcome(memories=memories, scalars=returned)


def entries_of(operands: Iterable[SparseTensor]) -> int:
    """Stored values of the operands with compressed levels; of all operands if there are none."""
    tensors = list(operands)
    some = [tensor for tensor in tensors if not all(level.full for level in tensor.format.levels)]
    return sum(len(tensor.values) for tensor in some or tensors)


def changed_times(
    program: PatternProgram, before: CapstanTimes, after: CapstanTimes
) -> tuple[dict[str, int], dict[str, int]]:
    """Latencies and capacities of all channels of a program, by name, with other times.

    Raises ``UserError`` for sizes that change the behavior of the units.
    """
    if before.sizes != after.sizes:
        raise UserError(
            "the units of the chip would do something else",
            location=user_location(),
            expected=f"times with the same {', '.join(before.sizes)}",
            given=repr(after),
            hint="simulate again with these times",
        )
    channels = machines_of(program, after).channels
    return {c.name: c.latency for c in channels}, {c.name: c.capacity for c in channels}


def memory_name(memory: str | Dram) -> str:
    """The name of a memory."""
    return memory.name if isinstance(memory, Dram) else memory
