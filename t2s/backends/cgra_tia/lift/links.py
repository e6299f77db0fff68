"""Branches of nets as channel arrays between classes of parts.

All branches from one port of a class to one port of another that have the same latency and the same
capacity are one *bundle*.  A firing sends into all branches of its net, so those that lead to
different sinks are different channels: a bundle has one for each value of those coordinates of the
sink that the source does not give (A[i, k] for all j: one channel for each j), or one for each
distance between source and sink.  Branches that are of no such form have channels of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from t2s.backends.cgra_tia.lift.classes import PartClass
from t2s.backends.cgra_tia.lift.points import Point, affine_form, inside, mapped
from t2s.backends.cgra_tia.lift.word_kinds import WordKinds
from t2s.backends.cgra_tia.netlist import Net, PlacedDesign
from t2s.backends.cgra_tia.opcodes import ON_FMA
from t2s.core.expr import Expr
from t2s.core.names import NameSupply
from t2s.core.types import INT32
from t2s.graph.graph import Channel, StreamType

_Ends = tuple[Point, Point]
"""Where a branch starts and where it ends."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A channel, the ports at its ends, and where in the classes it is used.

    ``tags`` is the channel beside it for the tags of its tokens, if the sink looks at them.
    """

    channel: Channel
    output: int
    input: int
    sends: Expr
    receives: Expr
    tags: Channel | None = None


@dataclass(frozen=True, slots=True)
class _Bundle:
    source: str
    output: int
    sink: str
    input: int
    latency: int
    capacity: int


def links_of(
    design: PlacedDesign, classes: Sequence[PartClass], kinds: WordKinds
) -> tuple[Link, ...]:
    """The channels of a design."""
    owner = {part.name: found for found in classes for part in found.parts}
    by_name = {found.name: found for found in classes}
    bundles: dict[_Bundle, list[_Ends]] = {}
    origins: dict[_Bundle, Net] = {}
    slow = _slow_outputs(design)
    for net in design.netlist.nets:
        source = owner[net.source.part]
        extra = design.fabric.fma_latency * ((net.source.part, net.source.port) in slow)
        for sink, branch in zip(net.sinks, design.branches[net.name], strict=True):
            target = owner[sink.end.part]
            bundle = _Bundle(
                source.name,
                net.source.port,
                target.name,
                sink.end.port,
                branch.latency + extra,
                branch.capacity + extra,
            )
            ends = source.points[net.source.part], target.points[sink.end.part]
            bundles.setdefault(bundle, []).append(ends)
            origins.setdefault(bundle, net)
    names = NameSupply()
    found: list[Link] = []
    for bundle, pairs in bundles.items():
        net = origins[bundle]
        stream = StreamType(element=kinds.output(net.source.part, net.source.port))
        for branch_pairs in _bundled(by_name, bundle, pairs):
            name = names.fresh(f"{bundle.source}_to_{bundle.sink}_{bundle.input}")
            link = _link(by_name, bundle, branch_pairs, name, stream)
            assert link is not None
            channel = replace(link.channel, location=net.location)
            tags = None
            if by_name[bundle.sink].is_machine:
                stream_of_tags = StreamType(element=INT32)
                tags = replace(channel, name=names.fresh(f"{name}_tag"), stream=stream_of_tags)
            found.append(replace(link, channel=channel, tags=tags))
    return tuple(found)


def _slow_outputs(design: PlacedDesign) -> set[tuple[str, int]]:
    """The outputs of cells that results of the FMA leave from."""
    return {
        (cell.name, port)
        for cell in design.netlist.cells
        for instruction in cell.program.instructions
        if instruction.opcode in ON_FMA
        for port in instruction.outputs
    }


def _bundled(
    classes: Mapping[str, PartClass], bundle: _Bundle, pairs: Sequence[_Ends]
) -> list[list[_Ends]]:
    """The branches of a bundle by the channels that they are elements of."""
    stream = StreamType(element=INT32)

    def fits(branches: Sequence[_Ends]) -> bool:
        return _link(classes, bundle, branches, "trial", stream) is not None

    for found in (_by_free_axes(pairs), _by_offset(pairs)):
        if all(map(fits, found)):
            return found
    return [
        some
        for branches in _by_offset(pairs)
        for some in ([branches] if fits(branches) else ([pair] for pair in branches))
    ]


def _by_free_axes(pairs: Sequence[_Ends]) -> list[list[_Ends]]:
    """The pairs by the coordinates of the sink that the source does not give."""
    sources, sinks = [source for source, _ in pairs], [sink for _, sink in pairs]
    free = [
        axis
        for axis in range(len(sinks[0]))
        if affine_form(sources, [sink[axis] for sink in sinks]) is None
    ]
    return _grouped(pairs, [tuple(sink[axis] for axis in free) for sink in sinks])


def _by_offset(pairs: Sequence[_Ends]) -> list[list[_Ends]]:
    """The pairs by how far the sink is from the source, as where a chain goes on in a new row."""
    return _grouped(pairs, [_difference(sink, source) for source, sink in pairs])


def _difference(sink: Point, source: Point) -> Point:
    """How far two points are from each other; what only one of them has stands as it is."""
    return tuple(a - b for a, b in zip_longest(sink, source, fillvalue=0))


def _grouped(pairs: Sequence[_Ends], labels: Sequence[Point]) -> list[list[_Ends]]:
    found: dict[Point, list[_Ends]] = {}
    for pair, label in zip(pairs, labels, strict=True):
        found.setdefault(label, []).append(pair)
    return list(found.values())


def _link(
    classes: Mapping[str, PartClass],
    bundle: _Bundle,
    pairs: Sequence[_Ends],
    name: str,
    stream: StreamType,
) -> Link | None:
    """A channel for these pairs of points; ``None`` if they are not of its form."""
    source, sink = classes[bundle.source], classes[bundle.sink]
    from_points, to_points = [q for q, _ in pairs], [p for _, p in pairs]
    if len(set(from_points)) != len(from_points):
        return None
    sends = inside(source.space_names, from_points, list(source.points.values()))
    receives = inside(sink.space_names, to_points, list(sink.points.values()))
    low = tuple(map(min, zip(*from_points, strict=True)))
    high = tuple(map(max, zip(*from_points, strict=True)))
    elements = [_difference(point, low) for point in from_points]
    own = mapped(source.space_names, from_points, elements)
    indices = mapped(sink.space_names, to_points, elements)
    if indices is None or own is None or sends is None or receives is None:
        return None
    channel = Channel(
        name=name,
        stream=stream,
        source=source.name,
        sink=sink.name,
        shape=tuple(b - a + 1 for a, b in zip(low, high, strict=True)),
        source_index=own,
        sink_index=indices,
        capacity=bundle.capacity,
        latency=bundle.latency,
    )
    return Link(
        channel=channel, output=bundle.output, input=bundle.input, sends=sends, receives=receives
    )
