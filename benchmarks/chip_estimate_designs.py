"""More integer designs for chips, as users write them: kernels of images, vectors, filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import t2s
from benchmarks import chip_designs as known
from t2s import Func, ImageParam, Int, RDom, UInt


def add(length: int, pes: int, bits: int = 32) -> Func:
    """The sum of two vectors."""
    a, b = ImageParam(Int(bits), 1, name="a"), ImageParam(Int(bits), 1, name="b")
    y, (i, ii) = Func("y"), t2s.variables("i ii")
    y[i] = a[i] + b[i]
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def scaled(length: int, factor: int, bits: int = 16) -> Func:
    """A vector times a constant, plus another."""
    a, b = ImageParam(Int(bits), 1, name="a"), ImageParam(Int(bits), 1, name="b")
    y, i = Func("y"), t2s.Var("i")
    y[i] = a[i] * factor + b[i]
    return y.bound(i, 0, length)


def leaky(length: int, pes: int, bits: int = 16) -> Func:
    """A rectifier that passes an eighth of what is negative."""
    x, y, (i, ii) = ImageParam(Int(bits), 1, name="x"), Func("y"), t2s.variables("i ii")
    y[i] = t2s.select(x[i] > 0, x[i], x[i] >> 3)
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def clamped(length: int, bits: int = 8) -> Func:
    """A vector between two limits."""
    x, y, i = ImageParam(Int(bits), 1, name="x"), Func("y"), t2s.Var("i")
    y[i] = t2s.minimum(t2s.maximum(x[i], t2s.cast(Int(bits), -50)), t2s.cast(Int(bits), 100))
    return y.bound(i, 0, length)


def smoothed(length: int, bits: int = 16) -> Func:
    """The weighted mean of three neighbors, by shifts."""
    x, y, i = ImageParam(Int(bits), 1, name="x"), Func("y"), t2s.Var("i")
    y[i] = (x[i] + (x[i + 1] << 1) + x[i + 2]) >> 2
    return y.bound(i, 0, length)


def sobel(rows: int, columns: int) -> Func:
    """The edges of an image with 8 bits: the sum of two absolute gradients."""
    x, y = ImageParam(UInt(8), 2, name="x"), Func("y")
    i, j = t2s.variables("i j")

    def at(down: int, right: int) -> t2s.Expr:
        return t2s.cast(Int(16), x[i + down, j + right])

    across = at(0, 2) + at(1, 2) * 2 + at(2, 2) - at(0, 0) - at(1, 0) * 2 - at(2, 0)
    down = at(2, 0) + at(2, 1) * 2 + at(2, 2) - at(0, 0) - at(0, 1) * 2 - at(0, 2)
    y[i, j] = t2s.absolute(across) + t2s.absolute(down)
    return y.bound(i, 0, rows).bound(j, 0, columns)


def dot(length: int, bits: int = 16) -> Func:
    """The inner product of two vectors in one PE."""
    a, b = ImageParam(Int(bits), 2, name="a"), ImageParam(Int(bits), 1, name="b")
    y, i, k = Func("y"), t2s.Var("i"), RDom(0, length, name="k")
    y[i] = t2s.cast(Int(32), 0)
    y[i] += t2s.cast(Int(32), a[i, k]) * t2s.cast(Int(32), b[k])
    return y.bound(i, 0, 3).reorder(k, i)


def sums_in_turn(rows: int, columns: int, pes: int, bits: int = 8) -> Func:
    """A matrix times a vector, with the sums of several rows in a register file of each PE."""
    A, x = ImageParam(Int(bits), 2, name="A"), ImageParam(Int(bits), 1, name="x")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, columns, name="k")
    y[i] = t2s.cast(Int(32), 0)
    y[i] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), x[k])
    return y.bound(i, 0, rows).split(i, i, ii, pes).reorder(ii, i, k).unroll(ii)


def deep_gemm(rows: int, columns: int, steps: int, depth: int) -> Func:
    """A product of matrices whose channels have room for some tokens."""
    C = known.gemm(rows, columns, steps)
    return C.depth(depth)


def lower_triangle(size: int, pes: int) -> Func:
    """A lower triangular matrix times a vector: rows are not of one length."""
    A, x = ImageParam(Int(16), 2, name="A"), ImageParam(Int(16), 1, name="x")
    y, (i, ii) = Func("y"), t2s.variables("i ii")
    k = RDom(0, i + 1, name="k")
    y[i] = t2s.cast(Int(32), 0)
    y[i] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), x[k])
    return y.bound(i, 0, size).split(i, i, ii, pes).reorder(k, ii, i)


def outer(rows: int, columns: int, bits: int = 16) -> Func:
    """The outer product of two vectors, with a PE for each row."""
    a, b = ImageParam(Int(bits), 1, name="a"), ImageParam(Int(bits), 1, name="b")
    C, (i, j) = Func("C"), t2s.variables("i j")
    C[i, j] = t2s.cast(Int(32), a[i]) * t2s.cast(Int(32), b[j])
    return C.bound(i, 0, rows).bound(j, 0, columns).reorder(j, i).unroll(i)


def blend(length: int, pes: int) -> Func:
    """Two images of 8 bits, mixed by a third one."""
    a, b, t = (ImageParam(UInt(8), 1, name=name) for name in "abt")
    y, (i, ii) = Func("y"), t2s.variables("i ii")

    def wide(value: t2s.Expr) -> t2s.Expr:
        return t2s.cast(UInt(16), value)

    y[i] = t2s.cast(UInt(8), (wide(a[i]) * wide(t[i]) + wide(b[i]) * (255 - wide(t[i]))) >> 8)
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def differences(rows: int, columns: int, pes: int) -> Func:
    """Sums of absolute differences of the rows of two images."""
    a, b = ImageParam(UInt(8), 2, name="a"), ImageParam(UInt(8), 2, name="b")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, columns, name="k")
    y[i] = t2s.cast(Int(16), 0)
    y[i] += t2s.absolute(t2s.cast(Int(16), a[i, k]) - t2s.cast(Int(16), b[i, k]))
    return y.bound(i, 0, rows).split(i, i, ii, pes).reorder(ii, k, i).unroll(ii)


def mixed_bits(length: int) -> Func:
    """A step of a hash: exclusive or, shifts, and a sum."""
    a, b = ImageParam(UInt(32), 1, name="a"), ImageParam(UInt(32), 1, name="b")
    y, i = Func("y"), t2s.Var("i")
    mixed = a[i] ^ (a[i] >> 7) ^ (b[i] << 3)
    y[i] = (mixed & 0x00FF00FF) + b[i]
    return y.bound(i, 0, length)


def two_filters(length: int, bits: int = 16) -> Func:
    """Two stages: a filter behind a filter."""
    x, first, second = ImageParam(Int(bits), 1, name="x"), Func("first"), Func("second")
    i = t2s.Var("i")
    first[i] = x[i] * 3 + x[i + 1]
    second[i] = first[i] - (first[i] >> 4)
    return second.bound(i, 0, length)


def fixed_filter(length: int, bits: int = 16) -> Func:
    """A filter with constant taps."""
    x, y, i = ImageParam(Int(bits), 1, name="x"), Func("y"), t2s.Var("i")
    taps = (3, 5, -7, 11)
    y[i] = sum(
        (t2s.cast(Int(32), x[i + at]) * tap for at, tap in enumerate(taps)), t2s.cast(Int(32), 0)
    )
    return y.bound(i, 0, length)


def squared_distances(points: int, dimensions: int, pes: int) -> Func:
    """Squared distances of points from one point."""
    p, c = ImageParam(Int(16), 2, name="p"), ImageParam(Int(16), 1, name="c")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, dimensions, name="k")
    y[i] = t2s.cast(Int(32), 0)
    far = t2s.cast(Int(32), p[i, k] - c[k])
    y[i] += far * far
    return y.bound(i, 0, points).split(i, i, ii, pes).reorder(ii, k, i).unroll(ii)


def gray(length: int, pes: int) -> Func:
    """An image in shades of gray, of three with 8 bits."""
    r, g, b = (ImageParam(UInt(8), 1, name=name) for name in "rgb")
    y, (i, ii) = Func("y"), t2s.variables("i ii")

    def weighted(value: t2s.Expr, weight: int) -> t2s.Expr:
        return t2s.cast(UInt(16), value) * weight

    y[i] = t2s.cast(UInt(8), (weighted(r[i], 77) + weighted(g[i], 150) + weighted(b[i], 29)) >> 8)
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def above(rows: int, columns: int) -> Func:
    """How many elements of each row are above one that is given for the row."""
    x, limit = ImageParam(Int(16), 2, name="x"), ImageParam(Int(16), 1, name="limit")
    y, i, k = Func("y"), t2s.Var("i"), RDom(0, columns, name="k")
    y[i] = t2s.cast(Int(16), 0)
    y[i] += t2s.select(x[i, k] > limit[i], t2s.cast(Int(16), 1), t2s.cast(Int(16), 0))
    return y.bound(i, 0, rows).reorder(k, i).unroll(i)


def complex_product(length: int) -> Func:
    """The real part of the product of two vectors of complex numbers."""
    a, b, c, d = (ImageParam(Int(16), 1, name=name) for name in ("a", "b", "c", "d"))
    y, i = Func("y"), t2s.Var("i")

    def wide(value: t2s.Expr) -> t2s.Expr:
        return t2s.cast(Int(32), value)

    y[i] = wide(a[i]) * wide(c[i]) - wide(b[i]) * wide(d[i])
    return y.bound(i, 0, length)


def middle(length: int) -> Func:
    """The median of three neighbors."""
    x, y, i = ImageParam(Int(16), 1, name="x"), Func("y"), t2s.Var("i")
    a, b, c = x[i], x[i + 1], x[i + 2]
    y[i] = t2s.maximum(t2s.minimum(a, b), t2s.minimum(t2s.maximum(a, b), c))
    return y.bound(i, 0, length)


def transposed(rows: int, columns: int, pes: int) -> Func:
    """The transpose of a matrix, with a PE for some of its rows."""
    x, y = ImageParam(Int(32), 2, name="x"), Func("y")
    i, j, jj = t2s.variables("i j jj")
    y[i, j] = x[j, i]
    return y.bound(i, 0, columns).bound(j, 0, rows).split(j, j, jj, pes).unroll(jj)


FLOAT, BFLOAT = t2s.Float(32), t2s.BFloat()


def float_gemm(rows: int, columns: int, steps: int, type: t2s.Type = FLOAT) -> Func:
    """A product of matrices with sums of float32, and operands that go from PE to PE."""
    A, B = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    C, (i, j), k = Func("C"), t2s.variables("i j"), RDom(0, steps, name="k")
    C[i, j] = t2s.cast(FLOAT, 0)
    C[i, j] += t2s.cast(FLOAT, A[i, k]) * t2s.cast(FLOAT, B[k, j])
    C.bound(i, 0, rows).bound(j, 0, columns).reorder(j, i, k).unroll(i, j)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    return C.forward(A_loader, j).forward(B_loader, i)


def float_sums_in_turn(rows: int, columns: int, pes: int, type: t2s.Type = FLOAT) -> Func:
    """A matrix times a vector, with the sums of several rows in a register file of each PE."""
    A, x = ImageParam(type, 2, name="A"), ImageParam(type, 1, name="x")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, columns, name="k")
    y[i] = t2s.cast(FLOAT, 0)
    y[i] += t2s.cast(FLOAT, A[i, k]) * t2s.cast(FLOAT, x[k])
    return y.bound(i, 0, rows).split(i, i, ii, pes).reorder(ii, i, k).unroll(ii)


def float_matrix_vector(rows: int, columns: int, pes: int) -> Func:
    """A matrix times a vector that goes along a row of PEs, row by row."""
    A, x = ImageParam(FLOAT, 2, name="A"), ImageParam(FLOAT, 1, name="x")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, columns, name="k")
    y[i] = t2s.cast(FLOAT, 0)
    y[i] += A[i, k] * x[k]
    y.bound(i, 0, rows).split(i, i, ii, pes).reorder(ii, k, i).unroll(ii)
    A_loader, x_loader, y_unloader = t2s.funcs("A_loader x_loader y_unloader")
    y.isolate_producer(A, A_loader).isolate_producer(x, x_loader).isolate_consumer(y_unloader)
    return y.forward(x_loader, ii)


def axpy(length: int, pes: int, type: t2s.Type = FLOAT) -> Func:
    """A vector times a number that is known at the start, plus another vector."""
    x, y = ImageParam(type, 1, name="x"), ImageParam(type, 1, name="y")
    alpha, z = t2s.Param(FLOAT, name="alpha"), Func("z")
    i, ii = t2s.variables("i ii")
    z[i] = t2s.cast(type, alpha * t2s.cast(FLOAT, x[i]) + t2s.cast(FLOAT, y[i]))
    return z.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def float_fir(taps: int, results: int, type: t2s.Type = FLOAT) -> Func:
    """A filter with a PE for each tap: taps stay, x goes to all, sums move."""
    x, w = ImageParam(type, 1, name="x"), ImageParam(type, 1, name="w")
    y, (i, p, t), q = Func("y"), t2s.variables("i p t"), RDom(0, taps, name="q")
    y[i] = t2s.cast(FLOAT, 0)
    y[i] += t2s.cast(FLOAT, x[i + q]) * t2s.cast(FLOAT, w[q])
    y.bound(i, 0, results)
    y.space_time_transform([i, q], [p, t], [(0, 1), (1, 1)])
    x_loader, w_loader = t2s.funcs("x_loader w_loader")
    return y.isolate_producer(x, x_loader).isolate_producer(w, w_loader)


def differences_squared(length: int) -> Func:
    """The squares of the differences of two vectors."""
    a, b = ImageParam(FLOAT, 1, name="a"), ImageParam(FLOAT, 1, name="b")
    y, i = Func("y"), t2s.Var("i")
    y[i] = (a[i] - b[i]) * (a[i] - b[i])
    return y.bound(i, 0, length)


def products_clamped(length: int, pes: int) -> Func:
    """Products of two vectors between two limits, which are vectors, too."""
    a, b, low, high = (ImageParam(FLOAT, 1, name=name) for name in ("a", "b", "low", "high"))
    y, (i, ii) = Func("y"), t2s.variables("i ii")
    y[i] = t2s.minimum(t2s.maximum(a[i] * b[i], low[i]), high[i])
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def float_rectifier(length: int, pes: int) -> Func:
    """What is not negative of a vector."""
    x, y, (i, ii) = ImageParam(FLOAT, 1, name="x"), Func("y"), t2s.variables("i ii")
    y[i] = t2s.maximum(x[i], t2s.cast(FLOAT, 0))
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def float_mean(length: int) -> Func:
    """The mean of three neighbors, one of which has twice the weight."""
    x, y, i = ImageParam(FLOAT, 1, name="x"), Func("y"), t2s.Var("i")
    y[i] = (x[i] + x[i + 1] * 2.0 + x[i + 2]) * 0.25
    return y.bound(i, 0, length)


def float_polynomial(length: int) -> Func:
    """A polynomial of the second degree of each element, by Horner's rule."""
    x, y, i = ImageParam(FLOAT, 1, name="x"), Func("y"), t2s.Var("i")
    y[i] = (x[i] * 0.3 + 1.7) * x[i] - 2.5
    return y.bound(i, 0, length)


def normalized(length: int, pes: int) -> Func:
    """A vector less a number that is known at the start, times another one."""
    x, (i, ii) = ImageParam(FLOAT, 1, name="x"), t2s.variables("i ii")
    mean, scale = t2s.Param(FLOAT, name="mean"), t2s.Param(FLOAT, name="scale")
    y = Func("y")
    y[i] = (x[i] - mean) * scale
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def float_leaky(length: int, type: t2s.Type = FLOAT) -> Func:
    """A rectifier that passes a tenth of what is negative."""
    x, y, i = ImageParam(type, 1, name="x"), Func("y"), t2s.Var("i")
    wide = t2s.cast(FLOAT, x[i])
    y[i] = t2s.cast(type, t2s.select(wide > 0.0, wide, wide * 0.1))
    return y.bound(i, 0, length)


def float_largest(rows: int, columns: int) -> Func:
    """The largest element of each row, with a PE for each row."""
    A, y = ImageParam(FLOAT, 2, name="A"), Func("y")
    i, k = t2s.Var("i"), RDom(0, columns, name="k")
    y[i] = t2s.cast(FLOAT, -1000)
    y[i] = t2s.maximum(y[i], A[i, k])
    return y.bound(i, 0, rows).reorder(k, i).unroll(i)


def float_smallest(rows: int, columns: int) -> Func:
    """The smallest element of each row, with a PE for each row."""
    A, y = ImageParam(FLOAT, 2, name="A"), Func("y")
    i, k = t2s.Var("i"), RDom(0, columns, name="k")
    y[i] = t2s.cast(FLOAT, 9999)
    y[i] = t2s.minimum(A[i, k], y[i])
    return y.bound(i, 0, rows).reorder(k, i).unroll(i)


def float_scaled(length: int, pes: int) -> Func:
    """A hundredth of a vector."""
    x, y, (i, ii) = ImageParam(FLOAT, 1, name="x"), Func("y"), t2s.variables("i ii")
    y[i] = x[i] * 0.01
    return y.bound(i, 0, length).split(i, i, ii, pes).unroll(ii)


def thresholded(length: int) -> Func:
    """The sums of two vectors of bfloat16 that are above another one."""
    a, b, least = (ImageParam(BFLOAT, 1, name=name) for name in ("a", "b", "least"))
    y, i = Func("y"), t2s.Var("i")
    total = t2s.cast(FLOAT, a[i]) + t2s.cast(FLOAT, b[i])
    y[i] = t2s.cast(
        BFLOAT, t2s.select(total > t2s.cast(FLOAT, least[i]), total, t2s.cast(FLOAT, 0))
    )
    return y.bound(i, 0, length)


def float_distances(points: int, dimensions: int, pes: int) -> Func:
    """Squared distances of points from one point."""
    p, c = ImageParam(FLOAT, 2, name="p"), ImageParam(FLOAT, 1, name="c")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, dimensions, name="k")
    y[i] = t2s.cast(FLOAT, 0)
    y[i] += (p[i, k] - c[k]) * (p[i, k] - c[k])
    return y.bound(i, 0, points).split(i, i, ii, pes).reorder(ii, i, k).unroll(ii)


def absolute_differences(length: int) -> Func:
    """The absolute differences of two vectors of bfloat16."""
    a, b = ImageParam(BFLOAT, 1, name="a"), ImageParam(BFLOAT, 1, name="b")
    y, i = Func("y"), t2s.Var("i")
    y[i] = t2s.absolute(t2s.cast(FLOAT, a[i]) - t2s.cast(FLOAT, b[i]))
    return y.bound(i, 0, length)


DRAWN: Mapping[str, Callable[[], Func]] = MappingProxyType(
    {
        "sum of vectors": lambda: add(96, 2),
        "sum of vectors, 3 PEs int8": lambda: add(21, 3, 8),
        "scaled by 10": lambda: scaled(50, 10),
        "scaled by -77 int32": lambda: scaled(1000, -77, 32),
        "leaky rectifier": lambda: leaky(64, 4),
        "clamped": lambda: clamped(100),
        "smoothed": lambda: smoothed(60),
        "sobel": lambda: sobel(7, 11),
        "dot product": lambda: dot(1000),
        "sums in turn": lambda: sums_in_turn(16, 9, 4),
        "sums in turn, 2 PEs int16": lambda: sums_in_turn(10, 33, 2, 16),
        "gemm 2x3, depth 8": lambda: deep_gemm(2, 3, 20, 8),
        "outer product": lambda: outer(5, 17),
        "blend": lambda: blend(40, 2),
        "absolute differences": lambda: differences(6, 25, 3),
        "mixed bits": lambda: mixed_bits(77),
        "two filters": lambda: two_filters(45),
        "fixed filter": lambda: fixed_filter(90),
        "squared distances": lambda: squared_distances(8, 5, 4),
        "gemm 2x3 int32": lambda: known.gemm(2, 3, 9, 32),
        "gemm 6x1 int16": lambda: known.gemm(6, 1, 7),
        "tiled gemm 3x3 int16": lambda: known.tiled_gemm(3, 2, 10, 16),
        "matrix-vector 6 PEs int16": lambda: known.matrix_vector(24, 10, 6, 16),
        "FIR 9 taps": lambda: known.fir(9, 33),
        "convolution 3x3 int16": lambda: known.convolution(2, 3, 7, 3, 16),
        "reduction tree of 16 lanes": lambda: known.reduction_tree(16, 2, 64),
        "sums of rows, 8 lanes int8": lambda: known.sums_of_rows(8, 5, 40, 8),
        "largest of 6 rows int32": lambda: known.largest(6, 50, 32),
        "rows of stencils int8": lambda: known.rows_of_stencils(3, 11, 8),
        "gemm 5x2 int8": lambda: known.gemm(5, 2, 33, 8),
        "gemm 6x6 int16": lambda: known.gemm(6, 6, 24),
        "gemm 3x3, depth 3": lambda: deep_gemm(3, 3, 12, 3),
        "lower triangle": lambda: lower_triangle(12, 3),
        "gray": lambda: gray(48, 2),
        "above": lambda: above(5, 60),
        "complex product": lambda: complex_product(70),
        "median of three": lambda: middle(35),
        "transpose": lambda: transposed(12, 7, 4),
        "FIR 7 taps int16": lambda: known.fir(7, 21, 16),
        "matrix-vector 5 PEs": lambda: known.matrix_vector(15, 20, 5),
        "convolution 3x3, 3 channels": lambda: known.convolution(3, 3, 9, 3),
        "sums of rows, 2 lanes int32": lambda: known.sums_of_rows(2, 7, 30, 32),
        "reduction tree of 4 lanes": lambda: known.reduction_tree(4, 5, 24),
        "sums in turn, 3 PEs": lambda: sums_in_turn(21, 14, 3),
        "rectifier of 3 PEs int32": lambda: leaky(33, 3, 32),
        "stencil int8": lambda: known.stencil(9, 15, 8),
        "above, 3 rows": lambda: above(3, 90),
    }
)
"""Designs after whose measurements the rules of the estimate were made, with those of
``chip_designs``."""

CHECKED: Mapping[str, Callable[[], Func]] = MappingProxyType(
    {
        "sums of rows, 4 lanes int8": lambda: known.sums_of_rows(4, 6, 36, 8),
        "sums of rows, 4 lanes int16": lambda: known.sums_of_rows(4, 5, 28, 16),
        "sums of rows, 4 lanes int32": lambda: known.sums_of_rows(4, 4, 44, 32),
        "sums of rows, 8 short rows int8": lambda: known.sums_of_rows(8, 3, 48, 8),
        "sums of rows, 8 lanes int16": lambda: known.sums_of_rows(8, 7, 32, 16),
        "sums of rows, 8 lanes int32": lambda: known.sums_of_rows(8, 5, 40, 32),
        "sums of rows, 16 lanes int8": lambda: known.sums_of_rows(16, 4, 48, 8),
        "sums of rows, 16 lanes int16": lambda: known.sums_of_rows(16, 3, 80, 16),
        "sums of rows, 16 lanes int32": lambda: known.sums_of_rows(16, 6, 32, 32),
        "transpose of 10x9": lambda: transposed(10, 9, 5),
        "differences of 20 columns": lambda: differences(8, 20, 4),
        "matrix-vector 7 PEs": lambda: known.matrix_vector(21, 13, 7),
        "triangle of 20": lambda: lower_triangle(20, 4),
        "stencil 7x12": lambda: known.stencil(7, 12),
        "tiled gemm 2x4 int8": lambda: known.tiled_gemm(2, 4, 9, 8),
        "reduction tree of 8 lanes int16": lambda: known.reduction_tree(8, 3, 24, 16),
        "reduction tree of 16 lanes int16": lambda: known.reduction_tree(16, 2, 32, 16),
    }
)
"""Designs that were measured after the rules were made, and had no part in them."""

FLOATS: Mapping[str, Callable[[], Func]] = MappingProxyType(
    {
        "gemm 2x2 bfloat16": lambda: float_gemm(2, 2, 6, BFLOAT),
        "gemm 2x3 float32": lambda: float_gemm(2, 3, 9),
        "axpy float32": lambda: axpy(24, 1),
        "axpy 2 PEs bfloat16": lambda: axpy(30, 2, BFLOAT),
        "matrix-vector 4 PEs float32": lambda: float_matrix_vector(8, 11, 4),
        "sums in turn 2 PEs float32": lambda: float_sums_in_turn(16, 9, 2),
        "sums in turn 3 PEs bfloat16": lambda: float_sums_in_turn(21, 14, 3, BFLOAT),
        "FIR 4 taps float32": lambda: float_fir(4, 16),
        "FIR 5 taps bfloat16": lambda: float_fir(5, 20, BFLOAT),
        "differences squared float32": lambda: differences_squared(40),
        "products clamped float32": lambda: products_clamped(20, 2),
        "rectifier of 2 PEs float32": lambda: float_rectifier(34, 2),
        "mean of three float32": lambda: float_mean(25),
        "polynomial float32": lambda: float_polynomial(30),
        "leaky rectifier bfloat16": lambda: float_leaky(44, BFLOAT),
        "largest of 4 rows float32": lambda: float_largest(4, 24),
        "smallest of 3 rows float32": lambda: float_smallest(3, 17),
    }
)
"""Designs of floating-point numbers, after which the rules for them were made."""

FLOATS_CHECKED: Mapping[str, Callable[[], Func]] = MappingProxyType(
    {
        "gemm 3x3 bfloat16": lambda: float_gemm(3, 3, 12, BFLOAT),
        "axpy 3 PEs float32": lambda: axpy(33, 3),
        "FIR 7 taps bfloat16": lambda: float_fir(7, 30, BFLOAT),
        "normalized 2 PEs float32": lambda: normalized(50, 2),
        "leaky rectifier float32": lambda: float_leaky(26),
        "distances 2 PEs float32": lambda: float_distances(16, 3, 2),
        "absolute differences bfloat16": lambda: absolute_differences(31),
        "matrix-vector 2 PEs float32": lambda: float_matrix_vector(6, 18, 2),
        "scaled by 0.01, 2 PEs float32": lambda: float_scaled(32, 2),
        "above a threshold bfloat16": lambda: thresholded(27),
    }
)
"""Designs of floating-point numbers that had no part in the rules."""
