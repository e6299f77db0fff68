"""Points of a sorted memory in a window (see ``sorted_memory``), in LLVM."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.llvm.expressions import offset_by
from t2s.llvm.ir import I8, I64, BasicBlock, Value, integer, integer_type, vector_type
from t2s.simulator.values import sorted_memory
from t2s.simulator.values.emit_block import BlockEmitter
from t2s.simulator.values.emit_frame import smaller


class WindowEmitter:
    """Emits the code for points that are in a window."""

    _slots: Value
    _values: Value
    _present: Value
    _groups: Value

    def __init__(self, block: BlockEmitter) -> None:
        self._block = block

    def begin_visit(self) -> None:
        """Find the parts of the window."""
        block = self._block
        self._slots = block.word(sorted_memory.SLOTS)
        self._values, self._present, self._groups = (
            block.address_at(block.word(position))
            for position in (sorted_memory.VALUES, sorted_memory.PRESENT, sorted_memory.GROUPS)
        )

    def holds(self) -> Value:
        """Whether the points are in a window."""
        span = self._block.word(sorted_memory.SPAN)
        return self._block.builder.icmp_signed("!=", span, integer(0))

    def add(self, key: Value, value: Value, moves: Value | None, otherwise: BasicBlock) -> None:
        """Combine a value into a point, or go to ``otherwise`` if the key does not fit."""
        block, builder = self._block, self._block.builder
        slot = self._slot_of(key)
        self._reach(key, moves, otherwise)
        if moves is not None:
            slot = builder.select(moves, slot, self._slots)
        present = offset_by(builder, self._present, slot)
        absent = builder.icmp_signed("==", builder.load(present, I8), integer(0, I8))
        block.combine_at(self._value_in(slot), value, absent)
        builder.store(integer(1, I8), present)
        group = builder.lshr(slot, integer(sorted_memory.GROUP.bit_length() - 1))
        builder.store(integer(1, I8), offset_by(builder, self._groups, group))
        size = block.word(sorted_memory.SIZE)
        block.set_word(sorted_memory.SIZE, builder.add(size, builder.zext(absent, I64)))

    def find(self, keys: Sequence[Value], wanted: Value) -> tuple[Value, Value]:
        """The addresses of the values of points, one for each lane, and whether all are there.

        Lanes that are not ``wanted`` have the address of a value that no point has.
        """
        block, builder, (key,), lanes = self._block, self._block.builder, keys, wanted.type.lanes
        wide = vector_type(I64, lanes)
        if key.type is not wide:
            key = builder.sext(key, wide)
        low, high = (
            builder.splat(block.word(position), lanes)
            for position in (sorted_memory.LOW, sorted_memory.HIGH)
        )
        inside = builder.and_(
            builder.icmp_signed(">=", key, low), builder.icmp_signed("<=", key, high)
        )
        outside = builder.bitcast(builder.and_(wanted, builder.not_(inside)), integer_type(lanes))
        mask = builder.splat(builder.sub(self._slots, integer(1)), lanes)
        slots = builder.select(wanted, builder.and_(key, mask), builder.splat(self._slots, lanes))
        present = integer(1, I8)
        for lane in range(lanes):
            slot = builder.extract_element(slots, lane)
            byte = builder.load(offset_by(builder, self._present, slot), I8)
            present = builder.and_(present, byte)
        all = builder.and_(
            builder.icmp_signed("==", outside, integer(0, outside.type)),
            builder.icmp_signed("!=", present, integer(0, I8)),
        )
        start = builder.splat(builder.ptrtoint(self._values, I64), lanes)
        bytes = builder.mul(slots, integer(8 * block.value_words, wide))
        return builder.add(start, bytes), all

    def first(self) -> tuple[Value, Value]:
        """The key of the first point, and the address of its value."""
        low = self._block.word(sorted_memory.LOW)
        return low, self._value_in(self._slot_of(low))

    def row(self) -> tuple[Value, Value]:
        """How many points are a row, 0 if not all are consecutive, and where their values begin."""
        block, builder = self._block, self._block.builder
        low, size = block.word(sorted_memory.LOW), block.word(sorted_memory.SIZE)
        slot = self._slot_of(low)
        high = block.word(sorted_memory.HIGH)
        keys = builder.add(builder.sub(high, low), integer(1))
        is_row = builder.and_(self.holds(), builder.icmp_signed("==", keys, size))
        count = smaller(builder, size, builder.sub(self._slots, slot))
        return builder.select(is_row, count, integer(0)), self._value_in(slot)

    def _reach(self, key: Value, moves: Value | None, otherwise: BasicBlock) -> None:
        """Let the window have a key if ``moves`` holds; go to ``otherwise`` if it cannot."""
        block, builder = self._block, self._block.builder
        fits_block = block.context.block("fits")
        low, high = block.word(sorted_memory.LOW), block.word(sorted_memory.HIGH)
        lower = smaller(builder, key, low)
        higher = builder.select(builder.icmp_signed("<", high, key), key, high)
        distance = builder.sub(higher, lower)
        fits = builder.icmp_unsigned("<", distance, block.word(sorted_memory.SPAN))
        if moves is not None:
            fits = builder.or_(fits, builder.not_(moves))
            lower, higher = builder.select(moves, lower, low), builder.select(moves, higher, high)
        builder.cbranch(fits, fits_block, otherwise)
        builder.position_at_end(fits_block)
        block.set_word(sorted_memory.LOW, lower)
        block.set_word(sorted_memory.HIGH, higher)

    def _slot_of(self, key: Value) -> Value:
        builder = self._block.builder
        return builder.and_(key, builder.sub(self._slots, integer(1)))

    def _value_in(self, slot: Value) -> Value:
        """The address of the value in a slot."""
        distance = self._block.context.scaled(slot, 8 * self._block.value_words)
        return offset_by(self._block.builder, self._values, distance)
