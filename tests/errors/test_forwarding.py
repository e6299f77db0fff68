"""forward where it cannot be obeyed."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.errors.designs import product
from tests.errors.refusal import refused


def test_along_a_loop_that_is_not_unrolled() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader).forward(loader, p.j)
    with refused("""
            forward(loader, j) on C: loop j is not unrolled
              --> p.C.isolate_producer(p.A, loader).forward(loader, p.j)
              expected: an unrolled loop: values are passed between PEs
              given:    j runs in time
              hint:     write unroll(j) first
            """):
        t2s.lower(p.C)


def test_along_a_loop_that_the_operand_depends_on() -> None:
    p, loader = product(), Func("loader")
    p.C.unroll(p.i, p.j).isolate_producer(p.A, loader).forward(loader, p.i)
    with refused("""
            forward(loader, i) on C: A depends on i
              --> p.C.unroll(p.i, p.j).isolate_producer(p.A, loader).forward(loader, p.i)
              expected: a loop along which A is the same for all PEs
              given:    A[i, k]
              hint:     it can be passed along j
            """):
        t2s.lower(p.C)


def test_when_every_loop_changes_the_operand() -> None:
    p, loader = product(), Func("loader")
    p.C.unroll(p.i).isolate_producer(p.A, loader).forward(p.A, p.i)
    with refused("""
            forward(A, i) on C: A depends on i
              --> p.C.unroll(p.i).isolate_producer(p.A, loader).forward(p.A, p.i)
              expected: a loop along which A is the same for all PEs
              given:    A[i, k]
              hint:     no unrolled loop leaves it unchanged
            """):
        t2s.lower(p.C)


def test_an_operand_that_was_not_isolated() -> None:
    p = product()
    p.C.unroll(p.j)
    p.C.forward(p.A, p.j)
    with refused("""
            forward(A, j) on C: A does not feed C
              --> p.C.forward(p.A, p.j)
              expected: a producer of C: nothing yet
              given:    A
              hint:     isolate the operand first, as in C.isolate_producer(A, A_feeder)
            """):
        t2s.lower(p.C)


def test_a_func_that_feeds_something_else() -> None:
    p, loader, feeder = product(), Func("loader"), Func("feeder")
    p.C.unroll(p.j).isolate_producer_chain(p.A, loader, feeder)
    p.C.forward(loader, p.j)
    with refused("""
            forward(loader, j) on C: loader does not feed C
              --> p.C.forward(loader, p.j)
              expected: a producer of C: feeder
              given:    loader
              hint:     isolate the operand first, as in C.isolate_producer(A, A_feeder)
            """):
        t2s.lower(p.C)


def test_twice_along_one_loop() -> None:
    p, loader = product(), Func("loader")
    p.C.unroll(p.j).isolate_producer(p.A, loader).forward(loader, p.j)
    p.C.forward(p.A, p.j)
    with refused("""
            forward(A, j) on C: A is already passed along j
              --> p.C.forward(p.A, p.j)
              expected: one forward of an operand along each loop
            """):
        t2s.lower(p.C)


def test_an_unknown_loop() -> None:
    p, loader = product(), Func("loader")
    p.C.unroll(p.j).isolate_producer(p.A, loader).forward(loader, Var("jj"))
    with refused("""
            forward(loader, jj) on C: C has no loop jj
              --> p.C.unroll(p.j).isolate_producer(p.A, loader).forward(loader, Var("jj"))
              expected: one of its loops, outermost first: i, j, k
              given:    jj
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        t2s.lower(p.C)


def test_a_start_that_differs_between_pes() -> None:
    """The first step of the sum is another one in each PE: none can pass its start on."""
    A, start = (ImageParam(Int(32), 1, name=name) for name in ("A", "start"))
    f, i, loader = Func("f"), Var("i"), Func("loader")
    k = RDom(i, 4 - i, name="k")
    f[i] = start[0]
    f[i] += A[k]
    f.bound(i, 0, 4).unroll(i).isolate_producer(start, loader).forward(loader, i)
    with refused("""
            forward(loader, i) on f: the PEs along i need start[0] in different iterations
              --> f.bound(i, 0, 4).unroll(i).isolate_producer(start, loader).forward(loader, i)
              expected: a value that all PEs along i take in the same iterations of their loops
              given:    start[0], in the first iteration of k
              hint:     leave out this forward: loader then sends start[0] to each PE along i
            """):
        t2s.lower(f)


def test_a_condition_that_differs_between_pes() -> None:
    A, f, i, j = ImageParam(Int(32), 1, name="A"), Func("f"), Var("i"), Var("j")
    f[i, j] = t2s.select(j > 1, A[i], 0)
    loader = Func("loader")
    f.bound(i, 0, 4).bound(j, 0, 4).unroll(j).isolate_producer(A, loader).forward(loader, j)
    with refused("""
            forward(loader, j) on f: whether A is needed depends on j
              --> f.bound(i, 0, 4).bound(j, 0, 4).unroll(j).isolate_producer(A, loader).forward(loader, j)
              expected: a condition that is the same for all PEs along j
              given:    j > 1
            """):  # noqa: E501
        t2s.lower(f)


def test_an_initial_value_along_the_reduction() -> None:
    A, start = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="start")
    f, i, k = Func("f"), Var("i"), RDom(0, 4, name="k")
    f[i] = start[i]
    f[i] += A[i, k]
    loader = Func("loader")
    f.bound(i, 0, 4).unroll(k).isolate_producer(start, loader).forward(loader, k)
    with refused("""
            forward(loader, k) on f: start is needed at the start of the reduction only, which k is
                        a part of
              --> f.bound(i, 0, 4).unroll(k).isolate_producer(start, loader).forward(loader, k)
              expected: a loop that is not a reduction
              given:    start goes to the first PE along k and ends there
              hint:     it needs no forwarding along that loop
            """):
        t2s.lower(f)


def test_two_loops_at_once() -> None:
    p, loader = product(), Func("loader")
    p.C.unroll(p.i, p.j).isolate_producer(p.A, loader)
    with refused("""
            forward on C takes one loop
              --> p.C.forward(loader, (p.i, p.j))  # type: ignore[arg-type]
              expected: for example forward(loader, i)
              given:    2 loops: i, j
              hint:     forward along one loop after the other
            """):
        p.C.forward(loader, (p.i, p.j))  # type: ignore[arg-type]


def test_a_producer_that_was_isolated_before_the_loop_was_made() -> None:
    p, jj, loader = product(), Var("jj"), Func("loader")
    p.C.isolate_producer(p.A, loader)
    p.C.split(p.j, p.j, jj, 3).unroll(jj)
    p.C.forward(loader, jj)
    with refused("""
            forward(loader, jj) on C: loader has no loop like jj
              --> p.C.forward(loader, jj)
              expected: loader with the loops of C: i, j, jj, k
              given:    loader with i, j, k
              note:     loader was isolated here
              --> p.C.isolate_producer(p.A, loader)
              hint:     split and fuse the loops of C before isolating from it, or those of loader
                        in the same way
            """):
        t2s.lower(p.C)
