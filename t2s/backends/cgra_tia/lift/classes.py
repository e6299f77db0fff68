"""Parts that are alike: those that become one node of the graph, a PE at each point.

Cells are alike if they have one program and the same firings, units if they run one nest and their
addresses differ by a constant that is affine in the points.  Points are those of the node that a
part was made of; they are a proposal, and a class whose points do not fit is taken apart, into
boxes of points if that helps, else into nodes of one PE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.lift.points import Point, affine, affine_form, boxes_of, inside
from t2s.backends.cgra_tia.lift.static_cells import StaticFirings, TaggedSteps
from t2s.backends.cgra_tia.lift.word_kinds import WordKinds
from t2s.backends.cgra_tia.netlist import NetCell, Netlist, StreamUnit, UnitKind
from t2s.backends.cgra_tia.program import Instruction
from t2s.core.expr import Expr, const
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.graph.body import SpaceDimension
from t2s.graph.nodes import Loop

Part = NetCell | StreamUnit

_MANY, _MOST_BOXES = 100, 4
"""Parts of a large class, and the most boxes that one with holes is taken apart into."""

_LARGEST_BOX = 1 << 16
"""Points of a box around a class that are looked at one by one."""

AT_ADDRESSES = frozenset({UnitKind.LOAD_AT, UnitKind.STORE_AT})
"""Units whose addresses come from a channel."""

ROUND, STEP = "round", "step"
"""The loops around a nest with a prologue: the round, 0 or 1, and the instruction in round 0."""


@dataclass(frozen=True, kw_only=True)
class PartClass:
    """Parts that become one node: ``points`` are by the name of the part.

    ``base`` is the address of a unit without its loops: factors of the space dimensions, and a
    constant.  ``firings`` are those of cells.
    """

    name: str
    parts: tuple[Part, ...]
    points: Mapping[str, Point]
    firings: StaticFirings | None = None
    base: tuple[Point, int] = field(default=((), 0))

    @property
    def first(self) -> Part:
        return self.parts[0]

    @property
    def is_machine(self) -> bool:
        """Whether it is a cell or a unit whose firings depend on what it gets."""
        if isinstance(self.first, StreamUnit):
            return self.first.kind in AT_ADDRESSES
        return self.firings is None

    @property
    def nest(self) -> TaggedSteps:
        """The loops of all parts, and the tags of the tokens that lead them."""
        if self.firings is not None:
            return self.firings.nest
        assert isinstance(self.first, StreamUnit)
        return TaggedSteps(loops=self.first.loops, tags=self.first.tags)

    @property
    def prologue(self) -> tuple[Instruction, ...]:
        """What is fired before the nest."""
        return () if self.firings is None else self.firings.prologue

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The nest; a prologue comes before it in a loop of two rounds, the first of one step.

        In that round all other loops run once, but for one over the instructions of the prologue.
        """
        names, extents = self.loop_names, [loop.extent for loop in self.nest.loops]
        pairs = list(zip(names, extents, strict=True))
        if not self.prologue:
            return tuple(
                _loop(n, dict(zip(names, e.coefficients, strict=False)), e.constant)
                for n, e in pairs
            )
        count = len(self.prologue)
        first = (_loop(ROUND, {}, 2), _loop(STEP, {ROUND: 1 - count}, count))
        return (*first, *(_loop(n, {ROUND: e.constant - 1}, 1) for n, e in pairs))

    @property
    def loop_names(self) -> tuple[str, ...]:
        return tuple(f"i{number}" for number in range(len(self.nest.loops)))

    @property
    def space_names(self) -> tuple[str, ...]:
        return tuple(f"p{axis}" for axis in range(len(self.points[self.first.name])))

    @property
    def space(self) -> tuple[SpaceDimension, ...]:
        """The box around the points."""
        columns = zip(*self.points.values(), strict=True)
        return tuple(
            SpaceDimension(name=name, minimum=min(column), extent=max(column) - min(column) + 1)
            for name, column in zip(self.space_names, columns, strict=True)
        )

    @property
    def exists(self) -> Expr | None:
        """Where in the box there are parts; ``None``: everywhere."""
        box: list[Point] = [()]
        for dimension in self.space:
            values = range(dimension.minimum, dimension.minimum + dimension.extent)
            box = [(*point, value) for point in box for value in values]
        if len(box) == len(self.points):
            return None
        return inside(self.space_names, set(self.points.values()), box)

    @property
    def location(self) -> SourceLocation | None:
        return None if self.first.origin is None else self.first.origin.location


def _loop(name: str, factors: Mapping[str, int], constant: int) -> Loop:
    return Loop(name=name, minimum=const(0), extent=affine(factors, constant))


def classes_of(
    netlist: Netlist, firings: Mapping[str, StaticFirings], kinds: WordKinds
) -> tuple[PartClass, ...]:
    """The classes of all parts."""
    groups: dict[object, list[Part]] = {}
    parts: tuple[Part, ...] = (*netlist.cells, *netlist.units)
    for part in parts:
        groups.setdefault(_key(part, firings.get(part.name), kinds), []).append(part)
    names, origins = NameSupply(), _Origins(netlist)
    return tuple(
        replace(found, name=names.fresh(found.name))
        for group in groups.values()
        for found in _settled(group, firings, origins)
    )


def _key(part: Part, firings: StaticFirings | None, kinds: WordKinds) -> object:
    node, rank = _node(part), len(_point(part))
    if isinstance(part, StreamUnit):
        if part.kind in AT_ADDRESSES:
            return (part.name,)
        factors = part.address.coefficients if part.address is not None else ()
        return (node, rank, part.kind, part.loops, part.tags, part.tensor, factors)
    if firings is None:
        return (part.name,)
    return (node, rank, part.kind, part.program, firings, tuple(_types(part, kinds)))


def _types(cell: NetCell, kinds: WordKinds) -> Iterator[object]:
    for instruction in cell.program.instructions:
        yield from (kinds.input(cell.name, port) for port in instruction.takes)
        yield from (kinds.output(cell.name, port) for port in instruction.outputs)


def _settled(
    parts: Sequence[Part], firings: Mapping[str, StaticFirings], origins: _Origins
) -> Iterator[PartClass]:
    """The parts as one class if their points allow it, else a few, else each alone."""
    decided = isinstance(parts[0], StreamUnit) or parts[0].name in firings
    for point in (_point, origins.point) if decided else ():
        together = _class(parts, firings, [point(part) for part in parts])
        if together is not None:
            yield from _without_holes(together, firings)
            return
    for some in _in_boxes(parts) if decided else ():
        boxed = _class(some, firings, [_point(part) for part in some])
        if boxed is None:
            break
        yield boxed
        parts = [part for part in parts if part.name not in boxed.points]
    for part in parts:
        alone = _class([part], firings, [()])
        assert alone is not None
        yield alone


def _without_holes(found: PartClass, firings: Mapping[str, StaticFirings]) -> Iterator[PartClass]:
    """A few boxes for a large class with holes, whose PEs the simulator would look at one by one.

    They stay together where it would take many.
    """
    large = found.exists is not None and len(found.parts) >= _MANY
    boxes = list(_in_boxes(found.parts)) if large else []
    classes = [_class(some, firings, [found.points[p.name] for p in some]) for some in boxes]
    if 1 < len(classes) <= _MOST_BOXES and None not in classes:
        yield from (each for each in classes if each is not None)
    else:
        yield found


def _in_boxes(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Groups of parts whose points fill a box; nothing if points are not apart from one another."""
    by_point = {_point(part): part for part in parts}
    axes = [range(min(column), max(column) + 1) for column in zip(*by_point, strict=True)]
    if len(by_point) < len(parts) or prod(map(len, axes)) > _LARGEST_BOX:
        return
    for box in boxes_of(by_point, set(product(*axes))):
        yield [by_point[point] for point in sorted(box)]


class _Origins:
    """Points for parts that have none of their own: what they are behind, and how far."""

    def __init__(self, netlist: Netlist) -> None:
        self._parts: dict[str, Part] = {part.name: part for part in netlist.cells}
        self._parts |= {part.name: part for part in netlist.units}
        self._before: dict[str, str] = {}
        for net in netlist.nets:
            for sink in net.sinks:
                self._before.setdefault(sink.end.part, net.source.part)

    def point(self, part: Part) -> Point:
        """The point of the first part on the way back that has one, and the steps up to it."""
        seen = [part.name]
        while not _point(self._parts[seen[-1]]):
            before = self._before.get(seen[-1])
            if before is None or before in seen:
                return ()
            seen.append(before)
        return (*_point(self._parts[seen[-1]]), len(seen) - 1)


def _class(
    parts: Sequence[Part], firings: Mapping[str, StaticFirings], points: Sequence[Point]
) -> PartClass | None:
    base: tuple[Point, int] = ((0,) * len(points[0]), 0)
    if len(set(points)) != len(points) or len({len(point) for point in points}) > 1:
        return None
    constants = [
        p.address.constant for p in parts if isinstance(p, StreamUnit) and p.address is not None
    ]
    if constants:
        form = affine_form(points, constants)
        if form is None:
            return None
        base = form
    found = PartClass(
        name=_identifier(parts[0]),
        parts=tuple(parts),
        points={part.name: point for part, point in zip(parts, points, strict=True)},
        firings=firings.get(parts[0].name),
        base=base,
    )
    boxed = found.exists is not None or len(parts) == _volume(found.space)
    return found if boxed else None


def _volume(space: Sequence[SpaceDimension]) -> int:
    volume = 1
    for dimension in space:
        volume *= dimension.extent
    return volume


def _node(part: Part) -> str:
    return "" if part.origin is None else part.origin.node


def _point(part: Part) -> Point:
    return () if part.origin is None else part.origin.point


def _identifier(part: Part) -> str:
    """The node that a part was, or its own name where it was none of the user's."""
    own = isinstance(part, StreamUnit) and part.kind in {UnitKind.SEQUENCE, *AT_ADDRESSES}
    text = part.name if own else _node(part) or part.name
    plain = re.sub(r"\W+", "_", text).strip("_") or "part"
    return plain if plain[0].isalpha() else f"part_{plain}"


def is_compute(part: Part) -> bool:
    """Whether a part counts as a unit that computes."""
    return isinstance(part, NetCell) and part.kind is CellKind.FMA
