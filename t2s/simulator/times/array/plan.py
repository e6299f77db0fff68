"""The array engine's plan of a program: lanes, ports, control; its state in an arena; code over it.

Every PE of a node is a *lane*.  A channel is two arrays of counters: tokens that its receiver may
take and slots that its sender may fill.  If each PE uses one element of the channel array from a
side, the counters of that side are in the order of the lanes, so that a cycle of all PEs is a
handful of vector operations; such a port is *regular*.  The counters of an irregular port are in
the order of the channel's elements, and its PEs are processed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.body import Receive, Send
from t2s.graph.control.firing_codes import FiringOrder
from t2s.graph.nodes import PEArray
from t2s.llvm.ir import (
    I1,
    I32,
    I64,
    Builder,
    LLVMFunction,
    LLVMType,
    Value,
    integer,
    integer_type,
    vector_type,
)
from t2s.simulator.program.flatten import ACCESS, MOVED_BYTES, RECEIVES_END, USES_BEGIN, USES_END
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.program.trace import STORES

NOWHERE = -1
"""The position of an unused element, and of a port that a firing does not use."""


@dataclass(frozen=True, kw_only=True)
class LanePort:
    """One side of a channel, at one node.

    Attributes
    ----------
    channel: position of the channel in the program.
    sends: whether it is the sender's side.
    regular: whether counters are in the order of lanes; else in that of the channel's elements.
    size: number of counters.
    positions: per element of the channel, the position of its counter.
    table: per row of the node, the position that a firing with that row uses.
    """

    channel: int
    sends: bool
    regular: bool
    size: int
    positions: NDArray[np.int64]
    table: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """A node: its lanes are the program's instances from ``timing.first`` on.

    ``first_row`` is the first of the program's rows that are this node's; ``moved`` (bytes) and
    ``stores`` are per row.  ``ports`` are receives, then sends, in body order.
    """

    timing: NodeTiming
    ports: tuple[LanePort, ...]
    first_row: int
    moved: NDArray[np.int32]
    stores: NDArray[np.bool_]

    @property
    def lanes(self) -> int:
        """Number of PEs."""
        return self.timing.pe_count

    @property
    def interval(self) -> int:
        """The initiation interval."""
        return self.timing.interval.cycles


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """The transfer of tokens to the receiver's side of a channel, and of free slots back.

    ``sources`` and ``sinks`` are the positions of the elements that have both ends.  Where both
    ports are regular and every sink is ``shift`` positions after its source, whole vectors move.
    """

    channel: int
    latency: int
    source: LanePort
    sink: LanePort
    sources: NDArray[np.int64]
    sinks: NDArray[np.int64]
    shift: int | None


@dataclass(frozen=True, kw_only=True)
class Walk:
    """The order of a PE's firings, run by run.

    A run is a sequence of firings with one code.  The innermost axis counts iterations of
    ``repeat`` firings each; ``runs[x]`` of them, from iteration ``x`` on, have the same code.
    """

    order: FiringOrder
    axes: tuple[NDArray[np.int32], ...]
    codes: NDArray[np.int32]
    repeat: int
    runs: NDArray[np.int64]

    @property
    def extents(self) -> tuple[int, ...]:
        """Iterations of each axis."""
        return tuple(len(axis) for axis in self.axes)


@dataclass(frozen=True, kw_only=True)
class ArrayPlan:
    """The plan of a program; ``walks`` belong to the program's firing orders."""

    program: SimProgram
    nodes: tuple[NodePlan, ...]
    transfers: tuple[Transfer, ...]
    walks: tuple[Walk, ...]

    @property
    def deepest(self) -> int:
        """The largest number of axes of a walk."""
        return max((len(walk.axes) for walk in self.walks), default=1)


def plan_of(program: SimProgram) -> ArrayPlan:
    """Plan a program."""
    nodes = tuple(_node(program, timing) for timing in program.nodes)
    ends = {(port.channel, port.sends): port for node in nodes for port in node.ports}
    transfers = tuple(
        _transfer(at, timing.latency, ends[at, True], ends[at, False])
        for at, timing in enumerate(program.channels)
    )
    return ArrayPlan(
        program=program,
        nodes=nodes,
        transfers=transfers,
        walks=tuple(walk_of(order) for order in program.control.orders),
    )


def _node(program: SimProgram, timing: NodeTiming) -> NodePlan:
    control = program.control
    first = int(control.row_start[timing.first])
    stop = timing.instances.stop
    end = int(control.row_start[stop]) if stop < program.pe_count else len(control.rows)
    rows = control.rows[first:end].astype(np.int64)
    lane_of_row = (
        np.searchsorted(control.row_start[timing.instances], np.arange(first, end), "right") - 1
    )
    begins = int(rows[0, USES_BEGIN]) if len(rows) else 0
    row_of_use = np.repeat(np.arange(len(rows)), rows[:, USES_END] - rows[:, USES_BEGIN])
    elements = control.uses[begins : begins + len(row_of_use)].astype(np.int64)
    sending = begins + np.arange(len(row_of_use)) >= rows[row_of_use, RECEIVES_END]
    numbers = {channel.channel.name: at for at, channel in enumerate(program.channels)}
    channel_of_use = program.channel_of_element[elements]
    ports = []
    for kind in (Receive, Send):
        body = timing.node.body if isinstance(timing.node, PEArray) else ()
        for statement in body:
            if isinstance(statement, kind):
                at, sends = numbers[statement.channel], kind is Send
                chosen = (channel_of_use == at) & (sending == sends)
                used = np.full(len(rows), NOWHERE, np.int64)
                used[row_of_use[chosen]] = elements[chosen] - program.channels[at].first
                ports.append(_port(program, at, sends, used, lane_of_row, timing.pe_count))
    return NodePlan(
        timing=timing,
        ports=tuple(ports),
        first_row=first,
        moved=rows[:, MOVED_BYTES].astype(np.int32),
        stores=(rows[:, ACCESS] & STORES) > 0,
    )


def _port(
    program: SimProgram, channel: int, sends: bool, used: Array, lane_of_row: Array, lanes: int
) -> LanePort:
    """The port whose firings use the elements ``used``, by row of the node."""
    count = program.channels[channel].channel.element_count
    used_anywhere = used != NOWHERE
    lowest, highest = np.full(lanes, count), np.full(lanes, NOWHERE)
    np.minimum.at(lowest, lane_of_row[used_anywhere], used[used_anywhere])
    np.maximum.at(highest, lane_of_row[used_anywhere], used[used_anywhere])
    regular = bool((lowest == highest)[highest != NOWHERE].all())
    positions = np.full(count, NOWHERE, np.int64)
    if regular:
        using = np.flatnonzero(highest != NOWHERE)
        positions[highest[using]] = using
        table = np.where(used_anywhere, lane_of_row, NOWHERE)
    else:
        positions[used[used_anywhere]] = used[used_anywhere]
        table = used
    return LanePort(
        channel=channel,
        sends=sends,
        regular=regular,
        size=lanes if regular else count,
        positions=positions,
        table=table.astype(np.int32),
    )


def _transfer(channel: int, latency: int, source: LanePort, sink: LanePort) -> Transfer:
    both = (source.positions != NOWHERE) & (sink.positions != NOWHERE)
    sources, sinks = source.positions[both], sink.positions[both]
    shifts = np.unique(sinks - sources)
    shifted = source.regular and sink.regular and len(shifts) <= 1
    return Transfer(
        channel=channel,
        latency=latency,
        source=source,
        sink=sink,
        sources=sources,
        sinks=sinks,
        shift=int(shifts.sum()) if shifted else None,
    )


def walk_of(order: FiringOrder) -> Walk:
    """The walk of an order; irrelevant axes are left out or merged into ``repeat``."""
    axes, codes = list(order.axes), order.codes
    if order.is_list:
        axes = [np.arange(len(codes), dtype=np.int32)]
        codes = codes.astype(np.int32) if len(codes) else np.zeros(1, np.int32)
    repeat = 1
    while axes and codes.shape[-1] == 1:
        repeat *= len(axes.pop())
        codes = codes[..., 0]
    relevant = [at for at, axis in enumerate(axes) if len(axis) > 1]
    codes = codes.reshape([codes.shape[at] for at in relevant])
    axes = [axes[at] for at in relevant] or [np.zeros(1, np.int32)]
    if codes.ndim == 0:
        codes = codes.reshape(1)
    innermost = axes[-1]
    ends = np.flatnonzero(np.diff(innermost)) + 1
    next_change = np.append(ends, len(innermost))
    at = np.arange(len(innermost))
    runs = next_change[np.searchsorted(ends, at, "right")] - at
    return Walk(
        order=order,
        axes=tuple(axes),
        codes=np.ascontiguousarray(codes),
        repeat=repeat,
        runs=runs.astype(np.int64),
    )


# The state of the array engine: one arena of bytes with fixed offsets.
#
# Offsets depend on the structure of a program, on latencies and on the width of the counters, but
# not on depths or trip counts, which are data.  So changing a depth needs no compilation.

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
the level at which the ``watched`` PE advances in this cycle, and ``happened`` that of the previous
cycle: levels up to ``deepest`` stop the run.
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
    firing uses the port.  stall: cycles that a lane waited for it.  moved: -1 for the positions
    moved in this cycle; for a sender one row per cycle of the channel's latency.  slot: the row of
    this cycle, in bytes.  position, refused: for irregular ports, the position of each lane's next
    firing, and -1 if that is not ready.
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
    """All sections; the mutable state is in the first ``state_bytes``.

    ``stalls`` are all ``stall`` sections in a row, and ``totals`` their accumulated sums.
    ``moving``, ``waiting``, ``granted`` and ``ring`` belong to the memory queue: for each PE, bytes
    of its next firing, and whether it is in the queue or was served.
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
        """The largest number of firings in a lane: a number with many divisors."""
        return 120 if self.bits == 8 else 840


class _Allocator:
    def __init__(self) -> None:
        self.end = 0

    def take(self, dtype: str, *shape: int, before: int = 0, after: int = 0) -> ArenaSection:
        """Allocate a section, padded with zeros before and after it."""
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
    """Capacity of each channel element, at most its number of tokens, and at most 2^30."""
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
        _place_node(memory, plan, node, bits, stall, shifts)
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
    """Vector length for a number of PEs: a trade-off between passes and idle lanes."""
    choices = [bytes * 8 // bits for bytes in _VECTORS]
    return min(choices, key=lambda lanes: -(-count // lanes) * (lanes // choices[0] + 2))


def _padded(count: int, lanes: int) -> int:
    return max(1, -(-count // lanes)) * lanes


def _place_node(
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


# Writing LLVM code over the arena: addresses, vectors, loops.


@dataclass(frozen=True, slots=True)
class Code:
    """A function under construction whose first argument is the arena.

    Vectors have ``lanes`` lanes of ``layout.bits`` bits; -1 stands for true in memory and
    ``i1`` in registers.
    """

    layout: ArenaLayout
    function: LLVMFunction
    builder: Builder
    lanes: int = 0

    def of(self, lanes: int) -> Code:
        """The same function, with vectors of another length."""
        return replace(self, lanes=lanes)

    @property
    def arena(self) -> Value:
        """The address of the arena."""
        return self.function.args[0]

    @property
    def counter(self) -> LLVMType:
        """The type of a counter."""
        return integer_type(self.layout.bits)

    @property
    def vector(self) -> LLVMType:
        """The type of a vector of counters."""
        return vector_type(self.counter, self.lanes)

    def variable(self, kind: LLVMType) -> Value:
        """A stack slot for a variable, which LLVM promotes to a register."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def splat(self, value: int) -> Value:
        """A vector with the same counter in all lanes."""
        return integer(value, self.vector)

    def address(
        self, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """The address of an element (``index`` may be negative), ``row`` bytes further on."""
        size = section.dtype.itemsize
        if isinstance(index, int):
            offset: Value = integer(section.offset + index * size, I64)
        else:
            wide = self.builder.sext(index, I64) if index.type != I64 else index
            scaled = self.builder.mul(wide, integer(size, I64))
            offset = self.builder.add(scaled, integer(section.offset, I64))
        if row is not None:
            offset = self.builder.add(offset, self.builder.sext(row, I64))
        return self.builder.offset(self.arena, offset, inbounds=False)

    def load(
        self, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """One element."""
        kind = integer_type(8 * section.dtype.itemsize)
        return self.builder.load(self.address(section, index, row), kind, section.dtype.itemsize)

    def store(
        self, value: Value, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> None:
        """Overwrite one element."""
        self.builder.store(value, self.address(section, index, row), section.dtype.itemsize)

    def add(self, amount: Value | int, section: ArenaSection, index: Value | int = 0) -> Value:
        """Add to one element; the new value."""
        old = self.load(section, index)
        change = integer(amount, old.type) if isinstance(amount, int) else amount
        new = self.builder.add(old, change)
        self.store(new, section, index)
        return new

    def load_vector(
        self, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """A vector of counters, aligned to a counter."""
        where = self.address(section, index, row)
        return self.builder.load(where, self.vector, section.dtype.itemsize)

    def store_vector(
        self, value: Value, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> None:
        """Overwrite a vector of counters."""
        self.builder.store(value, self.address(section, index, row), section.dtype.itemsize)

    def is_zero(self, vector: Value) -> Value:
        """Per lane, whether a counter is zero."""
        return self.builder.icmp_signed("==", vector, self.splat(0))

    def not_zero(self, vector: Value) -> Value:
        """Per lane, whether a counter is not zero."""
        return self.builder.icmp_signed("!=", vector, self.splat(0))

    def mask(self, truth: Value) -> Value:
        """The condition as -1 (true) or 0 in each lane."""
        return self.builder.sext(truth, self.vector)

    def bits(self, truth: Value) -> Value:
        """The lanes as the bits of a 64-bit number."""
        packed = self.builder.bitcast(truth, integer_type(self.lanes))
        return packed if packed.type == I64 else self.builder.zext(packed, I64)

    def word(self, number: int) -> Value:
        """A 64-bit constant."""
        return integer(number, I64)

    @contextmanager
    def counting(self, count: Value | int, step: int = 1, kind: LLVMType = I32) -> Iterator[Value]:
        """A loop over 0, ``step``, ... below ``count``."""
        builder = self.builder
        end = integer(count, kind) if isinstance(count, int) else count
        before = builder.block
        head = self.function.block("head")
        body = self.function.block("body")
        after = self.function.block("after")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(kind)
        index.add_incoming(integer(0, kind), before)
        builder.cbranch(builder.icmp_signed("<", index, end), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, integer(step, kind)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def lanes_of(self, bits: Value) -> Iterator[Value]:
        """A loop over the numbers (32 bits) of the set bits of a 64-bit number."""
        builder = self.builder
        before = builder.block
        head = self.function.block("head")
        body = self.function.block("body")
        after = self.function.block("after")
        builder.branch(head)
        builder.position_at_end(head)
        left = builder.phi(I64)
        left.add_incoming(bits, before)
        builder.cbranch(builder.icmp_signed("!=", left, self.word(0)), body, after)
        builder.position_at_end(body)
        lane = builder.intrinsic("llvm.cttz.i64", I64, [left, integer(1, I1)])
        yield builder.trunc(lane, I32)
        rest = builder.and_(left, builder.sub(left, self.word(1)))
        left.add_incoming(rest, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
