"""``SimProgram``: a checked graph on a device, as flat integer arrays.

``build_program`` does everything that can be done before cycle 0: it checks inputs, parameters,
addresses and channel elements, takes latencies from the device, computes the initiation interval
of every node, and encodes the control of every firing.  Engines only run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.expr import Expr, Parameter
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.core.walk import walk
from t2s.graph.analysis import datapath_latencies, memory_bytes, recurrences
from t2s.graph.body import Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.graph import Channel, Graph
from t2s.graph.inputs import check_graph_inputs, check_parameters
from t2s.graph.machine_analysis import (
    loads_from_memory,
    machine_latencies,
    machine_recurrences,
    most_bytes,
)
from t2s.graph.nodes import Machine, Node, Register
from t2s.graph.verify import verify_graph
from t2s.simulator.devices import Device, find_device
from t2s.simulator.flatten import Control, flatten


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The initiation interval of a node, in cycles, and what sets it.

    ``register`` is the recurrence that sets it, with its ``latency`` in cycles and
    ``distance`` in firings; ``moved_bytes`` is
    what one firing moves if the memory port sets it.  Both are ``None`` for an interval of 1.
    """

    cycles: int
    register: Register | None = None
    latency: int = 0
    distance: int = 1
    moved_bytes: int | None = None
    port_bytes: int | None = None

    @property
    def location(self) -> SourceLocation | None:
        """The user's line of the recurrence, where one sets the interval."""
        return self.register.location if self.register is not None else None

    def __str__(self) -> str:
        if self.register is not None:
            return (
                f"II {self.cycles}: recurrence through {self.register.name!r}, latency "
                f"{self.latency} at distance {self.distance}"
            )
        if self.moved_bytes is not None:
            return (
                f"II {self.cycles}: memory port, {self.moved_bytes} bytes per firing at "
                f"{self.port_bytes} bytes per cycle"
            )
        return f"II {self.cycles}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTiming:
    """A node of the program: its PEs are instances ``first`` to ``first + pe_count - 1``.

    ``loads``: the node waits for memory to load, so that the wait is starvation.
    """

    node: Node
    first: int
    interval: Interval
    loads: bool

    @property
    def pe_count(self) -> int:
        """Number of instances: the points of the space domain, with and without a PE."""
        return self.node.place_count

    @property
    def instances(self) -> slice:
        """The positions of the node's PEs among all PEs of the program."""
        return slice(self.first, self.first + self.pe_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTiming:
    """A channel on this device: its FIFOs are elements ``first`` to ``first + count - 1``.

    ``latency`` and ``capacity`` include ``datapath``, the latency of the sender's datapath.
    """

    channel: Channel
    first: int
    datapath: int

    @property
    def latency(self) -> int:
        """Cycles from a send's firing until its token is ready."""
        return self.channel.latency + self.datapath

    @property
    def capacity(self) -> int:
        """Tokens that one element holds, those in the sender's pipeline included."""
        return self.channel.capacity + self.datapath

    @property
    def elements(self) -> slice:
        """The positions of the channel's elements among all elements of the program."""
        return slice(self.first, self.first + self.channel.element_count)


@dataclass(frozen=True, kw_only=True)
class SimProgram:
    """A graph ready to run.  ``inputs`` is ``None`` where only times are wanted."""

    graph: Graph
    device: Device
    inputs: Mapping[str, Array] | None
    parameters: Mapping[str, Array]
    nodes: tuple[NodeTiming, ...]
    channels: tuple[ChannelTiming, ...]
    control: Control

    @property
    def pe_count(self) -> int:
        """Number of PEs of all nodes."""
        return len(self.control.firings)

    @property
    def total_firings(self) -> int:
        """Firings of all PEs in a complete run."""
        return int(self.control.firings.sum())

    @property
    def memory_rate(self) -> Fraction | None:
        """Shared memory bandwidth in bytes per cycle; ``None`` is unlimited."""
        return self.device.memory_bytes_per_cycle

    @cached_property
    def intervals(self) -> NDArray[np.int64]:
        """The initiation interval of every PE, in cycles."""
        counts = [node.pe_count for node in self.nodes]
        return np.repeat([node.interval.cycles for node in self.nodes], counts).astype(np.int64)

    @cached_property
    def loads(self) -> NDArray[np.bool_]:
        """Whether each PE is one of a node that loads."""
        counts = [node.pe_count for node in self.nodes]
        return np.repeat([node.loads for node in self.nodes], counts).astype(np.bool_)

    @cached_property
    def channel_of_element(self) -> NDArray[np.int64]:
        """The position of the channel of every element."""
        counts = [channel.channel.element_count for channel in self.channels]
        return np.repeat(np.arange(len(counts)), counts).astype(np.int64)

    def per_element(self, values: list[int]) -> NDArray[np.int64]:
        """One value per channel, repeated for its elements."""
        return np.asarray(values, np.int64)[self.channel_of_element]

    def node_of(self, instance: int) -> NodeTiming:
        """The node that a PE belongs to."""
        return next(node for node in self.nodes if node.first <= instance < node.instances.stop)

    def pe_label(self, instance: int) -> str:
        """The name of a PE: the node's, with the point of its space domain."""
        timing = self.node_of(instance)
        if not timing.node.space:
            return timing.node.name
        shape = tuple(dimension.extent for dimension in timing.node.space)
        offsets = np.unravel_index(instance - timing.first, shape)
        point = (int(o) + d.minimum for o, d in zip(offsets, timing.node.space, strict=True))
        return f"{timing.node.name}[{', '.join(str(value) for value in point)}]"

    def element_label(self, element: int) -> str:
        """The name of a channel element: the channel's, with its index."""
        timing = self.channels[int(self.channel_of_element[element])]
        if not timing.channel.shape:
            return timing.channel.name
        index = np.unravel_index(element - timing.first, timing.channel.shape)
        return f"{timing.channel.name}[{', '.join(str(int(value)) for value in index)}]"

    def with_capacities(self, capacities: Mapping[str, int]) -> SimProgram:
        """The same program, times only, with other capacities (in tokens) for some channels."""
        channels = tuple(
            replace(t, channel=replace(t.channel, capacity=capacities[t.channel.name]))
            if t.channel.name in capacities
            else t
            for t in self.channels
        )
        return replace(self, channels=channels, inputs=None)


def build_program(
    graph: Graph,
    device: str | Device,
    inputs: Mapping[str, Array] | None,
    parameters: Mapping[str, object] | None = None,
) -> SimProgram:
    """Check a graph with its inputs and flatten it; ``inputs=None`` makes a times-only program.

    A times-only program needs only the parameters that control depends on.  Raises ``UserError``.
    """
    target = find_device(device)
    verify_graph(graph)
    arrays: dict[str, Array] | None = None
    if inputs is None:
        _check_static(graph)
        required = _control_parameters(graph)
        scalars = check_parameters(graph, parameters or {}, required=required)
    else:
        arrays, scalars = check_graph_inputs(graph, inputs, parameters or {})
    nodes: list[NodeTiming] = []
    for node in graph.nodes:
        first = nodes[-1].instances.stop if nodes else 0
        interval, loads = _interval(graph, node, target), _loads(graph, node)
        nodes.append(NodeTiming(node=node, first=first, interval=interval, loads=loads))
    channels = _channels(graph, target)
    first_elements = {timing.channel.name: timing.first for timing in channels}
    control = flatten(graph, scalars, first_elements)
    program = SimProgram(
        graph=graph,
        device=target,
        inputs=arrays,
        parameters=scalars,
        nodes=tuple(nodes),
        channels=channels,
        control=control,
    )
    _check_ends(program)
    return program


def _check_static(graph: Graph) -> None:
    """Times without values: only where no control depends on data."""
    for node in graph.machines:
        raise UserError(
            f"the times of {graph.name!r} depend on its data: {node.name!r} chooses by the tokens"
            " that it sees",
            location=node.location,
            expected="a design whose control is static, or its inputs",
            given="no inputs",
            hint="simulate the design on its inputs",
        )


def _control_parameters(graph: Graph) -> frozenset[str]:
    """Parameters that conditions, indices or loop bounds depend on."""
    static: list[Expr | None] = []
    for node in graph.pe_arrays:
        static += [bound for loop in node.loops for bound in (loop.minimum, loop.extent)]
        for statement in node.body:
            match statement:
                case Receive(condition=condition) | Send(condition=condition):
                    static.append(condition)
                case Load() | Store() | RegisterWrite():
                    static += [statement.condition, *statement.indices]
                case RegisterRead(indices=indices):
                    static += indices
    for channel in graph.channels:
        static += [*channel.source_index, *channel.sink_index]
    terms = (term for expr in static if expr is not None for term in walk(expr))
    return frozenset(term.name for term in terms if isinstance(term, Parameter))


def _loads(graph: Graph, node: Node) -> bool:
    if isinstance(node, Machine):
        return loads_from_memory(graph, node)
    return any(isinstance(statement, Load) for statement in node.body)


def _interval(graph: Graph, node: Node, device: Device) -> Interval:
    """The smallest interval that respects the node's recurrences and its memory port."""
    longest = Interval(cycles=1)
    match node:
        case Machine():
            found = machine_recurrences(graph, node, device.latency_of, device.load_latency)
            moved = most_bytes(graph, node)
        case _:
            found, moved = recurrences(node, device.latency_of), memory_bytes(node)
    for recurrence in found:
        if recurrence.initiation_interval > longest.cycles:
            longest = Interval(
                cycles=recurrence.initiation_interval,
                register=recurrence.register,
                latency=recurrence.latency,
                distance=recurrence.distance,
            )
    port = device.bytes_per_cycle_per_unit
    if port is not None and -(-moved // port) > longest.cycles:
        longest = Interval(cycles=-(-moved // port), moved_bytes=moved, port_bytes=port)
    return longest


def _channels(graph: Graph, device: Device) -> tuple[ChannelTiming, ...]:
    latencies: dict[str, int] = {}
    memory = device.load_latency, device.store_latency
    for node in graph.nodes:
        if isinstance(node, Machine):
            latencies |= machine_latencies(graph, node, device.latency_of, *memory)
        else:
            latencies |= datapath_latencies(node, device.latency_of, *memory)
    timings: list[ChannelTiming] = []
    for channel in graph.channels:
        first = timings[-1].elements.stop if timings else 0
        datapath = latencies[channel.name]
        timings.append(ChannelTiming(channel=channel, first=first, datapath=datapath))
    return tuple(timings)


def _check_ends(program: SimProgram) -> None:
    """Every channel element has one sending and one receiving PE at most."""
    shared = program.control.shared_element
    if shared is None:
        return
    element, verb, first, second = shared
    channel = program.channels[int(program.channel_of_element[element])].channel
    raise UserError(
        f"two PEs {verb} one element of channel {channel.name!r}",
        location=channel.location,
        expected="one sender and one receiver for every element of a channel array",
        given=f"{program.pe_label(first)} and {program.pe_label(second)}, both on "
        f"{program.element_label(element)}",
        hint="give the channel a dimension for the PEs, and index it with their space indices",
    )
