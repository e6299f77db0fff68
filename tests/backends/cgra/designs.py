"""Designs in the user's language for the tests of the CGRA, in float64, with sizes as arguments.

``ii``, ``jj``, ... are the PEs along a dimension, ``i``, ``j``, ... how many blocks of these.
"""

from __future__ import annotations

from typing import Any

import t2s
from t2s import Float, Func, ImageParam, RDom, Var
from t2s.core.types import Type

DOUBLE = Float(64)


def gemm(
    ii: int = 2,
    jj: int = 2,
    kk: int = 4,
    i: int = 2,
    j: int = 2,
    k: int = 1,
    *,
    loaded: bool = False,
    buffered: bool = False,
    order: str = "kij",
    type: Type = DOUBLE,
) -> Func:
    """C = A B, all of ii, jj, kk unrolled; with ``loaded``, C starts from D.

    ``buffered`` puts virtual buffers into the feeders, so that every element is loaded once for a
    pass over i and j.  ``order`` names the loops in time, outermost first.
    """
    A, B = ImageParam(type, 2, name="A"), ImageParam(type, 2, name="B")
    D = ImageParam(type, 2, name="D")
    y, x, z = Var("i"), Var("j"), RDom(0, k * kk, name="k")
    C = Func("C")
    C[y, x] = D[y, x] if loaded else 0
    C[y, x] += A[y, z] * B[z, x]
    C.bound(y, 0, i * ii).bound(x, 0, j * jj)
    yy, xx, zz = t2s.variables("ii jj kk")
    loops: dict[str, Any] = {"i": y, "j": x, "k": z}
    C.tile(x, y, xx, yy, jj, ii).split(z, z, zz, kk)
    C.reorder(zz, xx, yy, *[loops[name] for name in reversed(order)]).unroll(yy, xx, zz)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(A_feeder, xx).forward(B_feeder, yy)
    if buffered:
        A_loader.remove(x)
        A_feeder.buffer(A_loader, y)
        B_loader.remove(y)
        B_feeder.buffer(B_loader, z)
    return C


def ttm(
    ii: int,
    jj: int,
    kk: int,
    ll: int,
    i: int = 2,
    j: int = 2,
    k: int = 2,
    l: int = 1,  # noqa: E741
) -> Func:
    """C[i, j, k] += A[i, j, l] * B[l, k] on ii x jj x kk x ll PEs, with buffers in the feeders."""
    A, B = ImageParam(DOUBLE, 3, name="A"), ImageParam(DOUBLE, 2, name="B")
    C, x, y, z, r = Func("C"), *t2s.variables("i j k"), RDom(0, l * ll, name="l")
    C[x, y, z] = 0.0
    C[x, y, z] += A[x, y, r] * B[r, z]
    C.bound(x, 0, i * ii).bound(y, 0, j * jj).bound(z, 0, k * kk)
    xx, yy, zz, rr = t2s.variables("ii jj kk ll")
    C.tile(z, y, x, zz, yy, xx, kk, jj, ii).split(r, r, rr, ll)
    C.reorder(rr, zz, yy, xx, z, y, x, r).unroll(xx, yy, zz, rr)
    A_loader, A_feeder, B_loader, B_feeder = t2s.funcs("A_loader A_feeder B_loader B_feeder")
    C.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    C.forward(A_feeder, zz).forward(B_feeder, xx).forward(B_feeder, yy)
    A_loader.remove(z)
    A_feeder.buffer(A_loader, y)
    B_loader.remove(x, y)
    B_feeder.buffer(B_loader, r)
    return C


def mttkrp(ii: int, jj: int, kk: int, ll: int, i: int = 2, j: int = 2, k: int = 1) -> Func:
    """D[i, j] += A[i, k, l] * B[k, j] * C[l, j] on ii x jj x kk x ll PEs, with buffers."""
    A, B = ImageParam(DOUBLE, 3, name="A"), ImageParam(DOUBLE, 2, name="B")
    C, D = ImageParam(DOUBLE, 2, name="C"), Func("D")
    x, y = Var("i"), Var("j")
    z, r = RDom(0, k * kk, 0, ll, name="k l")
    D[x, y] = 0.0
    D[x, y] += (A[x, z, r] * B[z, y]) * C[r, y]
    D.bound(x, 0, i * ii).bound(y, 0, j * jj)
    xx, yy, zz = t2s.variables("ii jj kk")
    D.reassociate().tile(y, x, yy, xx, jj, ii).split(z, z, zz, kk)
    D.reorder(r, zz, yy, xx, y, x, z).unroll(xx, yy, zz, r)
    names = "A_loader A_feeder B_loader B_feeder C_loader C_feeder"
    A_loader, A_feeder, B_loader, B_feeder, C_loader, C_feeder = t2s.funcs(names)
    D.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    D.isolate_producer_chain(C, C_loader, C_feeder)
    D.forward(A_feeder, yy).forward(B_feeder, xx).forward(C_feeder, xx)
    D.forward(B_feeder, r).forward(C_feeder, zz)
    A_loader.remove(y)
    A_feeder.buffer(A_loader, x)
    B_loader.remove(x)
    B_feeder.buffer(B_loader, z)
    C_loader.remove(x)
    C_feeder.buffer(C_loader, z)
    return D


def ttmc(
    ii: int,
    jj: int,
    kk: int,
    ll: int,
    mm: int,
    i: int = 2,
    j: int = 2,
    k: int = 2,
    l: int = 1,  # noqa: E741
) -> Func:
    """D[i, j, k] += A[i, l, m] * B[l, j] * C[m, k] on ii x jj x kk x ll x mm PEs, with buffers."""
    A, B = ImageParam(DOUBLE, 3, name="A"), ImageParam(DOUBLE, 2, name="B")
    C, D = ImageParam(DOUBLE, 2, name="C"), Func("D")
    x, y, z = t2s.variables("i j k")
    r, s = RDom(0, l * ll, 0, mm, name="l m")
    D[x, y, z] = 0.0
    D[x, y, z] += (A[x, r, s] * B[r, y]) * C[s, z]
    D.bound(x, 0, i * ii).bound(y, 0, j * jj).bound(z, 0, k * kk)
    xx, yy, zz, rr = t2s.variables("ii jj kk ll")
    D.reassociate().tile(z, y, x, zz, yy, xx, kk, jj, ii).split(r, r, rr, ll)
    D.reorder(s, rr, zz, yy, xx, z, y, x, r).unroll(xx, yy, zz, rr, s)
    names = "A_loader A_feeder B_loader B_feeder C_loader C_feeder"
    A_loader, A_feeder, B_loader, B_feeder, C_loader, C_feeder = t2s.funcs(names)
    D.isolate_producer_chain(A, A_loader, A_feeder).isolate_producer_chain(B, B_loader, B_feeder)
    D.isolate_producer_chain(C, C_loader, C_feeder)
    D.forward(A_feeder, yy).forward(A_feeder, zz)
    D.forward(B_feeder, xx).forward(B_feeder, zz).forward(B_feeder, s)
    D.forward(C_feeder, xx).forward(C_feeder, yy).forward(C_feeder, rr)
    A_loader.remove(y, z)
    A_feeder.buffer(A_loader, x)
    B_loader.remove(x)
    B_feeder.buffer(B_loader, r)
    C_loader.remove(x, y)
    C_feeder.buffer(C_loader, r)
    return D


def convolution(
    taps: int = 3, inputs: int = 2, outputs: int = 2, rows: int = 4, columns: int = 5
) -> Func:
    """O[y, x, co] += I[y + ky, x + kx, ci] * W[co, ky, kx, ci], a PE for each weight.

    Pixels go to all outputs at once; weights come along ci from PE to PE, and stay.
    """
    I, W = ImageParam(DOUBLE, 3, name="I"), ImageParam(DOUBLE, 4, name="W")  # noqa: E741
    O, y, x, co = Func("O"), *t2s.variables("y x co")  # noqa: E741
    ky, kx, ci = RDom(0, taps, 0, taps, 0, inputs, name="ky kx ci")
    O[y, x, co] = 0.0
    O[y, x, co] += I[y + ky, x + kx, ci] * W[co, ky, kx, ci]
    O.bound(y, 0, rows).bound(x, 0, columns).bound(co, 0, outputs)
    O.reorder(ci, kx, ky, co, x, y).unroll(co, ky, kx, ci)
    W_loader, W_feeder, I_loader = t2s.funcs("W_loader W_feeder I_loader")
    image = Var("image")
    O.split(y, image, y, rows)
    O.isolate_producer_chain(W, W_loader, W_feeder).isolate_producer(I, I_loader)
    O.forward(I_loader, co)
    W_loader.remove(x, y)
    W_feeder.scatter(W_loader, ci).buffer(W_loader, image)
    return O


def replayed(tokens: int, passes: int) -> Func:
    """y[p, j] = x[j]: one virtual buffer, filled once."""
    x, y, p, j, whole = ImageParam(DOUBLE, 1, name="x"), Func("y"), *t2s.variables("p j whole")
    y[p, j] = x[j]
    y.bound(p, 0, passes).bound(j, 0, tokens).split(p, whole, p, passes)
    loader, feeder = t2s.funcs("loader feeder")
    y.isolate_producer_chain(x, loader, feeder)
    loader.remove(p)
    feeder.buffer(loader, whole)
    return y
