"""Random schedules of random programs are refused with a reason, or give the oracle's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings

import t2s
from t2s import BFloat, Float, UnsupportedError, UserError
from t2s.core.expr import ReduceLanes
from t2s.core.walk import walk
from t2s.graph.graph import Graph
from tests.spatial.agreement import results
from tests.spatial.programs import random_inputs
from tests.spatial.schedules import Scheduled, scheduled_programs

PROFILE = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

pytestmark = pytest.mark.filterwarnings("ignore::t2s.T2SWarning")

FRACTION_BITS = {Float(64): 52, Float(32): 23, Float(16): 10, BFloat(): 7}


def lowered(scheduled: Scheduled) -> Graph | None:
    """The graph, or ``None`` if the schedule was refused at a line of the user's."""
    note(repr(scheduled))
    try:
        return t2s.lower(scheduled.func)
    except UserError as refusal:
        error = refusal
    assert type(error) in (UserError, UnsupportedError), str(error)
    assert error.location is not None, str(error)
    assert "/tests/" in error.location.file
    return None


def oracle(scheduled: Scheduled, graph: Graph, *, real: bool) -> tuple[dict[str, Any], Any]:
    inputs = random_inputs(graph, 1, real=real)
    return inputs, t2s.interpret(scheduled.func, inputs)


@PROFILE
@given(scheduled_programs())
def test_integers(scheduled: Scheduled) -> None:
    graph = lowered(scheduled)
    if graph is not None:
        inputs, expected = oracle(scheduled, graph, real=False)
        for name, result in results(graph, inputs).items():
            np.testing.assert_array_equal(result, expected, err_msg=name)


@PROFILE
@given(scheduled_programs(streaming=True))
def test_streams(scheduled: Scheduled) -> None:
    """Operands are scattered and results gathered, along any loop and in both directions."""
    graph = lowered(scheduled)
    if graph is not None:
        inputs, expected = oracle(scheduled, graph, real=False)
        for name, result in results(graph, inputs).items():
            np.testing.assert_array_equal(result, expected, err_msg=name)


@settings(PROFILE, max_examples=30)
@given(scheduled_programs((Float(32), *FRACTION_BITS)))
def test_floats(scheduled: Scheduled) -> None:
    """Bit for bit, unless lanes are summed as a tree or the user asked for another order."""
    graph = lowered(scheduled)
    if graph is None:
        return
    inputs, expected = oracle(scheduled, graph, real=True)
    lanes = any(isinstance(part, ReduceLanes) for node in graph.nodes for part in walk(node))
    rounded = lanes or any("reassociate" in line for line in repr(scheduled).splitlines())
    for name, result in results(graph, inputs).items():
        if rounded:
            tolerance = 32 * 2.0 ** -FRACTION_BITS[scheduled.func.type]
            np.testing.assert_allclose(
                result.astype(np.float64), expected.astype(np.float64), tolerance, tolerance
            )
        else:
            np.testing.assert_array_equal(result, expected, err_msg=name)


@settings(PROFILE, max_examples=20)
@given(scheduled_programs())
def test_lowering_is_deterministic(scheduled: Scheduled) -> None:
    graph = lowered(scheduled)
    if graph is not None:
        assert t2s.lower(scheduled.func) == graph
        assert t2s.print_loop_nest(scheduled.func) == t2s.print_loop_nest(scheduled.func)
