"""Sets of points as conditions and as boxes, and that classes of any shape stay few."""

from __future__ import annotations

import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import t2s
from t2s.backends.cgra_tia.lift.classes import boxes_of, inside
from t2s.core.expr import evaluate

ROOT = Path(__file__).parents[3]
GRID = list(product(range(4), range(3), range(3)))
"""All points that there may be."""


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(GRID), min_size=1), st.sets(st.sampled_from(GRID)))
def test_boxes_are_the_part_and_no_more(
    part: set[tuple[int, ...]], others: set[tuple[int, ...]]
) -> None:
    whole = part | others
    boxes = boxes_of(part, whole)
    assert sorted(point for box in boxes for point in box) == sorted(part)
    for box in boxes:
        low, high = (tuple(map(end, zip(*box, strict=True))) for end in (min, max))
        ranges = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
        assert set(product(*ranges)) & whole <= part


@settings(max_examples=100, deadline=None)
@given(st.sets(st.sampled_from(GRID), min_size=1), st.sets(st.sampled_from(GRID)))
def test_a_condition_holds_where_it_should(
    part: set[tuple[int, ...]], others: set[tuple[int, ...]]
) -> None:
    whole, names = part | others, ("a", "b", "c")
    condition = inside(names, part, whole)
    if condition is not None:
        for point in whole:
            values = {name: np.asarray(at) for name, at in zip(names, point, strict=True)}
            assert bool(evaluate(condition, values)) == (point in part)


def test_a_box_with_a_corner_missing_has_a_condition() -> None:
    """As the cells of a chain that another kind of cell starts."""
    whole = set(product(range(7), range(3), range(3), range(4)))
    part = {point for point in whole if point[3] and point[1:] != (0, 0, 1)}
    assert len(boxes_of(part, whole)) <= 4
    assert inside(("a", "b", "c", "d"), part, whole) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "result", "nodes"), [("conv", "O", 11), ("ttmc", "D", 26), ("gemm", "C", 14)]
)
def test_large_designs_have_few_nodes(name: str, result: str, nodes: int) -> None:
    design = runpy.run_path(str(ROOT / "examples" / "cgra" / f"{name}.py"))[result]
    graph = t2s.lower(t2s.cgra.place(design))
    assert len(graph.nodes) <= nodes + 4  # more relays, or fewer, on another way
