"""Commands that go ahead of others: what a controller with a read queue knows of them.

The times of a command do not change once they are found, so a younger one comes between those that
are known, at the first clock that keeps its distance from each of them.  Only the last ones, in
the order of time, are known; a younger command comes behind those that are forgotten.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field

from t2s.simulator.memory.spec import Dram, DramPlace

NEVER = -(1 << 40)
"""A time before all others."""
ACTIVATIONS = 16
"""Activations of a rank that are known."""


def first_between(clock: int, others: Iterable[tuple[int, int]]) -> int:
    """The first time from ``clock`` on that is as far from each other one as that one asks for.

    ``others`` are times, in order, and distances.
    """
    for other, apart in others:
        if other - apart < clock < other + apart:
            clock = other + apart
    return clock


@dataclass(slots=True)
class KnownActivations:
    """The last activations of a rank, in the order of time, with their bank groups."""

    dram: Dram
    known: list[tuple[int, int]] = field(default_factory=list)
    floor: int = NEVER

    def slot(self, clock: int, group: int) -> int:
        """The first clock from ``clock`` on in which a bank of the group may open a row."""
        t = self.dram.timing
        clock = max(clock, self.floor)
        apart = [(at, t.tRRD_L if near == group else t.tRRD_S) for at, near in self.known]
        while True:
            clock = first_between(clock, apart)
            times = sorted([*(at for at, _ in self.known), clock])
            if all(b - a >= t.tFAW for a, b in zip(times, times[4:], strict=False)):
                return clock
            clock += 1

    def note(self, clock: int, group: int) -> None:
        """An activation is done at a clock."""
        t = self.dram.timing
        insort(self.known, (clock, group))
        if len(self.known) > ACTIVATIONS:
            oldest, _ = self.known.pop(0)
            self.floor = max(self.floor, oldest + max(t.tFAW, t.tRRD_L, t.tRRD_S))


@dataclass(frozen=True, slots=True, order=True)
class _Read:
    column: int
    rank: int
    group: int


@dataclass(slots=True)
class ReadQueue:
    """The last reads of a channel, in the order of time; none of them is before the last write."""

    dram: Dram
    known: list[_Read] = field(default_factory=list)
    floor: int = NEVER
    written: int = NEVER

    def slot(self, clock: int, place: DramPlace) -> int:
        """The first clock from ``clock`` on for a read."""
        t = self.dram.timing
        clock = max(clock, self.floor, self.written + t.turnaround - t.CL)
        return first_between(
            clock, ((read.column, self._apart(read, place)) for read in self.known)
        )

    def note(self, column: int, place: DramPlace) -> None:
        """A read is done at a clock."""
        t = self.dram.timing
        insort(self.known, _Read(column, place.rank, place.group))
        if len(self.known) > self.dram.read_queue:
            far = max(self.dram.burst_clocks + t.turnaround, t.tCCD_L, t.tCCD_S)
            self.floor = max(self.floor, self.known.pop(0).column + far)

    def write(self, column: int, end: int) -> None:
        """A write is done at a clock, behind all reads; later reads come behind it."""
        self.known.clear()
        self.floor, self.written = column + 1, end

    def _apart(self, read: _Read, place: DramPlace) -> int:
        t = self.dram.timing
        if read.rank != place.rank:
            return self.dram.burst_clocks + t.turnaround
        near = read.group == place.group
        return max(self.dram.burst_clocks, t.tCCD_L if near else t.tCCD_S)
