"""Waveforms and traces read back."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from vcd.reader import TokenKind, tokenize


@dataclass
class ReadWaves:
    """Changes of every signal by its full name: (time, value); a value is a number or a letter."""

    changes: dict[str, list[tuple[int, int | str]]] = field(default_factory=dict)
    end: int = 0

    def at(self, name: str, time: int) -> int | str | None:
        """The value of a signal at a time; ``None`` before it has one."""
        found: int | str | None = None
        for when, value in self.changes[name]:
            if when > time:
                break
            found = value
        return found

    def sampled(self, name: str, times: range) -> list[int | str | None]:
        """The values of a signal at some times, in order."""
        changes, at, value = self.changes[name], 0, None
        found: list[int | str | None] = []
        for time in times:
            while at < len(changes) and changes[at][0] <= time:
                value = changes[at][1]
                at += 1
            found.append(value)
        return found


def read_vcd(path: Path) -> ReadWaves:
    """A VCD file, by the reader of the library; ``$dumpoff`` and the like are passed over."""
    found = ReadWaves()
    names: dict[str, list[str]] = {}
    scope: list[str] = []
    time = 0
    with path.open("rb") as file:
        for token in tokenize(file):
            match token.kind:
                case TokenKind.SCOPE:
                    scope.append(token.scope.ident)
                case TokenKind.UPSCOPE:
                    scope.pop()
                case TokenKind.VAR:
                    index = token.var.bit_index
                    reference = token.var.reference
                    if isinstance(index, int):
                        reference += f"[{index}]"
                    name = ".".join([*scope, reference])
                    names.setdefault(token.var.id_code, []).append(name)
                    found.changes[name] = []
                case TokenKind.CHANGE_TIME:
                    time = found.end = int(token.time_change)
                case TokenKind.CHANGE_SCALAR:
                    _note(found, names, token.scalar_change, time)
                case TokenKind.CHANGE_VECTOR:
                    _note(found, names, token.vector_change, time)
                case _:
                    pass
    return found


def _note(found: ReadWaves, names: dict[str, list[str]], change: Any, time: int) -> None:
    value = change.value
    value = int(value) if re.fullmatch(r"\d+", str(value)) else str(value)
    for name in names[change.id_code]:
        found.changes[name].append((time, value))


@dataclass(frozen=True)
class ReadSlice:
    """A slice of a track: its name, first and last cycle, and what is noted of it."""

    name: str
    first: int
    last: int
    notes: dict[str, int | str]


@dataclass
class ReadTrace:
    """Tracks by their full names, slices by track, and counters as (time, value)."""

    slices: dict[str, list[ReadSlice]] = field(default_factory=dict)
    counters: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


def read_trace(path: Path) -> ReadTrace:
    """A trace of Perfetto, by the messages of its library."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    found, names, tracks = ReadTrace(), {}, {}
    annotations: dict[int, str] = {}
    texts: dict[int, str] = {}
    begun: dict[int, Any] = {}
    for packet in Trace.FromString(content).packet:
        names |= {one.iid: one.name for one in packet.interned_data.event_names}
        annotations |= {one.iid: one.name for one in packet.interned_data.debug_annotation_names}
        strings = packet.interned_data.debug_annotation_string_values
        texts |= {one.iid: one.str.decode() for one in strings}
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            parent = tracks.get(track.parent_uuid, "")
            tracks[track.uuid] = f"{parent}/{track.name}"
            if track.HasField("counter"):
                found.counters[tracks[track.uuid]] = []
            continue
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in begun
            begun[event.track_uuid] = packet
        elif event.type == TrackEvent.TYPE_SLICE_END:
            start = begun.pop(event.track_uuid)
            notes = {
                annotations[one.name_iid]: texts[one.string_value_iid]
                if one.HasField("string_value_iid")
                else one.uint_value
                for one in start.track_event.debug_annotations
            }
            name = names[start.track_event.name_iid]
            one = ReadSlice(name, start.timestamp, packet.timestamp - 1, notes)
            found.slices.setdefault(tracks[event.track_uuid], []).append(one)
        else:
            value = (packet.timestamp, event.counter_value)
            found.counters[tracks[event.track_uuid]].append(value)
    assert not begun
    return found


def states_of(slices: list[ReadSlice], first: int, last: int) -> np.ndarray:
    """The names of the slices of a track, cycle by cycle; ``idle`` between them."""
    found = np.full(last - first + 1, "idle", dtype="<U8")
    for one in slices:
        assert first <= one.first <= one.last <= last
        assert (found[one.first - first : one.last - first + 1] == "idle").all()
        found[one.first - first : one.last - first + 1] = one.name
    return found
