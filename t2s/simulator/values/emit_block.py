"""The block of a sorted memory, in LLVM: its words, and the values of its points.

See ``sorted_memory`` for what is where.
"""

from __future__ import annotations

from t2s.graph.nodes import SortedMemory
from t2s.llvm.expressions import load_value, offset_by, register_type, store_value
from t2s.llvm.ir import I64, POINTER, Builder, Value, integer, null
from t2s.simulator.values.emit_frame import NodeContext

HALF_BITS = 32
"""Bits of a coordinate that shares a word of a key with another one."""


def key_pairs(memory: SortedMemory) -> list[list[int]]:
    """The positions of the coordinates in each word of a key."""
    words: list[list[int]] = []
    for position, type in enumerate(memory.keys):
        half = type.bits <= HALF_BITS
        if half and words and len(words[-1]) == 1 and memory.keys[words[-1][0]].bits <= HALF_BITS:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def block_words(memory: SortedMemory) -> tuple[int, int]:
    """Words of a key and of a value."""
    return len(key_pairs(memory)), -(-memory.type.bytes // 8)


class BlockEmitter:
    """Emits accesses to the block of one sorted memory, in the place that is visited.

    Attributes
    ----------
    key_words, value_words: words of a key and of a value.
    address: where the block is, once a visit has begun.
    """

    address: Value

    def __init__(self, context: NodeContext, memory: SortedMemory) -> None:
        self.context, self.memory = context, memory
        self.key_words, self.value_words = block_words(memory)

    @property
    def builder(self) -> Builder:
        """Where instructions go."""
        return self.context.builder

    def begin_visit(self) -> None:
        """Find the block of the place."""
        context = self.context
        section = context.layout.memory(context.node.name, self.memory.name)
        self.address = self.builder.load(context.address(section, context.pe), POINTER)

    def word(self, position: int) -> Value:
        """A word of the header."""
        return self.builder.load(offset_by(self.builder, self.address, 8 * position), I64)

    def set_word(self, position: int, value: Value) -> None:
        """Overwrite a word of the header."""
        self.builder.store(value, offset_by(self.builder, self.address, 8 * position))

    def address_at(self, position: Value) -> Value:
        """The address of the word at a position."""
        return offset_by(self.builder, self.address, self.context.scaled(position, 8))

    def at(self, position: Value) -> Value:
        """The word at a position."""
        return self.builder.load(self.address_at(position), I64)

    def value_of(self, entry: Value) -> Value:
        """The address of the value of an entry."""
        return self.address_at(self.builder.add(entry, integer(self.key_words)))

    def combine_at(self, where: Value, value: Value, absent: Value | None = None) -> None:
        """Combine a value into the one at an address, if there is one."""
        type = self.memory.type
        before = load_value(self.builder, where, type, type.scalar.bytes)
        both = self.context.expressions.apply(self.memory.operator, type, [before, value])
        if absent is not None:
            both = self.builder.select(absent, value, both)
        store_value(self.builder, both, where, type, type.scalar.bytes)

    def nowhere(self) -> Value:
        """The address of a value that no point has, so that adding nothing needs no branch."""
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(register_type(self.memory.type))
            self.builder.store(null(slot.kept), slot)
        return slot
