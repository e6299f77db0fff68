"""Statements on sorted memories, in LLVM.

The key of a point is packed into signed words that sort like the points: two coordinates of up to
32 bits share a word, a wider one takes a word.  See ``sorted_memory`` for the block.

What most points need is emitted, the rest is called: points with one coordinate, as those of a row,
are usually in a window, and those with two of which many are added before one is removed, in the
first slot of the table of entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, Local
from t2s.core.types import Kind, Type
from t2s.graph.nodes import SortedMemory
from t2s.llvm.expressions import convert, load_value, offset_by, register_type, store_value
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
    integer_type,
    null,
    undefined,
    vector_type,
)
from t2s.simulator.values import sorted_memory
from t2s.simulator.values.emit_frame import NodeContext, smaller
from t2s.simulator.values.span_ports import Places
from t2s.simulator.values.spans import makes_rows

_WIDE = Type(Kind.INT, 64)
_HALF_BITS = 32
_MOST_KEY_WORDS = sorted_memory.LOW - sorted_memory.PROBE


def key_pairs(memory: SortedMemory) -> list[list[int]]:
    """The positions of the coordinates in each word of a key."""
    words: list[list[int]] = []
    for position, type in enumerate(memory.keys):
        half = type.bits <= _HALF_BITS
        if half and words and len(words[-1]) == 1 and memory.keys[words[-1][0]].bits <= _HALF_BITS:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def block_words(memory: SortedMemory) -> tuple[int, int]:
    """Words of a key and of a value."""
    return len(key_pairs(memory)), -(-memory.type.bytes // 8)


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
        self._may_be_window = makes_rows(memory)
        self._is_usually_window = len(memory.keys) == 1
        self._grew: Slot | None = None
        self._block: Value
        self._slots: Value
        self._values: Value
        self._present: Value
        self._groups: Value

    def begin_visit(self) -> None:
        """Find the block of the place."""
        context, builder = self._context, self._context.builder
        section = context.layout.memory(context.node.name, self.memory.name)
        self._block = builder.load(context.address(section, context.pe), POINTER)
        if self._may_be_window:
            self._slots = self._word(sorted_memory.SLOTS)
            self._values, self._present, self._groups = (
                offset_by(builder, self._block, context.scaled(self._word(position), 8))
                for position in (
                    sorted_memory.VALUES,
                    sorted_memory.PRESENT,
                    sorted_memory.GROUPS,
                )
            )

    def space(self) -> Value:
        """The number of points that still fit."""
        builder = self._context.builder
        return builder.sub(self._word(sorted_memory.CAPACITY), self._word(sorted_memory.SIZE))

    def size(self) -> Value:
        """The number of points, int32."""
        return self._context.builder.trunc(self._word(sorted_memory.SIZE), I32)

    # -- adding -------------------------------------------------------------------------------

    def add(self, keys: tuple[Expr, ...], value: Expr, moves: Value | None = None) -> None:
        """Combine a value into a point, if ``moves`` holds."""
        context, builder = self._context, self._context.builder
        operand, words = context.expressions.emit(value), self._key(keys)
        done, unknown = context.block("added"), context.block("unknown")
        if self._is_usually_window:
            self._add_in_window(words[0], operand, moves, unknown)
            builder.branch(done)
        elif len(words) == 1:
            self._add_at_slot_of_table(words[0], operand, moves, unknown)
            builder.branch(done)
        elif moves is not None:
            builder.cbranch(moves, unknown, done)
        else:
            builder.branch(unknown)
        builder.position_at_end(unknown)
        self._probe(words)
        position = self._call(self._find)
        new = builder.icmp_signed("<", position, integer(0))
        where = self._value_of(builder.select(new, builder.neg(position), position))
        self._combine_at(where, operand, new)
        builder.branch(done)
        builder.position_at_end(done)

    def add_lanes(self, keys: Sequence[Value], values: Value, wanted: Value, count: Value) -> None:
        """Combine the values of the lanes that are ``wanted``, all of them before ``count``.

        Where all points are there, they are found together.  Where some are new, and so were some
        before, that is not tried.
        """
        context, builder = self._context, self._context.builder
        each, done = context.block("each"), context.block("added")
        if self._has_signed_key():
            look, known = context.block("look"), context.block("known")
            if self._grew is None:
                with builder.goto_entry_block():
                    self._grew = builder.alloca(I1)
                    builder.store(integer(0, I1), self._grew)
            builder.cbranch(builder.load(self._grew, I1), each, look)
            builder.position_at_end(look)
            find = self._find_in_window if self._is_usually_window else self._find_in_table
            addresses, all = find(keys, wanted)
            builder.cbranch(all, known, each)
            builder.position_at_end(known)
            for lane in range(wanted.type.lanes):
                address, value = (builder.extract_element(v, lane) for v in (addresses, values))
                self._combine_at(builder.inttoptr(address, POINTER), value)
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

    def _has_signed_key(self) -> bool:
        """Whether keys are one word, of coordinates that are in lanes as in that word."""
        types = self.memory.keys
        signed = all(type.kind is Kind.INT and type.lanes == 1 for type in types)
        return len(self._pairs) == 1 and signed and all(type.bits >= _HALF_BITS for type in types)

    def _combine_at(self, where: Value, value: Value, absent: Value | None = None) -> None:
        """Combine a value into the one at an address, if there is one."""
        builder, type = self._context.builder, self.memory.type
        before = load_value(builder, where, type, type.scalar.bytes)
        both = self._context.expressions.apply(self.memory.operator, type, [before, value])
        if absent is not None:
            both = builder.select(absent, value, both)
        store_value(builder, both, where, type, type.scalar.bytes)

    # -- in a window

    def _add_in_window(
        self, key: Value, value: Value, moves: Value | None, otherwise: BasicBlock
    ) -> None:
        """Combine a value into a point, or go to ``otherwise`` if the key does not fit."""
        builder = self._context.builder
        slot = builder.and_(key, builder.sub(self._slots, integer(1)))
        self._reach(key, moves, otherwise)
        if moves is not None:
            slot = builder.select(moves, slot, self._slots)
        present = offset_by(builder, self._present, slot)
        absent = builder.icmp_signed("==", builder.load(present, I8), integer(0, I8))
        self._combine_at(self._value_in(slot), value, absent)
        builder.store(integer(1, I8), present)
        group = builder.lshr(slot, integer(sorted_memory.GROUP.bit_length() - 1))
        builder.store(integer(1, I8), offset_by(builder, self._groups, group))
        size = self._word(sorted_memory.SIZE)
        self._set(sorted_memory.SIZE, builder.add(size, builder.zext(absent, I64)))

    def _value_in(self, slot: Value) -> Value:
        """The address of the value in a slot."""
        distance = self._context.scaled(slot, 8 * self._value_words)
        return offset_by(self._context.builder, self._values, distance)

    def _find_in_window(self, keys: Sequence[Value], wanted: Value) -> tuple[Value, Value]:
        """The addresses of the values of points, one for each lane, and whether all are there.

        Lanes that are not ``wanted`` have the address of a value that no point has.
        """
        builder, (key,), lanes = self._context.builder, keys, wanted.type.lanes
        wide = vector_type(I64, lanes)
        if key.type is not wide:
            key = builder.sext(key, wide)
        low, high = (
            builder.splat(self._word(position), lanes)
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
        bytes = builder.mul(slots, integer(8 * self._value_words, wide))
        return builder.add(start, bytes), all

    def _reach(self, key: Value, moves: Value | None, otherwise: BasicBlock) -> None:
        """Let the window have a key if ``moves`` holds; go to ``otherwise`` if it cannot."""
        builder, fits_block = self._context.builder, self._context.block("fits")
        low, high = self._word(sorted_memory.LOW), self._word(sorted_memory.HIGH)
        lower = smaller(builder, key, low)
        higher = builder.select(builder.icmp_signed("<", high, key), key, high)
        distance = builder.sub(higher, lower)
        fits = builder.icmp_unsigned("<", distance, self._word(sorted_memory.SPAN))
        if moves is not None:
            fits = builder.or_(fits, builder.not_(moves))
            lower, higher = builder.select(moves, lower, low), builder.select(moves, higher, high)
        builder.cbranch(fits, fits_block, otherwise)
        builder.position_at_end(fits_block)
        self._set(sorted_memory.LOW, lower)
        self._set(sorted_memory.HIGH, higher)

    # -- in the first slots of the table

    def _add_at_slot_of_table(
        self, key: Value, value: Value, moves: Value | None, otherwise: BasicBlock
    ) -> None:
        """Combine a value into a point; go to ``otherwise`` if it is not there."""
        builder, known = self._context.builder, self._context.block("known")
        holds, entry = self._at_its_slot(key)
        where = self._value_of(entry)
        if moves is not None:
            holds = builder.or_(holds, builder.not_(moves))
            where = builder.select(moves, where, self._nowhere(), unpredictable=True)
        builder.cbranch(holds, known, otherwise)
        builder.position_at_end(known)
        self._combine_at(where, value)

    def _nowhere(self) -> Value:
        """The address of a value that no point has, so that adding nothing needs no branch."""
        with self._context.builder.goto_entry_block():
            slot = self._context.builder.alloca(register_type(self.memory.type))
            self._context.builder.store(null(slot.kept), slot)
        return slot

    def _at_its_slot(self, key: Value) -> tuple[Value, Value]:
        """Whether the entry of a key of one word is in its first slot of the table, and the entry.

        A window has no entries.  A table that is not valid has words that are no entries.
        """
        builder = self._context.builder
        mixed = builder.mul(key, integer(sorted_memory.FACTOR))
        mixed = builder.xor(mixed, builder.ashr(mixed, integer(32)))
        slots = builder.mul(self._word(sorted_memory.CAPACITY), integer(2))
        slot = builder.and_(mixed, builder.sub(slots, integer(1)))
        entry = self._at(builder.add(self._word(sorted_memory.TABLE), slot))
        entry = builder.select(self._table_is_valid(), entry, integer(0))
        taken = builder.icmp_signed("!=", entry, integer(0))
        same = builder.icmp_signed("==", self._at(entry), key)
        return builder.and_(taken, same), entry

    def _table_is_valid(self) -> Value:
        added = self._word(sorted_memory.ADDED)
        return self._context.builder.icmp_signed("!=", added, integer(sorted_memory.SORTED))

    def _find_in_table(self, keys: Sequence[Value], wanted: Value) -> tuple[Value, Value]:
        """The addresses of the values of points, one for each lane, and whether all are known.

        Lanes that are not ``wanted`` have the address of a value that no point has.  A point is
        known if its entry is in its first slot of the table.
        """
        builder, lanes = self._context.builder, wanted.type.lanes
        type = vector_type(I64, lanes)
        key, *others = (builder.sext(v, type) if v.type.element is I32 else v for v in keys)
        if others:
            high = builder.shl(key, integer(_HALF_BITS, type))
            key = builder.add(high, builder.add(others[0], integer(1 << (_HALF_BITS - 1), type)))
        mixed = builder.mul(key, integer(sorted_memory.FACTOR, type))
        mixed = builder.xor(mixed, builder.ashr(mixed, integer(32, type)))
        slots = builder.mul(self._word(sorted_memory.CAPACITY), integer(2))
        mask = builder.splat(builder.sub(slots, integer(1)), lanes)
        table = builder.splat(self._word(sorted_memory.TABLE), lanes)
        entries = self._at_lanes(builder.add(table, builder.and_(mixed, mask)))
        entries = builder.select(self._table_is_valid(), entries, null(type))
        same = builder.icmp_signed("==", self._at_lanes(entries), key)
        known = builder.and_(builder.icmp_signed("!=", entries, integer(0, type)), same)
        missing = builder.bitcast(builder.and_(wanted, builder.not_(known)), integer_type(lanes))
        all = builder.icmp_signed("==", missing, integer(0, missing.type))
        values = builder.mul(
            builder.add(entries, integer(len(self._pairs), type)), integer(8, type)
        )
        places = builder.add(builder.splat(builder.ptrtoint(self._block, I64), lanes), values)
        nowhere = builder.splat(builder.ptrtoint(self._nowhere(), I64), lanes)
        return builder.select(wanted, places, nowhere), all

    def _at_lanes(self, positions: Value) -> Value:
        """The words at several positions."""
        builder, words = self._context.builder, undefined(positions.type)
        for lane in range(positions.type.lanes):
            word = self._at(builder.extract_element(positions, lane))
            words = builder.insert_element(words, word, lane)
        return words

    # -- keys ----------------------------------------------------------------------------------

    def _key(self, keys: tuple[Expr, ...]) -> list[Value]:
        """The words of a key."""
        coordinates = [self._context.expressions.emit(key) for key in keys]
        return [self._packed(positions, coordinates) for positions in self._pairs]

    def _probe(self, key: Sequence[Value]) -> None:
        """Write the key to look for."""
        builder = self._context.builder
        for number, word in enumerate(key):
            where = offset_by(builder, self._block, 8 * (sorted_memory.PROBE + number))
            builder.store(word, where)

    def find_row(self, keys: tuple[Expr, ...], count: Value) -> tuple[Value, Places, Value]:
        """Consecutive points as a row: whether they are one, their values, how many are old."""
        builder, probed = self._context.builder, 8 * (sorted_memory.PROBE + 1)
        self._probe(self._key(keys))
        builder.store(count, offset_by(builder, self._block, probed))
        position = self._call(self._find_row)
        is_row = builder.icmp_signed("!=", position, integer(0))
        address = offset_by(builder, self._block, self._context.scaled(position, 8))
        return is_row, self._places(address), self._word(sorted_memory.PROBE + 1)

    def row(self) -> tuple[Value, Places]:
        """How many points are a row, 0 if not all are consecutive, and their values."""
        builder = self._context.builder
        low, size = self._word(sorted_memory.LOW), self._word(sorted_memory.SIZE)
        slot = builder.and_(low, builder.sub(self._slots, integer(1)))
        keys = builder.add(builder.sub(self._word(sorted_memory.HIGH), low), integer(1))
        is_row = builder.and_(self._is_window(), builder.icmp_signed("==", keys, size))
        count = smaller(builder, size, builder.sub(self._slots, slot))
        return builder.select(is_row, count, integer(0)), self._places(self._value_in(slot))

    def drop_row(self, count: Value) -> None:
        """Remove the first points of the row."""
        self._probe([count])
        self._call(self._drop_row)

    def _places(self, address: Value) -> Places:
        return Places(address=address, stride=integer(8 * self._value_words))

    @property
    def _value_words(self) -> int:
        return block_words(self.memory)[1]

    def _is_window(self) -> Value:
        """Whether the points are in a window."""
        span = self._word(sorted_memory.SPAN)
        return self._context.builder.icmp_signed("!=", span, integer(0))

    # -- removing -----------------------------------------------------------------------------

    def first(self) -> tuple[list[Value], Value]:
        """The coordinates and the value of the first point; zeros if there is none."""
        builder = self._context.builder
        empty = builder.icmp_signed("==", self._word(sorted_memory.SIZE), integer(0))
        entry = self._at(builder.add(self._word(sorted_memory.HEAP), integer(1)))
        at = builder.select(empty, self._word(sorted_memory.FREE), entry)
        if self._may_be_window:  # where the heap may have anything
            window = self._is_window()
            at = builder.select(window, self._word(sorted_memory.FREE), at)
        words = [self._at(builder.add(at, integer(n))) for n in range(len(self._pairs))]
        where = self._value_of(at)
        if self._may_be_window:
            low = self._word(sorted_memory.LOW)
            slot = builder.and_(low, builder.sub(self._slots, integer(1)))
            where = builder.select(window, self._value_in(slot), where)
            words = [builder.select(window, low, words[0])]
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

    def _packed(self, positions: list[int], coordinates: list[Value]) -> Value:
        builder = self._context.builder
        ordered = [
            self._signed(coordinates[position], self.memory.keys[position])
            for position in positions
        ]
        if len(ordered) == 1:
            return ordered[0]
        high = builder.shl(ordered[0], integer(_HALF_BITS))
        return builder.add(high, builder.add(ordered[1], integer(1 << (_HALF_BITS - 1))))

    def _signed(self, value: Value, type: Type) -> Value:
        """The coordinate as a signed word that sorts the same; -2**31 to 2**31 - 1 for 32 bits."""
        builder = self._context.builder
        wide = convert(builder, value, type, _WIDE)
        if type.kind is not Kind.UINT:
            return wide
        if type.bits == _HALF_BITS:
            return builder.sub(wide, integer(1 << (_HALF_BITS - 1)))
        return builder.xor(wide, integer(-1 << 63)) if type.bits > _HALF_BITS else wide

    def _unpacked(self, positions: list[int], word: Value) -> list[tuple[int, Value]]:
        builder = self._context.builder
        if len(positions) == 1:
            return [(positions[0], self._restored(word, self.memory.keys[positions[0]]))]
        high = builder.ashr(word, integer(_HALF_BITS))
        low = builder.sub(
            builder.and_(word, integer((1 << _HALF_BITS) - 1)), integer(1 << (_HALF_BITS - 1))
        )
        return [
            (position, self._restored(part, self.memory.keys[position]))
            for position, part in zip(positions, (high, low), strict=True)
        ]

    def _restored(self, word: Value, type: Type) -> Value:
        builder = self._context.builder
        if type.kind is Kind.UINT and type.bits == _HALF_BITS:
            word = builder.add(word, integer(1 << (_HALF_BITS - 1)))
        elif type.kind is Kind.UINT and type.bits > _HALF_BITS:
            word = builder.xor(word, integer(-1 << 63))
        return convert(builder, word, _WIDE, type)

    def _word(self, position: int) -> Value:
        builder = self._context.builder
        return builder.load(offset_by(builder, self._block, 8 * position), I64)

    def _set(self, position: int, value: Value) -> None:
        builder = self._context.builder
        builder.store(value, offset_by(builder, self._block, 8 * position))

    def _at(self, position: Value) -> Value:
        builder, distance = self._context.builder, self._context.scaled(position, 8)
        return builder.load(offset_by(builder, self._block, distance), I64)

    def _value_of(self, entry: Value) -> Value:
        builder = self._context.builder
        start = builder.add(entry, integer(len(self._pairs)))
        return offset_by(builder, self._block, self._context.scaled(start, 8))

    def _call(self, function: Value) -> Value:
        return self._context.builder.call_at(function, I64, [self._block])
