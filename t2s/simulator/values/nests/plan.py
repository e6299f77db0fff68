"""Choose the nodes that run as loop nests, order them, and run them.

A node runs as a **nest** if it computes something, and all of its operands are in memory: its PEs
run one after the other, each from its first to its last firing, with loads in place of receives.
Nodes that only pass values on do not run at all.  The rest are left to the **rings** (``compute``):
nodes whose PEs wait for one another in cycles, or whose control is not supported, and all nodes
before them.

The nests are certain to end like the network: senders come first in the order of PEs, and no
element has fewer tokens than its receiver takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from math import prod

import numpy as np

from t2s.core.expr import Const, simplify
from t2s.core.gc_pause import gc_paused
from t2s.core.ops import C_FUNCTIONS, Array
from t2s.core.walk import walk
from t2s.graph.body import Load, Send, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.llvm.c_functions import addresses_of_c_functions
from t2s.llvm.compile import MachineCode, compile_nest
from t2s.simulator.program.build import control_parameters
from t2s.simulator.values.layout import ValueLayout, aligned_zeros, placed
from t2s.simulator.values.nests.digits import Opaque
from t2s.simulator.values.nests.emit_nest import emit_nest, keyed_accesses
from t2s.simulator.values.nests.nest import Nest, NestBuilder, group_of, rounds_of
from t2s.simulator.values.nests.trace import (
    Again,
    Place,
    StreamSource,
    TracedNetwork,
    Tracer,
    network_of,
)
from t2s.simulator.values.state import start_values

Turn = tuple[str, int, int]

LARGEST_STREAM = 1 << 30
"""Bytes of the tokens of a channel that are kept, at most."""


_LOOK_AT_A_PE, _COMPILE_RINGS, _FIRE_WITH_RINGS = 500e-6, 0.5, 10e-9
"""Seconds."""

_USUAL_TRIPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a graph's values.

    Attributes
    ----------
    nests: the nests by node.
    turns: the order of the nests: a node, and a range of its PEs that are independent.
    rings: the nodes that run before, with rings.
    streams: scalars per row of each kept channel.
    recorded: tokens per row of the kept channels that rings fill.
    expected: the required number of these tokens, by element of the channel.
    passed: nodes that do not run, and the number of firings they would have.
    """

    nests: Mapping[str, Nest]
    turns: tuple[Turn, ...]
    rings: frozenset[str]
    streams: Mapping[str, int]
    recorded: Mapping[str, int]
    expected: Mapping[str, Mapping[int, int]]
    passed: Mapping[str, int]


def plan_of(graph: Graph, parameters: Mapping[str, Array]) -> Plan:
    """Plan a graph; ``parameters`` are those that its control depends on.

    If tracing values would take longer than passing them on, because there are many PEs with few
    firings, all nodes are left to the rings.
    """
    if _is_soon_done(graph):
        network = TracedNetwork(graph=graph, opaque={node.name for node in graph.nodes})
    else:
        network = network_of(graph, parameters)
    rings = network.opaque | _through_memory(graph)
    kept: set[str] = set()
    while True:
        rings = _with_senders(graph, rings)
        order, cyclic = network.order(rings)
        if cyclic:
            rings |= cyclic
            continue
        if network.short_of_tokens(rings):
            rings = {node.name for node in graph.nodes}
        recorded = {c.name for c in graph.channels if c.source in rings and c.sink not in rings}
        kept = {name for name in kept | recorded if graph.channel(name).sink not in rings}
        tracer = Tracer(network, order, kept, recorded)
        planner = _Planner(network=network, tracer=tracer, rings=rings)
        try:
            planner.plan()
        except Again:
            continue
        failed = planner.failed or planner.too_long()
        if not failed:
            return planner.result(order)
        rings |= failed


def _is_soon_done(graph: Graph) -> bool:
    """A rough estimate of whether rings are faster than analyzing every PE."""
    places = firings = 0
    for node in graph.nodes:
        if isinstance(node, PEArray):
            extents = (simplify(loop.extent) for loop in node.loops)
            trips = prod(int(e.value) if isinstance(e, Const) else _USUAL_TRIPS for e in extents)
            places, firings = places + node.place_count, firings + node.place_count * trips
    return places * _LOOK_AT_A_PE > _COMPILE_RINGS + firings * _FIRE_WITH_RINGS


def _through_memory(graph: Graph) -> set[str]:
    """Nodes that load what others store, and those that store it."""
    accesses = [
        (node.name, term)
        for node in graph.nodes
        for term in (node.body if isinstance(node, PEArray) else walk(node))
        if isinstance(term, Load | Store)
    ]
    stored = {access.tensor for _, access in accesses if isinstance(access, Store)}
    loaded = {access.tensor for _, access in accesses if isinstance(access, Load)}
    return {name for name, access in accesses if access.tensor in stored & loaded}


def _with_senders(graph: Graph, nodes: set[str]) -> set[str]:
    """The nodes and their transitive senders."""
    reached = set(nodes)
    while True:
        more = {c.source for c in graph.channels if c.sink in reached} - reached
        if not more:
            return reached
        reached |= more


@dataclass(slots=True, kw_only=True)
class _Planner:
    """Finds nests backwards from the store units."""

    network: TracedNetwork
    tracer: Tracer
    rings: set[str]
    nests: dict[str, Nest] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def plan(self) -> None:
        graph = self.network.graph
        waiting = [
            node.name
            for node in graph.pe_arrays
            if node.name not in self.rings and any(isinstance(s, Store) for s in node.body)
        ]
        while waiting:
            name = waiting.pop()
            try:
                self.nests[name] = self._nest(name)
            except Opaque:
                self.failed.add(name)
            running = self.nests.keys() | self.failed | self.rings
            for channel in sorted(self.tracer.kept):
                source = graph.channel(channel).source
                if source not in running and source not in waiting:
                    waiting.append(source)
        for name, nest in self.nests.items():
            if self._kept_sends(name) != nest.sends:
                raise Again

    def result(self, order: Iterable[Place]) -> Plan:
        graph = self.network.graph
        running = self.rings | self.nests.keys()
        passed = [node.name for node in graph.nodes if node.name not in running]
        streams = {channel: self.tracer.pitch(channel) for channel in sorted(self.tracer.kept)}
        return Plan(
            nests=self.nests,
            turns=self._turns([place for place in order if place[0] in self.nests]),
            rings=frozenset(self.rings),
            streams=streams,
            recorded={
                name: pitch // graph.channel(name).stream.element.lanes
                for name, pitch in streams.items()
                if graph.channel(name).source in self.rings
            },
            expected={
                name: {end[1]: n for end, n in self.network.received.items() if end[0] == name}
                for name in streams
                if graph.channel(name).source in self.rings
            },
            passed={name: self._firings(name) for name in passed},
        )

    def _firings(self, node: str) -> int:
        bounds = (pe.frame.bounds.values() for pe in self.network.of_node(node))
        return sum(prod(extent for _, extent in loops) for loops in bounds)

    def _turns(self, places: list[Place]) -> tuple[Turn, ...]:
        """Consecutive PEs that may run at the same time."""
        graph = self.network.graph
        sources: dict[str, set[str]] = {name: set() for name in self.nests}
        for name, nest in self.nests.items():
            read = (operand.source for operand in nest.operands.values())
            streams = {source.channel for source in read if isinstance(source, StreamSource)}
            sources[name] = {graph.channel(channel).source for channel in streams} - self.rings
        chained = {name for name, before in sources.items() if name in before}
        try:
            nodes = list(
                TopologicalSorter({n: before - {n} for n, before in sources.items()}).static_order()
            )
        except CycleError:
            return tuple((name, number, number + 1) for name, number in places)
        turns: list[Turn] = []
        for node in nodes:
            numbers = [number for name, number in places if name == node]
            for number in numbers if node in chained else sorted(numbers):
                if turns and turns[-1][::2] == (node, number) and node not in chained:
                    turns[-1] = (node, turns[-1][1], number + 1)
                else:
                    turns.append((node, number, number + 1))
        return tuple(turns)

    def too_long(self) -> set[str]:
        """Nodes that read a channel too long to be kept."""
        graph, nodes = self.network.graph, set()
        for name in self.tracer.kept:
            channel = graph.channel(name)
            scalars = self.tracer.pitch(name) * channel.element_count
            if scalars * channel.stream.element.scalar.bytes > LARGEST_STREAM:
                nodes.add(channel.sink)
        return nodes - self.rings

    def _kept_sends(self, name: str) -> set[str]:
        node = self.network.graph.node(name)
        body = node.body if isinstance(node, PEArray) else ()
        return {s.channel for s in body if isinstance(s, Send)} & self.tracer.kept

    def _nest(self, name: str) -> Nest:
        pes = list(self.network.of_node(name))
        return NestBuilder(self.tracer, pes, self._kept_sends(name)).build()


# Running the nests of a plan, one PE after the other.

_FIRINGS_PER_CALL = 1 << 22
"""Firings between two returns to Python for interrupts and progress."""

_KEPT_DESIGNS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A plan with the machine code of its nests, and the layout of its arena.

    ``rounds`` is the number of rounds of each nest.
    """

    plan: Plan
    layout: ValueLayout
    code: Mapping[str, MachineCode]
    rounds: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """A graph (by identity) with the scalars that its control depends on."""

    graph: Graph
    parameters: tuple[tuple[str, bytes], ...]

    def __hash__(self) -> int:
        return hash((id(self.graph), self.parameters))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Design)
            and self.graph is other.graph
            and self.parameters == other.parameters
        )


def prepare(graph: Graph, parameters: Mapping[str, Array]) -> Prepared:
    """Plan and compile a graph, with a cache of recent ones."""
    names = sorted(control_parameters(graph))
    return _prepared(_Design(graph, tuple((name, parameters[name].tobytes()) for name in names)))


@lru_cache(maxsize=_KEPT_DESIGNS)
@gc_paused()
def _prepared(design: _Design) -> Prepared:
    types = {parameter.name: parameter.type.numpy for parameter in design.graph.parameters}
    known = {name: np.frombuffer(value, types[name])[0] for name, value in design.parameters}
    plan = plan_of(design.graph, known)
    layout = placed(design.graph, _requests(design.graph, plan))
    code = {
        name: compile_nest(emit_nest(design.graph, nest, layout))
        for name, nest in plan.nests.items()
    }
    rounds = {name: rounds_of(nest, group_of(nest))[0] for name, nest in plan.nests.items()}
    return Prepared(plan=plan, layout=layout, code=code, rounds=rounds)


def run_nests(
    graph: Graph,
    prepared: Prepared,
    memory: Mapping[str, Array],
    parameters: Mapping[str, Array],
    recorded: Mapping[str, Array],
    on_progress: Callable[[int], None],
) -> None:
    """Run all nests; ``memory`` is changed in place.

    ``recorded`` has the tokens of channels that rings filled.  ``on_progress`` is called with the
    number of firings so far.
    """
    plan, layout = prepared.plan, prepared.layout
    arena = aligned_zeros(layout.bytes)
    streams = {**recorded, **_streams(graph, plan, recorded)}
    _fill(graph, plan, layout, arena, memory, parameters, streams)
    address, total = int(arena.ctypes.data), sum(plan.passed.values())
    for name, first, last in plan.turns:
        nest, rounds = plan.nests[name], prepared.rounds[name]
        firings = (last - first) * prod(extent for _, extent in nest.frame.bounds.values())
        step = max(1, _FIRINGS_PER_CALL * rounds // firings)
        for begin in range(0, rounds, step):
            end = min(begin + step, rounds)
            prepared.code[name].run(address, first, last, begin, end)
            on_progress(total + firings * end // rounds)
        total += firings


def _requests(graph: Graph, plan: Plan) -> Iterator[tuple[tuple[str, ...], tuple[int, ...], str]]:
    """The sections of the arena."""
    yield ("functions of C",), (len(C_FUNCTIONS),), "uint64"
    for parameter in graph.parameters:
        yield ("parameter", parameter.name), (parameter.type.bytes,), "uint8"
    for tensor in graph.tensors:
        yield ("tensor", tensor.name), (), "uint64"
    for channel in plan.streams:
        yield ("stream", channel), (), "uint64"
    for name, nest in plan.nests.items():
        for key, _ in keyed_accesses(nest):
            yield ("base", name, key), (nest.node.place_count,), "int64"
        for register in nest.node.registers:
            row = prod(register.shape) * register.type.bytes
            yield ("register", name, register.name), (nest.node.place_count, row), "uint8"


def _streams(graph: Graph, plan: Plan, recorded: Mapping[str, Array]) -> dict[str, Array]:
    """Memory for the tokens that nests keep."""
    streams = {}
    for name, pitch in plan.streams.items():
        if name not in recorded:
            channel = graph.channel(name)
            scalars = pitch * channel.element_count
            streams[name] = aligned_zeros(scalars * channel.stream.element.scalar.bytes)
    return streams


def _fill(
    graph: Graph,
    plan: Plan,
    layout: ValueLayout,
    arena: Array,
    memory: Mapping[str, Array],
    parameters: Mapping[str, Array],
    streams: Mapping[str, Array],
) -> None:
    """Fill the arena."""

    def put(key: tuple[str, ...], value: object) -> None:
        layout.sections[key].view(arena)[...] = value

    put(("functions of C",), addresses_of_c_functions())
    for parameter in graph.parameters:
        value = np.frombuffer(parameters[parameter.name].tobytes(), np.uint8)
        put(("parameter", parameter.name), value)
    for tensor in graph.tensors:
        put(("tensor", tensor.name), memory[tensor.name].ctypes.data)
    for channel, tokens in streams.items():
        put(("stream", channel), tokens.ctypes.data)
    for name, nest in plan.nests.items():
        for key, access in keyed_accesses(nest):
            put(("base", name, key), access.bases)
        for register, start in start_values(nest.node).items():
            put(("register", name, register), start)
