"""Searches of small spaces, against all of their points."""

from __future__ import annotations

import json

import numpy as np
import pytest

from t2s.design_space.branch_and_bound import best_first
from t2s.design_space.journal import Outcome
from t2s.design_space.point import Point
from tests.design_space.enumerated import FILE, SPACES, enumerate_space

TIMED = 0.15
"""The largest part of the points that a search may time."""


def check(names: list[str]) -> None:
    known = json.loads(FILE.read_text())
    for name in names:
        space, trial = SPACES[name].space()
        found = best_first(space, trial.outcome, seconds=120)
        assert found.best is not None, name
        assert found.complete, name
        assert found.smallest, name
        assert found.best.cycles == known[name]["least"], name
        assert not found.refused, name
        assert len(found.timed) <= max(8, TIMED * known[name]["points"]), (name, len(found.timed))


def test_the_best_of_small_spaces() -> None:
    check(["mttkrp", "1-D convolution of primes", "blur"])


@pytest.mark.parametrize("name", ["gemm", "ttm of long sums", "blur"])
def test_of_equally_fast_designs_the_smallest_wins(name: str) -> None:
    """If cycles were about the bounds, many of which are equal: of all points, by RAM, then DSP."""
    space, _ = SPACES[name].space()
    exact: dict[Point, Outcome] = {}
    for family in space.families():
        shapes = space.shapes(family)
        costs = space.costs_of(family, shapes)
        for row in np.flatnonzero(costs.legal).tolist():
            bound, dsp, ram = (int(c[row]) for c in (costs.bound, costs.dsp, costs.ram))
            outcome = Outcome(cycles=bound + row % 3 // 2, dsp_blocks=dsp, ram_blocks=ram)
            exact[space.point(shapes, row, family.ways)] = outcome
    found = best_first(space, lambda point, cut: exact[point], seconds=60)
    assert found.best is not None
    assert found.complete
    assert found.smallest
    least = min((each.cycles, each.ram_blocks, each.dsp_blocks) for each in exact.values())
    assert (found.best.cycles, found.best.ram, found.best.dsp) == least


@pytest.mark.slow
def test_the_best_of_all_spaces() -> None:
    check(list(SPACES))


@pytest.mark.slow
def test_the_points_of_a_space() -> None:
    """Everything of one space again: the stored numbers, and no bound above the cycles."""
    name = "banded matrix"
    assert enumerate_space(name) == json.loads(FILE.read_text())[name]
