"""The Pareto front of cycles against the RAM of the channels, below the depths that cost nothing.

Depths from the fitted ones down to 1 are tried, only such that save RAM.  Where all combinations
are few all of them run; else the search goes down from the fitted depths, each time by the step
that costs the fewest cycles for the RAM that it saves.  Every point is an exact run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from t2s.explore.timings import Depths, Timings

MOST_COMBINATIONS = 128
"""Most combinations of depths that are all tried."""

_SHARE = 4
"""A step of a search by steps takes this part of a depth, at least one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RamCost:
    """What FIFOs cost: ``of(channel, depth)`` in ``unit`` for the channel at that position."""

    unit: str
    of: Callable[[int, int], int]

    def total(self, depths: Depths) -> int:
        """The cost of all channels."""
        return sum(self.of(channel, depth) for channel, depth in enumerate(depths))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Depths of all channels, what their FIFOs cost, and the cycles of the run with them."""

    depths: Depths
    ram: int
    cycles: int


def all_combinations(cost: RamCost, fitted: Depths) -> list[Depths] | None:
    """All depths worth trying, or ``None`` if they are too many."""
    choices = [_choices(cost, channel, depth) for channel, depth in enumerate(fitted)]
    if any(found is None for found in choices):
        return None
    levels = [found for found in choices if found is not None]
    if prod(len(found) for found in levels) > MOST_COMBINATIONS:
        return None
    return list(product(*levels))


def _choices(cost: RamCost, channel: int, depth: int) -> list[int] | None:
    """The largest depth of every cost, from ``depth`` down; ``None`` if they are too many."""
    found = [depth]
    while (next_one := _below(cost, channel, found[-1])) is not None:
        found.append(next_one)
        if len(found) > MOST_COMBINATIONS:
            return None
    return found


def _below(cost: RamCost, channel: int, depth: int) -> int | None:
    """The largest depth that costs less; ``None`` if there is none."""
    here = cost.of(channel, depth)
    if depth <= 1 or cost.of(channel, 1) >= here:
        return None
    low, high = 1, depth
    while high - low > 1:
        middle = (low + high) // 2
        if cost.of(channel, middle) < here:
            low = middle
        else:
            high = middle
    return low


def try_all(
    timings: Timings, cost: RamCost, candidates: Sequence[Depths], told: Callable[[Point], None]
) -> None:
    """Run all candidates, the cheapest first; ``told`` gets those that end."""
    ordered = sorted(candidates, key=lambda depths: (cost.total(depths), depths))
    for first in range(0, len(ordered), timings.workers):
        _tell(timings, cost, ordered[first : first + timings.workers], told)


def step_down(
    timings: Timings, cost: RamCost, fitted: Point, told: Callable[[Point], None]
) -> None:
    """Go down from the fitted depths, always by the cheapest step; ``told`` gets every point."""
    here = fitted
    while True:
        steps: list[Depths] = []
        for channel, depth in enumerate(here.depths):
            below = _below(cost, channel, depth)
            if below is not None:
                lowered = min(below, depth - max(1, depth // _SHARE))
                steps.append((*here.depths[:channel], lowered, *here.depths[channel + 1 :]))
        points = _tell(timings, cost, steps, told)
        if not points:
            return
        before = here
        here = min(
            points,
            key=lambda point: (
                (point.cycles - before.cycles) / (before.ram - point.ram),
                point.ram,
                point.depths,
            ),
        )


def _tell(
    timings: Timings, cost: RamCost, candidates: Sequence[Depths], told: Callable[[Point], None]
) -> list[Point]:
    found = [
        Point(depths=depths, ram=cost.total(depths), cycles=cycles)
        for depths, cycles in zip(candidates, timings.cycles(candidates), strict=True)
        if cycles is not None
    ]
    for point in found:
        told(point)
    return found


def pareto(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points than which no other one is at least as good in both; the cheapest first."""
    front: list[Point] = []
    for point in sorted(points, key=lambda point: (point.ram, point.cycles, point.depths)):
        if not front or point.cycles < front[-1].cycles:
            front.append(point)
    return tuple(front)
