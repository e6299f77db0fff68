"""Copy propagation: multicast nets in place of chains of PEs that hand operands on.

A stream into which a process sends exactly when it takes a token of another stream, with that
token as its value, is an alias of the other stream.  Its readers become further sinks of that
net, and no instruction or cell is left for the copy.  Streams without readers are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from t2s.backends.cgra_tia.lower.process import CellProcess, StreamTable, Taken, TokenStream
from t2s.backends.cgra_tia.lower.registers import Replay

_USUAL = 2
"""The room of a channel that nobody made deeper."""

_MOST_OF_USUAL = 32


class Aliases:
    """The streams that are aliases of others, and the capacity of the channels in between."""

    def __init__(self, streams: StreamTable) -> None:
        self._streams = streams
        self._same: dict[TokenStream, TokenStream] = {}

    def add(self, stream: TokenStream, same: TokenStream) -> None:
        """Note that ``stream`` carries the tokens of ``same``."""
        self._same[stream] = same

    def root(self, stream: TokenStream) -> TokenStream:
        """The stream that its tokens originate from."""
        while stream in self._same:
            stream = self._same[stream]
        return stream

    def room(self, stream: TokenStream) -> int:
        """The tokens that the channels from the root to the stream hold together.

        Channels of default capacity count up to what one channel of the fabric can hold; channels
        that were made deeper always count.
        """
        capacities = [self._streams.facts[stream.array].capacity]
        while stream in self._same:
            stream = self._same[stream]
            capacities.append(self._streams.facts[stream.array].capacity)
        deeper = sum(capacity for capacity in capacities if capacity > _USUAL)
        return max(deeper, min(sum(capacities), _MOST_OF_USUAL))


def passed_on(processes: Sequence[CellProcess], streams: StreamTable) -> Aliases:
    """Find copies, and remove them from the processes."""
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
    """The stream that another one copies in every class."""
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
    """Drop streams without readers until all are used; returns the buffers that remain."""
    remaining = list(replays)
    while True:
        read = {aliases.root(stream) for stream in streams.sinks}
        read |= {aliases.root(replay.source) for replay in remaining}
        for process in processes:
            for step in process.steps:
                read |= {aliases.root(stream) for stream in step.used()}
        gone = [replay for replay in remaining if replay.sink not in read]
        remaining = [replay for replay in remaining if replay.sink in read]
        changed = bool(gone)
        for process in processes:
            for step in process.steps:
                for stream in [stream for stream in step.sends if stream not in read]:
                    del step.sends[stream]
                    changed = True
        if not changed:
            return remaining
