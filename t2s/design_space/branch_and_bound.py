"""Best-first branch and bound: the point with the least bound is the next one that is timed.

Bounds of whole arrays of PEs come first, those of their points when no other bound is lower.  The
search ends when the best design is as good as the least bound that is left, so that no other point
can be better; if it ends before, that bound tells how much better one could be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from time import monotonic
from typing import Any

import numpy as np

from t2s.design_space.point import Point
from t2s.design_space.space import Shapes, Space, Ways


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A point whose design was lowered and run: its exact cycles, and its blocks."""

    point: Point
    bound: int
    cycles: int
    dsp: int
    ram: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A point that the compiler refused."""

    point: Point
    reason: str


Evaluate = Callable[[Point], tuple[int, int, int] | str]
"""The exact cycles, DSP and RAM blocks of a point; or the reason why the compiler refuses it."""


@dataclass(kw_only=True)
class Search:
    """The state of a search, which is a result at any time.

    Attributes
    ----------
    bounded: points whose bounds were computed.
    left: the least bound of all points that were not timed; ``None`` if there are none.
    """

    space: Space
    timed: list[Timed] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    over_budget: int = 0
    bounded: int = 0
    left: int | None = None
    interrupted: bool = False

    @property
    def best(self) -> Timed | None:
        return min(self.timed, key=lambda t: (t.cycles, t.ram, t.dsp, t.bytes), default=None)

    @property
    def lower_bound(self) -> int | None:
        """No point of the space takes fewer cycles."""
        found = [] if self.best is None else [self.best.cycles]
        return min([*found, *([] if self.left is None else [self.left])], default=None)


def best_first(
    space: Space, evaluate: Evaluate, *, seconds: float, report: Callable[[Search], None]
) -> Search:
    """Time points until the best one is proved, or for so many seconds."""
    state, candidates = Search(space=space), _Candidates(space)
    until = monotonic() + seconds
    try:
        while True:
            best = state.best
            limit = None if best is None else best.cycles
            found = candidates.next(limit)
            state.bounded, state.left = candidates.bounded, candidates.least
            if found is None or (state.timed and monotonic() > until):
                break
            point, bound, moved = found
            _time(state, evaluate, point, bound, moved)
            candidates.drop()
            state.left = candidates.least
            report(state)
    except KeyboardInterrupt:
        state.interrupted = True
    return state


def _time(state: Search, evaluate: Evaluate, point: Point, bound: int, moved: int) -> None:
    outcome = evaluate(point)
    if isinstance(outcome, str):
        state.refused.append(Refused(point=point, reason=outcome))
        return
    cycles, dsp, ram = outcome
    budget = state.space.budget
    if (budget.dsp is not None and dsp > budget.dsp) or (
        budget.ram is not None and ram > budget.ram
    ):
        state.over_budget += 1
        return
    state.timed.append(
        Timed(point=point, bound=bound, cycles=cycles, dsp=dsp, ram=ram, bytes=moved)
    )


class _Candidates:
    """The points of a space in the order of their bounds; ties by RAM, then by bytes moved."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.arrays = iter(space.arrays())
        self.array = next(self.arrays, None)
        self.heap: list[tuple[tuple[int, int, int], int, int, Iterator[Any]]] = []
        self.batches = 0
        self.bounded = 0

    @property
    def least(self) -> int | None:
        """The least bound of what has not been dropped."""
        bounds = [self.heap[0][0][0]] if self.heap else []
        bounds += [] if self.array is None else [self.array.bound]
        return min(bounds, default=None)

    def next(self, limit: int | None) -> tuple[Point, int, int] | None:
        """The candidate with the least bound, and it; ``None`` if none is below the limit."""
        while self.array is not None and (not self.heap or self.array.bound < self.heap[0][0][0]):
            if limit is not None and self.array.bound >= limit:
                break
            array, self.array = self.array, next(self.arrays, None)
            shapes = self.space.shapes(array)
            for ways in self.space.ways():
                self._add(shapes, ways, limit)
        if not self.heap:
            return None
        (bound, _, moved), _, row, (_, shapes, ways, _) = self.heap[0]
        if limit is not None and bound >= limit:
            return None
        return self.space.point(shapes, row, ways), bound, moved

    def drop(self) -> None:
        """Drop the candidate that ``next`` returned."""
        _, batch, _, rest = heappop(self.heap)
        self._push(batch, rest)

    def _add(self, shapes: Shapes, ways: Ways, limit: int | None) -> None:
        costs = self.space.costs(shapes, ways)
        self.bounded += len(shapes)
        rows = np.flatnonzero(costs.legal if limit is None else costs.legal & (costs.bound < limit))
        keys = [column[rows] for column in (costs.bound, costs.ram, costs.bytes)]
        order = np.lexsort(keys[::-1])
        ordered = zip(*(key[order].tolist() for key in keys), rows[order].tolist(), strict=True)
        self.batches += 1
        self._push(self.batches, (ordered, shapes, ways, None))

    def _push(self, batch: int, rest: Any) -> None:
        first = next(rest[0], None)
        if first is not None:
            *key, row = first
            heappush(self.heap, (tuple(key), batch, row, rest))
