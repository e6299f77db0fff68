"""Where unrolling a recurrence is not legal, PEs start later, by the schedule of a hint.

The hint is that of the refusal which there is where the loops cannot be changed any more.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s import Float, Func, ImageParam, Int, Var
from t2s.driver import func_design
from t2s.errors import UserError
from t2s.spatial import pipeline
from tests.sampling import sampled


def recurrence(ahead: int) -> tuple[Func, Var, Var]:
    """``F[t, i]`` reads values of the row before up to ``ahead`` places further on."""
    A, F, t, i = ImageParam(Int(32), 2, name="A"), Func("F", type=Int(32)), Var("t"), Var("i")
    beyond = F[t - 1, i + ahead] + F[t - 1, i]
    F[t, i] = t2s.select((t == 0) | (i > 6 - ahead), A[t, i], beyond)
    F.bound(t, 0, 4).bound(i, 0, 7)
    return F, t, i


def test_time_is_skewed_by_as_much_as_a_far_read_needs() -> None:
    A, F, t, i = ImageParam(Int(32), 1, name="A"), Func("F", type=Int(32)), Var("t"), Var("i")
    F[t, i] = t2s.select((t == 0) | (i >= 20), A[i], F[t - 1, i + 20] + 1)
    F.bound(t, 0, 3).bound(i, 0, 40).unroll(t)
    assert schedule_of(F) == "space_time_transform([t, i], {t: t, time: i + 21 * t})"


Read = tuple[int, int, int]


def stencil(reads: list[Read], shape: str) -> tuple[Func, dict[str, Var]]:
    """``F[t, i, j]`` adds values at these distances back in t, i and j; some loops in parts."""
    t, i, j, q = t2s.variables("t i j q")
    A, F = ImageParam(Int(32), 2, name="A"), Func("F", type=Int(32))
    value = A[i, j]
    for back, up, left in reads:
        at, row, column = t - back, i - up, j - left
        inside = (at >= 0) & (row >= 0) & (row < 4) & (column >= 0) & (column < 4)
        value = value + t2s.select(inside, F[at, row, column], 1)
    F[t, i, j] = value
    F.bound(t, 0, 4).bound(i, 0, 4).bound(j, 0, 4)
    if shape == "split":
        F.split(t, t, q, 2)
    return F, {"t": t, "i": i, "j": j, "q": q, "time": Var("time")}


BACK = st.tuples(st.integers(1, 2), st.integers(-2, 2), st.integers(-2, 2))
SAME = st.sampled_from([(0, 1, -1), (0, 1, 0), (0, 0, 1), (0, 1, 2)])
UNROLLED = {"box": ["t", "i", "j", "t i", "t j", "i j"], "split": ["q", "q i", "q j", "t"]}


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=20)
@given(st.data())
def test_every_refusal_has_a_schedule_which_is_legal(data: st.DataObject) -> None:
    """Some loop is left in time, and distances are constant: then skews of it are enough."""
    reads = data.draw(st.lists(st.one_of(BACK, SAME), min_size=1, max_size=3, unique=True))
    shape = data.draw(st.sampled_from(sorted(UNROLLED)))
    loops = data.draw(st.sampled_from(UNROLLED[shape])).split()
    F, names = stencil(reads, shape)
    F.unroll(*(names[name] for name in loops))
    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    result = t2s.simulate(F, {"A": a}, engine="python", progress=False)
    np.testing.assert_array_equal(result.outputs["F"], t2s.interpret(F, {"A": a}))
    schedule = schedule_of(F)
    if schedule is not None:
        F, names = stencil(reads, shape)
        eval(f"F.{schedule}", {"F": F} | names)
        assert t2s.cycles(F) == result.cycles


def schedule_of(F: Func) -> str | None:
    """The schedule that the hint of a refusal gives, where nothing is delayed, if there is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "with_delayed_starts", lambda kernel, directive: kernel)
        patch.setattr(func_design, "_LOWERED", WeakKeyDictionary())  # not the design as it is
        try:
            t2s.lower(F)
            return None
        except UserError as error:
            refusal = error
    assert "before it is computed" in str(refusal)
    head, schedule = str(refusal.hint).split(": ", 1)
    assert head == 'in place of the unrolling, with time = Var("time")'
    return schedule


@sampled("ahead", [1, 2, 3], quick=2)
def test_pes_start_as_the_hint_says(ahead: int) -> None:
    a = np.arange(28, dtype=np.int32).reshape(4, 7)
    F, t, i = recurrence(ahead)
    F.unroll(t)
    delayed = t2s.simulate(F, {"A": a})
    schedule = schedule_of(F)
    F, t, i = recurrence(ahead)
    eval(f"F.{schedule}", {"F": F, "t": t, "i": i, "time": Var("time")})
    result = t2s.simulate(F, {"A": a})
    np.testing.assert_array_equal(result.outputs["F"], t2s.interpret(F, {"A": a}))
    np.testing.assert_array_equal(delayed.outputs["F"], result.outputs["F"])
    assert delayed.cycles == result.cycles == t2s.cycles(F)
    assert F.lower().node("F").pe_count == 4


def jacobi(steps: int, size: int) -> tuple[Func, Func, list[Var]]:
    """``steps`` of Jacobi's method on a square, and its result."""
    A, J, out = ImageParam(Float(32), 2, name="A"), Func("J", type=Float(32)), Func("out")
    t, y, x, u, v = names = t2s.variables("t y x u v")
    edge = (y == 0) | (y == size - 1) | (x == 0) | (x == size - 1)
    around = J[t - 1, y - 1, x] + J[t - 1, y + 1, x] + J[t - 1, y, x - 1] + J[t - 1, y, x + 1]
    step = t2s.select(edge, J[t - 1, y, x], 0.25 * around)
    J[t, y, x] = t2s.select(t == 0, A[y, x], step)
    out[u, v] = J[steps, u, v]
    J.bound(t, 0, steps + 1).bound(y, 0, size).bound(x, 0, size)
    out.bound(u, 0, size).bound(v, 0, size)
    return J, out, list(names)


def test_time_steps_of_a_stencil_in_space() -> None:
    """A PE for each step, all at once: as ``space_time_transform`` does it, isolated or not."""
    steps, size = 3, 9
    a = np.random.default_rng(0).random((size, size), np.float32)
    expected = a.copy()
    for _ in range(steps):
        before = expected.copy()
        inner = before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:]
        expected[1:-1, 1:-1] = np.float32(0.25) * inner
    cycles = []
    for written in ("unroll", "unroll and isolate", "schedule", "no PEs"):
        J, out, (t, y, _, _, _) = jacobi(steps, size)
        time, loader, unloader = Var("time"), Func("loader"), Func("unloader")
        if written.startswith("unroll"):
            J.unroll(t)
        elif written == "schedule":
            J.space_time_transform([t, y], {t: t, time: y + 2 * t})
        if written == "unroll and isolate":
            J.isolate_producer(ImageParam(Float(32), 2, name="A"), loader)
            out.isolate_consumer(unloader)
        native, plain = (t2s.simulate(out, {"A": a}, engine=e) for e in ("native", "python"))
        np.testing.assert_array_equal(native.outputs["out"], expected)
        assert native.cycles == plain.cycles
        cycles.append(native.cycles)
    assert cycles[0] == cycles[1] == cycles[2] < cycles[3] / 2


def test_loops_that_are_isolated_are_as_they_are() -> None:
    F, t, _ = recurrence(1)
    F.isolate_consumer(Func("unloader")).unroll(t)
    with pytest.raises(UserError, match="before it is computed"):
        t2s.lower(F)
