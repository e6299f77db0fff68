"""The array engine's code for a program: ``run(arena, until)``.

A cycle is: what was sent ``latency`` cycles ago reaches the receivers and what was received in the
last cycle the senders; memory earns credit and serves its queue; every node fires the lanes that
can.  ``run`` returns why it stopped, a ``Stop``.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import Any

from t2s.core.collector import without_collections
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import I32, I64, POINTER, Module, Value, integer, vector_type
from t2s.simulator.random_stalls import RandomStalls
from t2s.simulator.times.array.arena import VECTOR_BYTES, ArenaLayout, PortMemory
from t2s.simulator.times.array.code import Code
from t2s.simulator.times.array.emit_node import COUNTER_WORD, MemoryPort, NodeEmitter
from t2s.simulator.times.array.emit_walk import CLOCK_WORD, emit_walk
from t2s.simulator.times.array.plan import ArrayPlan, Transfer

_UNROLLED = 16
"""Elements that are moved one by one without a loop."""


class Stop(IntEnum):
    """Why the code returned."""

    UNTIL = 0
    FINISHED = 1
    STUCK = 2
    EVENT = 3


@without_collections()
def emit_run(plan: ArrayPlan, layout: ArenaLayout, patience: int) -> str:
    """The module as text; ``patience`` cycles without a firing are a deadlock."""
    module = Module()
    walks = [emit_walk(module, layout, node, at) for at, node in enumerate(plan.nodes)]
    for walk in walks:
        walk.internal = True
    run = module.function("run", I64, [POINTER, I64], attributes="nounwind")
    code = Code(layout, run, Builder(run))
    _RunEmitter(plan, code, walks, patience).emit()
    return str(module)


def key_of(plan: ArrayPlan, layout: ArenaLayout, patience: int) -> str:
    """All that the text of ``emit_run`` depends on, besides the code that writes it."""
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
    # the pool of walks comes last, and how long it is follows from trip counts, which are data
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
        found: dict[bool, PortMemory] = {}
        for node, memory in zip(self._plan.nodes, self._code.layout.nodes, strict=True):
            for port, here in zip(node.ports, memory.ports, strict=True):
                if port is transfer.source or port is transfer.sink:
                    found[port.sends] = here
        return found[True], found[False]

    def _transfer(self, transfer: Transfer) -> None:
        """Tokens to the receiver and space to the sender."""
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
        """One element: the notes are wiped out, for irregular ports do not overwrite them."""
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
        """The next cycle's row of what senders note."""
        code, builder = self._code, self._code.builder
        for node, memory in zip(self._plan.nodes, code.layout.nodes, strict=True):
            for port, here in zip(node.ports, memory.ports, strict=True):
                rows = here.moved.shape[0]
                if port.sends and rows > 1:
                    turned = builder.add(code.load(here.slot), integer(here.row_bytes, I32))
                    end = integer(rows * here.row_bytes, I32)
                    over = builder.icmp_signed("==", turned, end)
                    code.store(builder.select(over, integer(0, I32), turned), here.slot)

    def _earn(self, rate: int) -> None:
        """Credit for one cycle, never more than that much."""
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
        """Why to stop after this cycle; -1 to go on."""
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
