"""Whole graphs of blocks: numpy's values, in every engine, and the cycles they have to take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s.core.expr import const
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.interpret import interpret_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.simulator.run import simulate
from t2s.sparse_repr.blocks.alu import ArrayLoad
from t2s.sparse_repr.streams import UNBOUNDED, BlockKind, Streams
from tests.sampling import sampled
from tests.sparse_repr.graphs import Design, elementwise, matrix_product, matrix_vector
from tests.sparse_repr.harness import FLOAT

SEEDS = (0, 1)


def sparse(seed: int, shape: tuple[int, int], density: float = 0.3) -> Any:
    """Small whole numbers, so that sums are exact; the first row is empty."""
    random = np.random.default_rng(seed)
    dense = random.integers(1, 9, shape) * (random.random(shape) < density)
    dense[0] = 0
    return dense.astype(np.float64)


def check(design: Design, expected: Any) -> int:
    """Values in both engines; the cycles."""
    assert graph_from_json(graph_to_json(design.graph)) == design.graph
    untimed = interpret_graph(design.graph, design.inputs)
    result = simulate(design.graph, design.inputs, engine="python")
    for found in (untimed, dict(result.outputs)):
        assert np.array_equal(design.dense(found), expected)
    return result.cycles


@pytest.mark.parametrize("seed", SEEDS)
def test_matrix_vector(seed: int) -> None:
    a, b = sparse(seed, (7, 9)), np.arange(9.0)
    check(matrix_vector(a, b), a @ b)


@sampled("seed", SEEDS, quick=2)
@pytest.mark.parametrize("operator", [Op.ADD, Op.SUBTRACT, Op.MULTIPLY])
def test_elementwise(operator: Op, seed: int) -> None:
    a, b = sparse(seed, (6, 8)), sparse(seed + 10, (6, 8))
    function = {Op.ADD: np.add, Op.SUBTRACT: np.subtract, Op.MULTIPLY: np.multiply}[operator]
    check(elementwise(a, b, operator), function(a, b))


@sampled("seed", SEEDS, quick=2)
@pytest.mark.parametrize("order", ["ijk", "ikj", "kij"])
def test_matrix_products(order: str, seed: int) -> None:
    b, c = sparse(seed, (6, 5)), sparse(seed + 10, (5, 7))
    check(matrix_product(b, c, order), b @ c)


@sampled("order", ["ijk", "ikj", "kij"], quick=2)
def test_an_empty_operand(order: str) -> None:
    b, c = np.zeros((4, 5)), sparse(1, (5, 7))
    check(matrix_product(b, c, order), b @ c)
    check(matrix_product(c.T, b.T, order), c.T @ b.T)


@sampled("order", ["ijk", "ikj", "kij"], quick=2)
def test_bounded_channels_give_the_same_values(order: str) -> None:
    b, c = sparse(3, (6, 5)), sparse(4, (5, 7))
    cycles = [
        check(matrix_product(b, c, order, capacity=capacity), b @ c)
        for capacity in (UNBOUNDED, 8, 4)
    ]
    assert cycles[0] <= cycles[1] <= cycles[2]


def test_a_stream_takes_a_cycle_for_each_token() -> None:
    """A vector of n elements: n + 2 tokens, and one cycle for each block on the way."""
    b = np.ones((1, 40))
    design = elementwise(b, b, Op.MULTIPLY)
    result = simulate(design.graph, design.inputs, engine="python")
    tokens = 40 + 2
    path = 8  # root, two scanners and joins, load, compute, write
    assert result.nodes["compute"].firings == tokens
    assert result.cycles == tokens + path - 1


def test_blocks_are_counted_as_in_the_literature() -> None:
    """Table 1 of [SAM]: SpM*SpM by rows and MMAdd (its coordinate droppers aside)."""
    b, c = sparse(3, (6, 5)), sparse(4, (5, 7))
    counts = matrix_product(b, c, "ikj").streams.counts
    rows = {
        BlockKind.SCAN: 4,
        BlockKind.REPEAT: 2,
        BlockKind.INTERSECT: 1,
        BlockKind.COMPUTE: 1,
        BlockKind.REDUCE: 1,
        BlockKind.DROP: 1,
        BlockKind.WRITE: 3,
        BlockKind.ARRAY: 2,
    }
    assert {kind: counts[kind] for kind in rows} == rows
    added = elementwise(b, b, Op.ADD).streams.counts
    assert [added[kind] for kind in (BlockKind.SCAN, BlockKind.UNION, BlockKind.COMPUTE)] == [
        4,
        2,
        1,
    ]


def test_equal_blocks_share_their_expressions() -> None:
    s = Streams("shared")
    pos, crd, values = s.tensor("pos", INT32), s.tensor("crd", INT32), s.tensor("values", FLOAT)
    for ref in [s.scan_compressed(s.root(), pos, crd)[1] for _ in "ab"]:
        s.load(ref, values)
    first, second = (node for node in s.graph().machines if node.name.startswith("scan"))
    pairs = list(zip(first.statements(), second.statements(), strict=True))
    assert pairs
    assert all(one is other for one, other in pairs)


def test_zeros_of_both_signs_are_different_blocks() -> None:
    s = Streams("signs")
    ref, values = s.root(), s.tensor("values", FLOAT)
    drafts = [
        s.drafted(ArrayLoad(values=values, missing=const(fill, FLOAT)), [ref.type])
        for fill in (0.0, 0.0, -0.0)
    ]
    assert drafts[0] is drafts[1]
    assert drafts[0] is not drafts[2]
