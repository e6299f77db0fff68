"""Best-first branch and bound: the point with the least bound is the next one that is timed.

Bounds of families come first, those of their points when no other bound is lower.  The
search ends when nothing is left that could be better than what was timed; if it ends before, the
least bound that is left tells how much better a design could be.

What is better is the *objective*: fewer cycles, less energy, or a place on the front of cycles and
blocks and bytes.  Bounds of points are exact but for their cycles, so a point is cut when a design
that was timed is as good as its bound.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import ceil, inf
from time import monotonic, time
from typing import Any

import numpy as np

from t2s.design_space.columns import Columns, Costs, Families, Family
from t2s.design_space.energy import Energy, Reals
from t2s.design_space.journal import Outcome
from t2s.design_space.point import Point
from t2s.design_space.recurrence_space import RecurrencePoint, RecurrenceSpace
from t2s.design_space.space import Space
from t2s.design_space.workers import Ending, ExecutorGone, WorkerDeath, Workers

FIRST_ROWS = 16
"""Points of a family that wait in the queue; those behind them are computed again when needed."""

_FIRST_POINTS, _FIRST_WITH_DRAM, _FIRST_FAMILIES = 8, 24, 512
"""Before all others so many points are timed, of so many families with the least estimates."""

_MOST_ESTIMATED, _ALIKE = 64, 4
"""So many points more are timed in turn with those of the least bounds; so many of the same kind,
since estimates are wrong for whole kinds of designs."""

_CLOSE = 1e-3
"""Estimates that are apart by less say nothing."""

_FIRST_STEPS, MOST_STEPS = 50_000_000, 500_000_000
"""Cycles of single PEs that the first and the second run of a point may step through, about a tenth
of a second and a second; what repeats is not stepped through.  The third one waits for all others.
"""

_MOST_AHEAD = 3
"""So many points may be decided by their first runs without a second run of another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """When a run may be cut short; a run of few firings need not be.

    When it is certain to take more than ``cycles``, after ``steps`` of single PEs, and at
    ``until``, in seconds of ``time.time()``.
    """

    cycles: int | None = None
    steps: int | None = None
    until: float | None = None


NEVER = Cut()

AnyPoint = Point | RecurrencePoint

Measure = Callable[[AnyPoint, Cut], Outcome]
"""Lowers and runs a point."""


_GRACE = 0.5
"""Seconds after the end of a search in which a first point is looked for: it may be known."""


class Objective(Enum):
    """What a search looks for."""

    TIME = "time"
    FRONT = "front"
    ENERGY = "energy"


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A point whose design was lowered and run: its exact cycles, its blocks, and its energy."""

    point: AnyPoint
    bound: int
    cycles: int
    dsp: int
    ram: int
    bytes: int
    energy: float | None = None

    @property
    def costs(self) -> tuple[int, int, int, int]:
        return self.cycles, self.dsp, self.ram, self.bytes


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A point that the compiler refused."""

    point: AnyPoint
    reason: str


def _measured(measure: Measure, attempt: tuple[AnyPoint, Cut]) -> Outcome:
    return measure(*attempt)


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A point with its costs, of which ``bound`` is below its cycles, and its ``dynamic`` energy.

    ``value`` is its bound for the objective: ``bound`` again, or energy.  Its next run may step
    through ``steps`` cycles of single PEs.
    """

    point: AnyPoint
    value: float
    bound: int
    dsp: int
    ram: int
    bytes: int
    dynamic: float
    steps: int | None = _FIRST_STEPS


@dataclass(kw_only=True)
class Search:
    """The state of a search, which is a result at any time.

    Attributes
    ----------
    timed, refused, over_budget, cut: points by what became of them; ``cut`` were those whose runs
        were cut short.
    best: the timed point with the least ``rank``.
    bounded: families and points whose bounds were computed.
    undecided: points whose workers died, or whose runs were cut short too soon to tell.
    left: the least bound of all points that were not timed; ``None`` if there are none.
    complete: whether no point is left that could be better.
    smallest: whether none is left, either, that could be as fast with fewer blocks.
    ending, problem: why it ended; what is known of an executor that is gone.
    ahead: points that were decided without a second run of those that need one.
    """

    space: Space | RecurrenceSpace
    objective: Objective = Objective.TIME
    energy: Energy | None = None
    timed: list[Timed] = field(default_factory=list)
    best: Timed | None = None
    refused: list[Refused] = field(default_factory=list)
    over_budget: int = 0
    cut: int = 0
    bounded: int = 0
    undecided: list[Candidate] = field(default_factory=list)
    left: float | None = None
    complete: bool = False
    smallest: bool = False
    ending: Ending = Ending.FINISHED
    problem: str = ""
    ahead: int = 0
    _front: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, candidate: Candidate, outcome: Outcome) -> None:
        """Count a point that was timed, cut short or refused."""
        if candidate.steps == _FIRST_STEPS:
            decided = self.decides(candidate, outcome)
            self.ahead = min(self.ahead + 1, _MOST_AHEAD) if decided else self.ahead - 1
        if outcome.refusal is not None:
            self.refused.append(Refused(point=candidate.point, reason=outcome.refusal))
            return
        if outcome.more_than is not None:
            self.cut += 1
            if not self.decides(candidate, outcome):
                self.undecided.append(self._raised(candidate, outcome.more_than + 1))
            return
        assert outcome.cycles is not None
        dsp, ram = outcome.dsp_blocks or 0, outcome.ram_blocks or 0
        if not self.space.budget.allows(dsp, ram):
            self.over_budget += 1
            return
        energy = None
        if self.energy is not None:
            energy = candidate.dynamic + outcome.cycles * self.energy.of_cycle
        timed = Timed(
            point=candidate.point,
            bound=candidate.bound,
            cycles=outcome.cycles,
            dsp=dsp,
            ram=ram,
            bytes=candidate.bytes if outcome.bytes_moved is None else outcome.bytes_moved,
            energy=energy,
        )
        self.timed.append(timed)
        if self.best is None or self.rank(timed) < self.rank(self.best):
            self.best = timed
        if self.objective is Objective.FRONT and not self._dominated(*timed.costs):
            self._front = [costs for costs in self._front if not _covers(timed.costs, costs)]
            self._front.append(timed.costs)

    def most_cycles(self, candidate: Candidate) -> int | None:
        """A point with more cycles is not better than what was timed; ``None`` without a limit."""
        if self.objective is Objective.FRONT:
            blocks = candidate.dsp, candidate.ram, candidate.bytes
            return min((cycles for cycles, *of in self._front if _covers(of, blocks)), default=None)
        if self.best is None:
            return None
        if self.minimized is None:
            return self.best.cycles
        if not self.minimized.of_cycle:
            return None
        return ceil((self.value(self.best) - candidate.dynamic) / self.minimized.of_cycle)

    def decides(self, candidate: Candidate, outcome: Outcome) -> bool:
        """Whether an outcome is exact, or a run that was not cut short too soon."""
        if outcome.more_than is None:
            return True
        most = self.most_cycles(candidate)
        return most is not None and outcome.more_than >= most

    def _raised(self, candidate: Candidate, cycles: int) -> Candidate:
        """A candidate of which a run has shown that it takes so many cycles at least."""
        bound = max(candidate.bound, cycles)
        value: float = bound
        if self.minimized is not None:
            value = candidate.dynamic + self.minimized.of_cycle * bound
        steps = MOST_STEPS if candidate.steps == _FIRST_STEPS else None
        return replace(candidate, bound=bound, value=value, steps=steps)

    def rank(self, timed: Timed) -> tuple[float, ...]:
        """The best design has the least one."""
        return self.value(timed), timed.cycles, timed.ram, timed.dsp, timed.bytes

    def value(self, timed: Timed) -> float:
        """What the objective minimizes: energy, or cycles."""
        if self.objective is Objective.ENERGY:
            assert timed.energy is not None
            return timed.energy
        return timed.cycles

    @property
    def minimized(self) -> Energy | None:
        """Energy if it is the objective, and ``None`` if cycles are."""
        return self.energy if self.objective is Objective.ENERGY else None

    @property
    def tried(self) -> int:
        """Designs that were built, whatever became of them."""
        return len(self.timed) + len(self.refused) + self.over_budget + self.cut

    @property
    def limit(self) -> float:
        """From which bound on a point cannot be better, whatever its blocks are."""
        if self.best is None or self.objective is Objective.FRONT:
            return inf
        return self.value(self.best)

    @property
    def lower_bound(self) -> float | None:
        """No point of the space has a lower value."""
        found = [] if self.best is None else [self.value(self.best)]
        return min([*found, *([] if self.left is None else [self.left])], default=None)

    def open(self, value: Any, costs: Costs) -> Any:
        """Which rows may be better than all that was timed."""
        if self.objective is Objective.FRONT:
            return ~self._dominated(costs.bound, costs.dsp, costs.ram, costs.bytes)
        return (value < self.limit) | self.may_tie(value, costs.ram, costs.dsp)

    def is_open(self, candidate: Candidate) -> bool:
        """Whether a point may be better than all that was timed."""
        if self.objective is not Objective.FRONT:
            return candidate.value < self.limit or bool(
                self.may_tie(candidate.value, candidate.ram, candidate.dsp)
            )
        costs = (candidate.bound, candidate.dsp, candidate.ram, candidate.bytes)
        return not any(_covers(found, costs) for found in self._front)

    def may_tie(self, value: Any, ram: Any, dsp: Any) -> Any:
        """Which of these may be as fast as the best design with fewer blocks."""
        best = self.best
        if best is None or self.objective is not Objective.TIME:
            return np.zeros(np.shape(value), bool)
        return (value == best.cycles) & ((ram < best.ram) | ((ram == best.ram) & (dsp < best.dsp)))

    def _dominated(self, cycles: Any, dsp: Any, ram: Any, moved: Any) -> Any:
        dominated = np.zeros(np.shape(cycles), bool)
        for found in self._front:
            dominated |= (
                (found[0] <= cycles) & (found[1] <= dsp) & (found[2] <= ram) & (found[3] <= moved)
            )
        return dominated


def _covers(found: Sequence[int], costs: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(found, costs, strict=True))


def best_first(
    space: Space | RecurrenceSpace,
    measure: Measure,
    *,
    seconds: float,
    objective: Objective = Objective.TIME,
    energy: Energy | None = None,
    executor: object = None,
    recall: Callable[[AnyPoint], Outcome | None] = lambda _: None,
    record: Callable[[AnyPoint, Outcome], None] = lambda _, __: None,
    report: Callable[[Search], None] = lambda _: None,
) -> Search:
    """Time points until nothing better is left, or for so many seconds, but try at least one.

    Runs are cut short where their point can be no better than what was timed, and, once there is a
    design, when the time is over.  A run of many steps is cut short, too, and tried again when as
    many points were decided without; if it takes still more, when all other points are decided.
    ``measure`` runs on the executor (see ``workers.py``) for points that ``recall`` does not know;
    ``record`` gets what it returns, and ``report`` the state after each point.
    """
    state = Search(space=space, objective=objective, energy=energy)
    until, wall_clock = monotonic() + seconds, time() + seconds
    candidates: _Candidates | _ListedCandidates
    if isinstance(space, Space):
        candidates = _Candidates(state, space, until)
    else:
        candidates = _ListedCandidates(state, space)
    in_flight: dict[AnyPoint, Candidate] = {}
    dead: set[AnyPoint] = set()  # that their workers died of
    passed_over: list[Candidate] = []  # the one that there was no time for
    with Workers(partial(_measured, measure), executor) as workers:

        def following() -> Candidate | None:
            """The next candidate: a new one, or one whose run was cut short."""
            state.undecided = [each for each in state.undecided if state.is_open(each)]
            again = [each for each in state.undecided if each.point not in dead]
            longer = [each for each in again if each.steps is not None]
            candidate = None if longer and state.ahead < 0 else candidates.take()
            if candidate is not None:
                return candidate
            if longer:
                candidate, state.ahead = longer[0], 0
            elif again and not in_flight:
                candidate = min(again, key=lambda each: each.value)
            else:
                return None
            state.undecided.remove(candidate)
            state.cut -= 1
            return candidate

        def fill() -> None:
            """Submit the next candidates; those that were timed before count, however late."""
            while workers.room and not passed_over and (candidate := following()) is not None:
                outcome = recall(candidate.point)
                if outcome is not None and state.decides(candidate, outcome):
                    state.add(candidate, outcome)
                elif state.tried > state.cut and monotonic() > until:
                    passed_over.append(candidate)
                else:
                    in_flight[candidate.point] = candidate
                    end = wall_clock if state.timed else None
                    most = state.most_cycles(candidate)
                    cut = Cut(cycles=most, steps=candidate.steps, until=end)
                    workers.submit((candidate.point, cut))

        def left() -> float | None:
            waiting = (*in_flight.values(), *passed_over, *state.undecided)
            bounds = [*candidates.bounds(), *(candidate.value for candidate in waiting)]
            return min(bounds, default=None)

        state.left = left()
        try:
            fill()
            for finished in workers.completed():
                candidate = in_flight.pop(finished.item[0])
                match finished.error:
                    case None:
                        assert finished.value is not None
                        record(candidate.point, finished.value)
                        state.add(candidate, finished.value)
                    case WorkerDeath():
                        state.undecided.append(candidate)
                        dead.add(candidate.point)
                        reason = "the process that timed it died"
                        state.refused.append(Refused(point=candidate.point, reason=reason))
                    case error:
                        raise error
                if state.timed:
                    workers.stop_at(until)
                fill()
                state.left = left()
                report(state)
            state.ending = workers.ending
        except KeyboardInterrupt:  # between two designs
            state.ending = Ending.INTERRUPTED
        except ExecutorGone as error:
            if not state.timed:
                raise
            state.ending, state.problem = Ending.GONE, error.given or ""
    # an interrupt may have caught a point on its way; what was left before includes it
    was_left = [] if state.left is None or state.ending is not Ending.INTERRUPTED else [state.left]
    still_left = left()
    state.left = min([*was_left, *([] if still_left is None else [still_left])], default=None)
    waiting = [*in_flight.values(), *passed_over, *state.undecided]
    state.complete = candidates.exhausted(waiting, ties=False)
    state.smallest = candidates.exhausted(waiting, ties=True)
    if not state.complete and state.ending is Ending.FINISHED:
        state.ending = Ending.DEADLINE
    return state


class _Candidates:
    """The points of a space, those with the least bound first.

    For a front the families are divided by their DSP blocks, in factors of two, and each part gives
    its best point in turn, so that a search that is cut short knows all of the front roughly.
    """

    def __init__(self, state: Search, space: Space, until: float) -> None:
        self.state = state
        families = space.families()
        state.bounded += len(families)
        self.first: deque[Candidate] = deque()
        known: dict[Family, Costs] = {}
        if state.objective is Objective.TIME:
            self.first += _promising(state, space, families, known)
        self.turns = 0
        without_dram = space.device.memory is None
        self.at_first = _FIRST_POINTS if without_dram else _FIRST_WITH_DRAM
        self.taken_first = {candidate.point for candidate in self.first}
        bounds: Columns | Reals = families.bound
        if state.minimized is not None:
            bounds = state.minimized.of_families(space, families)
        part = np.zeros(len(families), np.int64)
        if state.objective is Objective.FRONT:
            part = np.frexp(families.dsp)[1]
        order = np.argsort(bounds, kind="stable")
        self.queues = deque(
            _Queue(state, space, families, order[part[order] == each], bounds, known, until)
            for each in np.unique(part)[::-1]
        )

    def take(self) -> Candidate | None:
        """The next candidate; ``None`` if none is left that could be better."""
        self.turns += 1
        while self.first and (self.turns <= self.at_first or self.turns % 2):
            first = self.first.popleft()
            if self.state.is_open(first):
                return first
        while self.queues:
            candidate = self.queues[0].take()
            if candidate is not None:
                self.queues.rotate(-1)
                if candidate.point in self.taken_first:
                    continue
                return candidate
            if self.state.objective is not Objective.FRONT:
                return None
            self.queues.popleft()
        return None

    def bounds(self) -> Iterator[float]:
        """The least bound of what has not been taken, of each part."""
        for queue in self.queues:
            if queue.least is not None:
                yield queue.least

    def exhausted(self, waiting: Sequence[Candidate], *, ties: bool) -> bool:
        """Whether nothing is left here, or of what waits, that could be better, or tie."""
        if _may_win(self.state, waiting, ties=ties):
            return False
        return not any(queue.has_more(ties) for queue in self.queues)


def _may_win(state: Search, waiting: Sequence[Candidate], *, ties: bool) -> bool:
    """Whether one of what waits could be better, or tie."""
    return any((ties or each.value < state.limit) and state.is_open(each) for each in waiting)


class _ListedCandidates:
    """The points of a space that lists them, family by family, those with the least bound first.

    Of points with the same bound the one that is expected to take the fewest cycles is the first.
    """

    def __init__(self, state: Search, space: RecurrenceSpace) -> None:
        self.state = state
        self.space = space
        self.families = deque(space.families())
        state.bounded += len(self.families)
        self.heap: list[tuple[int, int, int, Candidate]] = []
        self.numbers = count()

    def take(self) -> Candidate | None:
        """The next candidate; ``None`` if none is left that could be better."""
        while self._expand() and self.heap[0][0] <= self.state.limit:
            *_, candidate = heappop(self.heap)
            if self.state.is_open(candidate):
                return candidate
        return None

    def _expand(self) -> bool:
        """List families until the least bound is that of a point; whether there is a point."""
        while self.families and self.families[0].bound <= self.state.limit:
            if self.heap and self.heap[0][0] < self.families[0].bound:
                break
            for point in self.space.points(self.families.popleft()):
                costs = self.space.costs(point)
                self.state.bounded += 1
                candidate = Candidate(
                    point=point,
                    value=costs.bound,
                    bound=costs.bound,
                    dsp=costs.dsp,
                    ram=0,
                    bytes=costs.bytes,
                    dynamic=0.0,
                )
                heappush(self.heap, (costs.bound, costs.expected, next(self.numbers), candidate))
        return bool(self.heap)

    def bounds(self) -> Iterator[float]:
        """The least bound of what has not been taken."""
        if self.heap:
            yield self.heap[0][0]
        if self.families:
            yield self.families[0].bound

    def exhausted(self, waiting: Sequence[Candidate], *, ties: bool) -> bool:
        """See ``_Candidates``."""
        least = min(self.bounds(), default=inf)
        left = least < inf if self.state.objective is Objective.FRONT else least < self.state.limit
        may_tie = ties and least == self.state.limit < inf
        return not (left or may_tie or _may_win(self.state, waiting, ties=ties))


def _promising(
    state: Search, space: Space, families: Families, known: dict[Family, Costs]
) -> list[Candidate]:
    """The points that are estimated to be the fastest; the costs of their families get ``known``.

    Many points have nearly the same bound, and those that keep memory busy are far above it.
    Points are of the same kind if operands and results go the same way, to PEs along the same loops
    with the same lanes.
    """
    found: list[tuple[float, int, Family, Candidate]] = []
    for at in np.argsort(families.estimate, kind="stable")[:_FIRST_FAMILIES]:
        family = families[at]
        shapes = space.shapes(family)
        costs = known[family] = space.costs_of(family, shapes)
        legal = np.flatnonzero(costs.legal)
        if not len(legal):
            continue
        estimates = space.estimate(costs)
        row = int(legal[estimates[legal].argmin()])
        dynamic = 0.0
        if state.energy is not None:
            dynamic = float(state.energy.dynamic(space, shapes, family.ways, costs.bytes)[row])
        candidate = Candidate(
            point=space.point(shapes, row, family.ways),
            value=int(costs.bound[row]),
            bound=int(costs.bound[row]),
            dsp=int(costs.dsp[row]),
            ram=int(costs.ram[row]),
            bytes=int(costs.bytes[row]),
            dynamic=dynamic,
        )
        of_block = int(space.steps_of_block(shapes)[row])
        found.append((float(estimates[row]), of_block, family, candidate))
    least = min((estimate for estimate, *_ in found), default=0.0)

    def order(item: tuple[float, int, Family, Candidate]) -> tuple[int, ...]:
        # blocks repeat, so a design with shorter ones is timed sooner
        estimate, of_block, _, candidate = item
        return int((estimate / least - 1) / _CLOSE), of_block, candidate.ram, candidate.bytes

    kinds: Counter[object] = Counter()
    chosen: list[Candidate] = []
    for _, _, family, candidate in sorted(found, key=order):
        kind = family.ways, family.lanes, tuple(along > 1 for along in family.pes)
        if kinds[kind] < _ALIKE:
            chosen.append(candidate)
        kinds[kind] += 1
    return chosen[:_MOST_ESTIMATED]


@dataclass(order=True, slots=True)
class _Entry:
    """A point in the heap; ties of bounds by RAM, then by bytes moved."""

    key: tuple[float, int, int]
    number: int
    row: int = field(compare=False)
    bound: int = field(compare=False)
    dsp: int = field(compare=False)
    dynamic: float = field(compare=False)
    batch: _Batch = field(compare=False)


@dataclass(kw_only=True, slots=True)
class _Batch:
    """The points of a family, in their order: the rows that come next."""

    number: int
    family: Family
    taken: int = 0
    costs: tuple[float, ...] = ()  # of the row that was taken last
    rows: Iterator[tuple[float, int, int, int, int, int, float]] = field(
        default_factory=lambda: iter(())
    )
    whole: bool = False


class _Queue:
    """Points of some families in the order of their bounds."""

    def __init__(
        self,
        state: Search,
        space: Space,
        families: Families,
        order: Columns,
        bounds: Columns | Reals,
        known: dict[Family, Costs],
        until: float,
    ) -> None:
        self.state = state
        self.space = space
        self.until = until
        self.families = families
        self.order = order
        self.bounds = bounds
        self.known = known
        self.heap: list[_Entry] = []
        self.alike: deque[Candidate] = deque()
        self.turns = 0
        self.batches = 0  # families whose points are in the heap

    @property
    def family(self) -> float | None:
        """The least bound of the families whose points were not bounded."""
        if self.batches == len(self.order):
            return None
        bound: float = self.bounds[self.order[self.batches]].item()
        return bound

    @property
    def least(self) -> float | None:
        """The least bound of what has not been taken."""
        bounds = [self.heap[0].key[0]] if self.heap else []
        bounds += [] if self.family is None else [self.family]
        bounds += [self.alike[0].value] if self.alike else []
        return min(bounds, default=None)

    def take(self) -> Candidate | None:
        """Take the candidate with the least bound out; ``None`` if none could be better."""
        self.turns += 1
        candidate = self._take_alike() if self.turns % _ALIKE == 0 else None
        while candidate is None and self._expand():
            if self.heap[0].key[0] > self.state.limit:
                break
            entry = heappop(self.heap)
            self._push(entry.batch)
            value, ram, moved = entry.key
            candidate = Candidate(
                point=self._point(entry.batch.family, entry.row),
                value=value,
                bound=entry.bound,
                dsp=entry.dsp,
                ram=ram,
                bytes=moved,
                dynamic=entry.dynamic,
            )
            if (*entry.key, entry.dsp) == entry.batch.costs:
                self.alike.append(candidate)
                candidate = None
            elif not self.state.is_open(candidate):
                candidate = None
            entry.batch.costs = (*entry.key, entry.dsp)
        return candidate or self._take_alike()

    def _take_alike(self) -> Candidate | None:
        """Take a candidate whose costs are those of another one; ``None`` if none could be better.

        It most likely takes as many cycles, so others come first.
        """
        while self.alike:
            candidate = self.alike.popleft()
            if self.state.is_open(candidate):
                return candidate
        return None

    def _point(self, family: Family, row: int) -> Point:
        return self.space.point(self.space.shapes(family), row, family.ways)

    def has_more(self, ties: bool) -> bool:
        """Whether a candidate is left, without time to look for it: yes, if that is not known."""
        if self.least is None or self.state.objective is Objective.FRONT:
            return self.least is not None
        ties = ties and self.state.objective is Objective.TIME
        return self.least < self.state.limit or (ties and self.least == self.state.limit)

    def _expand(self) -> bool:
        """Bound families until the least bound is that of a point; whether there is a point."""
        while (bound := self.family) is not None:
            if self.heap and bound >= self.heap[0].key[0]:
                break
            # families whose bounds say little may be many; at least one is looked at
            late = monotonic() > self.until + (0 if self.heap else _GRACE)
            if (late and self.state.tried) or bound > self.state.limit:
                break
            row = int(self.order[self.batches])
            self.batches += 1
            if bound == self.state.limit and not self.state.may_tie(
                bound, self.families.ram[row], self.families.dsp[row]
            ):
                continue
            family = self.families[row]
            self._push(_Batch(number=self.batches, family=family))
        return bool(self.heap)

    def _push(self, batch: _Batch) -> None:
        """Put the next row of a batch into the heap."""
        following = next(batch.rows, None)
        while following is None and not batch.whole:
            self._refill(batch)
            following = next(batch.rows, None)
        if following is not None:
            value, ram, moved, bound, dsp, row, dynamic = following
            entry = _Entry((value, ram, moved), batch.number, row, bound, dsp, dynamic, batch)
            heappush(self.heap, entry)

    def _refill(self, batch: _Batch) -> None:
        """Compute the next rows of a batch, twice as many each time, without those that are cut."""
        shapes, ways = self.space.shapes(batch.family), batch.family.ways
        costs = self.known.pop(batch.family, None) or self.space.costs_of(batch.family, shapes)
        if not batch.taken:
            self.state.bounded += len(shapes)
        dynamic, value = np.zeros(len(shapes)), costs.bound
        if self.state.energy is not None:
            dynamic = self.state.energy.dynamic(self.space, shapes, ways, costs.bytes)
        if self.state.minimized is not None:
            value = dynamic + self.state.minimized.of_cycle * costs.bound
        legal = np.flatnonzero(costs.legal)
        order = np.lexsort((costs.bytes[legal], costs.ram[legal], value[legal]))
        rows: Columns = legal[order[batch.taken : max(FIRST_ROWS, 2 * batch.taken)]]
        batch.taken = max(FIRST_ROWS, 2 * batch.taken)
        batch.whole = batch.taken >= len(legal)
        rows = rows[self.state.open(value, costs)[rows]]
        if not len(rows) and self.state.objective is not Objective.FRONT:
            batch.whole = True  # what follows has higher bounds
        columns = (value, costs.ram, costs.bytes, costs.bound, costs.dsp)
        batch.rows = zip(
            *(column[rows].tolist() for column in columns),
            rows.tolist(),
            dynamic[rows].tolist(),
            strict=True,
        )
