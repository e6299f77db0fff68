"""Sparse operands whose modes a function takes in another order: stored so by a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from t2s import Var, external, sparse
from t2s.capability.operands import reordered
from t2s.sparse import Schedule, Tensor, csr, dense
from t2s.sparse_repr.notation.parse import parse_expression
from tests.capability.functions import described
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")


def _matrix(*shape: int) -> Any:
    generator = np.random.default_rng(shape)
    return generator.integers(-3, 4, shape) * (generator.random(shape) < 0.4) * 1.0


def _product(x: Any, y: Any, z: Any) -> None:
    arrays = x.levels[1]
    assert x.format.modes == (0, 1)
    z[...] = scipy.sparse.csr_array((x.values, arrays["crd"], arrays["pos"]), shape=x.shape) @ y


rows = described("rows", "z(i) = x(i,j) * y(j)", _product, types="float64", formats={"x": "ds"})


@pytest.mark.parametrize("letters", ["ds", "ds:1,0", "ss", "uq", "sd", "du"])
@pytest.mark.parametrize("function", [rows, external.scipy.spmv], ids=["ours", "scipy"])
def test_products_with_a_transposed_matrix(letters: str, function: Any) -> None:
    assignment = sparse.parse("A(i) = B(j,i)*c(j)", {"B": letters})
    part = sparse.Notation(parse_expression("B(j,i)*c(j)"), {})
    plan = sparse.compile(assignment, Schedule().map(part, function))
    given = {"B": _matrix(5, 3), "c": np.arange(5.0)}
    found = plan.run(given)
    assert np.array_equal(found.output, given["B"].T @ given["c"])
    assert np.array_equal(plan.interpret(given), found.output)
    assert [type(step).__name__ for step in plan.program.steps] == ["ConvertStep", "CallStep"]
    assert "convert: B_ij is B as ds" in str(plan)


def test_columns_are_the_rows_of_the_transposed_one() -> None:
    """No array is copied: a matrix by columns has those of its transposed one by rows."""
    a, b, B = Tensor("a", dense(1)), Tensor("b", dense(1)), Tensor("B", "ds:1,0")
    a[i] = B[j, i] * b[j]
    plan = sparse.compile(a, Schedule().map(B[j, i] * b[j], rows))
    stored = sparse.tensor(_matrix(4, 6)).convert(B.format)
    given = {"B": stored, "b": np.ones(4)}
    assert np.array_equal(plan.run(given).output, stored.to_dense().sum(0))
    turned = reordered(stored, (1, 0))
    assert np.array_equal(turned.to_dense(), stored.to_dense().T)
    assert turned.values is stored.values


def test_a_large_sparse_result_in_another_order_stays_sparse() -> None:
    """It has no room as a dense one: 10^10 elements."""
    extent = 100_000
    A, B, C = Tensor("A", csr), Tensor("B", "ds:1,0"), Tensor("C", "ds:1,0")
    A[j, i] = B[i, j] + C[i, j]
    plan = sparse.compile(A, Schedule().map(B[i, j] + C[i, j], external.scipy.spadd))
    assert "T(i,j)" in str(plan)
    places = ([0, 7], [3, 0])
    matrix = scipy.sparse.csc_array(([1.0, 2.0], places), shape=(extent, extent))
    found = plan.run({"B": matrix, "C": matrix}).tensor
    assert found.format == csr
    assert (found.levels[1]["crd"].tolist(), found.values.tolist()) == ([7, 0], [4.0, 2.0])


def test_tiles_of_rows_of_a_transposed_matrix() -> None:
    def few(x: Any, y: Any, z: Any) -> None:
        assert x.shape[0] <= 4
        _product(x, y, z)

    function = described(
        "few", "z(i) = x(i,j) * y(j) when i <= 4", few, types="float64", formats={"x": "ds"}
    )
    assignment = sparse.parse("A(i) = B(j,i)*c(j)", {"B": "ds"})
    part = sparse.Notation(parse_expression("B(j,i)*c(j)"), {})
    plan = sparse.compile(assignment, Schedule().map(part, function))
    given = {"B": _matrix(5, 11), "c": np.arange(5.0)}
    found = plan.run(given)
    assert np.array_equal(found.output, given["B"].T @ given["c"])
    assert found.steps[-1].calls == 3


def test_streams_of_a_transposed_sparse_operand() -> None:
    y, x, w = (Tensor(name, dense(1)) for name in "yxw")
    B = Tensor("B", csr)
    y[i] = B[i, j] * x[j]
    spmv = external.from_kernel(sparse.compile(y), device="arria10")
    w[i] = B[j, i] * x[j]
    plan = sparse.compile(w, Schedule().map(B[j, i] * x[j], spmv))
    given = {"B": _matrix(5, 3), "x": np.arange(5.0)}
    assert np.array_equal(plan.run(given).output, given["B"].T @ given["x"])


def test_what_bind_says() -> None:
    a, c = Tensor("a", dense(1)), Tensor("c", dense(1))
    B, S = Tensor("B", dense(2)), Tensor("S", csr)
    a[i] = S[j, i] * c[j]
    with refused("""
        S(j,i)*c(j) is not what rows computes
          --> sparse.compile(a, Schedule().bind(S[j, i] * c[j], rows))
          expected: z(i) = x(i,j)*y(j)
          given:    x would be S(j,i), y would be c(j)
          hint:     map(...) transposes S
    """):
        sparse.compile(a, Schedule().bind(S[j, i] * c[j], rows))
    with refused("""
        S(j,i)*c(j) is not what dsymv computes
          --> sparse.compile(a, Schedule().bind(S[j, i] * c[j], external.blas.dsymv))
          expected: z(i) = x(i,j)*y(j)
          given:    x would be S(j,i), transposed; x is dense, and S is stored as ds:0,1; x is
                    symmetric, and S is not declared so
          hint:     map(...) does more than bind
    """):
        sparse.compile(a, Schedule().bind(S[j, i] * c[j], external.blas.dsymv))
    a[i] = B[i, j] * c[j]
    with refused("""
        rows does not take B as it is stored
          --> sparse.compile(a, Schedule().map(B[i, j] * c[j], rows))
          expected: x ds:0,1
          given:    B as dd:0,1
          hint:     Tensor("B", "ds") stores it so, also what is given as an array
    """):
        sparse.compile(a, Schedule().map(B[i, j] * c[j], rows))


def test_conditions_on_lists_alone() -> None:
    cubes = described("cubes", "z(I) = x(I) * 2 when order(I) == 3", lambda x, z: None)
    A, B = Tensor("A", dense(2)), Tensor("B", dense(2))
    A[i, j] = B[i, j] * 2
    with refused("""
        cubes does not support the variables of B(i,j)*2
          --> sparse.compile(A, Schedule().map(B[i, j] * 2, cubes))
          expected: order(I) == 3
          given:    I is (i,j)
    """):
        sparse.compile(A, Schedule().map(B[i, j] * 2, cubes))


def test_lists_of_the_lengths_that_a_condition_asks_for() -> None:
    def doubled(x: Any, z: Any) -> None:
        assert x.ndim in (2, 5)
        z[...] = x * 2

    for condition in ("order(I) == 5", "order(I) == 2 and I[0] == 2*I[1]"):
        statement = f"z(I) = x(I) * 2 when {condition}"
        made = external.make_function("doubled", statement, python=doubled, strides="any")
        assert external.check(made, trials=60).trials == 60
