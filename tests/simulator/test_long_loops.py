"""Very long loops: a few of their iterations stand for all others, and no count changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.graph.control import domains
from t2s.report.page.space_time import FiringPlaces
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.run import simulate_cycles
from tests.simulator.designs import IDEAL
from tests.simulator.times.test_periods import assert_equal, nested

DRAW = st.DataObject


def scaled(count: int) -> Func:
    """C(i) = 2 A(i)."""
    A, C, i = ImageParam(Float(32), 1, name="A"), Func("C"), Var("i")
    C[i] = A[i] * 2.0
    C.bound(i, 0, count)
    return C


def dot(count: int) -> Func:
    """The sum of A(k) B(k)."""
    A, B = (ImageParam(Float(32), 1, name=name) for name in "AB")
    S, j, k = Func("S"), Var("j"), RDom(0, count, name="k")
    S[j] = 0.0
    S[j] += A[k] * B[k]
    S.bound(j, 0, 1)
    return S


@pytest.mark.parametrize("make", [scaled, dot])
@pytest.mark.parametrize("device", ["ideal", "arria10"])
def test_a_loop_of_two_thousand_million_iterations(make: object, device: str) -> None:
    """As many cycles more as there are iterations more, at one pace."""
    assert callable(make)
    few, more = (t2s.cycles(make(count), device=device) for count in (1000, 2000))
    pace = (more - few) // 1000
    assert pace in (1, 4)
    for count in ((1 << 26) + 5, (1 << 31) - 5):
        assert t2s.cycles(make(count), device=device) == few + pace * (count - 1000)


def test_values_below_a_loop_that_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "VERY_LONG", 50)
    a, b = np.random.default_rng(0).random((2, 1009), np.float32)
    native, plain = (
        t2s.simulate(dot(1009), {"A": a, "B": b}, engine=engine) for engine in ("native", "python")
    )
    assert native.cycles == plain.cycles
    assert native.nodes == plain.nodes
    assert np.allclose(native.outputs["S"], a @ b, rtol=1e-4)


def test_the_indices_of_firings_of_a_long_loop() -> None:
    count = (1 << 26) + 5
    result = simulate_cycles(dot(count).lower())
    for timing in result.program.nodes:
        places = FiringPlaces.of(result.program, timing)
        if timing.node.name == "S":
            firings = np.array([0, 1, 12345678, count - 1])
            assert places.indices(0, firings)[-1].tolist() == firings.tolist()


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)
@given(st.data())
def test_loops_of_random_extents(data: DRAW) -> None:
    """The firings of a loop taken by a few iterations are those of the loop as it is."""
    graph = nested(data)
    programs = []
    for length in (1 << 20, data.draw(st.sampled_from([5, 12, 40]))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(domains, "VERY_LONG", length)
            programs.append(build_program(replace(graph), IDEAL, None))
    whole, taken = programs
    assert firings_of(taken) == firings_of(whole)
    assert_equal(*(find_engine("array").run(program, Limits()) for program in programs))


def firings_of(program: SimProgram) -> list[list[tuple[int, ...]]]:
    """What the firings of each PE take and put, and the bytes that they move, in order."""
    control, found = program.control, []
    for pe in range(program.pe_count):
        order = control.orders[int(control.order_of[pe])]
        rows = control.rows[int(control.row_start[pe]) + order.expanded().astype(np.int64)]
        rows_of = {
            tuple(row): (*control.uses[row[0] : row[2]].tolist(), -1, row[1] - row[0], *row[3:])
            for row in rows.tolist()
        }
        found.append([rows_of[tuple(row)] for row in rows.tolist()])
    return found
