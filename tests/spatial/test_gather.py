"""gather: results leave as one stream, from PE to PE, or as the lanes of vectors."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.errors.designs import product
from tests.spatial.agreement import agree, body, nest, space
from tests.spatial.programs import random_inputs

REVERSE = pytest.mark.parametrize("reverse", [False, True], ids=["up", "down"])


def sums(pes: int = 4, results: int = 3, steps: int = 5) -> tuple[Func, Var, Var, RDom]:
    """``y[r, i] = sum of A[r, i, k]`` with a PE for each i."""
    A, r, i = ImageParam(Int(32), 3, name="A"), Var("r"), Var("i")
    k = RDom(0, steps, name="k")
    y = Func("y")
    y[r, i] = 0
    y[r, i] += A[r, i, k]
    y.bound(r, 0, results).bound(i, 0, pes).unroll(i)
    return y, r, i, k


@REVERSE
def test_one_stream_of_results(reverse: bool) -> None:
    y, _, i, _ = sums()
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i, reverse=reverse)
    assert nest(y, "unloader") == ["for r in 0..2", "for i in 0..3"]
    digit = "for i_digit in 0..i" if reverse else "for i_digit in i..3"
    assert nest(y, "drainer") == ["parallel i in 0..3", "for r in 0..2", digit]
    graph = agree(y)
    assert graph.channel("y_to_drainer").shape == (4,)
    assert graph.channel("drainer_to_unloader").shape == ()
    last, inside = ("i == 3", "i < 3") if reverse else ("i == 0", "i > 0")
    assert body(graph, "drainer") == [
        "y_result_own: int32 = receive(y_to_drainer) if i_digit == i",
        f"y_result_passed: int32 = receive(y_along_i) if i_digit {'<' if reverse else '>'} i",
        "y_result: int32 = select(i_digit == i, y_result_own, y_result_passed)",
        f"send(y_along_i, y_result) if {inside}",
        f"send(drainer_to_unloader, y_result) if {last}",
    ]


@pytest.mark.parametrize(("pes", "results", "steps"), [(1, 2, 3), (4, 3, 5), (5, 4, 2), (3, 1, 1)])
def test_cycles(pes: int, results: int, steps: int) -> None:
    """One result per cycle leaves; the first comes after ``steps`` steps.

    PEs whose results are late (``steps`` >= ``pes``) are waited for in every round; otherwise all
    results leave one after the other.
    """
    y, _, i, _ = sums(pes, results, steps)
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i)
    graph = agree(y)
    # loaded in cycle 1, summed up in 2 to steps + 1, drained in steps + 2, stored in steps + 3; the
    # last round comes (results - 1) * max(steps, pes) later, and its last result pes - 1 after that
    assert t2s.cycles(graph) == steps + 3 + (results - 1) * max(steps, pes) + (pes - 1)


def test_several_consumers_behind() -> None:
    y, _, i, _ = sums()
    drainer, relay, unloader = t2s.funcs("drainer relay unloader")
    y.isolate_consumer_chain(drainer, relay, unloader)
    drainer.gather(y, i)
    graph = agree(y)
    assert [space(graph.node(n)) for n in ("drainer", "relay", "unloader")] == [{"i": 4}, {}, {}]


def test_the_gathering_one_in_the_middle() -> None:
    y, _, i, _ = sums()
    relay, drainer, unloader = t2s.funcs("relay drainer unloader")
    y.isolate_consumer_chain(relay, drainer, unloader)
    drainer.gather(relay, i)
    graph = agree(y)
    assert graph.channel("relay_to_drainer").shape == (4,)


def test_the_results_may_be_named_by_their_function() -> None:
    y, _, i, _ = sums()
    relay, drainer, unloader = t2s.funcs("relay drainer unloader")
    y.isolate_consumer_chain(relay, drainer, unloader)
    drainer.gather(y, i)
    agree(y)


@REVERSE
def test_the_loop_of_the_stream_anywhere_behind(reverse: bool) -> None:
    """PEs that wait for one another need room for the results of a whole round."""
    p = product()
    b_loader, drainer, unloader = t2s.funcs("b_loader drainer unloader")
    p.C.reorder(p.j, p.k, p.i).unroll(p.i)
    p.C.isolate_producer(p.B, b_loader).forward(b_loader, p.i)
    p.C.isolate_consumer_chain(drainer, unloader)
    drainer.gather(p.C, p.i, reverse=reverse)
    unloader.reorder(p.j, p.i)
    assert nest(p.C, "unloader") == ["for i in 0..3", "for j in 0..5"]
    assert agree(p.C).channel("C_to_drainer").capacity == 6 + 1


@REVERSE
@pytest.mark.parametrize("order", ["ij", "ji"])
def test_two_dimensions(order: str, reverse: bool) -> None:
    p = product()
    drainer, collector, unloader = t2s.funcs("drainer collector unloader")
    p.C.unroll(p.i, p.j).isolate_consumer_chain(drainer, collector, unloader)
    first, second = (p.i, p.j) if order == "ij" else (p.j, p.i)
    drainer.gather(p.C, first, reverse=reverse)
    collector.gather(drainer, second)
    graph = agree(p.C)
    assert space(graph.node("drainer")) == {"i": 4, "j": 6}
    assert list(space(graph.node("collector"))) == [second.name]
    assert nest(p.C, "unloader") == [
        f"for {loop.name} in 0..{3 if loop is p.i else 5}" for loop in (first, second)
    ]


def test_the_array_does_not_wait_for_its_results_to_leave() -> None:
    """6 results in a row from each of 4 PEs leave one by one; the next ones take 48 cycles."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k, jj = Var("i"), Var("j"), RDom(0, 8, name="k"), Var("jj")
    C, b_loader, drainer, unloader = t2s.funcs("C b_loader drainer unloader")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 18)
    C.split(j, j, jj, 6).reorder(jj, k, j, i).unroll(i)
    C.isolate_producer(B, b_loader).forward(b_loader, i)
    C.isolate_consumer_chain(drainer, unloader)
    drainer.gather(C, i)
    graph = agree(C)
    assert graph.channel("C_to_drainer").capacity == 6 + 1
    result = t2s.simulate(graph, random_inputs(graph, 0))
    assert result.nodes["C"].blocked == 0
    assert result.compute_cycles == 18 * 8 + 3


def test_results_that_are_slower_than_the_stream_need_no_room() -> None:
    """One result in 5 cycles from each of 4 PEs; with 2 steps there are more than can leave."""
    for steps, capacity in ((5, 2), (4, 2), (2, 2)):
        y, _, i, _ = sums(steps=steps)
        drainer, unloader = t2s.funcs("drainer unloader")
        y.isolate_consumer_chain(drainer, unloader)
        drainer.gather(y, i)
        assert agree(y).channel("y_to_drainer").capacity == capacity


def test_a_depth_of_the_user() -> None:
    y, _, i, _ = sums()
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i)
    y.depth(9)
    assert agree(y).channel("y_to_drainer").capacity == 9


# ----------------------------------------------------------------------------------------- lanes


@REVERSE
def test_lanes(reverse: bool) -> None:
    y, _, i, _ = sums()
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i, reverse=reverse)
    unloader.vstore(y)
    assert nest(y, "unloader") == ["for r in 0..2", "vector i in 0..3"]
    assert nest(y, "drainer") == ["parallel i in 0..3", "for r in 0..2"]
    graph = agree(y)
    assert graph.channel("drainer_to_unloader").stream.element == Int(32).with_lanes(4)
    behind, inside, last = ("i > 0", "i < 3", "i == 3") if reverse else ("i < 3", "i > 0", "i == 0")
    assert body(graph, "drainer") == [
        "y_result_own: int32 = receive(y_to_drainer)",
        f"y_result_passed: int32x4 = receive(y_along_i) if {behind}",
        f"y_result: int32x4 = insert(select({behind}, y_result_passed, broadcast(0, 4)), i, "
        "y_result_own)",
        f"send(y_along_i, y_result) if {inside}",
        f"send(drainer_to_unloader, y_result) if {last}",
    ]


def test_one_lane() -> None:
    y, _, i, _ = sums(pes=1)
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i)
    unloader.vstore(y)
    agree(y)


def test_lanes_that_do_not_start_at_zero() -> None:
    A, r, i = ImageParam(Int(32), 2, name="A"), Var("r"), Var("i")
    y, drainer, unloader = t2s.funcs("y drainer unloader")
    y[r, i] = A[r, i] + 1
    y.bound(r, 0, 2).bound(i, 3, 4).unroll(i).isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i)
    unloader.vstore(y)
    agree(y)


@pytest.mark.parametrize("type", [t2s.Float(64), t2s.Int(8), t2s.Bool(), t2s.BFloat()], ids=str)
def test_lanes_of_every_size(type: t2s.Type) -> None:
    A, i = ImageParam(type, 1, name="A"), Var("i")
    y, drainer, unloader = t2s.funcs("y drainer unloader")
    y[i] = A[i]
    y.bound(i, 0, 5).unroll(i).isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i)
    unloader.vstore(y)
    graph = t2s.lower(y)
    values = np.arange(5).astype(type.numpy)
    for engine in ("python", "native"):
        result = t2s.simulate(graph, {"A": values}, engine=engine)
        np.testing.assert_array_equal(result.outputs["y"], values)


@pytest.mark.parametrize("lanes_first", [True, False])
def test_lanes_and_a_stream(lanes_first: bool) -> None:
    """Vectors along j, one after the other along i: in either order of the two gathers."""
    p = product()
    drainer, collector, unloader = t2s.funcs("drainer collector unloader")
    p.C.unroll(p.i, p.j).isolate_consumer_chain(drainer, collector, unloader)
    first, second = (p.j, p.i) if lanes_first else (p.i, p.j)
    drainer.gather(p.C, first)
    collector.gather(drainer, second)
    if lanes_first:
        unloader.reorder(p.j, p.i)
    unloader.vstore(p.C)
    graph = agree(p.C)
    assert nest(p.C, "unloader") == ["for i in 0..3", "vector j in 0..5"]
    assert graph.channel("collector_to_unloader").stream.element.lanes == 6
    assert graph.channel("drainer_to_collector").stream.element.lanes == (6 if lanes_first else 1)


def test_the_other_columns_in_time() -> None:
    """The lanes are an inner part of j; the rest of j runs in time."""
    p, jj = product(), Var("jj")
    drainer, unloader = t2s.funcs("drainer unloader")
    p.C.split(p.j, p.j, jj, 3).unroll(jj).isolate_consumer_chain(drainer, unloader)
    drainer.gather(p.C, jj)
    unloader.vstore(p.C)
    assert nest(p.C, "unloader") == ["for i in 0..3", "for j in 0..1", "vector jj in 0..2"]
    agree(p.C)


def test_vectors_that_are_computed_may_be_gathered() -> None:
    p, jj = product(), Var("jj")
    drainer, unloader = t2s.funcs("drainer unloader")
    p.C.split(p.j, p.j, jj, 3).reorder(jj, p.k, p.j, p.i).unroll(p.i).vload(p.B)
    p.C.isolate_consumer_chain(drainer, unloader)
    drainer.gather(p.C, p.i)
    unloader.vstore(p.C)
    graph = agree(p.C)
    assert graph.channel("C_along_i").stream.element.lanes == 3


@REVERSE
def test_the_printed_nest_says_where_results_go(reverse: bool) -> None:
    y, _, i, _ = sums()
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i, reverse=reverse)
    lines = [line.strip() for line in y.print_loop_nest().splitlines()]
    near, end = ("the PE before", "last") if reverse else ("the next PE", "first")
    assert f"y_result = receive from y if i_digit is i, else from {near}" in lines
    assert f"pass y_result on; the {end} PE sends it to unloader" in lines
    unloader.vstore(y)
    assert "y_result = receive from y, into lane i of a vector" in y.print_loop_nest()


@REVERSE
def test_results_of_a_reduction_with_a_schedule(reverse: bool) -> None:
    """The result is the last step; the loops in time of what gathers are those of the results."""
    A, j, k = ImageParam(Int(32), 2, name="A"), Var("j"), RDom(0, 4, name="k")
    i, p, t = t2s.variables("i p t")
    y = Func("y")
    y[i, j] = 0
    y[i, j] += A[i, k]
    y.bound(i, 0, 3).bound(j, 0, 1).unroll(i).space_time_transform([j, k], {p: k, t: k})
    drainer, unloader = t2s.funcs("drainer unloader")
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i, reverse=reverse)
    agree(y)
