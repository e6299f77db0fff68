"""isolate_producer, isolate_consumer and their chains where they cannot be obeyed."""

from __future__ import annotations

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, Var
from tests.errors.designs import product
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")


def squares() -> tuple[Func, ImageParam]:
    """An input that is read twice."""
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    f[i] = A[i] * A[i + 1]
    f.bound(i, 0, 4)
    return f, A


def test_operand_that_occurs_twice() -> None:
    f, A = squares()
    f.isolate_producer(A, Func("loader"))
    with refused("""
            isolate_producer(A, loader) on f: A occurs 2 times, with different subscripts
              --> f.isolate_producer(A, Func("loader"))
              expected: one element, so that it is clear which one moves
              given:    A[i], A[i + 1]
              note:     A[i] is read here
              --> f[i] = A[i] * A[i + 1]
              note:     A[i + 1] is read here
              --> f[i] = A[i] * A[i + 1]
              hint:     say which one: isolate_producer(A[i], loader)
            """):
        t2s.lower(f)


def running_sums() -> tuple[Func, Func, ImageParam]:
    """Two recurrences that one loop nest computes, and what they read from outside."""
    x, G, H = ImageParam(Int(32), 1, name="x"), Func("G", type=Int(32)), Func("H", type=Int(32))
    G[i] = t2s.select(i == 0, 0, G[i - 1]) + x[i]
    H[i] = G[i] + t2s.select(i == 0, 1, H[i - 1])
    G.bound(i, 0, 4)
    H.bound(i, 0, 4)
    return G, H, x


def test_member_of_a_system_of_recurrences() -> None:
    G, H, _ = running_sums()
    H.isolate_producer(G, Func("P"))
    with refused("""
            isolate_producer(G, P) on H: H computes G itself, because their recurrences share one
                        loop nest
              --> H.isolate_producer(G, Func("P"))
              expected: an operand that the recurrences read from outside
              given:    G; computed together: G, H
              hint:     isolate one of x
            """):
        t2s.lower(H)
    G, H, _ = running_sums()
    H.isolate_producer(G[i], Func("P"))
    with pytest.raises(t2s.errors.UserError, match="H computes G itself"):
        t2s.lower(H)


def test_the_hint_for_a_member_of_a_system_works() -> None:
    _, H, x = running_sums()
    H.isolate_producer(x, Func("P"))
    result = t2s.simulate(H, {"x": np.arange(4, dtype=np.int32)})
    assert result.outputs["H"].tolist() == [1, 2, 5, 11]


def test_unknown_operand() -> None:
    p, other = product(), ImageParam(Int(32), 2, name="D")
    p.C.isolate_producer(other, Func("loader"))
    with refused("""
            isolate_producer(D, loader) on C: D is not used in C
              --> p.C.isolate_producer(other, Func("loader"))
              expected: one of A, B
              given:    D
            """):
        t2s.lower(p.C)


def test_operand_that_is_isolated_already() -> None:
    p = product()
    p.C.isolate_producer(p.A, Func("first"))
    p.C.isolate_producer(p.A, Func("second"))
    with refused("""
            isolate_producer(A, second) on C: A is already loaded by first
              --> p.C.isolate_producer(p.A, Func("second"))
              expected: an operand that C still loads itself
              hint:     isolate before forward, or isolate further from first
            """):
        t2s.lower(p.C)


def test_operand_by_name() -> None:
    p = product()
    with refused("""
            isolate_producer on C needs an input or a Func
              --> p.C.isolate_producer("A", Func("loader"))  # type: ignore[arg-type]
              expected: an ImageParam or a Func object
              given:    'A'
            """):
        p.C.isolate_producer("A", Func("loader"))  # type: ignore[arg-type]


def test_operand_that_is_an_element_of_something_else() -> None:
    p = product()
    p.C.isolate_producer(p.A[p.k, p.i], Func("loader"))
    with refused("""
            isolate_producer(A[k, i], loader) on C: A[k, i] does not occur in C
              --> p.C.isolate_producer(p.A[p.k, p.i], Func("loader"))
              expected: a part of C + A[i, k] * B[k, j]
              given:    A[k, i]
              hint:     it is found as it is written: the same operands in the same order
            """):
        t2s.lower(p.C)


def test_isolating_into_a_defined_func() -> None:
    p, loader = product(), Func("loader")
    loader[i] = 0
    with refused("""
            isolate_producer on C: loader already has a definition
              --> p.C.isolate_producer(p.A, loader)
              expected: a new Func without a definition
              note:     loader was defined here
              --> loader[i] = 0
            """):
        p.C.isolate_producer(p.A, loader)


def test_isolating_into_a_func_twice() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader)
    with refused("""
            isolate_producer on C: loader was already isolated from C
              --> p.C.isolate_producer(p.B, loader)
              expected: a new Func for each isolated piece
            """):
        p.C.isolate_producer(p.B, loader)


def test_the_same_func_twice_in_a_chain() -> None:
    p, loader = product(), Func("loader")
    with refused("""
            isolate_producer_chain on C names loader twice
              --> p.C.isolate_producer_chain(p.A, loader, loader)
              expected: each name once
              given:    loader, loader
            """):
        p.C.isolate_producer_chain(p.A, loader, loader)


def test_two_funcs_of_one_name() -> None:
    p = product()
    p.C.isolate_producer(p.A, Func("loader"))
    p.C.isolate_producer(p.B, Func("loader"))
    with refused("""
            isolate_producer(B, loader) on C: two different objects of the design are named loader
              --> p.C.isolate_producer(p.B, Func("loader"))
              expected: a Func with a name of its own
              given:    Func loader
              note:     Func loader comes from here
              --> p.C.isolate_producer(p.A, Func("loader"))
              hint:     give the Func another name
            """):
        t2s.lower(p.C)


def test_isolating_into_a_func_with_the_name_of_an_input() -> None:
    p = product()
    p.C.isolate_producer(p.A, Func("B"))
    with refused("""
            isolate_producer(A, B) on C: two different objects of the design are named B
              --> p.C.isolate_producer(p.A, Func("B"))
              expected: a Func with a name of its own
              given:    Func B
              note:     ImageParam B comes from here
              --> designs.py: A, B = ImageParam(element, 2, name="A"), ImageParam(element, 2, name="B")
              hint:     give the Func another name
            """):  # noqa: E501
        t2s.lower(p.C)


def test_isolating_into_the_function_itself() -> None:
    p = product()
    with refused("""
            isolate_producer on C: C already has a definition
              --> p.C.isolate_producer(p.A, p.C)
              expected: a new Func without a definition
              note:     C was defined here
              --> designs.py: C[i, j] = 0
            """):
        p.C.isolate_producer(p.A, p.C)


def test_isolating_into_something_else() -> None:
    p = product()
    with refused("""
            isolate_producer on C needs a Func to isolate into
              --> p.C.isolate_producer(p.A, Var("loader"))  # type: ignore[arg-type]
              expected: a new Func, for example Func("A_loader")
              given:    loader
            """):
        p.C.isolate_producer(p.A, Var("loader"))  # type: ignore[arg-type]


def test_empty_chain() -> None:
    p = product()
    with refused("""
            isolate_producer_chain on C needs a Func to isolate into
              --> p.C.isolate_producer_chain(p.A)
              expected: a new Func, for example Func("A_loader")
            """):
        p.C.isolate_producer_chain(p.A)


def test_empty_consumer_chain() -> None:
    p = product()
    with refused("""
            isolate_consumer_chain on C needs a Func to isolate into
              --> p.C.isolate_consumer_chain()
              expected: a new Func, for example Func("A_loader")
            """):
        p.C.isolate_consumer_chain()


def test_results_that_are_isolated_already() -> None:
    p = product()
    p.C.isolate_consumer(Func("first"))
    p.C.isolate_consumer(Func("second"))
    with refused("""
            isolate_consumer(second) on C: C does not save results itself
              --> p.C.isolate_consumer(Func("second"))
              expected: the function that computes the output, or the last consumer of its chain
            """):
        t2s.lower(p.C)


def test_streams_in_different_orders() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.A, loader)
    loader.reorder(p.i, p.j)
    with refused("""
            reorder(i, j) on loader: loader sends its values in another order than C takes them
              --> loader.reorder(p.i, p.j)
              expected: the order of C: i, j, k
              given:    the order of loader: j, i, k; the value for i=1, j=0, k=0 comes too early
              hint:     order the loops before isolating, or reorder C in the same way
            """):
        t2s.lower(p.C)


def test_results_in_another_order() -> None:
    p, unloader = product(), Func("unloader")
    p.C.isolate_consumer(unloader)
    unloader.reorder(p.i, p.j)
    with refused("""
            reorder(i, j) on unloader: C sends its values in another order than unloader takes them
              --> unloader.reorder(p.i, p.j)
              expected: the order of unloader: j, i
              given:    the order of C: i, j; the value for i=0, j=1 comes too early
              hint:     order the loops before isolating, or reorder C in the same way
            """):
        t2s.lower(p.C)


def test_function_that_is_reordered_after_isolating() -> None:
    p, loader = product(), Func("loader")
    p.C.isolate_producer(p.B, loader)
    p.C.reorder(p.i, p.j)
    with refused("""
            reorder(i, j) on C: loader sends its values in another order than C takes them
              --> p.C.reorder(p.i, p.j)
              expected: the order of C: j, i, k
              given:    the order of loader: i, j, k; the value for i=0, j=1, k=0 comes too early
              hint:     order the loops before isolating, or reorder loader in the same way
            """):
        t2s.lower(p.C)


def test_a_reduction_loop_of_a_consumer() -> None:
    p, unloader = product(), Func("unloader")
    p.C.isolate_consumer(unloader)
    unloader.unroll(p.k)
    with refused("""
            unroll(k) on unloader: unloader has no loop k
              --> unloader.unroll(p.k)
              expected: one of its loops, outermost first: i, j
              given:    k
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        t2s.lower(p.C)
