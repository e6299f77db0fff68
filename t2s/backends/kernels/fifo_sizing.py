"""FIFO sizing: the depths of channels between kernels when the PEs of a node run in lockstep.

A PE that only needs its own token may, in lockstep, have to wait for those of all its neighbors,
and meanwhile tokens pile up in front of it.  If channels form no cycle (directed or not) and the
elements of each are used together, the capacities of the graph are enough.  All other channels are
*rehearsed*: the port accesses of the nodes are simulated, without values, with each node firing
whole iterations, and nodes downstream first.  The most tokens that a channel ever holds is a
sufficient depth, because the simulated schedule is then possible, and a Kahn network that can
finish in one order finishes in every order.  If the simulation deadlocks, no depth helps, and
lockstep is refused.

Outer loops that the ports do not depend on are left out if all token counts still agree: the
simulation then ends with empty channels, as the whole run does after each of its periods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from t2s.backends.base import Unsupported
from t2s.backends.kernels.lockstep import (
    ChannelPort,
    LockstepNode,
    OutOfStep,
    enumerate_domain,
    extent_of,
    loops_deciding,
    when_used,
)
from t2s.core.expr import is_static
from t2s.core.ops import Array
from t2s.graph.control.iterations import Iterations
from t2s.graph.graph import Channel, Graph

EVENT_BUDGET = 1 << 20
"""Largest number of token moves that are played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A channel between two nodes.

    ``together``: both ends use the same elements, ``used`` of them, whenever they use the channel.
    """

    channel: Channel
    send: ChannelPort
    receive: ChannelPort
    together: bool
    used: int

    @property
    def needs_rehearsal(self) -> bool:
        return not self.together and self.channel.element_count > 1


def rehearse(
    graph: Graph, nodes: Mapping[str, LockstepNode], traffic: Sequence[Traffic]
) -> dict[str, int] | Unsupported:
    """The most tokens that wait in any element, for every channel that is rehearsed."""
    peaks: dict[str, int] = {}
    for cluster in _clusters(traffic):
        ends = {name for item in cluster for name in (item.channel.source, item.channel.sink)}
        members = [nodes[node.name] for node in graph.nodes if node.name in ends]
        if not any(item.needs_rehearsal for item in cluster) and not _has_cycle(cluster):
            continue
        players = _players(members, cluster)
        if isinstance(players, str):
            item = next((item for item in cluster if item.needs_rehearsal), cluster[0])
            return Unsupported(
                subject=f"channel {item.channel.name!r}",
                why=players,
                location=item.channel.location,
            )
        stuck = _play(_downstream_first(players, cluster), cluster, peaks)
        if stuck is not None:
            return OutOfStep(
                subject=f"channel {stuck.name!r}",
                why="PEs of one kernel share their iterations, and in that order tokens wait for "
                "one another forever; independent PEs may not",
                location=stuck.location,
            )
    return peaks


# ------------------------------------------------------------------------------------- clusters


def _clusters(traffic: Sequence[Traffic]) -> list[list[Traffic]]:
    """Groups of channels that affect one another: single ones, or those of undirected cycles."""
    bridges = [item for item in traffic if not _connected(item, traffic)]
    rest = [item for item in traffic if item not in bridges]
    clusters = [[bridge] for bridge in bridges]
    while rest:
        cluster = [rest.pop(0)]
        ends = set(_ends(cluster[0]))
        while joined := [item for item in rest if ends & set(_ends(item))]:
            cluster += joined
            ends.update(end for item in joined for end in _ends(item))
            rest = [item for item in rest if item not in joined]
        clusters.append([item for item in traffic if item in cluster])
    return clusters


def _ends(item: Traffic) -> tuple[str, str]:
    return item.channel.source, item.channel.sink


def _connected(without: Traffic, traffic: Sequence[Traffic]) -> bool:
    """Whether the ends of a channel are connected by other channels."""
    reached = {without.channel.source}
    others = [item for item in traffic if item is not without]
    while grown := [i for i in others if len(set(_ends(i)) & reached) == 1]:
        reached.update(end for item in grown for end in _ends(item))
    return without.channel.sink in reached


def _has_cycle(cluster: Sequence[Traffic]) -> bool:
    """Whether the channels form a directed cycle."""
    edges = [_ends(item) for item in cluster]
    while edges:
        sinks = {sink for _, sink in edges}
        remaining = [edge for edge in edges if edge[0] in sinks]
        if len(remaining) == len(edges):
            return True
        edges = remaining
    return False


# -------------------------------------------------------------------------------------- players


@dataclass(slots=True)
class _Player:
    """A node in a rehearsal: for each iteration, the (channel, element) pairs in and out."""

    name: str
    receives: list[list[tuple[str, int]]]
    sends: list[list[tuple[str, int]]]
    position: int = field(default=0)

    @property
    def finished(self) -> bool:
        return self.position == len(self.receives)


def _players(members: Sequence[LockstepNode], cluster: Sequence[Traffic]) -> list[_Player] | str:
    """The nodes of a cluster over one period, or why they cannot be rehearsed."""
    ports = {node.name: _ports_of(node, cluster) for node in members}
    static = all(
        is_static(expr)
        for pairs in ports.values()
        for _, port in pairs
        for expr in port.expressions
    )
    if not static:
        return "its depth cannot be derived, because a condition depends on a parameter"
    too_long = "its depth cannot be derived, because too many iterations would have to be rehearsed"
    droppable = {node.name: _droppable(node, ports[node.name]) for node in members}
    counts: dict[str, dict[str, Array]] = {}
    for node in members:
        domain = _played(node, droppable[node.name], ports[node.name])
        if domain is None:
            return too_long
        counts[node.name] = {
            item.channel.name: _tokens_per_element(domain, item, port)
            for item, port in ports[node.name]
        }
    period = _shortest_period(members, cluster, droppable, counts)
    if period is None:
        names = ", ".join(repr(item.channel.name) for item in cluster)
        return f"senders and receivers disagree on the number of tokens (channels {names})"
    players: list[_Player] = []
    for node in members:
        player = _player(node, period[node.name], ports[node.name])
        if player is None:
            return too_long
        players.append(player)
    return players


def _played(
    node: LockstepNode, dropped: int, ports: Sequence[tuple[Traffic, ChannelPort]]
) -> Iterations | None:
    """The iterations of a node that access ports."""
    return enumerate_domain(node, when_used(node.loops[dropped:], [port for _, port in ports]))


def _ports_of(node: LockstepNode, cluster: Sequence[Traffic]) -> list[tuple[Traffic, ChannelPort]]:
    pairs = [(item, item.send) for item in cluster if item.channel.source == node.name]
    return pairs + [(item, item.receive) for item in cluster if item.channel.sink == node.name]


def _droppable(node: LockstepNode, ports: Sequence[tuple[Traffic, ChannelPort]]) -> int:
    """The number of outermost loops that the ports and the inner loops do not depend on."""
    deciding = [expr for _, port in ports for expr in port.expressions]
    return int(loops_deciding(node, deciding).start)


def _tokens_per_element(domain: Iterations, item: Traffic, port: ChannelPort) -> Array:
    used = domain.where(port.factors)
    elements = domain.elements(port.index, item.channel.shape)[used]
    return np.bincount(elements, minlength=item.channel.element_count)


def _shortest_period(
    members: Sequence[LockstepNode],
    cluster: Sequence[Traffic],
    droppable: Mapping[str, int],
    counts: Mapping[str, Mapping[str, Array]],
) -> dict[str, int] | None:
    """The number of outer loops to leave out of each node so that all token counts agree."""

    def tokens(name: str, dropped: int, item: Traffic) -> Array:
        node = next(node for node in members if node.name == name)
        repeated = node.loops[dropped : droppable[name]]
        times = prod(extent_of(loop, node) or 1 for loop in repeated)
        return counts[name][item.channel.name] * times

    def agree(chosen: Mapping[str, int]) -> bool:
        return all(
            np.array_equal(tokens(a, chosen[a], item), tokens(b, chosen[b], item))
            for item in cluster
            for a, b in [_ends(item)]
            if a in chosen and b in chosen
        )

    def search(chosen: dict[str, int], left: Sequence[LockstepNode]) -> dict[str, int] | None:
        if not left:
            return chosen
        name = left[0].name
        for dropped in range(droppable[name], -1, -1):
            extended = {**chosen, name: dropped}
            if agree(extended) and (found := search(extended, left[1:])) is not None:
                return found
        return None

    return search({}, members)


def _player(
    node: LockstepNode, dropped: int, ports: Sequence[tuple[Traffic, ChannelPort]]
) -> _Player | None:
    domain = _played(node, dropped, ports)
    if domain is None:
        return None
    receives: list[list[tuple[str, int]]] = [[] for _ in range(domain.count)]
    sends: list[list[tuple[str, int]]] = [[] for _ in range(domain.count)]
    events = 0
    for item, port in ports:
        used = domain.where(port.factors)
        if item.together:  # all elements are used together, so one represents them
            used = used & (np.cumsum(used, axis=1) == 1)
        elements = domain.elements(port.index, item.channel.shape)
        if item.together:
            elements = np.zeros_like(elements)
        events += int(used.sum())
        if events > EVENT_BUDGET:
            return None
        target = sends if port is item.send else receives
        for time, element in zip(np.nonzero(used)[0], elements[used], strict=True):
            target[int(time)].append((item.channel.name, int(element)))
    return _Player(name=node.name, receives=receives, sends=sends)


# --------------------------------------------------------------------------------------- play


def _downstream_first(players: Sequence[_Player], cluster: Sequence[Traffic]) -> list[_Player]:
    """The players in an order in which, without cycles, every node precedes its sources."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order or name in pending:
            return
        pending.add(name)
        for item in cluster:
            if item.channel.source == name:
                visit(item.channel.sink)
        order.append(name)

    pending: set[str] = set()
    for player in players:
        visit(player.name)
    return sorted(players, key=lambda player: order.index(player.name))


def _play(
    players: Sequence[_Player], cluster: Sequence[Traffic], peaks: dict[str, int]
) -> Channel | None:
    """Rehearse to the end and record the peaks; or return a channel that starves forever."""
    waiting: dict[tuple[str, int], int] = {}

    def starving(player: _Player) -> str | None:
        uses = player.receives[player.position]
        return next((use[0] for use in uses if not waiting.get(use)), None)

    while True:
        active = [player for player in players if not player.finished]
        if not active:
            return None
        ready = next((player for player in active if starving(player) is None), None)
        if ready is None:
            starved = starving(active[0])
            return next(item.channel for item in cluster if item.channel.name == starved)
        for use in ready.receives[ready.position]:
            waiting[use] -= 1
        for use in ready.sends[ready.position]:
            waiting[use] = waiting.get(use, 0) + 1
            peaks[use[0]] = max(peaks.get(use[0], 0), waiting[use])
        ready.position += 1
