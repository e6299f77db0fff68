"""Figures 15 and 21 of [Mosaic]: sums of sparse matrices, as lists of coordinates and by rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.mosaic.measuring import Figure, Part, random_sparse
from t2s import sparse

SUM = "B(i,j)+C(i,j)"


def _lists(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    n = 300 if quick else 10_000
    for density in (0.001, 0.01) if quick else (0.0001, 0.001, 0.01):
        matrices = {name: random_sparse(n, n, density, "uq", at) for at, name in enumerate("BC")}
        yield f"{density:.2%}", matrices


def _rows(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    for density in (0.01, 0.1) if quick else (0.005, 0.02, 0.1, 0.4):
        matrices = {
            name: random_sparse(200, 200, density, "ds", at) for at, name in enumerate("BC")
        }
        yield f"{round(40_000 * density)} entries", matrices


FIGURES = (
    Figure(
        number=15,
        title="SpMMAdd of lists of coordinates, n = 10000; calls convert them to rows",
        published="converted to rows at run time, MKL is up to 10.1 x of fused code over lists",
        statement=sparse.parse(f"A(i,j) = {SUM}", {"A": "ds", "B": "uq", "C": "uq"}),
        points=_lists,
        parts=(Part(text=SUM, converts=True),),
    ),
    Figure(
        number=21,
        title="SpMMAdd over what is stored, n = 200",
        published="Stardust is up to 173 x of fused code",
        statement=sparse.parse(f"A(i,j) = {SUM}", {"A": "ds", "B": "ds", "C": "ds"}),
        points=_rows,
        parts=(Part(text=SUM),),
    ),
)
