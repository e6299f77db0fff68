"""Integer designs that become chips: products of matrices, filters, sums, of several sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import t2s
from t2s import Func, ImageParam, Int, RDom


def gemm(rows: int, columns: int, steps: int, bits: int = 16) -> Func:
    """C = A B with a PE for each result, and operands that go from PE to PE."""
    A, B = ImageParam(Int(bits), 2, name="A"), ImageParam(Int(bits), 2, name="B")
    C, (i, j), k = Func("C"), t2s.variables("i j"), RDom(0, steps, name="k")
    C[i, j] = t2s.cast(Int(32), 0)
    C[i, j] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[k, j])
    C.bound(i, 0, rows).bound(j, 0, columns)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.reorder(j, i, k).unroll(i, j)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    return C.forward(A_loader, j).forward(B_loader, i)


def tiled_gemm(side: int, blocks: int, steps: int, bits: int = 8) -> Func:
    """The same for several tiles of results, one after the other."""
    A, B = ImageParam(Int(bits), 2, name="A"), ImageParam(Int(bits), 2, name="B")
    C, (i, j, ii, jj) = Func("C"), t2s.variables("i j ii jj")
    k = RDom(0, steps, name="k")
    C[i, j] = t2s.cast(Int(32), 0)
    C[i, j] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[k, j])
    C.bound(i, 0, side * blocks).bound(j, 0, side * blocks)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.split(i, i, ii, side).split(j, j, jj, side).reorder(jj, ii, k, j, i).unroll(ii, jj)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    return C.forward(A_loader, jj).forward(B_loader, ii)


def matrix_vector(rows: int, columns: int, pes: int, bits: int = 8) -> Func:
    """y = A x with a row of PEs, along which x goes."""
    A, x = ImageParam(Int(bits), 2, name="A"), ImageParam(Int(bits), 1, name="x")
    y, (i, ii), k = Func("y"), t2s.variables("i ii"), RDom(0, columns, name="k")
    y[i] = t2s.cast(Int(32), 0)
    y[i] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), x[k])
    y.bound(i, 0, rows).split(i, i, ii, pes).reorder(ii, k, i).unroll(ii)
    A_loader, x_loader, y_unloader = t2s.funcs("A_loader x_loader y_unloader")
    y.isolate_producer(A, A_loader).isolate_producer(x, x_loader).isolate_consumer(y_unloader)
    return y.forward(x_loader, ii)


def fir(taps: int, results: int, bits: int = 8) -> Func:
    """A filter with a PE for each tap: taps stay, x goes to all, sums move."""
    x, w = ImageParam(Int(bits), 1, name="x"), ImageParam(Int(bits), 1, name="w")
    y, (i, p, t), q = Func("y"), t2s.variables("i p t"), RDom(0, taps, name="q")
    y[i] = t2s.cast(Int(32), 0)
    y[i] += t2s.cast(Int(32), x[i + q]) * t2s.cast(Int(32), w[q])
    y.bound(i, 0, results)
    y.space_time_transform([i, q], [p, t], [(0, 1), (1, 1)])
    x_loader, w_loader = t2s.funcs("x_loader w_loader")
    return y.isolate_producer(x, x_loader).isolate_producer(w, w_loader)


def convolution(rows: int, channels: int, width: int, kernel: int = 5, bits: int = 8) -> Func:
    """A layer of convolutions with PEs along the rows of an image and the output channels."""
    I, W = ImageParam(Int(bits), 2, name="I"), ImageParam(Int(bits), 3, name="W")  # noqa: E741
    O, (y, x, c) = Func("O"), t2s.variables("y x c")  # noqa: E741
    u, v = RDom(0, kernel, 0, kernel, name="u v")
    O[y, x, c] = t2s.cast(Int(32), 0)
    O[y, x, c] += t2s.cast(Int(32), I[y + u, x + v]) * t2s.cast(Int(32), W[c, u, v])
    O.bound(y, 0, rows).bound(x, 0, width).bound(c, 0, channels)
    I_loader, W_loader, O_unloader = t2s.funcs("I_loader W_loader O_unloader")
    O.reorder(c, y, v, u, x).unroll(y, c)
    O.isolate_producer(I, I_loader).isolate_producer(W, W_loader).isolate_consumer(O_unloader)
    return O.forward(I_loader, c).forward(W_loader, y)


def stencil(rows: int, columns: int, bits: int = 16) -> Func:
    """Five points of an image with weights, one result in a cycle."""
    x, y = ImageParam(Int(bits), 2, name="x"), Func("y")
    i, j = t2s.variables("i j")
    y[i, j] = (x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]) * 3 - x[
        i + 1, j + 1
    ] * 12
    return y.bound(i, 0, rows).bound(j, 0, columns)


def rows_of_stencils(pes: int, columns: int, bits: int = 16) -> Func:
    """Three points of the rows of an image, with a PE for each row."""
    x, y = ImageParam(Int(bits), 2, name="x"), Func("y")
    i, j = t2s.variables("i j")
    y[i, j] = x[i, j] + x[i, j + 1] * 2 + x[i, j + 2]
    return y.bound(i, 0, pes).bound(j, 0, columns).reorder(j, i).unroll(i)


def reduction_tree(lanes: int, rows: int, columns: int, bits: int = 8) -> Func:
    """Products of vectors, whose sums are trees over the lanes."""
    A, B = ImageParam(Int(bits), 2, name="A"), ImageParam(Int(bits), 2, name="B")
    C, (i, kv), k = Func("C"), t2s.variables("i kv"), RDom(0, columns, name="k")
    C[i] = t2s.cast(Int(32), 0)
    C[i] += t2s.cast(Int(32), A[i, k]) * t2s.cast(Int(32), B[i, k])
    C.bound(i, 0, rows).split(k, k, kv, lanes).reorder(kv, k, i).vload(A, B)
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    return (
        C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    )


def sums_of_rows(lanes: int, rows: int, columns: int, bits: int = 16) -> Func:
    """Sums of the rows of a matrix, some elements in a cycle."""
    A, C = ImageParam(Int(bits), 2, name="A"), Func("C")
    (i, kv), k = t2s.variables("i kv"), RDom(0, columns, name="k")
    C[i] = t2s.cast(Int(32), 0)
    C[i] += t2s.cast(Int(32), A[i, k])
    return C.bound(i, 0, rows).split(k, k, kv, lanes).reorder(kv, k, i).vload(A)


def largest(pes: int, columns: int, bits: int = 16) -> Func:
    """The largest element of each row, with a PE for each row."""
    A, C = ImageParam(Int(bits), 2, name="A"), Func("C")
    i, k = t2s.Var("i"), RDom(0, columns, name="k")
    C[i] = t2s.cast(Int(bits), -(1 << (bits - 1)))
    C[i] = t2s.maximum(C[i], A[i, k])
    return C.bound(i, 0, pes).reorder(k, i).unroll(i)


def polynomial(length: int, bits: int = 8) -> Func:
    """A polynomial of the third degree of each element, by Horner's rule."""
    x, y, i = ImageParam(Int(bits), 1, name="x"), Func("y"), t2s.Var("i")
    wide = t2s.cast(Int(16), x[i])
    y[i] = (wide * 3 + 5) * wide - 7
    return y.bound(i, 0, length)


DESIGNS: Mapping[str, Callable[[], Func]] = MappingProxyType(
    {
        "gemm 2x2 int8": lambda: gemm(2, 2, 6, 8),
        "gemm 4x4 int16": lambda: gemm(4, 4, 16),
        "gemm 4x4 int8": lambda: gemm(4, 4, 16, 8),
        "gemm 3x5 int8": lambda: gemm(3, 5, 100, 8),
        "gemm 8x8 int16": lambda: gemm(8, 8, 16),
        "tiled gemm 2x2 int8": lambda: tiled_gemm(2, 2, 12),
        "matrix-vector 8 PEs": lambda: matrix_vector(16, 32, 8),
        "matrix-vector 4 PEs int16": lambda: matrix_vector(4, 64, 4, 16),
        "FIR 16 taps": lambda: fir(16, 40),
        "FIR 5 taps int16": lambda: fir(5, 16, 16),
        "convolution 5x5": lambda: convolution(4, 4, 6),
        "convolution 3x3, 2 channels": lambda: convolution(3, 2, 5, 3),
        "stencil of 5 points": lambda: stencil(6, 10),
        "rows of stencils": lambda: rows_of_stencils(4, 20),
        "reduction tree of 8 lanes": lambda: reduction_tree(8, 4, 32),
        "reduction tree of 4 lanes int16": lambda: reduction_tree(4, 3, 16, 16),
        "sums of rows": lambda: sums_of_rows(4, 3, 16),
        "largest of rows": lambda: largest(4, 20),
        "polynomial": lambda: polynomial(24),
    }
)
"""All designs by name."""
