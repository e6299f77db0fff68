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

import numpy as np

from t2s.design_space.journal import Outcome
from t2s.design_space.point import Point
from t2s.design_space.space import Shapes, Space, Ways
from t2s.design_space.workers import Ending, WorkerDeath, Workers


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
    best: Timed | None = None
    refused: list[Refused] = field(default_factory=list)
    over_budget: int = 0
    bounded: int = 0
    left: int | None = None
    interrupted: bool = False

    def add(self, candidate: _Candidate, outcome: Outcome) -> None:
        """Count a point that was timed or refused."""
        if outcome.refusal is not None:
            self.refused.append(Refused(point=candidate.point, reason=outcome.refusal))
            return
        assert outcome.cycles is not None
        dsp, ram = outcome.dsp_blocks or 0, outcome.ram_blocks or 0
        if not self.space.budget.allows(dsp, ram):
            self.over_budget += 1
            return
        timed = Timed(
            point=candidate.point,
            bound=candidate.bound,
            cycles=outcome.cycles,
            dsp=dsp,
            ram=ram,
            bytes=candidate.bytes,
        )
        self.timed.append(timed)
        if self.best is None or self.rank(timed) < self.rank(self.best):
            self.best = timed

    def rank(self, timed: Timed) -> tuple[int, ...]:
        """The best design has the least one."""
        return timed.cycles, timed.ram, timed.dsp, timed.bytes

    @property
    def lower_bound(self) -> int | None:
        """No point of the space takes fewer cycles."""
        found = [] if self.best is None else [self.best.cycles]
        return min([*found, *([] if self.left is None else [self.left])], default=None)


def best_first(
    space: Space,
    measure: Callable[[Point], Outcome],
    *,
    seconds: float,
    executor: object = None,
    recall: Callable[[Point], Outcome | None] = lambda _: None,
    record: Callable[[Point, Outcome], None] = lambda _, __: None,
    report: Callable[[Search], None] = lambda _: None,
) -> Search:
    """Time points until the best one is proved, or for so many seconds, but at least one.

    ``measure`` runs on the executor (see ``workers.py``) for points that ``recall`` does not know;
    ``record`` gets what it returns, and ``report`` the state after each point.
    """
    state, candidates = Search(space=space), _Candidates(space)
    in_flight: dict[Point, _Candidate] = {}
    until = monotonic() + seconds
    with Workers(measure, executor) as workers:

        def fill() -> None:
            """Submit the next candidates; those that were timed before count at once."""
            while workers.room and not (state.timed and monotonic() > until):
                candidate = candidates.take(state.best.cycles if state.best else None)
                if candidate is None:
                    break
                outcome = recall(candidate.point)
                if outcome is None:
                    in_flight[candidate.point] = candidate
                    workers.submit(candidate.point)
                else:
                    state.add(candidate, outcome)

        fill()
        for finished in workers.completed():
            candidate = in_flight.pop(finished.item)
            match finished.error:
                case None:
                    assert finished.value is not None
                    record(candidate.point, finished.value)
                    state.add(candidate, finished.value)
                case WorkerDeath():
                    state.add(candidate, Outcome(refusal="the process that timed it died"))
                case error:
                    raise error
            fill()
            state.bounded = candidates.bounded
            report(state)
        state.interrupted = workers.ending is Ending.INTERRUPTED
    least = [] if candidates.least is None else [candidates.least]
    state.left = min([*least, *(c.bound for c in in_flight.values())], default=None)
    state.bounded = candidates.bounded
    return state


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A point with its bound, and the bytes that it moves."""

    point: Point
    bound: int
    bytes: int


class _Candidates:
    """The points of a space in the order of their bounds; ties by RAM, then by bytes moved."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.families = iter(space.families())
        self.family = next(self.families, None)
        self.heap: list[tuple[tuple[int, int, int], int, int, _Batch]] = []
        self.batches = 0
        self.bounded = 0

    @property
    def least(self) -> int | None:
        """The least bound of what has not been taken."""
        bounds = [self.heap[0][0][0]] if self.heap else []
        bounds += [] if self.family is None else [self.family.bound]
        return min(bounds, default=None)

    def take(self, limit: int | None) -> _Candidate | None:
        """Take the candidate with the least bound out; ``None`` if none is below the limit."""
        while self.family is not None and (
            not self.heap or self.family.bound < self.heap[0][0][0]
        ):
            if limit is not None and self.family.bound >= limit:
                break
            family, self.family = self.family, next(self.families, None)
            self._add(self.space.shapes(family), family.ways, limit)
        if not self.heap or (limit is not None and self.heap[0][0][0] >= limit):
            return None
        (bound, _, moved), _, row, batch = heappop(self.heap)
        self._push(batch)
        return _Candidate(self.space.point(batch.shapes, row, batch.ways), bound, moved)

    def _add(self, shapes: Shapes, ways: Ways, limit: int | None) -> None:
        costs = self.space.costs(shapes, ways)
        self.bounded += len(shapes)
        rows = np.flatnonzero(costs.legal if limit is None else costs.legal & (costs.bound < limit))
        keys = [column[rows] for column in (costs.bound, costs.ram, costs.bytes)]
        order = np.lexsort(keys[::-1])
        ordered = zip(*(key[order].tolist() for key in keys), rows[order].tolist(), strict=True)
        self.batches += 1
        self._push(_Batch(number=self.batches, shapes=shapes, ways=ways, rows=ordered))

    def _push(self, batch: _Batch) -> None:
        """Put the next row of a batch into the heap."""
        following = next(batch.rows, None)
        if following is not None:
            bound, ram, moved, row = following
            heappush(self.heap, ((bound, ram, moved), batch.number, row, batch))


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """The legal points of one array with one way, in their order: (bound, RAM, bytes, row)."""

    number: int
    shapes: Shapes
    ways: Ways
    rows: Iterator[tuple[int, int, int, int]]
