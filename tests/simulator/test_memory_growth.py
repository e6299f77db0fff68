"""A process that compiles many designs does not grow with them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from t2s import sparse
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Graph
from tests.hand_graphs import systolic_gemm

_MOST_GROWTH = 500_000
"""Bytes for each design: the text of its code, which a bounded cache keeps, is 200,000."""


def _simulate(number: int) -> None:
    """One more design."""
    assignment = sparse.parse(f"y(i) = A(i,j) * x(j) * {number + 2}", {"A": "ds"})
    kernel = sparse.compile(assignment)
    sparse.simulate(kernel, {"A": np.eye(4), "x": np.ones(4)})


def _graphs() -> int:
    """Graphs that somebody keeps."""
    gc.collect()
    return sum(type(item) is Graph for item in gc.get_objects())  # a proxy may be of something dead


@pytest.fixture
def traced_memory() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("traced_memory")
def test_sparse_designs_leave_nothing_behind() -> None:
    for number in range(2):
        _simulate(number)
    graphs, (before, _) = _graphs(), tracemalloc.get_traced_memory()
    for number in range(2, 8):
        _simulate(number)
    assert _graphs() == graphs
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < 6 * _MOST_GROWTH


def test_results_are_kept_for_a_bounded_number_of_graphs() -> None:
    kept: GraphCache[int, int] = GraphCache()
    graphs = [systolic_gemm(1, 1, 1) for _ in range(80)]
    for number, graph in enumerate(graphs):
        assert kept.get(graph, 0, lambda number=number: number) == number  # type: ignore[misc]
    assert len(kept) == 64
    assert kept.get(graphs[-1], 0, lambda: -1) == 79
    assert kept.get(graphs[0], 0, lambda: -1) == -1
