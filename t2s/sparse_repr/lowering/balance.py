"""Capacities of channels that join ways of different length.

A stream often reaches a block on two ways, as the coordinates that a reducer takes beside the
values that were computed at them.  The tokens of the short way wait until those of the long way
arrive: its channel has to hold one for every cycle that the long way takes more, or the long way is
never full.  (The channels of papers/001 have no bounds.)
"""

from __future__ import annotations

from dataclasses import replace
from graphlib import TopologicalSorter

from t2s.graph.graph import Channel, Graph, StreamKind

LOOK_AHEAD = 1
"""Cycles for which a block may hold a token until it has seen the next one."""


def balanced(graph: Graph) -> Graph:
    """The same graph; a channel on a short way holds more, by the cycles of the longest beside it.

    The graph has no cycles, other than from a node to itself and through the wishes of an
    intersecter that skips.
    """
    channels = [
        channel
        for channel in graph.channels
        if channel.source != channel.sink and channel.stream.kind is not StreamKind.CONTROL
    ]
    into: dict[str, list[Channel]] = {node.name: [] for node in graph.nodes}
    for channel in channels:
        into[channel.sink].append(channel)
    start = dict.fromkeys(into, 0)
    sources = {name: {channel.source for channel in found} for name, found in into.items()}
    for name in TopologicalSorter(sources).static_order():
        start[name] = max(
            (start[one.source] + one.latency + LOOK_AHEAD for one in into[name]), default=0
        )
    waits = {
        one.name: start[one.sink] - start[one.source] - one.latency - LOOK_AHEAD for one in channels
    }
    return replace(
        graph,
        channels=tuple(
            replace(one, capacity=one.capacity + waits.get(one.name, 0)) for one in graph.channels
        ),
    )
