"""Masked attention in lanes: rows scale with them, heads as far as results come in order."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from t2s import sparse

Array = np.ndarray[Any, Any]

HEADS, ROWS, WIDTH, BLOCK = 4, 128, 64, 64


@cache
def inputs() -> dict[str, Array]:
    """A mask of blocks of 64, of which one is missing."""
    random = np.random.default_rng(0)
    queries = {name: random.normal(size=(HEADS, ROWS, WIDTH)) for name in "QK"}
    grid = np.array([[1.0, 0.0], [1.0, 1.0]])
    return {"M": np.kron(grid, np.ones((BLOCK, BLOCK))), **queries}


@cache
def scores(loop: str = "", lanes: int = 1) -> Any:
    parsed = sparse.parse("P(h,q,k) = M(q,k)*Q(h,q,d)*K(h,k,d)", {"M": "ds", "P": "dds"})
    schedule = f"parallelize({loop},{lanes})" if lanes > 1 else None
    return sparse.compile(parsed, schedule).simulate(inputs())


LANES = (2, 4, pytest.param(8, marks=pytest.mark.slow), pytest.param(16, marks=pytest.mark.slow))


@pytest.mark.parametrize("lanes", LANES)
def test_rows(lanes: int) -> None:
    run = scores("q", lanes)
    assert scores().cycles / run.cycles >= 0.95 * lanes
    np.testing.assert_array_equal(run.output, scores().output)


@pytest.mark.parametrize("lanes", [2, 4])
def test_heads(lanes: int) -> None:
    """The results of the last heads are ready together, and leave one after the other."""
    run = scores("h", lanes)
    entries = int(np.count_nonzero(inputs()["M"]))
    expected = entries * (WIDTH + 1) * HEADS // lanes + (lanes - 1) * entries
    assert expected <= run.cycles <= 1.005 * expected
    np.testing.assert_array_equal(run.output, scores().output)
