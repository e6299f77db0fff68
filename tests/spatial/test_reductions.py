"""Reductions in time and in space, for every placement of their loops."""

from __future__ import annotations

from itertools import permutations

import pytest

import t2s
from t2s import BFloat, Bool, Float, Func, ImageParam, Int, RDom, UInt, Var
from tests.sampling import sampled
from tests.spatial.agreement import agree, body

i, j, ii, kk = Var("i"), Var("j"), Var("ii"), Var("kk")


def window() -> tuple[Func, dict[str, Var]]:
    """A reduction over two dimensions whose steps are not associative."""
    A, f, i = ImageParam(Int(32), 3, name="A"), Func("f"), Var("i")
    k, m = RDom(0, 2, 0, 3, name="k m")
    f[i] = 1
    f[i] = f[i] * 3 + A[i, k, m]
    return f.bound(i, 0, 2), {"i": i, "k": k, "m": m}


@sampled("unrolled", ["", "i", "k", "m", "i k", "i m", "k m", "i k m"], quick=2)
@pytest.mark.parametrize("order", ["i k m", "k i m", "k m i"])
def test_every_placement_of_two_reduction_loops(order: str, unrolled: str) -> None:
    """Steps in order, in the same PE or from PE to PE; the order is outermost first."""
    f, loops = window()
    f.reorder(*(loops[name] for name in reversed(order.split())))
    if unrolled:
        f.unroll(*(loops[name] for name in unrolled.split()))
    agree(f)


@sampled("order", list(permutations(["i", "k", "kk"])), quick=2, ids="-".join)
@pytest.mark.parametrize("unrolled", ["", "k", "kk", "i", "k kk"])
def test_a_split_reduction_in_any_order(order: tuple[str, ...], unrolled: str) -> None:
    A, f, i, k = ImageParam(Int(32), 2, name="A"), Func("f"), Var("i"), RDom(0, 4, name="k")
    f[i] = 0
    f[i] += A[i, k]
    f.bound(i, 0, 3).split(k, k, kk, 2)
    loops = {"i": i, "k": k, "kk": kk}
    f.reorder(*(loops[name] for name in reversed(order)))
    if unrolled:
        f.unroll(*(loops[name] for name in unrolled.split()))
    agree(f)


def test_partial_results_wait_in_registers() -> None:
    f, loops = window()
    f.reorder(loops["i"], loops["m"], loops["k"])
    graph = agree(f)
    (register,) = graph.node("f").registers
    assert (register.shape, register.distance) == ((2,), 2)
    assert "carried: int32 = f_partial[i]" in body(graph, "f")


def test_partial_results_go_from_pe_to_pe() -> None:
    f, loops = window()
    f.unroll(loops["m"])
    graph = agree(f)
    assert graph.node("f").registers == ()
    assert graph.channel("f_partial_along_m").shape == (3,)
    assert graph.channel("f_partial_along_k").shape == ()


@sampled(
    ("type", "start", "step"),
    [
        (Int(32), 0, lambda old, new: old + new),
        (Int(16), 1, lambda old, new: old * new),
        (UInt(8), 200, t2s.min),
        (Int(64), -5, t2s.max),
        (Int(8), 7, lambda old, new: old ^ new),
        (Int(32), -1, lambda old, new: old & new),
        (Int(32), 3, lambda old, new: old - new),
        (Bool(), False, lambda old, new: old | new),
        (Bool(), True, lambda old, new: new & old),
        (Float(32), 0.5, lambda old, new: old + new),
        (Float(64), 1, lambda old, new: old / (new + 1.0)),
        (BFloat(), 0, lambda old, new: old + new * 0.5),
        (Float(16), 100, t2s.min),
    ],
    quick=8,
)
def test_operators(type: t2s.Type, start: float, step: object) -> None:
    A, f, k = ImageParam(type, 2, name="A"), Func("f", type), RDom(0, 4, name="k")
    f[i] = start
    f[i] = step(f[i], A[i, k])  # type: ignore[operator]
    agree(f.bound(i, 0, 3).unroll(k))


def test_the_last_step_wins() -> None:
    """An update that does not read what was there before."""
    A, start, f = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="S"), Func("f")
    k = RDom(0, 4, name="k")
    f[i] = start[i]
    f[i] = A[i, k]
    agree(f.bound(i, 0, 3).unroll(k))


def test_conditional_update() -> None:
    A, f, k = ImageParam(Int(32), 2, name="A"), Func("f"), RDom(0, 5, name="k")
    f[i] = -1
    f[i] = t2s.select(A[i, k] > 4, k, f[i])
    agree(f.bound(i, 0, 4).split(i, i, ii, 2).unroll(ii))


def test_an_update_without_reduction() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    f[i] = A[i] * 2
    f[i] += i
    graph = agree(f.bound(i, 0, 4))
    assert graph.node("f").registers == ()


def test_an_update_that_ignores_the_initial_value() -> None:
    A, f = ImageParam(Int(32), 1, name="A"), Func("f")
    f[i] = 5
    f[i] = A[i]
    agree(f.bound(i, 0, 4))


def test_update_variables_with_other_names() -> None:
    A, f, x, y = ImageParam(Int(32), 2, name="A"), Func("f"), Var("x"), Var("y")
    k = RDom(0, 3, name="k")
    f[i, j] = i * 10 + j
    f[x, y] += A[y, k] * x
    agree(f.bound(i, 0, 2).bound(j, 0, 4).unroll(y))


def test_a_reduction_to_a_single_value() -> None:
    A, total, k = ImageParam(Int(32), 1, name="A"), Func("total"), RDom(0, 6, name="k")
    total[()] = 0
    total[()] += A[k]
    agree(total.split(k, k, kk, 3).unroll(kk))


def test_dependent_reduction_loops_in_space_and_time() -> None:
    A, f = ImageParam(Int(32), 2, name="A"), Func("f")
    y = RDom(0, 3, name="y")
    x = RDom(0, y + 1, name="x")
    f[i] = 0
    f[i] = f[i] * 2 + A[y, x] * i
    agree(f.bound(i, 0, 3).unroll(y))
    agree(f)
