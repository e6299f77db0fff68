"""Recurrences whose distances vary within bounds: pivots, swaps, reflections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import t2s
from t2s import Func, ImageParam, Int
from tests.func.recurrences import recurrences
from tests.sampling import sampled
from tests.spatial.agreement import agree

s, i, j, k = t2s.variables("s i j k")

READS: dict[str, Callable[[Func], Any]] = {
    "reflection": lambda V: V[s - 1, 3 - i],
    "neighbor of a pair": lambda V: V[s - 1, i + 1 - 2 * (i % 2)],
    "first": lambda V: V[s - 1, 0],
    "both": lambda V: V[s - 1, 3 - i] * 2 + V[s - 1, i],
}


@sampled("read", READS.values(), quick=2, ids=READS)
@pytest.mark.parametrize("unrolled", ["", "i", "s i"])
def test_reads_of_an_earlier_stage(read: Callable[[Func], Any], unrolled: str) -> None:
    x, out = ImageParam(Int(32), 1, name="x"), Func("out")
    (V,) = recurrences("V", Int(32))
    V[s, i] = t2s.select(s == 0, x[i], read(V) + 1)
    out[i] = V[2, i]
    V.bound(s, 0, 3).bound(i, 0, 4)
    if unrolled:
        V.unroll(*(loop for loop in (s, i) if loop.name in unrolled.split()))
    agree(out.bound(i, 0, 4))


@sampled("unrolled", [(), (i,), (j,), (i, j)], quick=2)
def test_a_pivot_is_a_broadcast(unrolled: tuple[t2s.Var, ...]) -> None:
    """V[k - 1, i, k] goes to all j."""
    A, out = ImageParam(Int(32), 2, name="A"), Func("out")
    (V,) = recurrences("V", Int(32))
    V[k, i, j] = t2s.select(k == 0, A[i, j], V[k - 1, i, j] - V[k - 1, i, k])
    out[i, j] = V[2, i, j]
    V.bound(k, 0, 3).bound(i, 0, 3).bound(j, 0, 3)
    if unrolled:
        V.unroll(*unrolled)
    agree(out.bound(i, 0, 3).bound(j, 0, 3))


def test_the_same_stage_needs_constant_distances() -> None:
    x = ImageParam(Int(32), 1, name="x")
    (V,) = recurrences("V", Int(32))
    V[s, i] = t2s.select(i == 0, x[i], V[s, 3 - i])
    with pytest.raises(t2s.errors.UserError, match="is not at a constant distance"):
        V.bound(s, 0, 3).bound(i, 0, 4).lower()
