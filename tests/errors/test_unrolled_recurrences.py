"""Where unrolling a recurrence is not legal, the hint has a schedule that is, to be pasted."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, UserError, Var


def recurrence(ahead: int) -> tuple[Func, Var, Var]:
    """``F[t, i]`` reads values of the row before up to ``ahead`` places further on."""
    A, F, t, i = ImageParam(Int(32), 2, name="A"), Func("F", type=Int(32)), Var("t"), Var("i")
    beyond = F[t - 1, i + ahead] + F[t - 1, i]
    F[t, i] = t2s.select((t == 0) | (i > 6 - ahead), A[t, i], beyond)
    F.bound(t, 0, 4).bound(i, 0, 7)
    return F, t, i


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_the_schedule_of_the_hint_is_legal(ahead: int) -> None:
    F, t, i = recurrence(ahead)
    F.unroll(t)
    with pytest.raises(UserError, match="before it is computed") as caught:
        F.lower()
    head, schedule = str(caught.value.hint).split(": ", 1)
    assert head == 'in place of the unrolling, with time = Var("time")'
    F, t, i = recurrence(ahead)
    eval(f"F.{schedule}", {"F": F, "t": t, "i": i, "time": Var("time")})
    a = np.arange(28, dtype=np.int32).reshape(4, 7)
    result = t2s.simulate(F, {"A": a})
    np.testing.assert_array_equal(result.outputs["F"], t2s.interpret(F, {"A": a}))
    assert F.lower().node("F").pe_count == 4
