"""What every PE did in every cycle of a window: busy, waiting, starved, blocked or idle.

In goes a program that has run, and a window of its cycles with a number of bins.  The run is
repeated up to the end of the window, and its counters are read at the edges of the bins; what a PE
did in a bin is the difference.  So a window is exact wherever it lies, nothing is kept of the rest
of the run, and a window of a run of 10^9 cycles costs no more than its fast-forward.  With a bin
for each cycle, a bin says what the PE did in that cycle.

Cycles count from 1.  A window of cycles ``(first, last)`` has both in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Protocol

import numpy as np

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.interrupts import late_module
from t2s.core.location import user_location
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.report.tally import Counts, Tally

MOST_BINS = 4096
"""Bins of one timeline: more than a screen has columns."""

MOST_ENTRIES = 1 << 26
"""Entries of one timeline, bins times PEs."""


class PEState(IntEnum):
    """What a PE did in a cycle."""

    BUSY = 0
    WAITING = 1
    STARVED = 2
    BLOCKED = 3
    IDLE = 4


NO_CAUSE = -1
"""A bin in which nothing was starved or blocked."""

MEMORY = -2
"""Memory is what the PE starved or was blocked by."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Timeline:
    """Counters of all PEs in the bins of a window.

    Attributes
    ----------
    program: what ran.
    edges: cycle numbers, one more than there are bins: bin ``b`` has the cycles
        ``edges[b] + 1`` to ``edges[b + 1]``.
    cycles: for each ``PEState``, PE and bin the cycles in that state, shape (5, PEs, bins); over
        the states they add up to the cycles of the bin.
    causes: for each PE and bin the number of the channel that it starved on or was blocked by
        for most cycles, ``MEMORY`` or ``NO_CAUSE``; shape (PEs, bins).
    before: firings of each PE before the window.
    """

    program: SimProgram
    edges: Counts
    cycles: Counts
    causes: Counts
    before: Counts

    @property
    def bins(self) -> int:
        """The number of bins."""
        return len(self.edges) - 1

    @property
    def first(self) -> int:
        """The first cycle of the window."""
        return int(self.edges[0]) + 1

    @property
    def last(self) -> int:
        """The last cycle of the window."""
        return int(self.edges[-1])

    @property
    def is_exact(self) -> bool:
        """Whether every bin is one cycle."""
        return self.last - self.first + 1 == self.bins

    @property
    def firings(self) -> Counts:
        """Firings of each PE before the end of each bin; shape (PEs, bins)."""
        return np.asarray(self.before[:, None] + np.cumsum(self.cycles[PEState.BUSY], axis=1))

    def of(self, node: str) -> Counts:
        """The cycles of a node by state, PE and bin; ``KeyError`` if there is no such node."""
        for timing in self.program.nodes:
            if timing.node.name == node:
                return self.cycles[:, timing.instances]
        raise KeyError(node)

    def main_states(self) -> Counts:
        """The state in which each PE was for most cycles of each bin, the first of equal ones."""
        return np.asarray(np.argmax(self.cycles, axis=0))

    def cause(self, pe: int, bin: int) -> str | None:
        """What a PE waited for in a bin: ``memory`` or a channel's name; ``None`` for nothing."""
        match int(self.causes[pe, bin]):
            case -1:
                return None
            case -2:
                return "memory"
            case number:
                return self.program.channels[number].channel.name

    def rows(self) -> Iterator[tuple[NodeTiming, int]]:
        """The node of each PE, and its place among the node's PEs."""
        for timing in self.program.nodes:
            for place in range(timing.pe_count):
                yield timing, place

    def __repr__(self) -> str:
        return (
            f"<Timeline of {self.program.graph.name!r}: {self.cycles.shape[1]} PEs, cycles "
            f"{self.first} to {self.last} in {self.bins} bins>"
        )


def checked_window(
    cycles: tuple[int, int] | None, of_run: int, *, bins: int | None, pe_count: int
) -> Counts:
    """The edges of the bins of a window; without ``bins`` one for each cycle, as far as they go.

    Raises ``UserError`` for a window that is not one of cycles 1 to ``of_run``, and for more bins
    than a timeline may have.
    """
    first, last = _window(cycles, of_run)
    length = last - first + 1
    most = max(1, min(MOST_BINS, MOST_ENTRIES // max(1, pe_count)))
    count = min(length, most) if bins is None else _bins(bins, most)
    count = min(count, length)
    numbers = [first - 1 + length * number // count for number in range(count + 1)]
    return np.array(numbers, np.int64)


def _window(cycles: object, of_run: int) -> tuple[int, int]:
    if cycles is None:
        return 1, max(1, of_run)
    here, given = user_location(), cycles
    if isinstance(cycles, Sequence) and len(cycles) == 2:
        first, last = whole(cycles[0]), whole(cycles[1])
        if first is not None and last is not None and 1 <= first <= last <= of_run:
            return first, last
        given = f"({cycles[0]!r}, {cycles[1]!r})"
    raise UserError(
        "the window is not in the run",
        location=here,
        expected=f"cycles=(first, last), both of 1 to {of_run:,} and in this order",
        given=str(given),
    )


def _bins(bins: object, most: int) -> int:
    count = whole(bins)
    if count is None or not 1 <= count <= most:
        raise UserError(
            "bins is not a number of bins",
            location=user_location(),
            expected=f"an integer from 1 to {most:,}",
            given=repr(bins),
            hint="a narrower window shows more",
        )
    return count


class SampledRun(Protocol):
    """A run that goes on from edge to edge."""

    def samples(self, edges: Counts, *, moved: bool) -> Iterator[tuple[int, Tally]]:
        """Cycles and the counters at their ends.

        Those between the first and the last may be ``moved`` to where counters are known at once.
        """


def timeline_of(program: SimProgram, edges: Counts, kernel: str) -> Timeline:
    """What the PEs of a program did between edges (see ``checked_window``).

    ``kernel`` is what found the times of the whole run; a run by the array kernel is repeated by
    it, any other one by the table kernel.  A program with machines has its trace.  Edges of bins
    wider than a cycle are moved to the ends of periods where the run repeats itself, so that what
    is in a bin is exact without a look at all of its cycles; there may be fewer bins then.
    """
    # the kernels bring a compiler
    run: SampledRun = late_module("t2s.simulator.times.sampled").sampled_run(program, kernel)
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
