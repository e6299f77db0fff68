"""Reports of sparse products: all cycles are accounted for, and the cause is named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import t2s
from t2s import Float, Func
from t2s.representation import LinearArray, gallery, product_report, structure
from tests.errors.refusal import refused
from tests.sampling import sampled
from tests.sparse_repr.test_products import product


def matrix(rows: int, columns: int, density: float) -> sparse.csr_array:
    kept = np.random.default_rng(5).random((rows, columns)) < density
    return sparse.csr_array(kept.astype(np.float32))


def run(y: Func, a: sparse.csr_array, **options: object) -> tuple[t2s.SimResult, object]:
    inputs = {"A": a, "x": np.ones(a.shape[1], np.float32)}
    result = t2s.simulate(y, inputs, **options)
    return result, product_report(y, result, {"A": a})


@pytest.mark.parametrize("memory", ["ideal", "ddr4-2133"])
@sampled(
    "make",
    [
        gallery.cisr,
        gallery.csc,
        gallery.dia,
    ],
    quick=1,
)
def test_all_cycles_are_accounted_for(make: object, memory: str) -> None:
    a = matrix(30, 40, 0.2)
    options = {"device": "arria10", "memory": memory, "engine": "python"}
    result, report = run(product(make(3)), a, **options)
    beyond = report.latency + report.x + report.decoder + report.waits + report.y
    assert report.bound - report.overlap + beyond == report.cycles == result.cycles
    assert min(report.x, report.decoder, report.waits, report.y) >= 0
    storage = product(make(3)).written[-1].symbols["A_values"].matrix.store(a)
    assert (report.padding, report.balance) == (storage.padding, storage.balance)


def test_a_result_explains_itself() -> None:
    a = matrix(20, 30, 0.5)
    result, report = run(product(gallery.cisr(2)), a, device="arria10", engine="python")
    assert report.cause == "latency of memory"
    for label, text in report.lines:
        assert (label, text) in result.summary
    assert f"{report.fraction:.1%} of it reached, because of: latency of memory" in str(result)


def test_long_rows_reach_the_bound() -> None:
    a = matrix(8, 300, 0.5)
    _, report = run(product(gallery.cisr(1)), a, engine="python")
    assert report.fraction >= 0.9
    assert report.cause == ""


def test_empty_rows_are_named() -> None:
    a = sparse.csr_array((np.ones(1, np.float32), ([499], [0])), shape=(500, 1))
    _, report = run(product(gallery.cisr(1)), a, engine="python")
    assert report.cause == "empty rows"


def test_short_additions_stall() -> None:
    """Fewer partial sums than an addition has cycles: the circuit waits for itself."""
    y = product(gallery.cisr(1))
    y.reduction_circuit(LinearArray, 1)
    _, report = run(y, matrix(4, 100, 1.0), device="arria10", engine="python")
    assert report.stalls > report.steps // 2
    assert report.waits_for == "y, which waits for itself"
    assert report.cause == "reduction"


def test_a_dense_design_has_no_product() -> None:
    y, i = Func("y"), t2s.Var("i")
    y[i] = 1.0
    y.bound(i, 0, 4)
    result = t2s.simulate(y, {}, engine="python")
    with refused(
        """
        Func y is not a product of a sparse matrix
          --> product_report(y, result)
          expected: a Func that reads the values of a t2s.representation.MatrixParam
          given:    Func y
        """
    ):
        product_report(y, result)


def test_a_run_that_did_not_end() -> None:
    a, y = matrix(4, 4, 0.5), product(gallery.cisr(1), Float(32))
    graph, arrays = t2s.lower(y, {"A": a}), structure(y, {"A": a})
    inputs = {**arrays, "x": np.ones(4, np.float32)}
    result = t2s.simulate(graph, inputs, max_cycles=3, engine="python")
    with refused(
        """
        the result is not a whole run of y
          --> product_report(y, result, {"A": a})  # cut short
          expected: a run of y that finished, with this matrix
          given:    a run of y: cycle limit reached
        """
    ):
        product_report(y, result, {"A": a})  # cut short
