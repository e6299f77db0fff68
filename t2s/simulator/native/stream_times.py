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
from t2s.simulator.native.stream_shapes import Layout, layout_of
from t2s.simulator.program import SimProgram
from t2s.simulator.tally import Counts

FOREVER = np.iinfo(np.int64).max

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
    """The layouts of all nodes of a program and the code of their shapes; they fit all its runs."""

    layouts: tuple[Layout, ...]
    code: _Code


def stream_code(program: SimProgram, code_bytes: Mapping[int, int]) -> StreamCode | None:
    """What the run-ahead engine needs to know of a program; ``None`` if it cannot run it.

    ``code_bytes`` gives the size of the codes of each machine.
    """
    control = program.control
    if program.memory_rate is not None or program.pe_count > _MOST_INSTANCES:
        return None
    starts = [*control.row_start.tolist(), len(control.rows)]
    layouts: list[Layout] = []
    for instance in range(program.pe_count):
        rows = starts[instance + 1] - starts[instance]
        if rows > _MOST_CODES:
            return None
        layouts.append(layout_of(control, instance, rows, code_bytes.get(instance, 4)))
    shapes = sorted({layout.shape for layout in layouts}, key=repr)
    return StreamCode(tuple(layouts), _compiled(tuple(shapes)))


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
        self._code = found.code
        self._codes = codes
        self._limit = FOREVER - 1 if limit is None else limit
        self._begin, self._end = self._rings(sent)
        self._ring = aligned_zeros(8 * int(self._end.max(initial=0))).view(np.int64)
        self._ring[:] = -1
        words = [-(-layout.shape.words // 8) * 8 for layout in found.layouts]
        self._start = np.concatenate([[0], np.cumsum(words)]).astype(np.int64)
        self._records = aligned_zeros(8 * int(self._start[-1])).view(np.int64)
        self._nowhere = np.zeros(1, np.int64)
        self._masks = [layout.masks for layout in found.layouts]
        for instance in range(program.pe_count):
            self._fill(instance)
        chosen = _from_sources(program) if order is None else order
        self._visited = self._records.ctypes.data + 8 * self._start[np.asarray(chosen, np.int64)]
        self.fired = 0

    def _rings(self, sent: Counts) -> tuple[Counts, Counts]:
        """Rings are no longer than the tokens that pass: a longer one would never be full either."""
        capacity = self.program.per_element([c.capacity for c in self.program.channels])
        size = np.maximum(1, np.minimum(capacity, sent))
        end = np.cumsum(size)
        return end - size, end

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
            channel = program.channels[int(program.channel_of_element[element])]
            record[where : where + emit_timing.PORT_WORDS] = (
                ring + 8 * begin,
                ring + 8 * begin,
                ring + 8 * end,
                channel.latency,
            )

    def _record(self, instance: int) -> NDArray[np.int64]:
        start = int(self._start[instance])
        return self._records[start : start + self.layouts[instance].shape.words]

    def advance(self, budget: int) -> int:
        """Make up to about so many firings; the number made, 0 if nobody can fire any more."""
        fired = int(
            self._code.advance(
                self._visited.ctypes.data, len(self._visited), budget, _FIRINGS_PER_VISIT
            )
        )
        self.fired += fired
        return fired

    def column(self, word: int) -> Counts:
        """A word of the front of all records."""
        return self._records[self._start[:-1] + word]

    @property
    def latest(self) -> int:
        """The last cycle that any node has come to."""
        return int(self.column(emit_timing.NEXT).max(initial=1)) - 1

    def firings(self) -> Counts:
        """Firings made, by instance."""
        address = np.array([codes.ctypes.data for codes in self._codes], np.int64)
        size = np.array([codes.itemsize for codes in self._codes], np.int64)
        return (self.column(emit_timing.CODE) - address) // size

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
        layout = self.layouts[instance]
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
