"""The limits of the emitted hardware: the largest latencies, capacities and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from t2s.backends.base import ChannelTimes, DeviceTimes
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor, TensorRole

OPEN_LENGTH = 1 << 16
"""Elements of a tensor whose length is known only when a design runs, where nothing is said."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The largest sizes that the emitted files have room for.

    Attributes
    ----------
    channels: the largest latency and capacity of every channel.
    lengths: for the testbench, the elements of tensors whose length is known only at run time;
        ``OPEN_LENGTH`` for those that are not listed.
    """

    channels: Mapping[str, ChannelTimes] = field(default_factory=dict)
    lengths: Mapping[str, int] = field(default_factory=dict)

    def length(self, tensor: Tensor) -> int:
        """The elements of a tensor for which the testbench has room."""
        if tensor.open:
            return self.lengths.get(tensor.name, OPEN_LENGTH)
        return prod(tensor.allocated)


def timing_of(graph: Graph) -> DeviceTimes:
    """A device without latencies: channels are as the graph says, and nodes have an II of 1."""
    return DeviceTimes(
        intervals={node.name: 1 for node in graph.nodes},
        channels={
            channel.name: ChannelTimes(latency=channel.latency, capacity=channel.capacity)
            for channel in graph.channels
        },
    )


def largest(
    *timings: DeviceTimes, graph: Graph | None = None, inputs: Mapping[str, Array] | None = None
) -> Bounds:
    """Bounds with room for all of these timings, and for these inputs of a graph."""
    names = timings[0].channels
    return Bounds(
        channels={
            name: ChannelTimes(
                latency=max(timing.channels[name].latency for timing in timings),
                capacity=max(timing.channels[name].capacity for timing in timings),
            )
            for name in names
        },
        lengths={} if graph is None or inputs is None else _lengths(graph, inputs),
    )


def _lengths(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Lengths of open tensors: those of inputs, and for results a generous multiple."""
    most = max(OPEN_LENGTH, 4 * sum(array.size for array in inputs.values()))
    return {
        tensor.name: max(1, len(inputs[tensor.array])) if tensor.role is TensorRole.INPUT else most
        for tensor in graph.tensors
        if tensor.open
    }
