"""Systems of recurrences in hardware: what is built, and that it gives the oracle's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.func.collect import needed_funcs
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Role
from t2s.graph.verify import verify_graph
from tests.func import recurrences as programs
from tests.func.recurrences import recurrences
from tests.sampling import sampled
from tests.spatial.agreement import body, nest, space

i, j, k, b, r, h, c, ii, jj = t2s.variables("i j k b r h c ii jj")
A = ImageParam(Int(32), 2, name="A")
Schedule = Callable[[Func], object]


def member(func: Func, name: str) -> Func:
    found = next(f for f in needed_funcs((func,)) if f.name == name)
    assert isinstance(found, Func)
    return found


def check(outputs: Sequence[Func], inputs: dict[str, Any], device: str = "ideal") -> Graph:
    """All outputs by interpreter and engines are the oracle's; both engines agree on cycles."""
    graph = t2s.lower(outputs)
    verify_graph(graph)
    wanted = t2s.interpret(outputs, inputs)
    python = t2s.simulate(graph, inputs, device=device, engine="python", progress=False)
    native = t2s.simulate(graph, inputs, device=device, progress=False)
    untimed = interpret_graph(graph, inputs, {})
    assert python.cycles == native.cycles
    for name, value in wanted.items():
        for found in (python.outputs, native.outputs, untimed):
            np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)
    return graph


HMM_SCHEDULES: dict[str, Schedule] = {
    "time": lambda M: M,
    "space": lambda M: M.unroll(i, j),
    "rows": lambda M: M.unroll(i),
    "tiles": lambda M: (
        M.tile(j, i, jj, ii, 3, 2).reorder(ii, jj, h, r, j, i).space_time_transform(ii, jj)
    ),
    "interleaved": lambda M: M.reorder(h, r, j, i),
    "skewed": lambda M: M.space_time_transform([i], [1]),
    "wavefront": lambda M: M.space_time_transform([i, j], {Var("p"): i, Var("t"): i + j}),
}


@pytest.mark.slow
@pytest.mark.parametrize("schedule", HMM_SCHEDULES.values(), ids=HMM_SCHEDULES)
def test_pair_hmm(schedule: Schedule) -> None:
    out = programs.pair_hmm(2, 2, 4, 6)
    schedule(member(out, "M"))
    check([out], programs.pair_hmm_inputs(2, 2, 4, 6), "arria10")


@sampled("names", [(), ("k",), ("j",), ("j", "k"), ("i",)], quick=2, ids=str)
def test_lu(names: tuple[str, ...]) -> None:
    out = programs.lu(2, 4)
    if names:
        member(out, "Z").unroll(*t2s.variables(" ".join(names)))
    graph = check([out], {"A": programs.well_conditioned(2, 4, 4)})
    if names == ("j", "k"):
        (compute,) = [node for node in graph.nodes if node.role is Role.COMPUTE]
        assert (compute.pe_count, compute.place_count) == (10, 16)


@sampled("names", ["", "i", "j", "i j", "c"], quick=2)
def test_trsm(names: str) -> None:
    out = programs.trsm(4, 5)
    if names:
        member(out, "SL").unroll(*t2s.variables(names))
    lower = np.tril(np.random.default_rng(1).random((4, 4), np.float32))
    check([out], {"L": lower, "A": np.random.default_rng(2).random((4, 5), np.float32)})


def grid(rows: int = 4, columns: int = 6) -> Func:
    (S,) = recurrences("S", Int(32))
    above = t2s.select(i == 0, 0, S[i - 1, j])
    left = t2s.select(j == 0, 0, S[i, j - 1])
    S[i, j] = above - left + A[i, j]
    return S.bound(i, 0, rows).bound(j, 0, columns)


def numbers(*shape: int) -> dict[str, Any]:
    return {"A": np.random.default_rng(1).integers(-9, 9, shape, np.int32)}


def test_values_that_stay_wait_in_rotating_registers() -> None:
    S = grid()
    graph = check([S], numbers(4, 6))
    assert [(x.shape, x.distance) for x in graph.node("S").registers] == [((6,), 6), ((), 1)]
    assert not [x for x in graph.channels if x.source == x.sink]


def test_splits_make_several_distances() -> None:
    """Within a tile from the PE beside; at its start from the last PE of the tile before."""
    S = grid()
    S.tile(j, i, jj, ii, 3, 2).unroll(ii, jj)
    graph = check([S], numbers(4, 6))
    inner = sorted((x.name, x.shape) for x in graph.channels if x.source == x.sink)
    assert inner == [
        ("S_along_ii", (3,)),
        ("S_along_ii_2", (3,)),
        ("S_along_jj", (2, 2)),
        ("S_along_jj_2", (2,)),
    ]


def test_projections_take_one_value_each() -> None:
    S, out = grid(), Func("out")
    out[i] = S[i, 5]
    out.bound(i, 0, 4)
    S.unroll(j)
    graph = check([out], numbers(4, 6))
    assert graph.node("out_store").pe_count == 1
    assert any("if j == 5" in line for line in body(graph, "S"))


def test_member_and_projection_are_outputs_together() -> None:
    S, out = grid(), Func("out")
    out[j] = S[3, j]
    out.bound(j, 0, 6)
    loader, stored, picked = t2s.funcs("loader stored picked")
    S.isolate_producer(A, loader)
    S.isolate_consumer(stored)
    out.isolate_consumer(picked)
    graph = check([S, out], numbers(4, 6))
    assert {node.name for node in graph.nodes} == {"S", "loader", "stored", "picked"}


COPIES: dict[str, Callable[[Func], Any]] = {
    "plain": lambda S: S[i, j],
    "of the one before": lambda S: t2s.select(j > 0, S[i, j - 1], 0),
    "where i is 1": lambda S: t2s.select(i == 1, S[i, j], 0),
    "elsewhere": lambda S: t2s.select(i == 1, 0, S[i, j]),
}


@sampled("copy", COPIES.values(), quick=2, ids=COPIES)
@pytest.mark.parametrize("beside", [False, True])
def test_an_output_that_copies_a_recurrence_is_stored_once(
    copy: Callable[[Func], Any], beside: bool
) -> None:
    """It is a member of the recurrence, and costs no more than an output of its own."""
    (S,), x, table = recurrences("S", Int(32)), ImageParam(Int(32), 1, name="x"), Func("table")
    S[i, j] = t2s.select(j > 0, S[i, j - 1], 0) + x[i]
    table[i, j] = copy(S)
    S.unroll(i)
    for func in (S, table):
        func.bound(i, 0, 4).bound(j, 0, 6)
    graph = check([table, S] if beside else [table], {"x": np.arange(4, dtype=np.int32)})
    stores = [node for node in graph.nodes if node.role is Role.STORE]
    assert len(stores) == 1 + beside
    alone = t2s.cycles(S, device="arria10")
    assert t2s.cycles(table, device="arria10") <= alone + 1


def test_operands_are_loaded_only_where_they_are_needed() -> None:
    """Row 0 comes from A, the others from the row above: one loader per column, not per PE."""
    (S,) = recurrences("S", Int(32))
    S[i, j] = t2s.select(i == 0, A[0, j], S[i - 1, j] * 2)
    S.bound(i, 0, 3).bound(j, 0, 4).unroll(i, j)
    graph = check([S], numbers(1, 4))
    assert graph.node("S_load_A").pe_count == 4


def test_forward_in_a_plain_array() -> None:
    (S,) = recurrences("S", Int(32))
    x, y = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="y")
    S[b, i, j] = t2s.select(b == 0, 0, S[b - 1, i, j]) + x[i] * y[j]
    x_loader, y_loader = t2s.funcs("x_loader y_loader")
    S.bound(b, 0, 3).bound(i, 0, 2).bound(j, 0, 4).unroll(i, j)
    S.isolate_producer(x, x_loader).forward(x_loader, j)
    S.isolate_producer(y, y_loader).forward(y_loader, i, depth=5)
    values = {"x": np.array([2, 3], np.int32), "y": np.arange(4, dtype=np.int32)}
    graph = check([S], values)
    assert graph.node("x_loader").pe_count == 2
    assert graph.node("y_loader").pe_count == 4
    along = {x.name: x.capacity for x in graph.channels if "along" in x.name}
    assert along == {"x_along_j": 34, "y_along_i": 5}


def test_buffers_feed_a_system() -> None:
    """y does not depend on b: it is loaded once, and sent again for each b."""
    (T,), y = recurrences("T", Int(32)), ImageParam(Int(32), 1, name="y")
    loader, feeder = t2s.funcs("loader feeder")
    T[c, b, i] = t2s.select(b == 0, 0, T[c, b - 1, i]) + y[i]
    T.bound(c, 0, 2).bound(b, 0, 3).bound(i, 0, 4)
    T.isolate_producer_chain(y, loader, feeder)
    loader.remove(b)
    feeder.buffer(loader, c)
    check([T], {"y": np.arange(4, dtype=np.int32)})
    result = t2s.simulate(T, {"y": np.arange(4, dtype=np.int32)})
    assert result.nodes["loader"].firings == 2 * 4
    assert result.nodes["T"].firings == 2 * 3 * 4


def test_equal_reads_are_one_operand() -> None:
    (S,) = recurrences("S", Int(32))
    x, loader = ImageParam(Int(32), 1, name="x"), Func("loader")
    S[i] = t2s.select(i == 0, x[i], S[i - 1] + x[i])
    S.bound(i, 0, 5).isolate_producer(x, loader)
    graph = check([S], {"x": np.arange(5, dtype=np.int32)})
    assert [node.name for node in graph.nodes if node.role is Role.LOAD] == ["loader"]


def test_lanes_over_a_batch() -> None:
    (S,) = recurrences("S", Int(32))
    S[i, j] = t2s.select(i == 0, 0, S[i - 1, j]) + t2s.select(A[i, j] > 0, A[i, j], 1)
    S.bound(i, 0, 4).bound(j, 0, 8).split(j, j, jj, 4).vload(A).vstore(S)
    graph = check([S], numbers(4, 8))
    assert nest(S) == ["for i in 0..3", "for j in 0..1", "vector jj in 0..3"]
    assert {x.stream.element.lanes for x in graph.channels} == {4}
    assert [x.type.lanes for x in graph.node("S").registers] == [4]


@pytest.mark.parametrize(("start", "adders"), [(0, 0), (5, 1)])
def test_sum_over_lanes_that_starts_from_nothing(start: int, adders: int) -> None:
    wide, total = recurrences("wide total", Int(32))
    lane = RDom(0, 4, name="lane")
    wide[i, k] = A[i, k] + t2s.select(i == 0, 0, total[i - 1])
    total[i] = start
    total[i] += wide[i, lane]
    wide.bound(i, 0, 3).bound(k, 0, 4)
    graph = check([total], numbers(3, 4))
    (line,) = [x for x in body(graph, "total") if "reduce_lanes" in x]
    assert line.count(" + ") == adders


def test_nest_says_which_pes_there_are() -> None:
    out = programs.lu(2, 3)
    Z = member(out, "Z")
    Z.unroll(k, j)
    text = t2s.print_loop_nest(out)
    assert "Z: compute, 6 PEs" in text
    assert "if j >= k:" in text
    assert space(t2s.lower(out).node("Z")) == {"k": 3, "j": 3}
