"""Designs for arrays of the public core: sums, products, and one operator at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import t2s
from t2s import Func, ImageParam, Int, RDom, Var

WORD = Int(32)


def dot_product(length: int, type: Any = WORD) -> Func:
    """One PE that adds up products of two vectors."""
    a, b = ImageParam(type, 1, name="a"), ImageParam(type, 1, name="b")
    i, k = Var("i"), RDom(0, length, name="k")
    s = Func("s")
    s[i] = 0
    s[i] += a[k] * b[k]
    return s.bound(i, 0, 1)


def row_product(rows: int, columns: int) -> Func:
    """Matrix times vector with a PE for each column; partial sums go from PE to PE."""
    A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
    i, k, kk = Var("i"), RDom(0, columns, name="k"), Var("kk")
    y = Func("y")
    y[i] = 0
    y[i] += A[i, k] * x[k]
    return y.bound(i, 0, rows).split(k, k, kk, columns).reorder(kk, i, k).unroll(kk)


def gathered_product(rows: int, columns: int, count: int) -> Func:
    """Matrix times vector with some rows at a time: x is passed on, results are gathered."""
    A, x = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 1, name="x")
    i, k, ii = Var("i"), RDom(0, columns, name="k"), Var("ii")
    x_loader, collector, unloader = t2s.funcs("x_loader collector unloader")
    y = Func("y")
    y[i] = 0
    y[i] += A[i, k] * x[k]
    y.bound(i, 0, rows).split(i, i, ii, count).reorder(k, ii, i).unroll(ii)
    y.isolate_producer_chain(x, x_loader).forward(x_loader, ii)
    y.isolate_consumer_chain(collector, unloader)
    collector.gather(y, ii)
    return y


def matrix_product(rows: int, columns: int, depth: int, count: int = 4) -> Func:
    """C = A * B with some columns at a time: A is passed on, results are gathered."""
    A, B = ImageParam(Int(32), 2, name="A"), ImageParam(Int(32), 2, name="B")
    i, j, k, jj = Var("i"), Var("j"), RDom(0, depth, name="k"), Var("jj")
    A_loader, B_loader, collector, unloader = t2s.funcs("A_loader B_loader collector unloader")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, rows).bound(j, 0, columns)
    C.split(j, j, jj, count).reorder(k, jj, j, i).unroll(jj)
    C.isolate_producer_chain(A, A_loader).isolate_producer_chain(B, B_loader)
    C.forward(A_loader, jj)
    C.isolate_consumer_chain(collector, unloader)
    collector.gather(C, jj)
    return C


def elementwise(compute: Callable[..., Any], length: int, type: Any = WORD) -> Func:
    """One PE that computes y[i] of a[i], b[i] and i."""
    a, b = ImageParam(type, 1, name="a"), ImageParam(type, 1, name="b")
    i, y = Var("i"), Func("y")
    y[i] = compute(a[i], b[i], i)
    return y.bound(i, 0, length)
