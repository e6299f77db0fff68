"""Unfolding a graph with machines: one kernel for each PE and each machine.

The PEs of a dense design run in lockstep, so one kernel can hold them all.  A machine takes and
puts tokens depending on values, and machines, or PEs that they feed, must not wait for each other.
So every point of every node becomes a process of its own (except for PEs that ``keeps_together``
leaves in one kernel), and every element of a channel array between two of them becomes a channel.
Capacities are those of the graph, so a graph that does not deadlock does not do so here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import cast

from t2s.backends.base import Unsupported
from t2s.backends.kernels.links import (
    ChannelLinks,
    Link,
    SelfLinks,
    Separate,
    inside,
    plan_self_links,
)
from t2s.backends.kernels.lockstep import (
    ChannelPort,
    LockstepNode,
    enumerate_domain,
    lockstep,
    loops_used,
    select_loops,
)
from t2s.core.expr import (
    Const,
    Expr,
    Local,
    Select,
    conjunction,
    conjuncts,
    const,
    equals,
    is_static,
)
from t2s.core.names import NameSupply
from t2s.core.types import BOOL
from t2s.core.walk import Term, rebuild
from t2s.graph.body import Let, Receive, Send, Statement
from t2s.graph.control.shared_nest import alone, keeps_together
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Machine, Node, PEArray
from t2s.graph.semantics import pe_points
from t2s.graph.specialize import (
    Ends,
    Point,
    at_point,
    constant_element,
    fold,
    without_puts,
    without_unused,
)


@dataclass(frozen=True, kw_only=True)
class Unfolded:
    """The new graph, its single PEs as the rest of the backend knows them, and its channels."""

    graph: Graph
    nodes: dict[str, LockstepNode]
    links: ChannelLinks


@dataclass(kw_only=True)
class _UnfoldedElement:
    """An element of a channel array, and which of the new nodes use it."""

    channel: Channel
    index: Point
    name: str
    source: str | None = None
    sink: str | None = None


class _Refused(Exception):
    """A reason why a node cannot be unfolded."""

    def __init__(self, problem: Unsupported) -> None:
        super().__init__(str(problem))
        self.problem = problem


def unfold(graph: Graph, language: str) -> Unfolded | list[Unsupported]:
    """The graph with one node for each PE and machine, or the problems of the language with it."""
    work = _Unfolding(graph, language)
    for node in graph.nodes:
        for point in _points(graph, node):
            try:
                work.add(node, point)
            except _Refused as refused:
                work.problems.append(refused.problem)
                break
    return work.finished()


def _points(graph: Graph, node: Node) -> Iterator[Point | None]:
    """The points of a node that become nodes of their own; ``None`` stands for all as one."""
    if isinstance(node, PEArray) and node.space and keeps_together(graph, node):
        yield None
        return
    yield from pe_points(node)


class _Unfolding:
    """Collects the new nodes and the elements of channels that they use."""

    def __init__(self, graph: Graph, language: str) -> None:
        self._graph = graph
        self._language = language
        self.problems: list[Unsupported] = []
        self._names = NameSupply()
        self._element_names = NameSupply(c.name for c in graph.channels if not c.shape)
        self._elements: dict[tuple[str, Point], _UnfoldedElement] = {}
        self._nodes: list[Node] = []
        self._lockstep: dict[str, LockstepNode] = {}

    def add(self, node: Node, point: Point | None) -> None:
        """One PE or machine, or all PEs of a node."""
        if point is None:
            assert isinstance(node, PEArray)
            self._add_alone(replace(node, name=self._names.fresh(node.name)))
            return
        name = self._names.fresh("_".join((node.name, *map(str, point))))
        if isinstance(node, Machine):
            space = tuple(
                replace(dimension, minimum=at, extent=1)
                for dimension, at in zip(node.space, point, strict=True)
            )
            self._nodes.append(self._machine(replace(node, name=name, space=space)))
            return
        self._add_alone(replace(alone(node, point), name=name))

    def _add_alone(self, single: PEArray) -> None:
        match lockstep(self._graph, single):
            case LockstepNode() as lockstep_node:
                self._add_pe(settled(lockstep_node))
            case refused:
                raise _Refused(refused)

    def _element(self, channel: Channel, index: Point) -> _UnfoldedElement:
        key = (channel.name, index)
        if key not in self._elements:
            name = channel.name
            if channel.shape:
                name = self._element_names.fresh("_".join((name, *map(str, index))))
            self._elements[key] = _UnfoldedElement(channel=channel, index=index, name=name)
        return self._elements[key]

    # --------------------------------------------------------------------------------- PEs

    def _add_pe(self, node: LockstepNode) -> None:
        renamed: dict[tuple[type[Statement], str], str] = {}
        receives, sends = {}, {}
        node = by_element(node)
        for name, port in node.receives.items():
            element = self._port(node.name, port.channel, port.index)
            element.sink = node.name
            renamed[Receive, name] = element.name
            receives[element.name] = replace(port, index=())
        for name, port in node.sends.items():
            element = self._port(node.name, port.channel, port.index)
            element.source = node.name
            renamed[Send, name] = element.name
            sends[element.name] = replace(port, index=())
        body = tuple(
            replace(s, channel=renamed[s.__class__, s.channel])
            if isinstance(s, Receive | Send)
            else s
            for s in node.body
        )
        self._nodes.append(replace(node.node, body=body))
        self._lockstep[node.name] = replace(node, body=body, receives=receives, sends=sends)

    def _port(self, node: str, channel: Channel, index: tuple[Expr, ...]) -> _UnfoldedElement:
        place = constant_element(index, channel)
        if place is None:
            raise _Refused(
                Unsupported(
                    subject=f"channel {channel.name!r}",
                    why=f"{node!r} uses several elements of it, and is a kernel of its own",
                    location=channel.location,
                )
            )
        return self._element(channel, place)

    # ---------------------------------------------------------------------------- machines

    def _machine(self, node: Machine) -> Machine:
        """A machine at its point, whose channels have their new names."""
        fixed = {dimension.name: dimension.minimum for dimension in node.space}
        ranges = {name: (at, at) for name, at in fixed.items()}

        def place(channel: Channel, index: tuple[Expr, ...]) -> _UnfoldedElement | None:
            place = constant_element(tuple(fold(e, ranges, fixed) for e in index), channel)
            return None if place is None else self._element(channel, place)

        def taken(name: str) -> str | None:
            channel = self._graph.channel(name)
            element = place(channel, channel.sink_index)
            if element is None:
                return None
            element.sink = node.name
            return element.name

        def put(name: str) -> str | None:
            channel = self._graph.channel(name)
            element = place(channel, channel.source_index)
            if element is None:
                return None
            element.source = node.name
            return element.name

        return at_point(node, Ends(taken=taken, put=put))

    # ------------------------------------------------------------------------------ result

    def finished(self) -> Unfolded | list[Unsupported]:
        """The new graph; each of its channels has both ends.

        Puts of a machine into channels without a receiver do not change values, and are left out.
        """
        channels: list[Channel] = []
        machines = {node.name for node in self._nodes if isinstance(node, Machine)}
        unread: set[str] = set()
        for element in self._elements.values():
            if element.sink is None and element.source in machines:
                unread.add(element.name)
                continue
            if element.source is None or element.sink is None:
                end = "puts tokens into" if element.source is None else "takes tokens from"
                why = f"nothing {end} its element {list(element.index)}"
                subject, where = f"channel {element.channel.name!r}", element.channel.location
                self.problems.append(Unsupported(subject=subject, why=why, location=where))
                continue
            channels.append(
                replace(
                    element.channel,
                    name=element.name,
                    source=element.source,
                    sink=element.sink,
                    shape=(),
                    source_index=(),
                    sink_index=(),
                )
            )
        if self.problems:
            return self.problems
        by_name = {channel.name: channel for channel in channels}
        nodes = {
            name: replace(
                node,
                receives={c: replace(p, channel=by_name[c]) for c, p in node.receives.items()},
                sends={c: replace(p, channel=by_name[c]) for c, p in node.sends.items()},
            )
            for name, node in self._lockstep.items()
        }
        new_nodes = (without_puts(n, unread) if isinstance(n, Machine) else n for n in self._nodes)
        graph = replace(self._graph, nodes=tuple(new_nodes), channels=tuple(channels))
        links = _links(graph, nodes, self._language)
        return links if isinstance(links, list) else Unfolded(graph=graph, nodes=nodes, links=links)


def _links(
    graph: Graph, nodes: dict[str, LockstepNode], language: str
) -> ChannelLinks | list[Unsupported]:
    """Every channel between two kernels; channels from a PE to itself stay inside."""
    links: dict[str, Link] = {}
    descending: dict[str, frozenset[str]] = {}
    problems: list[Unsupported] = []
    for channel in graph.channels:
        if channel.source != channel.sink:
            links[channel.name] = Separate(channel=channel, depth=channel.capacity)
        elif channel.source not in nodes:
            why = f"a machine that puts tokens into its own channel is not supported in {language}"
            subject = f"channel {channel.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=channel.location))
    for node in nodes.values():
        match plan_self_links(node):
            case SelfLinks() as self_links:
                descending[node.name] = self_links.descending
                links |= inside(self_links)
            case refused:
                problems += refused
    return problems or ChannelLinks(by_channel=links, descending=descending)


# PEs that share a kernel in graphs with machines, and a statement for each element that they use.

MOST_ELEMENTS = 64
"""Most elements of a channel that one PE uses."""


def by_element(node: LockstepNode) -> LockstepNode:
    """The single PE with a port for each element that it uses, if these are few enough."""
    body: list[Statement] = []
    receives, sends = dict(node.receives), dict(node.sends)
    for statement in node.body:
        match statement:
            case Send(channel=name, condition=condition):
                for key, port, chosen in _elements(node, sends.pop(name)):
                    sends[key] = port
                    both = conjunction(condition, chosen)
                    body.append(replace(statement, channel=key, condition=both))
            case Receive(channel=name):
                elements = _elements(node, receives.pop(name))
                receives |= {key: port for key, port, _ in elements}
                body += _received(statement, [(key, chosen) for key, _, chosen in elements])
            case _:
                body.append(statement)
    return replace(node, body=tuple(body), receives=receives, sends=sends)


def _received(statement: Receive, elements: list[tuple[str, Expr | None]]) -> list[Statement]:
    """A receive from every possible element, and the token of the actual one."""
    if len(elements) == 1:
        (key, chosen), condition = elements[0], statement.condition
        return [replace(statement, channel=key, condition=conjunction(condition, chosen))]
    result: list[Statement] = []
    value: Expr | None = None
    for number, (key, chosen) in enumerate(elements):
        target = f"{statement.target}_{number}_"
        both = conjunction(statement.condition, chosen)
        result.append(replace(statement, target=target, channel=key, condition=both))
        token = Local(name=target, type=statement.type)
        if value is None or chosen is None:
            value = token
        else:
            value = Select(condition=chosen, if_true=token, if_false=value, type=statement.type)
    assert value is not None
    return [*result, Let(target=statement.target, value=value)]


def _elements(node: LockstepNode, port: ChannelPort) -> list[tuple[str, ChannelPort, Expr | None]]:
    """A port for each possible element, and the condition under which it is the actual one."""
    name, shape = port.channel.name, port.channel.shape
    moving = [at for at, index in enumerate(port.index) if not isinstance(index, Const)]
    spans = [range(extent) if at in moving else (0,) for at, extent in enumerate(shape)]
    count = 1
    for span in spans:
        count *= len(span)
    if not moving or count > MOST_ELEMENTS:
        return [(name, port, None)]
    elements: list[tuple[str, ChannelPort, Expr | None]] = []
    for point in product(*spans):
        tests = (equals(port.index[at], point[at]) for at in moving)
        chosen = conjunction(*(fold(test, node.ranges, {}) for test in tests))
        if chosen == const(False, BOOL):
            continue
        index = tuple(const(e) if at in moving else port.index[at] for at, e in enumerate(point))
        factors = (*port.time_factors, *(() if chosen is None else (chosen,)))
        key = f"{name} {' '.join(map(str, point))}"
        elements.append((key, replace(port, index=index, time_factors=factors), chosen))
    return elements


# Removing selects whose choice is known in their context.
#
# ``q == 0 ? 0 : (q > 0 ? passed : 0)`` for a PE ``q`` from 0 to 4 is ``q == 0 ? 0 : passed``; this
# is found by enumeration.

Factors = tuple[Expr, ...]


def settled(node: LockstepNode) -> LockstepNode:
    """The node without known selects in its values; conditions and indices are not changed."""
    return replace(node, body=without_unused([_statement(node, s) for s in node.body]))


def _statement(node: LockstepNode, statement: Statement) -> Statement:
    condition = getattr(statement, "condition", None)
    known = tuple(filter(is_static, (*conjuncts(node.guard), *conjuncts(condition))))

    def visit(term: Term) -> Term:
        return term if term is condition else _settle(node, term, known)

    return rebuild(statement, visit)


def _settle(node: LockstepNode, term: Term, known: Factors) -> Term:
    match term:
        case Select(condition=condition, if_true=if_true, if_false=if_false) if (
            condition.type.lanes == 1 and is_static(condition)
        ):
            holds = (*known, *conjuncts(condition))
            fails = (*known, ~condition)
            if known and _never(node, fails):
                return _settle(node, if_true, known)
            if known and _never(node, holds):
                return _settle(node, if_false, known)
            chosen = _settle(node, if_true, holds)
            other = _settle(node, if_false, fails)
            return replace(term, if_true=cast(Expr, chosen), if_false=cast(Expr, other))
    return rebuild(term, lambda child: _settle(node, child, known))


def _never(node: LockstepNode, factors: Factors) -> bool:
    """Whether conditions are known never to hold all at once."""
    domain = enumerate_domain(node, select_loops(node, loops_used(node, factors)))
    return domain is not None and not bool(domain.where(factors).any())
