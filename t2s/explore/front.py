"""The Pareto front of cycles against the RAM of the channels, below the depths that cost nothing;
as a small scatter plot too.

Depths from the fitted ones down to 1 are tried, only such that save RAM.  Where all combinations
are few all of them run; else the search goes down from the fitted depths, each time by the step
that costs the fewest cycles for the RAM that it saves.  Every point is an exact run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import product
from math import prod

from t2s.explore.fit import Depths, Timings

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


_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 480, 240, 90, 40, 12
_LINE = "currentColor"


def scatter(points: Sequence[tuple[int, int]], *, across: str, up: str, limit: int) -> str:
    """Points joined by steps; ``limit`` is a dashed line across the first coordinate."""
    if not points:
        return ""
    x_low, x_high = _range([x for x, _ in points])
    y_low, y_high = _range([y for _, y in points])

    def x_of(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _EDGE) * (value - x_low) / (x_high - x_low)

    def y_of(value: float) -> float:
        return _EDGE + (_HEIGHT - _BOTTOM - _EDGE) * (y_high - value) / (y_high - y_low)

    drawn = [(x_of(x), y_of(y)) for x, y in points]
    path = f"M {drawn[0][0]:.1f} {drawn[0][1]:.1f}"
    path += "".join(f" H {x:.1f} V {y:.1f}" for x, y in drawn[1:])
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_LINE}">'
        f"<title>{a:,} {escape(across)}, {b:,} {escape(up)}</title></circle>"
        for (x, y), (a, b) in zip(drawn, points, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="11">'
        f"{_axes(across, up, points)}"
        f'<path d="{path}" fill="none" stroke="{_LINE}"/>{marks}'
        f"{_limit(x_of(limit)) if x_low <= limit <= x_high else ''}</svg>"
    )


def _range(values: Sequence[int]) -> tuple[float, float]:
    """A little more than from the smallest to the largest."""
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or 1.0
    return low - margin, high + margin


def _axes(across: str, up: str, points: Sequence[tuple[int, int]]) -> str:
    right, floor = _WIDTH - _EDGE, _HEIGHT - _BOTTOM
    xs, ys = [x for x, _ in points], [y for _, y in points]

    def text(x: float, y: float, anchor: str, label: str) -> str:
        return (
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{_LINE}">'
            f"{escape(label)}</text>"
        )

    return (
        f'<path d="M {_LEFT} {_EDGE} V {floor} H {right}" fill="none" stroke="{_LINE}"/>'
        + text(_LEFT, floor + 16, "start", f"{min(xs):,}")
        + text(right, floor + 16, "end", f"{max(xs):,}")
        + text((_LEFT + right) / 2, floor + 32, "middle", across)
        + text(_LEFT - 6, _EDGE + 8, "end", f"{max(ys):,}")
        + text(_LEFT - 6, floor, "end", f"{min(ys):,}")
        + text(_LEFT - 6, (_EDGE + floor) / 2, "end", up)
    )


def _limit(x: float) -> str:
    return (
        f'<path d="M {x:.1f} {_EDGE} V {_HEIGHT - _BOTTOM}" stroke="{_LINE}" '
        'stroke-dasharray="4 4" opacity="0.6"/>'
    )
