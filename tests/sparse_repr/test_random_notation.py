"""Random assignments under random schedules: numpy, loops, blocks and engine agree, or a reason."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2s.errors import UserError
from t2s.sparse import Kernel
from t2s.sparse_repr.concrete.schedule import Precompute
from tests.sparse_repr.expressions import Case, cases

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

FUNCTIONS = ("relu", "abs", "tanh", "sigmoid")
"""Functions of finite values that are finite."""

REFUSALS = "|".join(
    [
        "goes beyond its end",
        "skip has no effect",
        "skip names ., which is not a loop",
        "is not right inside of the one over",
        "twice\n",
        "whose value depends on what is stored",
        "is not computed in vectors",
    ]
)
"""What may be wrong with a random schedule: splits, skips, fused loops, parts that occur twice."""


def _kernel_of(case: Case) -> Kernel | None:
    """The kernel; ``None`` if it is refused for a reason that random schedules may have."""
    with suppress(UserError):
        kernel = Kernel(case.assignment, case.schedule)
        kernel.bind(case.inputs)
        return kernel
    with pytest.raises(UserError, match=REFUSALS):
        Kernel(case.assignment, case.schedule).bind(case.inputs)
    return None


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(case=cases(functions=FUNCTIONS))
def test_blocks_and_loops_agree_with_numpy(case: Case) -> None:
    kernel = _kernel_of(case)
    if kernel is None:
        return
    expected = kernel.interpret(case.inputs)
    blocks = kernel.interpret(case.inputs, level="blocks")
    assert np.allclose(blocks, expected, equal_nan=True)
    loops = kernel.interpret(case.inputs, level="loops")
    assert np.allclose(loops, expected, equal_nan=True)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
@given(case=cases(extent=2, functions=FUNCTIONS))
def test_machines_agree_with_numpy(case: Case) -> None:
    kernel = _kernel_of(case)
    if kernel is None:
        return
    result = kernel.simulate(case.inputs)
    assert np.allclose(result.output, kernel.interpret(case.inputs), equal_nan=True)
    assert kernel.simulate(case.inputs, engine="python").cycles == result.cycles


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
@given(case=cases(functions=FUNCTIONS), seed=st.integers(0, 999))
def test_infinities_meet_nothing_that_is_not_stored(case: Case, seed: int) -> None:
    """Workspaces of ``precompute`` are tensors of their own, and are left out here."""
    generator = np.random.default_rng(seed)
    odd = (np.inf, -np.inf, np.nan)
    inputs = {
        name: np.where((a != 0) & (generator.random(a.shape) < 0.3), generator.choice(odd), a)
        for name, a in case.inputs.items()
    }
    kernel = _kernel_of(replace(case, inputs=inputs))
    if kernel is None or any(isinstance(one, Precompute) for one in case.schedule.directives):
        return
    expected = kernel.interpret(inputs)
    for level in ("blocks", "loops"):
        found = kernel.interpret(inputs, level=level)
        assert np.allclose(found, expected, equal_nan=True), level
