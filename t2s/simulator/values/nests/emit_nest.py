"""The function of a nest in LLVM, ``nest(arena, first, last, begin, end)``: access, lanes, loops.

It runs the rounds from ``begin`` to ``end`` of the PEs from ``first`` to ``last``, both ends
exclusive.  A **round** is one iteration of the outermost loops, chosen to have some thousands of
firings.  PEs take turns after every round, because those of an array often read the same data.  The
shape of the code, for a round of loop ``h``, further loops ``i`` and ``j``, and a group ``v``::

    for h:
        for each PE:
            load the operands that change with h alone        # or not at all
            for i:
                load the operands that change with i, and not with j
                for j:
                    load the operands that change with j
                    for each block of v:
                        body, for all firings of the block

An operand that changes with ``v``, but not with the loop around it, is transposed for the blocks
when the loops that it changes with are entered: lane by lane, the firings of a block in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    ReduceLanes,
    Select,
)
from t2s.core.gc_pause import gc_paused
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Graph
from t2s.llvm.compile import NEST
from t2s.llvm.expressions import (
    ExpressionEmitter,
    constant,
    convert,
    load_value,
    offset_by,
    register_type,
    store_value,
    zero,
)
from t2s.llvm.ir import (
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Builder,
    Module,
    Value,
    constant_vector,
    integer,
    null,
    undefined,
    vector_type,
)
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.layout import ALIGNMENT, ValueLayout
from t2s.simulator.values.nests.digits import Numbers
from t2s.simulator.values.nests.nest import (
    Group,
    Lanes,
    Nest,
    NestAccess,
    Operand,
    group_of,
    pattern,
    rounds_of,
    stride,
)
from t2s.simulator.values.nests.trace import Source, StreamSource, TensorSource

_LARGEST_COPY = 1 << 17
"""The most bytes on the stack for a transposed operand."""


@gc_paused()
def emit_nest(graph: Graph, nest: Nest, layout: ValueLayout) -> str:
    """The code of a nest: a module with one function."""
    module = Module()
    numbers = [I64] * 4
    function = module.function(NEST, VOID, [POINTER, *numbers], attributes="nounwind", noalias=True)
    arena = function.args[0]
    context = NodeContext(
        graph=graph,
        node=nest.node,
        layout=layout,
        function=function,
        builder=Builder(function),
        arena=arena,
        faults=[],
        abandon=None,
    )
    _NestEmitter(context, nest, group_of(nest)).emit()
    return str(module)


class _NestEmitter:
    """Emits the function of one nest."""

    def __init__(self, context: NodeContext, nest: Nest, group: Group) -> None:
        self._context = context
        self._builder = context.builder
        self._nest = nest
        self._group = group
        self._access = AccessEmitter(context, nest, group)
        self._types = {name: _type_of(nest, name) for name in nest.operands}
        self._ready: dict[str, Any] = {}
        self._copies: dict[str, Value] = {}
        self._locals: dict[str, Any] = {}
        self._levels = {
            name: group.first - 1
            if operand.condition is not None
            else self._access.level(operand.access)
            for name, operand in nest.operands.items()
        }

    def emit(self) -> None:
        """The whole function."""
        _, first, last, begin, end = self._context.function.args
        self._context.load_parameters()

        def one_round(number: Value) -> None:
            self._access.loop(first, last, lambda place: self._emit_turn(number, place))

        self._access.loop(begin, end, one_round)
        self._builder.ret_void()

    def _emit_turn(self, number: Value, place: Value) -> None:
        """One PE in one round."""
        self._context.pe = place
        self._bind_space()
        self._access.open()
        rest = number
        loops = self._nest.node.loops[: rounds_of(self._nest, self._group)[1]]
        positions: list[Value] = []
        for loop in reversed(loops):
            extent = integer(self._nest.frame.bounds[loop.name][1])
            positions.insert(0, self._builder.urem(rest, extent))
            rest = self._builder.udiv(rest, extent)
        for loop, position in zip(loops, positions, strict=True):
            self._enter(loop.name, position)
        for level in range(-1, len(loops)):
            self._prepare(level)
        self._emit_loops(len(loops))

    def _bind_space(self) -> None:
        context, builder = self._context, self._builder
        rest = context.pe
        for dimension in reversed(self._nest.node.space):
            extent = integer(dimension.extent)
            value = builder.add(builder.urem(rest, extent), integer(dimension.minimum))
            context.names[dimension.name] = builder.trunc(value, I32)
            rest = builder.udiv(rest, extent)

    def _emit_loops(self, level: int) -> None:
        """The loops from a level inwards."""
        if level == self._group.first:
            self._access.for_blocks(self._emit_block)
            return
        loop = self._nest.node.loops[level]

        def body(position: Value) -> None:
            self._enter(loop.name, position)
            self._prepare(level)
            self._emit_loops(level + 1)

        extent = self._nest.frame.bounds[loop.name][1]
        self._access.loop(integer(0), integer(extent), body)

    def _enter(self, loop: str, position: Value) -> None:
        """Bind a loop in its iteration ``position``, counted from 0."""
        low = integer(self._nest.frame.bounds[loop][0])
        index = self._builder.add(position, low, "nsw")
        self._access.enter(loop, index)
        self._context.names[loop] = self._builder.trunc(index, I32)

    def _prepare(self, level: int) -> None:
        """Load the operands that change at a level but not further inside."""
        for name, operand in self._nest.operands.items():
            if self._levels[name] != level or operand.condition is not None:
                continue
            varies = pattern(self._nest, self._group.first, operand.access).any()
            if not varies:
                self._ready[name] = self._loaded(name, 0, 1)
            elif level < self._group.first - 1 and self._copy_bytes(name) <= _LARGEST_COPY:
                self._lay_out(name)

    def _copy_bytes(self, name: str) -> int:
        blocks = -(-self._group.extent // self._group.width)
        type = self._types[name]
        return blocks * self._group.width * type.lanes * type.scalar.bytes

    def _lay_out(self, name: str) -> None:
        """Copy an operand for all blocks of the group."""
        builder, type = self._builder, self._types[name]
        if name not in self._copies:
            with builder.goto_entry_block():
                self._copies[name] = builder.alloca(I8, self._copy_bytes(name), ALIGNMENT)

        def copy(start: Start, width: int) -> None:
            for lane, value in enumerate(self._loaded(name, start, width)):
                where = self._in_copy(name, start, lane)
                wide = self._lanes(width).widened(value)
                self._access.put(wide, where, type.scalar.with_lanes(width))

        self._access.for_blocks(copy)

    def _in_copy(self, name: str, start: Start, lane: int) -> Value:
        """The start of one lane of a block in a copy."""
        type, width = self._types[name], self._group.width
        first = self._access.number(start)
        offset = self._builder.add(
            self._builder.mul(first, integer(type.lanes)), integer(lane * width)
        )
        return self._access.at(self._copies[name], offset, type)

    def _loaded(self, name: str, start: Start, width: int) -> Any:
        """An operand in the firings of a block: lanes, or one vector for blocks of width 1."""
        operand, type = self._nest.operands[name], self._types[name]
        if operand.source is None:
            zeros = [zero(type.scalar)] * type.lanes
            return zeros if self._group.width > 1 else zero(type)
        pointer = self._access.source(operand.source)
        return self._access.read(pointer, operand.access, start, width, type, operand.lanes)

    def _emit_block(self, start: Start, width: int) -> None:
        """The body for the firings of one block."""
        self._locals = {}
        self._access.bind_group(start, width)
        for name, operand in self._nest.operands.items():
            self._locals[name] = self._operand(name, operand, start, width)
        for at, statement in enumerate(self._nest.statements):
            self._emit_statement(statement, self._nest.accesses.get(at), start, width)

    def _operand(self, name: str, operand: Operand, start: Start, width: int) -> Any:
        type = self._types[name]
        if name in self._ready:
            return self._ready[name]
        if name in self._copies:
            row = type.scalar.with_lanes(width)
            wheres = [self._in_copy(name, start, lane) for lane in range(type.lanes)]
            return [self._access.take(where, row) for where in wheres]
        if operand.condition is None:
            return self._loaded(name, start, width)
        return self._where(operand.condition, lambda: self._loaded(name, start, width))

    def _emit_statement(
        self, statement: Statement, access: NestAccess | None, start: Start, width: int
    ) -> None:
        context, nest = self._context, self._nest
        match statement:
            case Let(target=target, value=value):
                self._locals[target] = self._value(value, width)
            case RegisterRead(target=target, register=register, type=type):
                assert access is not None
                row = self._access.register(register)
                lanes = tuple(range(type.lanes))
                self._locals[target] = self._access.read(row, access, start, width, type, lanes)
            case RegisterWrite(register=register, value=value, condition=condition):
                row = self._access.register(register)
                self._write(row, access, value, condition, start, width)
            case Send(channel=channel, value=value, condition=condition):
                pointer = context.pointer(context.layout.sections[("stream", channel)])
                self._write(pointer, access, value, condition, start, width)
            case Store(tensor=tensor, value=value, condition=condition):
                pointer = context.pointer(context.layout.tensor(tensor))
                self._write(pointer, access, value, condition, start, width)
            case _:
                raise NotImplementedError(f"{statement} in {nest.node.name}")

    def _write(
        self,
        pointer: Value,
        access: NestAccess | None,
        value: Expr,
        condition: Expr | None,
        start: Start,
        width: int,
    ) -> None:
        assert access is not None

        def write() -> None:
            lanes = self._value(value, width)
            if self._group.width > 1:
                lanes = [self._lanes(width).widened(lane) for lane in lanes]
            self._access.write(pointer, access, start, width, value.type, lanes)

        if condition is None:
            write()
            return
        with self._builder.if_then(self._condition(condition)):
            write()

    def _where(self, condition: Expr, emit: Callable[[], Any]) -> Any:
        """The result of ``emit``, or zeros if the condition does not hold."""
        builder = self._builder
        holds, before = self._condition(condition), builder.block
        with builder.if_then(holds):
            emitted = emit()
            inside = builder.block
        values = emitted if isinstance(emitted, list) else [emitted]
        merged: list[Value] = []
        for value in values:
            phi = builder.phi(value.type)
            phi.add_incoming(null(value.type), before)
            phi.add_incoming(value, inside)
            merged.append(phi)
        return merged if isinstance(emitted, list) else merged[0]

    def _condition(self, condition: Expr) -> Value:
        """A condition that is constant over the firings of a group."""
        if self._group.width > 1:
            return self._context.expressions.emit(condition)
        value: Value = self._value(condition, 1)
        return value

    def _value(self, expr: Expr, width: int) -> Any:
        if self._group.width > 1:
            return self._lanes(width).emit(expr)
        names: dict[str, Value] = {**self._context.names, **self._locals}
        saved = dict(self._context.names)
        self._context.names.update(names)
        value = self._context.expressions.emit(expr)
        self._context.names.clear()
        self._context.names.update(saved)
        return value

    def _lanes(self, width: int) -> LaneEmitter:
        context = self._context
        names = {**context.names, **self._access.group_names}
        return LaneEmitter(self._builder, names, self._locals, context.expressions, width)


def _type_of(nest: Nest, name: str) -> Type:
    """The type of an operand, from the statement that binds it."""
    for statement in nest.node.body:
        match statement:
            case Receive(target=target, type=type) | Load(target=target, type=type) if (
                target == name
            ):
                return type
            case RegisterRead(target=target, type=type) if target == name:
                return type
            case Let(target=target, value=value) if target == name:
                return value.type
    raise KeyError(name)


# Addresses and blocks of a nest: tables as arithmetic, loads and stores for several firings.

Start = Any
"""The first firing of a block: a number, or an LLVM value where blocks are a loop."""


class AccessEmitter:
    """Emits the addresses of one nest, given the enclosing loops.

    ``group_names`` are the indices of the group's loops in the firings of the present block.
    """

    def __init__(self, context: NodeContext, nest: Nest, group: Group) -> None:
        self._context = context
        self._builder = context.builder
        self._nest = nest
        self._group = group
        self._indices: dict[str, Value] = {}
        self._bases: dict[int, Value] = {}
        self._pointers: dict[Any, Value] = {}
        self._tables = 0
        self._outside = {loop.name: at for at, loop in enumerate(nest.node.loops[: group.first])}
        self.group_names: dict[str, Value] = {}

    # -- at the entry -------------------------------------------------------------------------

    def open(self) -> None:
        """Load the invariant addresses and numbers of this PE."""
        context, node = self._context, self._nest.node.name
        for key, access in keyed_accesses(self._nest):
            where = context.address(context.layout.sections[("base", node, key)], context.pe)
            self._bases[id(access)] = self._builder.load(where, I64)
        for operand in self._nest.operands.values():
            if operand.source is not None:
                self._pointers[operand.source] = context.pointer(self._section(operand.source))
        for register in self._nest.node.registers:
            row = prod(register.shape) * register.type.bytes
            section = context.layout.register(node, register.name)
            self._pointers[register.name] = context.address(section, context.pe, row)

    def _section(self, source: Source) -> Any:
        match source:
            case TensorSource(tensor=tensor):
                return self._context.layout.tensor(tensor)
            case StreamSource(channel=channel):
                return self._context.layout.sections[("stream", channel)]
        raise KeyError(source)

    def source(self, source: Source) -> Value:
        """The memory address of a source."""
        return self._pointers[source]

    def register(self, register: str) -> Value:
        """The address of a register file of this PE."""
        return self._pointers[register]

    # -- loops --------------------------------------------------------------------------------

    def loop(self, first: Value, last: Value, body: Callable[[Value], None]) -> None:
        """Emit a loop of ``body`` from ``first`` to ``last``, exclusive."""
        builder, context = self._builder, self._context
        with builder.goto_entry_block():
            slot = builder.alloca(I64)
        head, inside, after = (context.block(name) for name in ("head", "inside", "after"))
        builder.store(first, slot)
        builder.branch(head)
        builder.position_at_end(head)
        position = builder.load(slot, I64)
        builder.cbranch(builder.icmp_signed("<", position, last), inside, after)
        builder.position_at_end(inside)
        body(position)
        builder.store(builder.add(position, integer(1), "nsw"), slot)
        builder.branch(head)
        builder.position_at_end(after)

    def enter(self, loop: str, index: Value) -> None:
        """Bind the index of a loop outside of the group."""
        self._indices[loop] = index

    def for_blocks(self, emit: Callable[[Start, int], None]) -> None:
        """Emit code for every block of the group, given its first firing and its width."""
        extent, width = self._group.extent, self._group.width
        if self._group.unrolled:
            for start in range(0, extent, width):
                emit(start, min(width, extent - start))
            return
        full, scale = extent // width, integer(width)
        self.loop(
            integer(0),
            integer(full),
            lambda block: emit(self._builder.mul(block, scale, "nsw"), width),
        )
        if extent % width:
            emit(full * width, extent % width)

    def level(self, access: NestAccess) -> int:
        """The innermost loop outside of the group that an address depends on, or -1."""
        loops = (self._nest.frame.digits[digit].loop for digit in access.tables)
        return max((self._outside[loop] for loop in loops if loop in self._outside), default=-1)

    def bind_group(self, start: Start, width: int) -> None:
        """The indices of the group's loops in the firings of a block."""
        loops = self._nest.node.loops[self._group.first :]
        inner = self._group.extent
        for loop in loops:
            low, extent = self._nest.frame.bounds[loop.name]
            inner //= extent
            if isinstance(start, int):
                numbers = [low + (start + w) // inner % extent for w in range(width)]
                self.group_names[loop.name] = _vector(numbers)
                continue
            first = self._builder.trunc(start, I32)
            vector = undefined(vector_type(I32, width))
            for w in range(width):
                number = self._builder.add(first, integer(low + w, I32))
                vector = self._builder.insert_element(vector, number, w)
            self.group_names[loop.name] = vector

    # -- addresses ----------------------------------------------------------------------------

    def number(self, start: Start) -> Value:
        """The first firing of a block as a value."""
        return integer(start) if isinstance(start, int) else start

    def at(self, pointer: Value, scalars: Value, type: Type) -> Value:
        """The address of a scalar by its number."""
        return offset_by(self._builder, pointer, self._context.scaled(scalars, type.scalar.bytes))

    def _place(self, access: NestAccess, start: Start, width: int) -> tuple[Value, list[int]]:
        """The number of a scalar in a block: a base value and an offset for each firing."""
        builder = self._builder
        total = self._bases[id(access)]
        for digit, table in access.tables.items():
            if self._nest.frame.digits[digit].loop in self._outside:
                total = builder.add(total, self._entry(digit, table), "nsw")
        steps = pattern(self._nest, self._group.first, access)
        if isinstance(start, int):
            return total, [int(step) for step in steps[start : start + width]]
        step = stride(steps) or 0
        total = builder.add(total, builder.mul(start, integer(step)), "nsw")
        return total, [step * w for w in range(width)]

    def _entry(self, digit: int, table: Numbers) -> Value:
        """The entry of a table at the current value of its digit."""
        builder, digit_ = self._builder, self._nest.frame.digits[digit]
        value = self._indices[digit_.loop]
        siblings = [d for d in self._nest.frame.digits if d.loop == digit_.loop]
        if len(siblings) == 2:
            by = integer(siblings[0].unit)
            value = builder.udiv(value, by) if digit_.unit > 1 else builder.urem(value, by)
        position = builder.sub(value, integer(int(digit_.values[0])), "nsw")
        step = stride(table)
        if step is not None:
            return builder.mul(position, integer(step), "nsw")
        where = offset_by(builder, self._constant(table), builder.mul(position, integer(8)))
        return builder.load(where, I64)

    def _constant(self, table: Numbers) -> Value:
        """A table in memory."""
        name = f"{self._context.function.name}.table{self._tables}"
        self._tables += 1
        return self._context.function.module.table(name, I64, [int(entry) for entry in table])

    # -- loads and stores ---------------------------------------------------------------------

    def take(self, where: Value, type: Type) -> Value:
        """Load consecutive scalars."""
        return load_value(self._builder, where, type, type.scalar.bytes)

    def put(self, value: Value, where: Value, type: Type) -> None:
        """Store consecutive scalars."""
        store_value(self._builder, value, where, type, type.scalar.bytes)

    def read(
        self,
        pointer: Value,
        access: NestAccess,
        start: Start,
        width: int,
        type: Type,
        lanes: Lanes,
    ) -> Any:
        """A value in the firings of a block: its lanes, or one vector for blocks of width 1."""
        total, steps = self._place(access, start, width)
        if self._group.width == 1:
            return self._read_one(self._shifted(pointer, total, type), type, lanes)
        start_at = self._shifted(pointer, total, type)
        if width == 1:
            return [self._scalar(start_at, type, lane, steps[0]) for lane in lanes]
        if _in_a_row(lanes) and _power_of_two(len(lanes)) and _power_of_two(width):
            first = lanes[0] or 0
            rows = [self.take(self._step(start_at, type, first + n), type) for n in steps]
            return transposed(self._builder, rows)
        return [self._column(start_at, type, lane, steps) for lane in lanes]

    def write(
        self, pointer: Value, access: NestAccess, start: Start, width: int, type: Type, value: Any
    ) -> None:
        """The inverse of ``read``."""
        total, steps = self._place(access, start, width)
        first = self._shifted(pointer, total, type)
        if self._group.width == 1:
            self.put(value, first, type)
            return
        for lane, vector in enumerate(value):
            if steps == list(range(steps[0], steps[0] + width)) and type.lanes == 1:
                where = self._step(first, type, steps[0] + lane)
                self.put(vector, where, type.scalar.with_lanes(width))
                continue
            for w, step in enumerate(steps):
                scalar = vector if width == 1 else self._builder.extract_element(vector, w)
                self.put(scalar, self._step(first, type, step + lane), type.scalar)

    def _shifted(self, pointer: Value, total: Value, type: Type) -> Value:
        return self.at(pointer, total, type)

    def _step(self, pointer: Value, type: Type, scalars: int) -> Value:
        return offset_by(self._builder, pointer, scalars * type.scalar.bytes)

    def _read_one(self, pointer: Value, type: Type, lanes: Lanes) -> Value:
        if _in_a_row(lanes):
            return self.take(self._step(pointer, type, lanes[0] or 0), type)
        if type.lanes == 1:
            return self._scalar(pointer, type, lanes[0], 0)
        vector = zero(type)
        for at, lane in enumerate(lanes):
            if lane is not None:
                scalar = self._scalar(pointer, type, lane, 0)
                vector = self._builder.insert_element(vector, scalar, at)
        return vector

    def _scalar(self, pointer: Value, type: Type, lane: int | None, step: int) -> Value:
        if lane is None:
            return zero(type.scalar)
        return self.take(self._step(pointer, type, lane + step), type.scalar)

    def _column(self, pointer: Value, type: Type, lane: int | None, steps: list[int]) -> Value:
        """One lane of all firings of a block."""
        if lane is None:
            return zero(type.scalar)
        if not any(step != steps[0] for step in steps):
            return self._scalar(pointer, type, lane, steps[0])
        row = type.scalar.with_lanes(len(steps))
        if steps == list(range(steps[0], steps[0] + len(steps))):
            return self.take(self._step(pointer, type, lane + steps[0]), row)
        vector = undefined(register_type(row))
        for at, step in enumerate(steps):
            scalar = self._scalar(pointer, type, lane, step)
            vector = self._builder.insert_element(vector, scalar, at)
        return vector


def keyed_accesses(nest: Nest) -> list[tuple[str, NestAccess]]:
    """The accesses of a nest, with the names of their sections in the arena."""
    accesses = [(f"operand {name}", operand.access) for name, operand in nest.operands.items()]
    return accesses + [(f"statement {at}", access) for at, access in nest.accesses.items()]


def _vector(numbers: list[int]) -> Value:
    if len(numbers) == 1:
        return integer(numbers[0], I32)
    return constant_vector(numbers, I32)


def _in_a_row(lanes: Lanes) -> bool:
    first = lanes[0]
    return first is not None and lanes == tuple(range(first, first + len(lanes)))


def _power_of_two(number: int) -> bool:
    return number > 1 and number & (number - 1) == 0


# Expressions of several firings at once: a vector register holds one lane of all of them.
#
# A value with ``L`` lanes is ``L`` LLVM values.  Each is a vector over the firings of a block, or a
# scalar if it is the same in all of them.  The lanes of one firing are in different registers, so
# ``ReduceLanes`` needs no shuffles: its tree is a tree of vector operations.


class LaneEmitter:
    """Emits single lanes of expressions for ``width`` firings.

    ``names`` holds indices and parameters, ``locals`` the lanes of each local.
    """

    def __init__(
        self,
        builder: Builder,
        names: Mapping[str, Value],
        locals: Mapping[str, Sequence[Value]],
        scalars: ExpressionEmitter,
        width: int,
    ) -> None:
        self._builder = builder
        self._names = names
        self._locals = locals
        self._scalars = scalars
        self._width = width

    def emit(self, expr: Expr) -> list[Value]:
        """All lanes."""
        return [self.lane(expr, lane) for lane in range(expr.type.lanes)]

    def lane(self, expr: Expr, lane: int) -> Value:
        """One lane."""
        builder, scalar = self._builder, expr.type.scalar
        match expr:
            case Const(value=value):
                return constant(builder, value, scalar)
            case Index(name=name) | Parameter(name=name):
                return self._names[name]
            case Local(name=name):
                return self._locals[name][lane]
            case Apply(operator=operator, operands=operands):
                values = self._equal([self.lane(operand, lane) for operand in operands])
                type = self._typed(operands[0].type.scalar, values[0])
                return self._scalars.apply(operator, type, values)
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                chosen = self.lane(condition, lane if condition.type.lanes > 1 else 0)
                sides = [self.lane(if_true, lane), self.lane(if_false, lane)]
                wide = self._is_wide(chosen)
                sides = [self.widened(side) for side in sides] if wide else self._equal(sides)
                return builder.select(chosen, *sides)
            case Cast(value=value):
                operand = self.lane(value, lane)
                source = self._typed(value.type.scalar, operand)
                return convert(builder, operand, source, scalar.with_lanes(source.lanes))
            case Broadcast(value=value):
                return self.lane(value, 0)
            case LaneNumbers():
                return integer(lane, register_type(scalar))
            case ReduceLanes(value=value):
                return self._reduced(expr, value.type.lanes)
            case Insert(vector=vector, lane=at, value=value):
                is_lane = self._scalars_equal(self.lane(at, 0), at.type, lane)
                sides = self._equal([self.lane(value, 0), self.lane(vector, lane)])
                if self._is_wide(is_lane):
                    sides = [self.widened(side) for side in sides]
                return builder.select(is_lane, *sides)
        raise InternalError(f"{expr.__class__.__name__} in the body of a PE")

    def widened(self, value: Value) -> Value:
        """A value as a vector over the firings."""
        return value if self._is_wide(value) else self._builder.splat(value, self._width)

    def _reduced(self, reduce: ReduceLanes, lanes: int) -> Value:
        """The tree of ``core.expr.reduce_lanes``, depth first, to keep few values live."""
        counts = [lanes]
        while counts[-1] > 1:
            counts.append(counts[-1] // 2 + counts[-1] % 2)

        def node(level: int, at: int) -> Value:
            if level == 0:
                return self.lane(reduce.value, at)
            if 2 * at + 1 >= counts[level - 1]:
                return node(level - 1, 2 * at)
            pair = self._equal([node(level - 1, 2 * at), node(level - 1, 2 * at + 1)])
            type = self._typed(reduce.type, pair[0])
            return self._scalars.apply(reduce.operator, type, pair)

        return node(len(counts) - 1, 0)

    def _scalars_equal(self, value: Value, type: Type, number: int) -> Value:
        wanted = integer(number, value.type)
        return self._builder.icmp_signed("==", value, wanted)

    def _equal(self, values: list[Value]) -> list[Value]:
        """Make all values vectors if any is."""
        if not any(self._is_wide(value) for value in values):
            return values
        return [self.widened(value) for value in values]

    def _is_wide(self, value: Value) -> bool:
        return value.type.lanes > 0

    def _typed(self, scalar: Type, value: Value) -> Type:
        return scalar.with_lanes(self._width if self._is_wide(value) else 1)


def transposed(builder: Builder, rows: list[Value]) -> list[Value]:
    """Transpose vectors of lanes, one per firing, to vectors of firings, one per lane.

    The numbers of firings and of lanes are powers of two, at least two.
    """
    firings, lanes = len(rows), rows[0].type.lanes
    vectors = rows
    while vectors[0].type.lanes < firings:
        vectors = [
            _joined(builder, *pair) for pair in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    while vectors[0].type.lanes > firings:
        half = vectors[0].type.lanes // 2
        vectors = [
            _picked(builder, vector, vector, list(range(first, first + half)))
            for vector in vectors
            for first in (0, half)
        ]
    low = [n // 2 + firings * (n % 2) for n in range(firings)]
    high = [at + firings // 2 for at in low]
    for _ in range((firings - 1).bit_length()):
        half = len(vectors) // 2
        pairs = list(zip(vectors[:half], vectors[half:], strict=True))
        vectors = [_picked(builder, *pair, lanes) for pair in pairs for lanes in (low, high)]
    if len(vectors) != lanes:
        raise InternalError("a block was not transposed")
    return vectors


def _joined(builder: Builder, left: Value, right: Value) -> Value:
    return _picked(builder, left, right, list(range(2 * left.type.lanes)))


def _picked(builder: Builder, left: Value, right: Value, lanes: list[int]) -> Value:
    return builder.shuffle_vector(left, right, lanes)
