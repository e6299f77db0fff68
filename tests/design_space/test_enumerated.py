"""Searches of small spaces, against all of their points."""

from __future__ import annotations

import json

import pytest

from t2s.design_space.branch_and_bound import best_first
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
        assert found.best.cycles == known[name]["least"], name
        assert not found.refused, name
        assert len(found.timed) <= max(8, TIMED * known[name]["points"]), (name, len(found.timed))


def test_the_best_of_small_spaces() -> None:
    check(["mttkrp", "1-D convolution of primes", "blur"])


@pytest.mark.slow
def test_the_best_of_all_spaces() -> None:
    check(list(SPACES))


@pytest.mark.slow
def test_the_points_of_a_space() -> None:
    """Everything of one space again: the stored numbers, and no bound above the cycles."""
    name = "banded matrix"
    assert enumerate_space(name) == json.loads(FILE.read_text())[name]
