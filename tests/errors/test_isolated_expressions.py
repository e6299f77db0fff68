"""Expressions as isolation targets where they are not there, overlap, or change too much."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, Var
from tests.errors.designs import product
from tests.errors.refusal import refused

i = Var("i")
x = ImageParam(Int(32), 1, name="x", shape=(4,))


def test_expression_that_does_not_occur() -> None:
    p = product()
    p.C.isolate_producer(p.A[p.i, p.k] * 2, Func("P"))
    with refused("""
            isolate_producer(A[i, k] * 2, P) on C: A[i, k] * 2 does not occur in C
              --> p.C.isolate_producer(p.A[p.i, p.k] * 2, Func("P"))
              expected: a part of C + A[i, k] * B[k, j]
              given:    A[i, k] * 2
              hint:     it is found as it is written: the same operands in the same order
            """):
        t2s.lower(p.C)


def test_expression_with_a_part_that_is_isolated() -> None:
    p = product()
    p.C.isolate_producer(p.A, Func("L"))
    p.C.isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], Func("P"))
    with refused("""
            isolate_producer(A[i, k] * B[k, j], P) on C: A[i, k], a part of it, already comes from
                        L
              --> p.C.isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], Func("P"))
              expected: expressions that do not overlap
              hint:     isolate A[i, k] * B[k, j] first, and then A[i, k] from P
            """):
        t2s.lower(p.C)


def test_operand_that_is_a_part_of_an_isolated_expression() -> None:
    p = product()
    p.C.isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], Func("P"))
    p.C.isolate_producer(p.A, Func("L"))
    with refused("""
            isolate_producer(A, L) on C: A is a part of A[i, k] * B[k, j], which P computes
              --> p.C.isolate_producer(p.A, Func("L"))
              expected: something that C still computes itself
              hint:     isolate it from P: P.isolate_producer(A, L)
            """):
        t2s.lower(p.C)


def test_element_that_is_a_part_of_an_isolated_expression() -> None:
    p = product()
    p.C.isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], Func("P"))
    p.C.isolate_producer(p.A[p.i, p.k], Func("L"))
    with refused("""
            isolate_producer(A[i, k], L) on C: A[i, k] is a part of A[i, k] * B[k, j], which P
                        computes
              --> p.C.isolate_producer(p.A[p.i, p.k], Func("L"))
              expected: something that C still computes itself
              hint:     isolate it from P: P.isolate_producer(A[i, k], L)
            """):
        t2s.lower(p.C)


def test_variable() -> None:
    p = product()
    with refused("""
            isolate_producer on C needs something to load or compute
              --> p.C.isolate_producer(p.i, Func("P"))
              expected: an input, a Func, or an expression such as alpha * A[i, k]
              given:    i
            """):
        p.C.isolate_producer(p.i, Func("P"))


def test_expression_of_the_function_itself() -> None:
    p = product()
    with refused("""
            isolate_producer on C: C[i, j] + A[i, k] uses C itself
              --> p.C.isolate_producer(p.C[p.i, p.j] + p.A[p.i, p.k], Func("P"))
              expected: an expression of inputs and other Funcs
              given:    C[i, j] + A[i, k]
            """):
        p.C.isolate_producer(p.C[p.i, p.j] + p.A[p.i, p.k], Func("P"))


def test_forwarding_an_expression_along_a_loop_that_it_depends_on() -> None:
    p, P = product(), Func("P")
    p.C.unroll(p.i, p.j).isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], P)
    p.C.forward(P, p.j)
    with refused("""
            forward(P, j) on C: P depends on j
              --> p.C.forward(P, p.j)
              expected: a loop along which P is the same for all PEs
              given:    A[i, k] * B[k, j]
              hint:     no unrolled loop leaves it unchanged
            """):
        t2s.lower(p.C)


def test_removing_a_loop_that_an_expression_depends_on() -> None:
    p, P = product(), Func("P")
    p.C.isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], P)
    P.remove(p.j)
    with refused("""
            remove(j) on P: P depends on j
              --> P.remove(p.j)
              expected: a reuse loop, along which P is the same
              given:    A[i, k] * B[k, j]
              hint:     reuse loops of P: none
            """):
        t2s.lower(p.C)


def test_buffering_in_a_function_that_computes() -> None:
    p, P = product(), Func("P")
    p.C.isolate_producer(p.A[p.i, p.k] * p.B[p.k, p.j], P)
    P.buffer(p.A, p.i)
    with refused("""
            buffer(A, i) on P: A does not feed P
              --> P.buffer(p.A, p.i)
              expected: a function with a loader, or a feeder between the two
              hint:     isolate it first, as in P.isolate_producer(A, A_loader)
            """):
        t2s.lower(p.C)
