"""Elements of open tensors, gathers and scatters, in LLVM.

An open tensor has an address, a length and a capacity in the arena, all of which change when a
store goes beyond them: the code then calls back into Python, which moves the tensor.

Gathers and scatters are loops over lanes without a branch in them.  A lane that touches nothing
loads from and stores to some word of its own; what it loads is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.types import Kind, Type
from t2s.graph.graph import Tensor, TensorRole
from t2s.graph.machine_semantics import MOST_ELEMENTS
from t2s.graph.semantics import HOLE
from t2s.simulator.emit.casts import convert
from t2s.simulator.emit.llvm import I1, I8, I64, POINTER, VOID, Slot, Value, integer
from t2s.simulator.emit.representation import (
    load_value,
    offset_by,
    register_type,
    store_value,
    zero,
)
from t2s.simulator.values.emit_frame import NodeContext

_ALIGN = 64


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
    lengthen_open(context, tensor, end)
    return _address(context, tensor, index)


def lengthen_open(context: NodeContext, tensor: Tensor, end: Value) -> None:
    """Make the tensor end at ``end`` or behind it."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneAccess:
    """An access to a tensor by a vector of indices; ``type`` is that of the value."""

    context: NodeContext
    tensor: Tensor
    indices: tuple[Expr, ...]
    type: Type

    def gather(self) -> Value:
        """The vector that is loaded."""
        context, builder, element = self.context, self.context.builder, self.type.scalar
        row, lanes = self._checked()
        places, found = self._slot(8 * self.type.lanes), self._slot(self.type.bytes)
        builder.store(lanes, places, _ALIGN)
        start, spare, length = self._start(), self._slot(element.bytes), self._length()
        with builder.counting(integer(0), integer(self.type.lanes)) as lane:
            at = builder.load(offset_by(builder, places, context.scaled(lane, 8)), I64)
            there = builder.icmp_unsigned("<", at, length)
            where = builder.select(there, self._address(start, row, at), spare)
            loaded = load_value(builder, where, element, element.bytes)
            loaded = builder.select(there, loaded, zero(element))
            to = offset_by(builder, found, context.scaled(lane, element.bytes))
            store_value(builder, loaded, to, element, element.bytes)
        return load_value(builder, found, self.type, _ALIGN)

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
            there = builder.icmp_signed("!=", at, integer(HOLE))
            where = builder.select(there, self._address(start, row, at), spare)
            store_value(builder, stored, where, element, element.bytes)

    def _slot(self, bytes: int) -> Slot:
        """Some bytes on the stack."""
        with self.context.builder.goto_entry_block():
            return self.context.builder.alloca(I8, bytes, _ALIGN)

    def _length(self) -> Value:
        """How many elements of the last dimension there are now."""
        if not self.tensor.open:
            return integer(self.tensor.allocated[-1])
        where = self.context.address(self.context.layout.extent(self.tensor.name))
        return self.context.builder.load(where, I64)

    def _checked(self) -> tuple[Value, Value]:
        """The element before the row, and the indices in it, which are inside or holes."""
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
        """Make an open tensor as long as the lanes want it to be."""
        context, builder = self.context, self.context.builder
        last = builder.intrinsic(f"llvm.vector.reduce.smax.{lanes.type.suffix}", I64, [lanes])
        lengthen_open(context, self.tensor, builder.add(last, integer(1)))

    def _start(self) -> Value:
        """Where the tensor is; an open one may have moved."""
        return self.context.pointer(self.context.layout.tensor(self.tensor.name))

    def _address(self, start: Value, row: Value, at: Value) -> Value:
        flat = at if len(self.indices) == 1 else self.context.builder.add(row, at)
        distance = self.context.scaled(flat, self.type.scalar.bytes)
        return offset_by(self.context.builder, start, distance)
