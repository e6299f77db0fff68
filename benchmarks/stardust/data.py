"""Data of table 8 of [Stardust]: made where there is a recipe, stand-ins where there is none.

Trefethen_20000 is made exactly.  The other matrices and the tensor of facebook are not available:
the stand-ins have their extents and their number of entries, and a structure of that kind (blocks
near the diagonal; short rows and a few long ones; users by a power law).  Uniform ones are random,
as published.  All values are small integers, as in the public programs.  ``part`` is the share of
the size that is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from t2s.sparse import SparseTensor
from t2s.sparse_repr.tensors.tensor import from_coordinates

Matrix = Any
"""A sparse matrix of scipy."""


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: whether it is a stand-in, and how a share of its size is made."""

    name: str
    stand_in: bool
    make: Callable[[float], Any]

    def __str__(self) -> str:
        return f"{self.name}, stand-in" if self.stand_in else self.name


def trefethen(part: float = 1.0, size: int = 20000) -> Matrix:
    """Primes on the diagonal, 1 where rows and columns are a power of two apart."""
    n = int(size * part)
    sieve = np.ones(max(20 * n, 100), np.bool_)
    sieve[:2] = False
    for number in range(2, int(len(sieve) ** 0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = False
    diagonals, offsets = [np.flatnonzero(sieve)[:n].astype(np.int32)], [0]
    distance = 1
    while distance < n:
        diagonals += 2 * [np.ones(n - distance, np.int32)]
        offsets += [distance, -distance]
        distance *= 2
    return scipy.sparse.diags(diagonals, offsets, format="csr", dtype=np.int32)


def blocks_near_diagonal(part: float, size: int, entries: int) -> Matrix:
    """Symmetric, of 6 x 6 blocks near the diagonal, as a stiffness matrix is."""
    blocks = int(size * part) // 6
    each = max(1, round(entries / size / 6))
    generator = np.random.default_rng(30)
    near = np.abs(generator.normal(0, 4 * each, (blocks, max(1, each // 2)))).astype(np.int64) + 1
    rows = np.repeat(np.arange(blocks), near.shape[1])
    columns = rows + near.reshape(-1)
    inside = columns < blocks
    rows, columns = rows[inside], columns[inside]
    both = np.concatenate([rows, columns, np.arange(blocks)])
    mirrored = np.concatenate([columns, rows, np.arange(blocks)])
    pattern = scipy.sparse.coo_matrix((np.ones(len(both)), (both, mirrored))).tocsr()
    return _small(scipy.sparse.kron(pattern, np.ones((6, 6)), format="csr"))


def short_rows(part: float, size: int, entries: int) -> Matrix:
    """Rows of a diagonal entry and a few more, and some hubs, as a circuit has."""
    n = int(size * part)
    generator = np.random.default_rng(11)
    lengths = generator.geometric(size / entries, n)
    lengths[generator.integers(0, n, max(1, n // 5000))] += n // 100
    rows = np.repeat(np.arange(n), lengths)
    near = rows + generator.integers(-50, 51, len(rows))
    far = generator.integers(0, n, len(rows))
    columns = np.clip(np.where(generator.random(len(rows)) < 0.7, near, far), 0, n - 1)
    found = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), (n, n)).tocsr()
    return _small(found)


def _small(matrix: Matrix) -> Matrix:
    """The same entries with small integers in them."""
    matrix.sum_duplicates()
    matrix.data = np.random.default_rng(5).integers(1, 5, matrix.nnz).astype(np.int32)
    return matrix


def users_by_power_law(
    part: float, extents: tuple[int, int, int] = (1591, 63891, 63890), entries: int = 740_000
) -> SparseTensor:
    """A tensor of days, users and users, some of whom do much and most of whom do little."""
    i, j, k = (max(1, int(extent * part)) for extent in extents)
    generator = np.random.default_rng(740)
    count = max(1, int(entries * part))
    days = generator.integers(0, i, count)
    one, other = ((generator.random((2, count)) ** 3).T * (j, k)).astype(np.int64).T
    points = np.unique(np.stack([days, one, other], axis=1), axis=0)
    values = generator.integers(1, 5, len(points)).astype(np.int32)
    return from_coordinates(points, values, (i, j, k), "sss")


def uniform(part: float, extents: tuple[int, ...], density: float) -> SparseTensor:
    """Entries at uniformly random places: compressed levels below a dense one."""
    shape = tuple(max(1, round(extent * part)) for extent in extents)
    generator = np.random.default_rng(len(extents))
    points = np.argwhere(generator.random(shape) < density)
    values = generator.integers(1, 5, len(points)).astype(np.int32)
    return from_coordinates(points, values, shape, "d" + "s" * (len(shape) - 1))


def rotated(tensor: SparseTensor, by: int, *, even: bool = False) -> SparseTensor:
    """The coordinates of the last mode moved by so many places, around its end.

    ``even`` moves even coordinates alone.  Where two entries meet the first one stays.
    """
    points, values = tensor.coordinates()
    moved = (points[:, -1] % 2 == 0) if even else np.ones(len(points), np.bool_)
    points[moved, -1] = (points[moved, -1] + by) % max(1, tensor.shape[-1])
    points, first = np.unique(points, axis=0, return_index=True)
    return from_coordinates(points, values[first], tensor.shape, tensor.format)


def _uniform(*extents: int) -> tuple[DataSet, ...]:
    size = " x ".join(map(str, extents))
    return tuple(
        DataSet(
            name=f"{size}, {density:.0%}",
            stand_in=False,
            make=partial(uniform, extents=extents, density=density),
        )
        for density in (0.01, 0.1, 0.5)
    )


MATRICES = (
    DataSet(name="Trefethen_20000", stand_in=False, make=trefethen),
    DataSet(
        name="bcsstk30",
        stand_in=True,
        make=partial(blocks_near_diagonal, size=28924, entries=2_070_000),
    ),
    DataSet(
        name="ckt11752_dc_1", stand_in=True, make=partial(short_rows, size=49702, entries=333_000)
    ),
)
TENSORS = (DataSet(name="facebook", stand_in=True, make=users_by_power_law),)

RANDOM_MATRICES = _uniform(800, 800)
RANDOM_TENSORS = _uniform(200, 200, 200)
