"""How tight bounds are: ``python -m benchmarks.search_bounds [POINTS] [KERNEL ...]``.

Random points of the spaces of the examples, at their sizes and with the DSP and RAM blocks of the
designs there.  Each is bounded and then timed exactly: no bound may be above the cycles, and blocks
have to be those of the lowered design; half of the bounds reach 98 % of the cycles, and nine of ten
90 %.  Points are drawn over families (shapes of the array), so that small ones count as large ones.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from t2s.driver.recognize import design_of
from t2s.driver.simulate import device_for
from t2s.errors import T2SWarning
from tests.design_space.test_search import HAND
from tests.design_space.test_space import space_of

POINTS = 1000
KERNELS = ("gbmv", "capsules", "ttmc", "mttkrp", "convolution", "ttm")
MEDIAN, TENTH = 0.98, 0.90


@dataclass
class Sample:
    """What random points of a space showed: bounds as shares of cycles, and what was wrong."""

    shares: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        shares = np.array(self.shares)
        return (
            f"{len(shares)} points: median {np.median(shares):.4f}, "
            f"10th percentile {np.quantile(shares, 0.1):.4f}, least {shares.min():.4f}, "
            f"{len(self.wrong)} wrong"
        )

    @property
    def good(self) -> bool:
        """Whether the bounds are bounds, and as tight as they have to be."""
        tight = np.median(self.shares) >= MEDIAN and np.quantile(self.shares, 0.1) >= TENTH
        return bool(tight) and not self.wrong


def sample(kernel: str, points: int) -> Sample:
    """Random points of the space of an example."""
    define, (dsp, ram, _), _ = HAND[kernel]
    func = define()
    space, trial = space_of(func, dsp, ram, device_for(design_of(func), "arria10"))
    families, random, found = space.families(), np.random.default_rng(5), Sample()
    while len(found.shares) < points:
        family = families[int(random.integers(len(families)))]
        shapes = space.shapes(family)
        costs = space.costs_of(family, shapes)
        legal = np.flatnonzero(costs.legal)
        if not len(legal):
            continue
        row = int(random.choice(legal))
        point = space.point(shapes, row, family.ways)
        outcome = trial.outcome(point)
        bound, blocks = int(costs.bound[row]), (int(costs.dsp[row]), int(costs.ram[row]))
        if outcome.cycles is None or outcome.cycles < bound:
            found.wrong.append(f"{point.text(space.contraction)}: {outcome}, bound {bound}")
        elif blocks != (outcome.dsp_blocks, outcome.ram_blocks):
            found.wrong.append(f"{point.text(space.contraction)}: {outcome}, blocks {blocks}")
        found.shares.append(bound / (outcome.cycles or bound))
    return found


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else POINTS
    warnings.simplefilter("ignore", T2SWarning)
    good = True
    for kernel in sys.argv[2:] or KERNELS:
        begun = time.process_time()
        found = sample(kernel, count)
        print(f"{kernel:12} {found}, {time.process_time() - begun:.0f} s", flush=True)
        print(*found.wrong, sep="\n", end="\n" if found.wrong else "")
        good &= found.good
    sys.exit(not good)


if __name__ == "__main__":
    main()
