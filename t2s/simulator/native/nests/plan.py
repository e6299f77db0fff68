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

from t2s.core.ops import Array
from t2s.graph.body import Load, Send, Store
from t2s.graph.graph import Graph
from t2s.simulator.native.nests.digits import Opaque
from t2s.simulator.native.nests.nest import Nest, NestBuilder
from t2s.simulator.native.nests.network import Network, Place, network_of
from t2s.simulator.native.nests.trace import Again, Tracer


LARGEST_STREAM = 1 << 30
"""Bytes of the tokens of a channel that are kept, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a graph runs.

    Attributes
    ----------
    nests: by node.
    order: the PEs of the nests, as they run.
    rings: the nodes that run before them, with rings.
    streams: scalars in a row of each channel whose tokens are kept.
    recorded: of those that rings fill, tokens in a row.
    passed: nodes that do not run.
    """

    nests: Mapping[str, Nest]
    order: tuple[Place, ...]
    rings: frozenset[str]
    streams: Mapping[str, int]
    recorded: Mapping[str, int]
    passed: frozenset[str]


def plan_of(graph: Graph, parameters: Mapping[str, Array]) -> Plan:
    """Follow all values of a graph; ``parameters`` are those of the run."""
    network = network_of(graph, parameters)
    rings = network.opaque | _through_memory(graph)
    kept: set[str] = set()
    while True:
        rings = _with_senders(graph, rings)
        order, circle = network.order(rings)
        wrong = circle or network.short_of_tokens(rings)
        if wrong:
            rings |= wrong
            continue
        recorded = {channel.name for channel in graph.channels if channel.source in rings}
        kept |= recorded
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


def _through_memory(graph: Graph) -> set[str]:
    """Nodes that load what others store, and those that store it."""
    stored = {s.tensor for node in graph.nodes for s in node.body if isinstance(s, Store)}
    loaded = {s.tensor for node in graph.nodes for s in node.body if isinstance(s, Load)}
    return {
        node.name
        for node in graph.nodes
        for s in node.body
        if isinstance(s, Load | Store) and s.tensor in stored & loaded
    }


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

    network: Network
    tracer: Tracer
    rings: set[str]
    nests: dict[str, Nest] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def plan(self) -> None:
        graph = self.network.graph
        waiting = [
            node.name
            for node in graph.nodes
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
        names = {node.name for node in graph.nodes}
        streams = {channel: self.tracer.pitch(channel) for channel in sorted(self.tracer.kept)}
        return Plan(
            nests=self.nests,
            order=tuple(place for place in order if place[0] in self.nests),
            rings=frozenset(self.rings),
            streams=streams,
            recorded={
                name: pitch // graph.channel(name).stream.element.lanes
                for name, pitch in streams.items()
                if graph.channel(name).source in self.rings
            },
            passed=frozenset(names - self.rings - self.nests.keys()),
        )

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
        body = self.network.graph.node(name).body
        return {s.channel for s in body if isinstance(s, Send)} & self.tracer.kept

    def _nest(self, name: str) -> Nest:
        pes = list(self.network.of_node(name))
        return NestBuilder(self.tracer, pes, self._kept_sends(name)).build()
