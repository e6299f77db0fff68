"""scatter: PEs take their operands from one stream, from PE to PE."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.errors import T2SWarning
from tests.errors.designs import product
from tests.spatial.agreement import agree, body, nest, space
from tests.spatial.programs import random_inputs

REVERSE = pytest.mark.parametrize("reverse", [False, True], ids=["up", "down"])


def rows(pes: int = 4, steps: int = 6) -> tuple[Func, ImageParam, Var, RDom]:
    """``y[i] = sum of A[i, k]`` with a PE for each i."""
    A, i, k = ImageParam(Int(32), 2, name="A"), Var("i"), RDom(0, steps, name="k")
    y = Func("y")
    y[i] = 0
    y[i] += A[i, k]
    y.bound(i, 0, pes).unroll(i)
    return y, A, i, k


@REVERSE
def test_one_stream_for_all_pes(reverse: bool) -> None:
    y, A, i, _ = rows()
    loader, feeder = t2s.funcs("loader feeder")
    y.isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i, reverse=reverse)
    assert nest(y, "loader") == ["for k in 0..5", "for i in 0..3"]
    digit = "for i_digit in 0..i" if reverse else "for i_digit in i..3"
    assert nest(y, "feeder") == ["parallel i in 0..3", "for k in 0..5", digit]
    graph = agree(y)
    assert graph.channel("loader_to_feeder").shape == ()
    assert graph.channel("feeder_to_y").shape == (4,)
    first, inside = ("i == 3", "i < 3") if reverse else ("i == 0", "i > 0")
    assert body(graph, "feeder") == [
        f"A_entering: int32 = receive(loader_to_feeder) if {first}",
        f"A_passed: int32 = receive(A_along_i) if {inside}",
        f"A: int32 = select({first}, A_entering, A_passed)",
        f"send(A_along_i, A) if i_digit {'<' if reverse else '>'} i",
        "send(feeder_to_y, A) if i_digit == i",
    ]


@pytest.mark.parametrize(("pes", "steps"), [(1, 5), (2, 3), (4, 6), (7, 2)])
def test_cycles_without_a_buffer(pes: int, steps: int) -> None:
    """The stream has one token per cycle for all PEs together.

    The last token leaves the loader in cycle ``pes * steps``, hops over ``pes`` feeders, and goes
    through the last PE and its store.
    """
    y, A, i, _ = rows(pes, steps)
    loader, feeder = t2s.funcs("loader feeder")
    y.isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    graph = agree(y)
    assert t2s.cycles(graph) == pes * steps + pes + 2
    firings = t2s.simulate(graph, random_inputs(graph, 0)).nodes["feeder"].firings
    assert firings == steps * pes * (pes + 1) // 2  # PE p handles the tokens of PEs p to the last


def test_bounds_that_do_not_start_at_zero() -> None:
    A, i, k = ImageParam(Int(32), 2, name="A"), Var("i"), RDom(2, 3, name="k")
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i] = 0
    y[i] += A[i, k]
    y.bound(i, 3, 4).unroll(i).isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    assert nest(y, "feeder")[-1] == "for i_digit in i..6"
    agree(y)


@REVERSE
def test_the_loop_of_the_stream_anywhere_in_the_loader(reverse: bool) -> None:
    """Whatever the order, the channels to the PEs have room for what comes in a row."""
    capacities = []
    for place in range(3):
        p = product()
        loader, feeder, b_loader = t2s.funcs("loader feeder b_loader")
        p.C.unroll(p.i).isolate_producer_chain(p.A, loader, feeder)
        p.C.isolate_producer(p.B, b_loader).forward(b_loader, p.i)  # PEs wait for each other
        feeder.scatter(loader, p.i, reverse=reverse)
        order = [p.k, p.j]
        order.insert(place, p.i)
        loader.reorder(*order)
        capacities.append(agree(p.C).channel("feeder_to_C").capacity)
    assert capacities == [2, 8 + 1, 8 * 6 + 1]


def test_the_feeder_iterates_like_its_loader() -> None:
    """Loops that the user splits or fuses in the loader are those of the stream."""
    y, A, i, k = rows()
    loader, feeder = t2s.funcs("loader feeder")
    outer, inner = t2s.variables("outer inner")
    y.isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    loader.split(k, outer, inner, 2).reorder(inner, i, outer)
    assert nest(y, "feeder") == [
        "parallel i in 0..3",
        "for outer in 0..2",
        "for i_digit in i..3",
        "for inner in 0..1",
    ]
    agree(y)


def test_directives_apply_in_the_order_they_are_written() -> None:
    """The loader gets its loop over the PEs by the scatter, and loses its place by the reorder."""
    y, A, i, k = rows()
    loader, feeder = t2s.funcs("loader feeder")
    y.isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    loader.reorder(k, i)
    assert nest(y, "loader") == ["for i in 0..3", "for k in 0..5"]


@pytest.mark.parametrize("late", [False, True])
def test_a_loader_that_was_in_turn_before(late: bool) -> None:
    """Whether the loader is unrolled along the loop or serves the PEs in turn does not matter."""
    A, i, k = ImageParam(Int(32), 2, name="A"), Var("i"), RDom(0, 3, name="k")
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i] = 0
    y[i] += A[i, k]
    y.bound(i, 0, 4)
    if not late:
        y.unroll(i)
    y.isolate_producer_chain(A, loader, feeder)
    if late:
        y.unroll(i)
        feeder.unroll(i)
    feeder.scatter(loader, i)
    graph = agree(y)
    assert space(graph.node("loader")) == {}
    assert space(graph.node("feeder")) == {"i": 4}


def test_chains() -> None:
    """All that feeds the operand sends one stream; a stream for rows may be one of columns."""
    A, i, j, k = ImageParam(Int(32), 3, name="A"), Var("i"), Var("j"), RDom(0, 3, name="k")
    y, loader, first, second = t2s.funcs("y loader first second")
    y[i, j] = 0
    y[i, j] += A[i, j, k]
    y.bound(i, 0, 2).bound(j, 0, 3).unroll(i, j)
    y.isolate_producer_chain(A, loader, first, second)
    second.scatter(first, j)
    first.scatter(loader, i, reverse=True)
    assert nest(y, "loader") == ["for k in 0..2", "for j in 0..2", "for i in 0..1"]
    graph = agree(y)
    assert [space(graph.node(n)) for n in ("loader", "first", "second")] == [
        {},
        {"i": 2},
        {"i": 2, "j": 3},
    ]


def test_vectors() -> None:
    A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
    i, k, kk = Var("i"), RDom(0, 8, name="k"), Var("kk")
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i] = 0
    y[i] += A[i, k] * x[k]
    y.bound(i, 0, 3).split(k, k, kk, 4).unroll(i).vload(A, x)
    y.isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    graph = agree(y)
    assert graph.channel("A_along_i").stream.element == Int(32).with_lanes(4)


def test_values_at_the_start_of_a_reduction() -> None:
    A, S = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="S")
    i, k = Var("i"), RDom(0, 4, name="k")
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i] = S[i]
    y[i] += A[i, k]
    y.bound(i, 0, 5).unroll(i).isolate_producer_chain(S, loader, feeder)
    feeder.scatter(loader, i)
    agree(y)


@REVERSE
def test_a_reduction_in_space(reverse: bool) -> None:
    """PE k starts when PE k - 1 has summed up its j: the stream for all of them has to wait."""
    A, i, j, k = (
        ImageParam(Int(32), 3, name="A"),
        Var("i"),
        RDom(0, 3, name="j"),
        RDom(0, 4, name="k"),
    )
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i] = 0
    y[i] += A[i, k, j]
    y.bound(i, 0, 5).reorder(i, j, k).unroll(k).isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, k, reverse=reverse)
    graph = agree(y)
    assert graph.channel("feeder_to_y").capacity == 2 + (4 - 1) * (3 - 1) * 5


# ------------------------------------------------------------------------------- with a buffer


def tiled(
    pes: int, rows: int, columns: int, steps: int, blocks: int = 2
) -> tuple[Func, dict[str, Any]]:
    """A product in which each of ``pes`` PEs owns ``rows`` x ``columns`` results of each block."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, steps, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, pes * rows).bound(j, 0, columns * blocks)
    ii, jj, iii = t2s.variables("ii jj iii")
    loader, feeder, b_loader = t2s.funcs("loader feeder b_loader")
    C.split(i, ii, iii, pes).split(j, j, jj, columns).reorder(jj, ii, k, j).unroll(iii)
    C.isolate_producer_chain(A, loader, feeder)
    C.isolate_producer(B, b_loader).forward(b_loader, iii)
    return C, {
        "loader": loader, "feeder": feeder, "iii": iii, "ii": ii, "jj": jj, "j": j, "k": k
    }  # fmt: skip


@pytest.mark.slow
@REVERSE
@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("scatter_first", [True, False])
@pytest.mark.parametrize("loop", ["k", "j"])
def test_scatter_and_buffer(loop: str, scatter_first: bool, double: bool, reverse: bool) -> None:
    C, v = tiled(pes=3, rows=2, columns=4, steps=3)
    v["loader"].remove(v["jj"])
    for scatter in (scatter_first, not scatter_first):
        if scatter:
            v["feeder"].scatter(v["loader"], v["iii"], reverse=reverse)
        else:
            v["feeder"].buffer(v["loader"], v[loop], double=double)
    graph = agree(C)
    (register,) = graph.node("feeder").registers
    kept = (2,) if loop == "k" else (3, 2)  # rows of one PE, for each step
    assert register.shape == ((2, *kept) if double else kept)
    assert t2s.simulate(graph, random_inputs(graph, 0)).nodes["loader"].firings == 2 * 3 * 2 * 3


def test_a_double_buffer_hides_its_filling() -> None:
    """W = 6 values arrive for 3 PEs while each sends R = 8: no cycle is lost after the first W.

    The last of the 3 PEs starts 2 cycles after the first.
    """
    C, v = tiled(pes=3, rows=2, columns=4, steps=5)
    v["loader"].remove(v["jj"])
    v["feeder"].scatter(v["loader"], v["iii"]).buffer(v["loader"], v["k"])
    graph = agree(C)
    result = t2s.simulate(graph, random_inputs(graph, 0))
    array = result.nodes["C"]
    assert result.compute_cycles == 2 * 5 * 8 + 2
    assert array.starved == array.blocked == 0
    assert array.first_firing == 6 + 2 + 1  # filled in cycles 2 to 7, sent in 8


def test_filling_that_takes_longer_than_sending() -> None:
    """W = 12 values arrive for 6 PEs while each sends R = 4: 8 of 12 cycles are lost."""
    C, v = tiled(pes=6, rows=2, columns=2, steps=5)
    v["loader"].remove(v["jj"])
    v["feeder"].scatter(v["loader"], v["iii"])
    v["feeder"].buffer(v["loader"], v["k"])  # too few reads
    with pytest.warns(T2SWarning) as caught:
        graph = t2s.lower(C)
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        "buffer(loader, k) on feeder: filling the buffer takes longer than sending from it\n"
        "  expected: at most 4 values for all PEs in each iteration of k, since each PE sends 4\n"
        "  given:    12 values from loader: feeder stalls for 8 of 12 cycles\n"
        "  hint:     remove more loops from loader, buffer at a loop further out, or reuse each "
        "value more often"
    )
    with open(__file__, encoding="utf-8") as lines:
        assert lines.readlines()[warning.lineno - 1].endswith("# too few reads\n")
    agree(C)  # lowered already, so that the warning does not come again
    result = t2s.simulate(graph, random_inputs(graph, 0))
    periods = 2 * 5
    assert result.compute_cycles == (periods - 1) * 12 + 4 + (6 - 1)


def test_no_warning_where_filling_is_hidden() -> None:
    for pes, double in ((2, True), (6, False)):  # W = R, and a single buffer
        C, v = tiled(pes=pes, rows=2, columns=2, steps=5)
        v["loader"].remove(v["jj"])
        v["feeder"].scatter(v["loader"], v["iii"]).buffer(v["loader"], v["k"], double=double)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            agree(C)


def test_the_buffer_takes_the_stream_in_any_order() -> None:
    C, v = tiled(pes=3, rows=2, columns=4, steps=3)
    v["loader"].remove(v["jj"])
    v["feeder"].scatter(v["loader"], v["iii"]).buffer(v["loader"], v["k"])
    v["loader"].reorder(v["ii"], v["iii"])
    assert nest(C, "loader") == [
        "for j in 0..1", "for k in 0..2", "for iii in 0..2", "for ii in 0..1"
    ]  # fmt: skip
    agree(C)


def test_a_counter_that_is_too_long() -> None:
    C, v = tiled(pes=4, rows=64, columns=2**14, steps=2**11, blocks=2)
    v["loader"].remove(v["jj"])
    v["feeder"].scatter(v["loader"], v["iii"]).buffer(v["loader"], v["k"])
    with pytest.raises(t2s.errors.UnsupportedError, match="on feeder: feeder would count to"):
        t2s.lower(C)


def test_the_printed_nest_says_where_values_go() -> None:
    C, v = tiled(pes=3, rows=2, columns=4, steps=3)
    v["feeder"].scatter(v["loader"], v["iii"], reverse=True)
    text = t2s.print_loop_nest(C)
    assert "A = receive from loader, scattered along iii from the last PE\n" in text
    assert "send A to C if iii_digit is iii, else pass it on\n" in text
    v["feeder"].buffer(v["loader"], v["k"])
    assert "from the last PE, into a double buffer once for each k\n" in t2s.print_loop_nest(C)


def test_a_buffer_where_all_loops_have_one_iteration() -> None:
    """Loops of one iteration are all alike; each still is what it is."""
    A, i, j, k = ImageParam(Int(32), 2, name="A"), Var("i"), Var("j"), RDom(0, 3, name="k")
    one, single = t2s.variables("one single")
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i, j] = 0
    y[i, j] += A[i, k]
    y.bound(i, 0, 2).bound(j, 0, 2).split(j, j, one, 1).split(i, i, single, 1)
    y.reorder(k, j, i, one).unroll(single).isolate_producer_chain(A, loader, feeder)
    feeder.buffer(loader, one).scatter(loader, single)
    graph = agree(y)
    assert graph.channel("loader_to_feeder").shape == ()
