"""Loop nests as counters: where a nest starts, and what comes after an iteration.

If every loop inside of the outermost one has an iteration whenever it is entered, the next
iteration is one step of the innermost loop that is not at its end, and the loops inside of it
start anew.  Otherwise the hardware has to skip loops without iterations, in the same cycle: it
takes a bounded number of steps up and down the nest, and ``longest_search`` bounds them by
looking at all of the outer iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import Expr, Parameter, evaluate, index_names
from t2s.core.walk import walk
from t2s.graph.nodes import PEArray

MOST_ITERATIONS = 1 << 22
"""Most outer iterations of a node, over all PEs, that are looked at."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    """How a nest is counted: ``search`` steps up and down it, or 0 for simple counters."""

    search: int


def nest_of(node: PEArray) -> Nest | str:
    """How to count a nest, or why that is not possible."""
    loops = {loop.name for loop in node.loops}
    inner = [bound for loop in node.loops for bound in (loop.minimum, loop.extent)]
    if not any(index_names(bound) & loops for bound in inner):
        return Nest(search=0)  # a box: if a loop has no iteration there is no firing at all
    if any(isinstance(term, Parameter) for bound in inner for term in walk(bound)):
        return (
            "bounds of its loops depend on other loops and on parameters, so it is not known how "
            "many empty loops to skip in one cycle; make the parameters constants"
        )
    run = _longest_run_of_empty_loops(node)
    if run is None:
        return (
            f"its loops are not a box and have more than {MOST_ITERATIONS} outer iterations to "
            "look at"
        )
    return Nest(search=0 if run == 0 else (run + 2) * 2 * len(node.loops))


def _longest_run_of_empty_loops(node: PEArray) -> int | None:
    """Most loops without iterations, one after the other, of any PE; ``None`` if not known."""
    names, alive = _points(node)
    for loop in node.loops[:-1]:
        names, alive, count = _entered(loop.minimum, loop.extent, loop.name, names, alive)
        if count > MOST_ITERATIONS:
            return None
    extent = _values(node.loops[-1].extent, names, len(alive))
    return _longest_false(alive & (extent > 0))


def _points(node: PEArray) -> tuple[dict[str, Array], Array]:
    points = [
        point
        for point in product(*(range(d.minimum, d.minimum + d.extent) for d in node.space))
        if node.has_pe(point)
    ]
    columns = np.asarray(points, np.int32).reshape(len(points), len(node.space))
    names: dict[str, Array] = {
        dimension.name: columns[:, at] for at, dimension in enumerate(node.space)
    }
    return names, np.ones(len(points), np.bool_)


def _entered(
    minimum: Expr, extent: Expr, name: str, names: Mapping[str, Array], alive: Array
) -> tuple[dict[str, Array], Array, int]:
    """The iterations of a loop in all iterations around it; an empty loop stays, not alive."""
    low = _values(minimum, names, len(alive))
    trips = np.where(alive, _values(extent, names, len(alive)), 0)
    here = np.maximum(trips, 1)
    total = int(here.sum())
    if total > MOST_ITERATIONS:
        return {}, alive, total
    starts = np.repeat(np.cumsum(here) - here, here)
    inner = {known: np.repeat(values, here) for known, values in names.items()}
    inner[name] = (np.arange(total) - starts + np.repeat(low, here)).astype(np.int32)
    return inner, np.repeat(alive & (trips > 0), here), total


def _values(expr: Expr, names: Mapping[str, Array], count: int) -> Array:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(evaluate(expr, dict(names))), (count,)).astype(np.int64)


def _longest_false(flags: Array) -> int:
    edges = np.flatnonzero(np.concatenate([[True], flags, [True]]))
    return int(np.diff(edges).max(initial=1)) - 1
