"""Small programs that the tests of wrong directives start from."""

from __future__ import annotations

from dataclasses import dataclass

from t2s import Func, ImageParam, Int, RDom, Type, Var
from t2s.func.func import RVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``C[i, j] += A[i, k] * B[k, j]`` with i, j and k of extents 4, 6 and 8."""

    A: ImageParam
    B: ImageParam
    C: Func
    i: Var
    j: Var
    k: RVar


def product(type: Type | None = None) -> Product:
    """A matrix product without directives (int32 unless another type is given)."""
    element = Int(32) if type is None else type
    A, B = ImageParam(element, 2, name="A"), ImageParam(element, 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, 8, name="k")
    C = Func("C")
    C[i, j] = 0
    C[i, j] += A[i, k] * B[k, j]
    C.bound(i, 0, 4).bound(j, 0, 6)
    return Product(A=A, B=B, C=C, i=i, j=j, k=k)


@dataclass(frozen=True, slots=True, kw_only=True)
class Triangle:
    """``T[i] += A[k]`` for k up to i, with i of extent 4."""

    A: ImageParam
    T: Func
    i: Var
    k: RVar


def triangle() -> Triangle:
    """A sum over a number of elements that depends on the result."""
    A, T, i = ImageParam(Int(32), 1, name="A"), Func("T"), Var("i")
    k = RDom(0, i + 1, name="k")
    T[i] = 0
    T[i] += A[k]
    T.bound(i, 0, 4)
    return Triangle(A=A, T=T, i=i, k=k)
