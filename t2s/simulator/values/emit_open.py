"""Accesses to open tensors, whose length is known only while the graph runs.

Such a tensor has an address, a length and a capacity in the arena, all of which change when a store
goes beyond them: the code then calls back into Python, which moves the tensor.
"""

from __future__ import annotations

from t2s.core.types import Type
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.machine_semantics import MOST_ELEMENTS
from t2s.simulator.emit.llvm import I64, POINTER, VOID, Value, integer
from t2s.simulator.emit.representation import load_value, offset_by, register_type, zero
from t2s.simulator.values.emit_context import NodeContext


def loaded_from_open(context: NodeContext, tensor: Tensor, index: Value, type: Type) -> Value:
    """A value of an open tensor.  Never stored is zero; an input ends where it ends."""
    builder, lanes = context.builder, type.lanes
    length_address = context.address(context.layout.extent(tensor.name))
    length = builder.load(length_address, I64)
    end = builder.add(index, integer(lanes))
    given = tensor.role is TensorRole.INPUT
    _require_range(context, tensor, index, end, length if given else integer(MOST_ELEMENTS))
    if given:
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
    """The address for ``lanes`` elements from ``index`` on, part of the tensor from now on."""
    builder = context.builder
    end = builder.add(index, integer(lanes))
    _require_range(context, tensor, index, end, integer(MOST_ELEMENTS))
    _make_room(context, tensor, end)
    length_address = context.address(context.layout.extent(tensor.name))
    length = builder.load(length_address, I64)
    longer = builder.icmp_signed(">", end, length)
    builder.store(builder.select(longer, end, length), length_address)
    return _address(context, tensor, index)


def _require_range(
    context: NodeContext, tensor: Tensor, index: Value, end: Value, limit: Value
) -> None:
    builder = context.builder
    nonnegative = builder.icmp_signed(">=", index, integer(0))
    inside = builder.and_(nonnegative, builder.icmp_signed("<=", end, limit))
    context.require(inside, f"{context.node.name} leaves the bounds of {tensor.name}")


def _make_room(context: NodeContext, tensor: Tensor, end: Value) -> None:
    """Call back where the memory ends before ``end``."""
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
