"""vload and vstore where they cannot be obeyed."""

from __future__ import annotations

import t2s
from t2s import Func, ImageParam, Int, RDom, Var
from tests.errors.designs import product, triangle
from tests.errors.refusal import refused

i, j = Var("i"), Var("j")
A, B = ImageParam(Int(32), 1, name="A"), ImageParam(Int(32), 1, name="B")


def summed() -> Func:
    """``f[i] = A[i] + B[i]`` for 8 values of i."""
    f = Func("f")
    f[i] = A[i] + B[i]
    return f.bound(i, 0, 8)


def test_operand_that_is_not_contiguous() -> None:
    p = product()
    p.C.vload(p.A, p.B)
    with refused("""
            vload(A, B) on C: B is not contiguous along k
              --> p.C.vload(p.A, p.B)
              expected: k in the last subscript only, with factor 1
              given:    B[k, j]
              hint:     arrays are row-major: store it transposed, put another loop innermost, or
                        let the host order it
            """):
        t2s.lower(p.C)


def test_results_that_are_not_contiguous() -> None:
    f, j = Func("f"), Var("j")
    f[i, j] = A[i]
    f.bound(i, 0, 4).bound(j, 0, 8).reorder(i, j).vload(A).vstore(f)
    with refused("""
            vload(A) on f: f is not contiguous along i
              --> f.bound(i, 0, 4).bound(j, 0, 8).reorder(i, j).vload(A).vstore(f)
              expected: i in the last subscript only, with factor 1
              given:    f[i, j]
              hint:     arrays are row-major: store it transposed, put another loop innermost, or
                        let the host order it
            """):
        t2s.lower(f)


def test_operand_with_a_stride() -> None:
    f = Func("f")
    f[i] = A[2 * i]
    f.bound(i, 0, 8).vload(A).vstore(f)
    with refused("""
            vload(A) on f: A is not contiguous along i
              --> f.bound(i, 0, 8).vload(A).vstore(f)
              expected: i in the last subscript only, with factor 1
              given:    A[2 * i]
              hint:     arrays are row-major: store it transposed, put another loop innermost, or
                        let the host order it
            """):
        t2s.lower(f)


def test_unknown_operand() -> None:
    f = summed()
    f.vload(A, ImageParam(Int(32), 1, name="D"))
    with refused("""
            vload(A, D) on f: D is not used in f
              --> f.vload(A, ImageParam(Int(32), 1, name="D"))
              expected: one of A, B
              given:    D
            """):
        t2s.lower(f)


def test_no_operand() -> None:
    f = summed()
    with refused("""
            vload on f needs at least one operand
              --> f.vload()
              expected: for example vload(A, B)
            """):
        f.vload()


def test_not_every_operand_that_varies() -> None:
    f = summed()
    f.vload(A)
    f.vstore(f)
    with refused("""
            vload(A) on f: B varies along the vector loop i too and is not loaded as a vector
              --> f.vload(A)
              expected: vload(A, B)
              given:    vload(A)
              hint:     everything that varies along the innermost loop becomes a vector; put
                        another loop innermost to keep it a single value
            """):
        t2s.lower(f)


def test_vectors_that_are_not_stored_as_vectors() -> None:
    f = summed()
    f.vload(A, B)
    with refused("""
            vload(A, B) on f: the results are vectors along i and are not stored as vectors
              --> f.vload(A, B)
              expected: f.vstore(f) as well
              given:    i innermost, which is not a reduction
              hint:     a reduction loop innermost would give single results, by dot products
            """):
        t2s.lower(f)


def test_vector_store_of_a_reduction() -> None:
    p = product()
    p.C.vstore(p.C)
    with refused("""
            vstore(C) on C: the innermost loop k of C is a reduction
              --> p.C.vstore(p.C)
              expected: results that are vectors
              given:    one int32 per dot product
              hint:     make a loop of the results innermost, with reorder, before vstore
            """):
        t2s.lower(p.C)


def test_vector_store_of_another_func() -> None:
    f, g = summed(), Func("g")
    g[i] = 0
    f.vstore(g)
    with refused("""
            vstore(g) on f: f does not save results of g
              --> f.vstore(g)
              expected: vstore(f)
              given:    g
            """):
        t2s.lower(f)


def test_vector_load_on_a_relay() -> None:
    f, loader, feeder = summed(), Func("loader"), Func("feeder")
    f.isolate_producer_chain(A, loader, feeder)
    feeder.vload(A)
    with refused("""
            vload(A) on feeder: feeder only passes values on
              --> feeder.vload(A)
              expected: the function that computes
              hint:     write it on f before isolating: the producers widen with it
            """):
        t2s.lower(f)


def test_vector_store_on_a_consumer_of_single_values() -> None:
    p, unloader = product(), Func("unloader")
    p.C.isolate_consumer(unloader)
    unloader.vstore(p.C)
    with refused("""
            vstore(C) on unloader: C sends single values to unloader
              --> unloader.vstore(p.C)
              expected: a vectorized C
              hint:     write C.vload(...) or C.vstore(C), with a loop innermost that is not a
                        reduction
            """):
        t2s.lower(p.C)


def test_no_loop_left_in_time() -> None:
    f = summed()
    f.unroll(i)
    f.vload(A, B)
    with refused("""
            vload(A, B) on f: no loop is left in time
              --> f.vload(A, B)
              expected: an innermost loop that is not unrolled
            """):
        t2s.lower(f)


def test_innermost_loop_without_constant_bounds() -> None:
    t = triangle()
    t.T.vload(t.A)
    with refused("""
            vload(A) on T: loop k has no constant bounds
              --> t.T.vload(t.A)
              expected: a loop whose minimum and extent are numbers
              given:    bounds of k depend on i
              hint:     hardware has a fixed size; apply the directive to a loop of fixed bounds
            """):
        t2s.lower(t.T)


def test_index_as_a_value() -> None:
    f = Func("f")
    f[i] = A[i] * i
    f.bound(i, 0, 8).vload(A).vstore(f)
    with refused("""
            vload(A) on f: the computation uses the index of the vector loop i itself
              --> f.bound(i, 0, 8).vload(A).vstore(f)
              expected: an index that occurs in subscripts only
              given:    i in its value or in a condition
              hint:     put another loop innermost
            """):
        t2s.lower(f)


def test_index_as_a_value_in_an_inlined_func() -> None:
    ramp, f = t2s.funcs("ramp f")
    ramp[j] = j * 3
    f[i] = A[i] + ramp[i]
    f.bound(i, 0, 8).vload(A).vstore(f)
    with refused("""
            vload(A) on f: the computation uses the index of the vector loop i itself
              --> f.bound(i, 0, 8).vload(A).vstore(f)
              expected: an index that occurs in subscripts only
              given:    i in its value or in a condition
              hint:     put another loop innermost
            """):
        t2s.lower(f)


def test_condition_that_varies_along_the_lanes() -> None:
    f = Func("f")
    f[i] = t2s.select(i > 3, A[i], 0)
    f.bound(i, 0, 8).vload(A).vstore(f)
    with refused("""
            vload(A) on f: the computation uses the index of the vector loop i itself
              --> f.bound(i, 0, 8).vload(A).vstore(f)
              expected: an index that occurs in subscripts only
              given:    i in its value or in a condition
              hint:     put another loop innermost
            """):
        t2s.lower(f)


def test_recurrence_along_the_lanes() -> None:
    f, k = Func("f"), RDom(0, 8, name="k")
    f[i] = 0
    f[i] = f[i] * 3 + A[k]
    f.bound(i, 0, 4).vload(A)
    with refused("""
            vload(A) on f: the innermost loop k is a reduction that is not +, *, min or max
              --> f.bound(i, 0, 4).vload(A)
              expected: f[...] op term, with an associative op
              given:    f * 3 + A[k]
            """):
        t2s.lower(f)


def test_lanes_that_overwrite_one_value() -> None:
    f, k = Func("f"), RDom(0, 8, name="k")
    f[i] = 0
    f[i] = A[k]
    f.bound(i, 0, 4).vload(A)
    with refused("""
            vload(A) on f: the innermost loop k is a reduction that is not +, *, min or max
              --> f.bound(i, 0, 4).vload(A)
              expected: f[...] op term, with an associative op
              given:    A[k]
            """):
        t2s.lower(f)


def test_unrolling_a_vector_loop() -> None:
    f = summed()
    f.vload(A, B).vstore(f)
    f.unroll(i)
    with refused("""
            unroll(i) on f: loop i has become the lanes of vectors already
              --> f.unroll(i)
              expected: a loop that still runs in time
              given:    i: lanes of vectors by vload(A, B)
              hint:     transform loops before unroll and vload
            """):
        t2s.lower(f)


def test_a_producer_that_was_isolated_before_the_loop_was_made() -> None:
    f, loader, ii = summed(), Func("loader"), Var("ii")
    f.isolate_producer(A, loader)
    f.split(i, i, ii, 4)
    f.vload(A, B)
    with refused("""
            vload(A, B) on f: loader has no loop like ii
              --> f.vload(A, B)
              expected: loader with the loops of f: i, ii
              given:    loader with i
              note:     loader was isolated here
              --> f.isolate_producer(A, loader)
              hint:     split and fuse the loops of f before isolating from it, or those of loader
                        in the same way
            """):
        t2s.lower(f)
