"""Times by the table kernel: its tables and their counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.limits import Limits
from t2s.simulator.memory.report import MemoryCounts, SharedCounts
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.counters import (
    FOREVER,
    Counts,
    Ending,
    Requirement,
    Stuck,
    Tally,
    end_of_run,
    ending_of,
    stuck_at,
    wait_until,
)
from t2s.simulator.times import table_layout as timing


class Memories(Protocol):
    """Memories whose access times depend on addresses (``table_memories``)."""

    @property
    def accesses(self) -> Array:
        """The PEs that random stalls apply to."""

    def provide(self) -> bool:
        """Prepare the requests of more firings if any are used up; return whether they were."""

    def lasts(self) -> int:
        """Cycles before they may be used up."""

    def prepared(self, tables: timing.Tables, credit: timing.Credit) -> Callable[..., int]:
        """The kernel on the present tables."""

    @property
    def last_written(self) -> int:
        """The cycle of the last write to the DRAM, except for those after all firings."""

    @property
    def last_stored(self) -> int:
        """The cycle of the last store to the banks."""

    def counts(self) -> tuple[MemoryCounts | None, SharedCounts | None]:
        """The counters."""


class TableTimes:
    """The arrays that the timing kernel works on (see ``times.table_kernel``)."""

    def __init__(
        self, program: SimProgram, memories: Memories | None = None, *, measured: bool = False
    ) -> None:
        control = program.control
        self.program = program
        self.measured = measured
        self.rows = _rows(control.rows)
        self.uses = control.uses.astype(np.uint64) * timing.U(timing.RECORD)
        self.uses[~control.taken] += timing.PEEKS
        self.elements = _elements(program)
        self.pes = _pes(program)
        busy = control.firings > 0
        wake = np.where(busy, 1, FOREVER).astype(np.int64)
        ends = self.elements[:, int(timing.END)]
        self.ring = np.zeros(int(ends.max(initial=0)), np.int64)
        self.stalls = np.zeros((len(self.elements), timing.RECORD), np.int64)
        self.memory_stalls = np.zeros(program.pe_count, np.int64)
        rate = program.memory_rate
        stalls = program.stalls
        stalling = (0, 0) if stalls is None else (stalls.seed, stalls.one_in)
        self.memories = memories
        accesses = program.accesses_memory if memories is None else memories.accesses
        self.credit = timing.Credit(
            queue=np.zeros(max(1, program.pe_count), np.uint64),
            rate=0 if rate is None else rate.numerator,
            unit=1 if rate is None else rate.denominator,
        )
        self.clock = np.zeros(8, np.int64)
        self.clock[timing.NOW] = self.clock[timing.CREDIT_AT] = 1
        self.clock[timing.CREDIT] = self.credit.rate
        self.clock[timing.UNFINISHED] = int(busy.sum())
        self._run: Callable[..., int] | None = None
        self.tables = timing.Tables(
            codes=control.codes,
            rows=self.rows.reshape(-1),
            uses=self.uses,
            wake=wake,
            pes=self.pes.reshape(-1),
            elements=self.elements.reshape(-1),
            ring=self.ring,
            stalls=self.stalls.reshape(-1),
            memory_stalls=self.memory_stalls,
            clock=self.clock,
            stalling=np.array(stalling, np.uint64),
            accesses_memory=accesses.astype(np.uint64),
        )

    @property
    def now(self) -> int:
        """The next cycle to simulate."""
        return int(self.clock[timing.NOW])

    @property
    def fired(self) -> int:
        """Firings made."""
        return int(self.clock[timing.FIRED_IN_ALL])

    @property
    def unfinished(self) -> int:
        """PEs with firings left."""
        return int(self.clock[timing.UNFINISHED])

    def earliest_end(self) -> int:
        """A lower bound on the end of the run, from the firings left."""
        left = self.program.control.firings - self._column(timing.FIRED)
        soonest = np.maximum(self._column(timing.LAST) + self.program.intervals, self.now)
        ends = soonest + (left - 1) * self.program.intervals
        return int(ends[left > 0].max(initial=0))

    def advance(self, until: int) -> bool:
        """Simulate to the end of a cycle; return whether anything may happen after it."""
        if self.memories is not None:
            if self.memories.provide() or self._run is None:
                self._run = self.memories.prepared(self.tables, self.credit)
            until = min(until, self.now + self.memories.lasts() - 1)
        elif self._run is None:
            self._run = timing.advance_with_credit.prepared(self.tables, self.credit)
        return bool(self._run(until, self.measured))

    def tally(self, limits: Limits, interrupted: bool) -> Tally:
        """The counters, with the stalls of unfinished PEs up to the last cycle."""
        program = self.program
        firings = self._column(timing.FIRED)
        last = self._column(timing.LAST)
        tails = {
            int(pe): self._requirements(int(pe))
            for pe in np.flatnonzero(firings < program.control.firings)
        }
        never = [stuck_at(pe, requirements) for pe, requirements in tails.items()]
        stuck = tuple(item for item in never if item is not None)
        ending, cycles = self._ending(limits, interrupted, len(tails), stuck)
        waiting = np.maximum(firings - 1, 0) * (program.intervals - 1)
        starved, blocked = self.stalls[:, 0].copy(), self.stalls[:, 1].copy()
        memory = self.memory_stalls.copy()
        counts = self._memory_counts()
        begun = {pe: needs for pe, needs in tails.items() if firings[pe]}
        wait_until(cycles, program, begun, last, waiting, starved, blocked, memory)
        return Tally(
            ending=ending,
            cycles=cycles,
            firings=firings,
            first=self._column(timing.FIRST),
            last=last,
            waiting=waiting,
            starved=starved,
            blocked=blocked,
            memory_starved=np.where(program.loads, memory, 0),
            memory_blocked=np.where(program.loads, 0, memory),
            left=self._left(),
            stuck=stuck,
            memory=counts[0],
            shared=counts[1],
        )

    def sample(self, cycle: int) -> Tally:
        """The counters at the end of a cycle, up to which the run has advanced.

        Like ``tally``, for all PEs at once, but without the search for stuck PEs.
        """
        firings, last = self._column(timing.FIRED), self._column(timing.LAST)
        waiting = np.maximum(firings - 1, 0) * (self.program.intervals - 1)
        starved, blocked = self.stalls[:, 0].copy(), self.stalls[:, 1].copy()
        memory = self.memory_stalls.copy()
        unfinished = np.flatnonzero((firings > 0) & (firings < self.program.control.firings))
        seen = np.minimum(last + self.program.intervals, cycle + 1)[unfinished]
        waiting[unfinished] += seen - last[unfinished] - 1
        for at, element, sending, times in self._needed(unfinished):
            passed = np.maximum(np.minimum(times, cycle + 1) - seen[at], 0)
            np.add.at(blocked, element[sending], passed[sending])
            np.add.at(starved, element[~sending], passed[~sending])
            seen[at] += passed
        memory[unfinished] += cycle + 1 - seen
        return Tally(
            ending=Ending.LIMIT,
            cycles=cycle,
            firings=firings,
            first=self._column(timing.FIRST),
            last=last,
            waiting=waiting,
            starved=starved,
            blocked=blocked,
            memory_starved=np.where(self.program.loads, memory, 0),
            memory_blocked=np.where(self.program.loads, 0, memory),
            left=self._left(),
            stuck=(),
            memory=self._memory_counts()[0],
        )

    def _needed(self, pes: Counts) -> Iterator[tuple[Counts, Counts, Array, Counts]]:
        """The requirements of the next firings of PEs, PE by PE.

        Returns positions among ``pes``, channel elements, whether they are sent to, and the first
        cycles in which that is possible.
        """
        rows = self.rows[self._column(timing.ROW)[pes] // int(timing.ROW_RECORD)].astype(np.int64)
        begin, middle, end = rows[:, 0], rows[:, 1], rows[:, 2]
        elements = self.elements.astype(np.int64)
        for place in range(int((end - begin).max(initial=0))):
            at = np.flatnonzero(begin + place < end)
            use = begin[at] + place
            sending = use >= middle[at]
            element = self.uses[use].astype(np.int64) // int(timing.RECORD)
            write, read = elements[element, int(timing.WRITE)], elements[element, int(timing.READ)]
            entry = self.ring[np.where(sending, write, read)].astype(np.int64)
            known = np.where(sending, entry <= 0, entry > 0)
            yield at, element, sending, np.where(known, np.abs(entry), FOREVER)

    def _memory_counts(self) -> tuple[MemoryCounts | None, SharedCounts | None]:
        return self.memories.counts() if self.memories is not None else (None, None)

    def _column(self, column: np.uint64) -> Counts:
        return np.asarray(self.pes[:, int(column)], np.int64)

    def _ending(
        self, limits: Limits, interrupted: bool, unfinished: int, stuck: Sequence[Stuck]
    ) -> tuple[Ending, int]:
        written = self.memories.last_written if self.memories is not None else 0
        end = end_of_run(
            self.program,
            int(self._column(timing.LAST).max(initial=0)),
            max(int(self.clock[timing.LAST_STORE]), written),
            self.memories.last_stored if self.memories is not None else 0,
        )
        if interrupted:
            return Ending.INTERRUPTED, max(end, self.now - 1)
        if unfinished == len(stuck):
            return ending_of(self.program, stuck), end
        return Ending.LIMIT, min(limits.max_cycles or 0, max(end, self.now - 1))

    def ready(self, element: int) -> int:
        """The cycle in which the next token of an element is ready, or ``FOREVER``."""
        entry = int(self.ring[int(self.elements[element, int(timing.READ)])])
        return entry if entry > 0 else FOREVER

    def _requirements(self, pe: int) -> list[Requirement]:
        """(element, sending, first cycle that allows it) of a PE's next firing, in body order."""
        begin, middle, end = (int(n) for n in self._next_row(pe)[:3])
        requirements: list[Requirement] = []
        for use in range(begin, end):
            sending = use >= middle
            element = int(self.uses[use]) // timing.RECORD
            at = self.elements[element, int(timing.WRITE if sending else timing.READ)]
            entry = int(self.ring[int(at)])
            known = entry <= 0 if sending else entry > 0
            requirements.append((element, sending, abs(entry) if known else FOREVER))
        return requirements

    def _next_row(self, pe: int) -> Array:
        return self.rows[int(self.pes[pe, int(timing.ROW)]) // timing.ROW_RECORD]

    def _left(self) -> Counts:
        """Tokens in every element: those between the read and write positions of its ring.

        If these are equal the ring is full or empty.
        """
        columns = (timing.BEGIN, timing.END, timing.READ, timing.WRITE)
        begin, end, read, write = (self.elements[:, int(n)].astype(np.int64) for n in columns)
        size = end - begin
        full = (read == write) & (self.ring[read] > 0)
        return np.asarray(np.where(full, size, (write - read) % size), np.int64)


def _rows(rows: Array) -> Array:
    table = np.zeros((len(rows), timing.ROW_RECORD), np.uint64)
    table[:, :3] = rows[:, :3]
    table[:, 3] = 4 * rows[:, 3].astype(np.int64) + rows[:, 4]
    return table


def _elements(program: SimProgram) -> Array:
    control, size = program.control, program.ring_sizes
    end = np.cumsum(size)
    table = np.zeros((len(size), timing.RECORD), np.uint64)
    for column, values in (
        (timing.READ, end - size),
        (timing.WRITE, end - size),
        (timing.BEGIN, end - size),
        (timing.END, end),
        (timing.LATENCY, program.per_element([channel.latency for channel in program.channels])),
        (timing.SENDER, np.maximum(control.sender, 0)),
        (timing.RECEIVER, np.maximum(control.receiver, 0)),
    ):
        table[:, int(column)] = values
    return table


def _pes(program: SimProgram) -> Array:
    control = program.control
    table = np.zeros((program.pe_count, timing.RECORD), np.uint64)
    first_row = control.row_start * timing.ROW_RECORD
    busy = control.firings > 0
    row = first_row.copy()
    row[busy] += control.codes[control.code_start[busy]].astype(np.int64) * timing.ROW_RECORD
    for column, values in (
        (timing.CODE, control.code_start),
        (timing.ROW, row),
        (timing.INTERVAL, program.intervals),
        (timing.FIRINGS, control.firings),
        (timing.FIRST_ROW, first_row),
    ):
        table[:, int(column)] = values
    return table
