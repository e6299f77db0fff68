"""Timelines from runs that stop at given cycles, where their counters are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.simulator.limits import Limits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.tally import Counts, Ending, Tally
from t2s.simulator.timeline import MEMORY, NO_CAUSE, PEState, Timeline
from t2s.simulator.times.array.emit import Stop
from t2s.simulator.times.array.periods import FastForward
from t2s.simulator.times.array.run import ArrayMachine
from t2s.simulator.times.machine_times import explicit
from t2s.simulator.times.table_times import TableTimes


def timeline_of(program: SimProgram, edges: Counts, kernel: str) -> Timeline:
    """What the PEs of a program did between edges (see ``checked_window``).

    ``kernel`` is what found the times of the whole run; a run by the array kernel is repeated by
    it, any other one by the table kernel.  A program with machines has its trace.  Edges of bins
    wider than a cycle are moved to the ends of periods where the run repeats itself, so that what
    is in a bin is exact without a look at all of its cycles; there may be fewer bins then.
    """
    run = _sampled_run(program, kernel)
    found: list[_Counters] = []
    for cycle, tally in run.samples(edges, moved=int(edges[-1] - edges[0]) >= len(edges)):
        if not found or cycle > found[-1].cycle:
            found.append(_Counters.at(program, tally, cycle))
    pairs = list(pairwise(found))
    return Timeline(
        program=program,
        edges=np.array([one.cycle for one in found], np.int64),
        cycles=np.stack([after.states - before.states for before, after in pairs], axis=2),
        causes=np.stack([after.causes_since(before) for before, after in pairs], axis=1),
        before=found[0].states[PEState.BUSY],
    )


def _sampled_run(program: SimProgram, kernel: str) -> TableRun | ArrayRun:
    """A run of a program that has run by that kernel; with machines it has to have its trace."""
    if not program.graph.machines:
        return ArrayRun(program) if kernel == "array" else TableRun(program)
    if program.trace is None:
        raise InternalError("a run of machines is repeated from its trace")
    return TableRun(explicit(program, program.trace))


class TableRun:
    """A run by the table kernel, which steps from firing to firing."""

    def __init__(self, program: SimProgram) -> None:
        self.times = TableTimes(program)
        self.more = True

    def samples(self, edges: Counts, *, moved: bool) -> Iterator[tuple[int, Tally]]:
        """The counters at the ends of cycles; none is moved."""
        for cycle in edges.tolist():
            while self.more and self.times.now <= cycle:
                self.more = self.times.advance(cycle)
            yield cycle, self.times.tally(Limits(max_cycles=cycle), False)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """So many periods that were skipped, and the counters before and after them."""

    start: int
    period: int
    times: int
    before: Tally
    after: Tally

    @property
    def end(self) -> int:
        """The last cycle."""
        return self.start + self.period * self.times

    def near(self, cycle: int) -> tuple[int, Tally]:
        """The end of a period near a cycle, and the counters there: they grow evenly."""
        passed = min(self.times, (cycle - self.start + self.period // 2) // self.period)

        def there(name: str) -> Counts:
            before, after = getattr(self.before, name), getattr(self.after, name)
            return np.asarray(before + (after - before) // self.times * passed, np.int64)

        counters: dict[str, Any] = {name: there(name) for name in _COUNTERS}
        return self.start + passed * self.period, replace(self.before, **counters)


_COUNTERS = ("firings", "waiting", "starved", "blocked", "memory_starved", "memory_blocked")


class ArrayRun:
    """A run by the array kernel, which skips what repeats."""

    def __init__(self, program: SimProgram) -> None:
        self.machine = ArrayMachine(program)
        self.forward = FastForward(self.machine)
        self.stop = Stop.FINISHED if self.machine.unfinished == 0 else Stop.UNTIL
        self.stretches: list[_Stretch] = []
        self.next = 0

    def samples(self, edges: Counts, *, moved: bool) -> Iterator[tuple[int, Tally]]:
        """The counters at the ends of cycles.

        A cycle that is skipped may be ``moved`` to where a period ends, but for the first and the
        last; so the run takes no longer than it does without samples.
        """
        wanted, last = edges.tolist(), int(edges[-1])
        if not moved:
            yield from (self._at(cycle) for cycle in wanted)
            return
        yield self._at(wanted[0])
        self.forward.on_skip = self._skip
        left = deque(wanted[1:])
        while left:
            self.next = left[0]
            self._go_on(left[0], last)
            for stretch in self.stretches:
                while len(left) > 1 and left[0] < stretch.end:
                    yield stretch.near(left.popleft())
            self.stretches.clear()
            if left and (self.machine.cycle <= left[0] or self.stop is not Stop.UNTIL):
                yield self._at(left.popleft())

    def _at(self, cycle: int) -> tuple[int, Tally]:
        self._go_on(cycle, cycle)
        return cycle, self.machine.tally(Ending.LIMIT, cycle)

    def _go_on(self, cycle: int, skip_until: int) -> None:
        """Go on to the end of a cycle, or beyond if that is skipped."""
        while self.stop is Stop.UNTIL and self.machine.cycle < cycle:
            self.stop = self.forward.advance(cycle, skip_until=skip_until)

    def _skip(self, period: int, times: int, skip: Callable[[], None]) -> None:
        """Skip, and keep the counters on both sides of a stretch with an edge in it."""
        start = self.machine.cycle
        if start + period * times <= self.next:
            skip()
            return
        before = self.machine.tally(Ending.LIMIT, start)
        skip()
        after = self.machine.tally(Ending.LIMIT, start + period * times)
        self.stretches.append(_Stretch(start, period, times, before, after))


@dataclass(frozen=True, slots=True)
class _Counters:
    """The counters of a run at the end of a cycle: by state and PE, and by channel element."""

    program: SimProgram
    cycle: int
    states: Counts
    starved: Counts
    blocked: Counts
    memory: Counts

    @staticmethod
    def at(program: SimProgram, tally: Tally, cycle: int) -> _Counters:
        """Those of a tally at the end of a cycle."""
        control = program.control
        starved, blocked = tally.memory_starved.copy(), tally.memory_blocked.copy()
        memory = starved + blocked
        for total, stalls, ends in (
            (starved, tally.starved, control.receiver),
            (blocked, tally.blocked, control.sender),
        ):
            np.add.at(total, ends[ends >= 0], stalls[ends >= 0])
        known = tally.firings + tally.waiting + starved + blocked
        states = np.stack([tally.firings, tally.waiting, starved, blocked, cycle - known])
        return _Counters(program, cycle, states, tally.starved, tally.blocked, memory)

    def causes_since(self, before: _Counters) -> Counts:
        """For each PE the channel that it waited for most since then (see ``Timeline``)."""
        control = self.program.control
        memory = self.memory - before.memory
        most, causes = memory.copy(), np.where(memory > 0, MEMORY, NO_CAUSE)
        for now, earlier, ends in (
            (self.blocked, before.blocked, control.sender),
            (self.starved, before.starved, control.receiver),
        ):
            stalls = now - earlier
            elements = np.flatnonzero((stalls > 0) & (ends >= 0))
            np.maximum.at(most, ends[elements], stalls[elements])
            largest = elements[stalls[elements] == most[ends[elements]]]
            causes[ends[largest]] = self.program.channel_of_element[largest]
        return causes
