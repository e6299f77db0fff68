"""Figures 17 and 20 of [Mosaic]: a block-sparse matrix times a dense one, 5 % and 20 % stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.mosaic.measuring import KIND, Figure, Part, random_dense
from t2s import sparse

STATEMENT = sparse.parse("A(i,k,m,n) = B(i,k,j,l) * C(j,l,m,n)", {"B": "dsdd:0,2,1,3"})
PRODUCT = "B(i,k,j,l)*C(j,l,m,n)"
BLOCKS = 10
"""Blocks along each mode; n is the size of one of them."""


def _points(density: float) -> Callable[[bool], Iterator[tuple[str, dict[str, Any]]]]:
    def points(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
        for n in (2, 6) if quick else (4, 10, 20, 40):
            generator = np.random.default_rng(n)
            there = generator.random((BLOCKS, 1, BLOCKS, 1)) < density
            there[0, 0, 0, 0] = True
            shape = (BLOCKS, n, BLOCKS, n)
            blocks = (random_dense(*shape) * there).astype(KIND)
            yield f"n = {n}", {"B": blocks, "C": random_dense(*shape, seed=2)}

    return points


def _figure(number: int, density: float, published: str) -> Figure:
    return Figure(
        number=number,
        title=f"block-sparse times dense over the size of blocks, {density:.0%} stored",
        published=published,
        statement=STATEMENT,
        points=_points(density),
        parts=(Part(text=PRODUCT, fixed=("i", "j", "m"), densify=True),),
    )


FIGURES = (
    _figure(17, 0.05, "fused code is fastest below n = 40, then BLAS, up to 2.4 x"),
    _figure(20, 0.2, "BLAS is up to 7.4 x of fused code as n grows"),
)
