"""Machines that fire along rows, as one function in LLVM (see ``rows``).

``rows(arena, budget)`` returns how many firings all machines made together, shifted by
``STATUS_BITS``, and a status (see below).  The shape of the code::

    if a machine is in another mode, or a channel inside is not empty: return
    while there is space for a vector of tokens everywhere:
        count the coordinates that are left in the row, up to eight
        if these are fewer, and the next row can begin: a stop follows them
        the tokens of all machines, one in each lane, and whether they can be made
        if not, or if there are none: leave
        write the tokens that others take, and the codes of all machines
    leave: write counters, registers and modes back

What is written and not counted lies in free space, and is written over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, Local
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import VALUE, Machine
from t2s.llvm.expressions import (
    load_value,
    offset_by,
    register_type,
    store_value,
    token_alignment,
    zero,
)
from t2s.llvm.ir import (
    I1,
    I32,
    I64,
    POINTER,
    BasicBlock,
    Builder,
    LLVMFunction,
    Module,
    Slot,
    Value,
    constant_vector,
    integer,
    integer_type,
    null,
    vector_type,
)
from t2s.simulator.values.emit_frame import NodeContext, StreamPort, smaller
from t2s.simulator.values.emit_lanes import TensorMemory, nowhere
from t2s.simulator.values.layout import (
    FINISHED,
    NOT_WAITING,
    TRACE_ADDRESS,
    TRACE_LENGTH,
    TRACE_LIMIT,
    ValueLayout,
    code_type,
)
from t2s.simulator.values.rows import Firing, Follower, Rows
from t2s.simulator.values.spans import Change, change_of
from t2s.simulator.values.vectors import END_OF_ROW, LANES, for_lanes, varies_with

STATUS_BITS = 2

WAITS, SINGLE, DRAINS = range(3)
"""What is wanted before the next call: more tokens or space; that the machines make the next firing
each by itself; or that all but the scanner do, so that the channels inside become empty."""


def emit_rows(
    module: Module, graph: Graph, rows: Rows, layout: ValueLayout, number: int
) -> LLVMFunction:
    """Add the function of such machines to a module."""
    return _RowsEmitter(module, graph, rows, layout, number).emit()


@dataclass(frozen=True, slots=True)
class _Token:
    """What is put into a channel: a vector if it differs between lanes, and how it does."""

    value: Value
    change: Change


class _Member:
    """The state of one of the machines."""

    def __init__(self, context: NodeContext, node: Machine) -> None:
        self.context, self.node = context, node
        self._builder = builder = context.builder
        context.pe = integer(0)
        context.load_parameters()
        layout = context.layout
        self._state = context.address(layout.state(node.name))
        self._trace_state = context.address(layout.trace(node.name))
        self._bits = 8 * code_type(node).itemsize
        self.registers: dict[str, tuple[Slot, Type]] = {}
        for register in node.registers:
            if register.shape == ():
                slot, type = builder.alloca(register_type(register.type)), register.type
                where = self._register(register.name, type)
                builder.store(load_value(builder, where, type, token_alignment(type)), slot)
                self.registers[register.name] = slot, type
        address, self._length, limit = (
            builder.load(offset_by(builder, self._trace_state, 8 * word), I64)
            for word in (TRACE_ADDRESS, TRACE_LENGTH, TRACE_LIMIT)
        )
        self.room = builder.sub(limit, self._length)
        start = context.scaled(self._length, self._bits // 8)
        self._trace = builder.inttoptr(builder.add(address, start), POINTER)
        self.mode = builder.load(offset_by(builder, self._state, 4), I32)

    def is_unfinished(self) -> Value:
        """Whether the machine has not ended."""
        status = self._builder.load(self._state, I32)
        return self._builder.icmp_signed("<", status, integer(FINISHED, I32))

    def is_in(self, mode: str) -> Value:
        """Whether the machine is in a mode."""
        return self._builder.icmp_signed("==", self.mode, self._number(mode))

    def bind(self) -> None:
        """Bind the names of all registers to their values."""
        for name, (slot, _) in self.registers.items():
            self.context.names[name] = self._builder.load(slot, slot.kept)

    def note(self, codes: Value, fired: Value) -> None:
        """Write the codes of eight firings, behind those that were made."""
        builder, bytes = self._builder, self._bits // 8
        where = offset_by(builder, self._trace, self.context.scaled(fired, bytes))
        builder.store(codes, where, align=bytes)

    def code(self, firing: Firing) -> Value:
        """The code of a rule, in all lanes."""
        return integer(firing.code, vector_type(integer_type(self._bits), LANES))

    def leave(self, fired: Value, mode: Value) -> None:
        """Write everything back."""
        builder = self._builder
        for name, (slot, type) in self.registers.items():
            value = builder.load(slot, slot.kept)
            store_value(builder, value, self._register(name, type), type, token_alignment(type))
        builder.store(mode, offset_by(builder, self._state, 4))
        builder.store(integer(NOT_WAITING, I32), offset_by(builder, self._state, 8))
        length = offset_by(builder, self._trace_state, 8 * TRACE_LENGTH)
        builder.store(builder.add(self._length, fired), length)

    def choose(self, if_true: str, if_false: str, holds: Value) -> Value:
        """The number of one of two modes."""
        return self._builder.select(holds, self._number(if_true), self._number(if_false))

    def _number(self, mode: str) -> Value:
        names = [mode.name for mode in self.node.modes]
        return integer(names.index(mode), I32)

    def _register(self, name: str, type: Type) -> Value:
        return self.context.address(self.context.layout.register(self.node.name, name))


class _OneOf(StreamPort):
    """The sending side of one of several channels, which may change from visit to visit."""

    def __init__(
        self, context: NodeContext, first: Channel, others: Sequence[tuple[Value, Channel]]
    ) -> None:
        """Each of the ``others`` is taken where its condition holds."""
        super().__init__(context, first, receives=False)
        builder, layout = context.builder, context.layout
        self._sent = context.address(layout.tails(first.name))
        self._taken = context.address(layout.heads(first.name))
        for holds, other in others:
            rings, capacity = (context.address(layout.ring(other.name), word) for word in (0, 1))
            self._rings = builder.select(holds, builder.load(rings, POINTER), self._rings)
            self._capacity = builder.select(holds, builder.load(capacity, I64), self._capacity)
            sent, taken = (
                context.address(section)
                for section in (layout.tails(other.name), layout.heads(other.name))
            )
            self._sent = builder.select(holds, sent, self._sent)
            self._taken = builder.select(holds, taken, self._taken)
        self._mask = builder.sub(self._capacity, integer(1))

    def begin_visit(self) -> None:
        """Read the counters of the channel that is taken."""
        builder = self._context.builder
        builder.store(builder.load(self._sent, I64), self._counter)
        self._limit = builder.add(builder.load(self._taken, I64), self._capacity)
        self._first = self._rings

    def end_visit(self) -> None:
        """Write the counter back."""
        self._context.builder.store(self._own_counter(), self._sent)


class _RowsEmitter:
    """Emits the function."""

    def __init__(
        self,
        module: Module,
        graph: Graph,
        rows: Rows,
        layout: ValueLayout,
        number: int,
    ) -> None:
        self._rows, self._layout, self._graph = rows, layout, graph
        self._function = module.function(
            f"rows{number}", I64, [POINTER, I64], attributes="nounwind noinline", noalias=True
        )
        self._builder = builder = Builder(self._function)
        self._abandon = self._function.block("abandon")
        self._members = {
            node.name: _Member(self._context(graph, node), node) for node in rows.machines
        }
        self._scanner = self._members[rows.scanner.node.name]
        self._outputs = {names[0]: self._one_of(names) for names in rows.outer}
        (waited,) = rows.scanner.close.path.rule.takes
        self._next = self._port(waited, receives=True)
        self._held = {
            name: self._port(name, receives=True) for f in rows.followers for name in f.held
        }
        self._begins = {f.node.name: builder.alloca(I1) for f in rows.followers if f.alternates}
        self._nowhere = nowhere(self._scanner.context)
        self._fired, self._status = builder.alloca(I64), builder.alloca(I64)
        self._codes = {
            rows.scanner.node.name: (
                self._scanner.code(rows.scanner.step),
                self._scanner.code(rows.scanner.close),
            )
        }
        self._codes |= {follower.node.name: self._usual(follower) for follower in rows.followers}
        self._possible: Value
        self._waits: Value
        self._tokens: dict[str, _Token] = {}

    def _usual(self, follower: Follower) -> tuple[Value, Value]:
        """The codes of a machine within rows: of coordinates, and of a stop."""
        member, builder = self._members[follower.node.name], self._builder
        value, stop = member.code(follower.again), member.code(follower.stop)
        for way in follower.others:
            here = member.is_in(way.inside.name)
            value = builder.select(here, member.code(way.again), value)
            stop = builder.select(here, member.code(way.stop), stop)
        return value, stop

    def _context(self, graph: Graph, node: Machine) -> NodeContext:
        return NodeContext(
            graph=graph,
            node=node,
            layout=self._layout,
            function=self._function,
            builder=self._builder,
            arena=self._function.args[0],
            faults=[],  # channels without a shape have the element that is used
            abandon=self._abandon,
        )

    def _port(self, channel: str, *, receives: bool) -> StreamPort:
        declared = self._graph.channel(channel)
        node = declared.sink if receives else declared.source
        assert node is not None
        return StreamPort(self._members[node].context, declared, receives=receives)

    def _one_of(self, channels: tuple[str, ...]) -> StreamPort:
        """The sending side of a channel, or of one of several."""
        first, *others = (self._graph.channel(name) for name in channels)
        member = self._members[first.source]
        if not others:
            return StreamPort(member.context, first, receives=False)
        (follower,) = (f for f in self._rows.followers if f.node.name == first.source)
        modes = [member.is_in(way.inside.name) for way in follower.others]
        return _OneOf(member.context, first, list(zip(modes, others, strict=True)))

    @property
    def _ports(self) -> tuple[StreamPort, ...]:
        return (self._next, *self._held.values(), *self._outputs.values())

    def emit(self) -> LLVMFunction:
        """The whole function."""
        builder = self._builder
        for port in self._ports:
            port.begin_visit()
        room = self._function.args[1]
        room = builder.udiv(room, integer(len(self._members)))
        for member in self._members.values():
            room = smaller(builder, room, member.room)
        for port in self._outputs.values():
            room = smaller(builder, room, port.room())
        builder.store(integer(0), self._fired)
        self._emit_entry()
        leave, again = self._function.block("leave"), self._function.block("again")
        builder.branch(again)
        builder.position_at_end(again)
        builder.store(integer(WAITS), self._status)
        fired = self._load(self._fired)
        left = builder.sub(room, fired)
        self._or_go(builder.icmp_signed(">=", left, integer(LANES)), leave)
        self._emit_pass(fired, leave)
        builder.branch(again)
        self._emit_leave(leave)
        builder.position_at_end(self._abandon)
        builder.ret(integer(SINGLE))
        return self._function

    def _or_go(self, holds: Value, block: BasicBlock) -> None:
        """Go on in a new block if something holds, else in this one."""
        go = self._function.block("go")
        self._builder.cbranch(holds, go, block)
        self._builder.position_at_end(go)

    def _emit_entry(self) -> None:
        """Return at once if the machines are not in step."""
        builder = self._builder
        single, drains = self._function.block("single"), self._function.block("drains")
        for name in self._rows.inner:
            heads, tails = (
                builder.load(self._scanner.context.address(section), I64)
                for section in (self._layout.heads(name), self._layout.tails(name))
            )
            self._or_go(builder.icmp_signed("==", heads, tails), drains)
        fits = self._scanner.is_in(self._rows.scanner.mode.name)
        for follower in self._rows.followers:
            member = self._members[follower.node.name]
            inside = member.is_in(follower.inside.name)
            for way in follower.others:
                inside = builder.or_(inside, member.is_in(way.inside.name))
            if follower.alternates:
                outside = member.is_in(follower.outside.name)
                builder.store(outside, self._begins[follower.node.name])
                inside = builder.or_(inside, outside)
            fits = builder.and_(fits, inside)
        for member in self._members.values():
            fits = builder.and_(fits, member.is_unfinished())
        self._or_go(fits, single)
        after = builder.block
        for block, status in (single, SINGLE), (drains, DRAINS):
            builder.position_at_end(block)
            builder.ret(integer(status))
        builder.position_at_end(after)

    # -- one vector of tokens -----------------------------------------------------------------

    def _emit_pass(self, fired: Value, leave: BasicBlock) -> None:
        """The next coordinates of a row, and its stop; or go to ``leave``."""
        builder, scanner = self._builder, self._rows.scanner
        self._possible, self._waits = integer(1, I1), integer(0, I1)
        self._tokens = {}
        for member in self._members.values():
            member.bind()
        names = self._scanner.context.names
        limit = self._scanner.context.expressions.emit(scanner.limit)
        left = builder.sub(builder.sext(limit, I64), builder.sext(names[scanner.counter], I64))
        left = builder.select(builder.icmp_signed(">", left, integer(0)), left, integer(0))
        values = smaller(builder, left, integer(LANES))
        some = builder.icmp_signed(">", values, integer(0))
        closes, following = self._close(values)
        count = builder.add(values, builder.zext(closes, I64))
        lanes = constant_vector(list(range(LANES)), I32)
        narrow = builder.splat(builder.trunc(values, I32), LANES)
        within = builder.icmp_signed("<", lanes, narrow)
        self._emit_step()
        written = {
            follower.node.name: self._emit_follower(follower, some)
            for follower in self._rows.followers
        }
        moves = builder.icmp_signed(">", count, integer(0))
        wanted = builder.select(self._waits, integer(WAITS), integer(SINGLE))
        builder.store(wanted, self._status)
        self._or_go(builder.and_(moves, self._possible), leave)

        self._put(within, count)
        self._next.take(closes)
        for name, port in self._held.items():
            sink = self._graph.channel(name).sink
            assert sink is not None
            port.take(self._load(self._begins[sink]))
        for name, member in self._members.items():
            value, stop = self._codes[name]
            codes = builder.select(within, value, stop)
            if name in self._begins:
                codes = self._codes_at_first(name, codes, some)
                builder.store(closes, self._begins[name])
            member.note(codes, fired)
        self._advance(values, closes, following)
        for name, values_of in written.items():
            for register, value in values_of.items():
                builder.store(value, self._members[name].registers[register][0])
        builder.store(builder.add(fired, count), self._fired)

    def _codes_at_first(self, name: str, codes: Value, some: Value) -> Value:
        """The codes of a machine that is in another mode where a row begins."""
        builder, member = self._builder, self._members[name]
        follower = next(f for f in self._rows.followers if f.node.name == name)
        first = member.code(follower.first)
        if follower.empty is not None:
            first = builder.select(some, first, member.code(follower.empty))
        lane = constant_vector([1] + [0] * (LANES - 1), I1)
        begun = builder.select(lane, first, codes)
        return builder.select(self._load(self._begins[name]), begun, codes)

    def _close(self, values: Value) -> tuple[Value, dict[str, Value]]:
        """Whether the row ends in this vector and the next one can begin; its registers."""
        builder, close = self._builder, self._rows.scanner.close
        context, port = self._scanner.context, self._next
        ends = builder.icmp_signed("<", values, integer(LANES))
        none = port.exhausted()
        value, tag = port.head()
        is_value = builder.icmp_signed("==", tag, integer(VALUE, I32))
        closes = builder.and_(builder.and_(ends, builder.not_(none)), is_value)
        nothing = builder.icmp_signed("==", values, integer(0))
        self._waits = builder.and_(nothing, none)
        saved = dict(context.names)
        self._bind_head(context, port.channel.name, value, integer(VALUE, I32))
        for statement in close.path.statements:
            match statement:
                case Let(target=target, value=expr):
                    context.names[target] = context.expressions.emit(expr)
                case Load(target=target):
                    memory, (index,) = self._memory(context, statement), statement.indices
                    loaded, inside = memory.one(context.expressions.emit(index))
                    closes = builder.and_(closes, inside)
                    context.names[target] = loaded
        registers = {name: context.expressions.emit(expr) for name, expr in close.writes.items()}
        context.names.clear()
        context.names.update(saved)
        return closes, registers

    def _bind_head(self, context: NodeContext, channel: str, value: Value, tag: Value) -> None:
        node = context.node
        assert isinstance(node, Machine)
        head = next(head for head in node.heads if head.channel == channel)
        context.names[head.value] = value
        if head.tag is not None:
            context.names[head.tag] = tag

    def _emit_step(self) -> None:
        """The tokens of the scanner."""
        builder, scanner = self._builder, self._rows.scanner
        context, changes = self._scanner.context, dict[str, Change]()
        saved = dict(context.names)
        for name, by in scanner.counters.items():
            steps = constant_vector([lane * by for lane in range(LANES)], I32)
            context.names[name] = builder.add(builder.splat(saved[name], LANES), steps)
            changes[name] = Change.LINEAR
        self._emit_firing(context, scanner.step, changes)
        context.names.clear()
        context.names.update(saved)

    def _emit_follower(self, follower: Follower, some: Value) -> dict[str, Value]:
        """The tokens of a follower; returns what it writes into registers."""
        builder, context = self._builder, self._members[follower.node.name].context
        changes: dict[str, Change] = {}
        for name in follower.takes:
            token = self._tokens[name]
            self._bind_head(context, name, token.value, integer(VALUE, I32))
            head = next(head for head in follower.node.heads if head.channel == name)
            changes[head.value] = token.change
        writes: dict[str, Value] = {}
        if follower.alternates:
            begins = self._load(self._begins[follower.node.name])
            writes = self._begin(context, follower, begins, some)
            context.names.update(writes)
        for put in follower.again.path.rule.puts:
            if put.tag is not None and follower.alternates:
                tag = context.expressions.emit(put.tag)
                is_value = builder.icmp_signed("==", tag, integer(VALUE, I32))
                self._require(builder.or_(is_value, builder.not_(some)))
        self._emit_firing(context, follower.again, changes)
        return writes

    def _begin(
        self, context: NodeContext, follower: Follower, begins: Value, some: Value
    ) -> dict[str, Value]:
        """Look at the tokens that are held where a row begins; returns the registers."""
        builder = self._builder
        for name in follower.held:
            port = self._held[name]
            none = port.exhausted()
            value, tag = port.head()
            self._bind_head(context, name, value, integer(VALUE, I32))
            lacks = builder.and_(begins, none)
            self._waits = builder.or_(self._waits, lacks)
            is_value = builder.icmp_signed("==", tag, integer(VALUE, I32))
            fits = builder.and_(builder.not_(none), is_value)
            self._require(builder.or_(builder.not_(begins), fits))
        if follower.empty is None:
            self._require(builder.or_(builder.not_(begins), some))
        writes: dict[str, Value] = {}
        new = builder.and_(begins, some)
        for register, expr in follower.first.writes.items():
            written = context.expressions.emit(expr)
            writes[register] = builder.select(new, written, context.names[register])
        return writes

    def _emit_firing(
        self, context: NodeContext, firing: Firing, changes: dict[str, Change]
    ) -> None:
        """The tokens that a rule puts in every lane; ``changes`` are those of its locals."""
        for statement in firing.path.statements:
            match statement:
                case Let(target=target, value=expr):
                    context.names[target], changes[target] = self._wide(context, expr, changes)
                case Load(target=target):
                    loaded, changes[target] = self._load_lanes(context, statement, changes)
                    context.names[target] = loaded
        for channel, put in firing.puts.items():
            element = self._graph.channel(channel).stream.element
            token = _Token(zero(element), Change.FIXED)
            if put.value is not None:
                token = _Token(*self._wide(context, put.value, changes))
            self._tokens[channel] = token

    def _wide(
        self, context: NodeContext, expr: Expr, changes: Mapping[str, Change]
    ) -> tuple[Value, Change]:
        """An expression, in all lanes if it differs between them."""
        change = _change(expr, changes)
        if change is Change.FIXED:
            return context.expressions.emit(expr), change
        varied = {name for name, one in changes.items() if one is not Change.FIXED}
        return context.expressions.emit(for_lanes(expr, varies_with(varied))), change

    # -- memory -------------------------------------------------------------------------------

    def _load_lanes(
        self, context: NodeContext, load: Load, changes: Mapping[str, Change]
    ) -> tuple[Value, Change]:
        """A value from memory for each lane, or the same one for all."""
        memory, (index,) = self._memory(context, load), load.indices
        change = _change(index, changes)
        at, _ = self._wide(context, index, changes)
        match change:
            case Change.FIXED:
                values, inside = memory.one(at)
            case Change.LINEAR:
                values, inside = memory.beside(at)
            case Change.VARIED:
                values, each = memory.each(at)
                bits = self._builder.bitcast(each, integer_type(LANES))
                inside = self._builder.icmp_signed("==", bits, integer(-1, bits.type))
        self._require(inside)
        return values, Change.FIXED if change is Change.FIXED else Change.VARIED

    def _memory(self, context: NodeContext, load: Load) -> TensorMemory:
        with self._builder.goto_entry_block():
            start = context.pointer(self._layout.tensor(load.tensor))
        return TensorMemory.of(context, load, start, self._nowhere)

    def _require(self, holds: Value) -> None:
        """Leave the firings of this vector to the machines themselves if this does not hold."""
        self._possible = self._builder.and_(self._possible, holds)

    # -- effects ------------------------------------------------------------------------------

    def _put(self, within: Value, count: Value) -> None:
        """Write the tokens that others take."""
        builder = self._builder
        tags_type = register_type(INT32.with_lanes(LANES))
        tags = builder.select(within, integer(VALUE, tags_type), integer(END_OF_ROW, tags_type))
        for channel, port in self._outputs.items():
            value = self._tokens[channel].value
            if self._tokens[channel].change is Change.FIXED:
                value = builder.splat(value, LANES)
            value = builder.select(within, value, null(value.type))
            beside, wraps = self._function.block("beside"), self._function.block("wraps")
            done = self._function.block("put")
            straight = builder.icmp_signed(">=", port.ahead(), integer(LANES))
            builder.cbranch(straight, beside, wraps)
            builder.position_at_end(wraps)
            self._put_each(port, value, tags, count)
            builder.branch(done)
            builder.position_at_end(beside)
            port.put_many(value, tags, count)
            builder.branch(done)
            builder.position_at_end(done)

    def _put_each(self, port: StreamPort, values: Value, tags: Value, count: Value) -> None:
        """Write tokens one by one, where the ring begins again."""
        builder, element = self._builder, port.channel.stream.element
        scaled = self._scanner.context.scaled
        with builder.goto_entry_block():
            kept, kept_tags = builder.alloca(values.type), builder.alloca(tags.type)
        builder.store(values, kept)
        builder.store(tags, kept_tags)
        with builder.counting(integer(0), count, flags="nuw nsw") as lane:
            at = offset_by(builder, kept, scaled(lane, element.bytes))
            tag = builder.load(offset_by(builder, kept_tags, scaled(lane, 4)), I32)
            port.put(load_value(builder, at, element, element.bytes), tag)

    def _advance(self, values: Value, closes: Value, following: Mapping[str, Value]) -> None:
        """The registers of the scanner."""
        builder, scanner = self._builder, self._rows.scanner
        for name, by in scanner.counters.items():
            slot, _ = self._scanner.registers[name]
            more = builder.mul(builder.trunc(values, I32), integer(by, I32))
            builder.store(builder.add(builder.load(slot, slot.kept), more), slot)
        for name, value in following.items():
            slot, _ = self._scanner.registers[name]
            builder.store(builder.select(closes, value, builder.load(slot, slot.kept)), slot)

    def _emit_leave(self, leave: BasicBlock) -> None:
        builder = self._builder
        builder.position_at_end(leave)
        fired = self._load(self._fired)
        self._scanner.leave(fired, self._scanner.mode)
        for follower in self._rows.followers:
            member = self._members[follower.node.name]
            mode = member.mode
            if follower.alternates:
                begins = self._load(self._begins[follower.node.name])
                mode = member.choose(follower.outside.name, follower.inside.name, begins)
            member.leave(fired, mode)
        for port in self._ports:
            port.end_visit()
        for name in self._rows.inner:
            for section in (self._layout.heads(name), self._layout.tails(name)):
                where = self._scanner.context.address(section)
                builder.store(builder.add(builder.load(where, I64), fired), where)
        all = self._scanner.context.scaled(fired, len(self._members))
        shifted = builder.shl(all, integer(STATUS_BITS))
        builder.ret(builder.or_(shifted, self._load(self._status)))

    def _load(self, slot: Slot) -> Value:
        return self._builder.load(slot, slot.kept)


def _change(expr: Expr, changes: Mapping[str, Change]) -> Change:
    """How an expression changes from lane to lane; locals without an entry do not."""
    names = {term.name for term in walk(expr) if isinstance(term, Local)}
    return change_of(expr, {**dict.fromkeys(names, Change.FIXED), **changes})
