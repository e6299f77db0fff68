"""Writing LLVM code over the arena: addresses, vectors, loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import (
    I1,
    I32,
    I64,
    LLVMFunction,
    LLVMType,
    Value,
    integer,
    integer_type,
    vector_type,
)
from t2s.simulator.times.array.arena import ArenaLayout, ArenaSection


@dataclass(frozen=True, slots=True)
class Code:
    """A function under construction whose first argument is the arena.

    Vectors have ``lanes`` lanes of ``layout.bits`` bits; -1 stands for true in memory and
    ``i1`` in registers.
    """

    layout: ArenaLayout
    function: LLVMFunction
    builder: Builder
    lanes: int = 0

    def of(self, lanes: int) -> Code:
        """The same function, with vectors of another length."""
        return replace(self, lanes=lanes)

    @property
    def arena(self) -> Value:
        """The address of the arena."""
        return self.function.args[0]

    @property
    def counter(self) -> LLVMType:
        """The type of a counter."""
        return integer_type(self.layout.bits)

    @property
    def vector(self) -> LLVMType:
        """The type of a vector of counters."""
        return vector_type(self.counter, self.lanes)

    def variable(self, kind: LLVMType) -> Value:
        """A place for a value that changes, which LLVM turns into a register."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def splat(self, value: int) -> Value:
        """A vector of counters that are all the same."""
        return integer(value, self.vector)

    def address(
        self, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """The address of an element (``index`` may be negative), ``row`` bytes further on."""
        size = section.dtype.itemsize
        if isinstance(index, int):
            offset: Value = integer(section.offset + index * size, I64)
        else:
            wide = self.builder.sext(index, I64) if index.type != I64 else index
            scaled = self.builder.mul(wide, integer(size, I64))
            offset = self.builder.add(scaled, integer(section.offset, I64))
        if row is not None:
            offset = self.builder.add(offset, self.builder.sext(row, I64))
        return self.builder.offset(self.arena, offset, inbounds=False)

    def load(
        self, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """One element."""
        kind = integer_type(8 * section.dtype.itemsize)
        return self.builder.load(self.address(section, index, row), kind, section.dtype.itemsize)

    def store(
        self, value: Value, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> None:
        """Overwrite one element."""
        self.builder.store(value, self.address(section, index, row), section.dtype.itemsize)

    def add(self, amount: Value | int, section: ArenaSection, index: Value | int = 0) -> Value:
        """Add to one element; the new value."""
        old = self.load(section, index)
        change = integer(amount, old.type) if isinstance(amount, int) else amount
        new = self.builder.add(old, change)
        self.store(new, section, index)
        return new

    def load_vector(
        self, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """A vector of counters, aligned to a counter."""
        where = self.address(section, index, row)
        return self.builder.load(where, self.vector, section.dtype.itemsize)

    def store_vector(
        self, value: Value, section: ArenaSection, index: Value | int = 0, row: Value | None = None
    ) -> None:
        """Overwrite a vector of counters."""
        self.builder.store(value, self.address(section, index, row), section.dtype.itemsize)

    def is_zero(self, vector: Value) -> Value:
        """Per lane, whether a counter is zero."""
        return self.builder.icmp_signed("==", vector, self.splat(0))

    def not_zero(self, vector: Value) -> Value:
        """Per lane, whether a counter is not zero."""
        return self.builder.icmp_signed("!=", vector, self.splat(0))

    def mask(self, truth: Value) -> Value:
        """-1 where it is true, 0 elsewhere."""
        return self.builder.sext(truth, self.vector)

    def bits(self, truth: Value) -> Value:
        """The lanes as the bits of a 64-bit number."""
        packed = self.builder.bitcast(truth, integer_type(self.lanes))
        return packed if packed.type == I64 else self.builder.zext(packed, I64)

    def word(self, number: int) -> Value:
        """A 64-bit constant."""
        return integer(number, I64)

    @contextmanager
    def counting(self, count: Value | int, step: int = 1, kind: LLVMType = I32) -> Iterator[Value]:
        """A loop over 0, ``step``, ... below ``count``."""
        builder = self.builder
        end = integer(count, kind) if isinstance(count, int) else count
        before = builder.block
        head = self.function.block("head")
        body = self.function.block("body")
        after = self.function.block("after")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(kind)
        index.add_incoming(integer(0, kind), before)
        builder.cbranch(builder.icmp_signed("<", index, end), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, integer(step, kind)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def lanes_of(self, bits: Value) -> Iterator[Value]:
        """A loop over the numbers (32 bits) of the set bits of a 64-bit number."""
        builder = self.builder
        before = builder.block
        head = self.function.block("head")
        body = self.function.block("body")
        after = self.function.block("after")
        builder.branch(head)
        builder.position_at_end(head)
        left = builder.phi(I64)
        left.add_incoming(bits, before)
        builder.cbranch(builder.icmp_signed("!=", left, self.word(0)), body, after)
        builder.position_at_end(body)
        lane = builder.intrinsic("llvm.cttz.i64", I64, [left, integer(1, I1)])
        yield builder.trunc(lane, I32)
        rest = builder.and_(left, builder.sub(left, self.word(1)))
        left.add_incoming(rest, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
