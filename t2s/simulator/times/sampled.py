"""Timelines from runs that stop at given cycles to read their counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.simulator.program.sim_program import SimProgram, empty_before, explicit
from t2s.simulator.report.counters import Counts, Ending, Tally
from t2s.simulator.timeline import MEMORY, NO_CAUSE, PEState, Timeline
from t2s.simulator.times.array.emit import Stop
from t2s.simulator.times.array.periods import FastForward
from t2s.simulator.times.array.run import ArrayMachine
from t2s.simulator.times.table_memories import table_times_of


def timeline_of(program: SimProgram, edges: Counts, kernel: str) -> Timeline:
    """The timeline of a program between edges (see ``checked_window``)."""
    return timelines_of(program, (edges,), kernel)[0]


def timelines_of(
    program: SimProgram, wanted: Sequence[Counts], kernel: str
) -> tuple[Timeline, ...]:
    """Timelines of several windows, which may overlap, from one run to the end of the last one.

    ``kernel`` computed the times of the whole run; a run of the array kernel is repeated by it, any
    other by the table kernel.  A program with machines must have its trace.  Edges of bins wider
    than a cycle move to the ends of periods if the run repeats itself, so that bins are exact
    without visiting all of their cycles; there may be fewer bins then.
    """
    run = _sampled_run(program, kernel)
    fixed: set[int] = set()
    for edges in wanted:
        moved = int(edges[-1] - edges[0]) >= len(edges)
        fixed.update([int(edges[0]), int(edges[-1])] if moved else edges.tolist())
    counters: dict[int, _Counters] = {}
    for stretch in _stretches(sorted(fixed.union(*(edges.tolist() for edges in wanted))), fixed):
        moved = len(stretch) > 2
        needed = stretch if moved else [edge for edge in stretch if edge not in counters]
        if not needed:
            continue
        samples = run.samples(np.array(needed, np.int64), moved=moved)
        for edge, (cycle, tally) in zip(needed, samples, strict=True):
            if edge not in counters:
                counters[edge] = _Counters.at(program, tally, cycle)
    return tuple(
        _timeline(program, [counters[edge] for edge in edges.tolist()]) for edges in wanted
    )


def _stretches(edges: Sequence[int], fixed: Collection[int]) -> Iterator[list[int]]:
    """The stretches of edges between fixed ones."""
    stretch = [edges[0]]
    if len(edges) == 1:
        yield stretch
    for edge in edges[1:]:
        stretch.append(edge)
        if edge in fixed:
            yield stretch
            stretch = [edge]


def _timeline(program: SimProgram, sampled: Sequence[_Counters]) -> Timeline:
    """The differences of counters, without edges that moved to the same cycle."""
    samples = [sampled[0]]
    samples += (sample for sample in sampled[1:] if sample.cycle > samples[-1].cycle)
    pairs = list(pairwise(samples))
    cycles = np.stack([after.states - before.states for before, after in pairs], axis=2)
    slots = np.stack([sample.states[PEState.BUSY] for sample in samples], axis=1)
    empty = empty_before(program, slots)  # engines count empty slots as firings
    cycles[PEState.BUSY] -= np.diff(empty, axis=1)
    cycles[PEState.WAITING] += np.diff(empty, axis=1)
    return Timeline(
        program=program,
        edges=np.array([sample.cycle for sample in samples], np.int64),
        cycles=cycles,
        causes=np.stack([after.causes_since(before) for before, after in pairs], axis=1),
        slots=slots,
        before=slots[:, 0] - empty[:, 0],
        held=np.stack([sample.held for sample in samples], axis=1),
        fullest=np.stack([sample.fullest for sample in samples], axis=1),
        left=samples[0].left,
        starved=samples[-1].starved - samples[0].starved,
        blocked=samples[-1].blocked - samples[0].blocked,
        bursts=np.stack([sample.bursts for sample in samples], axis=1),
    )


def _sampled_run(program: SimProgram, kernel: str) -> TableRun | ArrayRun:
    """Repeat a run by its kernel; with machines the program must have its trace."""
    if not program.graph.machines:
        return ArrayRun(program) if kernel == "array" else TableRun(program)
    trace = program.trace
    if trace is None or not trace.is_kept:
        raise InternalError("a run of machines is repeated from its trace")
    return TableRun(explicit(program, trace))


class TableRun:
    """A run by the table kernel, which steps from firing to firing."""

    def __init__(self, program: SimProgram) -> None:
        self.times = table_times_of(program)
        self.more = True

    def samples(self, edges: Counts, *, moved: bool) -> Iterator[tuple[int, Tally]]:
        """The counters at the ends of cycles; none is moved."""
        for cycle in edges.tolist():
            while self.more and self.times.now <= cycle:
                self.more = self.times.advance(cycle)
            yield cycle, self.times.sample(cycle)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Skipped periods, and the counters before and after them."""

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

        A skipped cycle may be ``moved`` to the end of a period, except for the first and the last
        one, so that samples do not slow the run down.
        """
        wanted, last = edges.tolist(), int(edges[-1])
        self.forward.on_skip = None
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

    def _tally(self, cycle: int) -> Tally:
        return self.machine.tally(Ending.LIMIT, cycle, find_stuck=False)

    def _at(self, cycle: int) -> tuple[int, Tally]:
        self._go_on(cycle, cycle)
        return cycle, self._tally(cycle)

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
        before = self._tally(start)
        skip()
        after = self._tally(start + period * times)
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
    held: Counts
    fullest: Counts
    left: Counts
    bursts: Counts

    @staticmethod
    def at(program: SimProgram, tally: Tally, cycle: int) -> _Counters:
        """The counters of a tally at the end of a cycle."""
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
        held, fullest = np.zeros((2, len(program.channels)), np.int64)
        np.add.at(held, program.channel_of_element, tally.left)
        np.maximum.at(fullest, program.channel_of_element, tally.left)
        channels = tally.memory.channels if tally.memory is not None else ()
        bursts = [[c.reads, c.writes, c.hits] for c in channels]
        return _Counters(
            program=program,
            cycle=cycle,
            states=states,
            starved=tally.starved.copy(),
            blocked=tally.blocked.copy(),
            memory=memory,
            held=held,
            fullest=fullest,
            left=tally.left.copy(),
            bursts=np.array(bursts, np.int64).reshape(-1, 3).sum(axis=0),
        )

    def causes_since(self, before: _Counters) -> Counts:
        """For each PE, the channel that it waited for most since ``earlier`` (see ``Timeline``)."""
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
