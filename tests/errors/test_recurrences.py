"""Recurrences that are not uniform, have no legal order, or do not fit together."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom
from tests.errors.refusal import refused
from tests.func.recurrences import recurrences

i, j, k = t2s.variables("i j k")
r = RDom(0, 3, name="r")
x = ImageParam(Int(32), 1, name="x")


def pair() -> tuple[Func, ...]:
    return recurrences("M D", Int(32))


def test_read_ahead() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i, j])
    D[i, j] = M[i, j + 1] + 1
    with refused("""
            M[i, j + 1] is not computed yet when D[i, j] needs it
              --> D[i, j] = M[i, j + 1] + 1
              expected: an earlier iteration of the loops i, j, outermost first
              given:    one that is later in j
              hint:     the loops are the arguments in their order; another order of the
                        arguments, or a reversed index, may make the recurrence legal
            """):
        t2s.interpret(D, {})


def test_read_ahead_in_the_outer_loop() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = t2s.select(j == 0, 0, M[i + 1, j - 1])
    with refused("""
            M[i + 1, j - 1] is not computed yet when M[i, j] needs it
              --> M[i, j] = t2s.select(j == 0, 0, M[i + 1, j - 1])
              expected: an earlier iteration of the loops i, j, outermost first
              given:    one that is later in i
              hint:     the loops are the arguments in their order; another order of the
                        arguments, or a reversed index, may make the recurrence legal
            """):
        t2s.interpret(M, {})


def test_cycle_within_one_iteration() -> None:
    M, D = pair()
    M[i, j] = D[i, j] + 1
    D[i, j] = t2s.select(i == 0, 0, M[i, j])
    with refused("""
            M[i, j] is not computed yet when D[i, j] needs it
              --> D[i, j] = t2s.select(i == 0, 0, M[i, j])
              expected: no cycle of reads within one iteration
              given:    M reads D reads M
              hint:     one of these reads has to be of an earlier iteration
            """):
        t2s.interpret(D, {})


def test_accumulation_without_an_initial_value() -> None:
    (M,) = recurrences("M", Int(32))
    M[i] += x[i]
    with refused("""
            M[i] is not computed yet when M[i] needs it
              --> M[i] += x[i]
              expected: no cycle of reads within one iteration
              given:    M reads M
              hint:     an accumulation needs an initial value: M[i] = 0 before M[i] += ...
            """):
        t2s.interpret(M, {})


def test_read_that_is_not_uniform() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[2 * i - 2, j])
    D[i, j] = M[i, j] + 1
    with refused("""
            D[2 * i - 2, j] is not at a constant distance from M[i, j]
              --> M[i, j] = t2s.select(i == 0, 0, D[2 * i - 2, j])
              expected: each subscript is its argument plus or minus a constant, as in D[i - 1, j]
              given:    2 * i - 2, j
              hint:     M and D are members of one recurrence; carry the value along with one more
                        Func, as in P[i, j] = t2s.select(j == 0, x[i], P[i, j - 1])
            """):
        t2s.interpret(D, {})


def test_read_with_exchanged_subscripts() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = t2s.select(i == 0, 0, M[j, i - 1])
    with refused("""
            M[j, i - 1] is not at a constant distance from M[i, j]
              --> M[i, j] = t2s.select(i == 0, 0, M[j, i - 1])
              expected: each subscript is its argument plus or minus a constant, as in M[i - 1, j]
              given:    j, i - 1
              hint:     M is a member of one recurrence; carry the value along with one more
                        Func, as in P[i, j] = t2s.select(j == 0, x[i], P[i, j - 1])
            """):
        t2s.interpret(M, {})


def test_read_of_one_lane() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i - 1])
    D[i] = M[i, 0]
    with refused("""
            M[i, 0] is not at a constant distance from D[i]
              --> D[i] = M[i, 0]
              expected: each subscript is its argument plus or minus a constant, and an RDom over j,
                        as in M[i - 1, jr]
              given:    i, 0
              hint:     D and M are members of one recurrence; carry the value along with one more
                        Func, as in P[i, j] = t2s.select(j == 0, x[i], P[i, j - 1])
            """):
        t2s.interpret(D, {})


def test_read_of_another_lane() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, D[i], M[i - 1, j + 1])
    D[i] = 0
    D[i] += M[i, r]
    with refused("""
            M[i - 1, j + 1] is not at a constant distance from M[i, j]
              --> M[i, j] = t2s.select(i == 0, D[i], M[i - 1, j + 1])
              expected: each subscript is its argument plus or minus a constant, and j itself, as in
                        M[i - 1, j]
              given:    i - 1, j + 1
              hint:     M is a member of one recurrence; carry the value along with one more
                        Func, as in P[i, j] = t2s.select(j == 0, x[i], P[i, j - 1])
            """):
        t2s.interpret(D, {})


def test_members_with_different_arguments() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[j, i - 1])
    D[j, i] = M[i, j] + 1
    with refused("""
            M and D need each other, but have different arguments
              --> D[j, i] = M[i, j] + 1
              expected: i, j, in this order (vectors may have one more, at the end)
              given:    j, i
              note:     M is defined here
              --> M[i, j] = t2s.select(i == 0, 0, D[j, i - 1])
            """):
        t2s.interpret(D, {})


def test_updates_that_need_each_other() -> None:
    f, g = t2s.funcs("f g")
    f[i], g[i] = 0, 0
    f[i] += g[i]
    g[i] += f[i]
    with refused("""
            the update of g does not fit into a recurrence
              --> g[i] += f[i]
              expected: no update, or one reduction over an argument that only some members have:
                        g[i] += ...
              given:    a recurrence of g, f, 1 update of g
              hint:     write the steps of the recurrence with t2s.select, in the initial definition
            """):
        t2s.lower(f)


def test_reduction_that_is_not_over_the_lanes() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i - 1, j])
    D[i, j] = 0
    D[i, j] += M[i, j] * x[r]
    with refused("""
            the update of D does not fit into a recurrence
              --> D[i, j] += M[i, j] * x[r]
              expected: no update, or one reduction over an argument that only some members have:
                        D[i, j] += ...
              given:    a recurrence of M, D, 1 update of D over r
              hint:     write the steps of the recurrence with t2s.select, in the initial definition
            """):
        t2s.interpret(D, {})


def test_reduction_over_a_part_of_the_lanes() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i - 1])
    D[i] = 0
    D[i] += M[i, r]
    M.bound(j, 0, 4)
    with refused("""
            the RDom r of D is not the range of j
              --> D[i] += M[i, r]
              expected: r from 0, 4 values
              given:    r from 0, 3 values
              hint:     a member of a recurrence reduces over all lanes j
            """):
        t2s.interpret(D.bound(i, 0, 4), {})


def test_lanes_with_bounds_that_are_not_constant() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i - 1])
    D[i] = 0
    D[i] += M[i, r]
    M.bound(j, i, 3)
    with refused("""
            bound(j) on M is not a constant
              --> M.bound(j, i, 3)
              expected: numbers: j is an argument of some members only
              given:    j from i, 3 values
            """):
        t2s.interpret(D.bound(i, 0, 4), {})


def test_bounds_of_two_members_that_differ() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i - 1, j])
    D[i, j] = M[i, j] + 1
    M.bound(i, 0, 3)
    D.bound(i, 0, 4)
    with refused("""
            bound(i) on D and on M differ, but they are computed in the same loops
              --> D.bound(i, 0, 4)
              expected: i from 0, 3 values
              given:    i from 0, 4 values
              note:     M is bounded here
              --> M.bound(i, 0, 3)
              hint:     a Func whose arguments have other names has loops of its own
            """):
        t2s.interpret(D, {})


def test_read_outside_of_the_bounds() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = M[i - 1, j] + 1
    M.bound(i, -3, 3).bound(j, 0, 3)
    with refused("""
            M[i - 1, j] is outside of the bounds of M
              --> M[i, j] = M[i - 1, j] + 1
              expected: i from -3 to -1
              given:    -4 to -2
              hint:     widen M.bound(i, ...), or guard the access with t2s.select
            """):
        t2s.interpret(M, {})


def test_read_outside_of_a_triangular_recurrence() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = t2s.select(j == 0, 0, M[i, j - 1] + 1)
    M.bound(i, 0, 2).bound(j, i, 3 - i)
    with refused("""
            M[i, j - 1] is outside of the bounds of M
              --> M[i, j] = t2s.select(j == 0, 0, M[i, j - 1] + 1)
              expected: j from i, 3 - i values
              given:    i=1, j=0
              hint:     widen M.bound(...), or guard the access with t2s.select
            """):
        t2s.interpret(M, {})


def test_wrong_number_of_dimensions_before_the_definition() -> None:
    M, D = pair()
    M[i, j] = t2s.select(i == 0, 0, D[i - 1])
    D[i, j] = M[i, j]
    with refused("""
            Func D has 2 dimensions
              --> M[i, j] = t2s.select(i == 0, 0, D[i - 1])
              expected: 2 subscripts
              given:    1: D[i - 1]
              note:     D is defined here
              --> D[i, j] = M[i, j]
            """):
        t2s.interpret(M, {})


def test_member_without_definition() -> None:
    M, _ = pair()
    undefined = Func("undefined", type=Int(32))
    M[i] = undefined[i - 1]
    with refused("""
            Func undefined has no definition
              --> M[i] = undefined[i - 1]
              expected: for example undefined[i, j] = ...
              note:     Func undefined was made here
              --> undefined = Func("undefined", type=Int(32))
              hint:     define undefined before M is lowered
            """):
        t2s.interpret(M, {})
