"""The numbers that say when the emitted hardware does what: latencies, capacities, intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor, TensorRole


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


OPEN_LENGTH = 1 << 16
"""Elements of a tensor whose length is known only when a design runs, where nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The largest sizes that the emitted files have room for.

    Attributes
    ----------
    channels: the largest latency and capacity of every channel.
    lengths: the elements of tensors whose length is known only when the design runs, for the
        testbench; ``OPEN_LENGTH`` of those that are not named.
    """

    channels: Mapping[str, ChannelTiming] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)

    def length(self, tensor: Tensor) -> int:
        """The elements that the testbench holds of a tensor."""
        if tensor.open:
            return self.lengths.get(tensor.name, OPEN_LENGTH)
        return prod(tensor.allocated)


def timing_of(graph: Graph) -> Timing:
    """A device without latencies: channels are as the graph says, and nodes have an II of 1."""
    return Timing(
        intervals={node.name: 1 for node in graph.nodes},
        channels={
            channel.name: ChannelTiming(latency=channel.latency, capacity=channel.capacity)
            for channel in graph.channels
        },
    )


def largest(
    *timings: Timing, graph: Graph | None = None, inputs: Mapping[str, Array] | None = None
) -> Bounds:
    """Room for all of these timings, and for these inputs of a graph."""
    names = timings[0].channels
    return Bounds(
        channels={
            name: ChannelTiming(
                latency=max(timing.channels[name].latency for timing in timings),
                capacity=max(timing.channels[name].capacity for timing in timings),
            )
            for name in names
        },
        lengths={} if graph is None or inputs is None else _lengths(graph, inputs),
    )


def _lengths(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Room for inputs as they are; results are not expected to be many times as long."""
    most = max(OPEN_LENGTH, 4 * sum(array.size for array in inputs.values()))
    return {
        tensor.name: max(1, len(inputs[tensor.array])) if tensor.role is TensorRole.INPUT else most
        for tensor in graph.tensors
        if tensor.open
    }
