"""``SimResult``: the outputs and cycles of a run, and where the cycles went, node by node."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from t2s.core.display import (
    CardPart,
    NotebookCard,
    NotebookDisplay,
    Preformatted,
    StallRow,
    StallTable,
    Table,
    cycle_text,
    engineering,
)
from t2s.core.errors import InternalError
from t2s.core.files import write_file
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import counted
from t2s.core.ops import Array
from t2s.core.sigint import import_deferring_sigint
from t2s.core.svg import SvgPicture, stall_chart
from t2s.core.validate import checked_file
from t2s.graph.graph import Tensor, checked_per_channel
from t2s.graph.nodes import Role
from t2s.simulator.devices import Device
from t2s.simulator.limits import Progress, checked_limits
from t2s.simulator.memory.report import BankedReport, MemoryReport
from t2s.simulator.memory.spec import Banked
from t2s.simulator.program.recurrences import ChannelRecurrence, channel_recurrences
from t2s.simulator.program.sim_program import NodeInterval, SimProgram, check_times
from t2s.simulator.program.trace import Trace
from t2s.simulator.recording import edges_of, recorded_nodes, recorded_window
from t2s.simulator.report.counters import Counts, Ending
from t2s.simulator.report.deadlock import DeadlockReport
from t2s.simulator.timeline import Timeline, Window, checked_window

UTILIZATION_DEFINITION = "firings / (PEs x cycles)"


def read_only(values: dict[Any, Any]) -> Mapping[Any, Any]:
    """A mapping that cannot be changed."""
    return MappingProxyType(values)


def _as_values(mapping: MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return read_only, (dict(mapping),)


# Results hold read-only mappings, which Python cannot pickle by itself.
copyreg.pickle(MappingProxyType, _as_values)


@dataclass(frozen=True, kw_only=True)
class SimResult(NotebookDisplay):
    """The result of a run.

    Attributes
    ----------
    outputs: output tensors by name; empty unless the run finished and had inputs.
    cycles: cycles until the last store is complete; counted from 1.
    device, engine, graph: the graph that ran, and where.
    kernel: the kernel that computed the times: plain, table, array, or for machines runs, stepped,
        run-ahead or event-driven.
    skipped: cycles that were skipped because they exactly repeat others.
    machine_trace: the firings of machines, if there are any and the engine keeps them.
    nodes: statistics by node name, in graph order.
    ending: why the run ended.
    deadlock: the report if it ended in a deadlock.
    tokens_left: channels with tokens left at the end of a finished run, the fullest first.
    memory: bandwidth, rows and waits, if the device has a DRAM.
    shared: words and conflicts, if machines share banks of the device.
    padded: tensors that are larger in memory because iterations are padded.
    at_least: cycles that the whole run takes at least, if it was given up (``Limits.give_up``).
    program: the program without its inputs; ``retime`` runs it again.  It holds the ``RunContext``
        of a design.
    """

    graph: str
    device: Device
    engine: str
    kernel: str
    skipped: int
    outputs: Mapping[str, Array] = field(repr=False)
    cycles: int
    nodes: Mapping[str, NodeStatistics] = field(repr=False)
    ending: Ending
    deadlock: DeadlockReport | None = None
    tokens_left: tuple[TokensLeft, ...] = ()
    memory: MemoryReport | None = None
    shared: BankedReport | None = None
    padded: tuple[Tensor, ...] = ()
    at_least: int | None = None
    machine_trace: Trace | None = field(default=None, repr=False, compare=False)
    program: SimProgram = field(repr=False, compare=False)

    def retime(
        self,
        depths: Mapping[str, int] | None = None,
        *,
        latencies: Mapping[str, int] | None = None,
        banked: Banked | None = None,
        max_cycles: int | None = None,
        progress: bool | None = None,
    ) -> SimResult:
        """Repeat the run with other channels or banks, without computing values again.

        Values do not depend on time, so the result has the ``outputs`` of this one (the same
        object), and otherwise equals that of ``simulate`` for a design with these channels.

        Parameters
        ----------
        depths: capacities by channel name, in tokens of the FIFO alone; others stay as they are.
        latencies: cycles from send to ready by channel name, of the FIFO alone.
        banked: other shared banks, for a run on a device that has some.
        max_cycles, progress: as for ``simulate``.

        Raises ``UserError`` for unknown channels and for numbers below 1, and ``DeadlockError`` if
        the run cannot end.
        """
        location = user_location()
        graph = self.program.graph
        new_depths = checked_per_channel(graph, depths or {}, "depth", location)
        new_latencies = checked_per_channel(graph, latencies or {}, "latency", location)
        program = self.program.with_capacities(new_depths).with_latencies(new_latencies)
        program = program if banked is None else program.with_banked(banked)
        check_times(program)
        limits = checked_limits(max_cycles)
        if program.context is None:
            raise InternalError("a result of an engine alone cannot be run again")
        with Progress(progress) as observer:
            result: SimResult = program.context.rerun(program, self.engine, limits, observer)
        return replace(result, outputs=self.outputs) if result.finished else result

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the numbers, such as a design that is too large for the device."""
        context = self.program.context
        return context.warnings(self) if context is not None else ()

    def timeline(self, cycles: Window | None = None, *, bins: int | None = None) -> Timeline:
        """The activity of every PE in a window (first and last cycle), or in the whole run.

        A bin is a cycle, or several if ``bins`` is smaller than the window; at most ``MOST_BINS``.
        The window is recomputed exactly.  Raises ``UserError`` for a window that is not in the run.
        """
        edges = checked_window(cycles, self.cycles, bins=bins, pe_count=self.program.pe_count)
        return self.timelines((edges,))[0]

    def timelines(self, windows: Sequence[Counts]) -> tuple[Timeline, ...]:
        """The timelines between the edges of windows (see ``checked_window``)."""
        self.program.check_recorded()
        sampled = import_deferring_sigint("t2s.simulator.times.sampled")
        timelines: tuple[Timeline, ...] = sampled.timelines_of(self.program, windows, self.kernel)
        return timelines

    def trace(
        self,
        path: str | Path,
        *,
        cycles: Window | None = None,
        nodes: Sequence[str] | None = None,
    ) -> Path:
        """Write a window as a trace for ui.perfetto.dev, and return its path.

        A track for each PE, busy, waiting, starved or blocked, and one with the occupancy of each
        channel; a cycle is a nanosecond.  ``cycles`` are the first and the last cycle, by default
        the whole run; they are recomputed exactly.  ``nodes`` are those to record, with their
        channels, by default all.  A path that ends with ``.gz`` is compressed.

        Needs the extra ``t2s-spatial[trace]``.  Raises ``UserError`` for a window that is not in
        the run or too large, for unknown nodes, and for a file that cannot be written.
        """
        file = checked_file("the file of the trace", path)
        chosen = recorded_nodes(nodes, self.program)
        window = recorded_window(cycles, self.cycles, self.program)
        writer = import_deferring_sigint("t2s.simulator.recording")
        write_file(file, writer.perfetto_trace(self.program, self._seen(*window), file, chosen))
        return file

    def waves(
        self,
        path: str | Path,
        *,
        cycles: Window | None = None,
        nodes: Sequence[str] | None = None,
    ) -> Path:
        """Write the signals of channels in a window as waveforms, in VCD; return the path.

        ``valid``, ``push``, ``pop`` and ``occupancy`` of every FIFO; cycle ``c`` begins at 10 ``c``
        ns.  See ``trace`` for the rest.
        """
        file = checked_file("the file of the waveforms", path)
        chosen = recorded_nodes(nodes, self.program)
        first, last = recorded_window(cycles, self.cycles, self.program)
        signals = import_deferring_sigint("t2s.simulator.recording")
        writer = import_deferring_sigint("t2s.simulator.recording")
        seen = self._seen(max(1, first - signals.lead_in(self.program)), last)
        write_file(file, writer.vcd_of(self.program, seen, first, chosen))
        return file

    def _seen(self, first: int, last: int) -> tuple[Timeline, ...]:
        """Timelines of single cycles, one after the other."""
        return self.timelines(edges_of(first, last))

    def report(
        self,
        path: str | Path,
        *,
        windows: Sequence[Window] = (),
        inputs: Mapping[str, Any] | None = None,
        depths: Any = None,
        ladder: Any = None,
    ) -> Path:
        """Write an HTML page that shows where the cycles went, and return its path.

        Parameters
        ----------
        path: the file, in an existing folder.
        windows: additional windows to show cycle by cycle, as (first, last).
        inputs: the inputs of the run, to show the values of its first firings.
        depths: a ``DepthFit``, or the smallest sufficient depths by channel.
        ladder: the Func that ran, to show the contribution of each of its directives.

        Raises ``UserError`` for windows that are not in the run, and for a file that cannot be
        written.
        """
        if self.program.context is None:
            raise InternalError("a result of an engine alone has no page")
        options = {"windows": windows, "inputs": inputs, "depths": depths, "ladder": ladder}
        return self.program.context.write_page(self, path, options)

    @property
    def depths(self) -> Mapping[str, int]:
        """The capacity of every channel in this run, in tokens of the FIFO alone."""
        return {timing.channel.name: timing.channel.capacity for timing in self.program.channels}

    @property
    def finished(self) -> bool:
        """Whether every PE made all its firings."""
        return self.ending is Ending.FINISHED

    @property
    def limit_reached(self) -> bool:
        """Whether the run was cut short by the cycle limit."""
        return self.ending is Ending.LIMIT

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C cut the run short."""
        return self.ending is Ending.INTERRUPTED

    @property
    def seconds(self) -> float:
        """The run's time at the device's clock, in seconds."""
        return self.cycles / self.device.clock_hz

    @property
    def firings(self) -> int:
        """Firings of all PEs."""
        return sum(node.firings for node in self.nodes.values())

    @property
    def _compute(self) -> list[NodeStatistics]:
        return [node for node in self.nodes.values() if node.role is Role.COMPUTE]

    @property
    def compute_pes(self) -> int:
        """PEs of all compute nodes."""
        return sum(node.pe_count for node in self._compute)

    @property
    def main_array(self) -> NodeStatistics | None:
        """The compute node with the most firings; ``None`` for a design that computes nothing."""
        return max(self._compute, key=lambda node: node.firings, default=None)

    @property
    def utilization(self) -> float:
        """Firings / (PEs x cycles) of the main array; 0 where that is 0 / 0.

        Epilogues have far fewer firings, so a mean over all compute PEs would be meaningless.
        """
        array = self.main_array
        return array.firings / (array.pe_count * self.cycles) if array and self.cycles else 0.0

    @property
    def compute_cycles(self) -> int:
        """Cycles from the first to the last firing of a compute node, both included."""
        firsts = [node.first_firing for node in self._compute if node.first_firing is not None]
        lasts = [node.last_firing for node in self._compute if node.last_firing is not None]
        return max(lasts) - min(firsts) + 1 if firsts else 0

    @cached_property
    def recurrences(self) -> Mapping[str, ChannelRecurrence]:
        """Channels from PEs to themselves, by name: latency, distance, the user's line."""
        return channel_recurrences(self.program)

    @cached_property
    def stalls(self) -> StallTable:
        """Where the cycles of every node went."""
        rows = tuple(node.stall_row(self.recurrences) for node in self.nodes.values())
        return StallTable(cycles=self.cycles, rows=rows)

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The headline numbers as (label, text)."""
        clock = f"{self.device.clock_hz / 1e6:g} MHz"
        lines = [
            ("cycles", f"{self.cycles:,}"),
            ("time", f"{engineering(self.seconds)}s on {self.device.name} at {clock}"),
            ("utilization", self._utilization_text),
            (
                "compute",
                f"{counted(self.compute_cycles, 'cycle')} from first to last compute firing",
            ),
            ("ended", self.ending.value),
            ("engine", self.effort),
        ]
        lines += [("padded", f"{tensor.name}: {tensor.shape_text}") for tensor in self.padded]
        context = self.program.context
        more = context.lines(self) if context is not None else ()
        return (*lines, *more, *(("warning", text) for text in self.warnings))

    @property
    def _utilization_text(self) -> str:
        array = self.main_array
        share = f"{self.utilization:.1%}"
        return f"{share} of {array.name} = {UTILIZATION_DEFINITION}" if array else "no compute node"

    @property
    def effort(self) -> str:
        """The engine, the kernel of the times, and the number of cycles that it stepped through."""
        if self.engine == "python":
            return "python, every cycle stepped"
        stepped = f"{self.cycles - self.skipped:,} cycles stepped, {self.skipped:,} skipped"
        how = stepped if self.skipped else "nothing skipped"
        return f"{self.engine}, times by the {self.kernel} kernel, {how}"

    @property
    def node_table(self) -> Table:
        """Role, PEs, II, firings and first and last firing of every node.

        Includes a column of slots if a schedule has empty ones.
        """
        gaps = any(node.empty for node in self.nodes.values())
        rows = tuple(
            (
                node.name,
                node.role.value,
                f"{node.pe_count:,}",
                f"{node.firings:,}",
                *((f"{node.slots:,}",) if gaps else ()),
                cycle_text(node.first_firing),
                cycle_text(node.last_firing),
                str(node.interval),
            )
            for node in self.nodes.values()
        )
        slots = ("slots",) if gaps else ()
        headers = ("node", "role", "PEs", "firings", *slots, "first", "last", "initiation interval")
        left = frozenset({0, 1, len(headers) - 1})
        return Table(title="nodes", headers=headers, rows=rows, left=left)

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        head = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        parts = [f"{self.graph}\n" + "\n".join(head), self.node_table.text(), str(self.stalls)]
        parts += [str(part) for part in (self.memory, self.shared) if part is not None]
        if self.deadlock is not None:
            parts.append(str(self.deadlock))
        return "\n\n".join(parts)

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        head = "\n".join(f"{label:12} {text}" for label, text in self.summary)
        parts = [Text(f"{self.graph}\n{head}"), self.node_table.rich(), self.stalls.table.rich()]
        parts += [part.__rich__() for part in (self.memory, self.shared) if part is not None]
        if self.deadlock is not None:
            parts.append(Text(str(self.deadlock)))
        return Group(*parts)

    def picture(self) -> SvgPicture:
        """The activity of the PEs of each node, as shares of their cycles."""
        return stall_chart(self.stalls)

    def _card(self) -> NotebookCard:
        parts: list[CardPart] = [self.picture(), self.node_table, self.stalls.table]
        if self.deadlock is not None:
            parts.insert(0, Preformatted(title="", text=str(self.deadlock)))
        if self.memory is not None:
            parts += [self.memory.channel_table, self.memory.unit_table]
        if self.shared is not None:
            parts += [self.shared.table, self.shared.sharer_table]
        return NotebookCard(title=self.graph, summary=self.summary, parts=tuple(parts))


# Statistics of a node, and tokens left in a channel.


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatistics:
    """The activity of the PEs of one node.

    ``busy``, ``waiting``, ``starved``, ``blocked`` and ``idle`` are cycles summed over the PEs;
    together they are ``pe_count`` times the cycles of the run.  ``starved_by`` and ``blocked_by``
    split the stalls by channel; the rest is due to memory, in ``starved_by_memory`` and
    ``blocked_by_memory``.  ``firings`` are iterations of the definition; ``total_firings`` are
    those of a complete run, or for a machine those that it made.  ``empty`` slots of a schedule,
    in which a PE has no iteration, are not firings but part of ``waiting``.
    ``first_firing`` and ``last_firing`` are cycles, ``None`` if there was no firing.
    """

    name: str
    role: Role
    location: SourceLocation | None
    pe_count: int
    interval: NodeInterval
    firings: int
    total_firings: int
    empty: int = 0
    first_firing: int | None
    last_firing: int | None
    waiting: int
    starved_by: Mapping[str, int]
    blocked_by: Mapping[str, int]
    starved_by_memory: int
    blocked_by_memory: int
    idle: int

    @property
    def busy(self) -> int:
        """Cycles with a firing."""
        return self.firings

    @property
    def slots(self) -> int:
        """Steps of the time loops: firings and empty slots."""
        return self.firings + self.empty

    @property
    def starved(self) -> int:
        """Cycles in which a token or a loaded value was missing."""
        return sum(self.starved_by.values()) + self.starved_by_memory

    @property
    def blocked(self) -> int:
        """Cycles in which there was no space for a result."""
        return sum(self.blocked_by.values()) + self.blocked_by_memory

    def stall_row(self, recurrences: Mapping[str, ChannelRecurrence]) -> StallRow:
        """The node's row of the stall table.

        A PE's wait for its own token is attributed to the recurrence if that takes longer than the
        initiation interval; ``recurrences`` has those of all channels.
        """
        slow = {
            name: f": {recurrence}"
            for name, recurrence in recurrences.items()
            if recurrence.interval > self.interval.cycles
        }
        causes = {
            f"starved by {name}{slow.get(name, '')}": n for name, n in self.starved_by.items()
        }
        causes |= {f"blocked by {name}": n for name, n in self.blocked_by.items()}
        causes["starved by memory"] = self.starved_by_memory
        causes["blocked by memory"] = self.blocked_by_memory
        causes["empty slots: gaps or padding"] = self.empty
        causes[str(self.interval)] = self.waiting - self.empty
        largest = max(causes, key=lambda cause: causes[cause])
        return StallRow(
            node=self.name,
            pe_count=self.pe_count,
            busy=self.busy,
            starved=self.starved,
            blocked=self.blocked,
            waiting=self.waiting,
            idle=self.idle,
            main_cause=largest if causes[largest] else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensLeft:
    """A channel with tokens left at the end of a run."""

    channel: str
    location: SourceLocation | None
    tokens: int
    sent: int
    received: int
    sender: str
    sender_firings: int
    receiver: str
    receiver_firings: int
