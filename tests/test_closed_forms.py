"""Cycle counts that follow from the dataflow, for designs written in the language.

An output-stationary array gets its operands at the boundary, one per PE and cycle, and passes
them on.  PE (i, j) makes its first multiply-add i + j cycles after PE (0, 0), because the operand
from the left needs j hops and the one from above i hops, one cycle each, and then one every cycle.
With M x N PEs and K products for each result the last multiply-add of PE (M-1, N-1) is in cycle

    1 + (M - 1) + (N - 1) + (K - 1) = M + N + K - 2,

counted from 1 at the first multiply-add: 3n - 2 for M = N = K = n.
"""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.sampling import sampled


def output_stationary(rows: int, columns: int, depth: int) -> Func:
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, rows).bound(j, 0, columns)
    A_loader, B_loader = t2s.funcs("A_loader B_loader")
    C.update().unroll(i, j)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader)
    C.forward(A_loader, j).forward(B_loader, i)
    return C


@pytest.mark.parametrize("engine", ["python", "native"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_a_square_array_takes_3n_minus_2_cycles(n: int, engine: str) -> None:
    generator = np.random.default_rng(n)
    a, b = (generator.integers(-99, 99, (n, n)).astype(np.int32) for _ in "ab")
    result = t2s.simulate(output_stationary(n, n, n), {"A": a, "B": b}, engine=engine)
    np.testing.assert_array_equal(result.outputs["C"], a @ b)
    assert result.compute_cycles == 3 * n - 2
    # one cycle to load and one to store around it, on a device without latencies
    assert result.cycles == 1 + 3 * n - 2 + 1


@sampled(
    ("rows", "columns", "depth"),
    [(1, 7, 4), (5, 2, 9), (4, 6, 1), (3, 8, 20)],
    quick=2,
)
def test_a_rectangular_array_takes_m_plus_n_plus_k_minus_2_cycles(
    rows: int, columns: int, depth: int
) -> None:
    design = t2s.lower(output_stationary(rows, columns, depth))
    inputs = {name: np.ones(design.tensor(name).shape, np.int32) for name in ("A", "B")}
    for engine in ("python", "native"):
        result = t2s.simulate(design, inputs, engine=engine)
        assert result.compute_cycles == rows + columns + depth - 2
    assert "cycles from first to last compute firing" in str(result)


@pytest.mark.parametrize(("tile", "interval"), [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1)])
def test_the_accumulation_distance_sets_the_interval(tile: int, interval: int) -> None:
    """A float32 sum of latency 4 at distance d fires every ceil(4 / d) cycles on arria10."""
    A, x = ImageParam(t2s.Float(32), 2, name="A"), ImageParam(t2s.Float(32), 1, name="x")
    i, k = Var("i"), RDom(0, 6, name="k")
    y = Func("y")
    y[i] = 0.0
    y[i] += A[i, k] * x[k]
    y.bound(i, 0, tile).update().reorder(i, k)
    result = t2s.simulate(
        y,
        {"A": np.ones((tile, 6), np.float32), "x": np.ones(6, np.float32)},
        device="arria10",
    )
    assert result.nodes["y"].interval.cycles == interval
    assert result.compute_cycles == (6 * tile - 1) * interval + 1
