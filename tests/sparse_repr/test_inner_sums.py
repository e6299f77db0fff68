"""Explicit sums, anywhere in an expression: against numpy, on all levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from t2s import Var, sparse
from t2s.sparse import Kernel, Tensor, csr, dense, maximum, summation
from tests.sampling import sampled

Array = np.ndarray
GENERATOR = np.random.default_rng(1)
A = GENERATOR.integers(-3, 4, (4, 3)) * (GENERATOR.random((4, 3)) < 0.6) * 1.0
B = GENERATOR.integers(-3, 4, (3, 4)) * (GENERATOR.random((3, 4)) < 0.6) * 1.0
X = np.array([2.0, 0.0, -3.0])
CASES: tuple[tuple[str, Callable[[], Array]], ...] = (
    ("y(i) = max(sum(k, A(i,k)*v(k)), 0)", lambda: np.maximum(A @ X, 0)),
    ("y(i) = max(sum(k, A(i,k)), 1)*sum(k, A(i,k)*v(k))",
     lambda: np.maximum(A.sum(1), 1) * (A @ X)),
    ("y(i) = sum(k, A(i,k)*sum(j, B(k,j)))", lambda: A @ B.sum(1)),
    ("y(i) = A(i,k)*sum(k, v(k))", lambda: A.sum(1) * X.sum()),
    ("y(i,j) = max(sum(k, A(i,k)*B(k,j)), 0)", lambda: np.maximum(A @ B, 0)),
    ("y(i) = min(sum(k, A(i,k)), sum(j, B(j,i))) - A(i,k)",
     lambda: np.minimum(A.sum(1), B.sum(0)) - A.sum(1)),
    ("y = sum(i, A(i,k)*v(k))", lambda: np.sum(A @ X)),
    ("y(i) = -max(sum(k, A(i,k) + v(k)), 0)/2", lambda: -np.maximum((A + X).sum(1), 0) / 2),
    ("y = max(sum(i, k, A(i,k)), 0)/sum(k, v(k))", lambda: np.maximum(A.sum(), 0) / X.sum()),
)  # fmt: skip


def _check(kernel: Kernel, expected: Array, engine: str) -> None:
    given = {"A": A, "B": B, "v": X}
    read = {tensor.name for tensor in kernel.assignment.tensors}
    inputs = {name: array for name, array in given.items() if name in read}
    for level in ("notation", "loops", "blocks"):
        np.testing.assert_allclose(kernel.interpret(inputs, level=level), expected)
    np.testing.assert_allclose(kernel.simulate(inputs, engine=engine).output, expected)


@sampled(("text", "expected"), CASES, quick=2, ids=[text for text, _ in CASES])
@pytest.mark.parametrize("letters", ["ds", "ss"])
def test_sums_in_text(text: str, expected: Callable[[], Array], letters: str) -> None:
    formats = {"A": letters, "B": letters, "v": letters[0]}
    used = {name: made for name, made in formats.items() if f"{name}(" in text}
    kernel = sparse.compile(sparse.parse(text, used), "transpose()")
    _check(kernel, expected(), "python")
    again = sparse.parse(repr(kernel).removeprefix("<Kernel ").removesuffix(">"), used)
    assert again.value == kernel.assignment.value


def test_sums_in_operators() -> None:
    i, k = Var("i"), Var("k")
    matrix, vector, result = Tensor("A", csr), Tensor("v", dense(1)), Tensor("y", dense(1))
    result[i] = maximum(summation(matrix[i, k] * vector[k], k), 0)
    kernel = sparse.compile(result)
    assert repr(kernel) == "<Kernel y(i) = max(sum(k, A(i,k)*v(k)), 0)>"
    assert str(kernel) == (
        "total(i) is stored as d:0, by default\n"
        "for i:\n  for k:  # locate v, by default\n    total(i) += A(i,k)*v(k)\n"
        "for i:\n  y(i) = max(total(i), 0)\n"
    )
    _check(kernel, np.maximum(A @ X, 0), "native")


def test_a_tensor_may_be_named_sum() -> None:
    assignment = sparse.parse("y(i) = sum(i,k)*max(sum(k, sum(i,k)), 1)")
    ones = np.ones((2, 3))
    assert sparse.interpret(assignment, {"sum": ones}).tolist() == [9.0, 9.0]
    assert sparse.simulate(assignment, {"sum": ones}, engine="python").output.tolist() == [9.0, 9.0]


def test_what_is_not_stored_is_not_multiplied_with_a_sum() -> None:
    assignment = sparse.parse("y(i) = c(i)*sum(k, A(i,k))", {"A": "ss"})
    kernel = sparse.compile(assignment)
    inputs = {"A": np.array([[0.0, 0.0], [1.0, 2.0]]), "c": np.array([np.inf, 2.0])}
    for level in ("notation", "blocks"):
        assert kernel.interpret(inputs, level=level).tolist() == [0.0, 6.0]
    assert kernel.simulate(inputs, engine="python").output.tolist() == [0.0, 6.0]


@sampled(
    ("text", "part", "expected"),
    [
        ("y = sum(j, A(i,k)+B(k,j))", "A(i,k)+B(k,j)", lambda: 4 * A.sum() + 4 * B.sum()),
        ("y(i) = sum(j, -(A(i,k)-B(k,j)))", "-(A(i,k)-B(k,j))",
         lambda: B.sum() - 4 * A.sum(1)),
        ("y(i) = 2*(A(i,k)+v(k))", "A(i,k)+v(k)", lambda: 2 * (A + X).sum(1)),
    ], quick=2,
)  # fmt: skip
def test_a_workspace_takes_the_sum_of_all_its_terms(
    text: str, part: str, expected: Callable[[], Array]
) -> None:
    """Each term is there at all coordinates of the sum, also at those that it does not have."""
    assignment = sparse.parse(text, {"A": "ds"})
    kernel = sparse.compile(assignment, f"precompute({part},T), transpose()")
    _check(kernel, expected(), "native")


@pytest.mark.parametrize("letters", ["s", "d"])
def test_sums_of_quotients_are_infinite_also_beside_nothing(letters: str) -> None:
    """Where a factor is stored, that is; elsewhere the product is zero."""
    text = "y(i) = a(i)*sum(j, b(i)/c(j))"
    kernel = sparse.compile(sparse.parse(text, dict.fromkeys("abc", letters)))
    inputs = {"a": np.array([0.0, 1, 0]), "b": np.array([1.0, 2, 0]), "c": np.array([0.0, 1])}
    with np.errstate(all="ignore"):
        expected = inputs["a"] * (inputs["b"][:, None] / inputs["c"]).sum(1)
    if letters == "s":
        expected = np.where(inputs["a"] != 0, expected, 0)
    for level in ("notation", "loops", "blocks"):
        np.testing.assert_array_equal(kernel.interpret(inputs, level=level), expected)
    for engine in ("native", "python"):
        np.testing.assert_array_equal(kernel.simulate(inputs, engine=engine).output, expected)
