"""``space_time_transform``: values and cycles of schedules, which closed forms give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.graph.nodes import Role
from tests.func.recurrences import recurrences
from tests.spatial.agreement import agree, body, nest, space

p, s, t, i, j, k = t2s.variables("p s t i j k")


def convolution(results: int = 6, taps: int = 4) -> tuple[Func, Any]:
    x, w = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="w")
    q, Z = RDom(0, taps, name="q"), Func("Z")
    Z[i] = 0
    Z[i] += x[i + q] * w[q]
    return Z.bound(i, 0, results), q


def product(rows: int, columns: int, steps: int) -> tuple[Func, ImageParam, ImageParam, Any]:
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    r, C = RDom(0, steps, name="r"), Func("C")
    C[i, j] = 0
    C[i, j] += A[i, r] * B[r, j]
    return C.bound(i, 0, rows).bound(j, 0, columns), A, B, r


def compute_cycles(func: Func) -> int:
    graph = agree(func)
    inputs = {x.name: np.ones(x.shape, x.type.numpy) for x in graph.tensors if x.name != graph.name}
    return t2s.simulate(graph, inputs).compute_cycles


@pytest.mark.slow
@pytest.mark.parametrize("place", [(1, 0), (0, 1), (1, 1), (1, -1), (-1, 0)])
@pytest.mark.parametrize("time", [(1, 1), (0, 1), (2, 1), (1, 2), (-1, 1), (3, 2)])
def test_every_schedule_of_a_convolution_is_legal_and_takes_its_time_or_is_refused(
    place: tuple[int, int], time: tuple[int, int]
) -> None:
    """From the first to the last time, both counted; nothing else costs a cycle."""
    results, taps = 6, 4
    Z, q = convolution(results, taps)
    Z.space_time_transform([i, q], [p, t], [place, time])
    points = [(a, b) for a in range(results) for b in range(taps)]
    spots = [tuple(a * x + b * y for x, y in (place, time)) for a, b in points]
    hop, wait = place[1], time[1]
    if len(set(spots)) < len(points) or wait < max(1, abs(hop)):
        with pytest.raises(t2s.errors.UserError):
            Z.lower()
        return
    graph = agree(Z)
    assert graph.node("Z").pe_count == len({spot[0] for spot in spots})
    inputs = {"x": np.ones(results + taps - 1, np.int32), "w": np.ones(taps, np.int32)}
    found = t2s.simulate(graph, inputs)
    times = [spot[1] for spot in spots]
    # PEs without waiting partners start at once: compute_cycles never exceeds the schedule
    assert found.compute_cycles <= max(times) - min(times) + 1
    assert found.nodes["Z"].firings == len(points), "times without an iteration are not firings"


def test_textbook_array_of_a_product() -> None:
    """n x n PEs: 3 n - 2 cycles from the first to the last multiply-add."""
    C, A, B, r = product(4, 4, 4)
    C.space_time_transform([i, j, r], {p: i, s: j, t: i + j + r})
    A_loader, B_loader = t2s.funcs("A_loader B_loader")
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader)
    C.forward(A_loader, s).forward(B_loader, p)
    assert compute_cycles(C) == 3 * 4 - 2
    graph = t2s.lower(C)
    assert space(graph.node("C")) == {"p": 4, "s": 4}
    assert graph.node("A_loader").pe_count == graph.node("B_loader").pe_count == 4


def test_results_that_move_and_weights_that_stay() -> None:
    """PEs (r, j), rows of A enter one after the other: rows + steps + columns - 2 cycles."""
    C, A, _, r = product(5, 3, 4)
    C.space_time_transform([i, j, r], {p: r, s: j, t: i + j + r})
    A_loader = Func("A_loader")
    C.isolate_producer(A, A_loader).forward(A_loader, s)
    assert compute_cycles(C) == 5 + 4 + 3 - 2


def test_several_loops_in_one_time() -> None:
    """Time counts results and taps: the whole convolution in each of 2 PEs."""
    Z, q = convolution(6, 3)
    ii = Var("ii")
    Z.split(i, i, ii, 2).space_time_transform([i, ii, q], {p: ii, t: 3 * i + q})
    assert compute_cycles(Z) == 9
    assert nest(Z) == ["parallel p in 0..1", "for t in 0..8"]


def test_loops_outside_stay() -> None:
    C, _, _, r = product(3, 4, 5)
    C.space_time_transform([j, r], {p: j, t: j + r})
    assert nest(C) == ["parallel p in 0..3", "for i in 0..2", "for t in p..p + 4"]
    assert compute_cycles(C) <= 3 * 5 + 3


def test_unscheduled_is_unroll() -> None:
    C, *_ = product(3, 4, 5)
    C.space_time_transform(i, j)
    other, *_ = product(3, 4, 5)
    other.unroll(i, j)
    assert nest(C) == nest(other)
    agree(C)


def test_skewed_innermost_loop() -> None:
    """([i, j], [1, 1]) is {i: i, j: j, r: i + j + r}."""
    C, *_ = product(3, 4, 5)
    C.space_time_transform([i, j], [1, 1])
    assert nest(C) == ["parallel i in 0..2", "parallel j in 0..3", "for r in i + j..i + j + 4"]
    agree(C)


def test_float_sums_keep_their_order() -> None:
    x, w = ImageParam(t2s.Float(32), 1, name="x"), ImageParam(t2s.Float(32), 1, name="w")
    q, Z = RDom(0, 5, name="q"), Func("Z")
    Z[i] = 0.5
    Z[i] += x[i + q] * w[q]
    Z.bound(i, 0, 6).space_time_transform([i, q], {p: q, t: i + q})
    agree(Z, real=True)


def test_initial_value_that_is_loaded() -> None:
    x, c = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="c")
    q, Z = RDom(0, 3, name="q"), Func("Z")
    Z[i] = c[i]
    Z[i] += x[i + q]
    Z.bound(i, 0, 4).space_time_transform([i, q], {p: q, t: i + q})
    graph = agree(Z)
    loads = [n for n in graph.nodes if n.role is Role.LOAD and "c" in n.name.split("_")]
    assert [node.pe_count for node in loads] == [1], "only the first PE starts sums"


def test_negative_minima_and_differences() -> None:
    """Correlation over offsets -2..2, each in a PE of its own; the schedule runs backwards in u."""
    x, y = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="y")
    u, R = Var("u"), recurrences("R", Int(32))[0]
    out = Func("out")
    R[u, i] = t2s.select(i == 0, 0, R[u, i - 1]) + x[i + u + 2] * y[i]
    out[u] = R[u, 5]
    R.bound(i, 0, 6)
    out.bound(u, -2, 5)
    R.space_time_transform([u, i], {p: u, t: i - u})
    y_loader = Func("y_loader")
    R.isolate_producer(y, y_loader).forward(y_loader, p)
    graph = agree(out)
    assert space(graph.node("R")) == {"p": 5}
    assert graph.node("y_loader").pe_count == 1


@pytest.mark.parametrize(
    ("time", "latency"), [(lambda a, b: a + b, 1), (lambda a, b: 2 * a + b, 2)], ids=["1", "2"]
)
def test_a_link_takes_as_many_cycles_as_the_schedule_says(time: Any, latency: int) -> None:
    Z, q = convolution()
    w = ImageParam(Int(32), 1, name="w")
    w_loader = Func("w_loader")
    Z.space_time_transform([i, q], {p: i, t: time(i, q)})
    Z.isolate_producer(w, w_loader).forward(w_loader, p)
    graph = agree(Z)
    along = next(c for c in graph.channels if c.source == c.sink and "along" in c.name)
    assert along.latency == latency
    assert graph.node("w_loader").pe_count == 1


def test_forward_finds_the_direction() -> None:
    """x[i - q + 3] is the same for the PE after at the time before: it moves towards PE 0."""
    x, w = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="w")
    q, Z, x_loader = RDom(0, 4, name="q"), Func("Z"), Func("x_loader")
    Z[i] = 0
    Z[i] += x[i + q] * w[q]
    Z.bound(i, 0, 6).space_time_transform([i, q], {p: i, t: q})
    Z.isolate_producer(x, x_loader).forward(x_loader, p)
    graph = agree(Z)
    received = [line for line in body(graph, "Z") if "x_loader" in line]
    assert any("p == 5" in line or "p >= 5" in line or "not" in line for line in received)
    loads = t2s.simulate(graph, {"x": np.ones(9, np.int32), "w": np.ones(4, np.int32)})
    assert loads.outputs["Z"].tolist() == [4] * 6


def test_arrays_with_one_row_or_one_column() -> None:
    """With one PE along a loop there is nobody to pass a value on to, and nothing to refuse."""
    for rows, columns in ((1, 3), (3, 1), (1, 1)):
        C, A, B, r = product(rows, columns, 2)
        A_loader, B_loader = t2s.funcs("A_loader B_loader")
        C.space_time_transform([i, j, r], {p: i, s: j, t: i + j + r})
        C.isolate_producer(A, A_loader).forward(A_loader, s)
        C.isolate_producer(B, B_loader).forward(B_loader, p)
        agree(C)


def test_longer_distances_take_longer_channels() -> None:
    """S[i] = S[i - 3] + x[i] with i = p + 3 t: three chains, each in its own PE."""
    (S,) = recurrences("S", Int(32))
    x = ImageParam(Int(32), 1, name="x")
    S[i] = t2s.select(i < 3, 0, S[i - 3]) + x[i]
    ii = Var("ii")
    S.bound(i, 0, 12).split(i, i, ii, 3).unroll(ii)
    graph = agree(S)
    assert space(graph.node("S")) == {"ii": 3}
    assert not [c for c in graph.channels if c.source == c.sink], "values stay in their PEs"


def test_channels_exist_only_where_values_cross() -> None:
    """A tile of 2 x 3 PEs: the way back from the last column is one channel for each row."""
    (S,) = recurrences("S", Int(32))
    A = ImageParam(Int(32), 2, name="A")
    S[i, j] = t2s.select(j == 0, 0, S[i, j - 1]) + A[i, j]
    ii, jj = t2s.variables("ii jj")
    S.bound(i, 0, 4).bound(j, 0, 6).tile(j, i, jj, ii, 3, 2).unroll(ii, jj)
    graph = agree(S)
    shapes = sorted(c.shape for c in graph.channels if c.source == c.sink)
    assert shapes == [(2,), (2, 2)]
