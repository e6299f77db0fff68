"""What is accepted and what is refused, as it stands: every refusal by its whole text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import Float, Var, external, sparse
from t2s.errors import UserError
from t2s.sparse import Schedule, Tensor, csr, dense
from tests.capability.functions import add8, described, saxpy, sdot
from tests.errors.refusal import refused

i, j, k, l, m, n = (Var(name) for name in "ijklmn")  # noqa: E741 - the letters of the papers
EXTENTS = {"i": 7, "j": 5, "k": 6, "l": 4, "m": 3, "n": 2}
BLAS = external.blas


def _tensor(name: str, *extents: int, **said: Any) -> Tensor:
    return Tensor(name, dense(len(extents)), shape=extents, **said)


def _right(result: Tensor, schedule: Schedule, *sparse_inputs: str) -> external.ExternalPlan:
    """The plan, run on small integers: equal bits, and no input has changed."""
    plan = sparse.compile(result, schedule)
    assert result.definition is not None
    generator = np.random.default_rng(3)
    inputs = {}
    for access in sparse.compile(result).program.stages and _reads(result):
        shape = [EXTENTS[name] for name in access.variables]
        values = generator.integers(-4, 5, shape).astype(np.float32)
        if access.tensor in sparse_inputs:
            values *= generator.random(shape) < 0.4
        if access.tensor == "S":
            values = values + values.T
        inputs[access.tensor] = values
    before = {name: value.copy() for name, value in inputs.items()}
    found = plan.run(inputs, type=Float(32))
    expected = sparse.interpret(result, inputs, type=Float(32))
    assert found.output.dtype == np.float32
    assert np.array_equal(found.output, expected)
    assert np.array_equal(plan.run(inputs, type=Float(32)).output, found.output)
    assert all(np.array_equal(inputs[name], before[name]) for name in inputs)
    assert sum(step.calls for step in found.steps) > 0
    return plan


def _reads(result: Tensor) -> list[Any]:
    from t2s.sparse_repr.notation.ir import accesses

    assert result.definition is not None
    return list(accesses(result.definition.value))


A = Tensor("A", dense(2))
B, C, D = Tensor("B", dense(2)), Tensor("C", dense(2)), Tensor("D", dense(2))


def test_1_a_product() -> None:
    A[i, k] = B[i, j] * C[j, k]
    _right(A, Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm))


def test_2_operands_are_found_by_their_variables() -> None:
    A[i, k] = C[j, k] * B[i, j]
    plan = _right(A, Schedule().bind(C[j, k] * B[i, j], BLAS.sgemm))
    assert "x is B(i,j)" in str(plan)


def test_3_a_transposed_operand() -> None:
    A[i, k] = B[i, j] * C[k, j]
    with refused("""
        B(i,j)*C(k,j) is not what sgemm computes
          --> third = Schedule().bind(B[i, j] * C[k, j], BLAS.sgemm)
          expected: z(i,k) = x(i,j)*y(j,k)
          given:    y(j,k) would be C(j,k), and is C(k,j)
          hint:     map(...) may transpose: by steps if the function takes them, else by a copy
    """):
        third = Schedule().bind(B[i, j] * C[k, j], BLAS.sgemm)
        sparse.compile(A, third)
    _right(A, Schedule().map(B[i, j] * C[k, j], BLAS.sgemm))


def test_4_the_other_transposed_operand() -> None:
    A[i, k] = B[j, i] * C[j, k]
    with refused("""
        B(j,i)*C(j,k) is not what sgemm computes
          --> fourth = Schedule().bind(B[j, i] * C[j, k], BLAS.sgemm)
          expected: z(i,k) = x(i,j)*y(j,k)
          given:    x(i,j) would be B(i,j), and is B(j,i)
          hint:     map(...) may transpose: by steps if the function takes them, else by a copy
    """):
        fourth = Schedule().bind(B[j, i] * C[j, k], BLAS.sgemm)
        sparse.compile(A, fourth)
    _right(A, Schedule().map(B[j, i] * C[j, k], BLAS.sgemm))


a, b, c = Tensor("a", dense(1)), Tensor("b", dense(1)), Tensor("c", dense(1))


def test_5_nothing_is_summed() -> None:
    a[i] = b[i] * c[i]
    with refused("""
        b(i)*c(i) is not what sdot computes
          --> fifth = Schedule().bind(b[i] * c[i], BLAS.sdot)
          expected: s = x(i)*y(i)
          given:    b(i)*c(i), of which nothing is summed
    """):
        fifth = Schedule().bind(b[i] * c[i], BLAS.sdot)
        sparse.compile(a, fifth)


def test_6_another_operator() -> None:
    a[i] = b[i] + c[i]
    with refused("""
        b(i) + c(i) is not what sdot computes
          --> sixth = Schedule().bind(b[i] + c[i], BLAS.sdot)
          expected: s = x(i)*y(i)
          given:    a sum of 2 terms
    """):
        sixth = Schedule().bind(b[i] + c[i], BLAS.sdot)
        sparse.compile(a, sixth)


def test_7_another_format() -> None:
    stored = Tensor("B", csr, shape=(7, 5))
    a[i] = stored[i, j] * c[j]
    with refused("""
        sgemv does not take B as it is stored
          --> seventh = Schedule().bind(stored[i, j] * c[j], BLAS.sgemv)
          expected: x dense
          given:    B as ds:0,1
          hint:     map(..., densify=True) converts it, to 35 values (140 bytes of float32)
    """):
        seventh = Schedule().bind(stored[i, j] * c[j], BLAS.sgemv)
        sparse.compile(a, seventh)
    plan = _right(a, Schedule().map(stored[i, j] * c[j], BLAS.sgemv, densify=True), "B")
    assert "convert: B_dd is B as dd:0,1" in str(plan)


def test_8_a_function_of_that_format() -> None:
    stored = Tensor("B", csr)
    a[i] = stored[i, j] * c[j]
    _right(a, Schedule().bind(stored[i, j] * c[j], external.scipy.spmv), "B")


def test_9_another_type() -> None:
    A[i, k] = B[i, j] * C[j, k]
    plan = sparse.compile(A, "bind(B(i,j)*C(j,k),blas.sgemm)")
    with refused("""
        sgemm does not compute B(i,j)*C(j,k) in int64
          --> ninth = sparse.compile(A, Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm))
          expected: float32
          given:    int64
          hint:     plan.run(inputs, type=t2s.Float(32)) computes in that type
    """):
        ninth = sparse.compile(A, Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm))
        ninth.run({"B": np.ones((2, 3), np.int64), "C": np.ones((3, 4), np.int64)})
    assert "of float32" in str(plan)


def test_10_a_property_that_is_not_declared() -> None:
    plain = _tensor("S", 5, 5)
    a[i] = plain[i, j] * c[j]
    with refused("""
        ssymv requires x to be symmetric, and S is not declared symmetric
          --> tenth = Schedule().bind(plain[i, j] * c[j], BLAS.ssymv)
          expected: Tensor("S", ..., properties="symmetric")
          given:    S without properties
          hint:     what is declared is checked on the values when the plan runs
    """):
        tenth = Schedule().bind(plain[i, j] * c[j], BLAS.ssymv)
        sparse.compile(a, tenth)


def test_11_a_property_that_is_declared() -> None:
    square = Tensor("S", dense(2), properties="symmetric")
    a[i] = square[i, j] * c[j]
    plan = sparse.compile(a, Schedule().bind(square[i, j] * c[j], BLAS.ssymv))
    assert "1. check: S is symmetric" in str(plan)
    values = np.array([[1, 2, 3], [2, 4, 5], [3, 5, 6]], np.float32)
    given = {"S": values, "c": np.array([1, -1, 2], np.float32)}
    assert np.array_equal(plan.run(given).output, values @ given["c"])
    values[0, 2] = 7
    with refused("""
        S is not symmetric, which it is declared to be
          --> square = Tensor("S", dense(2), properties="symmetric")
          expected: S[0, 2] equal to S[2, 0]
          given:    7.0 and 3.0
    """):
        plan.run(given)
    trusted = sparse.compile(a, Schedule().bind(square[i, j] * c[j], BLAS.ssymv, trusted=True))
    trusted.run(given)


def test_11_a_property_that_follows_from_declared_ones() -> None:
    """A sum of two symmetric matrices is symmetric if they are, so both are looked at."""
    S, U = (Tensor(name, dense(2), properties="symmetric") for name in "SU")
    T = Tensor("T", dense(2), properties="symmetric")
    a[i] = (S[i, j] + U[i, j]) * c[j]
    schedule = Schedule().map(S[i, j] + U[i, j], external.numpy.add)
    plan = sparse.compile(a, schedule.map(T[i, j] * c[j], BLAS.ssymv))
    assert "2. check: S is symmetric\n3. check: U is symmetric" in str(plan)
    good = np.array([[0, 5], [5, 1]], np.float32)
    given = {"S": good, "U": np.eye(2, dtype=np.float32), "c": np.ones(2, np.float32)}
    assert np.array_equal(plan.run(given).output, [6, 7])
    for name in "SU":
        with pytest.raises(UserError, match=f"{name} is not symmetric, which it is declared"):
            plan.run({**given, name: np.array([[0, 1], [5, 0]], np.float32)})


def test_12_extents_that_are_not_those_of_the_function() -> None:
    ten, other = _tensor("b", 10), _tensor("c", 10)
    a[i] = ten[i] + other[i]
    with refused("""
        add8 does not support the extents of b(i) + c(i)
          --> twelfth = Schedule().bind(ten[i] + other[i], add8)
          expected: i == 8
          given:    i is 10
          hint:     map(...) makes tiles: i by 8, and 2 padded to 8
    """):
        twelfth = Schedule().bind(ten[i] + other[i], add8)
        sparse.compile(a, twelfth)
    plan = sparse.compile(a, Schedule().map(ten[i] + other[i], add8))
    given = {"b": np.arange(10.0), "c": np.arange(10.0) ** 2}
    result = plan.run(given)
    assert np.array_equal(result.output, given["b"] + given["c"])
    assert result.steps[0].calls == 2
    assert result.steps[0].note == "tiles: i by 8, and 2 padded to 8"


def test_13_a_part_across_the_tree() -> None:
    stored = Tensor("B", csr)
    A[i, j] = stored[i, j] * C[i, k] * D[k, j]
    plan = _right(A, Schedule().bind(C[i, k] * D[k, j], BLAS.sgemm), "B")
    assert "loops: A(i,j) = B(i,j)*T(i,j)" in str(plan)


def test_14_a_dot_for_each_element() -> None:
    A[i, k] = B[i, j] * C[j, k]
    plan = _right(A, Schedule().fix(i, k).bind(B[i, j] * C[j, k], BLAS.sdot))
    assert "for each i, k" in str(plan)
    given = {
        "B": np.arange(15, dtype=np.float32).reshape(5, 3),
        "C": np.arange(21, dtype=np.float32).reshape(3, 7),
    }
    result = plan.run(given)
    assert np.array_equal(result.output, given["B"] @ given["C"])
    assert result.steps[0].calls == 35


def test_15_a_fixed_variable_of_both_operands() -> None:
    three, one, two = (Tensor(name, dense(3)) for name in ("A", "B", "C"))
    three[i, j, k] = one[i, j, l] * two[l, k, i]
    _right(three, Schedule().fix(i).bind(one[i, j, l] * two[l, k, i], BLAS.sgemm))


def test_16_a_fixed_sum_accumulates() -> None:
    four, one, two = (Tensor(name, dense(4)) for name in ("A", "B", "C"))
    four[i, k, m, n] = one[i, k, j, l] * two[j, l, m, n]
    schedule = Schedule().fix(i, j, m).bind(one[i, k, j, l] * two[j, l, m, n], BLAS.sgemm)
    plan = _right(four, schedule)
    assert "for each i, m" in str(plan)
    assert "summed up over j" in str(plan)


def test_17_a_promoted_operand() -> None:
    a[i] = B[i, j] * c[j]
    plan = _right(a, Schedule().promote(c, 1).bind(B[i, j] * c[j], BLAS.sgemm))
    assert "y is c(j) seen as (j,1)" in str(plan)
    with refused("""
        B(i,j)*c(j) is not what sgemm computes
          --> bare = Schedule().bind(B[i, j] * c[j], BLAS.sgemm)
          expected: z(i,k) = x(i,j)*y(j,k)
          given:    x would be B(i,j), y would be c(j)
          hint:     map(...) promotes to k of extent 1
    """):
        bare = Schedule().bind(B[i, j] * c[j], BLAS.sgemm)
        sparse.compile(a, bare)


def test_a_sum_that_another_factor_shares() -> None:
    stored = Tensor("B", csr)
    A[i, j] = stored[i, k] * C[i, k] * D[k, j]
    with refused("""
        the sum over k is not of C(i,k)*D(k,j) alone
          --> shared = Schedule().bind(C[i, k] * D[k, j], BLAS.sgemm)
          expected: no other factor with k
          given:    B(i,k)
          hint:     B(i,k)*C(i,k) first, then its product with the rest is one
    """):
        shared = Schedule().bind(C[i, k] * D[k, j], BLAS.sgemm)
        sparse.compile(A, shared)


def test_a_semiring_that_a_function_does_not_have() -> None:
    A[i, k] = B[i, j] * C[j, k]
    with refused("""
        B(i,j)*C(j,k) is not what sgemm computes
          --> other = Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm)
          expected: one of +, *
          given:    the semiring min, +
    """):
        other = Schedule().bind(B[i, j] * C[j, k], BLAS.sgemm)
        sparse.compile(A, other, semiring=sparse.MIN_PLUS)


def test_the_dot_of_gemv_and_the_sum_of_vectors() -> None:
    a[i] = B[i, j] * c[j] + b[i]
    _right(a, Schedule().map(B[i, j] * c[j], BLAS.sgemv))
    for function in (sdot, BLAS.sdot):
        _right(a, Schedule().map(B[i, j] * c[j], function))
    a[i] = b[i] + c[i]
    _right(a, Schedule().bind(c[i] + b[i], saxpy))
    _right(a, Schedule().bind(c[i] + b[i], BLAS.saxpy))


@pytest.mark.parametrize("extent", range(1, 18))
def test_eight_elements_at_a_time(extent: int) -> None:
    a[i] = b[i] + c[i]
    plan = sparse.compile(a, Schedule().map(b[i] + c[i], add8))
    given = {"b": np.arange(extent, dtype=np.float32), "c": np.full(extent, 3, np.float32)}
    result = plan.run(given)
    assert np.array_equal(result.output, given["b"] + given["c"])
    assert result.steps[0].calls == -(-extent // 8)


@pytest.mark.parametrize("shape", [(4, 4, 4), (5, 3, 7), (1, 1, 1), (2, 9, 3)])
def test_products_in_tiles_of_two(shape: tuple[int, int, int]) -> None:
    def product(x: Any, y: Any, z: Any) -> None:
        assert x.shape == y.shape == z.shape == (2, 2)
        z[...] = x @ y

    two = described("two", "z(i,k) = x(i,j) * y(j,k) when i == 2 and j == 2 and k == 2", product)
    A[i, k] = B[i, j] * C[j, k]
    plan = sparse.compile(A, Schedule().map(B[i, j] * C[j, k], two))
    rows, inner, columns = shape
    given = {
        "B": np.arange(rows * inner, dtype=np.float64).reshape(rows, inner),
        "C": np.arange(inner * columns, dtype=np.float64).reshape(inner, columns) - 4,
    }
    assert np.array_equal(plan.run(given).output, given["B"] @ given["C"])


def test_vectors_added_four_at_a_time() -> None:
    def add(x: Any, y: Any) -> None:
        assert x.shape == (4,)
        x += y

    four = described("four", "x(i) = x(i) + y(i) when i == 4", add)
    a[i] = b[i] + c[i]
    plan = sparse.compile(a, Schedule().map(b[i] + c[i], four))
    given = {"b": np.arange(16.0), "c": np.arange(16.0) * 2}
    result = plan.run(given)
    assert np.array_equal(result.output, np.arange(16.0) * 3)
    assert result.steps[0].calls == 4
