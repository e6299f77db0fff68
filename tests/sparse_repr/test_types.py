"""The type of values, and what is not stored: oracle, loops, blocks and engines agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2s import Float, Int, sparse
from t2s.core.types import BOOL
from t2s.sparse import Kernel
from tests.sampling import sampled

SIZED = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
KINDS = ("bool", *SIZED, "float16", "float32", "float64")
TEXTS = (
    ("y(i) = A(i,j)*A(i,j)", "s"),
    ("y(i) = A(i,j) + A(i,j)", "d"),
    ("y(j) = A(i,j) + min(A(i,j), 2)*A(i,j)", "s"),
    ("y(i) = A(i,j)*x(j)", "s"),
    ("y = A(i,j)*(A(i,j) + 3)", ""),
    ("y(i) = A(i,j)*x(j)/2", "s"),
)


def _all_agree(
    kernel: Kernel, inputs: dict[str, Any], native: bool = True, **options: Any
) -> np.ndarray:
    """The result, which all levels of meaning and both engines give, and its type."""
    expected = kernel.interpret(inputs, **options)
    found = [kernel.interpret(inputs, level=level, **options) for level in ("loops", "blocks")]
    engines = ("python", "native") if native else ("python",)
    found += [kernel.simulate(inputs, engine=name, **options).output for name in engines]
    for one in found:
        assert one.dtype == expected.dtype
        np.testing.assert_array_equal(one, expected)
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_values_have_the_type_that_numpy_gives(kind: str) -> None:
    """Small integers wrap around as numpy's do; bools are joined by or and and."""
    matrix = np.array([[1, 0, 20], [3, 30, 0]]).astype(kind)
    vector = np.array([2, 0, 3]).astype(kind)
    for text, letters in TEXTS:
        formats = {"A": "ss", "x": "s", "y": letters}
        used = {name: made for name, made in formats.items() if name in text and made}
        inputs = {"A": matrix, "x": vector} if "x" in text else {"A": matrix}
        result = _all_agree(
            sparse.compile(sparse.parse(text, used)), inputs, native=text == TEXTS[2][0]
        )
        numbers = any(digit in text for digit in "23")
        divided = "/" in text and kind[0] in "biu"
        counted = numbers and kind == "bool"
        assert result.dtype == ("float64" if divided else "int64" if counted else kind)
    product = sparse.interpret(sparse.parse("y(i) = A(i,j)*x(j)"), {"A": matrix, "x": vector})
    assert np.array_equal(product, matrix @ vector)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)),
    text=st.sampled_from(("y(i) = a(i)*b(i) + b(i)", "y(i) = min(a(i), b(i))", "y(i) = a(i)*b(i)")),
    seed=st.integers(0, 99),
)
def test_mixed_types_are_the_common_one(kinds: tuple[str, str], text: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = (generator.integers(0, 5, 4).astype(kind) for kind in kinds)
    kernel = sparse.compile(sparse.parse(text, {"a": "s", "b": "s"}))
    result = _all_agree(kernel, {"a": a, "b": b})
    assert result.dtype == np.result_type(a, b)


def test_large_integers_are_exact() -> None:
    large = np.array([2**53 + 1, 2**62 - 1, 0])
    kernel = sparse.compile(sparse.parse("y(i) = a(i) + a(i)", {"a": "s", "y": "s"}))
    assert np.array_equal(_all_agree(kernel, {"a": large}), large + large)


def test_a_type_that_holds_the_values_is_taken() -> None:
    kernel = sparse.compile(sparse.parse("y(i) = a(i) + a(i)", {"a": "s"}))
    assert _all_agree(kernel, {"a": np.array([2.0, 0.0])}, type=Int(8)).tolist() == [4, 0]
    assert _all_agree(kernel, {"a": np.array([1, 0])}, type=BOOL).tolist() == [True, False]
    rounded = _all_agree(kernel, {"a": np.array([0.1])}, type=Float(32))
    assert rounded == np.float32(0.1) + np.float32(0.1)


@sampled(
    ("text", "formats"),
    [
        ("y(i) = a(i)*b(i)", {"a": "s", "b": "d"}),
        ("y = a(i)*b(i)", {"a": "s", "b": "d"}),
        ("y(i) = (a(i) + c(i))*b(i)", {"a": "s", "b": "d", "c": "s"}),
        ("y(i) = a(i)*b(i) + c(i)", {"a": "s", "b": "s", "c": "d"}),
        ("y(i,j) = a(i)*b(j)*c(j) + D(i,j)", {"a": "s", "b": "s", "c": "s", "D": "dd"}),
        ("y(i,j) = (a(i) - 2*c(i))*b(j)/2 + D(i,j)", {"a": "s", "b": "d", "c": "s", "D": "dd"}),
        ("y(i,j) = -(a(i)*c(j))*b(j) - D(i,j)", {"a": "s", "b": "d", "c": "s", "D": "dd"}),
        ("y(i) = min(a(i), c(i))*b(i)", {"a": "s", "b": "d", "c": "s"}),
        ("y(i) = a(i)/c(i)*b(i)", {"a": "s", "b": "d", "c": "s"}),
    ],
    quick=2,
)
def test_what_is_not_stored_is_not_multiplied(text: str, formats: dict[str, str]) -> None:
    inf, nan = np.inf, np.nan
    inputs = {
        "a": np.array([0.0, 2.0, 0.0, inf]),
        "b": np.array([inf, 1.0, nan, 3.0]),
        "c": np.array([0.0, 0.0, -inf, 4.0]),
        "D": np.arange(16.0).reshape(4, 4) % 5,
    }
    given = {name: inputs[name] for name in formats}
    kernel = sparse.compile(sparse.parse(text, formats))
    result = _all_agree(kernel, given)
    assert not np.isnan(result.reshape(-1)[0])


def test_dense_operands_are_multiplied_as_in_numpy() -> None:
    kernel = sparse.compile(sparse.parse("y(i) = a(i)*b(i)"))
    result = _all_agree(kernel, {"a": np.array([0.0, 1.0]), "b": np.array([np.inf, np.inf])})
    assert np.isnan(result[0])
    assert result[1] == np.inf
