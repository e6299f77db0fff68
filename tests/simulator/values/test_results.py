"""Results of runs are their own, whether the memory of a run is kept for the next one or not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from t2s import sparse
from t2s.simulator.values import machine_values

ALL = 1 << 40


@pytest.mark.parametrize("most_kept", [0, ALL])
def test_the_next_run_leaves_results_alone(most_kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_values, "_MOST_KEPT_BYTES", most_kept)
    kernel = sparse.compile(sparse.parse("C(i,j) = A(i,j) + B(i,j)", dict.fromkeys("ABC", "ds")))
    A, B = (scipy.sparse.random(40, 50, 0.3, format="csr", random_state=seed) for seed in (1, 2))
    first = kernel.simulate({"A": A, "B": B}).tensor
    levels = {name: array.copy() for name, array in first.levels[1].items()}
    kernel.simulate({"A": B[::-1], "B": -2 * B})
    assert all(np.array_equal(first.levels[1][name], array) for name, array in levels.items())
    np.testing.assert_allclose(first.to_dense(), (A + B).toarray())


def test_memory_that_is_not_kept_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_values, "_MOST_KEPT_BYTES", 0)
    kernel = sparse.compile(sparse.parse("B(i,j) = A(i,j) * 2", {"A": "ds", "B": "ds"}))
    A = scipy.sparse.random(40, 50, 0.3, format="csr", random_state=1)
    values = kernel.simulate({"A": A}).tensor.values
    assert values.base is not None
    assert len(values.base) > len(values)
