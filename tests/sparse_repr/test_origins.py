"""Graphs take the arrays that were made for them, and reports the runs of their matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.representation import Chain, MatrixParam, gallery, product_report, structure


def product(chain: Chain, *promises: str) -> Func:
    A = MatrixParam(Float(32), 2, chain, name="A")
    x = ImageParam(Float(32), 1, name="x")
    p, q, r = Var("p"), RDom(0, A.values.extent(1), name="q"), Var("r")
    i, j = A.inverse_map(p, q)
    y = Func("y")
    y[r] = 0.0
    y[i] += A.values[p, q] * x[j]
    for promise in promises:
        getattr(y, promise)(p)
    return y


def one_row() -> np.ndarray:
    """All in row 0: with two machines of columns, no promise is true of it."""
    matrix = np.zeros((6, 6), np.float32)
    matrix[0] = 1
    return matrix


X = np.arange(1, 7, dtype=np.float32)
CSC = gallery.csc(2)


@pytest.mark.parametrize(
    "promises",
    [
        ("is_distinct_reduction",),
        ("is_continuous_reduction",),
        ("is_continuous_reduction", "is_distinct_reduction"),
    ],
)
def test_arrays_without_the_promises_of_a_graph(promises: tuple[str, ...]) -> None:
    graph = t2s.lower(product(CSC, *promises), {"A": np.eye(6, dtype=np.float32)})
    arrays = structure(product(CSC), {"A": one_row()})
    with pytest.raises(t2s.errors.UserError, match="A_values was made for another design"):
        t2s.simulate(graph, {**arrays, "x": X}, engine="python")


def test_arrays_with_more_promises_than_a_graph_needs() -> None:
    eye = np.eye(6, dtype=np.float32)
    graph = t2s.lower(product(CSC), {"A": eye})
    arrays = structure(product(CSC, "is_distinct_reduction"), {"A": 2 * eye})
    found = t2s.simulate(graph, {**arrays, "x": X}, engine="python").outputs["y"]
    np.testing.assert_array_equal(found, 2 * X)


def test_arrays_of_another_chain() -> None:
    """RoundRobin and ASAP give arrays of the same names and, here, of the same shapes."""
    matrix = np.tril(np.ones((6, 6), np.float32))
    graph = t2s.lower(product(gallery.csr(2)), {"A": matrix})
    arrays = structure(product(gallery.cisr(2)), {"A": matrix})
    with pytest.raises(t2s.errors.UserError):
        t2s.simulate(graph, {**arrays, "x": X}, engine="python")


def test_arrays_that_were_computed_are_taken_as_they_are() -> None:
    eye = np.eye(6, dtype=np.float32)
    y = product(CSC, "is_distinct_reduction")
    graph, arrays = t2s.lower(y, {"A": eye}), structure(y, {"A": eye})
    arrays["A_values"] = 3 * arrays["A_values"]
    found = t2s.simulate(graph, {**arrays, "x": X}, engine="python").outputs["y"]
    np.testing.assert_array_equal(found, 3 * X)
    assert type(found) is np.ndarray


def test_graphs_keep_their_origin_in_json() -> None:
    graph = t2s.lower(product(CSC, "is_distinct_reduction"), {"A": np.eye(6, dtype=np.float32)})
    assert graph_from_json(graph_to_json(graph)) == graph


def test_a_report_of_a_run_with_another_matrix() -> None:
    y = product(gallery.cisr(2))
    random = np.random.default_rng(2)
    first = (random.random((6, 6)) < 0.5).astype(np.float32)
    same_sizes = first[::-1].copy()
    result = t2s.simulate(y, {"A": first, "x": X}, engine="python", device="arria10")
    assert product_report(y, result, {"A": sparse.csr_array(first)}).cycles == result.cycles
    for other in (same_sizes, 2 * first, np.ones((6, 6), np.float32), np.eye(9, dtype=np.float32)):
        with pytest.raises(t2s.errors.UserError, match="not a run of y with this matrix"):
            product_report(y, result, {"A": other})
    dense = Func("y")
    i = Var("i")
    dense[i] = ImageParam(Float(32), 1, name="x")[i]
    dense.bound(i, 0, 6)
    with pytest.raises(t2s.errors.UserError, match="not a run of y with this matrix"):
        product_report(y, t2s.simulate(dense, {"x": X}), {"A": first})
