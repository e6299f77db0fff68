"""Where unrolling a recurrence is not legal, the hint has a schedule that is, to be pasted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, UserError, Var
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
    try:
        F.lower()
    except UserError as error:
        if "before it is computed" not in str(error):
            raise
        schedule = schedule_of(F)
    else:
        return
    F, names = stencil(reads, shape)
    eval(f"F.{schedule}", {"F": F} | names)
    a = np.arange(16, dtype=np.int32).reshape(4, 4)
    result = t2s.simulate(F, {"A": a}, engine="python", progress=False)
    np.testing.assert_array_equal(result.outputs["F"], t2s.interpret(F, {"A": a}))


def schedule_of(F: Func) -> str:
    """The schedule that the hint of a refusal gives."""
    with pytest.raises(UserError, match="before it is computed") as caught:
        F.lower()
    head, schedule = str(caught.value.hint).split(": ", 1)
    assert head == 'in place of the unrolling, with time = Var("time")'
    return schedule


@sampled("ahead", [1, 2, 3], quick=2)
def test_the_schedule_of_the_hint_is_legal(ahead: int) -> None:
    F, t, i = recurrence(ahead)
    F.unroll(t)
    schedule = schedule_of(F)
    F, t, i = recurrence(ahead)
    eval(f"F.{schedule}", {"F": F, "t": t, "i": i, "time": Var("time")})
    a = np.arange(28, dtype=np.int32).reshape(4, 7)
    result = t2s.simulate(F, {"A": a})
    np.testing.assert_array_equal(result.outputs["F"], t2s.interpret(F, {"A": a}))
    assert F.lower().node("F").pe_count == 4
