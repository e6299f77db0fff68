"""Random assignments under random schedules: numpy, loops, blocks and engine agree, or a reason."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from t2s import UserError
from t2s.sparse import Kernel
from tests.sparse_repr.expressions import Case, cases

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


REFUSALS = "|".join(
    [
        "goes beyond its end",
        "nothing to skip",
        "no loop over . to skip in",
        "is not right inside of the one over",
        "twice\n",
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
@given(case=cases())
def test_blocks_and_loops_agree_with_numpy(case: Case) -> None:
    kernel = _kernel_of(case)
    if kernel is None:
        return
    expected = kernel.interpret(case.inputs)
    blocks = kernel.interpret(case.inputs, level="blocks")
    assert np.allclose(blocks, expected, equal_nan=True)
    loops = kernel.interpret(case.inputs, level="loops")
    assert np.allclose(loops, expected, equal_nan=True)


@settings(max_examples=12, deadline=None, suppress_health_check=SLOW)
@given(case=cases(extent=2))
def test_machines_agree_with_numpy(case: Case) -> None:
    kernel = _kernel_of(case)
    if kernel is None:
        return
    result = kernel.simulate(case.inputs)
    assert np.allclose(result.output, kernel.interpret(case.inputs), equal_nan=True)
    assert kernel.simulate(case.inputs, engine="python").cycles == result.cycles
