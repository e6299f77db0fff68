"""The run-ahead engine: times of nodes that share nothing but channels.

Where memory bandwidth is not shared, the time of a firing depends on the channels of its node only,
so nodes need not be visited in the order of time: each runs ahead as far as tokens and space allow
(``emit_timing``).
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
from t2s.simulator.native import emit_timing
from t2s.simulator.native.emit_timing import Shape, emit_shapes
from t2s.simulator.native.layout import aligned_zeros
from t2s.simulator.native.module import compile_module
from t2s.simulator.native.stream_shapes import Layout, Rows, layout_of, twins
from t2s.simulator.program import SimProgram
from t2s.simulator.tally import Counts

FOREVER = np.iinfo(np.int64).max

_FIRST_SLOTS = 256
_GROWTH = 4
_MOST_CODES = 1 << 16
_MOST_INSTANCES = 1 << 12
_FIRINGS_PER_VISIT = 1 << 12
_COMPILED = 32


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
        advance=prototype(engine.get_function_address(emit_timing.ENTRY)),
        addresses={
            shape: engine.get_function_address(f"shape{number}")
            for number, shape in enumerate(shapes)
        },
    )


@dataclass(frozen=True, slots=True)
class StreamCode:
    """The layouts of all nodes of a program and the code of their shapes; they fit all its runs.

    ``twin`` gives the channel element that stands for each element: for most, itself.
    """

    layouts: tuple[Layout, ...]
    code: _Code
    twin: NDArray[np.int64]


def stream_code(program: SimProgram, code_bytes: Mapping[int, int]) -> StreamCode | None:
    """What the run-ahead engine needs to know of a program; ``None`` if it cannot run it.

    ``code_bytes`` gives the size of the codes of each machine.
    """
    if program.memory_rate is not None or program.pe_count > _MOST_INSTANCES:
        return None
    rows = Rows(program.control)
    dropped: list[tuple[int, int]] = []
    for group in _twins(rows, program.pe_count):
        first: dict[tuple[int, int], int] = {}
        for element in group:
            channel = program.channels[int(program.channel_of_element[element])]
            stands = first.setdefault((channel.capacity, channel.latency), element)
            if stands != element:
                dropped.append((element, stands))
    sizes = tuple(code_bytes.get(instance, 4) for instance in range(program.pe_count))
    return _stream_code(rows, sizes, tuple(dropped), len(program.channel_of_element))


@lru_cache(maxsize=_COMPILED)
def _twins(rows: Rows, instances: int) -> tuple[tuple[int, ...], ...]:
    return twins(rows, instances)


@lru_cache(maxsize=_COMPILED)
def _stream_code(
    rows: Rows, code_bytes: tuple[int, ...], dropped: tuple[tuple[int, int], ...], elements: int
) -> StreamCode | None:
    if any(rows.count(instance) > _MOST_CODES for instance in range(len(code_bytes))):
        return None
    twin = np.arange(elements)
    for element, stands in dropped:
        twin[element] = stands
    gone = dict(dropped).keys()
    layouts = [layout_of(rows, instance, size, gone) for instance, size in enumerate(code_bytes)]
    shapes = sorted({layout.shape for layout in layouts}, key=repr)
    return StreamCode(tuple(layouts), _compiled(tuple(shapes)), twin)


class StreamTimes:
    """The state of a run.

    ``codes`` are the codes of every instance, of the type that the layouts say.
    """

    def __init__(
        self,
        program: SimProgram,
        found: StreamCode,
        codes: Sequence[Array],
        sent: Counts,
        *,
        limit: int | None = None,
        order: Sequence[int] | None = None,
    ) -> None:
        self.program = program
        self.layouts = found.layouts
        self._twin = found.twin
        self._code = found.code
        self._codes = codes
        self._limit = FOREVER - 1 if limit is None else limit
        capacity = program.per_element([c.capacity for c in program.channels])
        self._elastic = capacity >= np.maximum(1, sent)
        shortest = np.minimum(np.maximum(1, sent), _FIRST_SLOTS)
        self._allocate(np.where(self._elastic, shortest, capacity))
        words = [-(-layout.shape.words // 8) * 8 for layout in found.layouts]
        self._start = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        self._records: NDArray[np.int64] = aligned_zeros(8 * int(self._start[-1])).view(np.int64)
        self._nowhere = np.zeros(1, np.int64)
        self._masks = [layout.masks for layout in found.layouts]
        for instance in range(program.pe_count):
            self._fill(instance)
        chosen = _from_sources(program) if order is None else order
        self._visited = self._records.ctypes.data + 8 * self._start[np.asarray(chosen, np.int64)]
        self.fired = 0

    def _allocate(self, slots: Counts) -> None:
        """Free rings of so many slots."""
        self._end = np.cumsum(slots)
        self._begin = self._end - slots
        self._ring: NDArray[np.int64] = aligned_zeros(8 * int(slots.sum())).view(np.int64)
        self._ring[:] = -1

    def _grow(self) -> bool:
        """Lengthen the elastic rings that are full; whether there are any.

        A ring is turned so that the next token to be received is at its start.
        """
        held = self._held()
        slots = self._end - self._begin
        full = self._elastic & (held == slots) & (self._twin == np.arange(len(held)))
        if not full.any():
            return False
        old, begin, end = self._ring, self._begin, self._end
        heads = {(element, receives): at for element, receives, at in self._positions()}
        self._allocate(np.where(full, _GROWTH * slots, slots))
        for element in range(len(held)):
            turned = int(heads.get((element, True), begin[element]) - begin[element])
            tokens = np.roll(old[begin[element] : end[element]], -turned if full[element] else 0)
            first = int(self._begin[element])
            self._ring[first : first + len(tokens)] = tokens
        self._place_ports(heads, begin, full, held)
        return True

    def _positions(self) -> list[tuple[int, bool, int]]:
        """Of all ports: element, whether it receives, and the position of its next slot."""
        return [
            (element, receives, (int(record[where]) - self._ring.ctypes.data) // 8)
            for record, where, element, receives in self._ports()
        ]

    def _ports(self) -> list[tuple[NDArray[np.int64], int, int, bool]]:
        """Of all ports: the record, the first word in it, the element and whether it receives."""
        return [
            (self._record(i), emit_timing.HEADER + emit_timing.PORT_WORDS * port, element, receives)
            for i, layout in enumerate(self.layouts)
            for port, (element, receives) in enumerate(
                zip(layout.ports, layout.shape.receives, strict=True)
            )
        ]

    def _place_ports(
        self,
        positions: Mapping[tuple[int, bool], int],
        begin: Counts,
        turned: NDArray[np.bool_],
        held: Counts,
    ) -> None:
        """Say where the rings are after they have moved from ``begin``."""
        address = self._ring.ctypes.data
        for record, where, element, receives in self._ports():
            at = positions[element, receives] - int(begin[element])
            if turned[element]:
                at = 0 if receives else int(held[element])
            first = address + 8 * int(self._begin[element])
            record[where + emit_timing.POSITION] = first + 8 * at
            record[where + emit_timing.BEGIN] = first
            record[where + emit_timing.END] = address + 8 * int(self._end[element])
        for instance in range(len(self.layouts)):
            record = self._record(instance)
            if self.has_code(instance):
                record[emit_timing.BLOCK] = record.ctypes.data + 8 * emit_timing.CODE
                record[emit_timing.SEEN] = 0

    def _fill(self, instance: int) -> None:
        """Write the record of a node."""
        layout, program = self.layouts[instance], self.program
        record = self._record(instance)
        codes = self._codes[instance]
        record[emit_timing.NEXT] = 1
        record[emit_timing.CODE] = codes.ctypes.data
        record[emit_timing.CODE_END] = codes.ctypes.data + codes.nbytes
        record[emit_timing.MASKS] = layout.masks.ctypes.data
        record[emit_timing.INTERVAL] = program.intervals[instance]
        address = record.ctypes.data
        record[emit_timing.BLOCK] = address + 8 * (
            emit_timing.CODE if codes.size else emit_timing.SEEN
        )
        record[emit_timing.FUNCTION] = self._code.addresses[layout.shape]
        record[emit_timing.LIMIT] = self._limit
        record[emit_timing.NOWHERE] = self._nowhere.ctypes.data
        ring = self._ring.ctypes.data
        for port, element in enumerate(layout.ports):
            where = emit_timing.HEADER + emit_timing.PORT_WORDS * port
            begin, end = int(self._begin[element]), int(self._end[element])
            if layout.shape.receives[port]:
                delay = emit_timing.ELASTIC if self._elastic[element] else 0
            else:
                delay = program.channels[int(program.channel_of_element[element])].latency
            record[where : where + emit_timing.PORT_WORDS] = (
                ring + 8 * begin,
                ring + 8 * begin,
                ring + 8 * end,
                delay,
            )

    def _record(self, instance: int) -> NDArray[np.int64]:
        start = int(self._start[instance])
        return self._records[start : start + self.layouts[instance].shape.words]

    def advance(self, budget: int) -> int:
        """Make up to about so many firings; the number made, 0 if nobody can fire any more."""
        fired = 0
        while not fired:
            fired = int(
                self._code.advance(
                    self._visited.ctypes.data, len(self._visited), budget, _FIRINGS_PER_VISIT
                )
            )
            if not fired and not self._grow():
                break
        self.fired += fired
        return fired

    def column(self, word: int) -> Counts:
        """A word of the front of all records."""
        return np.asarray(self._records[self._start[:-1] + word], np.int64)

    @property
    def latest(self) -> int:
        """The last cycle that any node has come to."""
        return int(self.column(emit_timing.NEXT).max(initial=1)) - 1

    def firings(self) -> Counts:
        """Firings made, by instance."""
        address = np.array([codes.ctypes.data for codes in self._codes], np.int64)
        size = np.array([codes.itemsize for codes in self._codes], np.int64)
        return np.asarray((self.column(emit_timing.CODE) - address) // size, np.int64)

    def stalls(self) -> tuple[Counts, Counts]:
        """Cycles that receivers starved and senders were blocked, by channel element."""
        starved = np.zeros(len(self._begin), np.int64)
        blocked = np.zeros(len(self._begin), np.int64)
        for instance, layout in enumerate(self.layouts):
            sums = self._record(instance)[layout.shape.sums :]
            for (port, _), cycles in zip(layout.shape.steps, np.diff(sums), strict=True):
                side = starved if layout.shape.receives[port] else blocked
                side[layout.ports[port]] += cycles
        return starved, blocked

    def left(self) -> Counts:
        """Tokens in every element."""
        return np.asarray(self._held()[self._twin], np.int64)

    def _held(self) -> Counts:
        """Tokens in every ring."""
        held = np.concatenate([[0], np.cumsum(self._ring > 0)])
        return np.asarray(held[self._end] - held[self._begin], np.int64)

    def next_code(self, instance: int) -> int:
        """The code of the next firing of a node that has one."""
        codes = self._codes[instance]
        address = int(self._record(instance)[emit_timing.CODE])
        return int(codes[(address - codes.ctypes.data) // codes.itemsize])

    def has_code(self, instance: int) -> bool:
        """Whether the next firing of a node is known."""
        record = self._record(instance)
        return bool(record[emit_timing.CODE] < record[emit_timing.CODE_END])

    def allows(self, instance: int, element: int, *, sending: bool) -> int:
        """The cycle from which a channel element allows a node's firing; ``FOREVER`` if unknown."""
        layout, element = self.layouts[instance], int(self._twin[element])
        port = next(
            number
            for number, (used, receives) in enumerate(
                zip(layout.ports, layout.shape.receives, strict=True)
            )
            if used == element and receives != sending
        )
        where = emit_timing.HEADER + emit_timing.PORT_WORDS * port + emit_timing.POSITION
        position = (int(self._record(instance)[where]) - self._ring.ctypes.data) // 8
        entry = int(self._ring[position])
        time = -entry if sending else entry
        return time if time > 0 else FOREVER


def _from_sources(program: SimProgram) -> list[int]:
    """All instances, senders before receivers as far as there are no cycles of channels."""
    control = program.control
    receivers: list[list[int]] = [[] for _ in range(program.pe_count)]
    waits = np.zeros(program.pe_count, np.int64)
    for sender, receiver in zip(control.sender.tolist(), control.receiver.tolist(), strict=True):
        if sender >= 0 and receiver >= 0 and sender != receiver:
            receivers[sender].append(receiver)
            waits[receiver] += 1
    order: list[int] = []
    seen = np.zeros(program.pe_count, np.bool_)
    ready = [instance for instance in range(program.pe_count) if not waits[instance]]
    left = iter(range(program.pe_count))
    while len(order) < program.pe_count:
        if not ready:
            ready.append(next(instance for instance in left if not seen[instance]))
        instance = ready.pop()
        if seen[instance]:
            continue
        seen[instance] = True
        order.append(instance)
        for receiver in receivers[instance]:
            waits[receiver] -= 1
            if not waits[receiver] and not seen[receiver]:
                ready.append(receiver)
    return order
