"""The PEs and firings of a node as axes of numpy arrays, for evaluating control all at once.

Control is static: conditions and index expressions depend on space indices, loop indices and
parameters only.  A ``Domain`` binds these names to arrays that broadcast against each other, one
axis per space dimension and per loop, so the value of an expression has extent 1 along every axis
it does not depend on, and a whole run is evaluated at the cost of the few axes that matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Expr, evaluate, index_names
from t2s.core.ops import Array
from t2s.core.printer import show
from t2s.graph.nodes import Loop, PEArray

MOST_FIRINGS = 1 << 28
"""Most firings of one PE; the control of each takes a few bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """PEs of a node that share one list of firings.

    Attributes
    ----------
    first_pe: position of the first of these PEs among the node's, in row-major space order.
    shape: extents, space axes first, then time axes; firings are in row-major order of time.
    space_rank: number of space axes.
    names: what every space dimension, loop and parameter is, as an array of the shape's rank.
    """

    first_pe: int
    shape: tuple[int, ...]
    space_rank: int
    names: Mapping[str, Array]

    @property
    def pe_count(self) -> int:
        """Number of PEs."""
        return prod(self.shape[: self.space_rank])

    @property
    def firings(self) -> int:
        """Number of firings of each PE."""
        return prod(self.shape[self.space_rank :])

    def value(self, expr: Expr) -> Array:
        """The value of a static expression; extent 1 along the axes it does not depend on."""
        with np.errstate(all="ignore"):
            value = np.asarray(evaluate(expr, dict(self.names)))
        return value.reshape(value.shape or (1,) * len(self.shape))

    def condition(self, condition: Expr | None) -> Array:
        """Where a condition holds (``None`` is everywhere); nowhere in a domain without firings."""
        if 0 in self.shape:
            return np.zeros((1,) * len(self.shape), np.bool_)
        if condition is None:
            return np.ones((1,) * len(self.shape), np.bool_)
        return self.value(condition)


def domains(
    node: PEArray, parameters: Mapping[str, Array], *, separate: bool = False
) -> tuple[Domain, ...]:
    """One domain for the whole node, or one per PE where loop bounds differ between PEs.

    Points of the space domain without a PE have a domain without firings.

    ``separate`` forces one per PE.  Raises ``UserError`` for a negative trip count and for more
    firings than ``MOST_FIRINGS``.
    """
    space = {dimension.name for dimension in node.space}
    bounds = [bound for loop in node.loops for bound in (loop.minimum, loop.extent)]
    if (
        not separate
        and node.exists is None
        and not any(index_names(bound) & space for bound in bounds)
    ):
        extents = tuple(dimension.extent for dimension in node.space)
        points = [np.arange(d.minimum, d.minimum + d.extent, dtype=np.int32) for d in node.space]
        time, names = _time(node, dict(parameters))
        rank = len(extents) + len(time)
        shared: dict[str, Array] = dict(parameters)
        for axis, (dimension, values) in enumerate(zip(node.space, points, strict=True)):
            shared[dimension.name] = _along(values, axis, rank)
        for name, values in names.items():
            shared[name] = values.reshape((1,) * len(extents) + values.shape)
        return (Domain(first_pe=0, shape=extents + time, space_rank=len(extents), names=shared),)
    return tuple(_separate(node, parameters))


def _along(values: Array, axis: int, rank: int) -> Array:
    return values.reshape(tuple(-1 if position == axis else 1 for position in range(rank)))


def _separate(node: PEArray, parameters: Mapping[str, Array]) -> Iterator[Domain]:
    ranges = (range(d.minimum, d.minimum + d.extent) for d in node.space)
    for position, point in enumerate(product(*ranges)):
        known: dict[str, Array] = dict(parameters)
        for dimension, value in zip(node.space, point, strict=True):
            known[dimension.name] = np.int32(value)
        if node.has_pe(point):
            time, names = _time(node, known)
        else:
            time, names = (0,), {loop.name: np.zeros(0, np.int32) for loop in node.loops}
        yield Domain(first_pe=position, shape=time, space_rank=0, names={**known, **names})


def _time(node: PEArray, known: dict[str, Array]) -> tuple[tuple[int, ...], dict[str, Array]]:
    """The time axes and the loop indices over them: one axis per loop if the nest is a box."""
    loops = {loop.name for loop in node.loops}
    bounds = [bound for loop in node.loops for bound in (loop.minimum, loop.extent)]
    if any(index_names(bound) & loops for bound in bounds):
        return _enumerated(node, known)
    extents, minima = [], []
    for loop in node.loops:
        minima.append(_scalar(loop.minimum, known))
        extents.append(_scalar(loop.extent, known))
        _check_extent(node, loop, extents[-1])
        _check_firings(node, prod(extents))
    names = {
        loop.name: _along(np.arange(low, low + count, dtype=np.int32), axis, len(extents))
        for axis, (loop, low, count) in enumerate(zip(node.loops, minima, extents, strict=True))
    }
    return tuple(extents), names


def _enumerated(node: PEArray, known: dict[str, Array]) -> tuple[tuple[int, ...], dict[str, Array]]:
    """A nest that is not a box, as one time axis: the list of its iterations."""
    names: dict[str, Array] = {}
    count = 1
    for loop in node.loops:
        environment = {**known, **names}
        with np.errstate(all="ignore"):
            low = np.broadcast_to(evaluate(loop.minimum, environment), (count,)).astype(np.int64)
            extent = np.broadcast_to(evaluate(loop.extent, environment), (count,)).astype(np.int64)
        if count:
            _check_extent(node, loop, int(extent.min()))
        total = int(extent.sum())
        _check_firings(node, total)
        starts = np.repeat(np.cumsum(extent) - extent, extent)
        names = {name: np.repeat(values, extent) for name, values in names.items()}
        inner = np.arange(total) - starts + np.repeat(low, extent)
        names[loop.name] = inner.astype(np.int32)
        count = total
    return (count,), names


def _scalar(expr: Expr, known: Mapping[str, Array]) -> int:
    with np.errstate(all="ignore"):
        return int(evaluate(expr, dict(known)))


def _check_extent(node: PEArray, loop: Loop, extent: int) -> None:
    if extent < 0:
        raise UserError(
            f"loop {loop.name!r} of {node.name!r} has a negative trip count",
            location=node.location,
            expected="an extent of at least 0 in every iteration of the loops around it",
            given=f"{extent}, from {show(loop.extent)}",
            hint="check the bounds and the parameters they are computed from",
        )


def _check_firings(node: PEArray, firings: int) -> None:
    if firings > MOST_FIRINGS:
        raise UserError(
            f"{node.name!r} has too many firings to simulate",
            location=node.location,
            expected=f"at most {MOST_FIRINGS} firings of one PE",
            given=f"{firings}",
            hint="simulate a smaller problem, or spread the loops over more PEs",
        )
