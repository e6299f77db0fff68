"""A run that was cut short is never mistaken for a whole one."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import sparse
from t2s.simulator.limits import Progress
from tests.errors.designs import product
from tests.errors.refusal import refused
from tests.hand_graphs import systolic_gemm


def test_a_count_that_the_limit_cuts_short() -> None:
    C = product().C
    with refused(
        """
            'C' had not ended after 5 cycles, the limit
              --> t2s.cycles(C, max_cycles=5)
              expected: a run that ends within max_cycles
              given:    14 firings made when it was cut short
              hint:     raise max_cycles; print(error.result) shows the measurements so far
            """,
        t2s.errors.CycleLimitError,
    ):
        t2s.cycles(C, max_cycles=5)
    with pytest.raises(t2s.errors.CycleLimitError) as caught:
        t2s.cycles(C, max_cycles=6)
    assert caught.value.result.limit_reached
    assert caught.value.result.cycles == 6


def test_a_sparse_product_that_the_limit_cuts_short() -> None:
    y = sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"})
    inputs = {"A": np.eye(4), "x": np.ones(4)}
    with refused(
        """
            'y' had not ended after 3 cycles, the limit
              --> sparse.simulate(y, inputs, max_cycles=3)
              expected: a run that ends within max_cycles
              given:    6 firings made when it was cut short
              hint:     raise max_cycles; print(error.result) shows the measurements so far
            """,
        t2s.errors.CycleLimitError,
    ):
        sparse.simulate(y, inputs, max_cycles=3)


def test_a_count_that_the_keyboard_cuts_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*arguments: object, **told: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advanced", press)
    with pytest.raises(t2s.errors.RunInterrupted) as caught:
        t2s.cycles(systolic_gemm(10, 8, 1 << 12), stalls=t2s.RandomStalls())
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.result.interrupted
    assert "was interrupted after" in str(caught.value)
    with pytest.raises(t2s.errors.RunInterrupted):
        sparse.simulate(
            sparse.parse("y(i) = A(i,j) * x(j)", {"A": "ds"}), {"A": np.eye(4), "x": np.ones(4)}
        )
