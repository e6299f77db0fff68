"""Definitions to search: dense kernels of any size, without directives."""

from __future__ import annotations

import t2s
from t2s import Float, Func, ImageParam, Int, RDom


def gemm(n: int, m: int, depth: int, *, transposed: bool = True) -> Func:
    """C = A * B, with B stored by columns if it is ``transposed``."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j = t2s.variables("i j")
    k, C = RDom(0, depth, name="k"), Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * (B[j, k] if transposed else B[k, j])
    return C.bound(i, 0, n).bound(j, 0, m)


def mttkrp(n: int, m: int, depths: tuple[int, int]) -> Func:
    A, B = ImageParam(Float(32), 3, name="A"), ImageParam(Float(32), 2, name="B")
    C, D = ImageParam(Float(32), 2, name="C"), Func("D")
    i, j = t2s.variables("i j")
    k, l = RDom(0, depths[0], 0, depths[1], name="k l")  # noqa: E741
    D[i, j] = 0.0
    D[i, j] += A[i, k, l] * B[k, j] * C[j, l]
    return D.bound(i, 0, n).bound(j, 0, m)


def ttm(sizes: tuple[int, int, int], depth: int) -> Func:
    A, B = ImageParam(Float(32), 3, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = t2s.variables("i j k")
    l, C = RDom(0, depth, name="l"), Func("C")  # noqa: E741
    C[i, j, k] = 0.0
    C[i, j, k] += A[i, j, l] * B[k, l]
    return C.bound(i, 0, sizes[0]).bound(j, 0, sizes[1]).bound(k, 0, sizes[2])


def convolution(sizes: tuple[int, int, int, int], kernel: int, channels: int) -> Func:
    I, W = ImageParam(Float(32), 4, name="I"), ImageParam(Float(32), 4, name="W")  # noqa: E741
    n, y, x, co = t2s.variables("n y x co")
    ky, kx, ci = RDom(0, kernel, 0, kernel, 0, channels, name="ky kx ci")
    O = Func("O")  # noqa: E741
    O[n, y, x, co] = 0.0
    O[n, y, x, co] += I[n, y + ky, x + kx, ci] * W[co, ky, kx, ci]
    for variable, extent in zip((n, y, x, co), sizes, strict=True):
        O.bound(variable, 0, extent)
    return O


def filtered(results: int, taps: int) -> Func:
    """A 1-D convolution of integers."""
    x, w = ImageParam(Int(32), 1, name="x"), ImageParam(Int(32), 1, name="w")
    i = t2s.Var("i")
    k, y = RDom(0, taps, name="k"), Func("y")
    y[i] = 0
    y[i] += x[i + k] * w[k]
    return y.bound(i, 0, results)


KERNELS = {
    "gemm": lambda: gemm(64, 48, 96),
    "ragged gemm, B by rows": lambda: gemm(37, 50, 67, transposed=False),
    "mttkrp": lambda: mttkrp(32, 24, (6, 32)),
    "ttm": lambda: ttm((4, 9, 24), 64),
    "convolution": lambda: convolution((2, 9, 8, 16), 3, 16),
    "1-D convolution": lambda: filtered(120, 24),
}
