"""The numbers that say when the emitted hardware does what: latencies, capacities, intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from t2s.graph.graph import Graph


@dataclass(frozen=True, kw_only=True)
class ChannelTiming:
    """A channel: cycles from a firing that sends until its token is ready, and tokens it holds.

    Both include the pipeline of the sender.
    """

    latency: int
    capacity: int


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A device, as the hardware sees it.

    Attributes
    ----------
    intervals: the initiation interval of every node, in cycles.
    channels: by name.
    memory_rate: bytes per cycle that all load and store units share; ``None`` is unlimited.
    store_latency: cycles from the firing of a store until it is complete.
    """

    intervals: Mapping[str, int]
    channels: Mapping[str, ChannelTiming]
    memory_rate: Fraction | None = None
    store_latency: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalling:
    """Pseudo-random stalls of load and store units: see ``t2s.RandomStalls``."""

    seed: int
    one_in: int


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The largest latency and capacity of every channel that the emitted FIFOs have room for."""

    channels: Mapping[str, ChannelTiming] = field(default_factory=dict)


def timing_of(graph: Graph) -> Timing:
    """A device without latencies: channels are as the graph says, and nodes have an II of 1."""
    return Timing(
        intervals={node.name: 1 for node in graph.nodes},
        channels={
            channel.name: ChannelTiming(latency=channel.latency, capacity=channel.capacity)
            for channel in graph.channels
        },
    )


def largest(*timings: Timing) -> Bounds:
    """Room for all of these timings."""
    names = timings[0].channels
    return Bounds(
        channels={
            name: ChannelTiming(
                latency=max(timing.channels[name].latency for timing in timings),
                capacity=max(timing.channels[name].capacity for timing in timings),
            )
            for name in names
        }
    )
