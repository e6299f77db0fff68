"""Barriers of nests that do not begin where all of their loops do, and of arrays with holes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.spatial.agreement import agree, body

PROFILE = settings(
    deadline=None,
    derandomize=True,
    max_examples=12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
i, j, p, t = t2s.variables("i j p t")
k = RDom(0, 2, name="k")
Shape = tuple[int, int, int, int]


def kept(shape: Shape) -> tuple[Func, Func]:
    """A sum in memory, and a function over a triangle, a band or a box that reads it."""
    extent, first, slope, width = shape
    A = ImageParam(Int(32), 1, name="A")
    sums, F = Func("sums"), Func("F")
    sums[i, j] = i
    sums[i, j] += A[k] * (j + 1)
    F[i, j] = sums[i, j] + 1
    F.bound(i, 0, extent).bound(j, first * i, slope * i + width)
    return sums, F


SHAPES = st.tuples(
    st.integers(1, 5), st.sampled_from([-1, 0, 1]), st.sampled_from([0, 1]), st.integers(1, 3)
)
SCHEDULES = {
    "rows": lambda i, j: {p: i, t: j},
    "columns": lambda i, j: {p: j, t: i},
    "skewed": lambda i, j: {p: j, t: 2 * i + j},
    "reversed": lambda i, j: {p: j, t: 8 * i - j},
}


@pytest.mark.slow
@PROFILE
@given(SHAPES, st.sampled_from(sorted(SCHEDULES)), st.integers(1, 3), st.booleans())
def test_scheduled_readers(shape: Shape, schedule: str, factor: int, padded: bool) -> None:
    """Each unit waits once, in its first iteration, wherever that is."""
    _, F = kept(shape)
    fv = Var("fv")
    if padded:
        F.split(i, i, fv, factor)
        F.space_time_transform([j, i], {p: j, t: 2 * i + j})
    else:
        F.space_time_transform([i, j], SCHEDULES[schedule](i, j))
    agree(F)


@pytest.mark.slow
@PROFILE
@given(SHAPES, st.integers(1, 3), st.sampled_from(sorted(SCHEDULES)))
def test_scheduled_sums(shape: Shape, factor: int, schedule: str) -> None:
    """Each unit says once that it has stored, in its last iteration."""
    sums, F = kept(shape)
    place, time = SCHEDULES[schedule](i, j).items()
    sums.space_time_transform([i, j, k], {p: place[1], t: 2 * time[1] + k})
    F.split(i, i, Var("fv"), factor)
    agree(F)


def test_an_empty_loop_where_the_nest_begins() -> None:
    _, F = kept((4, 0, 1, 0))
    graph = agree(F)
    assert body(graph, "F_load_sums")[0] == (
        "complete: bool = receive(sums_complete_released) if i == 1 and j == 0"
    )


def test_places_without_a_unit_get_no_token() -> None:
    sums, _ = kept((4, 0, 1, 1))
    r, s, F = Var("r"), Var("s"), Func("F")
    F[i, j, s] = sums[i, j] + s
    F.bound(i, 0, 4).bound(j, 0, i + 1).bound(s, 0, 2)
    F.space_time_transform([i, j, s], {p: i, r: j, t: s})
    graph = agree(F)
    assert graph.channel("sums_complete_released").shape == (4, 4)
    assert body(graph, "sums_complete")[1].startswith("send(sums_complete_released, True) if ")
    inputs = {"A": np.array([1, 2], np.int32)}
    assert t2s.simulate(graph, inputs, progress=False).nodes["sums_complete"].firings == 17


def test_a_store_that_padding_takes_before_the_front() -> None:
    F, q = Func("F"), Var("q")
    F[i, j] = 2 * i + j
    F.bound(i, 0, 3).bound(j, -i, i + 1).split(i, i, q, 2)
    graph = agree(F)
    assert body(graph, "F_store")[-1].endswith("if i * 2 + q < 3")
    assert "F[i * 2 + q, j + 2] = F_result, not in padded iterations" in t2s.print_loop_nest(F)
