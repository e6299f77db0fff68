"""The stepping engine: times of nodes that share nothing but channels, cycle by cycle.

Where much happens in every cycle it is faster than running ahead (``run_ahead``).  See
``stepping_emit`` for how it works.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.emit.compile import MachineCode, compile_when_new
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.tally import Counts, Ending, Tally, end_of_run
from t2s.simulator.times import stepping_emit, stepping_words
from t2s.simulator.times.run_ahead_code import shares_channels_alone, twin_elements
from t2s.simulator.times.run_ahead_shapes import Rows
from t2s.simulator.times.stepping_tables import MOST_LANES, StepTables, step_tables
from t2s.simulator.times.stepping_words import StepShape
from t2s.simulator.values.layout import address_of, aligned_zeros

_CYCLE_COST, _NODE_COST, _FIRING_COST = 18, 2, 12
"""Nanoseconds for a cycle and each node that is busy in it, and for a firing of a run ahead."""

_LONGEST_DELAY = 1 << 12
_PATIENCE = 3
_STEPS_PER_CALL = 1 << 16
_OFTEN = 3
"""Nodes that fire less often than the busiest by this factor are in groups."""


@lru_cache(maxsize=16)
def _compiled(shape: StepShape) -> MachineCode:
    modules = stepping_emit, stepping_words
    writers = [Path(module.__file__ or "") for module in modules]
    return compile_when_new(repr(shape), lambda: stepping_emit.emit_steps(shape), writers)


def steps_of(program: SimProgram) -> StepTables | None:
    """The tables to step through a program; ``None`` if that is impossible, or would be slow.

    It takes a program all of whose firings are known, and few enough channels.  A cycle costs about
    the same whatever happens in it, so it is slow where little does.
    """
    if not shares_channels_alone(program):
        return None
    twin = twin_elements(program)
    if len(set(twin)) >= MOST_LANES:
        return None
    firings = program.control.firings
    most, often = int(firings.max(initial=0)), int((_OFTEN * firings > firings.max()).sum())
    if (_CYCLE_COST + _NODE_COST * often) * most > _FIRING_COST * int(firings.sum()):
        return None
    longest = max((channel.latency for channel in program.channels), default=1)
    if max(longest, int(program.intervals.max(initial=1))) > _LONGEST_DELAY:
        return None
    slow = tuple(np.flatnonzero(program.intervals > 1).tolist())
    tables = step_tables(Rows(program.control), twin, slow)
    if tables is None or (tables.mixed and program.device.store_latency):
        return None
    return tables


class StepTimes:
    """The state of a run of a program all of whose firings are known.

    ``codes`` are the codes of every node.
    """

    def __init__(
        self, program: SimProgram, tables: StepTables, codes: Sequence[Array], trace: Trace
    ) -> None:
        self._program, self._tables, self._codes = program, tables, codes
        lanes, words = tables.lanes, tables.words
        capacity = program.per_element([c.capacity for c in program.channels])
        latency = program.per_element([c.latency for c in program.channels])
        used = np.flatnonzero(tables.element >= 0)
        element = tables.element[used]
        room = np.ones(lanes, np.int64)
        room[used] = np.minimum(capacity, np.maximum(trace.sent, 1))[element]
        delay = np.ones(lanes, np.int64)
        delay[used] = latency[element]
        tokens = np.zeros(lanes, np.int64)
        for instance, slow in tables.slow.items():
            delay[slow], tokens[slow] = program.intervals[instance], 1
        most = int(room.max())
        bits = next(bits for bits in (8, 16, 32) if most < 1 << bits)
        longest = int(delay.max())
        often = np.array([len(c) for c in codes], np.int64)
        busy = _OFTEN * often > often.max(initial=0)
        left = np.zeros(lanes, np.int64)
        left[used] = (trace.sent - trace.received)[element]
        self._steady = [n for n in tables.steady if busy[n] and not self._leaves(n, left)]
        others = [n for n in range(len(codes)) if n not in self._steady and often[n]]
        self._choosing = sorted(others, key=lambda n: -int(often[n]))
        self._shape = StepShape(
            lanes=lanes,
            count_bits=bits,
            delayed=longest > 1,
            choosing=sum(bool(busy[n]) for n in others),
            steady=len(self._steady),
        )
        self._kept: list[Array] = []
        self._state = aligned_zeros(8 * stepping_words.STATE_WORDS).view(np.int64)
        state, type = self._state, np.dtype(f"u{bits // 8}")
        state[stepping_words.LONGEST] = longest
        for word, values in (
            (stepping_words.HELD, tokens),
            (stepping_words.READY, tokens),
            (stepping_words.CAPACITY, room),
        ):
            self._place(word, values.astype(type))
        self._stalls = self._place(stepping_words.STALLS, np.zeros(64 * words, np.int64))
        self._moves = self._place(stepping_words.MOVES, np.zeros(64 * words, np.int64))
        self._place(stepping_words.WINDOW, np.zeros(stepping_words.WINDOW_CYCLES * words, np.int64))
        self._place_delays(delay)
        self._place_nodes()
        self._run = _compiled(self._shape).run

    def _leaves(self, steady: int, left: Counts) -> bool:
        """Whether a steady node leaves tokens: then it may not fire whenever it can."""
        asked = int(self._tables.tables[steady][0, 0])
        return any(asked >> lane & 1 for lane in np.flatnonzero(left).tolist())

    def _place(self, word: int, values: Array) -> Array:
        """Put an array where the code finds it, on a cache line."""
        block = aligned_zeros(values.nbytes).view(values.dtype)
        block[:] = values.reshape(-1)
        self._kept.append(block)
        self._state[word] = address_of(block)
        return block

    def _place_delays(self, delay: Counts) -> None:
        if not self._shape.delayed:
            return
        history = 1 << int(delay.max()).bit_length()
        self._place(stepping_words.HISTORY, np.zeros(history, np.int64))
        self._state[stepping_words.HISTORY_MASK] = history - 1
        found = np.unique(delay)
        bits = np.uint64(1) << np.arange(len(delay), dtype=np.uint64)
        records = [(d - 1, np.bitwise_or.reduce(bits[delay == d]).view(np.int64)) for d in found]
        self._place(stepping_words.DELAYS, np.array(records, np.int64))
        self._state[stepping_words.DELAY_COUNT] = len(found)

    def _place_nodes(self) -> None:
        """Choosing nodes, groups of those that fire seldom, and steady ones."""
        tables, state = self._tables, self._state
        records = self._choosing_records()
        count = self._shape.choosing
        groups = records[count:].reshape(-1, 2 * stepping_words.GROUP_NODES)
        waits = np.full((len(groups), tables.words), stepping_words.AWAKE, np.int64)
        self._positions = self._place(stepping_words.CHOOSING, records[:count]).reshape(-1, 2)
        group = np.concatenate([waits, groups], axis=1)
        self._groups = self._place(stepping_words.GROUPS, group).reshape(group.shape)
        same = [tables.tables[n][0].view(np.int64) for n in self._steady]
        self._place(stepping_words.STEADY, np.array(same, np.int64))
        nodes = np.zeros((len(self._codes), stepping_words.LANES + tables.words), np.int64)
        nodes[:, stepping_words.LANES :] = tables.used.view(np.int64)
        self._nodes = self._place(stepping_words.NODES, nodes).reshape(nodes.shape)
        state[stepping_words.GROUP_COUNT] = len(groups)
        state[stepping_words.NODE_COUNT] = len(nodes)

    def _choosing_records(self) -> Array:
        """Where the codes of nodes begin, and their rows; groups are filled up with nobody."""
        tables, choosing = self._tables, self._choosing
        length = np.cumsum([0, *(len(self._codes[n]) + 1 for n in choosing)])
        listed = np.empty(int(length[-1]), np.uint8)
        for instance, (begin, end) in zip(choosing, pairwise(length.tolist()), strict=True):
            listed[begin : end - 1] = self._codes[instance]
            listed[end - 1] = len(tables.tables[instance]) - 1
        missing = -(len(choosing) - self._shape.choosing) % stepping_words.GROUP_NODES
        self._kept.append(listed)
        records = np.empty((len(choosing) + missing, 2), np.int64)
        records[: len(choosing), stepping_words.CODE] = address_of(listed) + length[:-1]
        records[: len(choosing), stepping_words.ROWS] = tables.address + tables.begin[choosing]
        if missing:  # as the last node at its end
            records[len(choosing) :] = records[len(choosing) - 1]
            records[len(choosing) :, stepping_words.CODE] += len(self._codes[choosing[-1]])
        self._first_code = records[: len(choosing), stepping_words.CODE].copy()
        return records

    @property
    def is_slow(self) -> bool:
        """Whether there are far more cycles than firings of any node."""
        most = max((len(codes) for codes in self._codes), default=0)
        return self.cycle > _PATIENCE * most + _STEPS_PER_CALL

    def advance(self, cycles: int = _STEPS_PER_CALL) -> bool:
        """Simulate so many cycles; whether anything can happen after them."""
        self._run(address_of(self._state), cycles)
        return bool(self._state[stepping_words.QUIET] < self._state[stepping_words.LONGEST])

    @property
    def fired(self) -> int:
        """Firings made, about."""
        return int(self.firings().sum())

    @property
    def cycle(self) -> int:
        """Cycles simulated."""
        return int(self._state[stepping_words.CYCLE])

    def firings(self) -> Counts:
        """Firings made, by node."""
        found = np.zeros(len(self._codes), np.int64)
        code = self._tables.words + stepping_words.CODE
        positions = [self._positions[:, stepping_words.CODE], self._groups[:, code::2].reshape(-1)]
        codes = np.concatenate(positions)[: len(self._choosing)]
        found[self._choosing] = codes - self._first_code
        moves = self._receive_lanes(self._moves)
        for instance in self._steady:
            found[instance] = moves[self._first_need(instance)]
        return found

    def _first_need(self, steady: int) -> int:
        asked = int(self._tables.tables[steady][0, 0])
        return (asked & -asked).bit_length() - 1

    def _receive_lanes(self, counts: Array) -> Array:
        return counts[: self._tables.lanes]

    def _send_lanes(self, counts: Array) -> Array:
        return counts[self._tables.lanes : 2 * self._tables.lanes]

    def tally(self, *, interrupted: bool) -> Tally | None:
        """The counters; ``None`` if the run did not come to its end, and was not interrupted."""
        program, tables = self._program, self._tables
        firings = self.firings()
        done = firings == program.control.firings
        if not done.all() and not interrupted:
            return None
        first, last = self._nodes[:, stepping_words.FIRST], self._nodes[:, stepping_words.LAST]
        starved = self._by_element(self._receive_lanes(self._stalls))
        blocked = self._by_element(self._send_lanes(self._stalls))
        for instance in self._steady:
            if done[instance] and firings[instance]:
                element = tables.element[self._first_need(instance)]
                starved[element] -= self.cycle - int(last[instance])
        stored = int(last[list(tables.storing)].max(initial=0))
        cycles = self.cycle
        if not interrupted:
            cycles = end_of_run(program, int(last.max(initial=0)), stored)
        nothing = np.zeros(program.pe_count, np.int64)
        sent, received = self._send_lanes(self._moves), self._receive_lanes(self._moves)
        left = np.zeros(len(tables.twin), np.int64)
        used = tables.element >= 0
        left[tables.element[used]] = (sent - received)[used]
        return Tally(
            ending=Ending.INTERRUPTED if interrupted else Ending.FINISHED,
            cycles=cycles,
            firings=firings,
            first=first.copy(),
            last=last.copy(),
            waiting=np.maximum(firings - 1, 0) * (program.intervals - 1),
            starved=starved,
            blocked=blocked,
            memory_starved=nothing,
            memory_blocked=nothing,
            left=left[tables.twin],
            stuck=(),
        )

    def _by_element(self, by_lane: Array) -> Counts:
        """Sums by element; of twins the first one is to blame."""
        found = np.zeros(len(self._tables.twin), np.int64)
        used = self._tables.element >= 0
        np.add.at(found, self._tables.element[used], by_lane[used])
        return found
