"""Loads of one or several firings, in LLVM, wherever their indices point to.

An index that leaves the tensor is not an error here: the value is then any one, and whoever asked
for it leaves the firing to a machine by itself, which has a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from t2s.core.types import Type
from t2s.graph.body import Load
from t2s.llvm.expressions import load_value, offset_by, register_type
from t2s.llvm.ir import I32, I64, Slot, Value, integer, null, undefined, vector_type
from t2s.simulator.values.emit_frame import NodeContext, smaller
from t2s.simulator.values.vectors import LANES

_MOST = (1 << 31) - 1


def nowhere(context: NodeContext) -> Slot:
    """Memory for values of all lanes that no tensor has."""
    with context.builder.goto_entry_block():
        return context.builder.alloca(vector_type(I64, LANES))


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """Where a machine loads from: the first element, how many there are, and ``nowhere``."""

    context: NodeContext
    type: Type
    start: Value
    extent: Value
    nowhere: Slot

    @classmethod
    def of(cls, context: NodeContext, load: Load, start: Value, nowhere: Slot) -> TensorMemory:
        """The memory of a load, whose tensor begins at ``start``."""
        tensor, builder = context.graph.tensor(load.tensor), context.builder
        extent = integer(prod(tensor.allocated))
        if tensor.open:
            with builder.goto_entry_block():
                extent = builder.load(context.address(context.layout.extent(tensor.name)), I64)
        return cls(context, load.type, start, extent, nowhere)

    def one(self, index: Value) -> tuple[Value, Value]:
        """The value at an index, and whether it is there."""
        builder = self.context.builder
        place = builder.sext(index, I64)
        inside = builder.icmp_unsigned("<", place, self.extent)
        where = builder.select(inside, self._at(place), self.nowhere)
        return load_value(builder, where, self.type, self._bytes), inside

    def beside(self, index: Value) -> tuple[Value, Value]:
        """The values at the indices of all lanes, and whether they lie side by side.

        The indices go on by the same distance.
        """
        builder = self.context.builder
        first, second = (builder.extract_element(index, lane) for lane in (0, 1))
        one = builder.icmp_signed("==", builder.sub(second, first), integer(1, I32))
        place = builder.sext(first, I64)
        end = builder.add(place, integer(LANES))
        inside = builder.and_(
            builder.icmp_signed(">=", place, integer(0)),
            builder.icmp_signed("<=", end, self.extent),
        )
        holds = builder.and_(one, inside)
        where = builder.select(holds, self._at(place), self.nowhere)
        return load_value(builder, where, self.type.with_lanes(LANES), self._bytes), holds

    def each(self, index: Value, wanted: Value | None = None) -> tuple[Value, Value]:
        """The values at the indices of all lanes, or of those ``wanted``; and which are there."""
        builder = self.context.builder
        most = builder.trunc(smaller(builder, self.extent, integer(_MOST)), I32)
        inside = builder.icmp_unsigned("<", index, builder.splat(most, LANES))
        loads = inside if wanted is None else builder.and_(wanted, inside)
        safe = builder.select(loads, index, null(index.type))
        empty = builder.icmp_signed("==", self.extent, integer(0))
        start = builder.select(empty, self.nowhere, self.start)
        values = undefined(register_type(self.type.with_lanes(LANES)))
        for lane in range(LANES):
            place = builder.zext(builder.extract_element(safe, lane), I64)
            where = offset_by(builder, start, self.context.scaled(place, self._bytes))
            value = load_value(builder, where, self.type, self._bytes)
            values = builder.insert_element(values, value, lane)
        return values, inside

    @property
    def _bytes(self) -> int:
        return self.type.scalar.bytes

    def _at(self, place: Value) -> Value:
        distance = self.context.scaled(place, self._bytes)
        return offset_by(self.context.builder, self.start, distance)
