"""When a PE does what: the iterations of its loops, and the *classes* that they fall into.

Two iterations are in one class if every static expression that decides something has the same value
in both.  Classes are found by enumeration with numpy, over the loops that decide something; the
loops inside and outside of these only repeat the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from t2s.backends.cgra_tia.lower.not_lowered import refuse
from t2s.core.expr import (
    Const,
    Expr,
    Index,
    const,
    index_names,
    simplify,
    substitute,
)
from t2s.core.identity_cache import IdentityCache
from t2s.core.intervals import Interval, interval
from t2s.core.location import SourceLocation
from t2s.core.ops import Array
from t2s.graph.control.iterations import Iterations, TooManyIterations, deciding, listed, rows_apart
from t2s.graph.nodes import Loop, PEArray
from t2s.graph.specialize import fold

T = TypeVar("T")

MOST_ITERATIONS = 1 << 23
"""Most iterations of the deciding loops of one PE that are enumerated."""

MOST_CLASSES = 256
"""Most classes of one PE before those that do the same in a cell become one."""


class PointCache:
    """Results that points of one node share.

    Points that agree in all indices of an expression share its folded form, and points with the
    same loops and columns share their classes.
    """

    def __init__(self) -> None:
        self._names = IdentityCache[Expr, list[str]]()
        self._folded: dict[tuple[object, ...], Expr] = {}
        self._made: dict[tuple[object, ...], object] = {}

    def once(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        """The result of ``make`` for a key, computed once; the key has to determine it."""
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def folded(self, expr: Expr, ranges: dict[str, Interval], fixed: dict[str, int]) -> Expr:
        """``fold`` of an expression."""
        names = self._names.get(expr, lambda expr: sorted(index_names(expr)))
        key = (id(expr), *((ranges.get(name), name in fixed) for name in names))
        if key not in self._folded:
            self._folded[key] = fold(expr, ranges, fixed)
        return self._folded[key]


@dataclass(frozen=True, kw_only=True)
class LoopNest:
    """The loops of one PE, outermost first, without those of one iteration.

    ``fixed`` has the value of each index that is constant (space dimensions and loops of one
    iteration), ``ranges`` the range of every index.
    """

    loops: tuple[Loop, ...]
    fixed: dict[str, int]
    ranges: dict[str, Interval]
    subject: str
    location: SourceLocation | None
    cache: PointCache

    def folded(self, expr: Expr) -> Expr:
        """An expression with the known indices substituted."""
        return self.cache.folded(expr, self.ranges, self.fixed)


def nest_of(node: PEArray, point: Sequence[int], cache: PointCache) -> LoopNest | None:
    """The loops of the PE at a point; ``None`` if it never fires."""
    subject = f"node {node.name!r}"
    fixed = {d.name: at for d, at in zip(node.space, point, strict=True)}
    ranges = {name: (at, at) for name, at in fixed.items()}
    loops: list[Loop] = []
    for loop in node.loops:
        minimum = cache.folded(loop.minimum, ranges, fixed)
        extent = cache.folded(loop.extent, ranges, fixed)
        low = interval(minimum, ranges)
        high = interval(simplify(minimum + extent), ranges)
        if low is None or high is None:
            refuse(
                subject,
                f"the bounds of loop {loop.name!r} are not known, and stream units have fixed "
                "nests: give parameters their values when you lower the design",
                node.location,
            )
        if isinstance(extent, Const) and extent.value < 1:
            return None
        ranges[loop.name] = (low[0], high[1] - 1)
        if isinstance(extent, Const) and extent.value == 1 and isinstance(minimum, Const):
            fixed[loop.name] = int(minimum.value)
            continue
        loops.append(Loop(name=loop.name, minimum=minimum, extent=extent))
    return LoopNest(
        loops=tuple(loops),
        fixed=fixed,
        ranges=ranges,
        subject=subject,
        location=node.location,
        cache=cache,
    )


def enumerated(nest: LoopNest, loops: Sequence[Loop]) -> Iterations:
    """All iterations of some loops of a nest; too many are refused."""
    try:
        return listed(loops, MOST_ITERATIONS)
    except TooManyIterations:
        names = ", ".join(repr(loop.name) for loop in loops)
        refuse(
            nest.subject,
            f"what it does depends on the loops {names}, which have more than "
            f"{MOST_ITERATIONS:,} iterations together: use smaller tiles",
            nest.location,
        )


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The class of every iteration.

    ``codes`` are the classes of the iterations of the deciding loops; the whole sequence is
    ``outer`` repetitions of them, with each code ``inner`` times in a row.  ``rows`` has the values
    of all columns in each class.
    """

    codes: Array
    outer: int
    inner: int
    rows: tuple[tuple[int | float | bool, ...], ...]

    @property
    def sequence(self) -> Array:
        """The class of every iteration, one by one."""
        return np.tile(np.repeat(self.codes, self.inner), self.outer)


def classes_of(nest: LoopNest, columns: Sequence[Expr], *, whole: bool = False) -> Classes:
    """The classes that the values of columns define; with ``whole`` all loops are enumerated."""

    def make() -> Classes:
        outer, loops, inner = (1, nest.loops, 1) if whole else _deciding(nest, columns)
        iterations = enumerated(nest, loops)
        values = [iterations.values(column) for column in columns]
        return coded(nest, values, iterations.count, outer, inner)

    return nest.cache.once(("classes", nest.loops, tuple(columns), whole), make)


def coded(nest: LoopNest, values: Sequence[Array], count: int, outer: int, inner: int) -> Classes:
    """The classes of iterations with these values of columns, in order of appearance."""
    codes, first = rows_apart(values, count)
    if len(first) > MOST_CLASSES:
        refuse(
            nest.subject,
            f"its iterations fall into {len(first)} classes, and tags select among 16: what it "
            "does depends on loops in too many ways",
            nest.location,
        )
    rows = tuple(tuple(value[at].item() for value in values) for at in first)
    return Classes(codes=codes, outer=outer, inner=inner, rows=rows)


def _deciding(nest: LoopNest, columns: Sequence[Expr]) -> tuple[int, tuple[Loop, ...], int]:
    """The deciding loops, with the number of iterations outside of them and inside."""
    middle = deciding(nest.loops, columns)
    if middle.start == middle.stop:
        return 1, (), _product(nest.loops)
    outer, inner = nest.loops[: middle.start], nest.loops[middle.stop :]
    return _product(outer), nest.loops[middle], _product(inner)


def _product(loops: Sequence[Loop]) -> int:
    total = 1
    for loop in loops:
        assert isinstance(loop.extent, Const)
        total *= int(loop.extent.value)
    return total


def from_zero(nest: LoopNest) -> dict[str, Expr]:
    """Each loop's index as its minimum plus an index of that name that counts from 0."""
    indices: dict[str, Expr] = {name: const(at) for name, at in nest.fixed.items()}
    for loop in nest.loops:
        start = substitute(loop.minimum, indices)
        indices[loop.name] = simplify(start + Index(name=loop.name))
    return indices
