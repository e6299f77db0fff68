"""scatter and gather where they cannot be obeyed."""

from __future__ import annotations

import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from t2s.errors import UnsupportedError, UserError
from tests.errors.designs import Product, product, triangle
from tests.errors.refusal import refused


def fed() -> tuple[Product, Func, Func]:
    """A product with rows in space, whose A goes through a loader and a feeder."""
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.unroll(p.i).isolate_producer_chain(p.A, loader, feeder)
    return p, loader, feeder


def drained() -> tuple[Product, Func, Func]:
    """A product with rows in space, whose results go through a drainer and an unloader."""
    p = product()
    drainer, unloader = t2s.funcs("drainer unloader")
    p.C.unroll(p.i).isolate_consumer_chain(drainer, unloader)
    return p, drainer, unloader


# -------------------------------------------------------------------------------------- arguments


def test_several_loops() -> None:
    p, loader, feeder = fed()
    with refused("""
            scatter on feeder takes one loop
              --> feeder.scatter(loader, (p.i, p.k))  # type: ignore[arg-type]
              expected: for example scatter(loader, i)
              given:    2 loops: i, k
              hint:     isolate a chain of Funcs and scatter along one loop in each
            """):
        feeder.scatter(loader, (p.i, p.k))  # type: ignore[arg-type]


def test_a_reverse_that_is_no_bool() -> None:
    p, drainer, _ = drained()
    with refused("""
            reverse of gather on drainer has to be True or False
              --> drainer.gather(p.C, p.i, reverse="down")  # type: ignore[arg-type]
              expected: True or False
              given:    'down'
            """):
        drainer.gather(p.C, p.i, reverse="down")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------- scatter


def test_scattering_along_a_loop_in_time() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.k)
    with refused("""
            scatter(loader, k) on feeder: loop k is not unrolled
              --> feeder.scatter(loader, p.k)
              expected: an unrolled loop: the stream goes from PE to PE
              given:    k in feeder: as in C: reduction of the definition
              hint:     write unroll(k) first
            """):
        t2s.lower(p.C)


def test_scattering_along_a_loop_that_is_not_there() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, Var("x"))
    with refused("""
            scatter(loader, x) on feeder: feeder has no loop x
              --> feeder.scatter(loader, Var("x"))
              expected: one of its loops, outermost first: i, j, k
              given:    x
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        t2s.lower(p.C)


def test_scattering_what_is_the_same_everywhere() -> None:
    p = product()
    loader, feeder = t2s.funcs("loader feeder")
    p.C.unroll(p.j).isolate_producer_chain(p.A, loader, feeder)
    feeder.scatter(loader, p.j)
    with refused("""
            scatter(loader, j) on feeder: A does not depend on j
              --> feeder.scatter(loader, p.j)
              expected: a loop along which every PE needs values of its own of A
              given:    A[i, k]
              hint:     pass the same values to all PEs: forward(feeder, j) on the function that
                        computes
            """):
        t2s.lower(p.C)


def test_scattering_twice_along_one_loop() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.i)
    feeder.scatter(p.A, p.i)
    with refused("""
            scatter(A, i) on feeder: feeder already scatters along i
              --> feeder.scatter(p.A, p.i)
              expected: one scatter along each loop
              note:     scatter(loader, i) was written here
              --> feeder.scatter(loader, p.i)
            """):
        t2s.lower(p.C)


def test_scattering_what_is_not_isolated() -> None:
    p, loader = product(), Func("loader")
    p.C.unroll(p.i).isolate_producer(p.A, loader)
    p.C.scatter(p.B, p.i)
    with refused("""
            scatter(B, i) on C: B does not feed C
              --> p.C.scatter(p.B, p.i)
              expected: a function with a loader, or a feeder between the two
              hint:     isolate it first, as in C.isolate_producer(A, A_loader)
            """):
        t2s.lower(p.C)


def test_scattering_what_does_not_feed() -> None:
    p, _, feeder = fed()
    feeder.scatter(p.B, p.i)
    with refused("""
            scatter(B, i) on feeder: B does not feed feeder
              --> feeder.scatter(p.B, p.i)
              expected: scatter(loader, ...)
              given:    B
            """):
        t2s.lower(p.C)


def test_scattering_results() -> None:
    p, drainer, _ = drained()
    drainer.scatter(p.C, p.i)
    with refused("""
            scatter(C, i) on drainer: C does not feed drainer
              --> drainer.scatter(p.C, p.i)
              expected: a Func that was isolated as a producer
              given:    drainer, which takes the results of C
            """):
        t2s.lower(p.C)


def test_scattering_what_is_not_always_needed() -> None:
    A, i, j, y = ImageParam(Int(32), 2, name="A"), Var("i"), Var("j"), Func("y")
    loader, feeder = t2s.funcs("loader feeder")
    y[i, j] = t2s.select(j > 0, A[i, j], 0)
    y.bound(i, 0, 2).bound(j, 0, 2).unroll(i).isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    with refused("""
            scatter(loader, i) on feeder: A is not needed in every iteration
              --> feeder.scatter(loader, i)
              expected: an operand without a condition
              given:    A if j > 0
              hint:     load it unconditionally: move the access out of the select
            """):
        t2s.lower(y)


def test_pes_that_take_different_numbers_of_values() -> None:
    A, i = ImageParam(Int(32), 2, name="A"), Var("i")
    k = RDom(0, i + 1, name="k")
    y, loader, feeder = t2s.funcs("y loader feeder")
    y[i] = 0
    y[i] += A[i, k]
    y.bound(i, 0, 3).unroll(i).isolate_producer_chain(A, loader, feeder)
    feeder.scatter(loader, i)
    with refused("""
            scatter(loader, i) on feeder: the bounds of k depend on i
              --> feeder.scatter(loader, i)
              expected: the same loops in all PEs along i
              given:    k from 0 to i
              hint:     give the loop the same bounds everywhere, and guard the value with select
            """):
        t2s.lower(y)


def test_a_loader_that_stays_in_space() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.i)
    loader.unroll(p.i)
    with refused("""
            scatter(loader, i) on feeder: loader is unrolled along i
              --> feeder.scatter(loader, p.i)
              expected: one stream, with i in time in loader
              given:    i in loader: one PE each by unroll(i)
              hint:     do not unroll i in loader
            """):
        t2s.lower(p.C)


def test_a_loader_with_other_loops_in_space() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.i)
    loader.unroll(p.k)
    with refused(
        """
            scatter(loader, i) on feeder: loader is unrolled along k and feeder is not
              --> feeder.scatter(loader, p.i)
              expected: feeder unrolled along k as well
              given:    k in loader: one PE each by unroll(k)
              hint:     write feeder.unroll(k)
            """,
        UnsupportedError,
    ):
        t2s.lower(p.C)


def test_a_stream_in_an_order_that_the_array_does_not_take() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.i)
    loader.reorder(p.j, p.k)  # k outside of j
    with refused("""
            reorder(j, k): feeder sends its values in another order than C takes them
              --> loader.reorder(p.j, p.k)  # k outside of j
              expected: the order of C: j, k
              given:    the order of feeder: k, j, i_digit; the value for i=0, j=1, k=0 comes too
                        early
              hint:     order the loops before isolating, or reorder C in the same way
            """):
        t2s.lower(p.C)


def test_a_loader_that_lost_loops_without_a_buffer() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.i)
    loader.remove(p.j)
    with refused("""
            remove(j) on loader: feeder still needs every value along j
              --> loader.remove(p.j)
              expected: a buffer in feeder
              hint:     write feeder.buffer(loader, loop) with a loop outside of j
            """):
        t2s.lower(p.C)


def test_a_stream_that_does_not_fill_the_buffer_at_once() -> None:
    p, loader, feeder = fed()
    feeder.scatter(loader, p.i)
    feeder.buffer(loader, p.j)
    loader.reorder(p.k, p.j, p.i)
    with refused("""
            buffer(loader, j) on feeder: loader does not fill the buffer once for each iteration
                        of j
              --> feeder.buffer(loader, p.j)
              expected: the loops of feeder (j, k), less those that were removed
              given:    the loops of loader (i, j, k)
              note:     loader was made here
              --> p.C.unroll(p.i).isolate_producer_chain(p.A, loader, feeder)
            """):
        t2s.lower(p.C)


# ----------------------------------------------------------------------------------------- gather


def test_gathering_along_a_loop_in_time() -> None:
    p, drainer, _ = drained()
    drainer.gather(p.C, p.j)
    with refused("""
            gather(C, j) on drainer: loop j is not unrolled
              --> drainer.gather(p.C, p.j)
              expected: an unrolled loop: the stream goes from PE to PE
              given:    j in drainer: as in C: of the definition
              hint:     write unroll(j) first
            """):
        t2s.lower(p.C)


def test_gathering_what_does_not_feed() -> None:
    p, drainer, unloader = drained()
    drainer.gather(unloader, p.i)
    with refused("""
            gather(unloader, i) on drainer: unloader does not feed drainer
              --> drainer.gather(unloader, p.i)
              expected: gather(C, ...)
              given:    unloader
            """):
        t2s.lower(p.C)


def test_gathering_in_a_producer() -> None:
    p, loader, feeder = fed()
    feeder.gather(loader, p.i)
    with refused("""
            gather(loader, i) on feeder: feeder takes no results
              --> feeder.gather(loader, p.i)
              expected: a Func that was isolated with isolate_consumer_chain
              hint:     isolate a chain, C.isolate_consumer_chain(drainer, unloader), and gather in
                        the drainer
            """):
        t2s.lower(p.C)


def test_gathering_where_results_are_stored() -> None:
    p, unloader = product(), Func("unloader")
    p.C.unroll(p.i).isolate_consumer(unloader)
    unloader.gather(p.C, p.i)
    with refused("""
            gather(C, i) on unloader: unloader is the last consumer of C on the device
              --> unloader.gather(p.C, p.i)
              expected: a consumer that sends the stream on to another one
              hint:     isolate a chain, isolate_consumer_chain(drainer, unloader), and gather in
                        the drainer
            """):
        t2s.lower(p.C)


def test_gathering_where_results_are_streamed_to_another_func() -> None:
    """The last consumer sends to the Func that takes the stream; it stores nothing."""
    A, i, x, k = ImageParam(Int(32), 2, name="A"), Var("i"), Var("x"), RDom(0, 4, name="k")
    C, R, last = t2s.funcs("C R last")
    C[i] = 0
    C[i] += A[i, k]
    R[x] = C[x] + 1
    R.bound(x, 0, 4).stream(C.unroll(i))
    C.isolate_consumer(last)
    last.gather(C, i)
    with refused("""
            gather(C, i) on last: last is the last consumer of C on the device
              --> last.gather(C, i)
              expected: a consumer that sends the stream on to another one
              hint:     isolate a chain, isolate_consumer_chain(drainer, last), and gather in the
                        drainer
            """):
        t2s.lower(R)


def test_gathering_in_an_order_that_the_array_does_not_send() -> None:
    A, i, j, r = ImageParam(Int(32), 3, name="A"), Var("i"), Var("j"), Var("r")
    y, drainer, unloader = t2s.funcs("y drainer unloader")
    y[r, j, i] = A[r, j, i]
    y.bound(i, 0, 2).bound(j, 0, 2).bound(r, 0, 2).unroll(i)
    y.isolate_consumer_chain(drainer, unloader)
    drainer.gather(y, i)
    unloader.reorder(r, j)
    with refused("""
            reorder(r, j): y sends its values in another order than drainer takes them
              --> unloader.reorder(r, j)
              expected: the order of drainer: j, r, i_digit
              given:    the order of y: r, j; the value for r=0, j=1, i=0 comes too early
              hint:     order the loops before isolating, or reorder y in the same way
            """):
        t2s.lower(y)


# ------------------------------------------------------------------------------------------ lanes


def test_lanes_along_a_loop_that_is_not_gathered() -> None:
    p, drainer, unloader = drained()
    drainer.gather(p.C, p.i)
    unloader.reorder(p.j, p.i)
    unloader.vstore(p.C)
    with refused("""
            vstore(C) on unloader: the innermost loop j of unloader is not gathered
              --> unloader.vstore(p.C)
              expected: a loop along which PEs are gathered innermost: i
              given:    loops, outermost first: i, j
              hint:     write unloader.reorder(...) first, or gather along j
            """):
        t2s.lower(p.C)


def test_lanes_that_are_not_contiguous() -> None:
    p, drainer, unloader = drained()
    drainer.gather(p.C, p.i)
    unloader.vstore(p.C)
    with refused("""
            vstore(C) on C: C is not contiguous along i
              --> unloader.vstore(p.C)
              expected: i in the last subscript only, with factor 1
              given:    C[i, j]
              hint:     arrays are row-major: store it transposed, put another loop innermost,
                        or let the host order it
            """):
        t2s.lower(p.C)


def test_lanes_in_a_func_that_does_not_store() -> None:
    p, drainer, _ = drained()
    drainer.gather(p.C, p.i)
    drainer.vstore(p.C)
    with refused("""
            vstore(C) on drainer: drainer does not store
              --> drainer.vstore(p.C)
              expected: the last Func of the chain of consumers
              given:    drainer
              hint:     write unloader.vstore(C)
            """):
        t2s.lower(p.C)


@pytest.mark.parametrize("name", ["scatter", "gather"])
def test_before_isolation(name: str) -> None:
    p, other = product(), Func("other")
    with pytest.raises(UserError, match=rf"{name}\(A, i\) on other: other is not part of a design"):
        getattr(other, name)(p.A, p.i)


def test_a_triangle_gathers_along_a_loop_that_its_sums_depend_on() -> None:
    """The results themselves are as many in every PE."""
    t = triangle()
    drainer, unloader = t2s.funcs("drainer unloader")
    t.T.unroll(t.i).isolate_consumer_chain(drainer, unloader)
    drainer.gather(t.T, t.i)
    assert t2s.lower(t.T).channel("T_along_i").shape == (4,)
