"""Functions on the host where they cannot be."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, Place, Var
from t2s.errors import UnsupportedError
from tests.errors.designs import product, triangle
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")
x = ImageParam(Int(32), 1, name="x")


def on_host(name: str) -> Func:
    return Func(name, place=Place.HOST)


def test_no_place() -> None:
    with refused("""
            the place of Func S is not a place
              --> Func("S", place="host")  # type: ignore[arg-type]
              expected: t2s.Place.DEVICE or t2s.Place.HOST
              given:    'host'
            """):
        Func("S", place="host")  # type: ignore[arg-type]


def test_not_the_first_of_producers() -> None:
    p, S = product(), Func("S", place=Place.HOST)
    with refused("""
            isolate_producer_chain on C: S is on the host
              --> p.C.isolate_producer_chain(p.A, Func("L"), S)
              expected: only the first one of a chain on the host
              note:     Func S was made here
              --> p, S = product(), Func("S", place=Place.HOST)
              hint:     the host is behind the device's memory, at the outer end of the chain
            """):
        p.C.isolate_producer_chain(p.A, Func("L"), S)


def test_not_the_last_of_consumers() -> None:
    p, E = product(), Func("E", place=Place.HOST)
    with refused("""
            isolate_consumer_chain on C: E is on the host
              --> p.C.isolate_consumer_chain(E, Func("U"))
              expected: only the last one of a chain on the host
              note:     Func E was made here
              --> p, E = product(), Func("E", place=Place.HOST)
              hint:     the host is behind the device's memory, at the outer end of the chain
            """):
        p.C.isolate_consumer_chain(E, Func("U"))


def test_serializer_without_a_loader() -> None:
    p = product()
    p.C.isolate_producer(p.A, on_host("S"))
    with refused("""
            isolate_producer(A, S) on C: nothing on the device loads what S puts into memory
              --> p.C.isolate_producer(p.A, on_host("S"))
              expected: a chain: isolate_producer_chain(A, S, loader)
            """):
        t2s.lower(p.C)


def test_results_of_a_system_without_an_unloader() -> None:
    S = Func("S", Int(32))
    S[i] = t2s.select(i == 0, 0, S[i - 1]) + x[i]
    S.bound(i, 0, 8)
    S.isolate_consumer(on_host("E"))
    with refused("""
            isolate_consumer(E) on S: nothing on the device stores what E takes from memory
              --> S.isolate_consumer(on_host("E"))
              expected: a chain: isolate_consumer_chain(unloader, E)
            """):
        t2s.lower(S)


def test_results_of_a_system_that_the_device_reads() -> None:
    S, T = Func("S", Int(32)), Func("T")
    S[i] = t2s.select(i == 0, 0, S[i - 1]) + x[i]
    T[i] = S[7 - i]
    T.bound(i, 0, 8)
    S.isolate_consumer_chain(Func("U"), on_host("E"))
    with refused(
        """
            isolate_consumer_chain(U, E) on S: S is read by the device, and E is on the host
              --> S.isolate_consumer_chain(Func("U"), on_host("E"))
              expected: an output: T
              hint:     the host takes results from memory when the design has ended
            """,
        UnsupportedError,
    ):
        t2s.lower(T)


def test_gathering_where_the_device_stores_for_the_host() -> None:
    p = product()
    ii, jj, U = Var("ii"), Var("jj"), Func("U")
    p.C.tile(p.j, p.i, jj, ii, 2, 2).unroll(ii, jj)
    p.C.isolate_consumer_chain(U, on_host("E"))
    U.gather(p.C, jj)
    with refused("""
            gather(C, jj) on U: U is the last consumer of C on the device
              --> U.gather(p.C, jj)
              expected: a consumer that sends the stream on to another one
              hint:     isolate a chain, isolate_consumer_chain(drainer, U), and gather in the
                        drainer
            """):
        t2s.lower(p.C)


def test_deserializer_without_an_unloader() -> None:
    p = product()
    p.C.isolate_consumer(on_host("E"))
    with refused("""
            isolate_consumer(E) on C: nothing on the device stores what E takes from memory
              --> p.C.isolate_consumer(on_host("E"))
              expected: a chain: isolate_consumer_chain(unloader, E)
            """):
        t2s.lower(p.C)


def test_definition_on_the_host() -> None:
    C = Func("C", place=Place.HOST)
    C[i] = x[i]
    C.bound(i, 0, 4)
    with refused(
        """
            Func C has a definition and is on the host
              --> C = Func("C", place=Place.HOST)
              expected: a Func without a definition, at the outer end of a chain
              hint:     the host only orders arrays; compute in a Func on the device
            """,
        UnsupportedError,
    ):
        t2s.lower(C)


def test_other_directives() -> None:
    p, S = product(), on_host("S")
    p.C.isolate_producer_chain(p.A, S, Func("L"))
    S.unroll(p.i)
    with refused("""
            unroll(i) on S: S runs on the host
              --> S.unroll(p.i)
              expected: remove(loop, ...)
              note:     S was isolated here
              --> p.C.isolate_producer_chain(p.A, S, Func("L"))
              hint:     give the directive to a function on the device
            """):
        t2s.lower(p.C)


def test_isolating_from_the_host() -> None:
    p, S = product(), on_host("S")
    p.C.isolate_producer_chain(p.A, S, Func("L"))
    S.isolate_producer(p.A, Func("more"))
    with refused("""
            isolate_producer(A, more) on S: S runs on the host
              --> S.isolate_producer(p.A, Func("more"))
              expected: the function at the outer end of its chain
              note:     S was isolated here
              --> p.C.isolate_producer_chain(p.A, S, Func("L"))
              hint:     isolate from the functions on the device
            """):
        t2s.lower(p.C)


def test_removing_a_loop_that_is_needed() -> None:
    p, S = product(), on_host("S")
    p.C.isolate_producer_chain(p.A, S, Func("L"))
    S.remove(p.k)
    with refused("""
            remove(k) on S: A depends on k
              --> S.remove(p.k)
              expected: a reuse loop, along which A is the same
              given:    A[i, k]
              hint:     reuse loops of S: j
            """):
        t2s.lower(p.C)


def test_removing_from_a_deserializer() -> None:
    p, E = product(), on_host("E")
    p.C.isolate_consumer_chain(Func("U"), E)
    E.remove(p.i)
    with refused("""
            remove(i) on E: E is not an isolated producer
              --> E.remove(p.i)
              expected: a Func that was isolated with isolate_producer or isolate_producer_chain
              hint:     only what loads or passes on an operand can skip iterations
            """):
        t2s.lower(p.C)


def test_buffering_in_the_loader() -> None:
    p, S, L = product(), on_host("S"), Func("L")
    p.C.isolate_producer_chain(p.A, S, L)
    S.remove(p.j)
    L.buffer(S, p.i)
    with refused("""
            buffer(S, i) on L: L loads from memory what S puts there
              --> L.buffer(S, p.i)
              expected: a function behind L in the chain
              hint:     isolate one more function: a feeder that takes the values from L
            """):
        t2s.lower(p.C)


def test_scattering_in_the_loader() -> None:
    """Every PE loaded the values of all PEs behind it, and the design ended in a deadlock."""
    p, S, L = product(), on_host("S"), Func("L")
    p.C.unroll(p.i).isolate_producer_chain(p.A, S, L)
    L.scatter(S, p.i)
    with refused("""
            scatter(S, i) on L: L loads from memory what S puts there
              --> L.scatter(S, p.i)
              expected: a function behind L in the chain
              hint:     isolate one more function: a feeder that takes the values from L
            """):
        t2s.lower(p.C)


def test_forwarding_in_the_loader() -> None:
    p, S, L = product(), on_host("S"), Func("L")
    p.C.isolate_producer_chain(p.A, S, L)
    L.unroll(p.j).forward(S, p.j)
    with refused("""
            forward(S, j) on L: L loads from memory what S puts there
              --> L.unroll(p.j).forward(S, p.j)
              expected: a function behind L in the chain
              hint:     isolate one more function: a feeder that takes the values from L
            """):
        t2s.lower(p.C)


def test_another_order_in_the_loader() -> None:
    p, S, L = product(), on_host("S"), Func("L")
    p.C.isolate_producer_chain(p.A, S, L)
    L.reorder(p.i, p.j)
    with refused("""
            reorder(i, j) on L: S sends its values in another order than L takes them
              --> L.reorder(p.i, p.j)
              expected: the order of L: j, i, k
              given:    the order of S: i, j, k; the value for i=0, j=1, k=0 comes too early
              hint:     order the loops before isolating, or reorder S in the same way
            """):
        t2s.lower(p.C)


def test_loops_without_constant_bounds() -> None:
    p, S = triangle(), on_host("S")
    p.T.isolate_producer_chain(p.A, S, Func("L"))
    with refused(
        """
            S runs on the host and its loop k has no constant bounds
              --> p.T.isolate_producer_chain(p.A, S, Func("L"))
              expected: loops whose minima and extents are numbers
              given:    bounds of k depend on i
              hint:     let the device load this operand without a function on the host
            """,
        UnsupportedError,
    ):
        t2s.lower(p.T)


def test_operand_under_a_condition() -> None:
    f = Func("f")
    f[i] = t2s.select(i > 0, x[i - 1], 0)
    f.bound(i, 0, 4).isolate_producer_chain(x, on_host("S"), Func("L"))
    with refused(
        """
            isolate_producer_chain(x, S, L) on f: x[i - 1] is not needed in every iteration
              --> f.bound(i, 0, 4).isolate_producer_chain(x, on_host("S"), Func("L"))
              expected: an operand without a condition
              hint:     the host puts a value into memory for every iteration: move the access out
                        of the select, or load it on the device
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_subscript_that_is_not_affine() -> None:
    f, long = Func("f"), ImageParam(Int(32), 1, name="long", shape=(10,))
    f[i] = long[i * i // 2]
    f.bound(i, 0, 4).isolate_producer_chain(long, on_host("S"), Func("L"))
    with refused(
        """
            isolate_producer_chain(long, S, L) on f: the subscript i * i // 2 is not affine
              --> f.bound(i, 0, 4).isolate_producer_chain(long, on_host("S"), Func("L"))
              expected: sums of loops with constant factors, // and % by constants
              given:    long[i * i // 2]
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_operand_that_is_computed() -> None:
    f, s = Func("f"), Func("s")
    s[i] = x[i] + 1
    f[i] = s[i] * 2
    f.bound(i, 0, 4).isolate_producer_chain(s, on_host("S"), Func("L"))
    with refused(
        """
            isolate_producer_chain(s, S, L) on f: s is computed by the device, and S is on the host
              --> f.bound(i, 0, 4).isolate_producer_chain(s, on_host("S"), Func("L"))
              expected: an element of an input
              given:    s[i]
              hint:     only inputs are in the host's memory when the design starts
            """,
        UnsupportedError,
    ):
        t2s.lower(f)


def test_results_that_the_device_reads() -> None:
    f, g = Func("f"), Func("g")
    f[i] = 0
    f[i] += x[i]
    g[i] = f[i] + 1
    g.bound(i, 0, 4)
    f.isolate_consumer_chain(Func("U"), on_host("E"))
    with refused(
        """
            isolate_consumer_chain(U, E) on f: f is read by the device, and E is on the host
              --> f.isolate_consumer_chain(Func("U"), on_host("E"))
              expected: an output: g
              hint:     the host takes results from memory when the design has ended
            """,
        UnsupportedError,
    ):
        t2s.lower(g)
