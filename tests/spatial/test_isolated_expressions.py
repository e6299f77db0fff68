"""Expressions as isolation targets: a function of its own computes a part of a definition."""

from __future__ import annotations

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom, Var
from t2s.graph.nodes import Role
from tests.spatial.agreement import agree, body, nest

i, j, k = Var("i"), Var("j"), RDom(0, 8, name="k")
kk, k_ = Var("kk"), Var("k_")
A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
x = ImageParam(Int(32), 1, name="x")
alpha = Param(Int(32), name="alpha")


def scaled() -> Func:
    C = Func("C")
    C[i, j] = 0
    C[i, j] += alpha * A[i, k] * B[k, j]
    return C.bound(i, 0, 4).bound(j, 0, 6)


def test_a_producer_computes() -> None:
    P = Func("P")
    C = scaled()
    C.isolate_producer(alpha * A[i, k], P)
    graph = agree(C)
    assert [(node.name, node.role) for node in graph.nodes if node.name in ("P", "P_load_A")] == [
        ("P_load_A", Role.LOAD),
        ("P", Role.COMPUTE),
    ]
    assert "send(P_to_C, alpha * A)" in body(graph, "P")
    assert "P = alpha * A" in t2s.print_loop_nest(C)


def test_the_farthest_computes_and_the_others_pass_on() -> None:
    P, Q, R = t2s.funcs("P Q R")
    C = scaled()
    C.isolate_producer_chain(alpha * A[i, k], P, Q, R)
    graph = agree(C)
    assert [graph.node(name).role for name in "PQR"] == [Role.COMPUTE, Role.RELAY, Role.RELAY]


def test_isolating_further() -> None:
    P = Func("P")
    C, loader = scaled(), Func("loader")
    C.isolate_producer(alpha * A[i, k], P)
    P.isolate_producer(A, loader)
    graph = agree(C)
    assert graph.node("loader").role is Role.LOAD
    assert len(graph.nodes) == 5


def test_forwarding_the_results() -> None:
    P, Q = t2s.funcs("P Q")
    C = scaled().unroll(i, j)
    C.isolate_producer_chain(alpha * A[i, k], P, Q).forward(Q, j)
    graph = agree(C)
    assert graph.node("P").pe_count == 4
    assert nest(C, "P") == ["parallel i in 0..3", "for k in 0..7"]


def test_removing_and_buffering_the_results() -> None:
    P, Q = t2s.funcs("P Q")
    C = scaled().split(k, k, kk, 4).reorder(kk, j, k, i)
    C.isolate_producer_chain(alpha * A[i, k], P, Q)
    P.remove(j)
    Q.buffer(P, k)
    graph = agree(C)
    assert "j" not in [loop.name for loop in graph.node("P").loops]


def test_more_space_in_the_producer() -> None:
    P = Func("P")
    C = scaled().isolate_producer(alpha * A[i, k], P)
    P.unroll(i)
    graph = agree(C)
    assert graph.node("P").pe_count == 4


def test_vectors_of_results() -> None:
    P, Q = t2s.funcs("P Q")
    D = Func("D")
    D[i, j] = 0
    D[i, j] += (alpha * A[i, k] * x[i]) * B[j, k]
    D.bound(i, 0, 4).bound(j, 0, 6).split(k, k, kk, 4)
    D.isolate_producer_chain(alpha * A[i, k] * x[i], P, Q).vload(P, B)
    graph = agree(D)
    (load,) = (s for s in body(graph, "P_load_x") if "load(" in s)
    assert load == "x_element: int32 = load(x[i])"  # the same for all lanes
    assert "A: int32x4 = receive(P_load_A_to_P)" in body(graph, "P")


def test_a_value_that_does_not_vary_along_the_lanes() -> None:
    P = Func("P")
    C = scaled().reorder(j, k, i)
    C.isolate_producer(alpha * A[i, k], P).vload(B).vstore(C)
    agree(C)
    assert nest(C, "P") == ["for i in 0..3", "for k in 0..7"]


def test_isolating_after_vload() -> None:
    P = Func("P")
    C = scaled().reorder(j, k, i)
    C.vload(B).vstore(C).isolate_producer(alpha * A[i, k], P)
    graph = agree(C)
    assert body(graph, "P")[0] == "A: int32 = receive(P_load_A_to_P)"


def test_one_of_several_elements() -> None:
    P = Func("P")
    f = Func("f")
    f[i] = x[i] + 3 * x[i + 1]
    f.bound(i, 0, 5).isolate_producer(x[i + 1], P)
    graph = agree(f)
    assert "x_element: int32 = load(x[i + 1])" in body(graph, "P")
    assert graph.node("P").role is Role.LOAD


def test_an_expression_that_occurs_twice_is_computed_once() -> None:
    P = Func("P")
    f = Func("f")
    f[i] = t2s.select(i > 1, x[i] * x[i], 0) + t2s.select(i > 2, x[i] * x[i], 1)
    f.bound(i, 0, 5).isolate_producer(x[i] * x[i], P)
    graph = agree(f)
    assert "send(P_to_f, x * x) if i > 1 or i > 2" in body(graph, "P")


def test_an_operand_that_occurs_twice_is_loaded_once() -> None:
    P = Func("P")
    f = Func("f")
    f[i] = x[i] * x[i]
    f.bound(i, 0, 5).isolate_producer(x, P)
    graph = agree(f)
    assert [node.name for node in graph.nodes] == ["P", "f", "f_store"]


def test_an_operand_of_the_initial_value_and_of_every_step() -> None:
    P = Func("P")
    C = Func("C")
    C[i] = x[i]
    C[i] += A[i, k] * x[i]
    C.bound(i, 0, 4).isolate_producer(x, P)
    graph = agree(C)
    assert nest(C, "P") == ["for i in 0..3", "for k in 0..7"]
    assert [node.name for node in graph.nodes].count("P") == 1


def test_an_expression_of_the_initial_value() -> None:
    P = Func("P")
    C = Func("C")
    C[i] = alpha * x[i]
    C[i] += A[i, k]
    C.bound(i, 0, 4).isolate_producer(alpha * x[i], P)
    agree(C)
    assert nest(C, "P") == ["for i in 0..3"]


def test_an_expression_inside_of_a_func_that_is_inlined() -> None:
    P = Func("P")
    S, C = Func("S"), Func("C")
    S[i, k_] = alpha * A[i, k_]
    C[i, j] = 0
    C[i, j] += S[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 6).isolate_producer(alpha * A[i, k], P)
    graph = agree(C)
    assert graph.node("P").role is Role.COMPUTE


def test_an_expression_of_a_func() -> None:
    P = Func("P")
    S, C = Func("S"), Func("C")
    S[i] = x[i] + 1
    C[i] = S[i] * 2 + alpha
    C.bound(i, 0, 4).isolate_producer(S[i] * 2, P)
    graph = agree(C)
    assert "send(P_to_C, (x + 1) * 2)" in body(graph, "P")


def test_parameters_that_have_become_constants() -> None:
    P = Func("P")
    n, f = Param(Int(32), name="n"), Func("f")
    f[i] = n * x[i] + 1
    f.bound(i, 0, n).isolate_producer(n * x[i], P)
    graph = agree(f, n=5)
    assert "send(P_to_f, 5 * x)" in body(graph, "P")


def test_literals_that_take_a_type_later() -> None:
    P = Func("P")
    v, f = ImageParam(Float(32), 1, name="v"), Func("f")
    f[i] = (v[i] + 1) * 2.5
    f.bound(i, 0, 5).isolate_producer(v[i] + 1, P)
    agree(f, real=True)


def test_an_expression_of_an_isolated_expression_as_vectors() -> None:
    D, outer, inner = t2s.funcs("D outer inner")
    D[i, j] = 0
    D[i, j] += alpha * A[i, k] * x[k] * B[j, k]
    D.bound(i, 0, 4).bound(j, 0, 6).split(k, k, kk, 4)
    D.isolate_producer(alpha * A[i, k] * x[k], outer).vload(outer, B)
    outer.isolate_producer(alpha * A[i, k], inner)
    graph = agree(D)
    assert str(graph.channel("inner_to_outer").stream.element) == "int32x4"
