"""Coordinates of 2^31 and more: 64 bits where 32 are too few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s import Float, sparse
from t2s.core.types import INT32, Int
from t2s.sparse import SparseTensor
from tests.sampling import sampled

LARGE = 2**33


def _matrix(points: dict[tuple[int, ...], float]) -> SparseTensor:
    order = len(next(iter(points)))
    return sparse.from_coordinates(list(points), list(points.values()), (LARGE,) * order)


A = {(5,): 1.0, (2**31,): 2.0, (2**32 + 7,): 3.0, (LARGE - 1,): 4.0}
B = {(5,): 10.0, (2**32 + 7,): 20.0, (2**32 + 8,): 30.0, (LARGE - 1,): 40.0}
PRODUCT = {key: A[key] * B[key] for key in A.keys() & B.keys()}
TOTAL = {key: A.get(key, 0.0) + B.get(key, 0.0) for key in A.keys() | B.keys()}
M = {(3, 2**31 + 1): 1.0, (2**32, 2**31 + 5): 2.0, (2**32, 7): 3.0}
N = {(2**31 + 1, 2**32): 1.0, (7, 2**32): 2.0}
MN = {(3, 2**32): 1.0, (2**32, 2**32): 6.0}


@pytest.mark.parametrize("engine", ["python", "native"])
@sampled(
    ("text", "letters", "schedule", "inputs", "expected"),
    [
        ("y(i) = a(i)*b(i)", "s", "", {"a": A, "b": B}, PRODUCT),
        ("y(i) = a(i)*b(i)", "s", "skip(i)", {"a": A, "b": B}, PRODUCT),
        ("y(i) = a(i) + b(i)", "s", "split(i,i0,i1,65536)", {"a": A, "b": B}, TOTAL),
        ("y(i) = a(i) + b(i)", "s", "parallelize(i,2)", {"a": A, "b": B}, TOTAL),
        ("y(i,j) = a(i,k)*b(k,j)", "ss", "reorder(i,k,j)", {"a": M, "b": N}, MN),
    ],
    quick=1,
)
def test_coordinates_are_kept(
    text: str,
    letters: str,
    schedule: str,
    inputs: dict[str, dict[tuple[int, ...], float]],
    expected: dict[tuple[int, ...], float],
    engine: str,
) -> None:
    kernel = sparse.compile(sparse.parse(text, dict.fromkeys("aby", letters)), schedule)
    tensors = {name: _matrix(points) for name, points in inputs.items()}
    result = kernel.simulate(tensors, engine=engine)
    table, values = result.tensor.coordinates()
    assert dict(zip(map(tuple, table.tolist()), values.tolist(), strict=True)) == expected


def test_the_entries_of_fused_loops_are_counted_in_64_bits() -> None:
    side = 2**20
    points = {(3, side - 1): 1.0, (side - 1, 7): 3.0, (side - 1, side - 1): 2.0}
    matrix = sparse.from_coordinates(list(points), list(points.values()), (side, side))
    assignment = sparse.parse("X(i,j) = A(i,j)*A(i,j)", {"A": "ss", "X": "ss"})
    kernel = sparse.compile(assignment, "fuse(i,j,f), parallelize(f,2)")
    table, values = kernel.simulate({"A": matrix}).tensor.coordinates()
    assert list(map(tuple, table.tolist())) == list(points)
    assert values.tolist() == [1.0, 9.0, 4.0]


def test_32_bits_where_they_are_enough() -> None:
    kernel = sparse.compile(sparse.parse("y(i) = a(i)*a(i)", {"a": "s", "y": "s"}))

    def kinds(extent: int) -> set[Any]:
        tensor = sparse.from_coordinates([[1]], [1.0], (extent,))
        (graph,) = kernel.graphs({"a": tensor})
        return {one.type for one in graph.tensors if one.type != Float(64)}

    assert kinds(2**31 - 1) == {INT32}
    assert kinds(2**31) == {Int(64)}


def test_written_arrays_have_all_bits() -> None:
    tensor = sparse.from_coordinates([[LARGE - 2]], np.array([1.5]), (LARGE,))
    kernel = sparse.compile(sparse.parse("y(i) = -a(i)", {"a": "s", "y": "s"}))
    made = kernel.simulate({"a": tensor}, engine="python").tensor
    assert made.levels[0]["crd"].tolist() == [LARGE - 2]
    assert made.shape == (LARGE,)
