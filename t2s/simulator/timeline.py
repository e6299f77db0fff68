"""Timelines: the state of every PE (busy, waiting, starved, blocked, idle) over a window.

A window of a finished run is divided into bins.  The run is repeated up to the end of the window,
its counters are read at the edges of the bins, and their differences are the cycles in each state.
So a window is exact wherever it lies, the rest of the run is not recorded, and a window of a run of
10^9 cycles costs no more than its fast-forward.  With one bin per cycle, a bin is the state in that
cycle.

Cycles count from 1.  A window of cycles ``(first, last)`` includes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.report.counters import Counts

MOST_BINS = 4096
"""Bins of one timeline: more than a screen has columns."""

MOST_ENTRIES = 1 << 26
"""Entries of one timeline, bins times PEs."""


Window = tuple[int, int]
"""The first and the last cycle."""


class PEState(IntEnum):
    """The state of a PE in a cycle.  In an empty slot of a schedule the PE waits."""

    BUSY = 0
    WAITING = 1
    STARVED = 2
    BLOCKED = 3
    IDLE = 4


NO_CAUSE = -1
"""A bin in which nothing was starved or blocked."""

MEMORY = -2
"""The PE starved on or was blocked by memory."""


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
    causes: for each PE and bin, the number of the channel that it starved on or was blocked by for
        the most cycles, ``MEMORY`` or ``NO_CAUSE``; shape (PEs, bins).
    slots: steps of the loops of each PE before each edge, firings and empty slots; shape (PEs,
        edges).
    before: firings of each PE before the window.
    held, fullest: tokens sent and not yet received, in all FIFOs of each channel and in the fullest
        of them, at each edge; shape (channels, edges).
    left: these tokens before the window, for each channel element.
    starved, blocked: cycles of the window in which the receiver of each channel element starved on
        it, and in which its sender was blocked on it.
    bursts: bursts read, written, and with a row hit, before each edge; shape (3, edges), all 0
        without a DRAM.
    """

    program: SimProgram
    edges: Counts
    cycles: Counts
    causes: Counts
    slots: Counts
    before: Counts
    held: Counts
    fullest: Counts
    left: Counts
    starved: Counts
    blocked: Counts
    bursts: Counts

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
        """The most frequent state of each PE in each bin; the first one of equals."""
        return np.asarray(np.argmax(self.cycles, axis=0))

    def cause(self, pe: int, bin: int) -> str | None:
        """The cause of a PE's stalls in a bin: ``memory``, a channel's name, or ``None``."""
        match int(self.causes[pe, bin]):
            case -1:
                return None
            case -2:
                return "memory"
            case number:
                return self.program.channels[number].channel.name

    def rows(self) -> Iterator[tuple[NodeTiming, int]]:
        """The node of each PE, and its position among the node's PEs."""
        for timing in self.program.nodes:
            for place in range(timing.pe_count):
                yield timing, place

    def __repr__(self) -> str:
        return (
            f"<Timeline of {self.program.graph.name!r}: {self.cycles.shape[1]} PEs, cycles "
            f"{self.first} to {self.last} in {self.bins} bins>"
        )


def checked_window(
    cycles: Window | None, of_run: int, *, bins: int | None, pe_count: int
) -> Counts:
    """The edges of the bins of a window; by default a bin for each cycle, as far as they go.

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


def _window(cycles: object, of_run: int) -> Window:
    if cycles is None:
        return 1, max(1, of_run)
    location, window = user_location(), cycles
    if isinstance(cycles, Sequence) and len(cycles) == 2:
        first, last = as_int(cycles[0]), as_int(cycles[1])
        if first is not None and last is not None and 1 <= first <= last <= of_run:
            return first, last
        window = f"({cycles[0]!r}, {cycles[1]!r})"
    raise UserError(
        "the window is not in the run",
        location=location,
        expected=f"cycles=(first, last), both of 1 to {of_run:,} and in this order",
        given=str(window),
    )


def _bins(bins: object, most: int) -> int:
    count = as_int(bins)
    if count is None or not 1 <= count <= most:
        raise UserError(
            "bins is not a number of bins",
            location=user_location(),
            expected=f"an integer from 1 to {most:,}",
            given=repr(bins),
            hint="a narrower window shows more",
        )
    return count
