"""The code of one cycle of a node: which lanes fire, and what they take and put.

All ports are looked at as they were at the start of the cycle, so nodes may come in any order: what
is taken and put is noted (``PortMemory.moved``) and reaches the other side in a later cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.simulator.emit.llvm import (
    I1,
    I32,
    I64,
    LLVMFunction,
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
from t2s.simulator.times.array.arena import COUNTERS, NodeMemory, PortMemory
from t2s.simulator.times.array.code import Code
from t2s.simulator.times.array.emit_walk import CLOCK_WORD
from t2s.simulator.times.array.plan import LanePort, NodePlan

COUNTER_WORD = {name: number for number, name in enumerate(COUNTERS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPort:
    """What stands between a node and memory: a shared bandwidth (credit per byte), and stalls."""

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
        """Which lanes the counters of an irregular port do not let fire."""
        code, builder = self._code, self._code.builder
        with code.counting(self._node.lanes) as lane:
            count = code.load(memory.count, code.load(memory.position, lane))
            empty = builder.icmp_signed("==", count, integer(0, code.counter))
            refused = builder.and_(builder.sext(empty, code.counter), code.load(memory.use, lane))
            code.store(refused, memory.refused, lane)

    def _move(self, port: LanePort, memory: PortMemory, fire: Value, lane: Value) -> None:
        """Take or put what the firing lanes of a vector do at an irregular port."""
        code, builder = self._code, self._code.builder
        with code.lanes_of(code.bits(fire)) as number:
            here = builder.add(lane, number)
            used = code.load(memory.use, here)
            with builder.if_then(builder.icmp_signed("!=", used, integer(0, code.counter))):
                at = code.load(memory.position, here)
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
        for (port, here), count in zip(self._ports, counts, strict=True):
            if count is not None:
                moved = builder.and_(code.load_vector(here.use, lane), fired)
                code.store_vector(builder.add(count, moved), here.count, lane)
                slot = code.load(here.slot) if port.sends else None
                code.store_vector(moved, here.moved, lane, slot)
            else:
                self._move(port, here, fire, lane)
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
        """Counters of regular ports, and per port the lanes that it does not let fire."""
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
        """A stalled cycle belongs to the first port that refuses, else to memory."""
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
        """The bookkeeping of the lanes that fire; what is rare is done one by one."""
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
        """The ready lanes that stalls and the shared bandwidth let fire."""
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
        """Whether a ready PE fires: it moves nothing, was served, or is served at once.

        Else, if it asks and is not in the queue, it joins.
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
        """The ready lanes that are not stalled; a stall that holds one is no deadlock."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        waits = builder.icmp_signed("!=", code.bits(ready), code.word(0))
        before = builder.block
        with builder.if_then(waits):
            now = builder.sext(self._tick, I64)
            code.store(now, layout.clock, CLOCK_WORD["progress"])
            free = builder.and_(ready, builder.not_(self._stalled(stalls, lane)))
            inside = builder.block
        found = builder.phi(ready.type)
        found.add_incoming(ready, before)
        found.add_incoming(free, inside)
        return found

    def _stalled(self, stalls: RandomStalls, lane: Value) -> Value:
        """Which lanes ``RandomStalls.holds`` back in this cycle."""
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
