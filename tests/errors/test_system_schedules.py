"""Schedules and lanes of systems of recurrences that are refused."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom
from tests.errors.refusal import refused
from tests.func.recurrences import recurrences

p, s, t, i, j, k = t2s.variables("p s t i j k")
q = RDom(0, 3, name="q")
x, w = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="w")
A = ImageParam(Int(32), 2, name="A")


def grid() -> Func:
    """S[i, j] = S[i - 1, j] + S[i, j - 1] + A[i, j] on 4 x 4 elements."""
    (S,) = recurrences("S", Int(32))
    above = t2s.select(i == 0, 0, S[i - 1, j])
    left = t2s.select(j == 0, 0, S[i, j - 1])
    S[i, j] = above + left + A[i, j]
    return S.bound(i, 0, 4).bound(j, 0, 4)


def test_order_in_which_a_value_comes_too_late() -> None:
    (S,) = recurrences("S", Int(32))
    S[i, j] = t2s.select((j == 3) | (i == 0), 0, S[i - 1, j + 1]) + A[i, j]
    S.bound(i, 0, 4).bound(j, 0, 4)
    S.reorder(i, j)
    with refused("""
            reorder(i, j) on S: S needs S[i - 1, j + 1] before it is computed
              --> S.reorder(i, j)
              expected: an order of the loops in which every value is computed before it is used
              given:    it is computed 1 iteration of j later
              note:     S[i - 1, j + 1] is read here
              --> S[i, j] = t2s.select((j == 3) | (i == 0), 0, S[i - 1, j + 1]) + A[i, j]
              hint:     put the loops along which it depends on earlier values outside, in the
                        order of the definition
            """):
        S.lower()


def test_directives_on_two_members() -> None:
    M, D = recurrences("M D", Int(32))
    M[i] = t2s.select(i == 0, 0, D[i - 1]) + x[i]
    D[i] = M[i] + 1
    D.bound(i, 0, 4)
    M.split(i, i, j, 2)
    D.unroll(i)
    with refused("""
            unroll(i) on D: M has directives too, and both are computed in one loop nest
              --> D.unroll(i)
              expected: the directives of M, D on one of them
              note:     split(i, i, j, 2) on M
              --> M.split(i, i, j, 2)
              hint:     write them all on M
            """):
        D.lower()


def test_projection_with_directives() -> None:
    (M,), out = recurrences("M", Int(32)), Func("out")
    M[j, i] = t2s.select(i == 0, 0, M[j, i - 1]) + A[j, i]
    out[j] = M[j, 3]
    M.bound(i, 0, 4)
    out.bound(j, 0, 2)
    out.unroll(j)
    with refused("""
            unroll(j) on out: out only takes values out of the nest of M
              --> out.unroll(j)
              expected: isolate_consumer or isolate_consumer_chain on out
              hint:     write unroll(j) on M
            """):
        out.lower()


def test_lanes_that_depend_on_one_another() -> None:
    S = grid()
    S.vload(A).vstore(S)
    with refused("""
            vload(A) on S: S[i, j - 1] in S is in another lane of j
              --> S.vload(A).vstore(S)
              expected: a loop along which S does not depend on itself
              given:    j - 1 of j, read at j
              note:     S[i, j - 1] is read here
              --> left = t2s.select(j == 0, 0, S[i, j - 1])
              hint:     put another loop innermost, with reorder
            """):
        S.lower()


def test_lanes_that_use_their_number() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = t2s.select(i == 0, 0, M[i - 1, j]) + A[i, j] + j
    M.bound(i, 0, 4).bound(j, 0, 4).vload(A).vstore(M)
    with refused("""
            lanes j on M: M uses the index j itself
              --> M[i, j] = t2s.select(i == 0, 0, M[i - 1, j]) + A[i, j] + j
              expected: an index that occurs in subscripts only: all lanes do the same
              given:    select(i == 0, 0, M[i - 1, j]) + A + j
              hint:     read it from an input array, as in index[j]
            """):
        M.lower()


def test_lanes_that_are_not_stored() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = t2s.select(i == 0, 0, M[i - 1, j]) + A[i, j]
    M.bound(i, 0, 4).bound(j, 0, 4)
    M.vload(A)
    with refused("""
            vload(A) on M: the results are vectors along j and are not stored as vectors
              --> M.vload(A)
              expected: M.vstore(M) as well
              given:    j innermost, which is not a reduction
              hint:     a reduction loop innermost would give single results, by dot products
            """):
        M.lower()


def test_lanes_of_an_array_that_is_not_contiguous() -> None:
    (M,) = recurrences("M", Int(32))
    M[i, j] = t2s.select(i == 0, 0, M[i - 1, j]) + A[j, i]
    M.bound(i, 0, 4).bound(j, 0, 4)
    M.vload(A).vstore(M)
    with refused("""
            vload(A) on M: A is not contiguous along j
              --> M.vload(A).vstore(M)
              expected: j in the last subscript only, with factor 1
              given:    A[j, i]
              hint:     arrays are row-major: store it transposed, put another loop innermost,
                        or let the host order it
            """):
        M.lower()


def test_argument_for_lanes_that_is_not_contiguous() -> None:
    wide, total = recurrences("wide total", Int(32))
    wide[i, k] = A[k, i] + t2s.select(i == 0, 0, total[i - 1])
    total[i] = 0
    total[i] += wide[i, q]
    wide.bound(i, 0, 4).bound(k, 0, 3)
    with refused("""
            lanes k on total: A is not contiguous along k
              --> wide[i, k] = A[k, i] + t2s.select(i == 0, 0, total[i - 1])
              expected: k in the last subscript only, with factor 1
              given:    A[k, i]
              hint:     arrays are row-major: store it transposed, put another loop innermost,
                        or let the host order it
            """):
        total.lower()


def test_read_outside_for_some_data() -> None:
    (M,) = recurrences("M", Int(32))
    M[i] = t2s.select(x[i] > 0, 0, M[i - 1])
    M.bound(i, 0, 4)
    with refused("""
            M[i - 1] is outside of the bounds of M
              --> M[i] = t2s.select(x[i] > 0, 0, M[i - 1])
              expected: i from 0 to 3
              given:    -1 to 2
              hint:     widen M.bound(i, ...), or guard the access with t2s.select
            """):
        M.lower()
