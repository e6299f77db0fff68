"""Strongly connected components are those of scipy."""

from __future__ import annotations

import random

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from t2s.core.strong_components import strong_components


def test_components_are_those_of_scipy() -> None:
    draw = random.Random(0)
    for _ in range(200):
        count = draw.randint(1, 12)
        arcs = [(draw.randrange(count), draw.randrange(count)) for _ in range(draw.randint(0, 20))]
        sides = np.array(arcs, np.int64).reshape(-1, 2).T
        matrix = coo_array((np.ones(len(arcs)), tuple(sides)), shape=(count, count))
        _, expected = connected_components(matrix, directed=True, connection="strong")
        found = np.array(strong_components(count, arcs))
        assert ((found[:, None] == found) == (expected[:, None] == expected)).all()


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain = [(number, number + 1) for number in range(20_000)]
    assert len(set(strong_components(20_001, chain))) == 20_001
    assert len(set(strong_components(20_001, [*chain, (20_000, 0)]))) == 1
