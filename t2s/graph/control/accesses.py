"""Which elements of a tensor a load or a store accesses, firing by firing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import evaluate
from t2s.core.ops import Array
from t2s.graph.body import Load, Store
from t2s.graph.control.domains import Domain


def accesses(
    statement: Load | Store,
    strides: Sequence[int],
    domain: Domain,
    pe: int,
    firings: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Those of a PE's firings in which a statement accesses its tensor, and where it does.

    A position is that of the first element, in the unit of ``strides``, which are those of the
    tensor's dimensions.  ``firings`` and ``pe`` count within the domain.
    """
    names = domain.at(pe, firings)
    if statement.condition is not None:
        active = np.broadcast_to(evaluate(statement.condition, names), firings.shape)
        firings, names = firings[active], _chosen(names, active)
    positions = np.zeros(firings.shape, np.int64)
    if len(firings):
        for index, stride in zip(statement.indices, strides, strict=True):
            positions += np.asarray(evaluate(index, names)).astype(np.int64) * stride
    return firings, positions


def _chosen(names: dict[str, Array], active: Array) -> dict[str, Array]:
    """The index values of the firings in which a condition holds."""
    return {
        name: values if np.ndim(values) == 0 else values[active] for name, values in names.items()
    }
