"""Promises about targets, checked against data."""

from __future__ import annotations

import numpy as np

from t2s.reduction.carry import interrupted_target, shared_target


def test_continuous() -> None:
    assert interrupted_target(np.array([[0, 0, 2, -1], [1, 1, 1, 3]])) is None
    assert interrupted_target(np.array([[0, -1, 0, 2], [1, 1, 1, 3]])) is None


def test_interrupted() -> None:
    assert interrupted_target(np.array([[0, 1, 2, 3], [4, 5, 4, -1]])) == (1, 4)


def test_distinct_and_shared() -> None:
    assert shared_target(np.array([[0, 0, -1], [1, 2, -1]])) is None
    assert shared_target(np.array([[0, 0, 5], [1, 5, -1]])) == (0, 1, 5)
    assert shared_target(np.full((3, 2), -1)) is None
