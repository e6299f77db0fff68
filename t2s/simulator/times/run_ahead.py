"""The run-ahead engine: times of nodes that share only channels; its code and records.

Without shared memory bandwidth the time of a firing depends only on the channels of its node, so
nodes need not be visited in the order of time: each runs ahead as far as tokens and space allow
(``run_ahead_emit``).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.llvm.compile import compile_module
from t2s.simulator.limits import Limits
from t2s.simulator.program.flatten import RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.program.trace import Trace
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
from t2s.simulator.times import run_ahead_emit
from t2s.simulator.times.run_ahead_emit import RowLayout, Rows, Shape, emit_shapes, layout_of, twins
from t2s.simulator.values.layout import aligned_zeros


def stream_tally(
    program: SimProgram, times: StreamTimes, trace: Trace, limits: Limits, *, interrupted: bool
) -> Tally:
    """The counters, with the stalls of unfinished nodes up to the last cycle."""
    firings = times.firings()
    fired = firings > 0
    last = np.where(fired, times.column(run_ahead_emit.NEXT) - program.intervals, 0)
    tails = {
        int(instance): _requirements(program, times, trace, int(instance))
        for instance in np.flatnonzero(firings < program.control.firings)
    }
    stuck = tuple(
        item
        for instance, requirements in tails.items()
        if (item := stuck_at(instance, requirements)) is not None
    )
    last_store = int(times.column(run_ahead_emit.LAST_STORE).max(initial=0))
    end = end_of_run(program, int(last.max(initial=0)), last_store)
    ending, cycles = _ending(program, end, limits, interrupted, len(tails), stuck)
    waiting = np.maximum(firings - 1, 0) * (program.intervals - 1)
    starved, blocked = times.stalls()
    memory = np.zeros(program.pe_count, np.int64)
    begun = {instance: requirements for instance, requirements in tails.items() if fired[instance]}
    wait_until(cycles, program, begun, last, waiting, starved, blocked, memory)
    return Tally(
        ending=ending,
        cycles=cycles,
        firings=firings,
        first=times.column(run_ahead_emit.FIRST).copy(),
        last=last,
        waiting=waiting,
        starved=starved,
        blocked=blocked,
        memory_starved=np.where(program.loads, memory, 0),
        memory_blocked=np.where(program.loads, 0, memory),
        left=times.left(),
        stuck=stuck,
    )


def _ending(
    program: SimProgram,
    end: int,
    limits: Limits,
    interrupted: bool,
    unfinished: int,
    stuck: Sequence[Stuck],
) -> tuple[Ending, int]:
    if interrupted:
        return Ending.INTERRUPTED, end
    if unfinished == len(stuck):
        return ending_of(program, stuck), end
    return Ending.LIMIT, limits.max_cycles or 0


def _requirements(
    program: SimProgram, times: StreamTimes, trace: Trace, instance: int
) -> list[Requirement]:
    """The requirements of the next firing of an unfinished node, in order."""
    control = program.control
    if not times.has_code(instance):
        return [
            (element, False, times.allows(element, sending=False))
            for element in trace.unfinished[instance]
        ]
    row = control.rows[control.row_start[instance] + times.next_code(instance)]
    begin, middle, end = (int(row[column]) for column in (USES_BEGIN, RECEIVES_END, USES_END))
    requirements: list[Requirement] = []
    for use in range(begin, end):
        element, sending = int(control.uses[use]), use >= middle
        requirements.append((element, sending, times.allows(element, sending=sending)))
    return requirements


_FIRST_SLOTS = 256
_LEAST_SLOTS = 2
_GROWTH = 4
_FIRINGS_PER_VISIT = 1 << 12
_FREE = -1
"""A slot that is free from the first cycle on."""


class StreamTimes:
    """The state of a run.

    ``codes`` are the codes of every node, of the sizes that ``found`` was compiled for, and
    ``sent`` the tokens through every channel element.  ``limit`` is the last cycle in which nodes
    may fire, and ``order`` the order in which they are visited, which only affects the speed.
    """

    def __init__(
        self,
        program: SimProgram,
        prepared: StreamCode,
        codes: Sequence[Array],
        sent: Counts,
        *,
        limit: int | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.program = program
        self.layouts = prepared.layouts
        self._found = prepared
        self._codes = codes
        self._capacity = program.per_element([c.capacity for c in program.channels])
        self._elastic = self._capacity >= np.maximum(1, sent)
        self._records: NDArray[np.int64] = aligned_zeros(8 * int(prepared.start[-1])).view(np.int64)
        self._fill(FOREVER - 1 if limit is None else limit)
        wanted = np.where(self._elastic, np.clip(sent, _LEAST_SLOTS, _FIRST_SLOTS), self._capacity)
        self._allocate(self._slots_for(np.maximum(wanted, _LEAST_SLOTS)))
        visited = prepared.order if order is None else np.asarray(order, np.int64)
        self._visited = self._records.ctypes.data + 8 * prepared.start[visited]
        self.fired = 0

    def _fill(self, limit: int) -> None:
        """Write the records, apart from the rings."""
        prepared, records, start = self._found, self._records, self._found.start[:-1]
        addresses = np.array([codes.ctypes.data for codes in self._codes], np.int64)
        sizes = np.array([codes.nbytes for codes in self._codes], np.int64)
        blocked = np.where(sizes > 0, run_ahead_emit.CODE, run_ahead_emit.SEEN)
        for word, values in (
            (run_ahead_emit.NEXT, 1),
            (run_ahead_emit.CODE, addresses),
            (run_ahead_emit.CODE_END, addresses + sizes),
            (run_ahead_emit.MASKS, prepared.masks),
            (run_ahead_emit.INTERVAL, self.program.intervals),
            (run_ahead_emit.BLOCK, records.ctypes.data + 8 * (start + blocked)),
            (run_ahead_emit.FUNCTION, prepared.functions),
            (run_ahead_emit.LIMIT, limit),
        ):
            records[start + word] = values
        latency = self.program.per_element([c.latency for c in self.program.channels])
        sends, receives = prepared.sender_port >= 0, prepared.receiver_port >= 0
        records[prepared.sender_port[sends] + run_ahead_emit.DELAY] = latency[sends]
        delays = np.where(self._elastic, run_ahead_emit.ELASTIC, 0)[receives]
        records[prepared.receiver_port[receives] + run_ahead_emit.DELAY] = delays

    def _slots_for(self, wanted: Counts) -> Counts:
        """Slots of every ring, a power of two, equal for rings of a group."""
        most = np.zeros(len(wanted), np.int64)
        np.maximum.at(most, self._found.together, wanted)
        return np.asarray(1 << np.ceil(np.log2(np.maximum(most, 1))).astype(np.int64), np.int64)[
            self._found.together
        ]

    def _allocate(self, slots: Counts) -> None:
        """Allocate empty rings, each with an extra slot that is never read."""
        prepared, records = self._found, self._records
        self._slots = slots
        end = np.cumsum(slots + 1)
        self._begin = end - slots - 1
        self._ring: NDArray[np.int64] = aligned_zeros(8 * int(end.max(initial=0))).view(np.int64)
        self._ring[:] = _FREE
        base = self._ring.ctypes.data + 8 * self._begin
        room = 8 * np.where(self._elastic, slots, self._capacity)
        for ports, counts in (
            (prepared.sender_port, prepared.sent),
            (prepared.receiver_port, prepared.received),
        ):
            used = ports >= 0
            records[ports[used] + run_ahead_emit.BASE] = base[used]
            records[ports[used] + run_ahead_emit.CAPACITY] = room[used]
            wraps = counts[used] - run_ahead_emit.COUNT + run_ahead_emit.WRAP
            records[wraps] = 8 * (slots[used] - 1)

    def _moved(self) -> tuple[Counts, Counts]:
        """Tokens sent and received so far, by element."""
        prepared, records = self._found, self._records
        sent = np.where(prepared.sender_port >= 0, records[prepared.sent] // 8, 0)
        received = np.where(prepared.receiver_port >= 0, records[prepared.received] // 8, 0)
        return sent, received

    def _grow(self) -> bool:
        """Lengthen full elastic rings and their groups; return whether there were any."""
        sent, received = self._moved()
        full = self._elastic & (sent - received >= self._slots)
        if not full.any():
            return False
        ring, begin, slots = self._ring, self._begin, self._slots
        self._allocate(self._slots_for(np.where(full, _GROWTH * slots, slots)))
        for element, tokens in enumerate(sent):
            numbers = np.arange(max(0, tokens - slots[element]), tokens)
            self._ring[self._begin[element] + numbers % self._slots[element]] = ring[
                begin[element] + numbers % slots[element]
            ]
        for instance, first in enumerate(self._found.start[:-1]):
            if self.has_code(instance):
                address = self._records.ctypes.data + 8 * (int(first) + run_ahead_emit.CODE)
                self._records[first + run_ahead_emit.BLOCK] = address
                self._records[first + run_ahead_emit.SEEN] = 0
        return True

    def advance(self, budget: int) -> int:
        """Make up to about ``budget`` firings; return their number, 0 if no node can fire."""
        fired = 0
        while not fired:
            fired = int(
                self._found.code.advance(
                    self._visited.ctypes.data, len(self._visited), budget, _FIRINGS_PER_VISIT
                )
            )
            if not fired and not self._grow():
                break
        self.fired += fired
        return fired

    def column(self, word: int) -> Counts:
        """One word from the head of every record."""
        return np.asarray(self._records[self._found.start[:-1] + word], np.int64)

    @property
    def latest(self) -> int:
        """The latest cycle of any node."""
        return int(self.column(run_ahead_emit.NEXT).max(initial=1)) - 1

    def firings(self) -> Counts:
        """Firings made, by node."""
        address = np.array([codes.ctypes.data for codes in self._codes], np.int64)
        size = np.array([codes.itemsize for codes in self._codes], np.int64)
        return np.asarray((self.column(run_ahead_emit.CODE) - address) // size, np.int64)

    def stalls(self) -> tuple[Counts, Counts]:
        """Cycles that receivers starved and senders were blocked, by channel element."""
        starved = np.zeros(len(self._slots), np.int64)
        blocked = np.zeros(len(self._slots), np.int64)
        firings, intervals = self.firings().tolist(), self.program.intervals.tolist()
        firsts = self.column(run_ahead_emit.FIRST).tolist()
        following = self.column(run_ahead_emit.NEXT).tolist()
        for instance, layout in enumerate(self.layouts):
            shape, fired, interval = layout.shape, firings[instance], intervals[instance]
            if fired < 2 or not shape.steps:
                continue
            begin = int(self._found.start[instance]) + shape.sums
            sums = self._records[begin : begin + len(shape.steps)].tolist()
            seen = sums[-1] - (following[instance] - interval) + firsts[instance]
            seen += (fired - 1) * interval
            for (port, _), total in zip(shape.steps, sums, strict=True):
                side = starved if shape.receives[port] else blocked
                side[layout.ports[port]] += total - seen
                seen = total
        return starved, blocked

    def left(self) -> Counts:
        """Tokens in every element."""
        sent, received = self._moved()
        return np.asarray((sent - received)[self._found.twin], np.int64)

    def next_code(self, instance: int) -> int:
        """The code of the next firing of a node that has one."""
        codes = self._codes[instance]
        address = int(self._records[self._found.start[instance] + run_ahead_emit.CODE])
        return int(codes[(address - codes.ctypes.data) // codes.itemsize])

    def has_code(self, instance: int) -> bool:
        """Whether the next firing of a node is known."""
        first = self._found.start[instance]
        code, end = (
            self._records[first + n] for n in (run_ahead_emit.CODE, run_ahead_emit.CODE_END)
        )
        return bool(code < end)

    def allows(self, element: int, *, sending: bool) -> int:
        """The cycle from which a channel element allows a firing; ``FOREVER`` if unknown."""
        stands = int(self._found.twin[element])
        sent, received = (int(moved[stands]) for moved in self._moved())
        slots = int(self._slots[stands])
        if sending:
            room = slots if self._elastic[stands] else int(self._capacity[stands])
            number = sent - room
        else:
            number = received
        entry = int(self._ring[int(self._begin[stands]) + number % slots])
        time = -entry if sending else entry
        return time if time > 0 else FOREVER


# The preparation of a program for the run-ahead engine: code, records and node positions.
#
# It depends only on the rows of the control (and on which channels are alike), so programs that
# differ in capacities, and runs of one program, share it.

Numbers = NDArray[np.int64]

_MOST_CODES = 1 << 16
_MOST_INSTANCES = 1 << 12
_COMPILED = 32
_RECORD_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class _Code:
    """Compiled shapes; ``engine`` keeps them alive."""

    engine: Any
    advance: Any
    addresses: Mapping[Shape, int]


@lru_cache(maxsize=_COMPILED)
def _compiled(shapes: tuple[Shape, ...]) -> _Code:
    engine = compile_module(emit_shapes(shapes))
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    )
    return _Code(
        engine=engine,
        advance=prototype(engine.get_function_address(run_ahead_emit.ENTRY)),
        addresses={
            shape: engine.get_function_address(f"shape{number}")
            for number, shape in enumerate(shapes)
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCode:
    """Code and records of all nodes of a program.

    Attributes
    ----------
    layouts: the layout of every node.
    code: the compiled code of their shapes.
    twin: the representative of each channel element, usually itself.
    start: the first word of every record, followed by the total number of words.
    functions, masks: addresses, by node.
    sender_port, receiver_port: by element, the first word of the port at that end; -1 if none.
    sent, received: by element, the word that counts tokens at that end, 0 if there is none.
    together: by element, the lowest element whose ring must have the same length.
    order: the nodes, senders before receivers except in cycles.
    """

    layouts: tuple[RowLayout, ...]
    code: _Code
    twin: Numbers
    start: Numbers
    functions: Numbers
    masks: Numbers
    sender_port: Numbers
    receiver_port: Numbers
    sent: Numbers
    received: Numbers
    together: Numbers
    order: Numbers


def stream_code(program: SimProgram, code_bytes: Mapping[int, int]) -> StreamCode | None:
    """Prepare a program; ``None`` if the run-ahead engine cannot run it.

    ``code_bytes`` gives the size of the codes of each machine.
    """
    if not shares_channels_alone(program):
        return None
    sizes = tuple(code_bytes.get(instance, 4) for instance in range(program.pe_count))
    return _stream_code(Rows(program.control), sizes, twin_elements(program))


def shares_channels_alone(program: SimProgram) -> bool:
    """Whether nodes share only channels, which then determine times from the traces."""
    return (
        not program.shares_memory and program.stalls is None and program.pe_count <= _MOST_INSTANCES
    )


def twin_elements(program: SimProgram) -> tuple[int, ...]:
    """The representative of each channel element, usually itself."""
    twin = list(range(len(program.channel_of_element)))
    for group in _twins(Rows(program.control), program.pe_count):
        first: dict[tuple[int, int], int] = {}
        for element in group:
            channel = program.channels[int(program.channel_of_element[element])]
            twin[element] = first.setdefault((channel.capacity, channel.latency), element)
    return tuple(twin)


@lru_cache(maxsize=_COMPILED)
def _twins(rows: Rows, instances: int) -> tuple[tuple[int, ...], ...]:
    return twins(rows, instances)


@lru_cache(maxsize=_COMPILED)
def _stream_code(
    rows: Rows, code_bytes: tuple[int, ...], twin: tuple[int, ...]
) -> StreamCode | None:
    if any(rows.count(instance) > _MOST_CODES for instance in range(len(code_bytes))):
        return None
    dropped = frozenset(element for element, stands in enumerate(twin) if element != stands)
    layouts = [layout_of(rows, instance, size, dropped) for instance, size in enumerate(code_bytes)]
    code = _compiled(tuple(sorted({layout.shape for layout in layouts}, key=repr)))
    words = [-(-layout.shape.words // _RECORD_ALIGNMENT) * _RECORD_ALIGNMENT for layout in layouts]
    start = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
    ends = _ends(layouts, start, len(twin))
    return StreamCode(
        layouts=tuple(layouts),
        code=code,
        twin=np.array(twin, np.int64),
        start=start,
        functions=np.array([code.addresses[layout.shape] for layout in layouts], np.int64),
        masks=np.array([layout.masks.ctypes.data for layout in layouts], np.int64),
        together=_together(layouts, len(twin)),
        order=np.array(_from_sources(layouts, len(twin)), np.int64),
        **ends,
    )


def _ends(layouts: Sequence[RowLayout], start: Numbers, elements: int) -> dict[str, Numbers]:
    """The port words at the two ends of every element."""
    names = ("sender_port", "receiver_port", "sent", "received")
    ends = {name: np.full(elements, -1 if "port" in name else 0, np.int64) for name in names}
    for instance, layout in enumerate(layouts):
        shape, first = layout.shape, int(start[instance])
        for port, element in enumerate(layout.ports):
            receives = shape.receives[port]
            count = first + shape.group(shape.groups[port]) + run_ahead_emit.COUNT
            ends["receiver_port" if receives else "sender_port"][element] = first + shape.port(port)
            ends["received" if receives else "sent"][element] = count
    return ends


def _together(layouts: Sequence[RowLayout], elements: int) -> Numbers:
    """Find the groups of elements whose rings must have one length."""
    roots = list(range(elements))

    def root(element: int) -> int:
        while roots[element] != element:
            roots[element] = roots[roots[element]]
            element = roots[element]
        return element

    for layout in layouts:
        first: dict[int, int] = {}
        for element, group in zip(layout.ports, layout.shape.groups, strict=True):
            one, other = root(first.setdefault(group, element)), root(element)
            roots[max(one, other)] = min(one, other)
    return np.array([root(element) for element in range(elements)], np.int64)


def _from_sources(layouts: Sequence[RowLayout], elements: int) -> list[int]:
    sender, receiver = [-1] * elements, [-1] * elements
    for instance, layout in enumerate(layouts):
        for element, receives in zip(layout.ports, layout.shape.receives, strict=True):
            (receiver if receives else sender)[element] = instance
    receivers: list[list[int]] = [[] for _ in layouts]
    waits = [0] * len(layouts)
    for source, sink in zip(sender, receiver, strict=True):
        if source >= 0 and sink >= 0 and source != sink:
            receivers[source].append(sink)
            waits[sink] += 1
    order: list[int] = []
    seen = [False] * len(layouts)
    ready = [instance for instance, count in enumerate(waits) if not count]
    left = iter(range(len(layouts)))
    while len(order) < len(layouts):
        if not ready:
            ready.append(next(instance for instance in left if not seen[instance]))
        instance = ready.pop()
        if seen[instance]:
            continue
        seen[instance] = True
        order.append(instance)
        for sink in receivers[instance]:
            waits[sink] -= 1
            if not waits[sink] and not seen[sink]:
                ready.append(sink)
    return order
