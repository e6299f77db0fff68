"""Producers of several functions where these do not need the same."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.errors.refusal import refused

i, j, k = Var("i"), Var("j"), RDom(0, 6, name="k")
A, B, D = (ImageParam(Int(32), 2, name=name) for name in "ABD")


def sums() -> tuple[Func, Func, Func]:
    F, G, H = t2s.funcs("F G H")
    F[i] = 0
    F[i] += A[i, k]
    G[i] = 0
    G[i] += A[i, k] * 2
    H[i] = F[i] - G[i]
    return F, G, H.bound(i, 0, 4)


def products() -> tuple[Func, Func, Func]:
    F, G, H = t2s.funcs("F G H")
    F[i, j] = 0
    F[i, j] += A[i, k] * B[k, j]
    G[i, j] = 0
    G[i, j] += A[i, k] * D[k, j]
    H[i, j] = F[i, j] - G[i, j]
    return F, G, H.bound(i, 0, 4).bound(j, 0, 3)


def test_other_values() -> None:
    F, G, H = sums()
    P = Func("P")
    F.isolate_producer(A[i, k], P)
    G.isolate_producer(A[i, k] * 2, P)
    with refused("""
            isolate_producer(A[i, k] * 2, P) on G: P does not send what G needs
              --> G.isolate_producer(A[i, k] * 2, P)
              expected: A[i, k] * 2, as in G
              given:    A[i, k], as in F
              note:     P was isolated here
              --> F.isolate_producer(A[i, k], P)
              hint:     write both with the same variables, or give each a producer of its own
            """):
        t2s.lower(H)


def test_a_stream_that_is_too_short() -> None:
    F, G, H = products()
    P = Func("P")
    F.unroll(j).isolate_producer(A, P).forward(P, j)
    G.isolate_producer(A, P)
    with refused("""
            isolate_producer(A, P) on G: P does not send what G takes
              --> G.isolate_producer(A, P)
              expected: the values of G: i in 0..3, j in 0..2, k in 0..5
              given:    those of P: i in 0..3, k in 0..5
              hint:     give both functions the same ranges, loops and lanes
            """):
        t2s.lower(H)


def test_another_order() -> None:
    F, G, H = products()
    P = Func("P")
    F.isolate_producer(A, P)
    G.reorder(j, k, i).isolate_producer(A, P)
    with refused("""
            isolate_producer(A, P) on G: P sends its values in another order than G takes them
              --> G.reorder(j, k, i).isolate_producer(A, P)
              expected: the order of G: i, k, j
              given:    the order of P: i, j, k; the value for i=0, j=0, k=1 comes too early
              hint:     order the loops before isolating, or reorder G in the same way
            """):
        t2s.lower(H)


def test_the_later_function_first() -> None:
    F, G, H = sums()
    P = Func("P")
    G.isolate_producer(A, P)
    F.isolate_producer(A, P)
    with refused("""
            isolate_producer(A, P) on F: P is not isolated yet when F comes
              --> F.isolate_producer(A, P)
              expected: P isolated first from F, then from the other Func
              hint:     Funcs are scheduled in the order in which they depend on each other
            """):
        t2s.lower(H)


def test_a_consumer_of_another_function() -> None:
    F, G, _ = sums()
    P = Func("P")
    F.isolate_consumer(P)
    with refused("""
            isolate_producer on G: P was already isolated from F
              --> G.isolate_producer(A, P)
              expected: a new Func for each isolated piece
            """):
        G.isolate_producer(A, P)


def test_not_the_first_of_a_chain() -> None:
    F, G, _ = sums()
    P = Func("P")
    F.isolate_producer(A, P)
    with refused("""
            isolate_producer_chain on G: P was already isolated from F
              --> G.isolate_producer_chain(A, Func("Q"), P)
              expected: a new Func for each isolated piece
            """):
        G.isolate_producer_chain(A, Func("Q"), P)


def test_values_that_wait_too_long() -> None:
    many, F, G, P = RDom(0, 70000, name="k"), Func("F"), Func("G"), Func("P")
    F[i] = 0
    F[i] += A[i, many]
    G[i] = F[i]
    G[i] = t2s.max(G[i], A[i, many])
    G.bound(i, 0, 4).stream(F)
    F.isolate_producer(A, P)
    G.isolate_producer(A, P)
    with refused("""
            isolate_producer(A, P) on G: P sends 70000 values before G can take them
              --> G.isolate_producer(A, P)
              expected: at most 65536 values in a channel
              given:    G waits for something that is computed from the same stream
              hint:     give G a producer of its own, give both the same outer loops, or ask for
                        the room: P.depth(70001)
            """):
        t2s.lower(G)
