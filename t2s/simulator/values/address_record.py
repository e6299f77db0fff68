"""What machines put into channels of addresses, taken out as a run goes on.

Nothing takes the tokens of such a channel, so its rings would grow with the run: with 16 addresses
a vector, of which a few are there, to gigabytes.  Taken out now and then, they are kept small
(``memory.lane_addresses``), and the rings stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.types import Type
from t2s.graph.graph import Graph
from t2s.simulator.memory.lane_addresses import (
    Addresses,
    LaneRows,
    lane_addresses,
    lane_rows,
    narrowed,
)
from t2s.simulator.values.layout import TokenLayout, ValueLayout
from t2s.simulator.values.state import RunState

MOST_ADDRESSES = 1 << 29
"""Addresses of one machine array that are kept: 2 GB of them in 32 bits."""

_RING_BYTES = 1 << 25
_MOST_SLOTS = 1 << 13


def depths_of_record(graph: Graph, layout: ValueLayout, record: Sequence[str]) -> dict[str, int]:
    """Capacities of the channels to record: many tokens in a memory of some megabytes."""
    bytes = sum(graph.channel(name).element_count * layout.tokens[name].stride for name in record)
    depth = layout.depth
    while 2 * depth <= _MOST_SLOTS and 2 * depth * bytes <= _RING_BYTES:
        depth *= 2
    return dict.fromkeys(record, depth)


class AddressRecord:
    """Takes the tokens out of the channels to record, which have nesting 0."""

    def __init__(
        self, graph: Graph, layout: ValueLayout, state: RunState, record: Sequence[str]
    ) -> None:
        self._layout, self._state = layout, state
        self._channels = [_RecordedChannel(graph, layout, name) for name in record]

    def take(self, *, all: bool = True) -> bool:
        """Take all tokens, unless no ring is nearly full and not ``all`` are wanted; if any."""
        taken = False
        for channel in self._channels:
            heads = self._state.get(self._layout.heads(channel.name)).reshape(-1)
            tails = self._state.get(self._layout.tails(channel.name)).reshape(-1)
            slots = int(self._state.get(self._layout.ring(channel.name))[1])
            waiting = tails - heads
            if not (all and waiting.any()) and not (2 * waiting >= slots).any():
                continue
            ring = self._state.ring(channel.name)
            for place in np.flatnonzero(waiting).tolist():
                channel.take(ring[place], slots, place, int(heads[place]), int(tails[place]))
            heads[:] = tails
            taken = True
        return taken

    def result(self) -> dict[str, tuple[Addresses, ...]]:
        """All that the machines put into each channel, by its elements."""
        self.take()
        return {channel.name: channel.result() for channel in self._channels}


class _RecordedChannel:
    """What was taken out of a channel so far."""

    def __init__(self, graph: Graph, layout: ValueLayout, name: str) -> None:
        channel = graph.channel(name)
        self.name, self._machine = name, channel.source
        self._type: Type = channel.stream.element
        self._token: TokenLayout = layout.tokens[name]
        self._vectors: list[list[LaneRows]] = [[] for _ in range(channel.element_count)]
        self._scalars: list[list[Array]] = [[] for _ in range(channel.element_count)]
        self._count = 0

    def take(self, ring: Array, slots: int, place: int, head: int, tail: int) -> None:
        """The tokens from one number on up to another one, of one element."""
        first, end = head % slots, head % slots + (tail - head)
        self._keep(ring, place, first, min(end, slots))
        if end > slots:
            self._keep(ring, place, 0, end - slots)

    def _keep(self, ring: Array, place: int, first: int, end: int) -> None:
        token, type = self._token, self._type
        slots = ring.reshape(-1, token.stride)[first:end]
        values = slots[:, token.value : token.value + type.bytes].view(type.scalar.numpy)
        if type.lanes > 1:
            rows = lane_rows(values)
            self._vectors[place].append(rows)
            self._count += len(rows.addresses)
        else:
            self._scalars[place].append(narrowed(values[:, 0]))
            self._count += len(values)
        if self._count > MOST_ADDRESSES:
            raise _too_much(self._machine)

    def result(self) -> tuple[Addresses, ...]:
        """What each element was sent."""
        lanes = self._type.lanes
        if lanes > 1:
            return tuple(lane_addresses(lanes, parts) for parts in self._vectors)
        nothing = np.zeros(0, np.int32)
        return tuple(np.concatenate([nothing, *parts]) for parts in self._scalars)


def _too_much(machine: str) -> UserError:
    return UserError(
        f"{machine!r} accesses memory too often to list its addresses",
        location=user_location(),
        expected=f"at most {MOST_ADDRESSES:,} addresses of one machine array",
        given="more",
        hint='simulate a smaller problem, or with memory="ideal"',
    )
