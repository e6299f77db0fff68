"""Functions of one value: their zeros, and their values in every engine and type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

import t2s
from t2s import Float, sparse
from t2s.core.errors import UnsupportedError, UserError
from tests.errors.refusal import refused

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "gelu": lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: x / 2 * (1 + special.erf(x / np.sqrt(2))),
    "erf": special.erf,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
AT_ZERO = {"exp": "1", "log": "-inf", "sigmoid": "0.5", "rsqrt": "inf"}
LEVELS = ("notation", "loops", "blocks")

_random = np.random.default_rng(3)
A = np.where(_random.random((6, 5)) < 0.4, _random.normal(scale=2, size=(6, 5)), 0)
A[1] = 0
A[4, 2:] = 700, -700, 1e-300


def _expected(name: str, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](values)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_the_pattern_of_a_sparse_operand(name: str) -> None:
    expected, call = _expected(name, A), f"{name}(A(i,j))"
    for text, pattern in ((call, name not in AT_ZERO), (f"stored({call})", True)):
        kernel = sparse.compile(sparse.parse(f"H(i,j) = {text}", {"A": "ds", "H": "ds"}))
        result = kernel.simulate({"A": A}, engine="python")
        assert len(result.tensor.values) == (np.count_nonzero(A) if pattern else A.size)
        where = np.where(A != 0, expected, 0) if pattern else expected
        np.testing.assert_allclose(result.output, where, rtol=1e-12)
        native = kernel.simulate({"A": A}, engine="native")
        assert native.cycles == result.cycles
        bits = [np.where(np.isnan(o), np.nan, o) for o in (native.output, result.output)]
        assert bits[0].tobytes() == bits[1].tobytes()
        for level in LEVELS:
            np.testing.assert_array_equal(kernel.interpret({"A": A}, level=level), result.output)
        note = f"{call} is {AT_ZERO.get(name)} where A stores nothing, so all coordinates are"
        assert (note in str(kernel)) == (not pattern)
        near = np.where(np.abs(A) < 9, A.astype(np.float32), 0)
        single = kernel.simulate({"A": near}).output
        assert single.dtype == np.float32
        double = kernel.interpret({"A": near.astype(np.float64)})
        np.testing.assert_allclose(single, double, rtol=1e-4)
    dense = sparse.parse(f"H(i,j) = {call}")
    np.testing.assert_allclose(sparse.simulate(dense, {"A": A}).output, expected, rtol=1e-12)


@pytest.mark.parametrize("schedule", [None, "split(i,p,q,2)", "reorder(j,i), transpose()"])
def test_a_stored_zero_is_seen_in_views_too(schedule: str | None) -> None:
    places = [[0, 0], [0, 2], [1, 1]]
    A = sparse.from_coordinates(places, [1.0, 0.0, 2.0], (2, 4), format=sparse.csr)
    text = sparse.parse("E(i,j) = stored(exp(A(i,j)))", {"A": "ds", "E": "ds"})
    kernel = sparse.compile(text, schedule)
    expected = [[np.e, 0, 1, 0], [0, np.exp(2.0), 0, 0]]
    np.testing.assert_allclose(kernel.simulate({"A": A}).output, expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.interpret({"A": A}), expected, rtol=1e-12)


def test_functions_in_expressions() -> None:
    i, j, k = t2s.Var("i"), t2s.Var("j"), t2s.Var("k")
    X, W, b, H = (
        sparse.Tensor(name, format)
        for name, format in zip("XWbH", ("ds", "dd", "d", "dd"), strict=True)
    )
    H[i, j] = sparse.relu(sparse.summation(X[i, k] * W[k, j], k) + b[j])
    weight, bias = _random.normal(size=(5, 4)), _random.normal(size=4)
    inputs = {"X": A, "W": weight, "b": bias}
    np.testing.assert_allclose(
        sparse.simulate(H, inputs).output, np.maximum(A @ weight + bias, 0), rtol=1e-12
    )
    small = np.clip(A, -3, 3)
    inputs["X"] = small
    sums = {
        "y(i) = sum(j, exp(X(i,j)))": np.exp(small).sum(1),
        "y(i) = stored(exp(X(i,j)))": np.where(small != 0, np.exp(small), 0).sum(1),
        "y(i) = exp(sum(j, X(i,j)))": np.exp(small.sum(1)),
        "y(i) = X(i,j)*sigmoid(X(i,j)) + 1": (small / (1 + np.exp(-small))).sum(1) + 1,
        "y(i) = stored(exp(X(i,j)))*X(i,j)/exp(2)": (np.exp(small - 2) * small).sum(1),
        "y(i) = stored(exp(X(i,j) + X(i,j)*X(i,j)))": np.where(
            small != 0, np.exp(small + small * small), 0
        ).sum(1),
        "y(i) = -sum(j, abs(tanh(X(i,j))))": -np.abs(np.tanh(small)).sum(1),
    }
    for text, expected in sums.items():
        kernel = sparse.compile(sparse.parse(text, {"X": "ds"}))
        given = {"X": small}
        result = kernel.simulate(given)
        np.testing.assert_allclose(result.output, expected, rtol=1e-12, err_msg=text)
        for level in LEVELS:
            np.testing.assert_allclose(
                kernel.interpret(given, level=level), expected, rtol=1e-12, err_msg=text
            )
    padded = sparse.compile(sparse.parse("y(i) = stored(exp(X(i,j)))"), "split(j, jo, ji, 2)")
    with pytest.raises(UserError, match="a factor that divides the extent 5"):
        padded.simulate({"X": small})


AMBIGUOUS = {
    "y(i) = exp(A(i,j))": ("y(i) = exp(sum(j, A(i,j)))", "y(i) = sum(j, exp(A(i,j)))"),
    "H(i,h) = 1 - relu(A(i,j)*W(j,h) + b(h))": (
        "H(i,h) = 1 - relu(sum(j, A(i,j)*W(j,h)) + b(h))",
        "H(i,h) = 1 - sum(j, relu(A(i,j)*W(j,h) + b(h)))",
    ),
    "y(i) = sum(h, tanh(A(i,j)*W(j,h)))": (
        "y(i) = sum(h, tanh(sum(j, A(i,j)*W(j,h))))",
        "y(i) = sum(h, sum(j, tanh(A(i,j)*W(j,h))))",
    ),
}


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_sum_that_may_be_inside_of_a_function_or_around_it_is_written(text: str) -> None:
    with pytest.raises(UserError, match="or around it") as caught:
        sparse.parse(text)
    assert caught.value.hint == " or ".join(AMBIGUOUS[text])
    given = {"A": A, "W": np.ones((5, 2)), "b": np.ones(2)}
    values = []
    for line in AMBIGUOUS[text]:  # what the hint says can be written
        assignment = sparse.parse(line)
        read = {name: given[name] for name in given if name in line}
        values.append(sparse.interpret(assignment, read))
    assert not np.allclose(*values)


def test_a_search_leaves_the_formats_that_a_function_sees() -> None:
    text, few = "y(i) = stored(exp(A(i,j)*x(j)*x(j)))*B(i,j)", (A[:2, :4] != 0) * 0.5
    assignment = sparse.parse(text, {"A": "ds", "B": "ds"})
    inputs = {"A": few, "B": few, "x": np.ones(4)}
    found = sparse.search(assignment, inputs, fixed=["x", "y"], directives=["precompute"], lanes=1)
    assert {point.formats["A"].split(":")[0] for point in found.points} == {"ds"}
    assert len({point.formats["B"] for point in found.points}) > 1
    assert not any("precompute(A" in point.schedule for point in found.points)


def test_functions_in_the_loops_of_a_plan() -> None:
    i, k = t2s.Var("i"), t2s.Var("k")
    C, (x, b, y) = sparse.Tensor("C", "dd"), (sparse.Tensor(name, "d") for name in "xby")
    product = sparse.summation(C[i, k] * x[k], k)
    schedule = sparse.Schedule().map(C[i, k] * x[k], t2s.external.blas.dgemv)
    inputs = {"C": A / 100, "x": np.arange(5.0), "b": -np.arange(6.0)}
    y[i] = sparse.relu(b[i] + 3) - abs(b[i]) + product
    expected = np.maximum(3 + inputs["b"], 0) + inputs["b"] + inputs["C"] @ inputs["x"]
    np.testing.assert_allclose(sparse.compile(y, schedule).run(inputs).output, expected)
    y[i] = sparse.tanh(b[i]) + product
    expected = np.tanh(inputs["b"]) + inputs["C"] @ inputs["x"]
    np.testing.assert_allclose(sparse.compile(y, schedule).run(inputs).output, expected)


def test_functions_of_python() -> None:
    i, j = t2s.Var("i"), t2s.Var("j")
    T, H = sparse.Tensor("T", "ds"), sparse.Tensor("H", "ds")
    for name in FUNCTIONS:
        function = abs if name == "abs" else getattr(sparse, name)
        assert repr(function(T[i, j])) == f"{name}(T(i,j))"
    H[i, j] = sparse.stored(sparse.exp(T[i, j]))
    assert repr(sparse.stored(sparse.exp(T[i, j]))) == "stored(exp(T(i,j)))"
    assert len(sparse.simulate(H, {"T": A}).tensor.values) == np.count_nonzero(A)


def test_types_of_functions() -> None:
    whole = np.array([-128, 0, 5], np.int8)
    assert sparse.interpret(sparse.parse("y(i) = exp(x(i))"), {"x": whole}).dtype == np.float64
    for name in ("relu", "abs"):
        kernel = sparse.compile(sparse.parse(f"y(i) = {name}(x(i))"))
        result = kernel.simulate({"x": whole}).output
        assert result.dtype == np.int8
        assert result.tolist() == FUNCTIONS[name](whole).tolist()
    bools = sparse.simulate(sparse.parse("y(i) = abs(x(i))"), {"x": np.array([True, False])})
    assert bools.output.tolist() == [1, 0]
    with pytest.raises(UserError, match="exp does not fit int32"):
        sparse.compile(sparse.parse("y(i) = exp(x(i))")).simulate({"x": whole}, type=t2s.Int(32))
    half = sparse.compile(sparse.parse("y(i) = gelu(x(i))"))
    ends = half.simulate({"x": np.array([np.nan, np.inf, 3.0])}, type=Float(32)).output
    np.testing.assert_allclose(ends, [np.nan, np.inf, 2.9963627], rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("H(i,j) = exp(X(i,j)", r"expected: an operator or \)"),
        (
            "H(i,j) = foo(X(i,j))",
            "a function: min, max, relu, abs, exp, log, tanh, erf, sigmoid, gelu",
        ),
        ("H(i,j) = exp(X(i,j), 2)", "exp takes one value"),
        ("H(i,j) = exp()", "expected: a tensor, a number"),
        ("H(i) = exp(i)", "a tensor named exp needs another name"),
        ("H(i,j) = stored(X(i,j))", r"stored\(X\(i,j\)\) is not of a function"),
        ("H(i) = stored(exp(sum(k, X(i,k))))", "assign the sum to a tensor first"),
    ],
)
def test_what_is_not_a_function(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        sparse.parse(text)


def test_where_functions_are_refused() -> None:
    stored = sparse.parse("H(i,j) = stored(exp(A(i,j)*B(i,j)))", {"A": "ds", "B": "ds", "H": "ds"})
    with refused("""
        precompute takes a part of stored(exp(A(i,j)*B(i,j))), whose value depends on what is stored
          --> sparse.compile(stored, "precompute(A(i,j)*B(i,j), T)")
          expected: a part that has all of stored(...), or nothing of it
          given:    A(i,j)*B(i,j)
    """):
        sparse.compile(stored, "precompute(A(i,j)*B(i,j), T)")
    whole = sparse.compile(stored, "precompute(stored(exp(A(i,j)*B(i,j))), T)")
    np.testing.assert_allclose(
        whole.simulate({"A": A, "B": A / 900}).output,
        np.where(A != 0, np.exp(A * A / 900), 0),
    )
    with pytest.raises(UnsupportedError, match="is not computed in vectors"):
        sparse.compile(stored, "vectorize(j, 4)")
    with pytest.raises(UnsupportedError, match="Capstan does not compute exp"):
        sparse.compile(sparse.parse("y(i) = exp(x(i))"), target="capstan")
    with pytest.raises(UserError, match="a semiring has no exp"):
        sparse.compile(sparse.parse("y(i) = exp(x(i))"), semiring=sparse.MAX_PLUS)
