"""Selections that depend on loops: in subscripts, in bounds, and between two reads of one array."""

from __future__ import annotations

import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.backends.opencl_fpga import BACKEND
from t2s.graph.body import Load
from t2s.graph.graph import Graph
from tests.spatial.agreement import agree, body, nest

A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")


def loads(graph: Graph) -> int:
    return sum(isinstance(s, Load) for node in graph.nodes for s in node.body)


def folded() -> Func:
    """Products of a triangle of pairs of rows, as a rectangle."""
    f = Func("f")
    row, column = t2s.select(i < j, i, 3 - i), t2s.select(i < j, j - 1, 3 - j)
    f[i, j] = 0
    f[i, j] += A[row, k] * x[column]
    return f.bound(i, 0, 2).bound(j, 0, 5)


def test_a_selection_of_subscripts_is_one_access() -> None:
    graph = agree(folded())
    assert graph.tensor("A").shape == (4, 4)
    assert graph.tensor("x").shape == (4,)
    assert body(graph, "f_load_A")[0] == "A_element: int32 = load(A[select(i < j, i, 3 - i), k])"


def test_reuse_is_found_through_a_selection() -> None:
    """The row depends on j, which decides; at a constant i >= j it does not."""
    f, A_loader, A_feeder = folded(), Func("A_loader"), Func("A_feeder")
    f.isolate_producer_chain(A, A_loader, A_feeder)
    A_loader.remove(j)
    with pytest.raises(t2s.errors.UserError, match=r"remove\(j\) on A_loader: A depends on j"):
        f.lower()

    g, x_loader, x_feeder = Func("g"), Func("x_loader"), Func("x_feeder")
    g[i, j] = A[i, j] + x[t2s.select(i < 2, i, 5 - i)]
    g.bound(i, 0, 4).bound(j, 0, 3).isolate_producer_chain(x, x_loader, x_feeder)
    x_loader.remove(j)
    x_feeder.buffer(x_loader, i)
    agree(g)
    assert nest(g, "x_loader") == ["for i in 0..3"]


def test_vectors_of_selected_rows() -> None:
    f, kk = folded(), Var("kk")
    f.split(k, k, kk, 2).vload(A)
    assert body(agree(f), "f_load_A")[0].startswith("A_element: int32x2 = load(A[select(")


def test_a_selection_along_the_lanes_is_not_contiguous() -> None:
    f = Func("f")
    f[i, j] = A[i, t2s.select(j < 2, j, 5 - j)]
    f.bound(i, 0, 2).bound(j, 0, 4).vload(A).vstore(f)
    with pytest.raises(t2s.errors.UserError, match="A is not contiguous along j"):
        f.lower()


def test_reads_that_loops_choose_between_are_one_access() -> None:
    f = Func("f")
    f[i, j] = 0
    f[i, j] += 2 * t2s.select(i >= j, A[i, k], A[3 - i, k])
    f.bound(i, 0, 4).bound(j, 0, 4)
    graph = agree(f)
    assert loads(graph) == 1
    assert body(graph, "f_load_A")[0] == "A_element: int32 = load(A[select(i >= j, i, 3 - i), k])"


def test_the_joint_access_can_be_isolated_and_forwarded() -> None:
    f, rows, A_loader = Func("f"), Func("rows"), Func("A_loader")
    rows[i, j] = t2s.select(i > 1, A[i - 1, j], A[i, j])
    f[i, j] = 0
    f[i, j] += rows[i, k] * x[j]
    f.bound(i, 0, 4).bound(j, 0, 3).unroll(j).isolate_producer(rows, A_loader).forward(A_loader, j)
    graph = agree(f)
    assert graph.node("A_loader").pe_count == 1
    assert loads(graph) == 2

    g, x_loader = Func("g"), Func("x_loader")
    g[i] = t2s.select(i == 0, x[0], x[i - 1])
    g.bound(i, 0, 4).isolate_producer(x, x_loader)
    assert loads(agree(g)) == 1


def test_reads_that_data_choose_between_stay_two() -> None:
    f = Func("f")
    f[i] = t2s.select(x[i] > 0, A[0, i], A[1, i])
    f.bound(i, 0, 4)
    assert loads(agree(f)) == 3


def test_a_selection_inside_of_a_selection() -> None:
    f = Func("f")
    which = t2s.select(i < 1, 3, t2s.select(i + j > 3, j, t2s.select(j < 2, 0, 2)))
    f[i, j] = x[which + 1] + t2s.select(which > 1, A[which, j], 7)
    f.bound(i, 0, 3).bound(j, 0, 4)
    graph = agree(f)
    assert graph.tensor("x").shape == (5,)
    assert graph.tensor("A").shape == (4, 4)


def test_a_bound_may_be_selected() -> None:
    f = Func("f")
    f[i, j] = A[i, j]
    f.bound(i, 0, 4).bound(j, 0, t2s.select(i > 1, 2, 3 - i))
    agree(f)
    kernels = BACKEND.emit(f.lower())["f.cl"]
    assert "for (int j = 0; j < (i > 1 ? 2 : 3 - i); j++)" in kernels
