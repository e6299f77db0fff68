"""Random schedules of random programs are refused with a reason, or give the oracle's values."""

from __future__ import annotations

from operator import add, mul
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import t2s
from t2s import BFloat, Float, Func, ImageParam, Int, RDom, UInt, Var
from t2s.core.expr import ReduceLanes
from t2s.core.walk import walk
from t2s.errors import UnsupportedError, UserError
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

pytestmark = pytest.mark.filterwarnings("ignore::t2s.errors.T2SWarning")

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


@pytest.mark.slow
@PROFILE
@given(scheduled_programs())
def test_integers(scheduled: Scheduled) -> None:
    graph = lowered(scheduled)
    if graph is not None:
        inputs, expected = oracle(scheduled, graph, real=False)
        for name, result in results(graph, inputs).items():
            np.testing.assert_array_equal(result, expected, err_msg=name)


@pytest.mark.slow
@PROFILE
@given(scheduled_programs(streaming=True))
def test_streams(scheduled: Scheduled) -> None:
    """Operands are scattered and results gathered, along any loop and in both directions."""
    graph = lowered(scheduled)
    if graph is not None:
        inputs, expected = oracle(scheduled, graph, real=False)
        for name, result in results(graph, inputs).items():
            np.testing.assert_array_equal(result, expected, err_msg=name)


@pytest.mark.slow
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


@pytest.mark.slow
@settings(PROFILE, max_examples=20)
@given(scheduled_programs())
def test_lowering_is_deterministic(scheduled: Scheduled) -> None:
    graph = lowered(scheduled)
    if graph is not None:
        assert t2s.lower(scheduled.func) == graph
        assert t2s.print_loop_nest(scheduled.func) == t2s.print_loop_nest(scheduled.func)


@st.composite
def ragged_products(draw: st.DrawFn) -> Func:
    """A product of matrices in tiles that need not divide; often with vectors and a PE array."""
    type = draw(st.sampled_from([Int(8), Int(32), UInt(16), Float(64)]))
    A, B, C = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B"), Func("C")
    (rows, columns, depth), tile = (
        draw(st.tuples(*(st.integers(1, limit) for _ in range(3)))) for limit in (7, 5)
    )
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    C[i, j] = 2
    term = A[i, k] * B[j, k]
    C[i, j] = draw(st.sampled_from([t2s.min, t2s.max, add, mul]))(C[i, j], term)
    C.bound(i, 0, rows).bound(j, 0, columns)
    ii, jj, kk = t2s.variables("ii jj kk")
    C.tile(k, j, i, kk, jj, ii, *tile)
    space = draw(st.sets(st.sampled_from(["i", "ii", "jj"]), max_size=2))
    for loop in (i, ii, jj):
        if loop.name in space:
            C.unroll(loop)
    if draw(st.booleans()):
        C.vload(A, B)
    loader, unloader = Func("loader"), Func("unloader")
    if draw(st.booleans()):
        C.isolate_producer(A, loader).isolate_consumer(unloader)
        if jj.name in space:
            C.forward(loader, jj)
    return C


@pytest.mark.slow
@settings(PROFILE, max_examples=25)
@given(ragged_products().map(Scheduled))
def test_tiles_that_do_not_divide(scheduled: Scheduled) -> None:
    graph = lowered(scheduled)
    assert graph is not None  # none of these may be refused
    inputs, expected = oracle(scheduled, graph, real=False)
    for name, result in results(graph, inputs).items():
        np.testing.assert_array_equal(result, expected, err_msg=name)
