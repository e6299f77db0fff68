"""A window of a run as a file for other tools: a timeline for Perfetto, waveforms as VCD.

The window is checked and cut into timelines of single cycles; the signals of every FIFO follow
from them, and each writer has a section.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.sigint import import_deferring_sigint
from t2s.core.walk import walk
from t2s.graph.body import Load, Store
from t2s.graph.nodes import Search
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import ChannelTiming, SimProgram
from t2s.simulator.report.counters import Counts
from t2s.simulator.timeline import (
    MEMORY,
    MOST_BINS,
    NO_CAUSE,
    PEState,
    Timeline,
    Window,
    checked_window,
)

MOST_CELLS = 1 << 22
"""Cycles of a recording times its PEs and FIFOs."""


def recorded_window(cycles: Window | None, of_run: int, program: SimProgram) -> Window:
    """The first and the last cycle of a recording; a first cycle of 0 means the start of the run.

    Raises ``UserError`` for a window that is not in the run or that is too large, and for a run
    without a record of what its machines did.
    """
    program.check_recorded()
    if isinstance(cycles, Sequence) and len(cycles) == 2 and cycles[0] == 0:
        cycles = (1, cycles[1])
    edges = checked_window(cycles, of_run, bins=1, pe_count=program.pe_count)
    first, last = int(edges[0]) + 1, int(edges[-1])
    most = max(1, MOST_CELLS // max(1, program.pe_count + len(program.channel_of_element)))
    if last - first + 1 > most:
        raise UserError(
            "the window is too large to be recorded",
            location=user_location(),
            expected=f"at most {most:,} cycles, for {program.pe_count:,} PEs and "
            f"{len(program.channel_of_element):,} FIFOs",
            given=f"cycles {first:,} to {last:,}, {last - first + 1:,}",
            hint=f"cycles=({first}, {first + most - 1})",
        )
    return first, last


def recorded_nodes(nodes: Sequence[str] | None, program: SimProgram) -> frozenset[str]:
    """The nodes that are recorded, all of them if none is named; ``UserError`` for unknown ones."""
    names = [timing.node.name for timing in program.nodes]
    if nodes is None:
        return frozenset(names)
    requested = [nodes] if isinstance(nodes, str) else nodes
    unknown = nodes
    if isinstance(requested, Sequence) and requested:
        missing = [name for name in requested if name not in names]
        if not missing:
            return frozenset(requested)
        unknown = missing[0]
    raise UserError(
        f"{program.graph.name!r} has no node {unknown!r} to record",
        location=user_location(),
        expected=f"some of {', '.join(names)}",
        given=repr(nodes)[:200],
    )


def touches(timing: ChannelTiming, nodes: frozenset[str]) -> bool:
    """Whether a channel begins or ends at one of the nodes."""
    return timing.channel.source in nodes or timing.channel.sink in nodes


def edges_of(first: int, last: int) -> list[Counts]:
    """The edges of timelines of single cycles, one after the other, for a window."""
    starts = range(first - 1, last, MOST_BINS)
    return [np.arange(at, min(at + MOST_BINS, last) + 1, dtype=np.int64) for at in starts]


def needed_library(name: str, what: str) -> object:
    """Import an optional library; a ``UserError`` tells what to install if it is missing."""
    try:
        return import_deferring_sigint(name)
    except ImportError:
        library = {"vcd": "pyvcd"}.get(name.partition(".")[0], name.partition(".")[0])
        raise UserError(
            f"{library} is not installed, which writes {what}",
            location=user_location(),
            expected="the extra 'trace' of t2s",
            hint="pip install 't2s-spatial[trace]'",
        ) from None


# The signals of every FIFO in every cycle of a window: valid, push, pop and occupancy.
#
# They follow from the firings: the control has the FIFOs that each firing sends to and takes from.
# A token is valid one channel latency after its firing, so signals are computed from that many
# cycles before the window on.  The run counts the tokens in each FIFO at its start.

Bits = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ChannelSignals:
    """Signals by channel element and cycle, from the first one of a window to its last one.

    ``push`` and ``pop`` are firings that send into a FIFO and take from it, ``valid`` is whether
    its receiver sees a token, and ``held`` the number of tokens in it at the start of the cycle,
    those in flight included; all of shape (elements, cycles).  ``known`` tells for each element
    whether ``valid`` is meaningful: it is not for senders that use a DRAM or shared banks, whose
    tokens arrive when the memory answers.
    """

    program: SimProgram
    first: int
    push: Bits
    pop: Bits
    valid: Bits
    held: Counts
    known: Bits


def lead_in(program: SimProgram) -> int:
    """The cycles before a window that its signals depend on."""
    return max((timing.latency for timing in program.channels), default=0)


def channel_signals(
    program: SimProgram, timelines: Sequence[Timeline], first: int
) -> ChannelSignals:
    """The signals from cycle ``first`` on.

    The timelines are of single cycles, one after the other, and begin ``lead_in`` cycles earlier,
    or with the run.
    """
    begin = timelines[0].first
    slots = np.concatenate([line.slots[:, :-1] for line in timelines], axis=1)
    steps = np.concatenate([np.diff(line.slots, axis=1) for line in timelines], axis=1)
    elements, cycles = len(program.channel_of_element), slots.shape[1]
    push, pop = np.zeros((2, elements, cycles), np.bool_)
    for pe in range(program.pe_count):
        at = np.flatnonzero(steps[pe])
        if at.size:
            _note(program, pe, at, slots[pe, at], push, pop)
    left = timelines[0].left.astype(np.int64)
    sent: Counts = np.cumsum(push, axis=1, dtype=np.int64)
    taken: Counts = np.cumsum(pop, axis=1, dtype=np.int64)
    held = left[:, None] + _shifted(sent, 1) - _shifted(taken, 1)
    latencies = program.per_element([timing.latency for timing in program.channels])
    arrived = np.zeros_like(sent)
    for latency in np.unique(latencies).tolist():
        mine = latencies == latency
        arrived[mine] = _shifted(sent[mine], latency)
    visible = left[:, None] + arrived - _shifted(taken, 1)
    window = slice(first - begin, None)
    return ChannelSignals(
        program=program,
        first=first,
        push=push[:, window],
        pop=pop[:, window],
        valid=visible[:, window] > 0,
        held=held[:, window],
        known=_known(program),
    )


def _shifted(counts: Counts, cycles: int) -> Counts:
    """Counts delayed by some cycles; 0 before the first one."""
    shifted = np.zeros_like(counts)
    if cycles < counts.shape[1]:
        shifted[:, cycles:] = counts[:, : counts.shape[1] - cycles]
    return shifted


def _note(program: SimProgram, pe: int, at: Counts, slots: Counts, push: Bits, pop: Bits) -> None:
    """Record the tokens of a PE's slots, given the cycles of its steps."""
    control = program.control
    codes = _codes(program, pe, slots)
    for code in np.unique(codes).tolist():
        row = control.rows[int(control.row_start[pe]) + code]
        begin, middle, end = (int(row[column]) for column in (USES_BEGIN, RECEIVES_END, USES_END))
        cycles = at[codes == code]
        received, sent = control.uses[begin:middle], control.uses[middle:end]
        pop[np.ix_(received[control.taken[begin:middle]], cycles)] = True
        push[np.ix_(sent, cycles)] = True


def _codes(program: SimProgram, pe: int, slots: Counts) -> Counts:
    """The codes of some slots of a PE, by their numbers."""
    if program.trace is not None and pe in program.trace.codes:
        return np.asarray(program.trace.codes[pe].expanded, np.int64)[slots]
    return program.control.orders[int(program.control.order_of[pe])].at(slots)


def _known(program: SimProgram) -> Bits:
    """Whether a channel's latency alone determines when its tokens arrive."""
    timed = program.timed_places
    places = {tensor.name: tensor.place for tensor in program.graph.tensors}
    waits: dict[str, bool] = {}
    for node in program.graph.nodes:
        used = {term.tensor for term in walk(node) if isinstance(term, Load | Store | Search)}
        waits[node.name] = any(places[tensor] in timed for tensor in used)
    known = [not waits[timing.channel.source] for timing in program.channels]
    return np.array(known, np.bool_)[program.channel_of_element]


# A window of a run as a trace for ui.perfetto.dev, in its own protobuf format.
#
# A track for each PE, below one for its node, has a slice for every stretch of cycles in which the
# PE is busy, waiting, starved or blocked; idle cycles are gaps.  A busy slice says how many firings
# it is and the number of the first one (from 0), a starved or blocked one the cause of the wait.  A
# track for each channel counts the tokens that are sent and not yet received.
#
# A cycle is a nanosecond of the trace: cycle ``c`` goes from ``c`` ns to ``c + 1`` ns.

SEQUENCE = 1
FIRINGS, FIRST_FIRING, WAITS_FOR = "firings", "first firing", "waits for"
_ANNOTATIONS = (FIRINGS, FIRST_FIRING, WAITS_FOR)
_GROUPS = "channels"


class PerfettoTrace:
    """Writes the packets of a trace."""

    def __init__(self, program: SimProgram, nodes: frozenset[str]) -> None:
        self.nodes = nodes
        library: Any = needed_library("perfetto.trace_builder.proto_builder", "Perfetto's traces")
        messages: Any = needed_library(
            "perfetto.protos.perfetto.trace.perfetto_trace_pb2", "Perfetto's traces"
        )
        self.program = program
        self.event, self.track, self.packet = (
            messages.TrackEvent,
            messages.TrackDescriptor,
            messages.TracePacket,
        )
        self.content = BytesIO()
        self.builder = library.StreamingTraceProtoBuilder(self.content)
        self.causes = ["memory", *(timing.channel.name for timing in program.channels)]

    def write(self, timelines: Sequence[Timeline]) -> bytes:
        """The trace of timelines of single cycles, one after the other."""
        self._names()
        pes, channels = self._tracks()
        for pe, track in pes.items():
            for piece in _pieces(timelines, pe):
                self._slice(track, *piece)
        for number, track in channels.items():
            self._counter(track, timelines, number)
        return self.content.getvalue()

    def _new(self, flags: int) -> Any:
        packet = self.builder.create_packet()
        packet.trusted_packet_sequence_id = SEQUENCE
        packet.sequence_flags = flags
        return packet

    def _names(self) -> None:
        """The texts that events name by number, in the first packet."""
        packet = self._new(self.packet.SEQ_INCREMENTAL_STATE_CLEARED)
        packet.first_packet_on_sequence = True
        for state in PEState:
            packet.interned_data.event_names.add(iid=state + 1, name=state.name.lower())
        for number, name in enumerate(_ANNOTATIONS, 1):
            packet.interned_data.debug_annotation_names.add(iid=number, name=name)
        for number, name in enumerate(self.causes, 1):
            packet.interned_data.debug_annotation_string_values.add(iid=number, str=name.encode())
        self.builder.write_packet(packet)

    def _tracks(self) -> tuple[dict[int, int], dict[int, int]]:
        """Declares all tracks: by the number of a PE, and by that of a channel."""
        pes: dict[int, int] = {}
        count = 0

        def declared(name: str, parent: int, rank: int) -> Any:
            nonlocal count
            count += 1
            packet = self._new(self.packet.SEQ_NEEDS_INCREMENTAL_STATE)
            track = packet.track_descriptor
            track.uuid, track.name, track.sibling_order_rank = count, name, rank
            if parent:
                track.parent_uuid = parent
            track.child_ordering = self.track.EXPLICIT
            return packet

        root = declared(self.program.graph.name, 0, 0)
        self.builder.write_packet(root)
        for rank, timing in enumerate(self.program.nodes):
            if timing.node.name not in self.nodes:
                continue
            group = declared(timing.node.name, 1, rank)
            self.builder.write_packet(group)
            inside = group.track_descriptor.uuid
            for place in range(timing.pe_count):
                label = self.program.pe_label(timing.first + place)
                self.builder.write_packet(declared(label, inside, place))
                pes[timing.first + place] = count
        group = declared(_GROUPS, 1, len(self.program.nodes))
        self.builder.write_packet(group)
        inside = count
        channels: dict[int, int] = {}
        for rank, channel in enumerate(self.program.channels):
            if not touches(channel, self.nodes):
                continue
            packet = declared(channel.channel.name, inside, rank)
            packet.track_descriptor.counter.unit_name = "tokens"
            self.builder.write_packet(packet)
            channels[rank] = count
        return pes, channels

    def _slice(
        self, track: int, state: int, cause: int, first: int, last: int, firing: int
    ) -> None:
        packet = self._new(self.packet.SEQ_NEEDS_INCREMENTAL_STATE)
        packet.timestamp = first
        event = packet.track_event
        event.type, event.track_uuid = self.event.TYPE_SLICE_BEGIN, track
        event.name_iid = state + 1
        if state == PEState.BUSY:
            event.debug_annotations.add(name_iid=1, uint_value=last - first + 1)
            event.debug_annotations.add(name_iid=2, uint_value=firing)
        elif cause != NO_CAUSE:
            text = 1 if cause == MEMORY else cause + 2
            event.debug_annotations.add(name_iid=3, string_value_iid=text)
        self.builder.write_packet(packet)
        packet = self._new(self.packet.SEQ_NEEDS_INCREMENTAL_STATE)
        packet.timestamp = last + 1
        packet.track_event.type = self.event.TYPE_SLICE_END
        packet.track_event.track_uuid = track
        self.builder.write_packet(packet)

    def _counter(self, track: int, timelines: Sequence[Timeline], channel: int) -> None:
        """Tokens at the beginning of the window, and wherever there are others after a cycle."""
        before = -1
        for line in timelines:
            for edge, held in zip(line.edges.tolist(), line.held[channel].tolist(), strict=True):
                if held == before:
                    continue
                packet = self._new(self.packet.SEQ_NEEDS_INCREMENTAL_STATE)
                packet.timestamp = edge + 1
                packet.track_event.type = self.event.TYPE_COUNTER
                packet.track_event.track_uuid = track
                packet.track_event.counter_value = held
                self.builder.write_packet(packet)
                before = held


def _pieces(timelines: Sequence[Timeline], pe: int) -> Iterator[tuple[int, int, int, int, int]]:
    """The non-idle stretches of a PE: state, cause, first and last cycle, first firing."""
    states = np.concatenate([line.cycles[:, pe].argmax(axis=0) for line in timelines])
    causes = np.concatenate([line.causes[pe] for line in timelines])
    start, firing = timelines[0].first, int(timelines[0].before[pe])
    firings: Counts = firing + np.concatenate([[0], np.cumsum(states == PEState.BUSY)])
    ends = np.flatnonzero((np.diff(states) != 0) | (np.diff(causes) != 0)) + 1
    bounds = [0, *ends.tolist(), len(states)]
    for first, end in pairwise(bounds):
        state = int(states[first])
        if state != PEState.IDLE:
            cause = int(causes[first])
            yield state, cause, start + first, start + end - 1, int(firings[first])


def perfetto_trace(
    program: SimProgram, timelines: Sequence[Timeline], path: Path, nodes: frozenset[str]
) -> bytes:
    """The content of a trace file about some nodes; compressed if its name ends with ``.gz``."""
    content = PerfettoTrace(program, nodes).write(timelines)
    return gzip.compress(content, mtime=0) if path.suffix == ".gz" else content


# A window of a run as waveforms, in VCD: the signals of every FIFO.
#
# A scope for each channel, or for each FIFO of a channel that is an array, has the wires ``valid``
# (the receiver sees a token), ``push`` (a firing sends), ``pop`` (a firing takes) and the vector
# ``occupancy`` (tokens in the FIFO, those on their way included).  Cycle ``c`` begins at ``c``
# times ``CYCLE_TIME``, as in the waveforms of ``t2s.verilate``.  ``valid`` is ``x`` for tokens that
# arrive when the memory answers.

CYCLE_TIME = 10
"""Nanoseconds per cycle in the file: a round number, to convert times to cycles at sight."""

_PLAIN = "!#&'()*+,-/:;<=>?@[]^_{|}~."


def vcd_name(name: str) -> str:
    """A name without spaces and control characters, unique for each name."""
    return quote(name, safe=_PLAIN)


def vcd_of(
    program: SimProgram, timelines: Sequence[Timeline], first: int, nodes: frozenset[str]
) -> bytes:
    """The channels of some nodes from cycle ``first`` on; see ``channel_signals``."""
    library: Any = needed_library("vcd.writer", "VCD files")
    signals = channel_signals(program, timelines, first)
    text = StringIO()
    writer = library.VCDWriter(
        text,
        timescale="1 ns",
        date="",
        version="t2s",
        comment=f"cycle c begins at {CYCLE_TIME} c ns",
        init_timestamp=CYCLE_TIME * first,
    )
    changes: list[tuple[int, int, Any, Any]] = []
    for number, channel in enumerate(program.channel_of_element.tolist()):
        if not touches(program.channels[channel], nodes):
            continue
        for order, (name, values) in enumerate(_values(signals, number)):
            changes += _changes(writer, signals, number, 4 * number + order, name, values)
    changes.sort(key=lambda change: change[:2])
    for cycle, _, variable, value in changes:
        writer.change(variable, CYCLE_TIME * cycle, value)
    writer.close(CYCLE_TIME * (first + signals.push.shape[1]))
    return text.getvalue().encode()


def element_scope(program: SimProgram, number: int) -> str:
    """The scope of a channel element: its channel, with its index if there are several."""
    timing = program.channels[int(program.channel_of_element[number])]
    name = vcd_name(timing.channel.name)
    if not timing.channel.shape:
        return name
    index = np.unravel_index(number - timing.first, timing.channel.shape)
    return f"{name}[{','.join(str(int(at)) for at in index)}]"


def _values(signals: ChannelSignals, number: int) -> list[tuple[str, np.ndarray]]:
    return [
        ("valid", signals.valid[number]),
        ("push", signals.push[number]),
        ("pop", signals.pop[number]),
        ("occupancy", signals.held[number]),
    ]


def _changes(
    writer: Any,
    signals: ChannelSignals,
    number: int,
    order: int,
    name: str,
    values: np.ndarray,
) -> list[tuple[int, int, Any, Any]]:
    """Registers a signal of an element; cycle, order, variable and value of its changes."""
    program = signals.program
    scope = (vcd_name(program.graph.name), element_scope(program, number))
    wide = name == "occupancy"
    unknown = name == "valid" and not signals.known[number]
    size = max(1, int(values.max(initial=0)).bit_length()) if wide else 1
    start = "x" if unknown else int(values[0])
    variable = writer.register_var(scope, name, "wire", size=size, init=start)
    if unknown:
        return []
    at = np.flatnonzero(np.diff(values.astype(np.int64))) + 1
    return [(signals.first + n, order, variable, int(values[n])) for n in at.tolist()]
