"""Random graphs: numbers of entries and walks, symmetry, rows, seeds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import sparse
from t2s.errors import UserError


def _degrees(graph: sparse.SparseTensor) -> np.ndarray:
    return np.diff(graph.levels[1]["pos"])


@pytest.mark.parametrize(
    ("nodes", "entries", "walks"),
    [
        (2708, 10556, 116_012),
        (2995, 16316, 292_494),
        (500, 3000, 40_000),
        (10, 90, 810),
        (2, 2, 2),
        (6, 11, None),
        (1000, 4000, None),
        (1, 1, None),
        (5, 5, None),
    ],
)
def test_numbers_of_a_graph(nodes: int, entries: int, walks: int | None) -> None:
    graph = sparse.random_graph(nodes, entries, walks, seed=3)
    assert graph.shape == (nodes, nodes)
    assert graph.format == sparse.csr
    table, values = graph.coordinates()
    assert len(table) == len(np.unique(table, axis=0)) == entries
    assert (values == 1).all()
    assert (table[:, 0] == table[:, 1]).sum() == entries % 2
    flipped = table[:, ::-1]
    assert {*map(tuple, table.tolist())} == {*map(tuple, flipped.tolist())}
    degrees = _degrees(graph)
    assert degrees.min() >= 1
    if walks is not None:
        assert abs((degrees[table[:, 1]]).sum() - walks) <= 0.005 * walks


def test_seeds_and_isolated_nodes() -> None:
    one, same, other = (sparse.random_graph(60, 200, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.to_dense(), same.to_dense())
    assert not np.array_equal(one.to_dense(), other.to_dense())
    few = sparse.random_graph(20, 30, isolated=5)
    assert (_degrees(few) == 0).sum() == 5
    assert len(sparse.random_graph(4, 0, isolated=4).values) == 0


def test_edges_are_mixed() -> None:
    """Nodes of many neighbors are not linked to each other alone."""
    graph = sparse.random_graph(300, 1800, 20_000, seed=1)
    table, _ = graph.coordinates()
    degrees = _degrees(graph)
    correlation = np.corrcoef(degrees[table[:, 0]], degrees[table[:, 1]])[0, 1]
    assert abs(correlation) < 0.3


def test_graphs_that_do_not_exist() -> None:
    with pytest.raises(UserError, match="no graph has 5 nodes, 0 of them isolated, and 4 entries"):
        sparse.random_graph(5, 4)
    with pytest.raises(UserError, match="no graph has 3 nodes"):
        sparse.random_graph(3, 8)
    with pytest.raises(UserError, match="have 10 walks of two edges") as caught:
        sparse.random_graph(100, 400, 10)
    assert caught.value.expected == "about 1600 to 29548 walks"
    with pytest.raises(UserError, match="no graph of 100 nodes has 400 entries with 29000 walks"):
        sparse.random_graph(100, 400, 29_000)
    with pytest.raises(UserError, match="nodes= of a random graph"):
        sparse.random_graph(-1, 4)
    with pytest.raises(UserError, match="seed= of a random graph"):
        sparse.random_graph(5, 6, seed=0.5)  # type: ignore[arg-type]
