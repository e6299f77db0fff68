"""Points of a sorted memory in the first slot of its table (see ``sorted_memory``), in LLVM."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.llvm.ir import (
    I32,
    I64,
    BasicBlock,
    Value,
    integer,
    integer_type,
    null,
    undefined,
    vector_type,
)
from t2s.simulator.values import sorted_memory
from t2s.simulator.values.emit_block import HALF_BITS, BlockEmitter


class TableEmitter:
    """Emits the code for points with a key of one word that are in their first slot."""

    def __init__(self, block: BlockEmitter) -> None:
        self._block = block

    def add(self, key: Value, value: Value, moves: Value | None, otherwise: BasicBlock) -> None:
        """Combine a value into a point; go to ``otherwise`` if it is not there."""
        block, builder = self._block, self._block.builder
        known = block.context.block("known")
        holds, entry = self._at_its_slot(key)
        where = block.value_of(entry)
        if moves is not None:
            holds = builder.or_(holds, builder.not_(moves))
            where = builder.select(moves, where, block.nowhere(), unpredictable=True)
        builder.cbranch(holds, known, otherwise)
        builder.position_at_end(known)
        block.combine_at(where, value)

    def find(self, keys: Sequence[Value], wanted: Value) -> tuple[Value, Value]:
        """The addresses of the values of points, one for each lane, and whether all are known.

        Lanes that are not ``wanted`` have the address of a value that no point has.  A point is
        known if its entry is in its first slot of the table.
        """
        block, builder, lanes = self._block, self._block.builder, wanted.type.lanes
        type = vector_type(I64, lanes)
        key, *others = (builder.sext(v, type) if v.type.element is I32 else v for v in keys)
        if others:
            high = builder.shl(key, integer(HALF_BITS, type))
            key = builder.add(high, builder.add(others[0], integer(1 << (HALF_BITS - 1), type)))
        mixed = builder.mul(key, integer(sorted_memory.FACTOR, type))
        mixed = builder.xor(mixed, builder.ashr(mixed, integer(32, type)))
        slots = builder.mul(block.word(sorted_memory.CAPACITY), integer(2))
        mask = builder.splat(builder.sub(slots, integer(1)), lanes)
        table = builder.splat(block.word(sorted_memory.TABLE), lanes)
        entries = self._at_lanes(builder.add(table, builder.and_(mixed, mask)))
        entries = builder.select(self._table_is_valid(), entries, null(type))
        same = builder.icmp_signed("==", self._at_lanes(entries), key)
        known = builder.and_(builder.icmp_signed("!=", entries, integer(0, type)), same)
        missing = builder.bitcast(builder.and_(wanted, builder.not_(known)), integer_type(lanes))
        all = builder.icmp_signed("==", missing, integer(0, missing.type))
        values = builder.mul(builder.add(entries, integer(block.key_words, type)), integer(8, type))
        places = builder.add(builder.splat(builder.ptrtoint(block.address, I64), lanes), values)
        nowhere = builder.splat(builder.ptrtoint(block.nowhere(), I64), lanes)
        return builder.select(wanted, places, nowhere), all

    def _at_its_slot(self, key: Value) -> tuple[Value, Value]:
        """Whether the entry of a key of one word is in its first slot of the table, and the entry.

        A window has no entries.  A table that is not valid has words that are no entries.
        """
        block, builder = self._block, self._block.builder
        mixed = builder.mul(key, integer(sorted_memory.FACTOR))
        mixed = builder.xor(mixed, builder.ashr(mixed, integer(32)))
        slots = builder.mul(block.word(sorted_memory.CAPACITY), integer(2))
        slot = builder.and_(mixed, builder.sub(slots, integer(1)))
        entry = block.at(builder.add(block.word(sorted_memory.TABLE), slot))
        entry = builder.select(self._table_is_valid(), entry, integer(0))
        taken = builder.icmp_signed("!=", entry, integer(0))
        same = builder.icmp_signed("==", block.at(entry), key)
        return builder.and_(taken, same), entry

    def _table_is_valid(self) -> Value:
        added = self._block.word(sorted_memory.ADDED)
        return self._block.builder.icmp_signed("!=", added, integer(sorted_memory.SORTED))

    def _at_lanes(self, positions: Value) -> Value:
        """The words at several positions."""
        builder, words = self._block.builder, undefined(positions.type)
        for lane in range(positions.type.lanes):
            word = self._block.at(builder.extract_element(positions, lane))
            words = builder.insert_element(words, word, lane)
        return words
