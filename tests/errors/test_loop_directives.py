"""Directives on loops that cannot be obeyed: split, tile, reorder, fuse, unroll."""

from __future__ import annotations

import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var
from tests.errors.designs import product, triangle
from tests.errors.refusal import refused

ii, jj, kk = Var("ii"), Var("jj"), Var("kk")


def test_unknown_loop() -> None:
    p = product()
    p.C.unroll(ii)
    with refused("""
            unroll(ii) on C: C has no loop ii
              --> p.C.unroll(ii)
              expected: one of its loops, outermost first: i, j, k
              given:    ii
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        t2s.lower(p.C)


def test_loop_that_was_split_away() -> None:
    p, io = product(), Var("io")
    p.C.split(p.i, io, ii, 2)
    p.C.unroll(p.i)
    with refused("""
            unroll(i) on C: C has no loop i
              --> p.C.unroll(p.i)
              expected: one of its loops, outermost first: io, ii, j, k
              given:    i
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        t2s.lower(p.C)


def test_loop_given_by_name() -> None:
    p = product()
    with refused("""
            unroll on C needs loops
              --> p.C.unroll("i")  # type: ignore[arg-type]
              expected: Var or RDom objects
              given:    'i'
              hint:     loops are named by objects: ii = Var("ii")
            """):
        p.C.unroll("i")  # type: ignore[arg-type]


def test_unroll_without_loops() -> None:
    p = product()
    with refused("""
            unroll on C needs a loop
              --> p.C.unroll()
              expected: one or more Var or RDom objects
            """):
        p.C.unroll()


def test_the_same_loop_twice() -> None:
    p = product()
    with refused("""
            reorder on C names i twice
              --> p.C.reorder(p.i, p.j, p.i)
              expected: each name once
              given:    i, j, i
            """):
        p.C.reorder(p.i, p.j, p.i)


def test_split_into_one_name() -> None:
    p = product()
    with refused("""
            split on C names ii twice
              --> p.C.split(p.i, ii, ii, 2)
              expected: each name once
              given:    ii, ii
            """):
        p.C.split(p.i, ii, ii, 2)


@pytest.mark.parametrize("factor", [0, -2, 2.0, True])
def test_split_factor_that_is_no_positive_integer(factor: object) -> None:
    p = product()
    with pytest.raises(t2s.errors.UserError) as caught:
        p.C.split(p.j, p.j, jj, factor)  # type: ignore[arg-type]
    assert caught.value.message == "the factor of split on C has to be a positive integer"
    assert caught.value.given == repr(factor)
    assert caught.value.expected == "1 or more"


def test_split_of_a_loop_without_constant_bounds() -> None:
    t = triangle()
    t.T.split(t.k, t.k, kk, 2)
    with refused("""
            split(k, k, kk, 2) on T: loop k has no constant bounds
              --> t.T.split(t.k, t.k, kk, 2)
              expected: a loop whose minimum and extent are numbers
              given:    bounds of k depend on i
              hint:     hardware has a fixed size; apply the directive to a loop of fixed bounds
            """):
        t2s.lower(t.T)


def test_tile_with_too_few_factors() -> None:
    p = product()
    with refused("""
            tile on C needs n loops, n inner loops and n factors
              --> p.C.tile(p.j, p.i, jj, ii, 2)
              expected: for example tile(j, i, jj, ii, 8, 8)
              given:    tile(j, i, jj, ii, 2)
            """):
        p.C.tile(p.j, p.i, jj, ii, 2)


def test_tile_with_mixed_arguments() -> None:
    p = product()
    with refused("""
            tile on C needs n loops, n inner loops and n factors
              --> p.C.tile(p.j, jj, 2, p.i, ii, 2)
              expected: for example tile(j, i, jj, ii, 8, 8)
              given:    tile(j, jj, 2, i, ii, 2)
            """):
        p.C.tile(p.j, jj, 2, p.i, ii, 2)


def test_new_loop_that_is_there_already() -> None:
    p = product()
    p.C.split(p.i, p.i, p.j, 2)
    with refused("""
            split(i, i, j, 2) on C: there is already a loop j
              --> p.C.split(p.i, p.i, p.j, 2)
              expected: a new Var for each new loop
              given:    j
            """):
        t2s.lower(p.C)


def test_new_loop_with_the_name_of_an_input() -> None:
    p = product()
    p.C.split(p.i, p.i, Var("A"), 2)
    with refused("""
            split(i, i, A, 2) on C: two different objects of the design are named A
              --> p.C.split(p.i, p.i, Var("A"), 2)
              expected: a Var with a name of its own
              given:    Var A
              note:     ImageParam A comes from here
              --> designs.py: A, B = ImageParam(element, 2, name="A"), ImageParam(element, 2, name="B")
              hint:     give the Var another name
            """):  # noqa: E501
        t2s.lower(p.C)


def test_reorder_against_the_bounds() -> None:
    t = triangle()
    t.T.reorder(t.i, t.k)
    with refused("""
            reorder(i, k) on T: the bounds of k depend on i, which would be inside of it
              --> t.T.reorder(t.i, t.k)
              expected: i outside of k
              given:    k from 0 to i
            """):
        t2s.lower(t.T)


def rounding(type: t2s.Type) -> tuple[Func, RDom, RDom]:
    """``S[i] += A[i, k, m]``, a sum over two dimensions."""
    A, S, i = ImageParam(type, 3, name="A"), Func("S"), Var("i")
    k, m = RDom(0, 2, 0, 4, name="k m")
    S[i] = 0
    S[i] += A[i, k, m]
    S.bound(i, 0, 3)
    return S, k, m


def test_reorder_that_rounds_differently() -> None:
    S, k, m = rounding(Float(32))
    S.reorder(k, m)
    with refused("""
            reorder(k, m) on S changes the order of a reduction that rounds
              --> S.reorder(k, m)
              expected: the order of k, m as written, because float32 + is not associative
              given:    for one element, the step at i=0, m=1, k=0 would run after one that follows
                        it
              hint:     write S.reassociate() first if another rounding is acceptable
            """):
        t2s.lower(S)


def test_split_and_reorder_that_rounds_differently() -> None:
    S, _k, m = rounding(Float(64))
    S.split(m, m, kk, 2)
    S.reorder(m, kk)
    with refused("""
            reorder(m, kk) on S changes the order of a reduction that rounds
              --> S.reorder(m, kk)
              expected: the order of k, m as written, because float64 + is not associative
              given:    for one element, the step at i=0, k=0, kk=1, m=0 would run after one that
                        follows it
              hint:     write S.reassociate() first if another rounding is acceptable
            """):
        t2s.lower(S)


def test_reorder_of_a_recurrence() -> None:
    A, H, i = ImageParam(Int(32), 3, name="A"), Func("H"), Var("i")
    k, m = RDom(0, 2, 0, 4, name="k m")
    H[i] = 0
    H[i] = H[i] * 2 + A[i, k, m]
    H.bound(i, 0, 3)
    H.reorder(k, m)
    with refused("""
            reorder(k, m) on H changes the order of a recurrence
              --> H.reorder(k, m)
              expected: the order of k, m as written, because every step needs the one before
              given:    for one element, the step at i=0, m=1, k=0 would run after one that needs it
              hint:     only reductions such as += may be reordered
            """):
        t2s.lower(H)


@pytest.mark.parametrize("type", [Int(32), t2s.UInt(8)])
def test_integers_may_be_summed_in_any_order(type: t2s.Type) -> None:
    S, k, m = rounding(type)
    t2s.lower(S.reorder(k, m))


def test_floats_may_be_summed_in_another_order_on_demand() -> None:
    S, k, m = rounding(Float(32))
    t2s.lower(S.reassociate().reorder(k, m))


def test_the_largest_of_floats_in_any_order() -> None:
    A, S, i = ImageParam(Float(32), 3, name="A"), Func("S"), Var("i")
    k, m = RDom(0, 2, 0, 4, name="k m")
    S[i] = 0
    S[i] = t2s.max(S[i], A[i, k, m])
    t2s.lower(S.bound(i, 0, 3).reorder(k, m))


def test_other_loops_may_go_anywhere() -> None:
    p = product(Float(32))
    t2s.lower(p.C.reorder(p.j, p.i, p.k))


def test_fuse_of_loops_that_are_not_adjacent() -> None:
    p = product()
    p.C.fuse(p.k, p.i, Var("ik"))
    with refused("""
            fuse(k, i, ik) on C: k is not directly inside i
              --> p.C.fuse(p.k, p.i, Var("ik"))
              expected: for i: for k
              given:    loops, outermost first: i, j, k
              hint:     reorder the loops first; the arguments are fuse(inner, outer, fused)
            """):
        t2s.lower(p.C)


def test_fuse_in_the_wrong_direction() -> None:
    p = product()
    p.C.fuse(p.i, p.j, Var("ij"))
    with refused("""
            fuse(i, j, ij) on C: i is not directly inside j
              --> p.C.fuse(p.i, p.j, Var("ij"))
              expected: for j: for i
              given:    loops, outermost first: i, j, k
              hint:     reorder the loops first; the arguments are fuse(inner, outer, fused)
            """):
        t2s.lower(p.C)


def test_fuse_of_a_reduction_with_another_loop() -> None:
    p = product()
    p.C.fuse(p.k, p.j, Var("jk"))
    with refused("""
            fuse(k, j, jk) on C: one of the loops is a reduction, the other is not
              --> p.C.fuse(p.k, p.j, Var("jk"))
              expected: two reduction loops, or two others
              given:    k: reduction of the definition; j: of the definition
            """):
        t2s.lower(p.C)


def test_fuse_of_a_loop_with_itself() -> None:
    p = product()
    with refused("""
            fuse on C names i twice
              --> p.C.fuse(p.i, p.i, Var("f"))
              expected: each name once
              given:    i, i
            """):
        p.C.fuse(p.i, p.i, Var("f"))


def test_unroll_without_constant_bounds() -> None:
    t = triangle()
    t.T.unroll(t.k)
    with refused("""
            unroll(k) on T: loop k has no constant bounds
              --> t.T.unroll(t.k)
              expected: a loop whose minimum and extent are numbers
              given:    bounds of k depend on i
              hint:     hardware has a fixed size; apply the directive to a loop of fixed bounds
            """):
        t2s.lower(t.T)


def test_unroll_twice() -> None:
    p = product()
    p.C.unroll(p.i).unroll(p.j, p.i)
    with refused("""
            unroll(j, i) on C: loop i is unrolled already
              --> p.C.unroll(p.i).unroll(p.j, p.i)
              expected: a loop that still runs in time
              given:    i: one PE each by unroll(i)
              hint:     transform loops before unroll and vload
            """):
        t2s.lower(p.C)


def test_split_after_unroll() -> None:
    p = product()
    p.C.unroll(p.i)
    p.C.split(p.i, p.i, ii, 2)
    with refused("""
            split(i, i, ii, 2) on C: loop i is unrolled already
              --> p.C.split(p.i, p.i, ii, 2)
              expected: a loop that still runs in time
              given:    i: one PE each by unroll(i)
              hint:     transform loops before unroll and vload
            """):
        t2s.lower(p.C)


def test_depth_of_nothing() -> None:
    p = product()
    with refused("""
            the capacity of depth on C has to be a positive integer
              --> p.C.depth(0)
              expected: 1 or more
              given:    0
            """):
        p.C.depth(0)


def test_update_that_does_not_exist() -> None:
    p = product()
    with refused("""
            Func C has no update 1
              --> p.C.update(1)
              expected: an index below 1
              given:    1
            """):
        p.C.update(1)


def test_update_of_a_func_without_updates() -> None:
    f, i = Func("f"), Var("i")
    f[i] = 0
    with refused("""
            Func f has no update 0
              --> f.update()
              expected: a definition such as C[i] += ...
              given:    0
            """):
        f.update()
