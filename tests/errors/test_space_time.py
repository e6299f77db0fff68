"""Space-time transforms that are refused."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom
from tests.errors.refusal import refused
from tests.func.recurrences import recurrences

p, s, t, i, j, k = t2s.variables("p s t i j k")
q = RDom(0, 3, name="q")
x, w = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="w")
A = ImageParam(Int(32), 2, name="A")


def convolution() -> Func:
    """Z[i] = sum of x[i + q] * w[q], for i of extent 8 and q of extent 3."""
    Z = Func("Z")
    Z[i] = 0
    Z[i] += x[i + q] * w[q]
    return Z.bound(i, 0, 8)


def grid() -> Func:
    """S[i, j] = S[i - 1, j] + S[i, j - 1] + A[i, j] on 4 x 4 elements."""
    (S,) = recurrences("S", Int(32))
    above = t2s.select(i == 0, 0, S[i - 1, j])
    left = t2s.select(j == 0, 0, S[i, j - 1])
    S[i, j] = above + left + A[i, j]
    return S.bound(i, 0, 4).bound(j, 0, 4)


def test_two_iterations_on_one_pe_at_one_time() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: q, t: q})
    with refused("""
            space_time_transform([i, q], {p: q, t: q}) on Z: two iterations fall on one PE at one
                        time
              --> Z.space_time_transform([i, q], {p: q, t: q})
              expected: at most one iteration for each PE and time
              given:    (i=1, q=0) and (i=0, q=0)
              hint:     t = i + q would be legal
            """):
        Z.lower()


def test_two_iterations_on_one_pe_in_a_diagonal() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: i + q, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: i + q, t: i + q}) on Z: two iterations fall on one PE
                        at one time
              --> Z.space_time_transform([i, q], {p: i + q, t: i + q})
              expected: at most one iteration for each PE and time
              given:    (i=6, q=1) and (i=7, q=0)
              hint:     t = q would be legal
            """):
        Z.lower()


def test_time_that_runs_against_a_recurrence() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: i, t: i - q})
    with refused("""
            space_time_transform([i, q], {p: i, t: i - q}) on Z: Z would need Z[i, q - 1] before
                        it is there
              --> Z.space_time_transform([i, q], {p: i, t: i - q})
              expected: at least one cycle from computing a value to using it
              given:    -1 cycle of t in its PE
              note:     Z[i, q - 1] is read here
              --> Z[i] += x[i + q] * w[q]
              hint:     t = q would be legal
            """):
        Z.lower()


def test_value_that_another_pe_needs_at_once() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: q, t: i})
    with refused("""
            space_time_transform([i, q], {p: q, t: i}) on Z: Z would need Z[i, q - 1] before it is
                        there
              --> Z.space_time_transform([i, q], {p: q, t: i})
              expected: at least one cycle from computing a value to using it
              given:    0 cycles of t to another PE (p by 1)
              note:     Z[i, q - 1] is read here
              --> Z[i] += x[i + q] * w[q]
              hint:     t = i + q would be legal
            """):
        Z.lower()


def test_value_that_would_pass_two_pes_in_a_cycle() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: 2 * q, t: q + i})
    with refused("""
            space_time_transform([i, q], {p: 2 * q, t: q + i}) on Z: Z[i, q - 1] would have to
                        pass 2 PEs in 1 cycle
              --> Z.space_time_transform([i, q], {p: 2 * q, t: q + i})
              expected: at most one PE for each cycle
              given:    1 cycle of t to another PE (p by 2)
              note:     Z[i, q - 1] is read here
              --> Z[i] += x[i + q] * w[q]
              hint:     t = i + 2 * q would be legal
            """):
        Z.lower()


def test_two_dimensional_schedule_that_is_too_fast() -> None:
    S = grid()
    S.space_time_transform([i, j], {p: i, t: j})
    with refused("""
            space_time_transform([i, j], {p: i, t: j}) on S: S would need S[i - 1, j] before it is
                        there
              --> S.space_time_transform([i, j], {p: i, t: j})
              expected: at least one cycle from computing a value to using it
              given:    0 cycles of t to another PE (p by 1)
              note:     S[i - 1, j] is read here
              --> above = t2s.select(i == 0, 0, S[i - 1, j])
              hint:     t = i + j would be legal
            """):
        S.lower()


def test_skew_that_runs_against_a_recurrence() -> None:
    S = grid()
    S.space_time_transform([i], [-1])
    with refused("""
            space_time_transform([i], [-1]) on S: S would need S[i - 1, j] before it is there
              --> S.space_time_transform([i], [-1])
              expected: at least one cycle from computing a value to using it
              given:    -1 cycle of j to another PE (i by 1)
              note:     S[i - 1, j] is read here
              --> above = t2s.select(i == 0, 0, S[i - 1, j])
              hint:     the coefficients [1] would be legal
            """):
        S.lower()


def test_product_of_loops() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: q, t: i * q})
    with refused("""
            space_time_transform([i, q], {p: q, t: i * q}): t is not a sum of the loops
              --> Z.space_time_transform([i, q], {p: q, t: i * q})
              expected: an affine expression of i, q
              given:    i * q
              hint:     multiply loops by integers only
            """):
        Z.lower()


def test_loop_that_is_not_transformed() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: q, t: i + s})
    with refused("""
            space_time_transform([i, q], {p: q, t: i + s}): t is not a sum of the loops
              --> Z.space_time_transform([i, q], {p: q, t: i + s})
              expected: an affine expression of i, q
              given:    i + s
              hint:     s is not one of the loops that are transformed
            """):
        Z.lower()


def test_loop_that_there_is_not() -> None:
    Z = convolution()
    Z.space_time_transform([i, s], {p: i, t: s + i})
    with refused("""
            space_time_transform([i, s], {p: i, t: s + i}) on Z: Z has no loop s
              --> Z.space_time_transform([i, s], {p: i, t: s + i})
              expected: one of its loops, outermost first: i, q
              given:    s
              hint:     loops appear by split, tile and fuse, and in an isolated Func only if the
                        function had them when it was isolated
            """):
        Z.lower()


def test_new_loop_with_the_name_of_another() -> None:
    Z = convolution()
    Z.split(i, i, j, 2)
    Z.space_time_transform([i, q], {j: i, t: i + q})
    with refused("""
            space_time_transform([i, q], {j: i, t: i + q}) on Z: there is already a loop j
              --> Z.space_time_transform([i, q], {j: i, t: i + q})
              expected: a new Var for each new loop
              given:    j
            """):
        Z.lower()


def test_arguments_of_no_known_form() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z cannot read its arguments
              --> Z.space_time_transform([i, q], 3)
              expected: space_time_transform(i, j), ([i, j], [1, 1]), ([i, j], {p: i, t: i + j})
                        or ([i, j], [p, t], [[1, 0], [1, 1]])
              given:    [i, q], 3
            """):
        Z.space_time_transform([i, q], 3)


def test_empty_mapping() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z cannot read its arguments
              --> Z.space_time_transform([i, q], {})
              expected: space_time_transform(i, j), ([i, j], [1, 1]), ([i, j], {p: i, t: i + j})
                        or ([i, j], [p, t], [[1, 0], [1, 1]])
              given:    [i, q], {}
            """):
        Z.space_time_transform([i, q], {})


def test_new_loop_that_is_a_name() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z cannot read its arguments
              --> Z.space_time_transform([i, q], {"p": i, t: q})
              expected: space_time_transform(i, j), ([i, j], [1, 1]), ([i, j], {p: i, t: i + j})
                        or ([i, j], [p, t], [[1, 0], [1, 1]])
              given:    'p' as a new loop
            """):
        Z.space_time_transform([i, q], {"p": i, t: q})


def test_time_only() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z needs one loop in time and at least one in space
              --> Z.space_time_transform([i, q], {t: i + q})
              expected: 2 new loops, time last, for at least as many old ones
              given:    2 loops to {t: i + q}
              hint:     fuse the loops, or reorder them, to change the order in one PE
            """):
        Z.space_time_transform([i, q], {t: i + q})


def test_more_new_loops_than_old_ones() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z needs one loop in time and at least one in space
              --> Z.space_time_transform([i, q], {p: i, s: q, t: i + q})
              expected: 2 new loops, time last, for at least as many old ones
              given:    2 loops to {p: i, s: q, t: i + q}
            """):
        Z.space_time_transform([i, q], {p: i, s: q, t: i + q})


def test_matrix_with_a_row_missing() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z needs one row for each new loop
              --> Z.space_time_transform([i, q], [p, t], [[1, 0]])
              expected: 2 rows of 2 integers, the schedule last
              given:    [[1, 0]]
            """):
        Z.space_time_transform([i, q], [p, t], [[1, 0]])


def test_matrix_with_a_number_missing() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z needs one integer for each loop
              --> Z.space_time_transform([i, q], [p, t], [[1, 0], [1]])
              expected: 2 coefficients
              given:    [1]
            """):
        Z.space_time_transform([i, q], [p, t], [[1, 0], [1]])


def test_too_many_coefficients() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z needs one integer for each loop
              --> Z.space_time_transform([i], [1, 2])
              expected: 1 coefficient
              given:    [1, 2]
            """):
        Z.space_time_transform([i], [1, 2])


def test_loop_named_twice() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z names i twice
              --> Z.space_time_transform([i, i], [1, 2])
              expected: each loop once
              given:    i, i
            """):
        Z.space_time_transform([i, i], [1, 2])


def test_no_loop() -> None:
    Z = convolution()
    with refused("""
            space_time_transform on Z needs a loop
              --> Z.space_time_transform()
              expected: one or more Var or RDom objects
            """):
        Z.space_time_transform()


def test_no_loop_left_in_time() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], [1, 1])
    with refused("""
            space_time_transform([i, q], [1, 1]) on Z: no loop is left in time
              --> Z.space_time_transform([i, q], [1, 1])
              expected: a loop in time that the schedule can skew
              hint:     name fewer loops, or give each new loop: space_time_transform([i, j], {p:
                        i, t: i + j})
            """):
        Z.lower()


def test_loop_that_is_unrolled_already() -> None:
    Z = convolution()
    Z.unroll(i)
    Z.space_time_transform([i, q], {p: i, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: i, t: i + q}) on Z: loop i is unrolled already
              --> Z.space_time_transform([i, q], {p: i, t: i + q})
              expected: a loop that still runs in time
              given:    i: one PE each by unroll(i)
              hint:     transform loops before unroll and vload
            """):
        Z.lower()


def test_loop_that_is_lanes_already() -> None:
    Z = convolution()
    Z.vload(x, w)
    Z.space_time_transform([i, q], {p: i, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: i, t: i + q}) on Z: loop q has become the lanes of
                        vectors already
              --> Z.space_time_transform([i, q], {p: i, t: i + q})
              expected: a loop that still runs in time
              given:    q: lanes of vectors by vload(x, w)
              hint:     transform loops before unroll and vload
            """):
        Z.lower()


def test_operand_that_is_isolated_already() -> None:
    Z = convolution()
    Z.isolate_producer(x, Func("x_loader"))
    Z.space_time_transform([i, q], {p: i, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: i, t: i + q}) on Z: parts of Z are isolated already
              --> Z.space_time_transform([i, q], {p: i, t: i + q})
              expected: the transformation before isolate_producer and isolate_consumer
              given:    isolated: x_loader
              hint:     the isolated functions take over the loops as they are then
            """):
        Z.lower()


def test_results_that_are_isolated_already() -> None:
    Z = convolution()
    Z.isolate_consumer(Func("unloader"))
    Z.space_time_transform([i, q], {p: i, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: i, t: i + q}) on Z: parts of Z are isolated already
              --> Z.space_time_transform([i, q], {p: i, t: i + q})
              expected: the transformation before isolate_producer and isolate_consumer
              given:    isolated: the results
              hint:     the isolated functions take over the loops as they are then
            """):
        Z.lower()


def test_loader() -> None:
    Z = convolution()
    x_loader = Func("x_loader")
    Z.isolate_producer(x, x_loader)
    x_loader.space_time_transform([i, q], {p: i, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: i, t: i + q}) on x_loader: x_loader only passes
                        values on
              --> x_loader.space_time_transform([i, q], {p: i, t: i + q})
              expected: the function that computes
              hint:     write it on Z before isolating
            """):
        Z.lower()


def test_second_transformation() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: i, t: i + q})
    Z.space_time_transform([p], [1])
    with refused("""
            space_time_transform([p], [1]) on Z: Z has a schedule already
              --> Z.space_time_transform([p], [1])
              expected: one space-time transform
              given:    time is t
              hint:     write both transformations as one: the new loops over the old ones
            """):
        Z.lower()


def test_split_of_time() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: i, t: q})
    Z.split(t, t, s, 3)
    with refused("""
            split(t, t, s, 3) on Z: t is the time of a schedule
              --> Z.split(t, t, s, 3)
              expected: another loop
              given:    t: time of space_time_transform([i, q], {p: i, t: q})
              hint:     transform loops before space_time_transform
            """):
        Z.lower()


def test_unrolled_time() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: i, t: i + q})
    Z.unroll(t)
    with refused("""
            unroll(t) on Z: t is the time of a schedule
              --> Z.unroll(t)
              expected: another loop
              given:    t: time of space_time_transform([i, q], {p: i, t: i + q})
              hint:     transform loops before space_time_transform
            """):
        Z.lower()


def test_lanes_of_time() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: i, t: i + q})
    Z.vload(x)
    with refused("""
            vload(x) on Z: t is the time of a schedule
              --> Z.vload(x)
              expected: another loop
              given:    t: time of space_time_transform([i, q], {p: i, t: i + q})
              hint:     transform loops before space_time_transform
            """):
        Z.lower()


def test_inner_loop_whose_bounds_are_transformed() -> None:
    T, below = Func("T"), RDom(0, i + 1, name="below")
    T[i, j] = 0
    T[i, j] += x[below]
    T.bound(i, 0, 4).bound(j, 0, 4)
    T.space_time_transform([i, j], {p: j, t: i + j})
    with refused("""
            space_time_transform([i, j], {p: j, t: i + j}) on T: the bounds of below depend on i
              --> T.space_time_transform([i, j], {p: j, t: i + j})
              expected: below among the loops that are transformed
              given:    below from 0 to i
              hint:     add below to the loops, and to the sum of t
            """):
        T.lower()


def test_outer_loop_whose_bounds_are_transformed() -> None:
    """It was islpy's own error."""
    T, B, q = Func("T"), ImageParam(Int(32), 2, name="B"), RDom(0, 3, name="q")
    T[i, j] = 0
    T[i, j] += B[i, q]
    T.bound(i, 0, 4).bound(j, i, 4 - i)
    T.space_time_transform([i, q], {p: q, t: i + q})
    with refused("""
            space_time_transform([i, q], {p: q, t: i + q}) on T: the bounds of j depend on i
              --> T.space_time_transform([i, q], {p: q, t: i + q})
              expected: j among the loops that are transformed
              given:    j from i to 3
              hint:     add j to the loops, and to the sum of t
            """):
        T.lower()


def test_forward_of_a_value_that_all_pes_need_at_once() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: q, t: q + i})
    x_loader = Func("x_loader")
    Z.isolate_producer(x, x_loader)
    Z.forward(x_loader, p)
    with refused("""
            forward(x_loader, p) on Z: no neighbor along p has used the value of x before
              --> Z.forward(x_loader, p)
              expected: a PE next to it along p that needs the same value 1 to 64 cycles earlier
              given:    x[t]
              hint:     a value that all PEs need at the same time comes from the producer; choose
                        a schedule in which it moves
            """):
        Z.lower()


def test_forward_along_time() -> None:
    Z = convolution()
    Z.space_time_transform([i, q], {p: q, t: q + i})
    x_loader = Func("x_loader")
    Z.isolate_producer(x, x_loader)
    Z.forward(x_loader, t)
    with refused("""
            forward(x_loader, t) on Z: loop t is not unrolled
              --> Z.forward(x_loader, t)
              expected: an unrolled loop: values are passed between PEs
              given:    t runs in time
              hint:     write unroll(t) first
            """):
        Z.lower()
