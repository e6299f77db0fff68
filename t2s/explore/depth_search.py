"""The smallest channel depths that cost no cycle, and the Pareto front below them.

The cycle count T is a function of the depths of all channels, and (except with shared memory
bandwidth) monotonic: more depth never makes it larger.  The search

1. finds T without limits: depths grow until no sender is ever blocked.  The peak occupancy of each
   channel is then a depth that keeps every firing at its cycle: an upper bound (if the design as it
   is takes fewer cycles, its own cycles and depths are used instead);
2. finds for every channel alone the smallest depth that keeps T, the others at their upper bounds.
   No depths that keep T are smaller in any channel, so if these together keep T, they are *the
   least*;
3. otherwise lowers one group of channels after the other from the upper bounds, halving the groups
   that cost cycles.  A depth that could not be lowered once cannot be lowered later.

The result is minimal: lowering any single depth costs cycles.  With arbitrated memory bandwidth,
cycles may increase with depths; then the search starts from shallow depths that keep T, and a run
for every channel checks the minimum at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from itertools import product
from math import prod

import numpy as np

from t2s.explore.parallel import Workers
from t2s.simulator.limits import Limits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.errors import DeadlockError, TokensLeftError
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import retime

_FIRST_DEPTH = 64
_GROWTH = 32
"""Depth of the first unbounded run, and the growth factor of blocking channels."""

MOST_MEASURED = 1 << 25
"""Peak occupancies are measured in programs of at most this many firings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthSearch:
    """The current or final state of a search.

    ``best`` keeps ``cycles``; it is minimal if ``complete``, and no other solution is smaller in
    any channel if ``least``.  ``upper`` are depths at which no sender is ever blocked.
    """

    cycles: int
    upper: Depths
    best: Depths
    least: bool = False
    complete: bool = False


def unbounded(
    program: SimProgram, engine: str, workers: Workers, report_run: Callable[[], None]
) -> tuple[SimResult, Depths]:
    """A run in which no channel ever blocks, and depths that suffice for exactly this run.

    Raises ``DeadlockError`` if the program does not end however deep its channels are.
    """
    all_tokens = _all_tokens(program)
    depths = tuple(
        min(most, max(_FIRST_DEPTH, timing.channel.capacity))
        for most, timing in zip(all_tokens, program.channels, strict=True)
    )
    while True:
        result, peaks = _run_with(program, depths, engine, workers)
        report_run()
        blocks = {name: n for node in result.nodes.values() for name, n in node.blocked_by.items()}
        grown = tuple(
            min(most, depth * _GROWTH) if blocks[timing.channel.name] else depth
            for most, depth, timing in zip(all_tokens, depths, program.channels, strict=True)
        )
        if grown == depths:
            break
        depths = grown
    if result.deadlock is not None:
        report = replace(result.deadlock, searched=True)
        raise DeadlockError(replace(result, deadlock=report), report)
    if result.tokens_left:
        raise TokensLeftError(result)
    return result, tuple(map(min, depths, peaks))


def _run_with(
    program: SimProgram, depths: Depths, engine: str, workers: Workers
) -> tuple[SimResult, Depths]:
    """A run, and the depths that it needs to keep its times."""
    names = [timing.channel.name for timing in program.channels]
    capacities = dict(zip(names, depths, strict=True))
    few = program.total_firings <= MOST_MEASURED
    if few and engine == "native" and not program.timed_places:
        result, needed = _measured(program.with_capacities(capacities), workers)
    else:
        result = retime(program, capacities, engine=engine, observer=workers.watch)
        needed = depths
    if result.interrupted:
        raise KeyboardInterrupt
    return result, needed


def _measured(program: SimProgram, workers: Workers) -> tuple[SimResult, Depths]:
    """A run and its peak occupancies."""
    native = import_module("t2s.simulator.native_engine")
    result, slots = native.run_measured(program, Limits(), workers.watch)
    peaks = tuple(
        max(1, int(slots[timing.elements].max(initial=0)) - timing.datapath)
        for timing in program.channels
    )
    return result, peaks


def _all_tokens(program: SimProgram) -> Depths:
    """Depths that never block: the number of all tokens of an element."""
    sent = program.control.sent
    return tuple(
        max(1, int(np.max(sent[timing.elements], initial=1))) for timing in program.channels
    )


def minimize(
    timings: Timings,
    start: DepthSearch,
    weights: Sequence[int],
    report: Callable[[DepthSearch], None],
) -> DepthSearch:
    """The smallest depths; ``report`` receives every improvement, so an interrupt loses nothing.

    ``weights`` has the cost of a token of depth for each channel: the most expensive channels are
    lowered first.
    """
    if not timings.monotone:
        start = _shallow_start(timings, start)
        report(start)
    lowest = _each_alone(timings, start)
    if timings.keeps([lowest], start.cycles)[0]:
        done = replace(start, best=lowest, least=timings.monotone)
    else:
        saves = [w * (u - low) for w, u, low in zip(weights, start.upper, lowest, strict=True)]
        order = sorted((c for c, save in enumerate(saves) if save), key=lambda c: -saves[c])
        done = _lower(timings, start, lowest, order, report)
    report(done)
    if not timings.monotone:
        done = _checked(timings, done, report)
    done = replace(done, complete=True)
    report(done)
    return done


def _shallow_start(timings: Timings, start: DepthSearch) -> DepthSearch:
    """The starting point: the first of uniform depths 1, 2, 4, ... that keeps the cycles.

    With arbitrated memory cycles are not monotonic in depths, and small depths may suffice.
    """
    depth = 1
    while any(depth < bound for bound in start.upper):
        point = tuple(min(depth, bound) for bound in start.upper)
        if timings.keeps([point], start.cycles)[0]:
            return replace(start, upper=point, best=point)
        depth *= 2
    return start


def _each_alone(timings: Timings, start: DepthSearch) -> Depths:
    """For each channel, the smallest depth that keeps the cycles, the others at their upper bounds.

    Depths double from 1 until they suffice (a failing run is abandoned early), then the last step
    is bisected.  All channels take a step at once, in parallel.
    """
    low = [0] * len(start.upper)
    high = list(start.upper)
    trial = [1] * len(start.upper)
    while open_ := [c for c in range(len(high)) if high[c] - low[c] > 1]:
        points = [_with(start.upper, {c: trial[c]}) for c in open_]
        for c, suffices in zip(open_, timings.keeps(points, start.cycles), strict=True):
            doubling = high[c] == start.upper[c]
            if suffices:
                high[c] = trial[c]
            else:
                low[c] = trial[c]
            if suffices or not doubling or 2 * trial[c] >= high[c]:
                trial[c] = (low[c] + high[c]) // 2
            else:
                trial[c] = 2 * trial[c]
    return tuple(high)


def _lower(
    timings: Timings,
    start: DepthSearch,
    lowest: Depths,
    order: Sequence[int],
    report: Callable[[DepthSearch], None],
) -> DepthSearch:
    """Lower a group of channels that cannot all be at their minimum, by halves."""
    if len(order) == 1:
        return _lower_one(timings, start, lowest[order[0]], order[0], report)
    state = start
    middle = len(order) // 2
    for half in (order[:middle], order[middle:]):
        point = _with(state.best, {c: lowest[c] for c in half})
        if timings.keeps([point], start.cycles)[0]:
            state = replace(state, best=point)
            report(state)
        else:
            state = _lower(timings, state, lowest, half, report)
    return state


def _lower_one(
    timings: Timings,
    start: DepthSearch,
    lowest: int,
    channel: int,
    report: Callable[[DepthSearch], None],
) -> DepthSearch:
    """Lower one channel as far as possible, the others fixed; several runs at once."""
    low, high = lowest - 1, start.best[channel]
    state = start
    while high - low > 1:
        count = min(timings.workers, high - low - 1)
        trials = sorted({low + (high - low) * (n + 1) // (count + 1) for n in range(count)})
        points = [_with(start.best, {channel: depth}) for depth in trials]
        for depth, suffices in zip(trials, timings.keeps(points, start.cycles), strict=True):
            if suffices:
                high = min(high, depth)
            else:
                low = max(low, min(depth, high - 1))
        state = replace(state, best=_with(state.best, {channel: high}))
        report(state)
    return state


def _checked(
    timings: Timings, state: DepthSearch, report: Callable[[DepthSearch], None]
) -> DepthSearch:
    """Lower single depths as long as any can be lowered by one token at no cost.

    Such a depth becomes the first of 1, 2, 4, ... that keeps the cycles, or else one less.
    """
    while True:
        channels = [c for c, depth in enumerate(state.best) if depth > 1]
        points = [_with(state.best, {c: state.best[c] - 1}) for c in channels]
        suffices = timings.keeps(points, state.cycles)
        free = [c for c, keeps in zip(channels, suffices, strict=True) if keeps]
        if not free:
            return state
        depth = 1
        while depth < state.best[free[0]] - 1:
            if timings.keeps([_with(state.best, {free[0]: depth})], state.cycles)[0]:
                break
            depth *= 2
        depth = min(depth, state.best[free[0]] - 1)
        state = replace(state, best=_with(state.best, {free[0]: depth}))
        report(state)


def _with(point: Depths, changes: dict[int, int]) -> Depths:
    return tuple(changes.get(c, depth) for c, depth in enumerate(point))


Depths = tuple[int, ...]
"""One depth per channel, in the order of the program's channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """The timing of a run with some depths.

    ``cycles`` is ``None`` for a deadlock, and for a run that was abandoned because it takes more
    than ``beyond`` cycles (``None``: a deadlock).
    """

    cycles: int | None
    beyond: int | None = None


class Timings:
    """Runs of a program with other depths, in parallel, with a cache.

    Unless units share a memory (its bandwidth, or a DRAM) more depth never costs cycles (every
    cycle of a firing is a maximum of sums of others), so a run that was too slow also answers for
    all smaller depths.  With a shared memory, an earlier access may delay a more critical one.
    """

    def __init__(self, program: SimProgram, engine: str, workers: Workers) -> None:
        self.program = program
        self.names = tuple(timing.channel.name for timing in program.channels)
        self.monotone = not program.shares_memory
        self.runs = 0
        self.on_run: Callable[[], None] = lambda: None
        self._engine = engine
        self._workers = workers
        self._known: dict[Depths, Timed] = {}
        self._too_slow: list[tuple[Depths, int]] = []

    @property
    def workers(self) -> int:
        """The number of concurrent runs."""
        return self._workers.count

    def keeps(self, points: Sequence[Depths], cycles: int) -> list[bool]:
        """Whether the program with these depths takes at most ``cycles``."""
        asked = [point for point in dict.fromkeys(points) if self._answer(point, cycles) is None]
        self._run(asked, Limits(max_cycles=cycles, give_up=True))
        return [bool(self._answer(point, cycles)) for point in points]

    def cycles(self, points: Sequence[Depths]) -> list[int | None]:
        """The cycles with these depths, ``None`` for a deadlock."""
        asked = [point for point in dict.fromkeys(points) if not self._complete(point)]
        self._run(asked, Limits())
        return [self._known[point].cycles for point in points]

    def keep(self, point: Depths, cycles: int) -> None:
        """Add an external result to the cache."""
        self._known[point] = Timed(cycles=cycles)

    def known(self, point: Depths) -> int | None:
        """The cached cycles with these depths; ``None`` if unknown or a deadlock."""
        timed = self._known.get(point)
        return None if timed is None else timed.cycles

    def _complete(self, point: Depths) -> bool:
        known = self._known.get(point)
        return known is not None and (known.cycles is not None or known.beyond is None)

    def _answer(self, point: Depths, cycles: int) -> bool | None:
        known = self._known.get(point)
        if known is not None:
            if known.cycles is not None:
                return known.cycles <= cycles
            if known.beyond is None or known.beyond >= cycles:
                return False
        if self.monotone and any(
            beyond >= cycles and all(a <= b for a, b in zip(point, slow, strict=True))
            for slow, beyond in self._too_slow
        ):
            return False
        return None

    def _run(self, points: Sequence[Depths], limits: Limits) -> None:
        def task(point: Depths) -> Callable[[], Timed]:
            return lambda: self._timed(point, limits)

        for point, timed in zip(
            points, self._workers.all([task(point) for point in points]), strict=True
        ):
            self._known[point] = timed
            if timed.cycles is None and timed.beyond is not None:
                self._too_slow.append((point, timed.beyond))

    def _timed(self, point: Depths, limits: Limits) -> Timed:
        result = retime(
            self.program,
            dict(zip(self.names, point, strict=True)),
            engine=self._engine,
            limits=limits,
            observer=self._workers.watch,
        )
        if result.interrupted:
            raise KeyboardInterrupt
        self.runs += 1
        self.on_run()
        if result.finished:
            return Timed(cycles=result.cycles)
        return Timed(cycles=None, beyond=limits.max_cycles if result.limit_reached else None)


# The Pareto front of cycles against the RAM of the channels, below the fitted depths; and its plot.
#
# Depths from the fitted ones down to 1 are tried if they save RAM.  If there are few combinations
# all of them run; else the search descends from the fitted depths, always by the step that costs
# the fewest cycles for the RAM that it saves.  Every point is an exact run.

MOST_COMBINATIONS = 128
"""The most combinations of depths to enumerate."""

_SHARE = 4
"""A step of the descent takes this share of a depth, at least one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RamCost:
    """The cost of FIFOs: ``of(channel, depth)`` in ``unit`` for the channel at that position."""

    unit: str
    of: Callable[[int, int], int]

    def total(self, depths: Depths) -> int:
        """The cost of all channels."""
        return sum(self.of(channel, depth) for channel, depth in enumerate(depths))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Depths of all channels, the cost of their FIFOs, and the cycles with them."""

    depths: Depths
    ram: int
    cycles: int


def all_combinations(cost: RamCost, fitted: Depths) -> list[Depths] | None:
    """All depths worth trying, or ``None`` if they are too many."""
    choices = [_choices(cost, channel, depth) for channel, depth in enumerate(fitted)]
    if any(depths is None for depths in choices):
        return None
    levels = [depths for depths in choices if depths is not None]
    if prod(len(depths) for depths in levels) > MOST_COMBINATIONS:
        return None
    return list(product(*levels))


def _choices(cost: RamCost, channel: int, depth: int) -> list[int] | None:
    """The largest depth of every cost, from ``depth`` down; ``None`` if they are too many."""
    choices = [depth]
    while (next_one := _below(cost, channel, choices[-1])) is not None:
        choices.append(next_one)
        if len(choices) > MOST_COMBINATIONS:
            return None
    return choices


def _below(cost: RamCost, channel: int, depth: int) -> int | None:
    """The largest depth that costs less; ``None`` if there is none."""
    current = cost.of(channel, depth)
    if depth <= 1 or cost.of(channel, 1) >= current:
        return None
    low, high = 1, depth
    while high - low > 1:
        middle = (low + high) // 2
        if cost.of(channel, middle) < current:
            low = middle
        else:
            high = middle
    return low


def try_all(
    timings: Timings, cost: RamCost, candidates: Sequence[Depths], report: Callable[[Point], None]
) -> None:
    """Run all candidates, the cheapest first; ``report`` receives those that finish."""
    ordered = sorted(candidates, key=lambda depths: (cost.total(depths), depths))
    for first in range(0, len(ordered), timings.workers):
        _tell(timings, cost, ordered[first : first + timings.workers], report)


def step_down(
    timings: Timings, cost: RamCost, fitted: Point, report: Callable[[Point], None]
) -> None:
    """Descend from the fitted depths by the cheapest steps; ``report`` receives every point."""
    current = fitted
    while True:
        steps: list[Depths] = []
        for channel, depth in enumerate(current.depths):
            below = _below(cost, channel, depth)
            if below is not None:
                lowered = min(below, depth - max(1, depth // _SHARE))
                steps.append((*current.depths[:channel], lowered, *current.depths[channel + 1 :]))
        points = _tell(timings, cost, steps, report)
        if not points:
            return
        before = current
        current = min(
            points,
            key=lambda point: (
                (point.cycles - before.cycles) / (before.ram - point.ram),
                point.ram,
                point.depths,
            ),
        )


def _tell(
    timings: Timings, cost: RamCost, candidates: Sequence[Depths], report: Callable[[Point], None]
) -> list[Point]:
    points = [
        Point(depths=depths, ram=cost.total(depths), cycles=cycles)
        for depths, cycles in zip(candidates, timings.cycles(candidates), strict=True)
        if cycles is not None
    ]
    for point in points:
        report(point)
    return points


def pareto(points: Sequence[Point]) -> tuple[Point, ...]:
    """The Pareto-optimal points, the cheapest first."""
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
    """The range of the values, slightly enlarged."""
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
