"""Reductions, and the cleaning of coordinates below which nothing is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.sparse_repr.lowering.diagram import Drop, DropMissing, Empty, Reduce, Stream
from t2s.sparse_repr.lowering.scope import Blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """What a nest computes: the coordinates of its loops, outermost first, and the values.

    ``filled``: no fiber of the level is empty; ``covered``: every coordinate is there;
    ``regions``: the loops in the diagram.  ``optional``: where there is nothing the value is N.
    """

    variables: tuple[str, ...]
    regions: tuple[str, ...]
    coordinates: tuple[Stream, ...]
    filled: tuple[bool, ...]
    covered: tuple[bool, ...]
    value: Stream
    optional: bool = False

    @classmethod
    def of(cls, value: Stream) -> Computed:
        """A value without loops."""
        return cls(variables=(), regions=(), coordinates=(), filled=(), covered=(), value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    variable: str
    region: str
    coordinate: Stream
    filled: bool
    covered: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The loops around a nest: the coordinates of the innermost one, and whether all are filled.

    ``items``: each of these coordinates has to get an item, be it N.
    """

    coordinate: Stream | None
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
    levels = [
        _Level(variable=v, region=r, coordinate=c, filled=f, covered=a)
        for v, r, c, f, a in zip(
            computed.variables,
            computed.regions,
            computed.coordinates,
            computed.filled,
            computed.covered,
            strict=True,
        )
    ]
    value, optional = computed.value, False
    if computed.optional and clean and levels:
        levels[-1], value = _drop_missing(blocks, levels[-1], value)
    inner: list[_Level] = []  # the levels that are kept, outermost first
    below: _Level | None = None  # the level whose fibers hang on the coordinates of the next one
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
            empty = Empty.DROP if cleaning or level.filled else Empty.ZERO
            if cleaning and not at and around.items and not level.filled:
                by, empty, optional = _by([], around), Empty.MISSING, True
            value = _sum(blocks, level, value, empty, by)
            below = level
        else:
            inner, value = _vector(blocks, level, inner, value, _by(levels[:at], around))
            below = inner[0]
    return Computed(
        variables=tuple(level.variable for level in inner),
        regions=tuple(level.region for level in inner),
        coordinates=tuple(level.coordinate for level in inner),
        filled=tuple(level.filled for level in inner),
        covered=tuple(level.covered for level in inner),
        value=value,
        optional=optional or (computed.optional and not levels),
    )


def _by(outer: list[_Level], around: Around) -> Stream | None:
    """The coordinates of the loop above, if a fiber of the loops above may be empty."""
    if around.filled and all(level.filled for level in outer):
        return None
    return outer[-1].coordinate if outer else around.coordinate


def outermost_vector(variables: tuple[str, ...], kept: frozenset[str]) -> int:
    """The place of the outermost variable that is summed out above one that is kept."""
    for at, name in enumerate(variables):
        if name not in kept and any(other in kept for other in variables[at + 1 :]):
            return at
    return len(variables)


def _drop(blocks: Blocks, outer: _Level, inner: _Level) -> tuple[_Level, _Level]:
    """Both levels without the coordinates of ``outer`` that have an empty fiber."""
    new_outer = blocks.like(outer.coordinate)
    new_inner = blocks.like(inner.coordinate)
    blocks.add(
        Drop(
            outer=outer.coordinate,
            inner=inner.coordinate,
            outer_output=new_outer,
            inner_output=new_inner,
            variable=outer.region,
        )
    )
    return (
        _Level(
            variable=outer.variable,
            region=outer.region,
            coordinate=new_outer,
            filled=False,
            covered=False,
        ),
        _Level(
            variable=inner.variable,
            region=inner.region,
            coordinate=new_inner,
            filled=True,
            covered=inner.covered,
        ),
    )


def _drop_missing(blocks: Blocks, level: _Level, value: Stream) -> tuple[_Level, Stream]:
    """The innermost level and the values, without the coordinates whose value is N."""
    coordinate, kept = blocks.like(level.coordinate), blocks.like(value)
    blocks.add(
        DropMissing(
            coordinate=level.coordinate,
            value=value,
            coordinate_output=coordinate,
            value_output=kept,
            variable=level.region,
        )
    )
    return replace(level, coordinate=coordinate, filled=False, covered=False), kept


def _sum(blocks: Blocks, level: _Level, value: Stream, empty: Empty, by: Stream | None) -> Stream:
    output = blocks.like(value, value.depth - 1)
    blocks.add(
        Reduce(
            coordinates=(),
            value=value,
            outputs=(),
            output=output,
            empty=empty,
            by=by,
            variable=level.region,
        )
    )
    return output


def _vector(
    blocks: Blocks, level: _Level, inner: list[_Level], value: Stream, by: Stream | None
) -> tuple[list[_Level], Stream]:
    outputs = tuple(blocks.like(one.coordinate, one.coordinate.depth - 1) for one in inner)
    output = blocks.like(value, value.depth - 1)
    blocks.add(
        Reduce(
            coordinates=tuple(one.coordinate for one in inner),
            value=value,
            outputs=outputs,
            output=output,
            by=by,
            variable=level.region,
        )
    )
    first, *rest = [
        _Level(
            variable=one.variable,
            region=one.region,
            coordinate=stream,
            filled=number > 0,
            covered=False,
        )
        for number, (one, stream) in enumerate(zip(inner, outputs, strict=True))
    ]
    return [first, *rest], output
