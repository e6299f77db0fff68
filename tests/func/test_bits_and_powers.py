"""Shifts, bits, powers and rounding in the language, and bits of loops where sets are needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Bool, Float, Func, ImageParam, Int, RDom, Var
from t2s.errors import UserError
from t2s.func.expressions import Expression
from tests.sampling import sampled

i = Var("i")
COUNT = 16
VALUES = {
    "A": np.arange(-8, 8, dtype=np.int32) * 12345,
    "X": np.linspace(-3, 3, COUNT, dtype=np.float32),
}
N = np.arange(COUNT, dtype=np.int32)
a, x = VALUES["A"], VALUES["X"]
CASES: dict[str, tuple[Callable[[Any, Any], Expression], Any]] = {
    "shifts": (lambda A, X: (A[i] << 3) + (A[i] >> i) + (1 << i), (a << 3) + (a >> N) + (1 << N)),
    "beyond": (
        lambda A, X: (A[i] >> (i + 30)) + (A[i] << 40),
        (a >> (N + 30)) + (a << np.int32(40)),
    ),
    "bits": (lambda A, X: (A[i] & i) | (A[i] ^ 5), (a & N) | (a ^ 5)),
    "powers": (lambda A, X: A[i] ** 3 + A[i] ** 0 + A[i] ** 1 - A[i] ** 8, a**3 + 1 + a - a**8),
    "powers of floats": (lambda A, X: X[i] ** np.int64(5), (x * x) * (x * x) * x),
    "rounding": (lambda A, X: t2s.floor(X[i]) * 10 + t2s.ceil(X[i]), np.floor(x) * 10 + np.ceil(x)),
    "whole already": (lambda A, X: t2s.floor(A[i]) + t2s.ceil(A[i]), a + a),
    "tanh": (lambda A, X: t2s.tanh(X[i]), np.tanh(x)),
    "log": (lambda A, X: t2s.log(X[i] * X[i]), np.log(x * x)),
    "odd loops": (lambda A, X: t2s.select((i & 1) == 0, A[i], -A[i]), np.where(N & 1, -a, a)),
    "shifted loops": (
        lambda A, X: t2s.select((i >> 1) < 3, A[i >> 1], A[i & 7]),
        np.where(N >> 1 < 3, a[N >> 1], a[N & 7]),
    ),
    "not of a loop": (lambda A, X: t2s.select((~i) < -9, 1, 0), (~N < -9).astype(np.int32)),
    "equal truths": (
        lambda A, X: t2s.select((i > 3) == (i > 8), 1, 0),
        ((N > 3) == (N > 8)).astype(np.int32),
    ),
    "bits of data": (
        lambda A, X: t2s.select((A[i] & 4) == 0, A[i] >> 1, 7),
        np.where(a & 4, 7, a >> 1),
    ),
}


def design(name: str) -> tuple[Func, dict[str, Any], Any]:
    shape = (COUNT,)
    A = ImageParam(Int(32), 1, name="A", shape=shape)
    X = ImageParam(Float(32), 1, name="X", shape=shape)
    value, expected = CASES[name]
    F = Func("F")
    F[i] = value(A, X)
    F.bound(i, 0, COUNT)
    used = {tensor.array for tensor in t2s.lower(F).tensors} & VALUES.keys()
    return F, {key: VALUES[key] for key in used}, expected


@pytest.mark.parametrize("engine", ["interpret", "native", "python"])
@sampled("name", CASES, quick=2)
def test_values(name: str, engine: str) -> None:
    F, inputs, expected = design(name)
    if engine == "interpret":
        found = t2s.interpret(F, inputs)
    else:
        found = t2s.simulate(F, inputs, engine=engine).outputs["F"]
    assert found.dtype == expected.dtype
    if name in ("log", "tanh"):  # numpy has code of its own, which the last bit shows
        np.testing.assert_allclose(found, expected, rtol=3e-7)
    else:
        np.testing.assert_array_equal(found, expected)


def test_a_power_is_a_tree_of_few_products() -> None:
    A = ImageParam(Int(32), 1, name="A")
    assert repr(A[i] ** 5) == "A[i] * A[i] * (A[i] * A[i]) * A[i]"
    assert repr(A[i] ** 0) == "1"


@pytest.mark.parametrize(
    ("build", "given"),
    [
        (lambda A: A[i] ** 9, "9"),
        (lambda A: A[i] ** -1, "-1"),
        (lambda A: A[i] ** 0.5, "0.5"),
        (lambda A: A[i] ** True, "True"),
        (lambda A: 2 ** A[i], "2 ** A[i]"),
    ],
)
def test_other_exponents_are_refused(build: Callable[[Any], object], given: str) -> None:
    with pytest.raises(UserError, match="exponent") as caught:
        build(ImageParam(Int(32), 1, name="A"))
    assert caught.value.given == given
    assert caught.value.hint is not None


def test_truth_values_have_no_powers() -> None:
    with pytest.raises(UserError, match="not defined on bool"):
        _ = ImageParam(Bool(), 1, name="B")[i] ** 2


def test_one_value_and_a_reader_of_it() -> None:
    A, k = ImageParam(Int(32), 1, name="A"), RDom(0, COUNT, name="k")
    total, shifted = Func("total"), Func("shifted")
    total[()] = 0
    total[()] += A[k]
    shifted[i] = A[i] - total[()]
    shifted.bound(i, 0, COUNT)
    for engine in ("native", "python"):
        found = t2s.simulate(total, {"A": a}, engine=engine).outputs["total"]
        assert found.shape == ()
        assert found == t2s.interpret(total, {"A": a}) == a.sum(dtype=np.int32)
        found = t2s.simulate(shifted, {"A": a}, engine=engine).outputs["shifted"]
        np.testing.assert_array_equal(found, a - a.sum(dtype=np.int32))
