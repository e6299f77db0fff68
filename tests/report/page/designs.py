"""Designs that several tests of the page have: a systolic product, and one that deadlocks."""

from __future__ import annotations

from typing import Any

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom, Var


def product(size: int = 8, depth: int = 16, name: str = "C") -> Func:
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, depth, name="k")
    C = Func(name)
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, size).bound(j, 0, size)
    ii, jj = t2s.variables("ii jj")
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.update().tile(j, i, jj, ii, 4, 4).unroll(ii, jj)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    C.forward(A_loader, jj).forward(B_loader, ii)
    return C


def inputs_of(size: int = 8, depth: int = 16) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "A": rng.random((size, depth), np.float32),
        "B": rng.random((depth, size), np.float32),
    }


def rows() -> Func:
    """A_loader sends all values for the first PE before any for the second."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 4, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 4)
    A_loader, B_loader = t2s.funcs("A_loader B_loader")
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader)
    C.unroll(i).forward(B_loader, i)
    return C
