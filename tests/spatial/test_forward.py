"""forward: operands go from PE to PE."""

from __future__ import annotations

import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.errors.designs import product
from tests.spatial.agreement import agree, body, nest, space

i, j = Var("i"), Var("j")


def test_along_one_loop() -> None:
    p, feeder = product(), Func("feeder")
    p.C.unroll(p.i, p.j).isolate_producer(p.A, feeder).forward(feeder, p.j)
    assert nest(p.C, "feeder") == ["parallel i in 0..3", "for k in 0..7"]
    graph = agree(p.C)
    assert graph.channel("feeder_to_C").shape == (4,)
    assert graph.channel("A_along_j").shape == (4, 6)
    assert body(graph, "C")[:4] == [
        "A_entering: int32 = receive(feeder_to_C) if j == 0",
        "A_passed: int32 = receive(A_along_j) if j > 0",
        "A: int32 = select(j == 0, A_entering, A_passed)",
        "send(A_along_j, A) if j < 5",
    ]


def test_both_operands() -> None:
    p = product()
    left, top = t2s.funcs("left top")
    p.C.unroll(p.i, p.j).isolate_producer(p.A, left).isolate_producer(p.B, top)
    p.C.forward(left, p.j).forward(top, p.i)
    graph = agree(p.C)
    assert space(graph.node("left")) == {"i": 4}
    assert space(graph.node("top")) == {"j": 6}


def test_an_input_may_be_named_instead_of_its_producer() -> None:
    p, feeder = product(), Func("feeder")
    p.C.unroll(p.j).isolate_producer(p.A, feeder).forward(p.A, p.j)
    agree(p.C)


@pytest.mark.parametrize("swapped", [False, True])
def test_along_two_loops(swapped: bool) -> None:
    """The value enters at one corner, runs along the first loop, then along the second."""
    A, k = ImageParam(Int(32), 1, name="A"), RDom(0, 3, name="k")
    f, feeder = t2s.funcs("f feeder")
    f[i, j] = 0
    f[i, j] += A[k] * (i + j)
    order = (j, i) if swapped else (i, j)
    f.bound(i, 0, 2).bound(j, 0, 3).unroll(i, j).isolate_producer(A, feeder)
    f.forward(feeder, order[0]).forward(feeder, order[1])
    assert nest(f, "feeder") == ["for k in 0..2"]
    graph = agree(f)
    first, second = (variable.name for variable in order)
    assert graph.channel("feeder_to_f").shape == ()
    assert graph.channel(f"A_along_{first}").shape == (2, 3)
    assert len(graph.channel(f"A_along_{second}").shape) == 1
    text = t2s.print_loop_nest(f)
    assert f"passed on along {first}, then {second}" in text


def test_through_a_chain() -> None:
    """All producers lose the loop, not only the last one."""
    p, loader, feeder = product(), Func("loader"), Func("feeder")
    p.C.unroll(p.j).isolate_producer_chain(p.A, loader, feeder).forward(feeder, p.j)
    assert nest(p.C, "loader") == ["for i in 0..3", "for k in 0..7"]
    agree(p.C)


def test_a_part_of_a_loop() -> None:
    p, jj, feeder = product(), Var("jj"), Func("feeder")
    p.C.split(p.j, p.j, jj, 3).unroll(jj).isolate_producer(p.A, feeder).forward(feeder, jj)
    assert nest(p.C, "feeder") == ["for i in 0..3", "for j in 0..1", "for k in 0..7"]
    agree(p.C)


def test_along_a_reduction_in_space() -> None:
    """A does not depend on the second reduction dimension."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="B")
    f, feeder = t2s.funcs("f feeder")
    k, m = RDom(0, 3, 0, 2, name="k m")
    f[i] = 0
    f[i] += A[i, k] * B[m]
    f.bound(i, 0, 4).unroll(m).isolate_producer(A, feeder).forward(feeder, m)
    agree(f)


def test_an_initial_value_along_a_loop_of_results() -> None:
    start, A, f = ImageParam(Int(32), 1, name="S"), ImageParam(Int(32), 2, name="A"), Func("f")
    k, feeder = RDom(0, 3, name="k"), Func("feeder")
    f[i, j] = start[i]
    f[i, j] += A[j, k]
    f.bound(i, 0, 3).bound(j, 0, 4).unroll(j, k).isolate_producer(start, feeder)
    f.forward(feeder, j)
    graph = agree(f)
    assert space(graph.node("feeder")) == {}


def test_a_guarded_operand() -> None:
    A, f, feeder = ImageParam(Int(32), 1, name="A"), Func("f"), Func("feeder")
    f[i, j] = t2s.select(i > 0, A[i - 1], 5) + j
    f.bound(i, 0, 4).bound(j, 0, 3).unroll(j).isolate_producer(A, feeder).forward(feeder, j)
    agree(f)
