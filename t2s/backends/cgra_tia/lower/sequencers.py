"""Which ``seq`` units there are: one for all cells that do the same at the same time.

A shared unit holds all of its cells to one pace, give or take what its net holds.  Cells of one PE
whose tags are the same have one, if they do something in every firing: then none of them needs what
another one does in a later firing.  Cells of several PEs of a node share it too if none of them
waits for another one and they stand equally far from memory, but not if they exchange tokens with a
common neighbor, which may serve them in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t2s.backends.cgra_tia.lower.unit_nests import SequenceNest
from t2s.backends.cgra_tia.netlist import (
    Endpoint,
    Net,
    NetSink,
    Provenance,
    StreamUnit,
    UnitKind,
)
from t2s.core.components import strong_components


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """A port that waits for tags.

    ``index`` is the number of the cell within its PE, ``always`` whether it does something in every
    firing of that.
    """

    end: Endpoint
    nest: SequenceNest
    index: int
    origin: Provenance
    always: bool = False


@dataclass(kw_only=True)
class _Order:
    """How the parts depend on one another: circles, and the length of the way to each of them."""

    circle: dict[str, int]
    rank: dict[int, int]
    neighbors: dict[str, dict[tuple[str, bool], set[str]]] = field(default_factory=dict)


def sequencers(
    controlled: Sequence[Controlled], nets: Sequence[Net]
) -> tuple[list[StreamUnit], list[Net]]:
    """The units that send tags, and their nets."""
    order = _order(nets)
    leaders, followers = _in_one_pe(controlled)
    groups: dict[tuple[object, ...], list[Controlled]] = {}
    seen: dict[tuple[object, ...], int] = {}
    for one in leaders:
        circle = order.circle.get(one.end.part, -1)
        kind = (one.origin.node, one.index, one.nest, order.rank.get(circle, 0))
        within = seen.get((kind, circle), 0)
        seen[kind, circle] = within + 1
        groups.setdefault((kind, within), []).append(one)
    together: list[list[Controlled]] = []
    for group in groups.values():
        together += [group] if _independent(group, order) else [[one] for one in group]
    units: list[StreamUnit] = []
    made: list[Net] = []
    numbers: dict[str, int] = {}
    arrays: dict[tuple[str, SequenceNest], str] = {}
    for group in together:
        node = group[0].origin.node
        numbers[node] = numbers.get(node, 0) + 1
        name = f"{node}.seq{numbers[node]}"
        units.append(
            StreamUnit(
                name=name,
                kind=UnitKind.SEQUENCE,
                loops=group[0].nest.loops,
                tags=group[0].nest.tags,
                origin=Provenance(
                    node=node,
                    point=_in_common([one.origin.point for one in group]),
                    location=group[0].origin.location,
                ),
            )
        )
        sinks = tuple(NetSink(end=end) for one in group for end in (one.end, *followers[one.end]))
        alike = arrays.setdefault((node, group[0].nest), name)
        made.append(Net(name=name, group=alike, source=Endpoint(part=name), sinks=sinks))
    return units, made


def _in_common(points: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The coordinates that several points have in common, which tells alike units apart."""
    return tuple(column[0] for column in zip(*points, strict=True) if len(set(column)) == 1)


def _in_one_pe(
    controlled: Sequence[Controlled],
) -> tuple[list[Controlled], dict[Endpoint, list[Endpoint]]]:
    """One cell of each PE for each sequence of tags, and the ports that follow it."""
    leaders: dict[tuple[object, ...], Controlled] = {}
    followers: dict[Endpoint, list[Endpoint]] = {}
    for one in controlled:
        own = () if one.always else (one.end,)
        key = (one.origin.node, one.origin.point, one.nest, *own)
        leader = leaders.setdefault(key, one)
        followers.setdefault(leader.end, [])
        if leader is not one:
            followers[leader.end].append(one.end)
    return list(leaders.values()), followers


def _independent(group: Sequence[Controlled], order: _Order) -> bool:
    """Whether no two cells of a group have a common neighbor over different nets."""
    met: dict[tuple[str, bool], set[str]] = {}
    for one in group:
        for neighbor, nets in order.neighbors.get(one.end.part, {}).items():
            if neighbor in met and met[neighbor] != nets:
                return False
            met.setdefault(neighbor, nets)
    return True


def _order(nets: Sequence[Net]) -> _Order:
    """Circles of parts (strongly connected), and the longest way to each."""
    names: dict[str, int] = {}
    arcs: list[tuple[int, int]] = []
    neighbors: dict[str, dict[tuple[str, bool], set[str]]] = {}
    for net in nets:
        source = names.setdefault(net.source.part, len(names))
        for sink in net.sinks:
            target = names.setdefault(sink.end.part, len(names))
            arcs.append((source, target))
            for part, other, ahead in (
                (net.source.part, sink.end.part, True),
                (sink.end.part, net.source.part, False),
            ):
                neighbors.setdefault(part, {}).setdefault((other, ahead), set()).add(net.name)
    if not arcs:
        return _Order(circle={}, rank={})
    labels = strong_components(len(names), arcs)
    circle = {name: labels[number] for name, number in names.items()}
    rank = _longest({(labels[a], labels[b]) for a, b in arcs if labels[a] != labels[b]})
    return _Order(circle=circle, rank=rank, neighbors=neighbors)


def _longest(arcs: set[tuple[int, int]]) -> dict[int, int]:
    """The length of the longest way to each end of the arcs, which have no circles."""
    after: dict[int, list[int]] = {}
    waiting: dict[int, int] = {}
    for source, target in sorted(arcs):
        after.setdefault(source, []).append(target)
        waiting[target] = waiting.get(target, 0) + 1
    rank = dict.fromkeys(after, 0)
    ready = [source for source in after if source not in waiting]
    while ready:
        source = ready.pop()
        for target in after.get(source, ()):
            rank[target] = max(rank.get(target, 0), rank[source] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return rank
