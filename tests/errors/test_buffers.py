"""remove and buffer where they cannot be obeyed."""

from __future__ import annotations

import t2s
from t2s import Func
from tests.errors.designs import product, triangle
from tests.errors.refusal import refused


def test_removing_a_loop_that_the_operand_depends_on() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader)
    loader.remove(p.k)
    with refused("""
            remove(k) on loader: A depends on k
              --> loader.remove(p.k)
              expected: a reuse loop, along which A is the same
              given:    A[i, k]
              hint:     reuse loops of loader: j
            """):
        t2s.lower(p.C)


def test_removing_from_a_consumer() -> None:
    p, unloader = product(), Func("unloader")
    p.C.isolate_consumer(unloader)
    unloader.remove(p.j)
    with refused("""
            remove(j) on unloader: unloader is not an isolated producer
              --> unloader.remove(p.j)
              expected: a Func that was isolated with isolate_producer or isolate_producer_chain
              hint:     only what loads or passes on an operand can skip iterations
            """):
        t2s.lower(p.C)


def test_removing_without_a_buffer() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.isolate_producer_chain(p.A, loader, feeder)
    loader.remove(p.j)  # no buffer
    with refused("""
            remove(j) on loader: feeder still needs every value along j
              --> loader.remove(p.j)  # no buffer
              expected: a buffer in feeder
              hint:     write feeder.buffer(loader, loop) with a loop outside of j
            """):
        t2s.lower(p.C)


def test_a_buffer_inside_of_the_removed_loop() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.isolate_producer_chain(p.A, loader, feeder)
    loader.remove(p.j)  # j is outside of k
    feeder.buffer(loader, p.k)
    with refused("""
            buffer(loader, k) on feeder: j was removed from loader and is not inside of k
              --> feeder.buffer(loader, p.k)
              expected: a loop outside of j
              note:     j was removed here
              --> loader.remove(p.j)  # j is outside of k
              hint:     loops of feeder, outermost first: i, j, k
            """):
        t2s.lower(p.C)


def test_a_buffer_of_what_is_not_isolated() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader).buffer(p.B, p.i)
    with refused("""
            buffer(B, i) on C: B does not feed C
              --> p.C.isolate_producer(p.A, loader).buffer(p.B, p.i)
              expected: a function with a loader, or a feeder between the two
              hint:     isolate it first, as in C.isolate_producer(A, A_loader)
            """):
        t2s.lower(p.C)


def test_a_loop_that_is_unrolled_after_the_buffer() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.isolate_producer_chain(p.A, loader, feeder)
    feeder.buffer(loader, p.k).unroll(p.k)
    with refused("""
            buffer(loader, k) on feeder: loop k does not run in time any more
              --> feeder.buffer(loader, p.k).unroll(p.k)
              expected: a loop that stays as it is after buffer
              given:    one PE each by unroll(k)
              hint:     transform, unroll and forward first, then buffer
            """):
        t2s.lower(p.C)


def test_a_removed_loop_that_is_unrolled_in_the_feeder() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.isolate_producer_chain(p.A, loader, feeder)
    loader.remove(p.j)  # one stream
    feeder.buffer(loader, p.i).unroll(p.j)
    with refused("""
            remove(j) on loader: feeder has a PE for each j
              --> loader.remove(p.j)  # one stream
              expected: one PE of feeder for each stream of loader
              given:    j in feeder: one PE each by unroll(j)
              hint:     keep j in time in feeder, or do not remove it
            """):
        t2s.lower(p.C)


def test_a_buffer_of_something_else() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.isolate_producer_chain(p.A, loader, feeder)
    feeder.buffer(p.B, p.i)
    with refused("""
            buffer(B, i) on feeder: B does not feed feeder
              --> feeder.buffer(p.B, p.i)
              expected: buffer(loader, ...)
              given:    B
            """):
        t2s.lower(p.C)


def test_a_producer_that_iterates_differently() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.isolate_producer_chain(p.A, loader, feeder)
    loader.reorder(p.i, p.j)  # j outside of i
    feeder.buffer(loader, p.i)
    with refused("""
            buffer(loader, i) on feeder: loader does not fill the buffer once for each iteration
                        of i
              --> feeder.buffer(loader, p.i)
              expected: the loops of feeder (i, j, k), less those that were removed
              given:    the loops of loader (j, i, k)
              note:     loader was made here
              --> p.C.isolate_producer_chain(p.A, loader, feeder)
            """):
        t2s.lower(p.C)


def test_removing_a_loop_that_other_loops_depend_on() -> None:
    t, first, second = triangle(), Func("first"), Func("second")
    t.T.isolate_producer_chain(t.A, first, second)
    first.remove(t.i)
    with refused("""
            remove(i) on first: how many values first sends depends on i
              --> first.remove(t.i)
              expected: the same loops in every iteration of i
              given:    k from 0 to i
            """):
        t2s.lower(t.T)
