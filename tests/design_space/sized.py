"""Designs that a search would make, of sizes that are parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import t2s
from t2s import Float, Func, ImageParam, Int, Param, RDom
from t2s.design_space.contraction import contraction_of
from t2s.design_space.point import Drain, Feed, Point, apply, directives_of, symbols_of
from tests.design_space.contractions import convolution, gemm, mttkrp, ttm


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A design; ``steps`` are the elements of a tile, by the name of each size."""

    design: Func
    steps: Mapping[str, int]


def matvec(n: Param, depth: Param) -> Func:
    A, x = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="x")
    i = t2s.Var("i")
    k, y = RDom(0, depth, name="k"), Func("y")
    y[i] = 0.0
    y[i] += A[i, k] * x[k]
    return y.bound(i, 0, n)


def sized(define: Callable[..., Func], steps: Mapping[str, int], point: Point) -> Sized:
    """A definition with the directives of a point; ``steps`` are those of its sizes, in order."""
    steps = {f"size_of_{name}": step for name, step in steps.items()}
    func = define(*(Param(Int(32), name=name) for name in steps))
    contraction = contraction_of(func, dict.fromkeys(steps, 64))
    apply(func, directives_of(contraction, point, frozenset(symbols_of([func]))))
    return Sized(design=func, steps=steps)


BUFFERED, FORWARDED = Feed.BUFFERED, Feed.FORWARDED


def designs() -> dict[str, Sized]:
    """One of each kernel, with buffers or without, results gathered or not."""
    return {
        "gemm": sized(
            gemm,
            {"n": 12, "m": 16, "depth": 4},
            Point((("i", 3), ("j", 4)), (4, 4), 4, (BUFFERED, BUFFERED), Drain.GATHERED),
        ),
        "mttkrp": sized(
            lambda n, m, k, l: mttkrp(n, m, (k, l)),  # noqa: E741
            {"n": 8, "m": 8, "k": 1, "l": 2},
            Point((("i", 2), ("j", 2)), (4, 4), 2, (BUFFERED, FORWARDED, BUFFERED), Drain.STORED),
        ),
        "ttm": sized(
            lambda i, j, k, l: ttm((i, j, k), l),  # noqa: E741
            {"i": 1, "j": 6, "k": 4, "l": 2},
            Point((("j", 2), ("k", 4)), (1, 3, 1), 2, (FORWARDED, BUFFERED), Drain.GATHERED),
        ),
        "convolution": sized(
            lambda y, co, ci: convolution((2, y, 4, co), 2, ci),
            {"y": 4, "co": 8, "ci": 4},
            Point((("y", 2), ("co", 4)), (1, 2, 4, 2), 4, (BUFFERED, BUFFERED), Drain.STORED),
        ),
        "matvec": sized(
            matvec,
            {"n": 8, "depth": 8},
            Point((("i", 4),), (2,), 8, (FORWARDED, FORWARDED), Drain.STORED),
        ),
    }
