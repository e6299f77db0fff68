"""Random inputs with the statistics of those of [SAM, Figs. 11 and 12]."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def matrix(rows: int, columns: int, entries: int, seed: int) -> Array:
    """A matrix with this many entries, at random places; small integers, so that sums are exact."""
    generator = np.random.default_rng(seed)
    flat = np.zeros(rows * columns)
    places = generator.choice(flat.size, entries, replace=False)
    flat[places] = generator.integers(1, 9, entries)
    return flat.reshape(rows, columns)


def left() -> Array:
    """B of both figures: 250 x 100, 95 % sparse, with 1212 entries."""
    return matrix(250, 100, 1212, 0)


def right() -> Array:
    """C of Fig. 12: 100 x 250, 95 % sparse, with 1280 entries."""
    return matrix(100, 250, 1280, 1)
