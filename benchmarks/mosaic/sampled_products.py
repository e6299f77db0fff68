"""Figures 16, 19 and 22 of [Mosaic]: a sampled product over density, size, and matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.mosaic.measuring import Figure, Part, random_dense, random_sparse
from t2s import sparse

STATEMENT = sparse.parse("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"})
PRODUCT = "C(i,k)*D(k,j)"
STORED = (("store(D), loops", "store(D,1,0)"),)
"""Loops behind a transposition of D, which the paper does not have."""

MATRICES = (
    ("Trec5", 3, 7, 12),
    ("Ragusa18", 23, 23, 64),
    ("lp_sc50b", 50, 78, 148),
    ("cavity02", 317, 317, 5923),
    ("IG5-12", 2296, 2875, 46_260),
    ("gemat1", 4929, 10_595, 46_591),
)
"""Some of table 3 as stand-ins: the published shapes and entries, at random places."""


def _given(rows: int, columns: int, inner: int, density: float) -> dict[str, Any]:
    return {
        "B": random_sparse(rows, columns, density, "ds"),
        "C": random_dense(rows, inner),
        "D": random_dense(inner, columns, seed=2),
    }


def _densities(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    n = 100 if quick else 2000
    for density in (0.001, 0.1) if quick else (0.0008, 0.0024, 0.01, 0.1, 0.4):
        yield f"{density:.2%}", _given(n, n, n, density)


def _sizes(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for n in (40, 90) if quick else (100, 400, 1000, 2000):
        yield f"n = {n}", _given(n, n, n, 0.4)


def _matrices(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, rows, columns, count in MATRICES[: 3 if quick else None]:
        yield name, _given(rows, columns, columns, count / rows / columns)


FIGURES = (
    Figure(
        number=16,
        title="SDDMM over density, n = 2000",
        published="fused code is fastest below 0.24 %, then dense products; dots and matrix times "
        "vector for each row are 500 to 1000 x slower",
        statement=STATEMENT,
        points=_densities,
        parts=(Part(text=PRODUCT), Part(text=PRODUCT, fixed=("j",))),
        more=STORED,
    ),
    Figure(
        number=19,
        title="SDDMM over n, 40 % stored",
        published="BLAS is 31.5 x, GSL 21.7 x, TBLIS 18.8 x of fused code, on average",
        statement=STATEMENT,
        points=_sizes,
        parts=(Part(text=PRODUCT),),
        more=STORED,
    ),
    Figure(
        number=22,
        title="SDDMM on matrices like those of table 3",
        published="BLAS is 0.31 x (lp_sc50b), 1.69 x (cavity02), 6.48 x (IG5-12) of fused code",
        statement=STATEMENT,
        points=_matrices,
        parts=(Part(text=PRODUCT),),
        more=STORED,
    ),
)
