"""Fitting the depths of graphs whose control depends on their data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s.core.errors import UserError
from t2s.core.ops import Op
from tests.sparse_repr.graphs import elementwise, matrix_vector


def sparse(seed: int, shape: tuple[int, int]) -> Any:
    random = np.random.default_rng(seed)
    return (random.integers(1, 9, shape) * (random.random(shape) < 0.4)).astype(np.float64)


@pytest.mark.parametrize("device", ["ideal", "arria10"])
def test_depths_are_minimal(device: str) -> None:
    design = elementwise(sparse(0, (4, 5)), sparse(1, (4, 5)), Op.ADD)
    fit = t2s.fit_depths(design.graph, design.inputs, device=device, workers=1, progress=False)
    fitted = fit.apply(design.graph)
    result = t2s.simulate(fitted, design.inputs, device=device)
    assert result.cycles == fit.cycles
    assert fit.minimal
    plain = t2s.simulate(fitted, design.inputs, device=device, engine="python")
    assert plain.cycles == fit.cycles
    deep = max(fit.depths, key=fit.depths.__getitem__)
    assert fit.depths[deep] > 1
    slower = result.retime({deep: fit.depths[deep] - 1})
    assert slower.deadlock is not None or slower.cycles > fit.cycles


def test_depths_are_those_of_the_data() -> None:
    """A row without elements keeps the other operand waiting for less."""
    vector = np.arange(1.0, 9.0)
    full, empty = (matrix_vector(a, vector) for a in (np.ones((3, 8)), np.eye(3, 8)))
    first, second = (
        t2s.fit_depths(d.graph, d.inputs, workers=1, progress=False) for d in (full, empty)
    )
    assert first.unbounded_cycles > second.unbounded_cycles
    assert first.depths != second.depths


def test_inputs_are_needed() -> None:
    design = elementwise(sparse(0, (4, 5)), sparse(1, (4, 5)), Op.ADD)
    with pytest.raises(UserError, match="depend on its data"):
        t2s.fit_depths(design.graph)
