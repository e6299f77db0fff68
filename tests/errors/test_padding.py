"""Splits that do not divide and cannot be padded."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom
from tests.errors.designs import product
from tests.errors.refusal import refused

i, j, ii, jj, kk, i2, f = t2s.variables("i j ii jj kk i2 f")


def test_split_of_an_inner_part() -> None:
    p = product()
    p.C.split(p.k, p.k, kk, 4).split(kk, kk, i2, 3)
    with refused("""
            split(kk, kk, i2, 3) on C: kk cannot be padded, because its last iteration is followed
                        by the next one of another loop
              --> p.C.split(p.k, p.k, kk, 4).split(kk, kk, i2, 3)
              expected: a divisor of 4: 1, 2, 4
              given:    kk: inner part of k by split(k, k, kk, 4)
              hint:     only the outermost part of a dimension has a ragged end: split that part,
                        or split the dimension in the other order
            """):
        p.C.lower()


def test_split_of_an_inner_part_with_one_outer_iteration() -> None:
    p = product()
    p.C.split(p.k, p.k, kk, 8).tile(p.j, kk, jj, i2, 3, 3)
    with refused("""
            tile(j, kk, jj, i2, 3, 3) on C: kk cannot be padded, because its last iteration is
                        followed by the next one of another loop
              --> p.C.split(p.k, p.k, kk, 8).tile(p.j, kk, jj, i2, 3, 3)
              expected: a divisor of 8: 1, 2, 4, 8
              given:    kk: inner part of k by split(k, k, kk, 8)
              hint:     only the outermost part of a dimension has a ragged end: split that part,
                        or split the dimension in the other order
            """):
        p.C.lower()


def test_padding_after_isolating() -> None:
    p, load = product(), Func("load")
    p.C.isolate_producer(p.A, load)
    p.C.split(p.k, p.k, kk, 3)
    with refused("""
            split(k, k, kk, 3) on C: load and C are not padded in the same way
              --> p.C.split(p.k, p.k, kk, 3)
              expected: the same iterations in load
              given:    load with no padding, C with k: 8 padded to 9; only one of them has the
                        iteration i=3, j=5, k=8
              note:     load was made here
              --> p.C.isolate_producer(p.A, load)
              hint:     write the split on C before isolating from it
            """):
        p.C.lower()


def test_padding_of_a_producer() -> None:
    p, load = product(), Func("load")
    p.C.isolate_producer(p.A, load)
    load.split(p.j, p.j, jj, 4)
    with refused("""
            split(j, j, jj, 4) on load: load and C are not padded in the same way
              --> load.split(p.j, p.j, jj, 4)
              expected: the same iterations in C
              given:    load with j: 6 padded to 8, C with no padding; only one of them has the
                        iteration i=3, j=7, k=7
              note:     C was made here
              --> designs.py: C[i, j] += A[i, k] * B[k, j]
              hint:     write the split on C before isolating from it
            """):
        p.C.lower()


def test_padding_of_a_consumer() -> None:
    p, save = product(), Func("save")
    p.C.isolate_consumer(save)
    save.split(p.i, p.i, ii, 3)
    with refused("""
            split(i, i, ii, 3) on save: C and save are not padded in the same way
              --> save.split(p.i, p.i, ii, 3)
              expected: the same iterations in C
              given:    C with no padding, save with i: 4 padded to 6; only one of them has the
                        iteration i=5, j=5
              note:     C was made here
              --> designs.py: C[i, j] += A[i, k] * B[k, j]
              hint:     write the split on C before isolating from it
            """):
        p.C.lower()


def test_padding_of_both_ends_by_different_amounts() -> None:
    p, load = product(), Func("load")
    p.C.isolate_producer(p.A, load)
    p.C.split(p.k, p.k, kk, 3)
    load.split(p.k, p.k, kk, 5)
    with refused("""
            split(k, k, kk, 3) on C: load and C are not padded in the same way
              --> p.C.split(p.k, p.k, kk, 3)
              expected: the same iterations in load
              given:    load with k: 8 padded to 10, C with k: 8 padded to 9; only one of them has
                        the iteration i=3, j=5, k=9
              note:     load was made here
              --> p.C.isolate_producer(p.A, load)
              hint:     write the split on C before isolating from it
            """):
        p.C.lower()


def test_reduction_that_is_empty_in_a_padded_iteration() -> None:
    A, T = ImageParam(Int(32), 1, name="A"), Func("T")
    k = RDom(0, 4 - i, name="k")
    T[i] = 0
    T[i] += A[k]
    T.bound(i, 0, 4).split(i, i, ii, 3)
    with refused("""
            split(i, i, ii, 3) on T: the reduction over k would be empty in the padded iteration
                        i=1, ii=1
              --> T.bound(i, 0, 4).split(i, i, ii, 3)
              expected: a divisor of 4: 1, 2, 4
              given:    k from 0 to 4 - (i * 3 + ii) - 1
              hint:     give the reduction fixed bounds, and guard its term with t2s.select
            """):
        T.lower()


def test_recurrence_with_a_bound_that_counts_down_past_zero() -> None:
    F = Func("F", type=Int(32))
    F[i, j] = t2s.select(j == 0, 1, F[i, j - 1] + i)
    F.bound(i, -2, 5).bound(j, 0, 3 - i)
    F.split(i, i, ii, 4)
    with refused("""
            split(i, i, ii, 4) on F: the loop j would have fewer iterations than none in the padded
                        iteration i=1, ii=2
              --> F.split(i, i, ii, 4)
              expected: a divisor of 5: 1, 5
              given:    j from 0 to 3 - (i * 4 + ii - 2) - 1
              hint:     the loops of a recurrence are padded only as far as the bounds inside of
                        them go
            """):
        F.lower()


def test_more_iterations_than_an_index_can_count() -> None:
    p = product()
    p.C.split(p.i, p.i, ii, 2**31)
    with refused("""
            split(i, i, ii, 2147483648) on C pads to more iterations than an index can count
              --> p.C.split(p.i, p.i, ii, 2**31)
              expected: at most 2147483647
              given:    2147483648
              hint:     choose a smaller factor
            """):
        p.C.lower()


def test_gathering_from_places_that_are_padded() -> None:
    x, y = ImageParam(Int(32), 1, name="x"), Func("y")
    drain, unload = t2s.funcs("drain unload")
    y[i] = x[i] + 1
    y.bound(i, 0, 1).split(i, i, ii, 4).split(i, i, jj, 3)
    y.space_time_transform(jj).space_time_transform([i, ii], {kk: i, f: i + ii})
    y.isolate_consumer_chain(drain, unload)
    drain.gather(y, jj)
    with refused("""
            gather(y, jj) on drain: which iterations there are depends on jj
              --> drain.gather(y, jj)
              expected: the same iterations in all PEs along jj
              given:    only the iterations with jj == 0
              hint:     split by factors that divide, so that nothing is padded, or transform other
                        loops
            """):
        y.lower()


def test_vectors_of_lanes_that_are_padded() -> None:
    x, y, t = ImageParam(Int(32), 2, name="x"), Func("y"), t2s.Var("t")
    y[i, j] = x[i, j] + 1
    y.bound(i, 0, 2).bound(j, 0, 3).split(j, j, jj, 2)
    y.space_time_transform([j, i], {kk: i, t: j + i}).vload(x)
    with refused("""
            vload(x) on y: which iterations there are depends on jj
              --> y.space_time_transform([j, i], {kk: i, t: j + i}).vload(x)
              expected: iterations in which all lanes along jj take part
              given:    only the iterations with 2 * kk + 2 >= 2 * t + jj
              hint:     split by factors that divide, so that nothing is padded, or transform other
                        loops
            """):
        y.lower()
