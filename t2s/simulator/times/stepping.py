"""The stepping engine: times of nodes that share only channels, cycle by cycle; its tables.

If every cycle is busy it is faster than running ahead (``run_ahead``).  See ``stepping_emit`` for
how it works.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.llvm.compile import MachineCode, compile_when_new
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
from t2s.simulator.report.counters import Counts, Ending, Tally, end_of_run
from t2s.simulator.times import stepping_emit
from t2s.simulator.times.run_ahead import shares_channels_alone, twin_elements
from t2s.simulator.times.run_ahead_emit import RowPorts, Rows, common_order, used_positions
from t2s.simulator.times.stepping_emit import StepShape
from t2s.simulator.values.layout import address_of, aligned_zeros

_CYCLE_COST, _NODE_COST, _FIRING_COST = 18, 2, 12
"""Nanoseconds for a cycle, for each busy node in it, and for a firing of the run-ahead engine."""

_LONGEST_DELAY = 1 << 12
_PATIENCE = 3
_STEPS_PER_CALL = 1 << 16
_OFTEN = 3
"""Nodes that fire less often than the busiest by this factor are in groups."""


@lru_cache(maxsize=16)
def _compiled(shape: StepShape) -> MachineCode:
    writers = [Path(stepping_emit.__file__)]
    return compile_when_new(repr(shape), lambda: stepping_emit.emit_steps(shape), writers)


def steps_of(program: SimProgram) -> StepTables | None:
    """The tables to step through a program; ``None`` if that is impossible, or would be slow.

    All firings of the program must be known, and its channels must be few.  All cycles cost about
    the same, so the engine is slow if most are idle.
    """
    if not shares_channels_alone(program):
        return None
    twin = twin_elements(program)
    if len(set(twin)) >= MOST_LANES:
        return None
    firings = program.control.firings
    if _step_cost(firings) > _ahead_cost(firings):
        return None
    longest = max((channel.latency for channel in program.channels), default=1)
    if max(longest, int(program.intervals.max(initial=1))) > _LONGEST_DELAY:
        return None
    slow = tuple(np.flatnonzero(program.intervals > 1).tolist())
    tables = step_tables(Rows(program.control), twin, slow)
    if tables is None or (tables.mixed and program.device.store_latency):
        return None
    return tables


def cost_in_time_order(firings: Counts) -> int:
    """About how many nanoseconds the faster of stepping and running ahead takes for firings."""
    return min(_step_cost(firings), _ahead_cost(firings))


def _step_cost(firings: Counts) -> int:
    most = int(firings.max(initial=0))
    return (_CYCLE_COST + _NODE_COST * int((_OFTEN * firings > most).sum())) * most


def _ahead_cost(firings: Counts) -> int:
    return _FIRING_COST * int(firings.sum())


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
        self._state = aligned_zeros(8 * stepping_emit.STATE_WORDS).view(np.int64)
        state, type = self._state, np.dtype(f"u{bits // 8}")
        state[stepping_emit.LONGEST] = longest
        for word, values in (
            (stepping_emit.HELD, tokens),
            (stepping_emit.READY, tokens),
            (stepping_emit.CAPACITY, room),
        ):
            self._place(word, values.astype(type))
        self._stalls = self._place(stepping_emit.STALLS, np.zeros(64 * words, np.int64))
        self._moves = self._place(stepping_emit.MOVES, np.zeros(64 * words, np.int64))
        self._place(stepping_emit.WINDOW, np.zeros(stepping_emit.WINDOW_CYCLES * words, np.int64))
        self._place_delays(delay)
        self._place_nodes()
        self._run = _compiled(self._shape).run

    def _leaves(self, steady: int, left: Counts) -> bool:
        """Whether a steady node leaves tokens behind, so that it must not fire whenever it can."""
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
        self._place(stepping_emit.HISTORY, np.zeros(history, np.int64))
        self._state[stepping_emit.HISTORY_MASK] = history - 1
        delays = np.unique(delay)
        bits = np.uint64(1) << np.arange(len(delay), dtype=np.uint64)
        records = [(d - 1, np.bitwise_or.reduce(bits[delay == d]).view(np.int64)) for d in delays]
        self._place(stepping_emit.DELAYS, np.array(records, np.int64))
        self._state[stepping_emit.DELAY_COUNT] = len(delays)

    def _place_nodes(self) -> None:
        """Place choosing nodes, groups of those that rarely fire, and steady ones."""
        tables, state = self._tables, self._state
        records = self._choosing_records()
        count = self._shape.choosing
        groups = records[count:].reshape(-1, 2 * stepping_emit.GROUP_NODES)
        waits = np.full((len(groups), tables.words), stepping_emit.AWAKE, np.int64)
        self._positions = self._place(stepping_emit.CHOOSING, records[:count]).reshape(-1, 2)
        group = np.concatenate([waits, groups], axis=1)
        self._groups = self._place(stepping_emit.GROUPS, group).reshape(group.shape)
        same = [tables.tables[n][0].view(np.int64) for n in self._steady]
        self._place(stepping_emit.STEADY, np.array(same, np.int64))
        nodes = np.zeros((len(self._codes), stepping_emit.LANES + tables.words), np.int64)
        nodes[:, stepping_emit.LANES :] = tables.used.view(np.int64)
        self._nodes = self._place(stepping_emit.NODES, nodes).reshape(nodes.shape)
        state[stepping_emit.GROUP_COUNT] = len(groups)
        state[stepping_emit.NODE_COUNT] = len(nodes)

    def _choosing_records(self) -> Array:
        """The starts of the codes and rows of nodes; groups are padded with empty nodes."""
        tables, choosing = self._tables, self._choosing
        length = np.cumsum([0, *(len(self._codes[n]) + 1 for n in choosing)])
        listed = np.empty(int(length[-1]), np.uint8)
        for instance, (begin, end) in zip(choosing, pairwise(length.tolist()), strict=True):
            listed[begin : end - 1] = self._codes[instance]
            listed[end - 1] = len(tables.tables[instance]) - 1
        missing = -(len(choosing) - self._shape.choosing) % stepping_emit.GROUP_NODES
        self._kept.append(listed)
        records = np.empty((len(choosing) + missing, 2), np.int64)
        records[: len(choosing), stepping_emit.CODE] = address_of(listed) + length[:-1]
        records[: len(choosing), stepping_emit.ROWS] = tables.address + tables.begin[choosing]
        if missing:  # padding behaves like a node at its end
            records[len(choosing) :] = records[len(choosing) - 1]
            records[len(choosing) :, stepping_emit.CODE] += len(self._codes[choosing[-1]])
        self._first_code = records[: len(choosing), stepping_emit.CODE].copy()
        return records

    @property
    def is_slow(self) -> bool:
        """Whether there are far more cycles than firings of any node."""
        most = max((len(codes) for codes in self._codes), default=0)
        return self.cycle > _PATIENCE * most + _STEPS_PER_CALL

    def advance(self, cycles: int = _STEPS_PER_CALL) -> bool:
        """Simulate a number of cycles; return whether anything can happen after them."""
        self._run(address_of(self._state), cycles)
        return bool(self._state[stepping_emit.QUIET] < self._state[stepping_emit.LONGEST])

    @property
    def fired(self) -> int:
        """The approximate number of firings."""
        return int(self.firings().sum())

    @property
    def cycle(self) -> int:
        """Cycles simulated."""
        return int(self._state[stepping_emit.CYCLE])

    def firings(self) -> Counts:
        """Firings made, by node."""
        firings = np.zeros(len(self._codes), np.int64)
        code = self._tables.words + stepping_emit.CODE
        positions = [self._positions[:, stepping_emit.CODE], self._groups[:, code::2].reshape(-1)]
        codes = np.concatenate(positions)[: len(self._choosing)]
        firings[self._choosing] = codes - self._first_code
        moves = self._receive_lanes(self._moves)
        for instance in self._steady:
            firings[instance] = moves[self._first_need(instance)]
        return firings

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
        first, last = self._nodes[:, stepping_emit.FIRST], self._nodes[:, stepping_emit.LAST]
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
        """Sums by element; stalls of twins are attributed to the first one."""
        sums = np.zeros(len(self._tables.twin), np.int64)
        used = self._tables.element >= 0
        np.add.at(sums, self._tables.element[used], by_lane[used])
        return sums


# From the control of a program to the tables of the code that steps through cycles.
#
# See ``stepping_emit``.  The tables depend only on the rows, so runs of one program share them.

Numbers = NDArray[np.int64]

MOST_LANES = 64
MOST_ROWS = 255
"""A code is a byte, and one of them means the end."""

_WORD_LANES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTables:
    """Lanes and rows of all nodes of a program.

    Attributes
    ----------
    lanes: 32 or 64.
    element: the channel element of every lane, or -1.
    twin: the element that stands for each (see ``run_ahead_code``).
    slow: the lane that holds a node until its interval is over, by instance.
    steady: nodes whose firings are all the same, and take all tokens that they wait for.
    storing: nodes that store in every firing.
    mixed: whether some nodes store in only some firings.
    tables: for every node, a row of words for every code, and one for the end.
    begin: the offset of each table, in bytes.
    used: the lanes of every node.
    """

    lanes: int
    element: Numbers
    twin: Numbers
    slow: Mapping[int, int]
    steady: tuple[int, ...]
    storing: tuple[int, ...]
    mixed: bool
    tables: tuple[NDArray[np.uint64], ...]
    begin: Numbers
    used: NDArray[np.uint64]

    @property
    def address(self) -> int:
        """The address of the first table, to which ``begin`` is relative."""
        return address_of(self.tables[0]) if self.tables else 0

    @property
    def words(self) -> int:
        """Words for what is received and what is sent."""
        return self.lanes // _WORD_LANES


@dataclass(frozen=True, slots=True)
class _Node:
    """The rows of a node, and the order in which they receive and send: see ``common_order``."""

    rows: list[RowPorts]
    receives: list[int]
    sends: list[int]

    @property
    def is_silent(self) -> bool:
        """Whether there is a firing that moves nothing."""
        return any(not row.takes and not row.puts for row in self.rows)

    @property
    def is_steady(self) -> bool:
        """Whether all firings are the same, and take all tokens that they wait for."""
        kinds = {(*row.needs, -1, *row.takes, -1, *row.puts) for row in self.rows}
        return len(kinds) == 1 and self.rows[0].needs == self.rows[0].takes != []


_Lane = tuple[int, int, bool]
"""A channel element has a lane for each of its positions in an order, and possibly for each end."""


@lru_cache(maxsize=32)
def step_tables(rows: Rows, twin: tuple[int, ...], slow: tuple[int, ...]) -> StepTables | None:
    """The tables; ``None`` if there would be too many lanes, or too many rows.

    ``slow`` are the instances with an interval of more than a cycle.
    """
    nodes = [_node(rows, instance, twin) for instance in range(len(rows.row_start))]
    if any(len(node.rows) > MOST_ROWS for node in nodes):
        return None
    order = _lane_order(nodes, apart=False) or _lane_order(nodes, apart=True) or ()
    silent = [n for n, node in enumerate(nodes) if n not in slow and node.is_silent]
    count = len(slow) + len(order) + len(silent)
    if count >= MOST_LANES:
        return None
    lanes = _WORD_LANES if count < _WORD_LANES else MOST_LANES
    own = {instance: number for number, instance in enumerate(slow)}
    marks = {instance: len(slow) + len(order) + n for n, instance in enumerate(silent)}
    numbers = _Lanes({lane: len(slow) + n for n, lane in enumerate(order)})
    element = np.full(lanes, -1, np.int64)
    for lane, number in numbers.number.items():
        element[number] = lane[0]
    tables = tuple(
        _table(node, lanes, numbers, own.get(n), marks.get(n)) for n, node in enumerate(nodes)
    )
    begin = np.cumsum([0, *(table.size for table in tables)])
    block = np.concatenate([np.zeros(0, np.uint64), *(table.reshape(-1) for table in tables)])
    stores = [[row.stores for row in node.rows] for node in nodes]
    return StepTables(
        lanes=lanes,
        element=element,
        twin=np.array(twin, np.int64),
        slow=own,
        steady=tuple(n for n, node in enumerate(nodes) if n not in own and node.is_steady),
        storing=tuple(n for n, stored in enumerate(stores) if stored and all(stored)),
        mixed=any(any(stored) and not all(stored) for stored in stores),
        tables=tuple(
            block[start:end].reshape(table.shape)
            for (start, end), table in zip(pairwise(begin.tolist()), tables, strict=True)
        ),
        begin=8 * begin,
        used=np.array([_used(table, lanes) for table in tables], np.uint64),
    )


def _node(rows: Rows, instance: int, twin: Sequence[int]) -> _Node:
    """A node, without elements that have another representative."""

    def kept(elements: list[int]) -> list[int]:
        return [element for element in elements if twin[element] == element]

    node_rows = [
        RowPorts(
            needs=kept(row.needs), takes=kept(row.takes), puts=kept(row.puts), stores=row.stores
        )
        for row in rows.ports(instance)
    ]
    receives = common_order([row.needs for row in node_rows])
    return _Node(node_rows, receives, common_order([row.puts for row in node_rows]))


def _lane_order(nodes: Sequence[_Node], *, apart: bool) -> list[_Lane] | None:
    """All lanes, sorted by the order in which firings wait for them; ``None`` for a cycle.

    With separate lanes for the two ends of an element (``apart``) there are no cycles.
    """
    later: dict[_Lane, set[_Lane]] = {}
    for node in nodes:
        for order, sends in ((node.receives, False), (node.sends, True)):
            lanes = _numbered(order, sends and apart)
            for lane in lanes:
                later.setdefault(lane, set())
            for before, after in pairwise(lanes):
                later[before].add(after)
    waits = dict.fromkeys(later, 0)
    for following in later.values():
        for lane in following:
            waits[lane] += 1
    ready = [lane for lane, count in waits.items() if not count]
    heapq.heapify(ready)
    order_found: list[_Lane] = []
    while ready:
        lane = heapq.heappop(ready)
        order_found.append(lane)
        for after in later[lane]:
            waits[after] -= 1
            if not waits[after]:
                heapq.heappush(ready, after)
    return order_found if len(order_found) == len(later) else None


def _numbered(order: Sequence[int], sends: bool) -> list[_Lane]:
    """The lanes of an order, in which elements may come several times."""
    return [(element, order[:at].count(element), sends) for at, element in enumerate(order)]


@dataclass(frozen=True, slots=True)
class _Lanes:
    """The numbers of all lanes."""

    number: Mapping[_Lane, int]

    def asked(self, order: Sequence[int], row: Sequence[int], *, sends: bool) -> int:
        """The lanes that a firing waits for, one for each of its elements."""
        mask = 0
        lanes = _numbered(order, False)
        for at in used_positions(order, row):
            element, time, _ = lanes[at]
            apart = sends and (element, time, True) in self.number
            mask |= 1 << self.number[element, time, apart]
        return mask

    def moved(self, elements: Sequence[int]) -> int:
        """All lanes of some elements."""
        return sum(1 << number for lane, number in self.number.items() if lane[0] in elements)


def _table(
    node: _Node, lanes: int, numbers: _Lanes, slow: int | None, mark: int | None
) -> NDArray[np.uint64]:
    """The needs and moves of every code; the last lane never has a token."""
    rows: list[tuple[int, int, int, int]] = []
    for row in node.rows:
        needs = numbers.asked(node.receives, row.needs, sends=False)
        asks = numbers.asked(node.sends, row.puts, sends=True)
        takes, puts = numbers.moved(row.takes), numbers.moved(row.puts)
        if slow is not None:
            needs, takes, puts = needs | 1 << slow, takes | 1 << slow, puts | 1 << slow
        if mark is not None and not row.takes and not row.puts:
            takes, puts = 1 << mark, 1 << mark
        rows.append((needs, asks, takes, puts))
    rows.append((1 << (lanes - 1), 0, 0, 0))
    if lanes == MOST_LANES:
        return np.array(rows, np.uint64)
    packed = [(needs | asks << lanes, takes | puts << lanes) for needs, asks, takes, puts in rows]
    return np.array(packed, np.uint64)


def _used(table: NDArray[np.uint64], lanes: int) -> list[int]:
    words = lanes // _WORD_LANES
    rows = table[:-1]
    return [
        int(np.bitwise_or.reduce(rows[:, number] | rows[:, words + number], initial=np.uint64(0)))
        for number in range(words)
    ]
