"""Figures 12, 13, 14 and 18 of [Mosaic]: matrices and a tensor times a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.mosaic.measuring import Figure, Part, random_dense, random_sparse
from t2s import sparse
from t2s.sparse_repr.notation.ir import Assignment

PRODUCT = "B(i,j)*c(j)"
SIZES = (250, 1000, 2500, 4750)
QUICK = (60, 200)


def _dense(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for n in QUICK if quick else SIZES:
        yield f"n = {n}", {"B": random_dense(n, n), "c": random_dense(n)}


def _symmetric(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for label, given in _dense(quick):
        yield label, {**given, "B": given["B"] + given["B"].T}


def _sparse(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for n in QUICK if quick else SIZES:
        yield f"n = {n}", {"B": random_sparse(n, n, 0.2, "ds"), "c": random_dense(n)}


def _tensor(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for n in (12, 30) if quick else (50, 100, 200, 300):
        yield f"n = {n}", {"B": random_dense(n, n, n), "c": random_dense(n)}


def _symmetric_statement() -> Assignment:
    """The product of a matrix that is declared symmetric."""
    made = sparse.parse(f"a(i) = {PRODUCT}")
    tensors = (
        replace(one, properties=("symmetric",)) if one.name == "B" else one for one in made.tensors
    )
    return replace(made, tensors=tuple(tensors))


FIGURES = (
    Figure(
        number=12,
        title="GEMV over n",
        published="CBLAS is 1.9 x, GSL 1.1 x of fused code, on average",
        statement=sparse.parse(f"a(i) = {PRODUCT}"),
        points=_dense,
        parts=(Part(text=PRODUCT),),
    ),
    Figure(
        number=13,
        title="symmetric GEMV over n",
        published="CBLAS is 2.9 x, MKL 1.8 x of fused code, on average",
        statement=_symmetric_statement(),
        points=_symmetric,
        parts=(Part(text=PRODUCT),),
    ),
    Figure(
        number=14,
        title="SpMV over n, 20 % stored",
        published="Stardust is an order of magnitude faster; cuSPARSE has no advantage",
        statement=sparse.parse(f"a(i) = {PRODUCT}", {"B": "ds"}),
        points=_sparse,
        parts=(Part(text=PRODUCT),),
    ),
    Figure(
        number=18,
        title="tensor times vector over n",
        published="no call beats fused code",
        statement=sparse.parse("A(i,j) = B(i,j,k)*c(k)"),
        points=_tensor,
        parts=(Part(text="B(i,j,k)*c(k)"), Part(text="B(i,j,k)*c(k)", fixed=("i",))),
    ),
)
