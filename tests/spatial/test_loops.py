"""split, tile, reorder and fuse: the loops they leave, and the proof that nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

import t2s
from t2s import Float, Func, ImageParam, Int, RDom, Var
from t2s.core.errors import InternalError
from t2s.core.expr import const
from t2s.core.location import user_location
from t2s.core.printer import show
from t2s.func.freeze import freeze
from t2s.spatial.directives.loops import Reorder, reorder
from t2s.spatial.kernels import initial_kernel
from tests.errors.designs import product, triangle
from tests.spatial.agreement import agree, nest

ii, jj, kk, io, f = Var("ii"), Var("jj"), Var("kk"), Var("io"), Var("f")


def test_without_directives() -> None:
    assert nest(product().C) == ["for i in 0..3", "for j in 0..5", "for k in 0..7"]


def test_split() -> None:
    p = product()
    p.C.split(p.j, p.j, jj, 2)
    assert nest(p.C) == ["for i in 0..3", "for j in 0..2", "for jj in 0..1", "for k in 0..7"]
    agree(p.C)


def test_split_with_two_new_names() -> None:
    p = product()
    p.C.split(p.i, io, ii, 4)
    assert nest(p.C) == ["for io in 0..0", "for ii in 0..3", "for j in 0..5", "for k in 0..7"]
    agree(p.C)


def test_split_of_a_part() -> None:
    p, k2 = product(), Var("k2")
    p.C.split(p.k, p.k, kk, 4).split(kk, kk, k2, 2)
    assert nest(p.C)[2:] == ["for k in 0..1", "for kk in 0..1", "for k2 in 0..1"]
    agree(p.C)


def test_tile() -> None:
    p = product()
    p.C.tile(p.j, p.i, jj, ii, 3, 2)
    assert nest(p.C) == [
        "for i in 0..1",
        "for j in 0..1",
        "for ii in 0..1",
        "for jj in 0..2",
        "for k in 0..7",
    ]
    agree(p.C)


def test_tile_of_all_loops() -> None:
    p = product()
    p.C.tile(p.k, p.j, p.i, kk, jj, ii, 4, 3, 2)
    inner = ["for ii in 0..1", "for jj in 0..2", "for kk in 0..3"]
    assert nest(p.C) == ["for i in 0..1", "for j in 0..1", "for k in 0..1", *inner]
    agree(p.C)


def test_tile_with_names_for_the_outer_loops() -> None:
    p, jo = product(), Var("jo")
    p.C.tile(p.j, p.i, jo, io, jj, ii, 3, 2)
    assert nest(p.C)[:4] == ["for io in 0..1", "for jo in 0..1", "for ii in 0..1", "for jj in 0..2"]


def test_reorder() -> None:
    p = product()
    p.C.reorder(p.i, p.k, p.j)
    assert nest(p.C) == ["for j in 0..5", "for k in 0..7", "for i in 0..3"]
    agree(p.C)


def test_reorder_leaves_other_loops_where_they_are() -> None:
    p = product()
    p.C.reorder(p.i, p.k)
    assert nest(p.C) == ["for k in 0..7", "for j in 0..5", "for i in 0..3"]


def test_loops_may_be_given_as_a_list() -> None:
    p = product()
    assert nest(p.C.reorder([p.i, p.j])) == ["for j in 0..5", "for i in 0..3", "for k in 0..7"]


def test_fuse() -> None:
    p = product()
    p.C.fuse(p.j, p.i, f)
    assert nest(p.C) == ["for f in 0..23", "for k in 0..7"]
    text = t2s.print_loop_nest(p.C)
    assert "C[f // 6, f % 6] = " in text
    agree(p.C)


def test_fuse_of_reductions() -> None:
    A, S, i = ImageParam(Int(32), 3, name="A"), Func("S"), Var("i")
    k, m = RDom(0, 3, 1, 4, name="k m")
    S[i] = 0
    S[i] += A[i, k, m] * m
    S.bound(i, 0, 2).fuse(m, k, f).split(f, f, kk, 6)
    assert nest(S) == ["for i in 0..1", "for f in 0..1", "for kk in 0..5"]
    agree(S)


def test_fuse_and_split_again() -> None:
    p = product()
    p.C.fuse(p.j, p.i, f).split(f, f, ii, 8).unroll(ii)
    assert nest(p.C) == ["parallel ii in 0..7", "for f in 0..2", "for k in 0..7"]
    agree(p.C)


def test_bounds_that_do_not_start_at_zero() -> None:
    A, g, i, k = ImageParam(Int(32), 1, name="A"), Func("g"), Var("i"), RDom(-2, 6, name="k")
    g[i] = 0
    g[i] += A[i + k] * k
    g.bound(i, 3, 8).split(i, i, ii, 4).split(k, k, kk, 2)
    assert nest(g) == ["for i in 0..1", "for ii in 0..3", "for k in 0..2", "for kk in 0..1"]
    assert "A[i * 4 + ii + k * 2 + kk + 1]" in t2s.print_loop_nest(g)
    agree(g)


def test_fused_bounds_that_do_not_start_at_zero() -> None:
    A, g, i, j = ImageParam(Int(32), 2, name="A"), Func("g"), Var("i"), Var("j")
    g[i, j] = A[i, j] + i * 10 + j
    g.bound(i, 2, 3).bound(j, 1, 4).fuse(j, i, f)
    assert nest(g) == ["for f in 0..11"]
    agree(g)


def test_loops_inside_bounds_that_depend_on_them() -> None:
    t = triangle()
    t.T.split(t.i, t.i, ii, 2)
    assert nest(t.T) == ["for i in 0..1", "for ii in 0..1", "for k in 0..i * 2 + ii"]
    agree(t.T)


def test_unrolled_loops_inside_of_triangular_bounds() -> None:
    t = triangle()
    t.T.split(t.i, t.i, ii, 2).unroll(ii)
    assert nest(t.T) == ["parallel ii in 0..1", "for i in 0..1", "for k in 0..i * 2 + ii"]
    agree(t.T)


def test_a_triangle_in_space() -> None:
    t = triangle()
    t.T.unroll(t.i)
    assert nest(t.T) == ["parallel i in 0..3", "for k in 0..i"]
    agree(t.T)


def test_a_reduction_that_rounds_keeps_its_order() -> None:
    p = product(Float(32))
    p.C.split(p.k, p.k, kk, 4).reorder(kk, p.j, p.k, p.i)
    agree(p.C, real=True)


def test_reasons() -> None:
    p = product()
    p.C.tile(p.j, p.i, jj, ii, 3, 2).fuse(jj, ii, f).unroll(f)
    text = t2s.print_loop_nest(p.C)
    assert "# outer part of i by tile(j, i, jj, ii, 3, 2)\n" in text
    assert "# one PE each by unroll(f)\n" in text
    assert "# reduction of the definition\n" in text


def directive(*loops: str) -> Reorder:
    return Reorder(loops=loops, location=user_location(), text="reorder(i, j)")


def test_a_nest_that_leaves_something_out_is_a_bug() -> None:
    """isl proves every nest; here a loop lost an iteration behind the compiler's back."""
    p = product()
    program = freeze(p.C)
    kernel = initial_kernel(program, program.function("C"), False)
    assert reorder(kernel, directive("i", "j")).loops[0].name == "j"
    first, *others = kernel.loops
    broken = replace(kernel, loops=(replace(first, extent=const(3)), *others))
    with pytest.raises(InternalError, match=r"broke the loop nest: never computed: i=3, j=\d, k="):
        reorder(broken, directive("i", "j"))


def test_definitions_of_loops() -> None:
    """What makes loops of different kernels the same: the value of their index in the domain."""
    p = product()
    program = freeze(p.C)
    kernel = initial_kernel(program, program.function("C"), False)
    tiled = t2s.lower(p.C.tile(p.j, p.i, jj, ii, 3, 2))
    assert [loop.name for loop in tiled.node("C").loops] == ["i", "j", "ii", "jj", "k"]
    assert [show(loop.definition) for loop in kernel.loops] == ["i", "j", "k"]
