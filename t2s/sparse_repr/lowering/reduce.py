"""Reductions, and the cleaning of coordinates below which nothing is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t2s.sparse_repr.blocks.droppers import CoordinateDropper, ValueDropper
from t2s.sparse_repr.blocks.point_reducers import ReducePoints
from t2s.sparse_repr.blocks.reducers import EmptyFiber, ReduceLists
from t2s.sparse_repr.lowering.diagram import DiagramWire
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What a nest computes: its loops, outermost first, and the values.

    ``optional``: where there is nothing the value is N.
    """

    loops: tuple[LoopLevel, ...]
    value: DiagramWire
    optional: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the loops."""
        return tuple(loop.variable for loop in self.loops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The loops around a nest: the coordinates of the innermost one, and whether all are filled.

    ``items``: each of these coordinates has to get an item, be it N.
    """

    coordinate: DiagramWire | None
    filled: bool
    items: bool = False


def reduce_loops(
    blocks: Blocks,
    computed: Computed,
    kept: frozenset[str],
    around: Around,
    *,
    clean: bool,
    whole: frozenset[str] = frozenset(),
) -> Computed:
    """The levels of the variables that are kept, the others summed out, innermost first.

    With ``clean`` coordinates without values are dropped, as long as that leaves coordinates and
    values of the same shape: outside of the outermost reducer that keeps coordinates itself.
    Without it every fiber that a scalar reducer sums gives a value, zero if it is empty.
    ``around`` are the loops around the nest; the coordinates of ``whole`` variables all stay.
    """
    levels = list(computed.loops)
    value, optional = computed.value, False
    if computed.optional and clean and levels:
        levels[-1], value = _drop_missing(blocks, levels[-1], value)
    inner: list[LoopLevel] = []  # the levels that are kept, outermost first
    below: LoopLevel | None = None  # the level whose fibers hang on the coordinates of the next one
    vectors = outermost_vector(computed.variables, kept)
    for at in range(len(levels) - 1, -1, -1):
        level = levels[at]
        cleaning = clean and at < vectors
        drops = cleaning and level.variable not in whole
        if drops and below is not None and not below.filled:
            level, below = _drop(blocks, level, below)
            if inner:
                inner[0] = below
        if level.variable in kept:
            inner.insert(0, level)
            below = level
        elif not inner:
            by = None if cleaning or level.filled else _by(levels[:at], around)
            empty = EmptyFiber.DROP if cleaning or level.filled else EmptyFiber.ZERO
            if cleaning and not at and around.items and not level.filled:
                by, empty, optional = _by([], around), EmptyFiber.MISSING, True
            value = _sum(blocks, level, value, empty, by)
            below = level
        else:
            inner, value = _vector(blocks, level, inner, value)
            below = inner[0]
    optional = optional or (computed.optional and not levels)
    return Computed(loops=tuple(inner), value=value, optional=optional)


def _by(outer: list[LoopLevel], around: Around) -> DiagramWire | None:
    """The coordinates of the loop above, if a fiber of the loops above may be empty."""
    if around.filled and all(level.filled for level in outer):
        return None
    return outer[-1].coordinate if outer else around.coordinate


def outermost_vector(variables: Sequence[str], kept: frozenset[str]) -> int:
    """The place of the outermost variable that is summed out above one that is kept."""
    for at, name in enumerate(variables):
        if name not in kept and any(other in kept for other in variables[at + 1 :]):
            return at
    return len(variables)


def _drop(blocks: Blocks, outer: LoopLevel, inner: LoopLevel) -> tuple[LoopLevel, LoopLevel]:
    """Both levels without the coordinates of ``outer`` that have an empty fiber."""
    new_outer = blocks.like(outer.coordinate)
    new_inner = blocks.like(inner.coordinate)
    given = [outer.coordinate, inner.coordinate]
    blocks.add(CoordinateDropper(), given, [new_outer, new_inner], outer.region)
    return (
        replace(outer, coordinate=new_outer, filled=False, covered=False),
        replace(inner, coordinate=new_inner, filled=True),
    )


def _drop_missing(
    blocks: Blocks, level: LoopLevel, value: DiagramWire
) -> tuple[LoopLevel, DiagramWire]:
    """The innermost level and the values, without the coordinates whose value is N."""
    coordinate, kept = blocks.like(level.coordinate), blocks.like(value)
    block = ValueDropper(missing_only=True)
    blocks.add(block, [level.coordinate, value], [coordinate, kept], level.region)
    return replace(level, coordinate=coordinate, filled=False, covered=False), kept


def _sum(
    blocks: Blocks, level: LoopLevel, value: DiagramWire, empty: EmptyFiber, by: DiagramWire | None
) -> DiagramWire:
    output = blocks.like(value, value.depth - 1)
    given = [value] if by is None else [value, by]
    blocks.add(ReduceLists(empty=empty), given, [output], level.region)
    return output


def _vector(
    blocks: Blocks, level: LoopLevel, inner: list[LoopLevel], value: DiagramWire
) -> tuple[list[LoopLevel], DiagramWire]:
    outputs = tuple(blocks.like(one.coordinate, one.coordinate.depth - 1) for one in inner)
    output = blocks.like(value, value.depth - 1)
    given = [*(one.coordinate for one in inner), value]
    blocks.add(ReducePoints(keys=len(inner)), given, [*outputs, output], level.region)
    levels = [
        replace(one, coordinate=wire, filled=number > 0, covered=False)
        for number, (one, wire) in enumerate(zip(inner, outputs, strict=True))
    ]
    return levels, output
