"""A window of a run as a trace for ui.perfetto.dev, in its own protobuf format.

A track for each PE, below one for its node, has a slice for every stretch of cycles in which the PE
is busy, waiting, starved or blocked; idle cycles are gaps.  A busy slice says how many firings it
is and the number of the first one (from 0), a starved or blocked one what the PE waits for.  A
track for each channel counts the tokens that are sent and not yet received.

A cycle is a nanosecond of the trace: cycle ``c`` goes from ``c`` ns to ``c + 1`` ns.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.recording.recorded_window import needed_library, touches
from t2s.simulator.report.tally import Counts
from t2s.simulator.timeline import MEMORY, NO_CAUSE, PEState, Timeline

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
    """Stretches of a PE that are not idle: state, cause, first and last cycle, first firing."""
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
    """What to write into a file about some nodes; compressed if its name ends with ``.gz``."""
    content = PerfettoTrace(program, nodes).write(timelines)
    return gzip.compress(content, mtime=0) if path.suffix == ".gz" else content
