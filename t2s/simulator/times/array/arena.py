"""Where the state of the array engine lives: one arena of bytes with fixed offsets.

Offsets depend on the structure of a program, on latencies and on the width of the counters, never
on depths or trip counts: these are data.  So changing a depth compiles nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.times.array.plan import ArrayPlan, LanePort, NodePlan

VECTOR_BYTES = 64
"""Bytes of the longest vectors; a processor with shorter ones takes several."""

_VECTORS = (16, 32, 64)

CLOCK = (
    "base",
    "credit",
    "last_store",
    "unfinished",
    "progress",
    "event",
    "happened",
    "watched",
    "deepest",
)
"""64-bit words at the start of the arena.

``base`` plus ``tick`` is the cycle; ``credit`` is the memory credit; ``last_store`` the cycle of
the last store; ``unfinished`` counts PEs; ``progress`` is the tick of the last firing; ``event`` is
the level at which the ``watched`` PE moves on in this cycle, and ``happened`` that in the cycle
before: levels up to ``deepest`` stop the run.
"""

COUNTERS = ("tick", "head", "queued")
"""32-bit words: the last simulated cycle, less ``base``; the ring of PEs that wait for memory."""

REST, REMAINING, ROW, WALK, POSITION = range(5)
"""64-bit words of a PE: firings left of its run beyond those in its lane, firings after its run,
the row of code 0 of its node's rows, the start of its walk in the pool; then the iteration of each
axis at which the run starts."""

WALK_AXES, WALK_REPEAT, WALK_CODES, WALK_RUNS, WALK_FIRST = range(5)
"""Words of a walk in the pool: number of axes, repeat, positions of its codes and of its runs; then
for each axis its extent and the position of its classes (times the stride of the axis)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaSection:
    """An array in the arena; ``offset`` is that of element 0, in bytes."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    def view(self, arena: Array) -> Array:
        """The array, sharing the memory of the arena."""
        return arena[self.offset : self._end].view(self.dtype).reshape(self.shape)

    @property
    def positions(self) -> Array:
        """The positions of its bytes in the arena."""
        return np.arange(self.offset, self._end)

    @property
    def _end(self) -> int:
        return self.offset + prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class PortMemory:
    """Sections of a port.

    lanes: lanes of a vector.  count: counters by position.  use: per lane, -1 where its next
    firing uses the port.  stall: cycles that a lane waited for it.  moved: what was moved in this
    cycle, -1 by position; for a sender one row per cycle of the channel's latency.  slot: the row
    of this cycle, in bytes.
    position, refused: for irregular ports, per lane the position of its next firing, and -1 where
    that is not ready.
    """

    lanes: int
    count: ArenaSection
    use: ArenaSection
    stall: ArenaSection
    moved: ArenaSection
    row_bytes: int
    slot: ArenaSection
    position: ArenaSection
    refused: ArenaSection


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """Sections of a node, per lane; ``lanes`` is the length of its vectors.

    left: firings until the code changes, or until the lane is filled up.  started: -1 after the
    first firing.  wait: cycles that the interval lasts.  last: tick of the last firing.
    storing: -1 where the next firing stores.
    """

    lanes: int
    padded: int
    left: ArenaSection
    started: ArenaSection
    wait: ArenaSection
    last: ArenaSection
    storing: ArenaSection
    memory_stall: ArenaSection
    ports: tuple[PortMemory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaLayout:
    """All sections; what changes while a run goes on is in the first ``state_bytes``.

    ``stalls`` are all ``stall`` sections in a row, and ``totals`` what they were emptied into.
    ``moving``, ``waiting``, ``granted`` and ``ring`` are those of the memory queue, per PE: bytes
    that its next firing moves, and whether it is in the queue or was served.
    """

    bits: int
    clock: ArenaSection
    counters: ArenaSection
    pes: ArenaSection
    first: ArenaSection
    moving: ArenaSection
    waiting: ArenaSection
    granted: ArenaSection
    ring: ArenaSection
    nodes: tuple[NodeMemory, ...]
    stalls: ArenaSection
    totals: ArenaSection
    state_bytes: int
    tables: tuple[tuple[ArenaSection, ...], ...]
    moved: tuple[ArenaSection, ...]
    stores: tuple[ArenaSection, ...]
    pool: ArenaSection
    bytes: int

    @property
    def most(self) -> int:
        """The largest number that a counter holds."""
        return (1 << (self.bits - 1)) - 1

    @property
    def chunk(self) -> int:
        """Firings that a lane is filled up with, at most: a number with many divisors."""
        return 120 if self.bits == 8 else 840


class _Allocator:
    def __init__(self) -> None:
        self.end = 0

    def take(self, dtype: str, *shape: int, before: int = 0, after: int = 0) -> ArenaSection:
        """A section, with so many elements of zeros before and after it."""
        kind = np.dtype(dtype)
        self.end = _rounded(self.end) + _rounded(before * kind.itemsize)
        section = ArenaSection(offset=self.end, shape=shape, dtype=kind)
        self.end += prod(shape) * kind.itemsize + _rounded(after * kind.itemsize)
        return section


def _rounded(bytes: int) -> int:
    return -(-bytes // VECTOR_BYTES) * VECTOR_BYTES


def counter_bits(plan: ArrayPlan) -> int:
    """The narrowest counters that hold all capacities and intervals."""
    most = max(
        [int(capacities(plan, port).max(initial=0)) for node in plan.nodes for port in node.ports]
        + [node.interval for node in plan.nodes]
        + [1]
    )
    return 8 if most < 1 << 7 else 16 if most < 1 << 15 else 32


def capacities(plan: ArrayPlan, port: LanePort) -> Array:
    """Capacity per element of a channel; no more than all tokens that pass, nor than 2^30."""
    timing = plan.program.channels[port.channel]
    sent = plan.program.control.sent[timing.elements]
    return np.maximum(1, np.minimum(min(timing.capacity, 1 << 30), sent))


def layout_of(plan: ArrayPlan, bits: int) -> ArenaLayout:
    """Place the state of a plan."""
    memory = _Allocator()
    counter = f"int{bits}"
    program = plan.program
    pes = program.pe_count
    clock = memory.take("int64", len(CLOCK))
    counters = memory.take("int32", len(COUNTERS))
    records = memory.take("int64", pes, POSITION + plan.deepest)
    first = memory.take("int64", pes)
    moving, waiting, granted, ring = (memory.take("int32", pes) for _ in range(4))
    stall_start = memory.end = _rounded(memory.end)
    stalls = [
        [
            memory.take(counter, _padded(node.lanes, vector_lanes(node.lanes, bits)))
            for _ in (*node.ports, None)
        ]
        for node in plan.nodes
    ]
    memory.end = _rounded(memory.end)
    stall_count = (memory.end - stall_start) // (bits // 8)
    shifts = {
        (transfer.channel, sends): abs(transfer.shift or 0)
        for transfer in plan.transfers
        for sends in (False, True)
    }
    nodes = tuple(
        _node(memory, plan, node, bits, stall, shifts)
        for node, stall in zip(plan.nodes, stalls, strict=True)
    )
    totals = memory.take("int64", stall_count)
    state_bytes = memory.end
    return ArenaLayout(
        bits=bits,
        clock=clock,
        counters=counters,
        pes=records,
        first=first,
        moving=moving,
        waiting=waiting,
        granted=granted,
        ring=ring,
        nodes=nodes,
        stalls=ArenaSection(offset=stall_start, shape=(stall_count,), dtype=np.dtype(counter)),
        totals=totals,
        state_bytes=state_bytes,
        tables=tuple(
            tuple(memory.take("int32", len(port.table)) for port in node.ports)
            for node in plan.nodes
        ),
        moved=tuple(memory.take("int32", len(node.moved)) for node in plan.nodes),
        stores=tuple(memory.take("int8", len(node.stores)) for node in plan.nodes),
        pool=memory.take("int64", sum(_pool_words(plan))),
        bytes=_rounded(memory.end) + VECTOR_BYTES,
    )


def vector_lanes(count: int, bits: int) -> int:
    """Lanes of the vectors for so many PEs: few passes, and little that is passed in vain."""
    choices = [bytes * 8 // bits for bytes in _VECTORS]
    return min(choices, key=lambda lanes: -(-count // lanes) * (lanes // choices[0] + 2))


def _padded(count: int, lanes: int) -> int:
    return max(1, -(-count // lanes)) * lanes


def _node(
    memory: _Allocator,
    plan: ArrayPlan,
    node: NodePlan,
    bits: int,
    stalls: list[ArenaSection],
    shifts: dict[tuple[int, bool], int],
) -> NodeMemory:
    counter, lanes = f"int{bits}", vector_lanes(node.lanes, bits)
    padded = _padded(node.lanes, lanes)
    ports = []
    for port, stall in zip(node.ports, stalls, strict=False):
        size = _padded(port.size, lanes)
        margin = shifts[port.channel, port.sends] + 2 * VECTOR_BYTES
        if port.sends:
            latency = plan.program.channels[port.channel].latency
            row = size + 2 * margin
            moved = memory.take(counter, latency, row, before=margin, after=margin)
            moved = ArenaSection(
                offset=moved.offset + margin * moved.dtype.itemsize,
                shape=(latency, row),
                dtype=moved.dtype,
            )
        else:
            row = size
            moved = memory.take(counter, size, before=margin, after=margin)
        ports.append(
            PortMemory(
                lanes=lanes,
                count=memory.take(counter, size),
                use=memory.take(counter, padded),
                stall=stall,
                moved=moved,
                row_bytes=row * moved.dtype.itemsize,
                slot=memory.take("int32", 1),
                position=memory.take("int32", 0 if port.regular else padded),
                refused=memory.take(counter, 0 if port.regular else padded),
            )
        )
    return NodeMemory(
        lanes=lanes,
        padded=padded,
        left=memory.take(counter, padded),
        started=memory.take(counter, padded),
        wait=memory.take(counter, padded),
        last=memory.take("int32", padded),
        storing=memory.take(counter, padded),
        memory_stall=stalls[-1],
        ports=tuple(ports),
    )


def _pool_words(plan: ArrayPlan) -> list[int]:
    return [
        WALK_FIRST + 2 * len(walk.axes) + sum(walk.extents) + walk.codes.size + len(walk.runs)
        for walk in plan.walks
    ]


def pool_of(plan: ArrayPlan) -> tuple[Array, list[int]]:
    """The walks in one array of words, and where each starts."""
    pool = np.zeros(sum(_pool_words(plan)), np.int64)
    starts: list[int] = []
    end = 0
    for walk, words in zip(plan.walks, _pool_words(plan), strict=True):
        starts.append(end)
        at = end + WALK_FIRST + 2 * len(walk.axes)
        pool[end + WALK_AXES], pool[end + WALK_REPEAT] = len(walk.axes), walk.repeat
        stride = walk.codes.size
        for axis, classes in enumerate(walk.axes):
            stride //= max(1, walk.codes.shape[axis])
            header = end + WALK_FIRST + 2 * axis
            pool[header], pool[header + 1] = len(classes), at
            pool[at : at + len(classes)] = classes.astype(np.int64) * stride
            at += len(classes)
        pool[end + WALK_CODES] = at
        pool[at : at + walk.codes.size] = walk.codes.reshape(-1)
        at += walk.codes.size
        pool[end + WALK_RUNS] = at
        pool[at : at + len(walk.runs)] = walk.runs
        end += words
    return pool, starts
