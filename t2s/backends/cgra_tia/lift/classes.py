"""Classes of similar parts: each becomes one node of the graph, with a PE at each point.

Cells are in one class if they have the same program and firings, units if they run the same nest
and their addresses differ by a constant that is affine in the points.  The points are those of the
node from which a part was lowered.  They are a proposal: a class whose points do not fit is split
into boxes of points if that helps, or else into nodes of one PE.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

import numpy as np

from t2s.backends.cgra_tia.fabric import CellKind
from t2s.backends.cgra_tia.lift.static_cells import StaticFirings, TaggedSteps
from t2s.backends.cgra_tia.lift.word_expressions import WordKinds
from t2s.backends.cgra_tia.netlist import NetCell, Netlist, StreamUnit, UnitKind
from t2s.backends.cgra_tia.program import Instruction
from t2s.core.expr import TRUE, Expr, Index, apply, conjunction, const, equals
from t2s.core.location import SourceLocation
from t2s.core.names import NameSupply
from t2s.core.ops import Array, Op
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
    """Parts that become one node; ``points`` are by name of the part.

    ``base`` is the address of a unit apart from its loops: coefficients of the space dimensions,
    and a constant.  ``firings`` are those of cells.
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
        """Whether it is a cell or a unit whose firings depend on tokens."""
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
        """The instructions that fire before the nest."""
        return () if self.firings is None else self.firings.prologue

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops of the node: those of the nest, and for a prologue two more.

        The outermost loop then has two rounds.  In the first, all loops of the nest run once, and
        the second loop runs over the instructions of the prologue.
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
        """The condition for a point of the box to have a part; ``None`` if all have one."""
        ranges = (range(d.minimum, d.minimum + d.extent) for d in self.space)
        box: list[Point] = list(product(*ranges))
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
        replace(part_class, name=names.fresh(part_class.name))
        for group in groups.values()
        for part_class in _settled(group, firings, origins)
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
    """The parts as one class if their points allow it, else as a few, else each alone."""
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


def _without_holes(
    part_class: PartClass, firings: Mapping[str, StaticFirings]
) -> Iterator[PartClass]:
    """Split a large class with holes into a few boxes, if a few are enough.

    The simulator would otherwise treat its PEs one by one.
    """
    large = part_class.exists is not None and len(part_class.parts) >= _MANY
    boxes = list(_in_boxes(part_class.parts)) if large else []
    classes = [_class(some, firings, [part_class.points[p.name] for p in some]) for some in boxes]
    if 1 < len(classes) <= _MOST_BOXES and None not in classes:
        yield from (each for each in classes if each is not None)
    else:
        yield part_class


def _in_boxes(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Groups of parts whose points fill a box; none if points are not distinct."""
    by_point = {_point(part): part for part in parts}
    axes = [range(min(column), max(column) + 1) for column in zip(*by_point, strict=True)]
    if len(by_point) < len(parts) or prod(map(len, axes)) > _LARGEST_BOX:
        return
    for box in boxes_of(by_point, set(product(*axes))):
        yield [by_point[point] for point in sorted(box)]


class _Origins:
    """Points for parts that have none: the point of a part upstream, and the distance from it."""

    def __init__(self, netlist: Netlist) -> None:
        self._parts: dict[str, Part] = {part.name: part for part in netlist.cells}
        self._parts |= {part.name: part for part in netlist.units}
        self._before: dict[str, str] = {}
        for net in netlist.nets:
            for sink in net.sinks:
                self._before.setdefault(sink.end.part, net.source.part)

    def point(self, part: Part) -> Point:
        """The point of the nearest part upstream that has one, and the distance from it."""
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
    part_class = PartClass(
        name=_identifier(parts[0]),
        parts=tuple(parts),
        points={part.name: point for part, point in zip(parts, points, strict=True)},
        firings=firings.get(parts[0].name),
        base=base,
    )
    boxed = part_class.exists is not None or len(parts) == _volume(part_class.space)
    return part_class if boxed else None


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
    """The node from which a part was lowered, or the part's own name if there is none."""
    own = isinstance(part, StreamUnit) and part.kind in {UnitKind.SEQUENCE, *AT_ADDRESSES}
    text = part.name if own else _node(part) or part.name
    plain = re.sub(r"\W+", "_", text).strip("_") or "part"
    return plain if plain[0].isalpha() else f"part_{plain}"


def is_compute(part: Part) -> bool:
    """Whether a part has a program that computes, rather than only moves."""
    return isinstance(part, NetCell) and part.kind is CellKind.FMA


# Sets of points as formulas: affine maps between them, and membership conditions.
#
# Each formula is guessed and then checked at every point, so a returned formula holds for all of
# them; ``None`` says that none of the form was found.

Point = tuple[int, ...]

_MOST_SINGLE, _MOST_BOXES_OF_A_CONDITION = 16, 12
"""Points that a condition lists one by one, and boxes."""


def affine(terms: Mapping[str, int], constant: int) -> Expr:
    """A sum of indices times coefficients."""
    total: Expr | None = None
    for name, factor in terms.items():
        if factor == 0:
            continue
        index: Expr = Index(name=name)
        size = index if abs(factor) == 1 else index * abs(factor)
        if total is None:
            total = size if factor > 0 else -size
        else:
            total = apply(Op.ADD if factor > 0 else Op.SUBTRACT, total, size)
    if total is None:
        return const(constant)
    if constant == 0:
        return total
    operator = Op.ADD if constant > 0 else Op.SUBTRACT
    return apply(operator, total, const(abs(constant)))


def affine_form(points: Sequence[Point], values: Sequence[int]) -> tuple[Point, int] | None:
    """Coefficients and a constant that give these values at these points."""
    if len(set(values)) == 1:
        return (0,) * len(points[0]), values[0]
    matrix, target = np.array(points, np.int64), np.array(values, np.int64)
    for axis in range(matrix.shape[1]):
        rest = target - matrix[:, axis]
        if (rest == rest[0]).all():
            return tuple(int(n == axis) for n in range(matrix.shape[1])), int(rest[0])
    columns = np.column_stack([matrix, np.ones(len(points), np.int64)]).astype(np.float64)
    solution = np.rint(np.linalg.lstsq(columns, target.astype(np.float64), rcond=None)[0])
    factors = solution[:-1].astype(np.int64)
    if not (matrix @ factors + int(solution[-1]) == target).all():
        return None
    return tuple(map(int, factors)), int(solution[-1])


def mapped(
    names: Sequence[str], points: Sequence[Point], images: Sequence[Point]
) -> tuple[Expr, ...] | None:
    """Expressions over the index names that give the image of each point."""
    expressions: list[Expr] = []
    for axis in range(len(images[0])):
        form = affine_form(points, [image[axis] for image in images])
        if form is None:
            return None
        expressions.append(affine(dict(zip(names, form[0], strict=True)), form[1]))
    return tuple(expressions)


def inside(names: Sequence[str], part: Collection[Point], whole: Collection[Point]) -> Expr | None:
    """The condition for a point of ``whole`` to be in ``part``; ``TRUE`` if all of them are."""
    part, whole = set(part), set(whole)
    rest = whole - part
    if not rest:
        return TRUE
    for tried in (_in_box, _listed, _inside_boxes):
        condition = tried(names, part, whole)
        if condition is not None:
            return condition
        outside = tried(names, rest, whole)
        if outside is not None:
            return ~outside
    return None


def boxes_of(part: Collection[Point], whole: Collection[Point]) -> list[set[Point]]:
    """The part as a few sets, each of which has all points of the whole in some box."""
    rank = len(next(iter(part)))
    if rank == 0:
        return [set(part)]
    ways = (_greedy_boxes(part, whole, axes) for axes in (range(rank), range(rank - 1, -1, -1)))
    return min(ways, key=len)


def _greedy_boxes(
    part: Collection[Point], whole: Collection[Point], axes: Sequence[int]
) -> list[set[Point]]:
    """Each box starts at the first remaining point, and grows along one axis after another."""
    remaining = np.array(sorted(part), np.int64)
    avoided = np.array(sorted(set(whole) - set(part)), np.int64).reshape(-1, remaining.shape[1])
    inner = remaining
    boxes: list[set[Point]] = []
    while len(remaining):
        low, high = remaining[0].copy(), remaining[0].copy()
        for axis in axes:
            for values, step in ((high, 1), (low, -1)):
                for value in np.unique(inner[:, axis])[::step]:
                    if (value - values[axis]) * step <= 0:
                        continue
                    before, values[axis] = values[axis], value
                    if _those_within(avoided, low, high).any():
                        values[axis] = before
                        break
        mine = _those_within(remaining, low, high)
        boxes.append({tuple(map(int, point)) for point in remaining[mine]})
        remaining = remaining[~mine]
    return boxes


def _those_within(points: Array, low: Array, high: Array) -> Array:
    flags: Array = ((points >= low) & (points <= high)).all(axis=1)
    return flags


def _in_box(names: Sequence[str], part: set[Point], whole: set[Point]) -> Expr | None:
    """A range for each coordinate."""
    low, high = _box(part)
    if {point for point in whole if _within(point, low, high)} != part:
        return None
    first, last = _box(whole)
    return conjunction(
        *(
            _between(name, low[axis], high[axis], first[axis], last[axis])
            for axis, name in enumerate(names)
        )
    )


def _inside_boxes(names: Sequence[str], part: set[Point], whole: set[Point]) -> Expr | None:
    """A union of several boxes, which may overlap."""
    boxes = boxes_of(part, whole)
    if len(boxes) > _MOST_BOXES_OF_A_CONDITION:
        return None
    result: Expr | None = None
    for box in boxes:
        low, high = _box(box)
        rest = {point for point in whole if _within(point, low, high)}
        condition = _in_box(names, rest, whole)
        result = condition if result is None or condition is None else result | condition
    return result


def _listed(names: Sequence[str], part: set[Point], whole: set[Point]) -> Expr | None:
    """An equation for each point, if they are few."""
    if len(part) > _MOST_SINGLE:
        return None
    result: Expr | None = None
    for point in sorted(part):
        condition = conjunction(
            *(equals(Index(name=name), at) for name, at in zip(names, point, strict=True))
        )
        result = condition if result is None or condition is None else result | condition
    return result


def _box(points: Collection[Point]) -> tuple[Point, Point]:
    columns = list(zip(*points, strict=True))
    return tuple(map(min, columns)), tuple(map(max, columns))


def _within(point: Point, low: Point, high: Point) -> bool:
    return all(a <= x <= b for a, x, b in zip(low, point, high, strict=True))


def _between(name: str, low: int, high: int, first: int, last: int) -> Expr | None:
    index = Index(name=name)
    if (low, high) == (first, last):
        return None
    if low == high:
        return equals(index, low)
    above = index >= low if low > first else None
    below = index <= high if high < last else None
    return conjunction(above, below)
