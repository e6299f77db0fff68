"""PEs without loops in time fire once, or take and send nothing at all."""

from __future__ import annotations

from itertools import product
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, Var
from tests.spatial.agreement import results
from tests.spatial.programs import random_inputs

COMPARISONS = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def guarded(rows: int, test: tuple[str, int, int], unrolled: str) -> Func:
    """``F[i, j]`` reads x only where ``factor * i`` compares so with ``j + number``."""
    comparison, factor, number = test
    i, j, x, F = Var("i"), Var("j"), ImageParam(Int(32), 2, name="x"), Func("F")
    holds = COMPARISONS[comparison](factor * i, j + number)
    F[i, j] = t2s.select(holds, x[i, j], 7)
    F.bound(i, 0, rows).bound(j, 0, 2)
    return F.unroll(*({"i": i, "j": j}[name] for name in unrolled))


@pytest.mark.slow
@settings(
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.integers(1, 4),
    st.tuples(st.sampled_from(sorted(COMPARISONS)), st.integers(-2, 2), st.integers(-2, 3)),
    st.sampled_from(["ij", "i", "j"]),
)
def test_guarded_reads(rows: int, test: tuple[str, int, int], unrolled: str) -> None:
    comparison, factor, number = test
    places = product(range(rows), range(2))
    assume(any(COMPARISONS[comparison](factor * i, j + number) for i, j in places))
    func = guarded(rows, test, unrolled)
    graph = t2s.lower(func)
    inputs = random_inputs(graph, 1)
    for name, result in results(graph, inputs).items():
        np.testing.assert_array_equal(result, t2s.interpret(func, inputs), err_msg=name)


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize("last", [False, True])
def test_one_pe_of_many_reads_nothing(rows: int, last: bool) -> None:
    i, x, F = Var("i"), ImageParam(Int(32), 1, name="x"), Func("F")
    F[i] = t2s.select(i < rows - 1, x[i], 7) if last else t2s.select(i > 0, x[i - 1], 7)
    F.bound(i, 0, rows).unroll(i)
    data = np.arange(rows - 1, dtype=np.int32)
    expected = [*data.tolist(), 7] if last else [7, *data.tolist()]
    for engine in ("python", "native"):
        result = t2s.simulate(F, {"x": data}, engine=engine, progress=False)
        assert result.outputs["F"].tolist() == expected
