"""The statements of a body in LLVM: one firing of a PE, open tensors, gathers and scatters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from t2s.core.errors import InternalError
from t2s.core.expr import Expr
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
    by_lanes,
)
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.nodes import Search
from t2s.graph.semantics import HOLE, MOST_ELEMENTS
from t2s.llvm.expressions import (
    convert,
    load_value,
    offset_by,
    register_type,
    require_type,
    store_value,
    token_alignment,
    zero,
)
from t2s.llvm.ir import I1, I8, I64, POINTER, VOID, Slot, Value, integer
from t2s.simulator.values.emit_frame import NodeContext, PortEmitter

_WIDE = Type(Kind.INT, 64)


def emit_search(context: NodeContext, statement: Search) -> Value:
    """The position found."""
    builder, expressions = context.builder, context.expressions
    tensor = context.graph.tensor(statement.tensor)
    type = tensor.type.scalar
    begin, end = expressions.wide(statement.begin), expressions.wide(statement.end)
    value = expressions.emit(statement.value)
    some = builder.icmp_signed("<", begin, end)
    length = integer(tensor.allocated[0])
    if tensor.open:
        length = builder.load(context.address(context.layout.extent(tensor.name)), I64)
    inside = builder.and_(
        builder.icmp_signed(">=", begin, integer(0)), builder.icmp_signed("<=", end, length)
    )
    context.require(
        builder.or_(builder.not_(some), inside),
        f"{context.node.name} leaves the bounds of {tensor.name}",
    )
    start = context.pointer(context.layout.tensor(tensor.name))
    before = builder.block
    loop, over = context.block("search"), context.block("found")
    builder.cbranch(some, loop, over)
    builder.position_at_end(loop)
    low, high = builder.phi(I64), builder.phi(I64)
    middle = builder.ashr(builder.add(low, high), integer(1))
    where = offset_by(builder, start, context.scaled(middle, type.bytes))
    element = load_value(builder, where, type, type.bytes)
    smaller = expressions.apply(Op.LESS, type, [element, value])
    next_low = builder.select(smaller, builder.add(middle, integer(1)), low)
    next_high = builder.select(smaller, high, middle)
    for phi, first, following in ((low, begin, next_low), (high, end, next_high)):
        phi.add_incoming(first, before)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", next_low, next_high), loop, over)
    builder.position_at_end(over)
    position = builder.phi(I64)
    position.add_incoming(begin, before)
    position.add_incoming(next_low, loop)
    return convert(builder, position, _WIDE, statement.begin.type)


class BodyEmitter:
    """Emits the body of a node; ``tensors`` are the addresses of the tensors it uses."""

    def __init__(
        self,
        context: NodeContext,
        ports: dict[tuple[str, bool], PortEmitter],
        tensors: dict[str, Value],
    ) -> None:
        self._context = context
        self._ports = ports
        self._tensors = tensors

    def emit(self, firing: Value) -> None:
        """All statements in order; ``firing`` counts the firings of this visit from 0."""
        names = self._context.names
        for statement in self._context.pe_array.body:
            match statement:
                case Receive(target=target, channel=channel, type=type):
                    names[target] = self._receive(channel, type, firing)
                case Send(channel=channel, value=value):
                    self._send(channel, value, firing)
                case _:
                    self.emit_statement(statement)

    def emit_statement(self, statement: Statement) -> None:
        """One statement that uses no channel."""
        names = self._context.names
        match statement:
            case Let(target=target, value=value):
                names[target] = self._context.expressions.emit(value)
            case Load(target=target):
                names[target] = self._load(statement)
            case Store():
                self._store(statement)
            case RegisterRead(target=target, register=register, indices=indices, type=type):
                where = self._register_element(register, indices, type)
                align = token_alignment(type)
                names[target] = load_value(self._context.builder, where, type, align)
            case RegisterWrite():
                self._write_register(statement)
            case _:
                raise InternalError(f"{statement.__class__.__name__} in the body of a node")

    def _receive(self, channel: str, type: Type, firing: Value) -> Value:
        port = self._ports[(channel, True)]
        require_type(type, port.port.element, f"a token of {channel}")

        def take() -> Value:
            slot = port.next_slot(firing)
            return load_value(self._context.builder, slot, type, token_alignment(type))

        return self._where(port.condition, type, take)

    def _send(self, channel: str, expr: Expr, firing: Value) -> None:
        port = self._ports[(channel, False)]
        require_type(expr.type, port.port.element, f"a token of {channel}")

        def put() -> None:
            value = self._context.expressions.emit(expr)
            slot = port.next_slot(firing)
            align = token_alignment(expr.type)
            store_value(self._context.builder, value, slot, expr.type, align)

        self._when(port.condition, put)

    def _load(self, statement: Load) -> Value:
        type = statement.type

        def read() -> Value:
            tensor = self._context.graph.tensor(statement.tensor)
            if by_lanes(statement.indices):
                return self._lanes(statement, type).gather()
            if tensor.open:
                index = self._context.expressions.wide(statement.indices[0])
                return loaded_from_open(self._context, tensor, index, type)
            where = self._tensor_element(statement.tensor, statement.indices, type)
            return load_value(self._context.builder, where, type, type.scalar.bytes)

        return self._where(self._evaluated(statement.condition), type, read)

    def _store(self, statement: Store) -> None:
        type = statement.value.type

        def write() -> None:
            value = self._context.expressions.emit(statement.value)
            if by_lanes(statement.indices):
                self._lanes(statement, type).scatter(value)
                return
            where = self._tensor_element(statement.tensor, statement.indices, type)
            store_value(self._context.builder, value, where, type, type.scalar.bytes)

        self._when(self._evaluated(statement.condition), write)

    def _lanes(self, statement: Load | Store, type: Type) -> LaneAccess:
        context, indices = self._context, statement.indices
        tensor = context.graph.tensor(statement.tensor)
        return LaneAccess(context=context, tensor=tensor, indices=indices, type=type)

    def _write_register(self, statement: RegisterWrite) -> None:
        type = statement.value.type

        def write() -> None:
            value = self._context.expressions.emit(statement.value)
            where = self._register_element(statement.register, statement.indices, type)
            store_value(self._context.builder, value, where, type, token_alignment(type))

        self._when(self._evaluated(statement.condition), write)

    def _tensor_element(self, name: str, indices: tuple[Expr, ...], type: Type) -> Value:
        context = self._context
        tensor = context.graph.tensor(name)
        require_type(type.scalar, tensor.type.scalar, f"an element of {name}")
        if tensor.open:
            index = context.expressions.wide(indices[0])
            return place_in_open(context, tensor, index, type.lanes)
        flat, valid = context.locate(indices, tensor.allocated, type.lanes)
        context.require(valid, f"{context.node.name} leaves the bounds of {name}")
        distance = context.scaled(flat, tensor.type.scalar.bytes)
        return offset_by(context.builder, self._tensors[name], distance)

    def _register_element(self, name: str, indices: tuple[Expr, ...], type: Type) -> Value:
        context = self._context
        register = next(
            declaration for declaration in context.node.registers if declaration.name == name
        )
        require_type(type, register.type, f"an element of register {name}")
        flat, valid = context.locate(indices, register.shape)
        context.require(valid, f"{context.node.name} leaves the bounds of register {name}")
        row = prod(register.shape) * type.bytes
        start = context.address(context.layout.register(context.node.name, name), context.pe, row)
        return offset_by(context.builder, start, context.scaled(flat, type.bytes))

    def _evaluated(self, condition: Expr | None) -> Value | None:
        return None if condition is None else self._context.expressions.emit(condition)

    def _when(self, condition: Value | None, emit: Callable[[], None]) -> None:
        """Emit code guarded by a condition."""
        if condition is None:
            emit()
            return
        with self._context.builder.if_then(condition):
            emit()

    def _where(self, condition: Value | None, type: Type, emit: Callable[[], Value]) -> Value:
        """A value computed only if the condition holds, else zero."""
        if condition is None:
            return emit()
        builder = self._context.builder
        before = builder.block
        with builder.if_then(condition):
            value = emit()
            inside = builder.block
        merged = builder.phi(register_type(type))
        merged.add_incoming(zero(type), before)
        merged.add_incoming(value, inside)
        return merged


# Elements of open tensors, gathers and scatters, in LLVM.
#
# An open tensor has an address, a length and a capacity in the arena, all of which change when a
# store goes beyond them: the code then calls back into Python, which reallocates the tensor.
#
# Gathers and scatters are branch-free loops over lanes.  An idle lane loads from and stores to a
# dummy word; its loaded value is zero.

_ALIGN = 64


def loaded_from_open(context: NodeContext, tensor: Tensor, index: Value, type: Type) -> Value:
    """A value of an open tensor; elements never stored are zero, and inputs have a fixed end."""
    builder, lanes = context.builder, type.lanes
    length_address = context.address(context.layout.extent(tensor.name))
    length = builder.load(length_address, I64)
    end = builder.add(index, integer(lanes))
    is_input = tensor.role is TensorRole.INPUT
    _require_range(context, tensor, index, end, length if is_input else integer(MOST_ELEMENTS))
    if is_input:
        return _value(context, tensor, index, type)
    before = builder.block
    with builder.if_then(builder.icmp_signed("<", index, length)):
        _make_room(context, tensor, end)
        value = _value(context, tensor, index, type)
        inside = builder.block
    merged = builder.phi(register_type(type))
    merged.add_incoming(zero(type), before)
    merged.add_incoming(value, inside)
    return merged


def place_in_open(context: NodeContext, tensor: Tensor, index: Value, lanes: int) -> Value:
    """The address of ``lanes`` elements from ``index`` on, which become part of the tensor."""
    builder = context.builder
    end = builder.add(index, integer(lanes))
    _require_range(context, tensor, index, end, integer(MOST_ELEMENTS))
    lengthen_open(context, tensor, end)
    return _address(context, tensor, index)


def lengthen_open(context: NodeContext, tensor: Tensor, end: Value) -> None:
    """Extend the tensor to at least ``end``."""
    builder = context.builder
    _make_room(context, tensor, end)
    length_address = context.address(context.layout.extent(tensor.name))
    length = builder.load(length_address, I64)
    longer = builder.icmp_signed(">", end, length)
    builder.store(builder.select(longer, end, length), length_address)


def _require_range(
    context: NodeContext, tensor: Tensor, index: Value, end: Value, limit: Value
) -> None:
    builder = context.builder
    nonnegative = builder.icmp_signed(">=", index, integer(0))
    inside = builder.and_(nonnegative, builder.icmp_signed("<=", end, limit))
    context.require(inside, f"{context.node.name} leaves the bounds of {tensor.name}")


def _make_room(context: NodeContext, tensor: Tensor, end: Value) -> None:
    """Call back if the memory ends before ``end``."""
    builder, room = context.builder, context.address(context.layout.extent(tensor.name), 1)
    short = builder.icmp_signed(">", end, builder.load(room, I64))
    with builder.if_then(short, rare=True):
        address = builder.load(context.address(context.layout.grow), I64)
        arguments = [context.arena, context.number_of(tensor), end]
        builder.call_at(builder.inttoptr(address, POINTER), VOID, arguments)
    enough = builder.icmp_signed("<=", end, builder.load(room, I64))
    context.require(enough, f"{tensor.name} does not fit into memory")


def _address(context: NodeContext, tensor: Tensor, index: Value) -> Value:
    start = context.pointer(context.layout.tensor(tensor.name))
    return offset_by(context.builder, start, context.scaled(index, tensor.type.scalar.bytes))


def _value(context: NodeContext, tensor: Tensor, index: Value, type: Type) -> Value:
    where = _address(context, tensor, index)
    return load_value(context.builder, where, type, type.scalar.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneAccess:
    """An access to a tensor by a vector of indices; ``type`` is that of the value."""

    context: NodeContext
    tensor: Tensor
    indices: tuple[Expr, ...]
    type: Type

    def gather(self) -> Value:
        """The loaded vector."""
        context, builder, element = self.context, self.context.builder, self.type.scalar
        row, lanes = self._checked()
        places, result = self._slot(8 * self.type.lanes), self._slot(self.type.bytes)
        builder.store(lanes, places, _ALIGN)
        start, spare, length = self._start(), self._slot(element.bytes), self._length()
        with builder.counting(integer(0), integer(self.type.lanes)) as lane:
            at = builder.load(offset_by(builder, places, context.scaled(lane, 8)), I64)
            in_range = builder.icmp_unsigned("<", at, length)
            where = builder.select(in_range, self._address(start, row, at), spare)
            loaded = load_value(builder, where, element, element.bytes)
            loaded = builder.select(in_range, loaded, zero(element))
            to = offset_by(builder, result, context.scaled(lane, element.bytes))
            store_value(builder, loaded, to, element, element.bytes)
        return load_value(builder, result, self.type, _ALIGN)

    def scatter(self, value: Value) -> None:
        """Store a vector, lane after lane."""
        context, builder, element = self.context, self.context.builder, self.type.scalar
        row, lanes = self._checked()
        if self.tensor.open:
            self._grow(lanes)
        places, given = self._slot(8 * self.type.lanes), self._slot(self.type.bytes)
        builder.store(lanes, places, _ALIGN)
        store_value(builder, value, given, self.type, _ALIGN)
        start, spare = self._start(), self._slot(element.bytes)
        with builder.counting(integer(0), integer(self.type.lanes)) as lane:
            at = builder.load(offset_by(builder, places, context.scaled(lane, 8)), I64)
            source = offset_by(builder, given, context.scaled(lane, element.bytes))
            stored = load_value(builder, source, element, element.bytes)
            in_range = builder.icmp_signed("!=", at, integer(HOLE))
            where = builder.select(in_range, self._address(start, row, at), spare)
            store_value(builder, stored, where, element, element.bytes)

    def _slot(self, bytes: int) -> Slot:
        """Some bytes on the stack."""
        with self.context.builder.goto_entry_block():
            return self.context.builder.alloca(I8, bytes, _ALIGN)

    def _length(self) -> Value:
        """The current number of elements in the last dimension."""
        if not self.tensor.open:
            return integer(self.tensor.allocated[-1])
        where = self.context.address(self.context.layout.extent(self.tensor.name))
        return self.context.builder.load(where, I64)

    def _checked(self) -> tuple[Value, Value]:
        """The start of the row, and the checked indices in it (in range, or holes)."""
        context, builder, last = self.context, self.context.builder, self.indices[-1]
        shape = self.tensor.allocated
        row, valid = context.locate(self.indices[:-1], shape[:-1])
        wide = Type(Kind.INT, 64, last.type.lanes)
        lanes = convert(builder, context.expressions.emit(last), last.type, wide)
        grows = self.tensor.open and self.tensor.role is not TensorRole.INPUT
        limit = integer(MOST_ELEMENTS) if grows else self._length()
        if len(shape) > 1:
            limit = builder.select(valid, limit, integer(0))
            row = context.scaled(row, shape[-1])
        width = last.type.lanes
        beyond = builder.icmp_unsigned(">=", lanes, builder.splat(limit, width))
        named = builder.icmp_signed("!=", lanes, builder.splat(integer(HOLE), width))
        wrong = builder.and_(beyond, named)
        some = builder.intrinsic(f"llvm.vector.reduce.or.{wrong.type.suffix}", I1, [wrong])
        context.require(
            builder.not_(some), f"{context.node.name} leaves the bounds of {self.tensor.name}"
        )
        return row, lanes

    def _grow(self, lanes: Value) -> None:
        """Extend an open tensor to the largest index of the lanes."""
        context, builder = self.context, self.context.builder
        last = builder.intrinsic(f"llvm.vector.reduce.smax.{lanes.type.suffix}", I64, [lanes])
        lengthen_open(context, self.tensor, builder.add(last, integer(1)))

    def _start(self) -> Value:
        """The address of the tensor; an open one may have moved."""
        return self.context.pointer(self.context.layout.tensor(self.tensor.name))

    def _address(self, start: Value, row: Value, at: Value) -> Value:
        flat = at if len(self.indices) == 1 else self.context.builder.add(row, at)
        distance = self.context.scaled(flat, self.type.scalar.bytes)
        return offset_by(self.context.builder, start, distance)
