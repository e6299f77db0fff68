"""Producers that feed several functions."""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import t2s
from t2s import Func, ImageParam, Int, Place, RDom, Var
from t2s.func.func import RVar
from tests.spatial.agreement import agree, body
from tests.spatial.programs import Draw
from tests.spatial.test_random import PROFILE

i, j, k = Var("i"), Var("j"), RDom(0, 6, name="k")
A, B, D = (ImageParam(Int(32), 2, name=name) for name in "ABD")


def sums() -> tuple[Func, Func, Func]:
    """The sum and the sum of squares of every row of A, and what is made of them."""
    F, G, H = t2s.funcs("F G H")
    F[i] = 0
    F[i] += A[i, k]
    G[i] = 0
    G[i] += A[i, k] * A[i, k]
    H[i] = F[i] * F[i] - G[i]
    return F, G, H.bound(i, 0, 4)


def products() -> tuple[Func, Func, Func]:
    """Two products with A on the left side, and their difference."""
    F, G, H = t2s.funcs("F G H")
    for func, right in ((F, B), (G, D)):
        func[i, j] = 0
        func[i, j] += A[i, k] * right[k, j]
    H[i, j] = F[i, j] - G[i, j]
    return F, G, H.bound(i, 0, 4).bound(j, 0, 3)


def test_one_loader_for_two_functions() -> None:
    F, G, H = sums()
    P = Func("P")
    F.isolate_producer(A, P)
    G.isolate_producer(A, P)
    graph = agree(H)
    assert body(graph, "P")[1:] == ["send(P_to_F, A_element)", "send(P_to_G, A_element)"]
    assert [node.name for node in graph.nodes if "load_A" in node.name] == []


def test_forwarding_in_both_functions() -> None:
    F, G, H = products()
    P = Func("P")
    F.unroll(i, j).isolate_producer(A, P).forward(P, j)
    G.unroll(i, j).isolate_producer(A, P).forward(P, j)
    graph = agree(H)
    assert graph.node("P").pe_count == 4


def test_a_buffer_in_each_function() -> None:
    F, G, H = products()
    P, F_feeder, G_feeder = t2s.funcs("P F_feeder G_feeder")
    F.isolate_producer_chain(A, P, F_feeder)
    P.remove(j)
    F_feeder.buffer(P, i)
    G.isolate_producer_chain(A, P, G_feeder)
    G_feeder.buffer(P, i)
    graph = agree(H)
    assert [loop.name for loop in graph.node("P").loops] == ["i", "k"]


def test_an_expression_for_two_functions() -> None:
    F, G, H = products()
    P = Func("P")
    F.isolate_producer(A[i, k], P)
    G.isolate_producer(A[i, k], P)
    agree(H)


def test_a_serializer_for_two_functions() -> None:
    F, G, H = products()
    S, L, M = Func("S", place=Place.HOST), Func("L"), Func("M")
    F.isolate_producer_chain(A, S, L)
    G.isolate_producer_chain(A, S, M)
    S.remove(j)
    graph = agree(H)
    assert [tensor.name for tensor in graph.tensors if tensor.array == "A"] == ["S"]
    assert [node.name for node in graph.nodes if "S" in str(body(graph, node.name))] == ["L", "M"]


def test_a_value_and_what_is_computed_from_all_of_them() -> None:
    """G needs F[i], for which F needs row i, before it takes the row itself: the row waits."""
    F, G, P = t2s.funcs("F G P")
    F[i] = 0
    F[i] += A[i, k]
    G[i] = F[i]
    G[i] = t2s.max(G[i], A[i, k])
    G.bound(i, 0, 4)
    F.isolate_producer(A, P)
    G.isolate_producer(A, P)
    G.stream(F)
    graph = agree(G)
    assert graph.channel("P_to_G").capacity == 6 + 1
    assert graph.channel("P_to_F").capacity == 2


def test_a_value_and_what_is_kept_in_memory() -> None:
    """G starts when F is complete, so the channel holds all of A."""
    F, G, P = t2s.funcs("F G P")
    F[i] = 0
    F[i] += A[i, k]
    G[i] = F[i]
    G[i] = t2s.max(G[i], A[i, k])
    G.bound(i, 0, 4)
    F.isolate_producer(A, P)
    G.isolate_producer(A, P)
    graph = agree(G)
    assert graph.channel("P_to_G").capacity == 4 * 6 + 1


def test_a_buffer_on_one_of_the_ways() -> None:
    """The buffer sends row i when it has taken something of row i + 1: two rows wait."""
    F, G, P, Q, R = t2s.funcs("F G P Q R")
    F[i] = 0
    F[i] += A[i, k]
    G[i] = 0
    G[i] += (F[i] - A[i, k]) * 2
    G.bound(i, 0, 4)
    F.isolate_producer(A, P)
    G.isolate_producer(A, P)
    G.isolate_producer_chain(F, Q, R)
    Q.remove(k).stream(F)
    R.buffer(Q, i)
    graph = agree(G)
    assert graph.channel("P_to_G").capacity == 2 * 6 + 1


def test_a_guard_that_both_functions_have() -> None:
    f, g, h, P = t2s.funcs("f g h P")
    for func, factor in ((f, 2), (g, 3)):
        func[i] = 0
        func[i] += t2s.select(i > 0, A[i - 1, k] * factor, 1)
    h[i] = f[i] + g[i]
    h.bound(i, 0, 4)
    f.isolate_producer(A, P)
    g.isolate_producer(A, P)
    graph = agree(h)
    assert "send(P_to_f, A_element) if i > 0" in body(graph, "P")


def nests() -> st.SearchStrategy[tuple[list[Var | RVar], bool, bool]]:
    """An order of the loops, and whether i and j are space."""
    return st.tuples(st.permutations((i, j, k)), st.booleans(), st.booleans())


@st.composite
def shared(draw: Draw) -> Func:
    """Two products with one loader, which has its own schedule in each of them."""
    F, G, H = products()
    P, F_feeder, G_feeder = t2s.funcs("P F_feeder G_feeder")
    alike = draw(st.integers(0, 3)) > 0
    order, rows, columns = draw(nests())
    buffered = draw(st.booleans())
    for func, feeder in ((F, F_feeder), (G, G_feeder)):
        if not alike:
            order, rows, columns = draw(nests())
        func.reorder(*order)
        if rows:
            func.unroll(i)
        if columns:
            func.unroll(j)
        if buffered and not columns:
            func.isolate_producer_chain(A, P, feeder)
            if func is F:
                P.remove(j)
            feeder.buffer(P, order[-1])
        else:
            func.isolate_producer(A, P)
            if columns and draw(st.booleans()):
                func.forward(P, j)
        note(" ".join(directive.text for directive in func.plan))
    if draw(st.booleans()):
        H.stream(F).stream(G).reorder(*(variable for variable in order if variable is not k))
    return H


@pytest.mark.slow
@PROFILE
@given(shared())
def test_a_shared_loader_is_refused_or_right(H: Func) -> None:
    try:
        t2s.lower(H)
    except t2s.errors.UserError as error:
        refusal = error
    else:
        agree(H)
        return
    assert refusal.location is not None, str(refusal)
