"""The statements of a body: one firing of a PE, in LLVM."""

from __future__ import annotations

from collections.abc import Callable
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
from t2s.graph.machine import Search
from t2s.simulator.emit.casts import convert
from t2s.simulator.emit.llvm import I64, Value, integer
from t2s.simulator.emit.representation import (
    load_value,
    offset_by,
    register_type,
    require_type,
    store_value,
    token_alignment,
    zero,
)
from t2s.simulator.values.emit_elements import LaneAccess, loaded_from_open, place_in_open
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.emit_ports import PortEmitter

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
    found = builder.phi(I64)
    found.add_incoming(begin, before)
    found.add_incoming(next_low, loop)
    return convert(builder, found, _WIDE, statement.begin.type)


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
        register = next(found for found in context.node.registers if found.name == name)
        require_type(type, register.type, f"an element of register {name}")
        flat, valid = context.locate(indices, register.shape)
        context.require(valid, f"{context.node.name} leaves the bounds of register {name}")
        row = prod(register.shape) * type.bytes
        start = context.address(context.layout.register(context.node.name, name), context.pe, row)
        return offset_by(context.builder, start, context.scaled(flat, type.bytes))

    def _evaluated(self, condition: Expr | None) -> Value | None:
        return None if condition is None else self._context.expressions.emit(condition)

    def _when(self, condition: Value | None, emit: Callable[[], None]) -> None:
        """Emit code that runs where the condition holds."""
        if condition is None:
            emit()
            return
        with self._context.builder.if_then(condition):
            emit()

    def _where(self, condition: Value | None, type: Type, emit: Callable[[], Value]) -> Value:
        """A value that is zero, and not computed, where the condition does not hold."""
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
