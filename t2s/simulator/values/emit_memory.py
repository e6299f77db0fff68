"""Statements on sorted memories, in LLVM.

The key of a point is packed into signed words that sort like the points: two coordinates of up to
32 bits share a word, a wider one takes a word.  See ``sorted_memory`` for the block.

What most points need is emitted, the rest is called: points with one coordinate, as those of a row,
are usually in a window (``emit_window``), and those with two of which many are added before one is
removed, in the first slot of the table of entries (``emit_table``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local
from t2s.core.types import Kind, Type
from t2s.graph.nodes import SortedMemory
from t2s.llvm.expressions import convert, load_value, offset_by, register_type
from t2s.llvm.ir import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    BasicBlock,
    Slot,
    Value,
    integer,
    null,
    vector_type,
)
from t2s.simulator.values import sorted_memory
from t2s.simulator.values.emit_block import HALF_BITS, BlockEmitter, key_pairs
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.emit_table import TableEmitter
from t2s.simulator.values.emit_window import WindowEmitter
from t2s.simulator.values.span_ports import Places
from t2s.simulator.values.spans import makes_rows

_WIDE = Type(Kind.INT, 64)
_MOST_KEY_WORDS = sorted_memory.LOW - sorted_memory.PROBE


class Lookup(Protocol):
    """Emits the code that finds most points, and knows which ones it does not find."""

    def add(self, key: Value, value: Value, moves: Value | None, otherwise: BasicBlock) -> None:
        """Combine a value into a point if ``moves`` holds, or go to ``otherwise``."""

    def find(self, keys: Sequence[Value], wanted: Value) -> tuple[Value, Value]:
        """The addresses of the values of points, one for each lane, and whether all are found.

        Lanes that are not ``wanted`` have the address of a value that no point has.
        """


class MemoryEmitter:
    """Emits the code of one sorted memory of one machine."""

    def __init__(self, context: NodeContext, memory: SortedMemory) -> None:
        self.memory = memory
        self._context = context
        self._pairs = key_pairs(memory)
        if len(self._pairs) > _MOST_KEY_WORDS:
            raise InternalError(f"a point of {memory.name} has {len(memory.keys)} coordinates")
        section = context.layout.memory_functions
        self._find, self._drop, self._find_row, self._drop_row = (
            context.builder.inttoptr(
                context.builder.load(context.address(section, number), I64), POINTER
            )
            for number in range(4)
        )
        self._block = BlockEmitter(context, memory)
        self._window = WindowEmitter(self._block) if makes_rows(memory) else None
        self._lookup: Lookup | None = None
        if len(memory.keys) == 1:
            self._lookup = self._window
        elif len(self._pairs) == 1:
            self._lookup = TableEmitter(self._block)
        self._grew: Slot | None = None

    def begin_visit(self) -> None:
        """Find the block of the place."""
        self._block.begin_visit()
        if self._window is not None:
            self._window.begin_visit()

    def space(self) -> Value:
        """The number of points that still fit."""
        block = self._block
        capacity, size = block.word(sorted_memory.CAPACITY), block.word(sorted_memory.SIZE)
        return block.builder.sub(capacity, size)

    def size(self) -> Value:
        """The number of points, int32."""
        return self._context.builder.trunc(self._block.word(sorted_memory.SIZE), I32)

    # -- adding -------------------------------------------------------------------------------

    def add(self, keys: tuple[Expr, ...], value: Expr, moves: Value | None = None) -> None:
        """Combine a value into a point, if ``moves`` holds."""
        context, builder = self._context, self._context.builder
        operand, words = context.expressions.emit(value), self._key(keys)
        done, unknown = context.block("added"), context.block("unknown")
        if self._lookup is not None:
            self._lookup.add(words[0], operand, moves, unknown)
            builder.branch(done)
        elif moves is not None:
            builder.cbranch(moves, unknown, done)
        else:
            builder.branch(unknown)
        builder.position_at_end(unknown)
        self._probe(words)
        position = self._call(self._find)
        new = builder.icmp_signed("<", position, integer(0))
        where = self._block.value_of(builder.select(new, builder.neg(position), position))
        self._block.combine_at(where, operand, new)
        builder.branch(done)
        builder.position_at_end(done)

    def add_lanes(self, keys: Sequence[Value], values: Value, wanted: Value, count: Value) -> None:
        """Combine the values of the lanes that are ``wanted``, all of them before ``count``.

        Where all points are there, they are found together.  Where some are new, and so were some
        before, that is not tried.
        """
        context, builder = self._context, self._context.builder
        each, done = context.block("each"), context.block("added")
        if self._lookup is not None and self._has_signed_coordinates():
            look, known = context.block("look"), context.block("known")
            if self._grew is None:
                with builder.goto_entry_block():
                    self._grew = builder.alloca(I1)
                    builder.store(integer(0, I1), self._grew)
            builder.cbranch(builder.load(self._grew, I1), each, look)
            builder.position_at_end(look)
            addresses, all = self._lookup.find(keys, wanted)
            builder.cbranch(all, known, each)
            builder.position_at_end(known)
            for lane in range(wanted.type.lanes):
                address, value = (builder.extract_element(v, lane) for v in (addresses, values))
                self._block.combine_at(builder.inttoptr(address, POINTER), value)
            builder.branch(done)
        else:
            builder.branch(each)
        builder.position_at_end(each)
        self._add_each(keys, values, wanted, count)
        builder.branch(done)
        builder.position_at_end(done)

    def _add_each(self, keys: Sequence[Value], values: Value, wanted: Value, count: Value) -> None:
        """Combine the values of lanes one by one."""
        context, builder, size = self._context, self._context.builder, self.size()
        types = (*self.memory.keys, self.memory.type)
        parts = [Local(name=f"part {n} of the point", type=type) for n, type in enumerate(types)]
        kept = [self._kept(lanes) for lanes in (*keys, values)]
        moving = self._kept(builder.zext(wanted, vector_type(I8, wanted.type.lanes)))
        with builder.counting(integer(0), count, flags="nuw nsw") as lane:
            for part, where in zip(parts, kept, strict=True):
                at = offset_by(builder, where, context.scaled(lane, part.type.bytes))
                context.names[part.name] = load_value(builder, at, part.type, part.type.bytes)
            moves = builder.load(offset_by(builder, moving, lane), I8)
            moves = builder.icmp_signed("!=", moves, integer(0, I8))
            self.add(tuple(parts[:-1]), parts[-1], moves)
        if self._grew is not None:
            builder.store(builder.icmp_signed("!=", size, self.size()), self._grew)

    def _kept(self, lanes: Value) -> Value:
        """The address of memory that holds a vector."""
        with self._context.builder.goto_entry_block():
            slot = self._context.builder.alloca(lanes.type)
        self._context.builder.store(lanes, slot)
        return slot

    def _has_signed_coordinates(self) -> bool:
        """Whether coordinates are in lanes as in the words of a key."""
        types = self.memory.keys
        signed = all(type.kind is Kind.INT and type.lanes == 1 for type in types)
        return signed and all(type.bits >= HALF_BITS for type in types)

    # -- removing -----------------------------------------------------------------------------

    def first(self) -> tuple[list[Value], Value]:
        """The coordinates and the value of the first point; zeros if there is none."""
        builder = self._context.builder
        empty = builder.icmp_signed("==", self._block.word(sorted_memory.SIZE), integer(0))
        entry = self._block.at(builder.add(self._block.word(sorted_memory.HEAP), integer(1)))
        at = builder.select(empty, self._block.word(sorted_memory.FREE), entry)
        if self._window is not None:  # where the heap may have anything
            holds = self._window.holds()
            at = builder.select(holds, self._block.word(sorted_memory.FREE), at)
        words = [self._block.at(builder.add(at, integer(n))) for n in range(len(self._pairs))]
        where = self._block.value_of(at)
        if self._window is not None:
            low, place = self._window.first()
            where = builder.select(holds, place, where)
            words = [builder.select(holds, low, words[0])]
        coordinates: dict[int, Value] = {}
        for word, positions in zip(words, self._pairs, strict=True):
            for position, value in self._unpacked(positions, word):
                nothing = null(value.type)
                coordinates[position] = builder.select(empty, nothing, value)
        type = self.memory.type
        value = load_value(builder, where, type, type.scalar.bytes)
        nothing = null(register_type(type))
        ordered = [coordinates[position] for position in range(len(self.memory.keys))]
        return ordered, builder.select(empty, nothing, value)

    def drop(self) -> None:
        """Remove the first point."""
        self._call(self._drop)

    # -- rows --------------------------------------------------------------------------------

    def find_row(self, keys: tuple[Expr, ...], count: Value) -> tuple[Value, Places, Value]:
        """Consecutive points as a row: whether they are one, their values, how many are old."""
        self._probe([*self._key(keys), count])
        position = self._call(self._find_row)
        is_row = self._context.builder.icmp_signed("!=", position, integer(0))
        address = self._block.address_at(position)
        return is_row, self._places(address), self._block.word(sorted_memory.PROBE + 1)

    def row(self) -> tuple[Value, Places]:
        """How many points are a row, 0 if not all are consecutive, and their values."""
        assert self._window is not None
        count, address = self._window.row()
        return count, self._places(address)

    def drop_row(self, count: Value) -> None:
        """Remove the first points of the row."""
        self._probe([count])
        self._call(self._drop_row)

    def _places(self, address: Value) -> Places:
        return Places(address=address, stride=integer(8 * self._block.value_words))

    # -- keys --------------------------------------------------------------------------------

    def _key(self, keys: tuple[Expr, ...]) -> list[Value]:
        """The words of a key."""
        coordinates = [self._context.expressions.emit(key) for key in keys]
        return [self._packed(positions, coordinates) for positions in self._pairs]

    def _probe(self, key: Sequence[Value]) -> None:
        """Write the key to look for."""
        for number, word in enumerate(key):
            self._block.set_word(sorted_memory.PROBE + number, word)

    def _packed(self, positions: list[int], coordinates: list[Value]) -> Value:
        builder = self._context.builder
        ordered = [
            self._signed(coordinates[position], self.memory.keys[position])
            for position in positions
        ]
        if len(ordered) == 1:
            return ordered[0]
        high = builder.shl(ordered[0], integer(HALF_BITS))
        return builder.add(high, builder.add(ordered[1], integer(1 << (HALF_BITS - 1))))

    def _signed(self, value: Value, type: Type) -> Value:
        """The coordinate as a signed word that sorts the same; -2**31 to 2**31 - 1 for 32 bits."""
        builder = self._context.builder
        wide = convert(builder, value, type, _WIDE)
        if type.kind is not Kind.UINT:
            return wide
        if type.bits == HALF_BITS:
            return builder.sub(wide, integer(1 << (HALF_BITS - 1)))
        return builder.xor(wide, integer(-1 << 63)) if type.bits > HALF_BITS else wide

    def _unpacked(self, positions: list[int], word: Value) -> list[tuple[int, Value]]:
        builder = self._context.builder
        if len(positions) == 1:
            return [(positions[0], self._restored(word, self.memory.keys[positions[0]]))]
        high = builder.ashr(word, integer(HALF_BITS))
        low = builder.sub(
            builder.and_(word, integer((1 << HALF_BITS) - 1)), integer(1 << (HALF_BITS - 1))
        )
        return [
            (position, self._restored(part, self.memory.keys[position]))
            for position, part in zip(positions, (high, low), strict=True)
        ]

    def _restored(self, word: Value, type: Type) -> Value:
        builder = self._context.builder
        if type.kind is Kind.UINT and type.bits == HALF_BITS:
            word = builder.add(word, integer(1 << (HALF_BITS - 1)))
        elif type.kind is Kind.UINT and type.bits > HALF_BITS:
            word = builder.xor(word, integer(-1 << 63))
        return convert(builder, word, _WIDE, type)

    def _call(self, function: Value) -> Value:
        return self._context.builder.call_at(function, I64, [self._block.address])
