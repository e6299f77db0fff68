"""Lanes and fused loops outside of what a reducer of coordinates keeps."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import sparse
from tests.sampling import sampled

DESIGNS = (
    ("X(i,j) = U(k,i,j)*T(k,i,j)", "reorder(k,i,j), parallelize(k,2)"),
    ("X(j,k) = A(i,k)*B(j,k)", "reorder(i,j,k), parallelize(i,2)"),
    ("X(j) = U(k,i,j)*A(k,i)", "reorder(k,i,j), parallelize(i,3)"),
    ("X(i,j) = U(k,i,j)*T(k,i,j)", "reorder(k,i,j), fuse(k,i,f), parallelize(f,2)"),
)


@pytest.mark.parametrize("seed", range(2))
@sampled(("text", "schedule"), DESIGNS, quick=2)
def test_outer_loops_that_are_summed(text: str, schedule: str, seed: int) -> None:
    """Fibers of a lane in which nothing meets are put as they are."""
    formats = {"U": "sss", "T": "sss", "A": "ss", "B": "ss"}
    formats = {name: letters for name, letters in formats.items() if f"{name}(" in text}
    formats["X"] = "s" * len(text[2 : text.index(")")].split(","))
    kernel = sparse.compile(sparse.parse(text, formats), "transpose(), " + schedule)
    generator = np.random.default_rng(seed)
    inputs = {
        name: generator.integers(1, 5, (3,) * len(letters)) * 1.0
        for name, letters in formats.items()
        if name != "X"
    }
    for array in inputs.values():
        array *= generator.random(array.shape) < 0.4
    expected = kernel.interpret(inputs)
    for capacity in (2, 1000):
        result = kernel.simulate(inputs, engine="python", capacity=capacity)
        assert np.array_equal(result.output, expected)
    assert np.array_equal(kernel.interpret(inputs, level="blocks"), expected)
