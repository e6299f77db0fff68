"""The memory of one machine array during a run: traces, sorted memories, and their code in LLVM."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.errors import InternalError
from t2s.core.expr import Expr
from t2s.core.ops import Array
from t2s.core.types import Kind, Type
from t2s.graph.nodes import Machine, SortedMemory
from t2s.llvm.expressions import convert, load_value, offset_by, register_type, store_value
from t2s.llvm.ir import (
    I32,
    I64,
    POINTER,
    Value,
    integer,
    integer_type,
    null,
    undefined,
    vector_type,
)
from t2s.simulator.values import sorted_memory
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.layout import (
    ValueLayout,
    address_of,
    most_adds,
)
from t2s.simulator.values.machine_traces import traces_of
from t2s.simulator.values.sorted_memory import CAPACITY, SIZE, emptied, enlarged, new_block
from t2s.simulator.values.span_ports import Places
from t2s.simulator.values.spans import makes_rows

_GROWTH = 4
_FIRST_POINTS = 1 << 14
_FIRST_POINTS_IN_ALL = 1 << 17
_LEAST_POINTS = 16
_NEARLY_FULL = 8
"""When others grow, a memory with less free space than this share grows, too."""


class MachineMemory:
    """Traces and sorted memories of all places, and their entries in the arena."""

    def __init__(self, node: Machine, layout: ValueLayout, arena: Array) -> None:
        places = node.place_count
        self.traces = traces_of(node, layout, arena)
        self._blocks: list[tuple[Array, list[Array]]] = []
        self._adds = [most_adds(node, memory.name) for memory in node.memories]
        for memory in node.memories:
            addresses = layout.memory(node.name, memory.name).view(arena)
            points = _FIRST_POINTS
            while points * places > _FIRST_POINTS_IN_ALL and points > _LEAST_POINTS:
                points //= 2
            blocks = [new_block(points, *block_words(memory)) for _ in range(places)]
            self._blocks.append((addresses, blocks))

    def start(self) -> None:
        """Empty traces and memories, keeping their capacity but for that of long traces."""
        self.traces.start()
        for addresses, blocks in self._blocks:
            for place, block in enumerate(blocks):
                if block[SIZE]:
                    blocks[place] = emptied(block)
            addresses[:] = [address_of(block) for block in blocks]

    @property
    def bytes(self) -> int:
        """The size of the sorted memories and of long traces."""
        sizes = (int(block.nbytes) for _, blocks in self._blocks for block in blocks)
        return self.traces.bytes + sum(sizes)

    def grow(self) -> bool:
        """Enlarge full traces and memories; return whether any was."""
        grown = self.traces.grow()
        for (addresses, blocks), most in zip(self._blocks, self._adds, strict=True):
            for place, block in enumerate(blocks):
                space, capacity = int(block[CAPACITY] - block[SIZE]), int(block[CAPACITY])
                if space < max(most, capacity // _NEARLY_FULL):
                    blocks[place] = enlarged(block)
                    addresses[place] = address_of(blocks[place])
                    grown = True
        return grown


# Statements on sorted memories, in LLVM.
#
# The key of a point is packed into signed words that sort like the points: two coordinates of up to
# 32 bits share a word, a wider one takes a word.  See ``sorted_memory`` for the block.

_WIDE = Type(Kind.INT, 64)
_HALF_BITS = 32
_MOST_KEY_WORDS = sorted_memory.ROW_POINTS - sorted_memory.PROBE


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
        self._find, self._drop, self._find_row = (
            context.builder.inttoptr(
                context.builder.load(context.address(section, number), I64), POINTER
            )
            for number in range(3)
        )
        self._makes_rows = makes_rows(memory)
        self._block: Value

    def begin_visit(self) -> None:
        """Find the block of the place."""
        context = self._context
        section = context.layout.memory(context.node.name, self.memory.name)
        self._block = context.builder.load(context.address(section, context.pe), POINTER)

    def space(self) -> Value:
        """The number of points that still fit."""
        builder = self._context.builder
        return builder.sub(self._word(sorted_memory.CAPACITY), self._word(sorted_memory.SIZE))

    def size(self) -> Value:
        """The number of points, int32."""
        return self._context.builder.trunc(self._word(sorted_memory.SIZE), I32)

    def add(self, keys: tuple[Expr, ...], value: Expr, moves: Value | None = None) -> None:
        """Combine a value into a point, if ``moves`` holds."""
        context, builder = self._context, self._context.builder
        operand, words = context.expressions.emit(value), self._key(keys)
        type, done, unknown = self.memory.type, context.block("added"), context.block("unknown")
        if len(words) == 1:
            known = context.block("known")
            holds, entry = self._at_its_slot(words[0])
            where = self._value_of(entry)
            if moves is not None:
                holds = builder.or_(holds, builder.not_(moves))
                where = builder.select(moves, where, self._nowhere(), unpredictable=True)
            builder.cbranch(holds, known, unknown)
            builder.position_at_end(known)
            before = load_value(builder, where, type, type.scalar.bytes)
            both = context.expressions.apply(self.memory.operator, type, [before, operand])
            store_value(builder, both, where, type, type.scalar.bytes)
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
        before = load_value(builder, where, type, type.scalar.bytes)
        both = context.expressions.apply(self.memory.operator, type, [before, operand])
        store_value(builder, builder.select(new, operand, both), where, type, type.scalar.bytes)
        builder.branch(done)
        builder.position_at_end(done)

    def _nowhere(self) -> Value:
        """The address of a value that no point has, so that adding nothing needs no branch."""
        with self._context.builder.goto_entry_block():
            slot = self._context.builder.alloca(register_type(self.memory.type))
            self._context.builder.store(null(slot.kept), slot)
        return slot

    def _at_its_slot(self, key: Value) -> tuple[Value, Value]:
        """Whether the entry of a key of one word is in its first slot of the table, and the entry.

        A row has no entries, and a table that is not valid is not looked at.
        """
        builder = self._context.builder
        mixed = builder.mul(key, integer(sorted_memory.FACTOR))
        mixed = builder.xor(mixed, builder.ashr(mixed, integer(32)))
        slots = builder.mul(self._word(sorted_memory.CAPACITY), integer(2))
        slot = builder.and_(mixed, builder.sub(slots, integer(1)))
        entry = self._at(builder.add(self._word(sorted_memory.TABLE), slot))
        added = self._word(sorted_memory.ADDED)
        valid = builder.icmp_signed("!=", added, integer(sorted_memory.SORTED))
        taken = builder.icmp_signed("!=", entry, integer(0))
        same = builder.icmp_signed("==", self._at(entry), key)
        return builder.and_(builder.and_(valid, taken), same), entry

    def finds_many(self) -> bool:
        """Whether ``find_many`` knows such keys."""
        types = self.memory.keys
        signed = all(type.kind is Kind.INT and type.lanes == 1 for type in types)
        return len(self._pairs) == 1 and signed and all(type.bits >= _HALF_BITS for type in types)

    def find_many(self, keys: Sequence[Value], wanted: Value) -> tuple[Value, Value]:
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
        same = builder.icmp_signed("==", self._at_lanes(entries), key)
        known = builder.and_(builder.icmp_signed("!=", entries, integer(0, type)), same)
        missing = builder.bitcast(builder.and_(wanted, builder.not_(known)), integer_type(lanes))
        all = builder.icmp_signed("==", missing, integer(0, missing.type))
        valid = builder.icmp_signed(
            "!=", self._word(sorted_memory.ADDED), integer(sorted_memory.SORTED)
        )
        values = builder.mul(
            builder.add(entries, integer(len(self._pairs), type)), integer(8, type)
        )
        places = builder.add(builder.splat(builder.ptrtoint(self._block, I64), lanes), values)
        nowhere = builder.splat(builder.ptrtoint(self._nowhere(), I64), lanes)
        return builder.select(wanted, places, nowhere), builder.and_(valid, all)

    def _at_lanes(self, positions: Value) -> Value:
        """The words at several positions."""
        builder, words = self._context.builder, undefined(positions.type)
        for lane in range(positions.type.lanes):
            word = self._at(builder.extract_element(positions, lane))
            words = builder.insert_element(words, word, lane)
        return words

    def combine(self, address: Value, value: Value) -> None:
        """Combine a value into the one at an address."""
        builder, type = self._context.builder, self.memory.type
        where = builder.inttoptr(address, POINTER)
        before = load_value(builder, where, type, type.scalar.bytes)
        both = self._context.expressions.apply(self.memory.operator, type, [before, value])
        store_value(builder, both, where, type, type.scalar.bytes)

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
        return is_row, self._row_at(position), self._word(sorted_memory.PROBE + 1)

    def row(self) -> tuple[Value, Places]:
        """The number of points in the row, 0 if there is none, and their values."""
        row = self._word(sorted_memory.ROW)
        return self._word(sorted_memory.ROW_POINTS), self._row_at(row)

    def drop_row(self, count: Value) -> None:
        """Remove the first points of the row."""
        builder, words = self._context.builder, -(-self.memory.type.bytes // 8)
        for word, change in (
            (sorted_memory.ROW_POINTS, builder.neg(count)),
            (sorted_memory.SIZE, builder.neg(count)),
            (sorted_memory.ROW_KEY, count),
            (sorted_memory.ROW, self._context.scaled(count, words)),
        ):
            where = offset_by(builder, self._block, 8 * word)
            builder.store(builder.add(builder.load(where, I64), change), where)

    def _row_at(self, position: Value) -> Places:
        address = offset_by(self._context.builder, self._block, self._context.scaled(position, 8))
        return Places(address=address, stride=integer(8 * -(-self.memory.type.bytes // 8)))

    def first(self) -> tuple[list[Value], Value]:
        """The coordinates and the value of the first point; zeros if there is none."""
        builder = self._context.builder
        empty = builder.icmp_signed("==", self._word(sorted_memory.SIZE), integer(0))
        entry = self._at(builder.add(self._word(sorted_memory.HEAP), integer(1)))
        at = builder.select(empty, self._word(sorted_memory.FREE), entry)
        if self._makes_rows:
            row = builder.icmp_signed("!=", self._word(sorted_memory.ROW_POINTS), integer(0))
            before = builder.sub(self._word(sorted_memory.ROW), integer(1))
            at = builder.select(row, before, at)
        words = [self._at(builder.add(at, integer(n))) for n in range(len(self._pairs))]
        if self._makes_rows:
            words = [builder.select(row, self._word(sorted_memory.ROW_KEY), words[0])]
        coordinates: dict[int, Value] = {}
        for word, positions in zip(words, self._pairs, strict=True):
            for position, value in self._unpacked(positions, word):
                nothing = null(value.type)
                coordinates[position] = builder.select(empty, nothing, value)
        type = self.memory.type
        value = load_value(builder, self._value_of(at), type, type.scalar.bytes)
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

    def _at(self, position: Value) -> Value:
        builder, distance = self._context.builder, self._context.scaled(position, 8)
        return builder.load(offset_by(builder, self._block, distance), I64)

    def _value_of(self, entry: Value) -> Value:
        builder = self._context.builder
        start = builder.add(entry, integer(len(self._pairs)))
        return offset_by(builder, self._block, self._context.scaled(start, 8))

    def _call(self, function: Value) -> Value:
        return self._context.builder.call_at(function, I64, [self._block])
