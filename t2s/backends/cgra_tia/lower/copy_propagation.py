"""Operands that a PE only hands on: multicast nets in place of chains of PEs.

A stream that a process sends exactly when it takes a token of another one, with that token as its
value, is that other stream.  Its takers become further sinks of the net, and neither instruction
nor cell is left of the handing on.  What nothing takes is not sent either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from t2s.backends.cgra_tia.lower.process import CellProcess, StreamTable, Taken, TokenStream
from t2s.backends.cgra_tia.lower.registers import Replay

_USUAL = 2
"""The room of a channel that nobody made deeper."""

_MOST_OF_USUAL = 32


class Aliases:
    """Which streams are others: ``root`` of a stream, and the room on the way to it."""

    def __init__(self, streams: StreamTable) -> None:
        self._streams = streams
        self._same: dict[TokenStream, TokenStream] = {}

    def add(self, stream: TokenStream, same: TokenStream) -> None:
        """``stream`` has the tokens of ``same``."""
        self._same[stream] = same

    def root(self, stream: TokenStream) -> TokenStream:
        """Where its tokens come from."""
        while stream in self._same:
            stream = self._same[stream]
        return stream

    def room(self, stream: TokenStream) -> int:
        """The tokens that the channels on the way from the root hold together.

        Channels with the room that all have count as far as one channel of the fabric can hold as
        much; those that were made deeper count always.
        """
        capacities = [self._streams.facts[stream.array].capacity]
        while stream in self._same:
            stream = self._same[stream]
            capacities.append(self._streams.facts[stream.array].capacity)
        deeper = sum(capacity for capacity in capacities if capacity > _USUAL)
        return max(deeper, min(sum(capacities), _MOST_OF_USUAL))


def passed_on(processes: Sequence[CellProcess], streams: StreamTable) -> Aliases:
    """Find what is handed on, and take it out of the processes."""
    aliases = Aliases(streams)
    for process in processes:
        for stream in _sent(process):
            same = _handed_on(process, stream)
            if same is not None and aliases.root(same) != stream:
                aliases.add(stream, same)
                for step in process.steps:
                    step.sends.pop(stream, None)
    return aliases


def _sent(process: CellProcess) -> list[TokenStream]:
    return list(dict.fromkeys(stream for step in process.steps for stream in step.sends))


def _handed_on(process: CellProcess, stream: TokenStream) -> TokenStream | None:
    """The stream whose tokens another one has, in every class."""
    sources: set[TokenStream] = set()
    for step in process.steps:
        if stream in step.sends:
            match step.resolved(step.sends[stream]):
                case Taken(source):
                    sources.add(source)
                case _:
                    return None
    if len(sources) != 1:
        return None
    (source,) = sources
    same = all((source in step.taken) == (stream in step.sends) for step in process.steps)
    return source if same else None


def prune(
    processes: Sequence[CellProcess],
    replays: Iterable[Replay],
    streams: StreamTable,
    aliases: Aliases,
) -> list[Replay]:
    """Drop what is sent to nobody, until all that is left is used; returns the buffers left."""
    kept = list(replays)
    while True:
        wanted = {aliases.root(stream) for stream in streams.sinks}
        wanted |= {aliases.root(replay.source) for replay in kept}
        for process in processes:
            for step in process.steps:
                wanted |= {aliases.root(stream) for stream in step.used()}
        gone = [replay for replay in kept if replay.sink not in wanted]
        kept = [replay for replay in kept if replay.sink in wanted]
        changed = bool(gone)
        for process in processes:
            for step in process.steps:
                for stream in [stream for stream in step.sends if stream not in wanted]:
                    del step.sends[stream]
                    changed = True
        if not changed:
            return kept
