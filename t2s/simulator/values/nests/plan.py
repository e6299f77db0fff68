"""Which nodes run as plain loop nests, in which order, and what they read.

A node runs as a **nest** if something has to be computed there, and all of it can be computed from
memory: its PEs run one after the other, each from its first to its last firing, with loads in place
of receives.  Nodes that only pass values on do not run at all.  The rest are left to the **rings**
(``values``): nodes whose PEs wait for one another in circles, or whose control has another form,
and all nodes before them.

That the nests end as the network would is certain: their PEs are in an order in which senders come
first, and no element is asked for more tokens than it is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import prod

from t2s.core.expr import Const, simplify
from t2s.core.ops import Array
from t2s.core.walk import walk
from t2s.graph.body import Load, Send, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.simulator.values.nests.digits import Opaque
from t2s.simulator.values.nests.nest import Nest, NestBuilder
from t2s.simulator.values.nests.network import Place, TracedNetwork, network_of
from t2s.simulator.values.nests.references import StreamSource
from t2s.simulator.values.nests.trace import Again, Tracer

Turn = tuple[str, int, int]

LARGEST_STREAM = 1 << 30
"""Bytes of the tokens of a channel that are kept, at most."""


_LOOK_AT_A_PE, _COMPILE_RINGS, _FIRE_WITH_RINGS = 500e-6, 0.5, 10e-9
"""Seconds."""

_USUAL_TRIPS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a graph runs.

    Attributes
    ----------
    nests: by node.
    turns: the order of the nests: a node, and its PEs from one number up to, not including,
        another, which do not wait for one another.
    rings: the nodes that run before them, with rings.
    streams: scalars in a row of each channel whose tokens are kept.
    recorded: of those that rings fill, tokens in a row.
    expected: how many of these have to be there, by element of the channel.
    passed: nodes that do not run, and how many firings they would have.
    """

    nests: Mapping[str, Nest]
    turns: tuple[Turn, ...]
    rings: frozenset[str]
    streams: Mapping[str, int]
    recorded: Mapping[str, int]
    expected: Mapping[str, Mapping[int, int]]
    passed: Mapping[str, int]


def plan_of(graph: Graph, parameters: Mapping[str, Array]) -> Plan:
    """Follow all values of a graph; ``parameters`` are those that its control depends on.

    Where there are so many PEs, and so few firings, that following values takes longer than
    passing them on, all nodes are left to the rings.
    """
    if _is_soon_done(graph):
        network = TracedNetwork(graph=graph, opaque={node.name for node in graph.nodes})
    else:
        network = network_of(graph, parameters)
    rings = network.opaque | _through_memory(graph)
    kept: set[str] = set()
    while True:
        rings = _with_senders(graph, rings)
        order, circle = network.order(rings)
        if circle:
            rings |= circle
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
    """Whether rings are faster than to look at every PE, by rough figures."""
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
    """The nodes and all that send to them, directly or not."""
    found = set(nodes)
    while True:
        more = {c.source for c in graph.channels if c.sink in found} - found
        if not more:
            return found
        found |= more


@dataclass(slots=True, kw_only=True)
class _Planner:
    """Finds the nests, from the store units backwards."""

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
        """PEs that may run at the same time, where they have numbers in a row."""
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
        """Nodes that read a channel which is too long to be kept."""
        graph, found = self.network.graph, set()
        for name in self.tracer.kept:
            channel = graph.channel(name)
            scalars = self.tracer.pitch(name) * channel.element_count
            if scalars * channel.stream.element.scalar.bytes > LARGEST_STREAM:
                found.add(channel.sink)
        return found - self.rings

    def _kept_sends(self, name: str) -> set[str]:
        node = self.network.graph.node(name)
        body = node.body if isinstance(node, PEArray) else ()
        return {s.channel for s in body if isinstance(s, Send)} & self.tracer.kept

    def _nest(self, name: str) -> Nest:
        pes = list(self.network.of_node(name))
        return NestBuilder(self.tracer, pes, self._kept_sends(name)).build()
