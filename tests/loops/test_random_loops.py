"""Random assignments under random schedules: compiled loops agree with numpy, in all types."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from t2s import Float, Int, UInt
from t2s.core.types import Type
from t2s.errors import UserError
from t2s.loops.running import run_program
from t2s.sparse import MAX_TIMES, MIN_PLUS, Kernel
from t2s.sparse_repr.concrete.schedule import Precompute
from t2s.sparse_repr.semiring import OR_AND, Semiring
from tests.sparse_repr.expressions import Case, cases

FUNCTIONS = (
    "relu",
    "abs",
    "exp",
    "log",
    "tanh",
    "erf",
    "sigmoid",
    "gelu",
    "gelu_erf",
    "silu",
    "sqrt",
    "rsqrt",
)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
INTEGERS = [Int(8), Int(32), Int(64), UInt(16)]
FLOATS: list[Type] = [Float(32), Float(64)]


def _bound(case: Case, type: Type | None, semiring: Any = None) -> tuple[Any, Any] | None:
    """The kernel and its inputs; ``None`` where a random schedule is refused."""
    with suppress(UserError):
        made = {} if semiring is None else {"semiring": semiring}
        kernel = Kernel(case.assignment, case.schedule, **made)
        return kernel, kernel.bind(case.inputs, type)
    return None


def _checked(case: Case, type: Type | None = None, semiring: Any = None) -> None:
    bound = _bound(case, type, semiring)
    if bound is None:
        return
    kernel, binding = bound
    before = {name: one.values.copy() for name, one in binding.given.items()}
    found = run_program(kernel.assignment, kernel.program, binding)
    expected = kernel.interpret(case.inputs, type=type)
    event("computed")
    assert found.dtype == expected.dtype
    assert found.format == kernel.assignment.tensor(kernel.assignment.result.tensor).format
    if expected.dtype.kind in "iu":
        assert np.array_equal(found.to_dense(), expected)
    else:
        assert np.allclose(found.to_dense(), expected, equal_nan=True, rtol=1e-5, atol=1e-5)
    assert all(np.array_equal(one, binding.given[name].values) for name, one in before.items())


def _check_order(case: Case, type: Type, seed: int, odd: tuple[float, ...] = ()) -> None:
    """Bits of sums of fractions: those of the loops, run one by one."""
    generator = np.random.default_rng(seed)
    inputs = {
        name: np.where(one != 0, generator.uniform(-2, 2, one.shape), 0).astype(type.numpy)
        for name, one in case.inputs.items()
    }
    if odd:
        inputs = {
            name: np.where(
                (one != 0) & (generator.random(one.shape) < 0.3), generator.choice(odd), one
            ).astype(type.numpy)
            for name, one in inputs.items()
        }
    bound = _bound(replace(case, inputs=inputs), type)
    if bound is None:
        return
    kernel, binding = bound
    if odd and any(isinstance(one, Precompute) for one in case.schedule.directives):
        return  # workspaces that hold infinities are tensors of their own
    expected = kernel.interpret(inputs, level="loops", type=type)
    found = run_program(kernel.assignment, kernel.program, binding).to_dense()
    event("computed")
    assert np.array_equal(found, expected, equal_nan=True)


@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(case=cases(functions=FUNCTIONS), type=st.sampled_from([None, *INTEGERS, *FLOATS]))
def test_loops_agree_with_numpy(case: Case, type: Type | None) -> None:
    _checked(case, type)


@pytest.mark.slow
@settings(max_examples=400, deadline=None, suppress_health_check=SLOW)
@given(case=cases(extent=5, functions=FUNCTIONS), type=st.sampled_from([None, *INTEGERS, *FLOATS]))
def test_many_loops_agree_with_numpy(case: Case, type: Type | None) -> None:
    _checked(case, type)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=SLOW)
@given(
    case=cases(extent=4),
    type=st.sampled_from([Float(16), *FLOATS]),
    seed=st.integers(0, 999),
)
def test_floats_are_added_up_in_the_order_of_the_loops(case: Case, type: Type, seed: int) -> None:
    _check_order(case, type, seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(case=cases(functions=FUNCTIONS), seed=st.integers(0, 999))
def test_infinities_meet_nothing_that_is_not_stored(case: Case, seed: int) -> None:
    _check_order(case, Float(64), seed, (np.inf, -np.inf, np.nan))


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(case=cases(), semiring=st.sampled_from([MIN_PLUS, MAX_TIMES, OR_AND]))
def test_semirings(case: Case, semiring: Semiring) -> None:
    _checked(case, None, semiring)
