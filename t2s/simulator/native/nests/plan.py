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
from math import prod

import numpy as np

from t2s.core.expr import Expr, Local
from t2s.core.ops import Array
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray
from t2s.simulator.native.nests.digits import Frame, Numbers, Opaque, size
from t2s.simulator.native.nests.network import PE, Network, Place, network_of
from t2s.simulator.native.nests.references import Source
from t2s.simulator.native.nests.trace import Again, Tracer, bindings, full


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A local of a nest that lies in memory.

    In a firing it is made of the scalars ``bases[PE] + tables[digit][position] + ... + lane`` of
    ``source``, for ``lanes``, where ``condition`` holds, and zero elsewhere.
    """

    source: Source
    bases: Numbers
    tables: Mapping[int, Numbers]
    lanes: tuple[int | None, ...]
    condition: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlet:
    """Where a nest leaves the tokens of a channel: like an ``Operand``."""

    bases: Numbers
    tables: Mapping[int, Numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """A node that runs as a loop nest: the statements of its body that matter."""

    node: PEArray
    frame: Frame
    operands: Mapping[str, Operand]
    outlets: Mapping[str, Outlet]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a graph runs.

    Attributes
    ----------
    nests: by node.
    order: the PEs of the nests, as they run.
    rings: the nodes that run before them, with rings.
    streams: scalars in a row of each channel whose tokens are kept.
    passed: nodes that do not run.
    """

    nests: Mapping[str, Nest]
    order: tuple[Place, ...]
    rings: frozenset[str]
    streams: Mapping[str, int]
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
        kept |= {channel.name for channel in graph.channels if channel.source in rings}
        planner = _Planner(network=network, tracer=Tracer(network, order, kept), rings=rings)
        try:
            planner.plan()
        except Again:
            continue
        if not planner.failed:
            return planner.result(order)
        rings |= planner.failed


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
            if self._kept_sends(name) != set(nest.outlets):
                raise Again

    def result(self, order: Iterable[Place]) -> Plan:
        names = {node.name for node in self.network.graph.nodes}
        return Plan(
            nests=self.nests,
            order=tuple(place for place in order if place[0] in self.nests),
            rings=frozenset(self.rings),
            streams={channel: self.tracer.pitch(channel) for channel in sorted(self.tracer.kept)},
            passed=frozenset(names - self.rings - self.nests.keys()),
        )

    def _kept_sends(self, name: str) -> set[str]:
        body = self.network.graph.node(name).body
        return {s.channel for s in body if isinstance(s, Send)} & self.tracer.kept

    def _nest(self, name: str) -> Nest:
        node = self.network.graph.node(name)
        pes = list(self.network.of_node(name))
        frames = {id(pe.frame): pe.frame for pe in pes}
        if len(frames) != 1:
            raise Opaque
        (frame,) = frames.values()
        operands: dict[str, Operand] = {}
        needed = self._needed(node, pes, operands)
        outlets = {channel: self._outlet(node, pes, channel) for channel in self._kept_sends(name)}
        return Nest(
            node=node, frame=frame, operands=operands, outlets=outlets, statements=tuple(needed)
        )

    def _needed(
        self, node: PEArray, pes: list[PE], operands: dict[str, Operand]
    ) -> list[Statement]:
        """The statements that something depends on; what lies in memory is added to operands."""
        bound, kept = bindings(node), self._kept_sends(node.name)
        registers: set[str] = set()
        chosen: set[int] = set()
        waiting: list[Statement] = [
            s
            for s in node.body
            if isinstance(s, Store) or (isinstance(s, Send) and s.channel in kept)
        ]
        while waiting:
            statement = waiting.pop()
            if id(statement) in chosen:
                continue
            chosen.add(id(statement))
            for name in _locals(statement):
                if name in operands:
                    continue
                operand = self._operand(pes, bound[name])
                if operand is not None:
                    operands[name] = operand
                    continue
                waiting.append(bound[name])
            if isinstance(statement, RegisterRead) and statement.register not in registers:
                registers.add(statement.register)
                waiting += [
                    s
                    for s in node.body
                    if isinstance(s, RegisterWrite) and s.register == statement.register
                ]
        return [statement for statement in node.body if id(statement) in chosen]

    def _operand(self, pes: list[PE], statement: Statement) -> Operand | None:
        """What a statement binds, if it lies in memory on all PEs alike."""
        condition = None
        if isinstance(statement, Receive | Load):
            condition = statement.condition
        elif not isinstance(statement, Let | RegisterRead):
            raise Opaque
        try:
            return self._gathered(pes, statement.target, condition)
        except Opaque:
            if isinstance(statement, Receive | Load):
                raise
            return None

    def _gathered(self, pes: list[PE], name: str, condition: Expr | None) -> Operand:
        place_count = pes[0].node.place_count
        bases = np.zeros(place_count, np.int64)
        source: Source = None
        form: tuple[dict[int, Numbers], tuple[int | None, ...]] | None = None
        for pe in pes:
            points = pe.points(condition)
            if not size(points):
                continue
            reference = self.tracer.local(pe, name, points)
            bases[pe.number], tables = full(reference, points, pe.frame.all)
            if form is None:
                form, source = (tables, reference.lanes), reference.source
            elif source != reference.source or not _alike(form, (tables, reference.lanes)):
                raise Opaque
        if form is None:
            raise Opaque
        return Operand(
            source=source, bases=bases, tables=form[0], lanes=form[1], condition=condition
        )

    def _outlet(self, node: PEArray, pes: list[PE], channel: str) -> Outlet:
        """The rows that the PEs fill, and which token each firing sends."""
        found = self.network.graph.channel(channel)
        send = next(s for s in node.body if isinstance(s, Send) and s.channel == channel)
        bases = np.zeros(node.place_count, np.int64)
        form: dict[int, Numbers] | None = None
        for pe in pes:
            points = pe.points(send.condition)
            if not size(points):
                continue
            _, row = self.network.end(pe, found, found.source_index)
            bases[pe.number] = row * self.tracer.pitch(channel)
            tables: dict[int, Numbers] = {}
            for digit, values in enumerate(points):
                step = prod(len(later) for later in points[digit + 1 :])
                table = np.zeros(len(pe.frame.all[digit]), np.int64)
                numbers = np.arange(len(values)) * (step * found.stream.element.lanes)
                table[np.searchsorted(pe.frame.all[digit], values)] = numbers
                if table.any():
                    tables[digit] = table
            if form is None:
                form = tables
            elif not _alike((form, ()), (tables, ())):
                raise Opaque
        if form is None:
            raise Opaque
        return Outlet(bases=bases, tables=form)


def _alike(
    left: tuple[dict[int, Numbers], tuple[int | None, ...]],
    right: tuple[dict[int, Numbers], tuple[int | None, ...]],
) -> bool:
    tables, others = left[0], right[0]
    return (
        left[1] == right[1]
        and tables.keys() == others.keys()
        and all(np.array_equal(tables[digit], others[digit]) for digit in tables)
    )


def _locals(statement: Statement) -> list[str]:
    """Names of the locals that a statement reads."""
    return [term.name for term in walk(statement) if isinstance(term, Local)]
