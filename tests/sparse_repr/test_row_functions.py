"""Functions of rows: maxima, means, softmax and layer normalization, of dense and stored rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import t2s
from t2s import Float, sparse
from t2s.errors import UserError
from t2s.sparse import Tensor
from tests.models import layernorm, softmax

Array = np.ndarray

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "max": lambda x: x.max(-1),
    "min": lambda x: x.min(-1),
    "mean": lambda x: x.mean(-1),
    "softmax": softmax,
    "layernorm": layernorm,
}

_random = np.random.default_rng(8)
ROWS: dict[str, Array] = {
    "one entry": _random.normal(size=(3, 1)),
    "one row": _random.normal(size=(1, 6)),
    "negative after positive": np.array([[3.0, 1, 2, 9, 4], [-1, -2, -3, -4, -5], [0, 0, 0, 0, 0]]),
    "equal": np.full((2, 4), 7.25),
    "large": np.array([[700.0, -700, 699], [-700, -701, -702], [1e300, 1e300, -1e300]]),
    "long": _random.normal(size=(2, 10_000)),
    "sparse": np.where(_random.random((6, 5)) < 0.4, _random.normal(size=(6, 5)), 0),
}
ROWS["sparse"][2] = 0


def _result(name: str) -> str:
    return "y(i,k)" if name in ("softmax", "layernorm") else "y(i)"


def _reference(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](x)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rows", ROWS)
def test_all_elements_of_rows(name: str, rows: str) -> None:
    """Elements that are not stored are zeros."""
    x = ROWS[rows]
    expected = _reference(name, x)
    for format in ("dd",) if rows == "long" else ("dd", "ds", "ss"):
        program = sparse.program(f"{_result(name)} = {name}(k; X(i,k))", {"X": format})
        native = program.simulate({"X": x})
        np.testing.assert_allclose(native["y"], expected, rtol=1e-12, atol=1e-15)
        by_numpy = program.interpret({"X": x})["y"]
        np.testing.assert_allclose(by_numpy, native["y"], rtol=1e-12, atol=1e-15)
        if rows != "long":
            python = program.simulate({"X": x}, engine="python")
            assert python["y"].tobytes() == native["y"].tobytes()
            assert python.cycles == native.cycles


@pytest.mark.parametrize("name", ["max", "min", "softmax"])
@pytest.mark.parametrize("rows", ROWS)
def test_stored_elements_of_rows(name: str, rows: str) -> None:
    x = ROWS[rows]
    stored = x != 0
    rest = np.where(stored, x, np.inf if name == "min" else -np.inf)
    expected = _reference(name, rest)
    for format in ("ds",) if rows == "long" else ("ds", "ss", "ds:1,0"):
        program = sparse.program(f"{_result(name)} = stored({name}(k; X(i,k)))", {"X": format})
        result = program.simulate({"X": x})
        np.testing.assert_allclose(result["y"], expected, rtol=1e-12, atol=1e-15)
        by_numpy = program.interpret({"X": x})["y"]
        np.testing.assert_allclose(by_numpy, result["y"], rtol=1e-12, atol=1e-15)
        if name == "softmax":
            assert len(result.tensors["y"].values) == stored.sum()


def test_a_stored_zero_is_an_element() -> None:
    x = sparse.from_coordinates([[0, 1], [1, 0], [1, 2]], [0.0, -1.0, -3.0], (3, 3), "ds")
    program = sparse.program(
        "m(i) = stored(max(k; X(i,k)))\nS(i,k) = stored(softmax(k; X(i,k)))", {"X": "ds"}
    )
    result = program.simulate({"X": x})
    assert result["m"].tolist() == [0, -1, -np.inf]
    assert len(result.tensors["S"].values) == 3
    assert result["S"][0].tolist() == [0, 1, 0]


def test_a_masked_row_of_no_scores() -> None:
    """Minus infinity is a score as any other; a row of nothing else has no softmax, as in numpy."""
    x = np.array([[-np.inf, 1.0, 2.0], [-np.inf, 0, 0]])
    program = sparse.program("S(i,k) = stored(softmax(k; X(i,k)))", {"X": "ds"})
    result = program.simulate({"X": x})["S"]
    np.testing.assert_allclose(result[0], softmax(x[0]), rtol=1e-12)
    assert np.isnan(result[1, 0])
    assert result[1, 1:].tolist() == [0, 0]


def test_nan_and_infinity() -> None:
    x = np.array([[np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 2]])
    for name in ("softmax", "layernorm", "mean"):
        program = sparse.program(f"{_result(name)} = {name}(k; X(i,k))")
        with np.errstate(all="ignore"):
            expected = {
                "softmax": lambda: (
                    np.exp(x - x.max(1, keepdims=True))
                    / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
                ),
                "layernorm": lambda: layernorm(x),
                "mean": lambda: x.mean(1),
            }[name]()
        np.testing.assert_allclose(program.simulate({"X": x})["y"], expected, rtol=1e-12)


def test_rows_in_expressions() -> None:
    x, v = _random.normal(size=(3, 4)), _random.normal(size=4)
    cube = _random.normal(size=(2, 3, 4))
    top = x.max(1, keepdims=True)
    cases = {
        "y(i) = relu(max(k; X(i,k)) - 1)": np.maximum(top[:, 0] - 1, 0),
        "y(i,j) = X(i,j) - max(k; X(i,k))": x - top,
        "y(i,j) = max(k; X(i,k)) + 0*X(i,j)": np.repeat(top, 4, axis=1),
        "y(i) = softmax(k; X(i,k))*v(k)": softmax(x) @ v,
        "y(i) = sum(j, v2(j)*max(k; C(i,j,k)))": cube.max(2) @ np.arange(3.0),
        "y(i) = max(j,k; C(i,j,k))": cube.max((1, 2)),
        "y = mean(j,i,k; C(i,j,k))": cube.mean(),
        "y(j) = max(i; C(i,j,k))": cube.sum(2).max(0),
        "y(k,i) = softmax(i; X(i,k))": softmax(x.T),
        "y(i,k) = softmax(k; softmax(k; X(i,k)) + v(k))": softmax(softmax(x) + v),
        "y(i) = mean(k; max(j; C(i,j,k)))": cube.max(1).mean(1),
        "y(i,k) = layernorm(k; 2*X(i,k) + v(k))": layernorm(2 * x + v),
        "y(k) = softmax(k; v(k))": softmax(v),
        "y = min(k; v(k)) - max(k; v(k))": v.min() - v.max(),
    }
    inputs = {"X": x, "v": v, "v2": np.arange(3.0), "C": cube}
    for text, expected in cases.items():
        program = sparse.program(text)
        given = {name: inputs[name] for name in program.inputs}
        result = program.simulate(given)
        np.testing.assert_allclose(result["y"], expected, rtol=1e-12, err_msg=text)
        np.testing.assert_allclose(program.interpret(given)["y"], expected, rtol=1e-12)


def test_functions_of_python() -> None:
    i, k = t2s.Var("i"), t2s.Var("k")
    X, y, S = Tensor("X", "ds"), Tensor("y", "d"), Tensor("S", "ds")
    assert repr(sparse.softmax(X[i, k], k)) == "softmax(k; X(i,k))"
    assert repr(sparse.layernorm(X[i, k], k, epsilon=0.1)) == "layernorm(k; X(i,k), 0.1)"
    assert repr(sparse.mean(X[i, k], i, "k")) == "mean(i,k; X(i,k))"
    y[i] = sparse.largest(X[i, k], k) - sparse.smallest(X[i, k], k)
    S[i, k] = sparse.stored(sparse.softmax(X[i, k], k))
    x = ROWS["sparse"]
    result = sparse.program([y, S]).simulate({"X": x})
    np.testing.assert_allclose(result["y"], x.max(1) - x.min(1), rtol=1e-12)
    np.testing.assert_allclose(result["S"], softmax(np.where(x != 0, x, -np.inf)), rtol=1e-12)
    with pytest.raises(UserError, match="is along something that is not an index variable"):
        sparse.mean(X[i, k], 3)
    with pytest.raises(UserError, match="the epsilon of layernorm"):
        sparse.layernorm(X[i, k], k, epsilon=-1)
    with pytest.raises(UserError, match="statements of its own"):
        sparse.compile(y)


def test_types_of_maxima() -> None:
    x = np.array([[-5, -7], [3, 2]])
    program = sparse.program("m(i) = max(k; X(i,k))\nn(i) = min(k; X(i,k))")
    for kind in (np.int8, np.int64, np.float32, np.uint8):
        given = x.astype(kind)
        result = program.simulate({"X": given})
        assert result["m"].dtype == kind
        assert result["m"].tolist() == given.max(1).tolist()
        assert result["n"].tolist() == given.min(1).tolist()
    large = np.array([[2**62 + 1, 2**62]])
    assert program.simulate({"X": large})["m"].tolist() == [2**62 + 1]
    assert program.simulate({"X": x}, type=Float(64))["m"].dtype == np.float64
    truth = program.simulate({"X": np.array([[True, False], [False, False]])})
    assert truth["m"].tolist() == [1, 0]
    assert sparse.program("m = mean(k; x(k))").simulate({"x": np.arange(4)})["m"] == 1.5


@pytest.mark.parametrize("type", ["int8", "uint8", "int64", "uint64", "bool"])
def test_softmax_of_what_is_stored_does_not_wrap_around(type: str) -> None:
    scores = np.array([[100, 0, 120], [128, 4, 1]]).astype(type)
    if type == "int8":
        scores[0, 2] = -100  # less than the largest one by more than 128
    program = sparse.program("S(i,j) = stored(softmax(j; P(i,j)))", {"P": "ds"})
    expected = softmax(np.where(scores, scores.astype(float), -np.inf))
    for found in (program.simulate({"P": scores}), program.interpret({"P": scores})):
        np.testing.assert_allclose(found["S"], expected, rtol=1e-12)


def test_rows_without_elements() -> None:
    nothing = np.zeros((2, 0))
    program = sparse.program("m(i) = max(k; X(i,k))\nS(i,k) = softmax(k; X(i,k))")
    result = program.simulate({"X": nothing})
    assert result["m"].tolist() == [-np.inf, -np.inf]
    assert result["S"].shape == (2, 0)
    with pytest.raises(UserError, match="no largest integer at i = 0"):
        program.simulate({"X": nothing.astype(int)})
    no_rows = program.simulate({"X": np.zeros((0, 3))})
    assert no_rows["m"].shape == (0,)
