"""Random kernels: loops and patterns give numpy's values, or the schedule is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from t2s.core.errors import UserError
from t2s.core.types import Float
from t2s.sparse import Tensor, compile
from tests.capstan.random_kernels import RandomKernel, random_kernels

MOST = 60
few = settings(
    max_examples=MOST, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
many = settings(few, max_examples=1500)


def _same(kernel: RandomKernel) -> bool:
    """Whether the kernel has patterns; those that it has give what numpy gives."""
    try:
        compiled = compile(kernel.result, kernel.schedule, target="capstan")
    except UserError as error:
        if error.location is None:
            raise AssertionError("a refusal without the user's line") from error
        return False
    expected = compiled.interpret(kernel.inputs, level="notation")
    np.testing.assert_array_equal(compiled.interpret(kernel.inputs, level="loops"), expected)
    np.testing.assert_array_equal(compiled.interpret(kernel.inputs), expected)
    found = compiled.interpret(kernel.inputs, type=Float(32))
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    return True


def test_random_kernels() -> None:
    outcomes = Counter[bool]()

    @few
    @given(random_kernels())
    def run(kernel: RandomKernel) -> None:
        outcomes[_same(kernel)] += 1

    run()
    assert outcomes[True] >= MOST // 5


@pytest.mark.slow
@many
@given(random_kernels())
def test_many_random_kernels(kernel: RandomKernel) -> None:
    _same(kernel)


def test_what_is_not_stored_is_zero_times_infinity_too() -> None:
    a, b, c = Tensor("A", "s"), Tensor("B", "s"), Tensor("C", "s")
    d = Tensor("D", "d")
    a["i"] = b["i"] * d["i"] + c["i"]
    inputs = {
        "B": np.array([1, 0, 0, 2], np.float32),
        "C": np.array([0, 3, 0, 4], np.float32),
        "D": np.array([5, np.inf, np.nan, 6], np.float32),
    }
    kernel = compile(a, target="capstan")
    np.testing.assert_array_equal(kernel.interpret(inputs), [5, 3, 0, 16])
