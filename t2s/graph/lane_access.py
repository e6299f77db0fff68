"""Accesses by a vector of indices: gathers and scatters of machines, and their holes.

Lane by lane an access names an element of the last dimension; the other indices are scalars.  A
lane of ``HOLE`` touches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2s.core.expr import Expr
from t2s.core.ops import Array
from t2s.core.types import Kind, Type
from t2s.graph.verify_expr import ExprScope, verify_expr

HOLE = -1
"""The index of a lane that touches nothing."""


def verify_lanes(
    indices: tuple[Expr, ...], rank: int, type: Type, scope: ExprScope, what: str
) -> None:
    """Check the last index of an access whose value has a type; raises ``GraphError``."""
    index = indices[-1]
    verify_expr(index, scope, f"the last index of {what}")
    if len(indices) != rank:
        raise scope.subject.error(
            f"{what} has the wrong number of indices", expected=str(rank), given=str(len(indices))
        )
    if index.type.kind is not Kind.INT:
        raise scope.subject.error(
            f"the last index of {what} is a vector of the wrong type",
            expected="signed integers, of which -1 names no element",
            given=str(index.type),
            hint="insert a Cast",
        )
    if index.type.lanes != type.lanes:
        raise scope.subject.error(
            f"the last index of {what} has other lanes than the value",
            expected=f"{type.lanes} lanes, one for each lane of {type}",
            given=str(index.type),
            hint="an index of one lane accesses contiguous elements",
        )


def refuse_lanes(indices: tuple[Expr, ...], scope: ExprScope, what: str) -> None:
    """Refuse an access by a vector where the node is not a machine; raises ``GraphError``."""
    if indices and indices[-1].type.lanes > 1:
        raise scope.subject.error(
            f"{what} gathers or scatters: its last index is a vector",
            expected="a scalar integer; only machines access memory by a vector of indices",
            given=f"an index of type {indices[-1].type}",
            hint="make the node a machine, or access contiguous elements",
        )


def outside(
    leading: Sequence[int], lanes: Array, shape: Sequence[int]
) -> tuple[int, int, int] | None:
    """The first lane that names an element outside of a shape, the dimension and the index there.

    ``None`` if there is none.
    """
    for lane, at in enumerate(lanes.tolist()):
        place = (*leading, at)
        for dimension, (index, extent) in enumerate(zip(place, shape, strict=True)):
            if at != HOLE and not 0 <= index < extent:
                return lane, dimension, index
    return None


def gathered(array: Array, leading: tuple[int, ...], lanes: Array, type: Type) -> Array:
    """The elements that the lanes name; zero at holes, and behind the end of a growing list."""
    result = np.zeros(len(lanes), type.numpy)
    if isinstance(array, list):
        for lane, at in enumerate(lanes.tolist()):
            if 0 <= at < len(array):
                result[lane] = array[at]
        return result
    named = lanes != HOLE
    if np.any(named):
        result[named] = array[leading][lanes[named]]
    return result


def scatter(array: Array, leading: tuple[int, ...], lanes: Array, value: Array, type: Type) -> None:
    """Overwrite the elements that the lanes name, lane after lane; a growing list may get longer.

    ``type`` is that of an element.
    """
    elements = np.asarray(value, type.numpy)
    row = array
    if isinstance(array, list):
        array.extend([type.numpy.type(0)] * (int(lanes.max()) + 1 - len(array)))
    elif np.any(lanes != HOLE):
        row = array[leading] if leading else array
    for lane, at in enumerate(lanes.tolist()):
        if at != HOLE:
            row[at] = elements[lane]
