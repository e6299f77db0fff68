"""What a command says about an output beside numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s.command.output import compare
from t2s.errors import T2SError

ONE = np.array([1.0, 2.0])


def test_equal_outputs_match_exactly() -> None:
    assert compare(ONE, ONE) == "matches numpy exactly"
    assert compare(ONE, ONE, what="simulator, y") == "simulator, y: matches numpy exactly"
    special = np.array([np.nan, np.inf, -np.inf])
    assert compare(special, special.copy()) == "matches numpy exactly"
    assert compare(np.zeros((0, 3)), np.zeros((0, 3))) == "matches numpy exactly"


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_finite_values_may_be_near(kind: Any) -> None:
    expected = np.array([1.0, np.nan, np.inf, 2.0], kind)
    near = expected * kind(1 + np.finfo(kind).eps)
    assert "matches numpy (largest difference" in compare(near, expected)
    with pytest.raises(T2SError, match=r"y: differs from numpy by 5.0e-01 of the largest element"):
        compare(expected * kind(1.5), expected, what="y")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stands_where_numpy_has_it(wrong: float) -> None:
    text = rf"differs from numpy: {wrong} where numpy has 2.0 at \(1,\)"
    with pytest.raises(T2SError, match=text):
        compare(np.array([1.0, wrong]), ONE)
    with pytest.raises(T2SError, match=rf"2.0 where numpy has {wrong} at \(1,\)"):
        compare(ONE, np.array([1.0, wrong]))
    with pytest.raises(T2SError, match=f"y: differs from numpy: {wrong} where numpy has 1.0$"):
        compare(np.array(wrong), np.array(1.0), what="y")


def test_integers_and_shapes_are_exact() -> None:
    with pytest.raises(T2SError, match=r"^y: does not match numpy$"):
        compare(np.array([1, 2]), np.array([1, 3]), what="y")
    with pytest.raises(T2SError, match=r"^does not match numpy$"):
        compare(ONE, ONE[:1])


def test_a_tolerance_may_be_given() -> None:
    near = ONE * (1 + 1e-6)
    assert "allowed 1e-05" in compare(near, ONE, tolerance=1e-5)
    with pytest.raises(T2SError, match="allowed 1e-13"):
        compare(near, ONE)
