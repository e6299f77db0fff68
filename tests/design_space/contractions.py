"""Definitions to search: dense kernels of any size, without directives."""

from __future__ import annotations

import t2s
from t2s import Bool, Float, Func, ImageParam, Int, Param, RDom


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


def matrix_vector(n: int, m: int) -> Func:
    A, x = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="x")
    i, k, y = t2s.Var("i"), RDom(0, m, name="k"), Func("y")
    y[i] = 0.0
    y[i] += A[i, k] * x[k]
    return y.bound(i, 0, n)


def banded(n: int, width: int) -> Func:
    """y = alpha * A * x + beta * y for a band that is stored row by row."""
    A, x = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="x")
    y_in = ImageParam(Float(32), 1, name="y_in")
    alpha, beta = Param(Float(32), name="alpha"), Param(Float(32), name="beta")
    i, k, y = t2s.Var("i"), RDom(0, width, name="k"), Func("y")
    y[i] = beta * y_in[i]
    y[i] += alpha * A[i, k] * x[i + k]
    return y.bound(i, 0, n)


def banded_in_blocks(blocks: int, block: int, width: int) -> Func:
    """As ``banded``, with rows of a block that start at the same column, as in examples/gbmv."""
    A, x = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 1, name="x")
    y_in = ImageParam(Float(32), 1, name="y_in")
    alpha, beta = Param(Float(32), name="alpha"), Param(Float(32), name="beta")
    i, b, e = t2s.variables("i b e")
    k, y, part = RDom(0, width, name="k"), Func("y"), Func("part")
    part[b, e] = x[b * block + e]
    y[i] = beta * y_in[i]
    y[i] += alpha * (A[i, k] * part[i // block, k])
    return y.bound(i, 0, blocks * block)


def rank_one_update(n: int, m: int) -> Func:
    A, alpha = ImageParam(Float(32), 2, name="A"), Param(Float(32), name="alpha")
    x, y = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="y")
    i, k, A_out = t2s.Var("i"), t2s.Var("k"), Func("A_out")
    A_out[i, k] = A[i, k] + alpha * x[i] * y[k]
    return A_out.bound(i, 0, n).bound(k, 0, m)


def symmetric(n: int, depth: int) -> Func:
    """C = A * A', which reads A at two places."""
    A, C = ImageParam(Float(32), 2, name="A"), Func("C")
    i, j = t2s.variables("i j")
    k = RDom(0, depth, name="k")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * A[j, k]
    return C.bound(i, 0, n).bound(j, 0, n)


def folded(blocks: int, block: int, depth: int) -> Func:
    """The upper triangle of alpha * A * A' + beta * C, folded as in examples/syrk."""
    A, C_in = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="C_in")
    alpha, beta = Param(Float(32), name="alpha"), Param(Float(32), name="beta")
    i, j, ti, tj, e = t2s.variables("i j ti tj e")
    k = RDom(0, depth, name="k")
    C, A_row, A_column = t2s.funcs("C A_row A_column")
    row, column, size = block * i + ti, block * (j - 1) + tj, blocks * block
    row = t2s.select(i < j, row, size - 1 - row)
    column = t2s.select(i < j, column, size - 1 - block - column)
    A_row[i, j, ti, e] = A[row, e]
    A_column[i, j, tj, e] = A[column, e]
    C[i, j, ti, tj] = beta * C_in[row, column]
    C[i, j, ti, tj] += alpha * A_row[i, j, ti, k] * A_column[i, j, tj, k]
    C.bound(i, 0, blocks // 2).bound(j, 0, blocks + 1)
    return C.bound(ti, 0, block).bound(tj, 0, block)


def maxima(n: int, channels: int) -> Func:
    """Of three neighbors, every second one."""
    x, y = ImageParam(Float(32), 2, name="x"), Func("y")
    i, c = t2s.variables("i c")
    k = RDom(0, 3, name="k")
    y[i, c] = -1e30
    y[i, c] = t2s.max(y[i, c], x[2 * i + k, c])
    return y.bound(i, 0, n).bound(c, 0, channels)


def blurred(n: int, m: int) -> Func:
    x, y = ImageParam(Float(32), 2, name="x"), Func("y")
    i, j = t2s.variables("i j")
    y[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]
    return y.bound(i, 0, n).bound(j, 0, m)


def narrow_gemm(n: int, m: int, depth: int) -> Func:
    """Of 8-bit integers, two of which share a multiplier."""
    A, B = ImageParam(Int(8), 2, name="A"), ImageParam(Int(8), 2, name="B")
    i, j = t2s.variables("i j")
    k, C = RDom(0, depth, name="k"), Func("C")
    C[i, j] = 0
    C[i, j] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[k, j])
    return C.bound(i, 0, n).bound(j, 0, m)


def computed_operands(n: int, m: int, depth: int) -> Func:
    """C = alpha * A * B', with operands that are Funcs."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    alpha, scaled, transposed = Param(Float(32), name="alpha"), Func("scaled"), Func("transposed")
    i, j, a, b = t2s.variables("i j a b")
    k, C = RDom(0, depth, name="k"), Func("C")
    scaled[a, b] = alpha * A[a, b]
    transposed[a, b] = B[b, a]
    C[i, j] = 0.0
    C[i, j] += scaled[i, k] * transposed[k, j]
    return C.bound(i, 0, n).bound(j, 0, m)


def exponentials(n: int, m: int) -> Func:
    A, y = ImageParam(Float(32), 2, name="A"), Func("y")
    i, k = t2s.Var("i"), RDom(0, m, name="k")
    y[i] = 0.0
    y[i] += t2s.exp(A[i, k])
    return y.bound(i, 0, n)


def ttmc(sizes: tuple[int, int, int], depths: tuple[int, int]) -> Func:
    A, B = ImageParam(Float(32), 3, name="A"), ImageParam(Float(32), 2, name="B")
    C, D = ImageParam(Float(32), 2, name="C"), Func("D")
    i, j, k = t2s.variables("i j k")
    l, m = RDom(0, depths[0], 0, depths[1], name="l m")  # noqa: E741
    D[i, j, k] = 0.0
    D[i, j, k] += A[i, l, m] * B[l, j] * C[k, m]
    return D.bound(i, 0, sizes[0]).bound(j, 0, sizes[1]).bound(k, 0, sizes[2])


def capsules(images: int, places: int, matrix: int, channels: tuple[int, int]) -> Func:
    """A layer of capsule convolutions, as in examples/capsule, with kernels of 3 x 3."""
    P, W = ImageParam(Float(32), 6, name="P"), ImageParam(Float(32), 6, name="W")
    n, p, my, mx, co = t2s.variables("n p my mx co")
    mk, ky, kx, ci = RDom(0, matrix, 0, 3, 0, 3, 0, channels[0], name="mk ky kx ci")
    V = Func("V")
    y, x = 2 * (p % 7) + ky, 2 * (p // 7) + kx
    V[n, p, my, mx, co] = 0.0
    V[n, p, my, mx, co] += P[n, mk, mx, y, x, ci] * W[co, my, mk, ky, kx, ci]
    V.bound(n, 0, images).bound(p, 0, places)
    return V.bound(my, 0, matrix).bound(mx, 0, matrix).bound(co, 0, channels[1])


KERNELS = {
    "gemm": lambda: gemm(64, 48, 96),
    "ragged gemm, B by rows": lambda: gemm(37, 50, 67, transposed=False),
    "mttkrp": lambda: mttkrp(32, 24, (6, 32)),
    "ttm": lambda: ttm((4, 9, 24), 64),
    "convolution": lambda: convolution((2, 9, 8, 16), 3, 16),
    "1-D convolution": lambda: filtered(120, 24),
    "matrix times vector": lambda: matrix_vector(96, 70),
    "banded matrix times vector": lambda: banded(60, 40),
    "banded matrix in blocks times vector": lambda: banded_in_blocks(4, 6, 16),
    "rank-1 update": lambda: rank_one_update(40, 70),
    "symmetric product": lambda: symmetric(26, 20),
    "folded triangle": lambda: folded(4, 6, 16),
    "maxima": lambda: maxima(30, 20),
    "blur": lambda: blurred(20, 40),
    "gemm of 8-bit integers": lambda: narrow_gemm(30, 20, 24),
    "computed operands": lambda: computed_operands(20, 15, 33),
    "exponentials": lambda: exponentials(30, 50),
    "ttmc": lambda: ttmc((4, 6, 20), (5, 16)),
    "capsules": lambda: capsules(2, 6, 2, (16, 12)),
}


def padded_convolution(n: int, taps: int) -> Func:
    """Zeros outside of the input, which is read under a condition."""
    x, w = ImageParam(Float(32), 1, name="x", shape=(n,)), ImageParam(Float(32), 1, name="w")
    i, k, y = t2s.Var("i"), RDom(0, taps, name="k"), Func("y")
    at = i + k - taps // 2
    y[i] = 0.0
    y[i] += t2s.select((at >= 0) & (at < n), x[at], 0.0) * w[k]
    return y.bound(i, 0, n)


def padded_operand(n: int, taps: int) -> Func:
    """The same with a Func of zeros and the input, which loads under a condition."""
    x, w = ImageParam(Float(32), 1, name="x", shape=(n,)), ImageParam(Float(32), 1, name="w")
    i, a = t2s.variables("i a")
    k, y, padded = RDom(0, taps, name="k"), Func("y"), Func("padded")
    padded[a] = t2s.select((a >= 1) & (a < n + 1), x[a - 1], 0.0)
    y[i] = 0.0
    y[i] += padded[i + k] * w[k]
    return y.bound(i, 0, n)


def causal(n: int, depth: int) -> Func:
    """Scores of earlier keys; all that is read is read under a condition."""
    Q, K = ImageParam(Float(32), 2, name="Q"), ImageParam(Float(32), 2, name="K")
    i, j = t2s.variables("i j")
    k, S = RDom(0, depth, name="k"), Func("S")
    S[i, j] = 0.0
    S[i, j] += t2s.select(j <= i, Q[i, k] * K[j, k], 0.0)
    return S.bound(i, 0, n).bound(j, 0, n)


def upsampled(n: int) -> Func:
    """A transposed convolution: every second product is there."""
    x, w = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="w")
    i, k, y = t2s.Var("i"), RDom(0, 4, name="k"), Func("y")
    y[i] = 0.0
    y[i] += t2s.select((i + k) % 2 == 0, x[(i + k) // 2] * w[k], 0.0)
    return y.bound(i, 0, n)


def indices(n: int, m: int) -> Func:
    """Nothing is loaded."""
    i, j = t2s.variables("i j")
    y = Func("y")
    y[i, j] = i * j
    return y.bound(i, 0, n).bound(j, 0, m)


def reached(n: int, m: int, depth: int) -> Func:
    """A product of boolean matrices: bools are bytes in memory and bits on the chip."""
    A, B = ImageParam(Bool(), 2, name="A"), ImageParam(Bool(), 2, name="B")
    i, j = t2s.variables("i j")
    k, C = RDom(0, depth, name="k"), Func("C")
    C[i, j] = t2s.cast(Bool(), False)
    C[i, j] |= A[i, k] & B[k, j]
    return C.bound(i, 0, n).bound(j, 0, m)


def kronecker(a: tuple[int, int], b: tuple[int, int]) -> Func:
    """Short vectors have one element of A, longer ones several."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    p, q, C = t2s.Var("p"), t2s.Var("q"), Func("C")
    C[p, q] = A[p // b[0], q // b[1]] * B[p % b[0], q % b[1]]
    return C.bound(p, 0, a[0] * b[0]).bound(q, 0, a[1] * b[1])


def relaxed(n: int, m: int) -> Func:
    """A step of Jacobi's method: one input at four places."""
    u, v = ImageParam(Float(32), 2, name="u"), Func("v")
    i, j = t2s.variables("i j")
    v[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return v.bound(i, 1, n).bound(j, 1, m)


def imaginary_part(n: int, m: int, depth: int) -> Func:
    """Of a product of complex matrices: four operands."""
    ar, ai, br, bi = (ImageParam(Float(32), 2, name=name) for name in ("ar", "ai", "br", "bi"))
    i, j = t2s.variables("i j")
    k, C = RDom(0, depth, name="k"), Func("C")
    C[i, j] = 0.0
    C[i, j] += ar[i, k] * bi[k, j] + ai[i, k] * br[k, j]
    return C.bound(i, 0, n).bound(j, 0, m)


def network(n: int, m: int) -> Func:
    """A product of six tensors, of which some do not vary along the vectors."""
    A, B, C = (ImageParam(Float(32), 2, name=name) for name in "ABC")
    D, E = ImageParam(Float(32), 3, name="D"), ImageParam(Float(32), 2, name="E")
    G = ImageParam(Float(32), 1, name="G")
    i, j = t2s.variables("i j")
    a, b, c = RDom(0, 3, 0, 3, 0, 4, name="a b c")
    y = Func("y")
    y[i, j] = 0.0
    y[i, j] += A[i, a] * B[j, b] * C[j, c] * D[a, b, c] * E[i, j] * G[a]
    return y.bound(i, 0, n).bound(j, 0, m)


def centered(n: int, m: int, depth: int) -> Func:
    """An operand that is computed of two inputs, one of them narrow."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    offset = ImageParam(Int(8), 2, name="offset")
    i, j, a, b = t2s.variables("i j a b")
    k, C, moved = RDom(0, depth, name="k"), Func("C"), Func("moved")
    moved[a, b] = A[a, b] - t2s.cast(Float(32), offset[a, b])
    C[i, j] = 0.0
    C[i, j] += moved[i, k] * B[k, j]
    return C.bound(i, 0, n).bound(j, 0, m)


def shortest_paths(n: int) -> Func:
    """One more step: an input of the first value, and at two other places."""
    A, D = ImageParam(Float(32), 2, name="A"), Func("D")
    i, j = t2s.variables("i j")
    k = RDom(0, n, name="k")
    D[i, j] = A[i, j]
    D[i, j] = t2s.min(D[i, j], A[i, k] + A[k, j])
    return D.bound(i, 0, n).bound(j, 0, n)


def from_func(n: int, depth: int) -> Func:
    """A sum that starts from a Func of the input that it adds up."""
    A, y, first = ImageParam(Float(32), 2, name="A"), Func("y"), Func("first")
    i, a = t2s.variables("i a")
    k = RDom(0, depth, name="k")
    first[a] = 2.0 * A[a, 0]
    y[i] = first[i]
    y[i] += A[i, k]
    return y.bound(i, 0, n)


def polynomials(n: int, degree: int) -> Func:
    """Polynomials by Horner's rule: each step multiplies the sum before it adds a term."""
    x, c, p = ImageParam(Float(32), 1, name="x"), ImageParam(Float(32), 1, name="c"), Func("p")
    i, k = t2s.Var("i"), RDom(0, degree, name="k")
    p[i] = 0.0
    p[i] = p[i] * x[i] + c[k]
    return p.bound(i, 0, n)


def fused(n: int, m: int, depth: int) -> Func:
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j = t2s.variables("i j")
    k, C = RDom(0, depth, name="k"), Func("C")
    C[i, j] = 0.0
    C[i, j] = t2s.fma(A[i, k], B[k, j], C[i, j])
    return C.bound(i, 0, n).bound(j, 0, m)


def repeated(n: int, depth: int) -> Func:
    """A dimension that no term uses."""
    A, y = ImageParam(Float(32), 2, name="A"), Func("y")
    i = t2s.Var("i")
    k, _ = RDom(0, depth, 0, 3, name="k again")
    y[i] = 0.0
    y[i] += A[i, k]
    return y.bound(i, 0, n)


UNUSUAL = {
    "padded convolution": lambda: padded_convolution(16, 3),
    "padded operand": lambda: padded_operand(16, 3),
    "causal scores": lambda: causal(6, 9),
    "transposed convolution": lambda: upsampled(12),
    "indices": lambda: indices(10, 7),
    "boolean matrices": lambda: reached(7, 8, 10),
    "kronecker": lambda: kronecker((3, 3), (3, 4)),
    "jacobi": lambda: relaxed(8, 10),
    "complex matrices": lambda: imaginary_part(6, 7, 9),
    "network of tensors": lambda: network(5, 4),
    "computed of two inputs": lambda: centered(5, 6, 9),
    "shortest paths": lambda: shortest_paths(7),
    "first value of a Func": lambda: from_func(8, 9),
    "polynomials": lambda: polynomials(15, 6),
    "fused multiply-adds": lambda: fused(5, 6, 8),
    "repeated": lambda: repeated(5, 6),
}
"""Other reads, types and steps than those of ``KERNELS``, small."""
