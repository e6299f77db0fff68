"""The array engine's code: ``run(arena, until)``, a cycle of a node, the walk to the next firing.

In a cycle, tokens sent ``latency`` cycles ago reach the receivers, and slots freed in the last
cycle reach the senders; memory earns credit and serves its queue; every node fires the lanes that
are ready.  ``run`` returns a ``Stop``, the reason why it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from t2s.core.gc_pause import gc_paused
from t2s.llvm.ir import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Builder,
    LLVMFunction,
    Module,
    Value,
    constant_vector,
    integer,
    integer_type,
    vector_type,
)
from t2s.simulator.random_stalls import (
    CYCLE_FACTOR,
    FIRST_MIX,
    INSTANCE_FACTOR,
    SECOND_MIX,
    SEED_FACTOR,
    WORD,
    RandomStalls,
)
from t2s.simulator.times.array.plan import (
    CLOCK,
    COUNTERS,
    POSITION,
    REMAINING,
    REST,
    ROW,
    VECTOR_BYTES,
    WALK,
    WALK_AXES,
    WALK_CODES,
    WALK_FIRST,
    WALK_REPEAT,
    WALK_RUNS,
    ArenaLayout,
    ArrayPlan,
    Code,
    LanePort,
    NodeMemory,
    NodePlan,
    PortMemory,
    Transfer,
)

_UNROLLED = 16
"""Elements moved by straight-line code instead of a loop."""


class Stop(IntEnum):
    """The reason why the code returned."""

    UNTIL = 0
    FINISHED = 1
    STUCK = 2
    EVENT = 3


@gc_paused()
def emit_run(plan: ArrayPlan, layout: ArenaLayout, patience: int) -> str:
    """The module as text; ``patience`` cycles without a firing count as a deadlock."""
    module = Module()
    walks = [emit_walk(module, layout, node, at) for at, node in enumerate(plan.nodes)]
    for walk in walks:
        walk.internal = True
    run = module.function("run", I64, [POINTER, I64], attributes="nounwind")
    code = Code(layout, run, Builder(run))
    _RunEmitter(plan, code, walks, patience).emit()
    return str(module)


def key_of(plan: ArrayPlan, layout: ArenaLayout, patience: int) -> str:
    """A key of everything that the text of ``emit_run`` depends on."""
    program = plan.program
    nodes = [
        (
            node.timing.first,
            node.lanes,
            node.interval,
            bool(node.moved.any()),
            bool(node.stores.any()),
            bool(program.accesses_memory[node.timing.instances].any()),
            [(port.channel, port.sends, port.regular) for port in node.ports],
        )
        for node in plan.nodes
    ]
    transfers = [
        (item.channel, item.latency, item.shift, item.sources.tolist(), item.sinks.tolist())
        for item in plan.transfers
    ]
    # the pool of walks comes last, because its length depends on trip counts, which are data
    pool = replace(layout.pool, shape=())
    placed = replace(layout, pool=pool, bytes=0)
    facts = (program.memory_rate, program.stalls, patience, nodes, transfers, placed)
    return repr(facts)


class _RunEmitter:
    def __init__(self, plan: ArrayPlan, code: Code, walks: list[Any], patience: int) -> None:
        self._plan = plan
        self._code = code
        self._walks = walks
        self._patience = patience

    def emit(self) -> None:
        code, builder, layout = self._code, self._code.builder, self._code.layout
        block = code.function.block
        cycle, leave = block("cycle"), block("leave")
        reason = builder.alloca(I64)
        until = code.function.args[1]
        builder.branch(cycle)
        builder.position_at_end(cycle)
        tick = code.add(1, layout.counters, COUNTER_WORD["tick"])
        for transfer in self._plan.transfers:
            self._transfer(transfer)
        rate = self._plan.program.memory_rate
        if rate is not None:
            self._earn(rate.numerator)
            self._serve(rate.denominator)
        for number, node in enumerate(self._plan.nodes):
            port = self._memory_port(number)
            NodeEmitter(code, node, layout.nodes[number], port, self._walks[number], tick).emit()
        self._turn_slots()
        self._empty_stalls(tick)
        builder.store(self._reason(tick, until), reason)
        stopped = builder.icmp_signed("!=", builder.load(reason, I64), code.word(-1))
        builder.cbranch(stopped, leave, cycle)
        builder.position_at_end(leave)
        builder.ret(builder.load(reason, I64))

    def _memory_port(self, number: int) -> MemoryPort:
        program = self._plan.program
        node = self._plan.nodes[number]
        accesses = bool(program.accesses_memory[node.timing.first]) if node.lanes else False
        stalls: RandomStalls | None = program.stalls if accesses else None
        rate = program.memory_rate
        limited = rate is not None and bool(node.moved.any())
        return MemoryPort(unit=rate.denominator if rate and limited else None, stalls=stalls)

    def _ports(self, transfer: Transfer) -> tuple[PortMemory, PortMemory]:
        sides: dict[bool, PortMemory] = {}
        for node, memory in zip(self._plan.nodes, self._code.layout.nodes, strict=True):
            for port, port_memory in zip(node.ports, memory.ports, strict=True):
                if port is transfer.source or port is transfer.sink:
                    sides[port.sends] = port_memory
        return sides[True], sides[False]

    def _transfer(self, transfer: Transfer) -> None:
        """Move tokens to the receiver and free slots to the sender."""
        source, sink = self._ports(transfer)
        code, builder = self._code, self._code.builder
        slot = code.load(source.slot)
        if transfer.shift is not None:
            shift = integer(transfer.shift, I32)
            code = code.of(sink.lanes)
            end = int(transfer.sinks.max(initial=-1)) + 1
            with code.counting(end, step=code.lanes) as at:
                sent = code.load_vector(source.moved, builder.sub(at, shift), slot)
                count = code.load_vector(sink.count, at)
                code.store_vector(builder.sub(count, sent), sink.count, at)
            code = code.of(source.lanes)
            end = int(transfer.sources.max(initial=-1)) + 1
            with code.counting(end, step=code.lanes) as at:
                taken = code.load_vector(sink.moved, builder.add(at, shift))
                count = code.load_vector(source.count, at)
                code.store_vector(builder.sub(count, taken), source.count, at)
            return
        pairs = list(zip(transfer.sources.tolist(), transfer.sinks.tolist(), strict=True))
        if len(pairs) <= _UNROLLED:
            for a, b in pairs:
                self._exchange(source, sink, a, b, slot)
            return
        numbers = [number for pair in pairs for number in pair]
        table = code.function.module.table(f"pairs{transfer.channel}", I32, numbers)
        with code.counting(len(pairs)) as at:
            ends = []
            for side in range(2):
                index = builder.add(builder.mul(at, integer(2, I32)), integer(side, I32))
                address = builder.offset(table, builder.mul(index, integer(4, I32)), inbounds=False)
                ends.append(builder.load(address, I32))
            self._exchange(source, sink, ends[0], ends[1], slot)

    def _exchange(
        self,
        source: PortMemory,
        sink: PortMemory,
        sends: Value | int,
        receives: Value | int,
        slot: Value,
    ) -> None:
        """Transfer one element and clear its notes, which irregular ports do not overwrite."""
        code, builder = self._code, self._code.builder
        none = integer(0, code.counter)
        sent = code.load(source.moved, sends, slot)
        count = code.load(sink.count, receives)
        code.store(builder.sub(count, sent), sink.count, receives)
        code.store(none, source.moved, sends, slot)
        taken = code.load(sink.moved, receives)
        count = code.load(source.count, sends)
        code.store(builder.sub(count, taken), source.count, sends)
        code.store(none, sink.moved, receives)

    def _turn_slots(self) -> None:
        """Advance to the row of the next cycle in the notes of senders."""
        code, builder = self._code, self._code.builder
        for node, memory in zip(self._plan.nodes, code.layout.nodes, strict=True):
            for port, port_memory in zip(node.ports, memory.ports, strict=True):
                rows = port_memory.moved.shape[0]
                if port.sends and rows > 1:
                    turned = builder.add(
                        code.load(port_memory.slot), integer(port_memory.row_bytes, I32)
                    )
                    end = integer(rows * port_memory.row_bytes, I32)
                    over = builder.icmp_signed("==", turned, end)
                    code.store(builder.select(over, integer(0, I32), turned), port_memory.slot)

    def _earn(self, rate: int) -> None:
        """Add the credit of one cycle, which is also its maximum."""
        code, builder = self._code, self._code.builder
        clock, word = code.layout.clock, CLOCK_WORD["credit"]
        most = code.word(rate)
        earned = builder.add(code.load(clock, word), most)
        more = builder.icmp_signed(">", earned, most)
        code.store(builder.select(more, most, earned), clock, word)

    def _serve(self, unit: int) -> None:
        """Grant the accesses at the head of the queue while there is credit."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        block = code.function.block
        look, grant, done = block("look"), block("grant"), block("done")
        none = integer(0, I32)
        builder.branch(look)
        builder.position_at_end(look)
        queued = code.load(layout.counters, COUNTER_WORD["queued"])
        credit = code.load(layout.clock, CLOCK_WORD["credit"])
        serves = builder.and_(
            builder.icmp_signed(">", queued, none),
            builder.icmp_signed(">", credit, code.word(0)),
        )
        builder.cbranch(serves, grant, done)
        builder.position_at_end(grant)
        head = code.load(layout.counters, COUNTER_WORD["head"])
        pe = code.load(layout.ring, head)
        next_head = builder.add(head, integer(1, I32))
        over = builder.icmp_signed("==", next_head, integer(layout.ring.shape[0], I32))
        code.store(builder.select(over, none, next_head), layout.counters, COUNTER_WORD["head"])
        code.add(-1, layout.counters, COUNTER_WORD["queued"])
        cost = builder.mul(builder.sext(code.load(layout.moving, pe), I64), code.word(unit))
        code.store(builder.sub(credit, cost), layout.clock, CLOCK_WORD["credit"])
        code.store(none, layout.waiting, pe)
        code.store(integer(1, I32), layout.granted, pe)
        builder.branch(look)
        builder.position_at_end(done)

    def _empty_stalls(self, tick: Value) -> None:
        """Add the stall counters to the totals before they overflow."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        period = min(layout.most, 1 << 20)
        due = builder.icmp_signed("==", builder.srem(tick, integer(period, I32)), integer(0, I32))
        code = code.of(VECTOR_BYTES * 8 // layout.bits)
        wide = vector_type(I64, code.lanes)
        with (
            builder.if_then(due, rare=True),
            code.counting(layout.stalls.shape[0], step=code.lanes) as at,
        ):
            counts = builder.sext(code.load_vector(layout.stalls, at), wide)
            address = code.address(layout.totals, at)
            total = builder.load(address, wide, align=8)
            builder.store(builder.add(total, counts), address, align=8)
            code.store_vector(code.splat(0), layout.stalls, at)

    def _reason(self, tick: Value, until: Value) -> Value:
        """The reason to stop after this cycle; -1 to go on."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        now = builder.sext(tick, I64)
        event = code.load(layout.clock, CLOCK_WORD["event"])
        code.store(event, layout.clock, CLOCK_WORD["happened"])
        code.store(code.word(-1), layout.clock, CLOCK_WORD["event"])
        deepest = code.load(layout.clock, CLOCK_WORD["deepest"])
        happened = builder.and_(
            builder.icmp_signed(">=", event, code.word(0)),
            builder.icmp_signed("<=", event, deepest),
        )
        idle = builder.sub(now, code.load(layout.clock, CLOCK_WORD["progress"]))
        nobody = builder.icmp_signed(
            "==", code.load(layout.counters, COUNTER_WORD["queued"]), integer(0, I32)
        )
        stuck = builder.and_(nobody, builder.icmp_signed(">", idle, code.word(self._patience)))
        unfinished = code.load(layout.clock, CLOCK_WORD["unfinished"])
        reason = code.word(-1)
        for holds, value in (
            (happened, Stop.EVENT),
            (builder.icmp_signed(">=", now, until), Stop.UNTIL),
            (stuck, Stop.STUCK),
            (builder.icmp_signed("==", unfinished, code.word(0)), Stop.FINISHED),
        ):
            reason = builder.select(holds, code.word(int(value)), reason)
        return reason


# The code of one cycle of a node: the lanes that fire, and their tokens.
#
# All ports are read as they were at the start of the cycle, so nodes may come in any order: moves
# are noted in ``PortMemory.moved`` and reach the other side in a later cycle.

COUNTER_WORD = {name: number for number, name in enumerate(COUNTERS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPort:
    """The limits of a node's memory accesses: shared bandwidth (credit per byte), and stalls."""

    unit: int | None
    stalls: RandomStalls | None

    @property
    def exists(self) -> bool:
        """Whether the node may have to wait for memory."""
        return self.unit is not None or self.stalls is not None


class NodeEmitter:
    """Emits a cycle of one node into the run function."""

    def __init__(
        self,
        code: Code,
        node: NodePlan,
        memory: NodeMemory,
        port: MemoryPort,
        walk: LLVMFunction,
        tick: Value,
    ) -> None:
        self._code = code.of(memory.lanes)
        self._node = node
        self._memory = memory
        self._port = port
        self._walk = walk
        self._tick = tick

    @property
    def _ports(self) -> list[tuple[LanePort, PortMemory]]:
        return list(zip(self._node.ports, self._memory.ports, strict=True))

    def emit(self) -> None:
        """One cycle of all lanes."""
        code = self._code
        for port, memory in self._ports:
            if not port.regular:
                self._refuse(memory)
        with code.counting(self._memory.padded, step=code.lanes) as lane:
            self._vector(lane)

    def _refuse(self, memory: PortMemory) -> None:
        """The lanes that the counters of an irregular port keep from firing."""
        code, builder = self._code, self._code.builder
        with code.counting(self._node.lanes) as lane:
            count = code.load(memory.count, code.load(memory.position, lane))
            empty = builder.icmp_signed("==", count, integer(0, code.counter))
            refused = builder.and_(builder.sext(empty, code.counter), code.load(memory.use, lane))
            code.store(refused, memory.refused, lane)

    def _move(self, port: LanePort, memory: PortMemory, fire: Value, lane: Value) -> None:
        """Move the tokens of the firing lanes of a vector at an irregular port."""
        code, builder = self._code, self._code.builder
        with code.lanes_of(code.bits(fire)) as number:
            current = builder.add(lane, number)
            used = code.load(memory.use, current)
            with builder.if_then(builder.icmp_signed("!=", used, integer(0, code.counter))):
                at = code.load(memory.position, current)
                code.add(-1, memory.count, at)
                slot = code.load(memory.slot) if port.sends else None
                code.store(integer(-1, code.counter), memory.moved, at, slot)

    def _vector(self, lane: Value) -> None:
        """One vector of lanes, from number ``lane`` on."""
        code, builder, memory = self._code, self._code.builder, self._memory
        left = code.load_vector(memory.left, lane)
        active = code.not_zero(left)
        counts, refused = self._refusals(lane)
        ready = active
        for refusal in refused:
            ready = builder.and_(ready, builder.not_(refusal))
        running = None
        if self._node.interval > 1:
            wait = code.load_vector(memory.wait, lane)
            running = code.is_zero(wait)
            ready = builder.and_(ready, running)
        fire = self._served(ready, lane) if self._port.exists else ready
        fired = code.mask(fire)
        after = builder.add(left, fired)
        code.store_vector(after, memory.left, lane)
        for (port, port_memory), count in zip(self._ports, counts, strict=True):
            if count is not None:
                moved = builder.and_(code.load_vector(port_memory.use, lane), fired)
                code.store_vector(builder.add(count, moved), port_memory.count, lane)
                slot = code.load(port_memory.slot) if port.sends else None
                code.store_vector(moved, port_memory.moved, lane, slot)
            else:
                self._move(port, port_memory, fire, lane)
        if running is not None:
            passed = builder.sub(wait, builder.zext(builder.not_(running), code.vector))
            full = code.splat(self._node.interval - 1)
            code.store_vector(builder.select(fire, full, passed), memory.wait, lane)
        started = code.load_vector(memory.started, lane)
        stalled = builder.and_(builder.and_(active, builder.not_(fire)), code.not_zero(started))
        if running is not None:
            stalled = builder.and_(stalled, running)
        self._count_stalls(stalled, refused, lane)
        self._note(fire, fired, started, after, lane)

    def _refusals(self, lane: Value) -> tuple[list[Value | None], list[Value]]:
        """Counters of regular ports, and for each port the lanes that it keeps from firing."""
        code, builder = self._code, self._code.builder
        counts: list[Value | None] = []
        refused: list[Value] = []
        for port, memory in self._ports:
            if port.regular:
                count = code.load_vector(memory.count, lane)
                used = code.not_zero(code.load_vector(memory.use, lane))
                counts.append(count)
                refused.append(builder.and_(code.is_zero(count), used))
            else:
                counts.append(None)
                refused.append(code.not_zero(code.load_vector(memory.refused, lane)))
        return counts, refused

    def _count_stalls(self, stalled: Value, refused: list[Value], lane: Value) -> None:
        """Attribute a stalled cycle to the first port that refuses, else to memory."""
        code, builder = self._code, self._code.builder
        for refusal, memory in zip(refused, self._memory.ports, strict=True):
            blamed = builder.and_(stalled, refusal)
            count = code.load_vector(memory.stall, lane)
            code.store_vector(builder.sub(count, code.mask(blamed)), memory.stall, lane)
            stalled = builder.and_(stalled, builder.not_(refusal))
        if self._port.exists:
            count = code.load_vector(self._memory.memory_stall, lane)
            counted = builder.sub(count, code.mask(stalled))
            code.store_vector(counted, self._memory.memory_stall, lane)

    def _note(self, fire: Value, fired: Value, started: Value, after: Value, lane: Value) -> None:
        """The bookkeeping of the lanes that fire; rare cases are handled one by one."""
        code, builder, memory = self._code, self._code.builder, self._memory
        bits = code.bits(fire)
        any_fired = builder.icmp_signed("!=", bits, code.word(0))
        with builder.if_then(any_fired):
            wide = vector_type(I32, code.lanes)
            last = builder.load(code.address(memory.last, lane), wide, align=4)
            latest = builder.select(fire, builder.splat(self._tick, code.lanes), last)
            builder.store(latest, code.address(memory.last, lane), align=4)
            tick = builder.sext(self._tick, I64)
            code.store(tick, code.layout.clock, CLOCK_WORD["progress"])
            if self._node.stores.any():
                storing = builder.and_(fire, code.not_zero(code.load_vector(memory.storing, lane)))
                any_stored = builder.icmp_signed("!=", code.bits(storing), code.word(0))
                now = builder.add(tick, code.load(code.layout.clock, CLOCK_WORD["base"]))
                before = code.load(code.layout.clock, CLOCK_WORD["last_store"])
                latest = builder.select(any_stored, now, before)
                code.store(latest, code.layout.clock, CLOCK_WORD["last_store"])
            new = code.bits(builder.and_(fire, code.is_zero(started)))
            used_up = code.bits(builder.and_(fire, code.is_zero(after)))
            rare = builder.icmp_signed("!=", builder.or_(new, used_up), code.word(0))
            with builder.if_then(rare):
                code.store_vector(builder.or_(started, fired), memory.started, lane)
                first = integer(self._node.timing.first, I32)
                now = builder.add(tick, code.load(code.layout.clock, CLOCK_WORD["base"]))
                with code.lanes_of(new) as number:
                    pe = builder.add(builder.add(lane, number), first)
                    code.store(now, code.layout.first, pe)
                with code.lanes_of(used_up) as number:
                    builder.call(self._walk, [code.arena, builder.add(lane, number)])

    def _served(self, ready: Value, lane: Value) -> Value:
        """The ready lanes that stalls and the shared bandwidth allow to fire."""
        code, builder = self._code, self._code.builder
        asking = ready
        if self._port.stalls is not None:
            asking = self._unstalled(ready, self._port.stalls, lane)
        if self._port.unit is None:
            return asking
        fire = code.variable(I64)
        builder.store(code.word(0), fire)
        asks = code.bits(asking)
        with code.lanes_of(code.bits(ready)) as number:
            pe = builder.add(builder.add(lane, number), integer(self._node.timing.first, I32))
            bit = builder.shl(code.word(1), builder.zext(number, I64))
            asked = builder.icmp_signed("!=", builder.and_(asks, bit), code.word(0))
            served = self._grant(pe, asked)
            fires = builder.select(served, bit, code.word(0))
            builder.store(builder.or_(builder.load(fire, I64), fires), fire)
        packed = builder.load(fire, I64)
        if code.lanes < 64:
            packed = builder.trunc(packed, integer_type(code.lanes))
        return builder.bitcast(packed, ready.type)

    def _grant(self, pe: Value, asked: Value) -> Value:
        """Whether a ready PE fires: it moves no bytes, was served, or is served at once.

        Otherwise it joins the queue, if it is not in it.
        """
        code, builder, layout = self._code, self._code.builder, self._code.layout
        none = integer(0, I32)
        served = code.variable(I1)
        moving, waiting = code.load(layout.moving, pe), code.load(layout.waiting, pe)
        free = builder.icmp_signed("==", moving, none)
        was_granted = builder.icmp_signed("!=", code.load(layout.granted, pe), none)
        builder.store(builder.or_(builder.and_(free, asked), was_granted), served)
        code.store(none, layout.granted, pe)
        joins = builder.and_(
            builder.and_(asked, builder.not_(free)),
            builder.and_(builder.not_(was_granted), builder.icmp_signed("==", waiting, none)),
        )
        with builder.if_then(joins):
            credit = code.load(layout.clock, CLOCK_WORD["credit"])
            queued = code.load(layout.counters, COUNTER_WORD["queued"])
            at_once = builder.and_(
                builder.icmp_signed("==", queued, none),
                builder.icmp_signed(">", credit, code.word(0)),
            )
            now, later, after = (code.function.block(name) for name in ("now", "later", "after"))
            builder.cbranch(at_once, now, later)
            builder.position_at_end(now)
            cost = builder.mul(builder.sext(moving, I64), code.word(self._port.unit or 0))
            code.store(builder.sub(credit, cost), layout.clock, CLOCK_WORD["credit"])
            builder.store(integer(1, I1), served)
            builder.branch(after)
            builder.position_at_end(later)
            head = code.load(layout.counters, COUNTER_WORD["head"])
            end = builder.add(head, queued)
            size = integer(layout.ring.shape[0], I32)
            inside = builder.icmp_signed("<", end, size)
            code.store(pe, layout.ring, builder.select(inside, end, builder.sub(end, size)))
            code.add(1, layout.counters, COUNTER_WORD["queued"])
            code.store(integer(1, I32), layout.waiting, pe)
            builder.branch(after)
            builder.position_at_end(after)
        return builder.load(served, I1)

    def _unstalled(self, ready: Value, stalls: RandomStalls, lane: Value) -> Value:
        """The ready lanes that are not stalled; note stalls, which are not deadlocks."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        waits = builder.icmp_signed("!=", code.bits(ready), code.word(0))
        before = builder.block
        with builder.if_then(waits):
            now = builder.sext(self._tick, I64)
            code.store(now, layout.clock, CLOCK_WORD["progress"])
            free = builder.and_(ready, builder.not_(self._stalled(stalls, lane)))
            inside = builder.block
        unstalled = builder.phi(ready.type)
        unstalled.add_incoming(ready, before)
        unstalled.add_incoming(free, inside)
        return unstalled

    def _stalled(self, stalls: RandomStalls, lane: Value) -> Value:
        """The lanes that ``RandomStalls.holds`` back in this cycle."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        wide = vector_type(I32, code.lanes)

        def constant(number: int) -> Value:
            return integer(number & WORD, wide)

        base = code.load(layout.clock, CLOCK_WORD["base"])
        cycle = builder.add(builder.trunc(base, I32), self._tick)
        first = self._node.timing.first
        numbers = constant_vector(range(first, first + code.lanes), I32)
        instances = builder.add(numbers, builder.splat(lane, code.lanes))
        mixed = builder.add(
            builder.mul(instances, constant(INSTANCE_FACTOR)),
            builder.mul(builder.splat(cycle, code.lanes), constant(CYCLE_FACTOR)),
        )
        mixed = builder.add(mixed, constant(stalls.seed * SEED_FACTOR))
        mixed = builder.xor(mixed, builder.lshr(mixed, constant(16)))
        mixed = builder.mul(mixed, constant(FIRST_MIX))
        mixed = builder.xor(mixed, builder.lshr(mixed, constant(15)))
        mixed = builder.mul(mixed, constant(SECOND_MIX))
        mixed = builder.xor(mixed, builder.lshr(mixed, constant(16)))
        left = builder.urem(mixed, constant(stalls.one_in))
        return builder.icmp_unsigned("==", left, constant(0))


# The function that moves a PE to the next run of its firings.
#
# ``walk(arena, lane)`` is called when a lane has used up its firings.  It refills the lane from the
# rest of the run, or moves to the next run: the next iterations of the innermost axis, with carries
# into the outer ones; their classes determine the code, the row, and the use of each port.

CLOCK_WORD = {name: number for number, name in enumerate(CLOCK)}


def emit_walk(module: Module, layout: ArenaLayout, node: NodePlan, number: int) -> LLVMFunction:
    """Add the function of a node to a module."""
    function = module.function(
        f"walk{number}", VOID, [POINTER, I32], attributes="nounwind noinline"
    )
    code = Code(layout, function, Builder(function))
    _WalkEmitter(code, node, layout.nodes[number], number).emit()
    return function


class _WalkEmitter:
    def __init__(self, code: Code, node: NodePlan, memory: NodeMemory, number: int) -> None:
        self._code = code
        self._node = node
        self._memory = memory
        self._number = number
        builder = code.builder
        self._lane = code.function.args[1]
        self._pe = builder.add(self._lane, integer(node.timing.first, I32))
        self._words = code.layout.pes.shape[1]
        self._record = builder.mul(builder.sext(self._pe, I64), code.word(self._words))
        self._level, self._index = builder.alloca(I64), builder.alloca(I64)

    def emit(self) -> None:
        code, builder = self._code, self._code.builder
        block = code.function.block
        fill, onward, move, finished = (
            block(name) for name in ("fill", "onward", "move", "finished")
        )
        rest = self._get(REST)
        builder.store(self._axes(), self._level)
        builder.cbranch(builder.icmp_signed(">", rest, code.word(0)), fill, onward)
        builder.position_at_end(onward)
        remaining = self._get(REMAINING)
        builder.cbranch(builder.icmp_signed(">", remaining, code.word(0)), move, finished)
        builder.position_at_end(finished)
        code.add(-1, code.layout.clock, CLOCK_WORD["unfinished"])
        builder.ret_void()
        builder.position_at_end(move)
        self._carry()
        self._new_run(remaining)
        builder.branch(fill)
        builder.position_at_end(fill)
        rest = self._get(REST)
        most = code.word(code.layout.chunk)
        filled = builder.select(builder.icmp_signed("<", rest, most), rest, most)
        self._set(REST, builder.sub(rest, filled))
        narrow = builder.trunc(filled, code.counter)
        code.store(narrow, self._memory.left, self._lane)
        watched = code.load(code.layout.clock, CLOCK_WORD["watched"])
        with builder.if_then(
            builder.icmp_signed("==", watched, builder.sext(self._pe, I64)), rare=True
        ):
            code.store(builder.load(self._level, I64), code.layout.clock, CLOCK_WORD["event"])
        builder.ret_void()

    def _get(self, word: int) -> Value:
        return self._code.load(self._code.layout.pes, self._at(self._code.word(word)))

    def _set(self, word: int, value: Value) -> None:
        self._code.store(value, self._code.layout.pes, self._at(self._code.word(word)))

    def _at(self, word: Value) -> Value:
        return self._code.builder.add(self._record, word)

    def _pool(self, position: Value, offset: int = 0) -> Value:
        at = self._code.builder.add(position, self._code.word(offset)) if offset else position
        return self._code.load(self._code.layout.pool, at)

    def _axes(self) -> Value:
        return self._pool(self._get(WALK), WALK_AXES)

    def _position_of(self, axis: Value) -> Value:
        """The position in the records of an axis's iteration."""
        return self._at(self._code.builder.add(axis, self._code.word(POSITION)))

    def _run_length(self, walk: Value, axes: Value) -> Value:
        """The number of equal iterations from the current innermost one on."""
        code, builder = self._code, self._code.builder
        innermost = builder.sub(axes, code.word(1))
        at = code.load(code.layout.pes, self._position_of(innermost))
        return self._pool(builder.add(self._pool(walk, WALK_RUNS), at))

    def _carry(self) -> None:
        """Step past the run, carrying into outer axes; return the last axis changed."""
        code, builder = self._code, self._code.builder
        walk = self._get(WALK)
        axes = self._axes()
        first_step = self._run_length(walk, axes)
        innermost = builder.sub(axes, code.word(1))
        before = builder.block
        turn, wrap, done = (code.function.block(name) for name in ("turn", "wrap", "done"))
        builder.branch(turn)
        builder.position_at_end(turn)
        axis, step = builder.phi(I64), builder.phi(I64)
        axis.add_incoming(innermost, before)
        step.add_incoming(first_step, before)
        position = self._position_of(axis)
        moved = builder.add(code.load(code.layout.pes, position), step)
        header = builder.add(walk, builder.mul(axis, code.word(2)))
        inside = builder.icmp_signed("<", moved, self._pool(header, WALK_FIRST))
        code.store(builder.select(inside, moved, code.word(0)), code.layout.pes, position)
        builder.cbranch(inside, done, wrap)
        builder.position_at_end(wrap)
        axis.add_incoming(builder.sub(axis, code.word(1)), wrap)
        step.add_incoming(code.word(1), wrap)
        builder.branch(turn)
        builder.position_at_end(done)
        builder.store(axis, self._level)

    def _new_run(self, remaining: Value) -> None:
        """Set up the run at the current iterations: its length and its row."""
        code, builder = self._code, self._code.builder
        walk, axes = self._get(WALK), self._axes()
        builder.store(self._pool(walk, WALK_CODES), self._index)
        with code.counting(axes, kind=I64) as axis:
            header = builder.add(walk, builder.mul(axis, code.word(2)))
            classes = self._pool(header, WALK_FIRST + 1)
            at = code.load(code.layout.pes, self._position_of(axis))
            term = self._pool(builder.add(classes, at))
            so_far = builder.load(self._index, I64)
            builder.store(builder.add(so_far, term), self._index)
        run = builder.mul(self._run_length(walk, axes), self._pool(walk, WALK_REPEAT))
        run = builder.select(builder.icmp_signed("<", run, remaining), run, remaining)
        self._set(REST, run)
        self._set(REMAINING, builder.sub(remaining, run))
        row = builder.add(self._get(ROW), self._pool(builder.load(self._index, I64)))
        self._do(row)

    def _do(self, row: Value) -> None:
        """Copy the port usage of a row into the lane."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        zero, minus = integer(0, code.counter), integer(-1, code.counter)
        for port, memory, table in zip(
            self._node.ports, self._memory.ports, layout.tables[self._number], strict=True
        ):
            position = code.load(table, row)
            used = builder.icmp_signed(">=", position, integer(0, I32))
            code.store(builder.select(used, minus, zero), memory.use, self._lane)
            if not port.regular:
                safe = builder.select(used, position, integer(0, I32))
                code.store(safe, memory.position, self._lane)
        if self._node.moved.any():
            code.store(code.load(layout.moved[self._number], row), layout.moving, self._pe)
        if self._node.stores.any():
            stores = builder.icmp_signed(
                "!=", code.load(layout.stores[self._number], row), integer(0, I8)
            )
            code.store(builder.select(stores, minus, zero), self._memory.storing, self._lane)
