"""The PEs of a graph and who sends to whom: what holds before any value is followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import prod

import numpy as np

from t2s.core.expr import Expr, Local, Parameter, Read, conjuncts, index_names
from t2s.core.ops import Array
from t2s.core.walk import distinct
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import space_points
from t2s.simulator.values.nests.digits import DigitFrame, NodeDigits, Opaque, Product, size

Place = tuple[str, int]
"""A PE: its node, and its number in the node's space domain, row-major."""

End = tuple[str, int]
"""An element of a channel array: the channel, and the number of the element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedPE:
    """One PE: its digits, and its place and the parameters by name."""

    node: PEArray
    number: int
    frame: DigitFrame
    known: Mapping[str, Array]

    def points(self, condition: Expr | None) -> Product:
        """The iterations in which a condition holds."""
        return self.frame.points(condition, self.known)


@dataclass(slots=True, kw_only=True)
class TracedNetwork:
    """The PEs of all nodes whose control has the form that ``digits`` describes.

    Attributes
    ----------
    pes: by place.
    opaque: the other nodes.
    sender: the place that sends to an element of a channel.
    counts: by place and channel end, tokens that a PE receives.
    """

    graph: Graph
    pes: dict[Place, TracedPE] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    sender: dict[End, Place] = field(default_factory=dict)
    sent: dict[End, int] = field(default_factory=dict)
    receiver: dict[End, Place] = field(default_factory=dict)
    received: dict[End, int] = field(default_factory=dict)

    def of_node(self, node: str) -> Iterator[TracedPE]:
        """The PEs of a node, in row-major order."""
        found = self.graph.node(node)
        for number in range(found.place_count):
            if (node, number) in self.pes:
                yield self.pes[(node, number)]

    def end(self, pe: TracedPE, channel: Channel, indices: tuple[Expr, ...]) -> End:
        """The element that a PE uses in all its firings."""
        flat = 0
        for index, extent in zip(indices, channel.shape, strict=True):
            at = pe.frame.sum(index, pe.known)
            if at.tables or not 0 <= at.base < extent:
                raise Opaque
            flat = flat * extent + at.base
        return channel.name, flat

    def order(self, without: set[str]) -> tuple[list[Place], set[str]]:
        """The PEs, senders first, and the nodes that have PEs on a circle."""
        sorter: TopologicalSorter[Place] = TopologicalSorter()
        for place in self.pes:
            if place[0] not in without:
                sorter.add(place)
        for end, place in self.receiver.items():
            source = self.sender.get(end)
            if source is None or source[0] in without or place[0] in without:
                continue
            if source == place:
                return [], {place[0]}
            sorter.add(place, source)
        try:
            return list(sorter.static_order()), set()
        except CycleError as error:
            return [], {place[0] for place in error.args[1]}

    def short_of_tokens(self, without: set[str]) -> set[str]:
        """Nodes that receive more tokens than are sent to them."""
        return {
            place[0]
            for end, place in self.receiver.items()
            if place[0] not in without
            and self.graph.channel(end[0]).source not in without
            and self.received[end] > self.sent.get(end, 0)
        }


def network_of(graph: Graph, parameters: Mapping[str, Array]) -> TracedNetwork:
    """Look at the control of every PE."""
    network = TracedNetwork(graph=graph)
    nested = {c.name: (c.source, c.sink) for c in graph.channels if c.stream.nesting}
    streaming = {name for ends in nested.values() for name in ends}
    for node in graph.nodes:
        if not isinstance(node, PEArray) or node.name in streaming:
            network.opaque.add(node.name)
            continue
        try:
            _add(network, node, NodeDigits(graph, node, parameters), parameters)
        except Opaque:
            network.opaque.add(node.name)
            network.pes = {place: pe for place, pe in network.pes.items() if place[0] != node.name}
    return network


def _add(
    network: TracedNetwork, node: PEArray, digits: NodeDigits, parameters: Mapping[str, Array]
) -> None:
    accesses = [statement for statement in node.body if isinstance(statement, Receive | Send)]
    possible = [_places(node, access.condition, parameters) for access in accesses]
    for number, point in enumerate(space_points(node)):
        if not node.has_pe(point):
            continue
        frame, known = digits.frame(point)
        pe = TracedPE(node=node, number=number, frame=frame, known=known)
        network.pes[(node.name, number)] = pe
        for statement, places in zip(accesses, possible, strict=True):
            if places is not None and number not in places:
                continue
            count = size(pe.points(statement.condition))
            if not count:
                continue
            channel = network.graph.channel(statement.channel)
            if isinstance(statement, Receive):
                ends, counts, indices = network.receiver, network.received, channel.sink_index
            else:
                ends, counts, indices = network.sender, network.sent, channel.source_index
            end = network.end(pe, channel, indices)
            if end in ends:
                raise Opaque
            ends[end] = (node.name, number)
            counts[end] = count


def _places(
    node: PEArray, condition: Expr | None, parameters: Mapping[str, Array]
) -> frozenset[int] | None:
    """The PEs that the factors of a condition about the place alone do not rule out.

    ``None`` if there are no such factors.  Of the many channels of a large array most reach a few
    PEs each, so all PEs are looked at in one go.
    """
    space = {dimension.name for dimension in node.space}
    factors = [
        factor
        for factor in conjuncts(condition)
        if factor.type.lanes == 1
        and (names := index_names(factor))
        and names <= space
        and not any(
            isinstance(term, Local | Read)
            or (isinstance(term, Parameter) and term.name not in parameters)
            for term in distinct(factor)
        )
    ]
    if not factors:
        return None
    possible = np.logical_and.reduce([node.where(factor, parameters) for factor in factors])
    return frozenset(np.flatnonzero(possible).tolist())


def longest(network: TracedNetwork, channel: str) -> int:
    """The most tokens that any element of a channel is sent, or is asked for."""
    elements = range(prod(network.graph.channel(channel).shape))
    found = (
        max(network.sent.get((channel, at), 0), network.received.get((channel, at), 0))
        for at in elements
    )
    return max(found, default=0)
