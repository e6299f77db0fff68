"""From a graph and a device to a ``SimProgram``: all work that can be done before cycle 0.

Inputs, parameters, addresses and channel elements are checked, latencies come from the device, the
initiation interval of every node is computed, and the control of every firing is encoded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Expr, Parameter
from t2s.core.gc_pause import gc_paused
from t2s.core.ops import Array
from t2s.core.walk import walk
from t2s.graph.analysis import (
    datapath_latencies,
    loads_from_memory,
    machine_latencies,
    machine_recurrences,
    memory_bytes,
    most_bytes,
    recurrences,
)
from t2s.graph.arrays import check_ascending, check_graph_inputs, check_parameters
from t2s.graph.body import Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Graph, MemorySpace, TensorRole
from t2s.graph.nodes import Machine, Node
from t2s.graph.ports import busiest_port
from t2s.graph.verify import verify_graph
from t2s.graph.verify_machine import accesses_of
from t2s.simulator.devices import Device, find_device
from t2s.simulator.memory.places import addresses_of, bases_in_banks, most_loads
from t2s.simulator.program.flatten import Control, flatten
from t2s.simulator.program.sim_program import (
    ChannelTiming,
    NodeInterval,
    NodeTiming,
    RunContext,
    SimProgram,
    buffered_firings,
    check_times,
)
from t2s.simulator.random_stalls import RandomStalls

_VERIFIED: GraphCache[None, frozenset[str]] = GraphCache()
_TIMINGS: GraphCache[Device, tuple[tuple[NodeTiming, ...], tuple[ChannelTiming, ...]]] = (
    GraphCache()
)
_CONTROL: GraphCache[tuple[tuple[str, bytes], ...], Control] = GraphCache()

MOST_PES = 1 << 22
"""Most points of the space domains of all nodes."""


@gc_paused()
def build_program(
    graph: Graph,
    device: str | Device,
    inputs: Mapping[str, Array] | None,
    parameters: Mapping[str, object] | None = None,
    stalls: RandomStalls | None = None,
    context: RunContext | None = None,
) -> SimProgram:
    """Check a graph with its inputs and flatten it; ``inputs=None`` makes a times-only program.

    A times-only program needs only the parameters that control depends on.  Raises ``UserError``.
    """
    target = find_device(device)
    required = _VERIFIED.get(graph, None, lambda: _verified(graph))
    _check_memory(graph, target)
    _check_places(graph)
    arrays: dict[str, Array] | None = None
    if inputs is None:
        _check_static(graph)
        scalars = check_parameters(graph, parameters or {}, required=required)
    else:
        arrays, scalars = check_graph_inputs(graph, inputs, parameters or {})
        check_ascending(graph, arrays)
    nodes, channels = _TIMINGS.get(
        graph, target, lambda: (_nodes(graph, target), _channels(graph, target))
    )
    first_elements = {timing.channel.name: timing.first for timing in channels}
    static = tuple((name, scalars[name].tobytes()) for name in sorted(required))
    control = _CONTROL.get(graph, static, lambda: flatten(graph, scalars, first_elements))
    program = SimProgram(
        graph=graph,
        device=target,
        inputs=arrays,
        parameters=scalars,
        nodes=nodes,
        channels=channels,
        control=control,
        stalls=stalls,
        digest=digest_of(graph, arrays or {}),
        context=context,
    )
    _check_ends(program)
    check_times(program)
    return program


def take_as_verified(graph: Graph, example: Graph) -> None:
    """Skip the verification of a graph that differs from another one in numbers only.

    Addresses and elements of channels, which are numbers, are checked for every run.
    """
    _VERIFIED.get(graph, None, lambda: _VERIFIED.get(example, None, lambda: _verified(example)))


def with_device(program: SimProgram, device: str | Device) -> SimProgram:
    """The program on another device, for its times; a trace and the parameters stay.

    Raises ``UserError`` as ``build_program`` does.
    """
    target, graph = find_device(device), program.graph
    _check_memory(graph, target)
    changed = replace(
        program,
        device=target,
        nodes=_nodes(graph, target),
        channels=_channels(graph, target),
        inputs=program.inputs_of_times,
    )
    check_times(changed)
    return changed


def _check_places(graph: Graph) -> None:
    """Check that the number of PEs, which are simulated one by one, is feasible."""
    places = sum(node.place_count for node in graph.nodes)
    largest = max(graph.nodes, key=lambda node: node.place_count, default=None)
    if places <= MOST_PES or largest is None:
        return
    raise UserError(
        f"{graph.name!r} has too many PEs to simulate",
        location=largest.location,
        expected=f"at most {MOST_PES:,} PEs, those that load and store included",
        given=f"{places:,}, of which {largest.name!r} has {largest.place_count:,}",
        hint="unroll fewer loops, or split them first and unroll the inner parts",
    )


def digest_of(graph: Graph, arrays: Mapping[str, Array]) -> str:
    """A digest of the inputs that have an origin, to recognize them; empty without any."""
    names = sorted(t.array for t in graph.tensors if t.origin and t.array in arrays)
    if not names:
        return ""
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).view(np.uint8).reshape(-1).data)
    return digest.hexdigest()


def _verified(graph: Graph) -> frozenset[str]:
    """Verify the graph, and return the parameters that control depends on."""
    verify_graph(graph)
    return control_parameters(graph)


def _check_static(graph: Graph) -> None:
    """Check that no control depends on data, so that times need no values."""
    for node in graph.machines:
        raise UserError(
            f"the times of {graph.name!r} depend on its data: {node.name!r} chooses by the tokens"
            " that it sees",
            location=node.location,
            expected="a design whose control is static, or its inputs",
            given="no inputs",
            hint="simulate the design on its inputs",
        )


def control_parameters(graph: Graph) -> frozenset[str]:
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


def _loads(graph: Graph, node: Node, device: Device) -> bool:
    if isinstance(node, Machine):
        in_banks = device.banked is not None and most_loads(graph, node, device.banked) > 0
        return in_banks or loads_from_memory(graph, node)
    return any(isinstance(statement, Load) for statement in node.body)


def _nodes(graph: Graph, device: Device) -> tuple[NodeTiming, ...]:
    """The nodes with their intervals and instances."""
    nodes: list[NodeTiming] = []
    for node in graph.nodes:
        places = node.place_count
        nodes.append(
            NodeTiming(
                node=node,
                first=nodes[-1].instances.stop if nodes else 0,
                pe_count=places,
                holes=places - node.pe_count,
                interval=_interval(graph, node, device),
                loads=_loads(graph, node, device),
            )
        )
    return tuple(nodes)


def _interval(graph: Graph, node: Node, device: Device) -> NodeInterval:
    """The smallest interval that respects the node's own, its recurrences and its memory port."""
    longest = NodeInterval(cycles=1)
    match node:
        case Machine():
            longest = NodeInterval(cycles=node.interval, own=node.interval > 1)
            # a DRAM stalls the machine itself, see ``memory.units``
            latency = device.load_latency if device.memory is None else 0
            limits = machine_recurrences(graph, node, device.latency_of, latency)
            moved = most_bytes(graph, node)
        case _:
            limits, moved = recurrences(node, device.latency_of), memory_bytes(node)
    for recurrence in limits:
        if recurrence.initiation_interval > longest.cycles:
            longest = NodeInterval(
                cycles=recurrence.initiation_interval,
                register=recurrence.register,
                latency=recurrence.latency,
                distance=recurrence.distance,
            )
    port = device.bytes_per_cycle_per_unit
    if port is not None and -(-moved // port) > longest.cycles:
        longest = NodeInterval(cycles=-(-moved // port), moved_bytes=moved, port_bytes=port)
    busiest = busiest_port(graph, node) if device.port_per_tensor else None
    if busiest is not None and (busiest[1] > longest.cycles or longest.cycles == 1):
        tensor, accesses = busiest
        longest = NodeInterval(cycles=accesses, tensor=tensor, accesses=accesses)
    return longest


def _channels(graph: Graph, device: Device) -> tuple[ChannelTiming, ...]:
    latencies: dict[str, int] = {}
    constant = device.memory is None
    memory = (device.load_latency, device.store_latency) if constant else (0, 0)
    for node in graph.nodes:
        if isinstance(node, Machine):
            latencies |= machine_latencies(graph, node, device.latency_of, *memory)
        else:
            latencies |= datapath_latencies(node, device.latency_of, *memory)
    timings: list[ChannelTiming] = []
    for channel in graph.channels:
        first = timings[-1].elements.stop if timings else 0
        datapath = latencies[channel.name]
        buffered = buffered_firings(graph, graph.node(channel.source), device)
        timings.append(
            ChannelTiming(channel=channel, first=first, datapath=datapath, buffered=buffered)
        )
    return tuple(timings)


def _check_memory(graph: Graph, device: Device) -> None:
    """Check that all tensors fit into memory; for open ones see ``memory.places.bases_of``."""
    if device.banked is not None:
        bases_in_banks(graph, device.banked)
    if device.memory is None:
        return
    for node in graph.machines:
        for name in sorted(accesses_of(node)):
            tensor = graph.tensor(name)
            copied = tensor.role is TensorRole.INTERMEDIATE or tensor.copy_of is not None
            if tensor.place is MemorySpace.CHIP and not copied:
                raise UnsupportedError(
                    f"{node.name!r} accesses {name!r} on the chip, for which it needs no memory",
                    location=node.location or graph.location,
                    expected=f"inputs and outputs in memory {device.memory.name!r}",
                    given=f"{name}: {tensor.shape_text}",
                    hint="simulate the design instead of its graph, or give its tensors"
                    " MemorySpace.MEMORY",
                )
    _, end = addresses_of(graph)
    if end > device.memory.capacity:
        raise UserError(
            f"the tensors of {graph.name!r} do not fit into memory {device.memory.name!r}",
            location=graph.tensors[-1].location,
            expected=f"at most {device.memory.capacity:,} bytes",
            given=f"{end:,} bytes",
            hint="simulate a smaller problem, or describe a larger memory",
        )


def _check_ends(program: SimProgram) -> None:
    """Check that every channel element has at most one sending and one receiving PE."""
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
