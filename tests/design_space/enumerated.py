"""Small spaces of which every point was timed: what a search has to find in them.

``python -m tests.design_space.enumerated`` times all points again, about 12,000, and writes their
number and the least cycles to ``tests/data/enumerated_spaces.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from t2s import Func
from t2s.design_space.columns import Budget
from t2s.design_space.contraction import contraction_of, with_single_reads
from t2s.design_space.point import Point
from t2s.design_space.space import Space
from t2s.devices import DEVICES
from t2s.driver.search_trial import ContractionTrial
from tests.design_space.contractions import (
    banded,
    blurred,
    convolution,
    filtered,
    gemm,
    matrix_vector,
    maxima,
    mttkrp,
    narrow_gemm,
    rank_one_update,
    symmetric,
    ttm,
    ttmc,
)

FILE = Path(__file__).parents[1] / "data" / "enumerated_spaces.json"


@dataclass(frozen=True)
class Enumerated:
    """A definition and a budget of DSP and RAM blocks of an Arria 10."""

    define: Callable[[], Func]
    dsp: int | None
    ram: int | None

    def space(self) -> tuple[Space, ContractionTrial]:
        func, device = with_single_reads(self.define()), DEVICES["arria10"]
        contraction = contraction_of(func, {})
        trial = ContractionTrial(func, contraction, {}, device)
        budget = Budget(dsp=self.dsp, ram=self.ram)
        blocks = trial.datapaths()
        return Space(contraction=contraction, device=device, budget=budget, datapaths=blocks), trial

    def points(self) -> Iterator[tuple[Point, int]]:
        """All points, with their bounds."""
        space, _ = self.space()
        for family in space.families():
            shapes = space.shapes(family)
            costs = space.costs(shapes, family.ways)
            for row in np.flatnonzero(costs.legal).tolist():
                yield space.point(shapes, row, family.ways), int(costs.bound[row])


SPACES: Mapping[str, Enumerated] = {
    "gemm": Enumerated(partial(gemm, 6, 5, 4), 4, 30),
    "gemm, B by rows": Enumerated(partial(gemm, 9, 4, 8, transposed=False), 3, 40),
    "gemm of primes": Enumerated(partial(gemm, 5, 7, 3), 4, 40),
    "gemm without RAM": Enumerated(partial(gemm, 12, 10, 16), 4, 6),
    "mttkrp": Enumerated(partial(mttkrp, 4, 3, (2, 4)), 4, 30),
    "ragged mttkrp": Enumerated(partial(mttkrp, 5, 3, (2, 3)), 4, 24),
    "ttm": Enumerated(partial(ttm, (2, 3, 4), 4), 3, 24),
    "ttm of long sums": Enumerated(partial(ttm, (2, 2, 3), 20), 6, 16),
    "convolution": Enumerated(partial(convolution, (1, 3, 2, 3), 2, 4), 3, 20),
    "1-D convolution": Enumerated(partial(filtered, 24, 6), 16, None),
    "1-D convolution of primes": Enumerated(partial(filtered, 13, 7), 12, None),
    "matrix times vector": Enumerated(partial(matrix_vector, 20, 16), 16, None),
    "matrix of primes times vector": Enumerated(partial(matrix_vector, 13, 11), 8, None),
    "banded matrix": Enumerated(partial(banded, 14, 6), 20, None),
    "rank-1 update": Enumerated(partial(rank_one_update, 6, 8), 8, 20),
    "symmetric product": Enumerated(partial(symmetric, 5, 6), 4, 20),
    "maxima": Enumerated(partial(maxima, 5, 4), None, 20),
    "blur": Enumerated(partial(blurred, 4, 9), 24, 40),
    "gemm of 8-bit integers": Enumerated(partial(narrow_gemm, 5, 4, 6), 2, 20),
    "ttmc": Enumerated(partial(ttmc, (2, 2, 3), (2, 4)), 4, 20),
}


def enumerate_space(name: str) -> dict[str, int]:
    """The number of points and the least cycles; bounds and blocks are checked on the way."""
    _, trial = SPACES[name].space()
    cycles = []
    for point, bound in SPACES[name].points():
        taken, _, _ = trial.timed(point)
        assert bound <= taken, point
        cycles.append(taken)
    return {"points": len(cycles), "least": min(cycles)}


def main() -> None:
    with ProcessPoolExecutor(1) as pool:
        found = dict(zip(SPACES, pool.map(enumerate_space, SPACES), strict=True))
    FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
