"""Coordinates that have to be in order: what the blocks of a graph take for granted of its inputs.

A machine that joins two lists compares their first coordinates only, so lists that are not in order
give wrong numbers and no wrong token.  Where a graph says that an input ascends (see ``Tensor``),
it is looked at before a run.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2s.core.errors import UserError
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor


def check_ascending(graph: Graph, inputs: Mapping[str, Array]) -> None:
    """``UserError`` if the coordinates of a fiber do not increase."""
    for tensor in graph.tensors:
        if tensor.ascending is not None:
            _check(tensor, inputs[tensor.name], graph.tensor(tensor.ascending), inputs)


def _check(tensor: Tensor, given: Array, positions: Tensor, inputs: Mapping[str, Array]) -> None:
    falls = np.flatnonzero(given[1:] <= given[:-1]) + 1
    if not falls.size:
        return
    starts = inputs[positions.name]
    inside = falls[~np.isin(falls, starts)]
    inside = inside[(inside > starts[0]) & (inside < starts[-1])] if starts.size else inside[:0]
    if not inside.size:
        return
    at = int(inside[0])
    fiber = int(np.searchsorted(starts, at, side="right")) - 1
    raise UserError(
        f"the coordinates {tensor.name!r} are not in order",
        location=tensor.location,
        expected="coordinates that increase inside of each fiber",
        given=f"{given[at]} behind {given[at - 1]}, at position {at} in fiber {fiber} of "
        f"{positions.name!r}",
        hint="sort the coordinates, and add up entries that occur twice",
    )
