"""Bursts in LLVM: many firings of a machine at once (see ``spans``).

The shape of the code, at the beginning of a mode::

    if all heads of the burst are there:
        count: the least of its spans, of the space in its outputs, of the firings allowed
        if its conditions hold, and count is not small:
            its values, eight at a time; the rest of them one by one
            take and put spans, change registers, note the rule in the trace
            go to the mode again
    single: one firing, as without bursts

Values are computed in the order of the firings, each with the operations of a single firing, so
that all bits are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from t2s.core.expr import Expr, Local, apply, equals, select
from t2s.core.expr import zero as zero_of
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Load, RegisterWrite, Store
from t2s.graph.nodes import VALUE, Head, MemoryAdd, MemoryFirst, Put
from t2s.llvm.expressions import load_value, offset_by, register_type, store_value, zero
from t2s.llvm.ir import I1, I32, I64, BasicBlock, Builder, Slot, Value, integer, null
from t2s.simulator.values.emit_frame import NodeContext, StreamPort, smaller
from t2s.simulator.values.emit_memory import MemoryEmitter
from t2s.simulator.values.span_ports import Places, SpanPort
from t2s.simulator.values.spans import Burst, Carried, Change
from t2s.simulator.values.vectors import LANES, fits_lanes, for_lanes, has_lanes, varies_with

_SUM = "the sum in the row"
_SHORT = 4
"""Fewer firings are made one by one."""

Port = StreamPort | SpanPort


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sink:
    """Where a value of every firing goes; ``fits``: whether eight may be stored at once."""

    value: Expr
    places: Places
    fits: Value


class BurstEmitter:
    """Emits one rule of a machine as a burst; the methods are called in the order below."""

    def __init__(
        self,
        context: NodeContext,
        burst: Burst,
        heads: Mapping[str, Head],
        inputs: Mapping[str, Port],
        outputs: Mapping[str, Port],
        registers: Mapping[str, tuple[Slot, Type]],
        memories: Mapping[str, MemoryEmitter],
    ) -> None:
        self._context, self._burst = context, burst
        self._builder: Builder = context.builder
        self._rule = burst.path.rule
        self._heads, self._inputs, self._outputs = heads, inputs, outputs
        self._registers, self._memories = registers, memories
        self._lines: dict[str, tuple[Value, Value]] = {}
        self._places: dict[str, tuple[Type, Places]] = {}
        self._count: Value

    # -- whether, and how many ----------------------------------------------------------------

    def emit_checks(self, allowed: Value, single: BasicBlock) -> Value:
        """Go to ``single`` unless the burst is possible; return the number of firings."""
        context, builder, path = self._context, self._builder, self._burst.path
        count = allowed
        for channel in path.needs:
            self._or_single(builder.not_(self._inputs[channel].exhausted()), single)
        for channel in self._rule.takes:
            count = smaller(builder, count, self._span(channel).left())
        self._or_single(builder.icmp_signed(">=", count, integer(_SHORT)), single)
        for channel in path.needs:
            self._bind_head(channel)
        for register in self._burst.counters:
            step = integer(self._burst.counters[register], I32)
            self._lines[register] = (self._context.names[register], step)
        if self._burst.drops is not None:
            points, _ = self._memories[self._burst.drops].row()
            count = smaller(builder, count, points)
            self._or_single(builder.icmp_signed(">=", count, integer(_SHORT)), single)
        holds = self._go_on_alike(count)
        for choice, conditions in self._burst.conditions:
            for expr, expected in conditions:
                value = context.expressions.emit(expr)
                holds = builder.and_(holds, value if expected else builder.not_(value))
            for statement in choice.body:
                self._bind_fixed(statement)
        for write in self._burst.settled:
            old = context.names[write.register]
            new = context.expressions.emit(write.value)
            same = context.expressions.apply(Op.EQUAL, write.value.type, [old, new])
            holds = builder.and_(holds, same)
        self._or_single(holds, single)
        if self._burst.bound is not None:
            register, limit = self._burst.bound
            left = builder.sub(
                context.expressions.wide(limit),
                context.expressions.wide(Local(name=register, type=INT32)),
            )
            count = smaller(builder, count, left)
        for put in self._rule.puts:
            port = self._outputs[put.channel]
            if isinstance(port, SpanPort) and self._is_written(put):
                count = smaller(builder, count, port.straight())
        self._or_single(builder.icmp_signed(">=", count, integer(_SHORT)), single)
        self._count = count
        self._emit_accesses(single)
        return count

    def _go_on_alike(self, count: Value) -> Value:
        """Whether compared heads go on by one distance, without an overflow."""
        builder, alike = self._builder, integer(1, I1)
        lines = [self._lines[name] for name in self._burst.compared]
        for first, step in lines:
            alike = builder.and_(alike, builder.icmp_signed("==", step, lines[0][1]))
            distance = builder.mul(count, builder.sext(step, I64))
            last = builder.add(builder.sext(first, I64), distance)
            narrow = builder.sext(builder.trunc(last, I32), I64)
            alike = builder.and_(alike, builder.icmp_signed("==", last, narrow))
        return alike

    def _or_single(self, holds: Value, single: BasicBlock) -> None:
        go = self._context.block("burst")
        self._builder.cbranch(holds, go, single)
        self._builder.position_at_end(go)

    def _span(self, channel: str) -> SpanPort:
        port = self._inputs[channel]
        assert isinstance(port, SpanPort)
        return port

    def _bind_head(self, channel: str) -> None:
        """Bind the names of a head in the first firing; note how its value goes on."""
        head, port = self._heads[channel], self._inputs[channel]
        value, tag = port.head()
        self._context.names[head.value] = value
        if head.tag is not None:
            self._context.names[head.tag] = tag
        if channel not in self._rule.takes:
            return
        span = self._span(channel)
        if span.form is Carried.LINEAR:
            self._lines[head.value] = span.line()
        else:
            self._places[head.value] = span.channel.stream.element, span.places()

    def _bind_fixed(self, statement: object) -> None:
        match statement:
            case Let(target=target, value=value):
                known = self._burst.changes[target], self._burst.shifts[target]
                if min(known) is not Change.VARIED:
                    self._context.names[target] = self._context.expressions.emit(value)
            case MemoryFirst(targets=targets, value=value, memory=memory):
                emitter = self._memories[memory]
                coordinates, _ = emitter.first()
                self._context.names.update(zip(targets, coordinates, strict=True))
                self._lines[targets[-1]] = coordinates[-1], integer(1, I32)
                self._places[value] = emitter.memory.type, emitter.row()[1]

    def _is_written(self, put: Put) -> bool:
        """Whether the values of a put are stored one after the other."""
        return self._burst.change(put.value) is Change.VARIED and self._loaded(put) is None

    def _loaded(self, put: Put) -> Load | None:
        """The load whose result a put passes on."""
        match put.value:
            case Local(name=name):
                loads = (s for s in self._burst.path.statements if isinstance(s, Load))
                return next((s for s in loads if s.target == name), None)
        return None

    # -- memory -------------------------------------------------------------------------------

    def _emit_accesses(self, single: BasicBlock) -> None:
        """Find where all loads and stores go; those out of bounds are left to single firings."""
        self._bind(integer(0), varied=False)
        last = self._builder.sub(self._count, integer(1))
        for statement in self._burst.path.statements:
            match statement:
                case Load(target=target, tensor=tensor, indices=(index,)):
                    places = self._accessed(tensor, index, last, single, stores=False)
                    self._places[target] = statement.type, places
        self._store: Places | None = None
        for statement in self._rule.body:
            match statement:
                case Store(tensor=tensor, indices=(index,)):
                    self._store = self._accessed(tensor, index, last, single, stores=True)

    def _accessed(
        self, tensor: str, index: Expr, last: Value, single: BasicBlock, *, stores: bool
    ) -> Places:
        context, builder = self._context, self._builder
        declared = context.graph.tensor(tensor)
        first, step = self._line_of(index)
        wide = builder.sext(first, I64)
        distance = builder.sext(step, I64)
        final = builder.add(wide, builder.mul(last, distance))
        most = integer(prod(declared.allocated))
        if declared.open:
            place = context.address(context.layout.extent(tensor), 1 if stores else 0)
            most = builder.load(place, I64)
        for at in wide, final:
            self._or_single(builder.icmp_unsigned("<", at, most), single)
        if declared.open and stores:
            length = context.address(context.layout.extent(tensor))
            ahead = builder.icmp_signed(">", final, wide)
            end = builder.add(builder.select(ahead, final, wide), integer(1))
            longer = builder.icmp_signed(">", end, builder.load(length, I64))
            builder.store(builder.select(longer, end, builder.load(length, I64)), length)
        bytes = declared.type.scalar.bytes
        start = context.pointer(context.layout.tensor(tensor))
        address = offset_by(builder, start, context.scaled(wide, bytes))
        return Places(address=address, stride=context.scaled(distance, bytes))

    # -- names --------------------------------------------------------------------------------

    def _bind(self, at: Value, *, varied: bool) -> None:
        """Bind all names to what they are in the firing number ``at``; ``varied``: others, too."""
        builder, names = self._builder, self._context.names
        number = builder.trunc(at, I32)
        for name, (first, step) in self._lines.items():
            names[name] = builder.add(first, builder.mul(number, step))
        if varied:
            for name, (type, places) in self._places.items():
                names[name] = self._value_at(type, places, at)
            for register in self._burst.sequential:
                slot, _ = self._registers[register]
                names[register] = builder.load(slot, slot.kept)
        for statement in self._burst.path.statements:
            match statement:
                case Let(target=target, value=value):
                    if varied or self._burst.changes[target] is not Change.VARIED:
                        names[target] = self._context.expressions.emit(value)

    def _value_at(self, type: Type, places: Places, at: Value) -> Value:
        distance = self._builder.mul(at, places.stride)
        where = self._builder.offset(places.address, distance)
        return load_value(self._builder, where, type, type.bytes)

    def _line_of(self, expr: Expr) -> tuple[Value, Value]:
        """The first value of a linear or fixed expression, and the step."""
        emit = self._context.expressions.emit
        self._bind(integer(1), varied=False)
        second = emit(expr)
        self._bind(integer(0), varied=False)
        first = emit(expr)
        return first, self._builder.sub(second, first)

    # -- the firings --------------------------------------------------------------------------

    def emit(self) -> None:
        """All firings: values, registers, and tokens, but not the trace."""
        builder, count = self._builder, self._count
        self._emit_values()
        self._bind(integer(0), varied=False)
        for put in self._rule.puts:
            port = self._outputs[put.channel]
            if isinstance(port, SpanPort):
                self._emit_span(port, put)
        for channel in self._rule.takes:
            self._span(channel).take_many(count)
        for register, by in self._burst.counters.items():
            slot, _ = self._registers[register]
            first, _ = self._lines[register]
            more = builder.mul(builder.trunc(count, I32), integer(by, I32))
            builder.store(builder.add(first, more), slot)
        if self._burst.drops is not None:
            self._memories[self._burst.drops].drop_row(count)

    def _emit_values(self) -> None:
        """Everything that takes time for each firing."""
        builder, sinks = self._builder, self._sinks()
        adds = [s for s in self._rule.body if isinstance(s, MemoryAdd)]
        if not adds:
            self._emit_range(integer(0), self._count, sinks, adds)
            return
        (add,), emitter = adds, self._memories[adds[0].memory]
        is_row, places, old = self._row_of(add, emitter)
        row, points, done = (self._context.block(name) for name in ("row", "points", "done"))
        builder.cbranch(is_row, row, points)
        builder.position_at_end(points)
        self._emit_range(integer(0), self._count, sinks, adds)
        builder.branch(done)
        builder.position_at_end(row)
        type, sum = emitter.memory.type, Local(name=_SUM, type=emitter.memory.type)
        both = apply(emitter.memory.operator, sum, add.value)
        self._places[_SUM] = type, places
        fits = builder.icmp_signed("==", places.stride, integer(type.bytes))
        self._emit_range(integer(0), old, [*sinks, _Sink(value=both, places=places, fits=fits)], [])
        del self._places[_SUM]
        new = _Sink(value=add.value, places=places, fits=fits)
        self._emit_range(old, self._count, [*sinks, new], [])
        builder.branch(done)
        builder.position_at_end(done)

    def _row_of(self, add: MemoryAdd, emitter: MemoryEmitter) -> tuple[Value, Places, Value]:
        """Whether the points of all firings are a row now, their values, and how many are old."""
        builder, before = self._builder, self._builder.block
        first, step = self._line_of(add.keys[-1])
        final = builder.add(first, builder.sub(builder.trunc(self._count, I32), integer(1, I32)))
        one = builder.icmp_signed("==", step, integer(1, I32))
        look, over = self._context.block("look"), self._context.block("over")
        ascends = builder.and_(one, builder.icmp_signed(">=", final, first))
        builder.cbranch(ascends, look, over)
        before = builder.block
        builder.position_at_end(look)
        found = emitter.find_row(add.keys, self._count)
        values = found[0], found[1].address, found[2]
        inside = builder.block
        builder.branch(over)
        builder.position_at_end(over)
        is_row, address, old = (builder.phi(value.type) for value in values)
        for phi, value in zip((is_row, address, old), values, strict=True):
            phi.add_incoming(null(value.type), before)
            phi.add_incoming(value, inside)
        return is_row, Places(address=address, stride=found[1].stride), old

    def _emit_range(
        self, begin: Value, end: Value, sinks: Sequence[_Sink], adds: Sequence[MemoryAdd]
    ) -> None:
        """The values of the firings from one to another one."""
        plain = [p for p in self._rule.puts if isinstance(self._outputs[p.channel], StreamPort)]
        one_by_one = bool(plain or adds or self._burst.sequential)
        if not sinks and not one_by_one:
            return
        if not one_by_one and self._is_wide(sinks):
            begin = self._emit_vectors(begin, end, sinks)
        with self._builder.counting(begin, end, flags="nuw nsw") as at:
            self._emit_firing(at, sinks, plain, adds)

    def _sinks(self) -> list[_Sink]:
        builder = self._builder
        found: list[_Sink] = []
        for put in self._rule.puts:
            port = self._outputs[put.channel]
            if isinstance(port, SpanPort) and self._is_written(put):
                assert put.value is not None
                places = port.free()
                value = put.value if port.keeps_values else _tagged(put)
                found.append(_Sink(value=value, places=places, fits=integer(1, I1)))
        for statement in self._rule.body:
            if isinstance(statement, Store):
                assert self._store is not None
                bytes = integer(statement.value.type.bytes)
                fits = builder.icmp_signed("==", self._store.stride, bytes)
                found.append(_Sink(value=statement.value, places=self._store, fits=fits))
        return found

    def _emit_firing(
        self,
        at: Value,
        sinks: Sequence[_Sink],
        plain: Sequence[Put],
        adds: Sequence[MemoryAdd],
    ) -> None:
        """One firing of the burst."""
        builder, emit = self._builder, self._context.expressions.emit
        self._bind(at, varied=True)
        for sink in sinks:
            type = sink.value.type
            where = builder.offset(sink.places.address, builder.mul(at, sink.places.stride))
            store_value(builder, emit(sink.value), where, type, type.bytes)
        for add in adds:
            self._memories[add.memory].add(add.keys, add.value)
        for put in plain:
            port = self._outputs[put.channel]
            value = None
            if put.value is not None:
                value = emit(put.value if port.keeps_values else _tagged(put))
            port.put(value, None if put.tag is None else emit(put.tag))
        new = [
            (emit(s.value), self._registers[s.register][0])
            for s in self._rule.body
            if isinstance(s, RegisterWrite) and s.register in self._burst.sequential
        ]
        for value, slot in new:
            builder.store(value, slot)

    def _emit_span(self, port: SpanPort, put: Put) -> None:
        """The tokens of a put, as a span."""
        builder, count = self._builder, self._count
        emit = self._context.expressions.emit
        tag = integer(VALUE, I32) if put.tag is None else emit(put.tag)
        load = self._loaded(put)
        change = self._burst.change(put.value)
        if port.form is Carried.LINEAR:
            first = step = integer(0, I32)
            if put.value is not None:
                first, step = self._line_of(put.value)
                if put.tag is not None and not port.keeps_values:
                    plain = builder.icmp_signed("==", tag, integer(VALUE, I32))
                    first, step = (builder.select(plain, v, null(I32)) for v in (first, step))
            port.put_line(tag, count, first, step)
        elif change is Change.VARIED and load is not None:
            port.put_places(tag, count, self._places[load.target][1])
        elif change is Change.VARIED:
            port.put_written(tag, count)
        else:
            value = zero(port.channel.stream.element)
            if put.value is not None:
                value = emit(put.value if port.keeps_values else _tagged(put))
            port.put_equal(tag, count, value)

    # -- eight firings at a time --------------------------------------------------------------

    def _is_wide(self, sinks: Sequence[_Sink]) -> bool:
        """Whether the values can be computed in vectors."""
        statements = self._burst.path.statements
        lets = [s.value for s in statements if isinstance(s, Let) and self._varies(s.value)]
        exprs = [sink.value for sink in sinks]
        types = [type for type, _ in self._places.values()]
        return all(map(fits_lanes, types)) and all(map(self._has_lanes, (*lets, *exprs)))

    def _varies(self, expr: Expr) -> bool:
        return self._burst.change(expr) is not Change.FIXED

    def _has_lanes(self, expr: Expr) -> bool:
        """Whether an expression can be computed for several firings at once."""
        lines = {name for name, change in self._burst.changes.items() if change is Change.LINEAR}
        return not varies_with(lines)(expr) and has_lanes(expr, self._varies)

    def _by_lanes(self, expr: Expr) -> Expr:
        """The same expression for eight firings."""
        return for_lanes(expr, self._varies)

    def _emit_vectors(self, begin: Value, end: Value, sinks: Sequence[_Sink]) -> Value:
        """Compute the values in vectors, if they lie side by side; return where that ends."""
        builder, names = self._builder, self._context.names
        fits = integer(1, I1)
        for sink in sinks:
            fits = builder.and_(fits, sink.fits)
        sources: dict[str, tuple[Type, Value, Value]] = {}
        for name, (type, places) in self._places.items():
            equal = builder.icmp_signed("==", places.stride, integer(0))
            beside = builder.icmp_signed("==", places.stride, integer(type.bytes))
            fits = builder.and_(fits, builder.or_(equal, beside))
            wide = type.with_lanes(LANES)
            with builder.goto_entry_block():
                copies = builder.alloca(register_type(wide))
            first = load_value(builder, places.address, type, type.bytes)
            builder.store(builder.splat(first, LANES), copies)
            address = builder.select(equal, copies, places.address)
            sources[name] = wide, address, places.stride
        whole = builder.and_(builder.sub(end, begin), integer(-LANES))
        end = builder.add(begin, builder.select(fits, whole, integer(0)))
        before = dict(names)
        with builder.counting(begin, end, LANES, flags="nuw nsw") as at:
            for name, (wide, address, stride) in sources.items():
                where = builder.offset(address, builder.mul(at, stride))
                names[name] = load_value(builder, where, wide, wide.scalar.bytes)
            for statement in self._burst.path.statements:
                match statement:
                    case Let(target=target, value=value) if self._varies(value):
                        names[target] = self._context.expressions.emit(self._by_lanes(value))
            for sink in sinks:
                type = sink.value.type
                eight = self._context.expressions.emit(self._by_lanes(sink.value))
                where = offset_by(
                    builder, sink.places.address, self._context.scaled(at, type.bytes)
                )
                store_value(builder, eight, where, type.with_lanes(LANES), type.bytes)
        names.clear()
        names.update(before)
        return end


def _tagged(put: Put) -> Expr:
    """The value of a put, which is zero under a tag."""
    assert put.value is not None
    if put.tag is None:
        return put.value
    nothing = zero_of(put.value.type)
    return select(equals(put.tag, VALUE), put.value, nothing)
