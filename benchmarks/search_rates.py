"""How fast a search is: ``python -m benchmarks.search_rates``, in CPU seconds of one process.

Bounds in a second, and exact evaluations in a second: of new structures, which are lowered, and of
other sizes of one structure, most of which are not (``t2s/driver/sizes.py``).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from random import Random

from t2s.design_space.branch_and_bound import Cut, best_first
from t2s.design_space.columns import Budget
from t2s.design_space.contraction import contraction_of
from t2s.design_space.journal import Outcome
from t2s.design_space.point import Point
from t2s.design_space.space import Space
from t2s.driver.recognize import design_of
from t2s.driver.search_trial import ContractionTrial
from t2s.driver.simulate import device_for
from t2s.driver.sizes import CyclesOfSizes
from t2s.errors import T2SWarning
from tests.design_space.contractions import convolution, gemm, mttkrp, ttm
from tests.design_space.sized import Sized, designs

BOUNDS, NEW, KNOWN = 30_000, 1, 30
"""The least rates: bounds, new structures, and sizes of a known structure in a second."""

DSP, FAMILIES, SECONDS, SIZES = 256, 500, 8, 200

KERNELS = {
    "gemm": gemm(320, 256, 1024),
    "ragged gemm": gemm(250, 130, 77),
    "mttkrp": mttkrp(32, 24, (6, 32)),
    "ttm": ttm((4, 9, 24), 64),
    "convolution": convolution((2, 9, 8, 16), 3, 16),
}


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def of_points(name: str) -> tuple[float, float]:
    """Bounds in a second, and exact evaluations in a second of the points of a short search."""
    func = KERNELS[name]
    target = device_for(design_of(func), "arria10")
    contraction = contraction_of(func, {})
    trial = ContractionTrial(func, contraction, {}, target)
    budget = Budget(dsp=DSP, ram=target.ram_blocks)
    space = Space(
        contraction=contraction, device=target, budget=budget, datapaths=trial.datapaths()
    )
    families = Random(0).sample(space.families(), FAMILIES)
    bounded = 0

    def bound() -> None:
        nonlocal bounded
        for family in families:
            shapes = space.shapes(family)
            space.costs(shapes, family.ways)
            bounded += len(shapes)

    spent: list[float] = []

    def measured(point: Point, cut: Cut) -> Outcome:
        begun = time.process_time()
        outcome = trial.outcome(point, cut)
        spent.append(time.process_time() - begun)
        return outcome

    bounding = seconds(bound)
    best_first(space, measured, seconds=SECONDS)
    return bounded / bounding, len(spent) / sum(spent)


def of_sizes(design: Sized) -> tuple[float, int]:
    """Sizes in a second, of two to twelve whole tiles, and how many of them were lowered."""
    random = Random(0)
    counter = CyclesOfSizes(design.design, design.steps, device="arria10")

    def drawn() -> dict[str, int]:
        return {name: step * random.randint(2, 12) for name, step in design.steps.items()}

    for _ in range(20):  # a structure becomes known
        counter(drawn())
    before = counter.lowerings
    spent = seconds(lambda: [counter(drawn()) for _ in range(SIZES)])
    return SIZES / spent, counter.lowerings - before


def main() -> None:
    warnings.simplefilter("ignore", T2SWarning)
    print(f"{'':14}{'bounds/s':>12}{'new/s':>10}   at least {BOUNDS:,} and {NEW}")
    for name in KERNELS:
        bounds, new = of_points(name)
        print(f"{name:14}{bounds:12,.0f}{new:10.1f}")
    print(f"{'':14}{'sizes/s':>12}{'lowered':>10}   at least {KNOWN}, of {SIZES}")
    for name, design in designs().items():
        known, lowered = of_sizes(design)
        print(f"{name:14}{known:12.1f}{lowered:10}")


if __name__ == "__main__":
    main()
