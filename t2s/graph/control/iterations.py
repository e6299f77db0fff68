"""Iterations of loop nests one by one, and the rows of values that tell them apart.

``domains`` has an axis for each loop and so handles runs of any length; this module lists
iterations, within a budget, for consumers that follow single ones in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import Expr, evaluate, index_names, is_static
from t2s.core.ops import Array
from t2s.graph.nodes import Loop

Integers = NDArray[np.int64]


class TooManyIterations(Exception):
    """There are more iterations than the caller's budget."""


@dataclass(frozen=True, kw_only=True)
class Iterations:
    """Iterations in order, and what each name is in them: arrays that broadcast to ``shape``.

    The first axis has the iterations; a second one, if any, the PEs that make each.
    """

    shape: tuple[int, ...]
    names: Mapping[str, Array]

    @property
    def count(self) -> int:
        """The number of iterations."""
        return self.shape[0]

    def values(self, expr: Expr) -> Array:
        """A static expression in every iteration."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(evaluate(expr, dict(self.names)), self.shape)

    def where(self, conditions: Iterable[Expr]) -> NDArray[np.bool_]:
        """In which iterations all conditions hold."""
        result = np.ones(self.shape, np.bool_)
        for condition in conditions:
            result &= self.values(condition).astype(np.bool_)
        return result

    def elements(self, indices: Sequence[Expr], shape: Sequence[int]) -> Integers:
        """The row-major number of an element of an array of this shape."""
        result = np.zeros(self.shape, np.int64)
        for index, extent in zip(indices, shape, strict=True):
            result = result * extent + self.values(index)
        return result

    def bounds(self, loop: Loop) -> tuple[Integers, Integers]:
        """The minimum and the extent of a loop inside of each iteration."""
        low, extents = self.values(loop.minimum), self.values(loop.extent)
        return low.astype(np.int64), extents.astype(np.int64)

    def inside(self, loop: str, low: Integers, extents: Integers) -> Iterations:
        """The iterations of a loop with these bounds inside of each iteration, of one axis."""
        total = int(extents.sum())
        names = {n: np.repeat(v, extents) if np.ndim(v) else v for n, v in self.names.items()}
        first = np.repeat(np.cumsum(extents) - extents, extents)
        names[loop] = (np.repeat(low, extents) + np.arange(total) - first).astype(np.int32)
        return Iterations(shape=(total,), names=names)


def listed(loops: Iterable[Loop], most: int) -> Iterations:
    """All iterations of a nest, outermost loop first; ``TooManyIterations`` if there are more."""
    iterations = Iterations(shape=(1,), names={})
    for loop in loops:
        low, extents = iterations.bounds(loop)
        extents = np.maximum(extents, 0)
        if int(extents.sum()) > most:
            raise TooManyIterations
        iterations = iterations.inside(loop.name, low, extents)
    return iterations


def deciding(loops: Sequence[Loop], expressions: Iterable[Expr]) -> slice:
    """The range of loops, from the first to the last, that expressions or loop bounds depend on.

    Loops outside and inside this range only repeat it.
    """
    used = frozenset[str]().union(*(index_names(expr) for expr in expressions))
    for loop in loops:
        names = index_names(loop.minimum) | index_names(loop.extent)
        if names or not (is_static(loop.minimum) and is_static(loop.extent)):
            used |= names | {loop.name}
    at = [number for number, loop in enumerate(loops) if loop.name in used]
    return slice(at[0], at[-1] + 1) if at else slice(len(loops), len(loops))


def by_appearance(values: Array) -> tuple[Integers, Integers]:
    """Values numbered in the order in which they appear; and where each is first."""
    _, first, numbers = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.argsort(order)[numbers.reshape(-1)], first[order]


def rows_apart(columns: Iterable[Array], count: int) -> tuple[Integers, Integers]:
    """``by_appearance`` of the rows of a table of so many rows, given by its columns."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        if column.strides == (0,):
            continue  # the same everywhere
        distinct, numbers = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * len(distinct) + numbers.reshape(-1), return_inverse=True)
    return by_appearance(codes)
