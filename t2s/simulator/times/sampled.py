"""Runs that stop at given cycles, where their counters are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.simulator.limits import Limits
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.tally import Counts, Ending, Tally
from t2s.simulator.times.array.emit import Stop
from t2s.simulator.times.array.periods import FastForward
from t2s.simulator.times.array.run import ArrayMachine
from t2s.simulator.times.machine_times import explicit
from t2s.simulator.times.table_times import TableTimes


def sampled_run(program: SimProgram, kernel: str) -> TableRun | ArrayRun:
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
