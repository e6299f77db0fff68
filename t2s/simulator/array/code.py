"""Writing LLVM code over the arena: addresses, vectors, loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from t2s.simulator.array.memory import ArenaLayout, Section
from t2s.simulator.native.llvm import Builder, Function, Value, ir
from t2s.simulator.native.representation import I1, I8, I32, I64


@dataclass(frozen=True, slots=True)
class Code:
    """A function under construction whose first argument is the arena.

    Vectors have ``lanes`` lanes of ``layout.bits`` bits; -1 stands for true in memory and
    ``i1`` in registers.
    """

    layout: ArenaLayout
    function: Function
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
    def counter(self) -> Any:
        """The type of a counter."""
        return ir.IntType(self.layout.bits)

    @property
    def vector(self) -> Any:
        """The type of a vector of counters."""
        return ir.VectorType(self.counter, self.lanes)

    def variable(self, kind: Any) -> Value:
        """A place for a value that changes, which LLVM turns into a register."""
        with self.builder.goto_entry_block():
            return self.builder.alloca(kind)

    def splat(self, value: int) -> Value:
        """A vector of counters that are all the same."""
        return ir.Constant(self.vector, [value] * self.lanes)

    def address(self, section: Section, index: Value | int = 0, row: Value | None = None) -> Value:
        """The address of an element (``index`` may be negative), ``row`` bytes further on."""
        size = section.dtype.itemsize
        if isinstance(index, int):
            offset: Value = ir.Constant(I64, section.offset + index * size)
        else:
            wide = self.builder.sext(index, I64) if index.type != I64 else index
            scaled = self.builder.mul(wide, ir.Constant(I64, size))
            offset = self.builder.add(scaled, ir.Constant(I64, section.offset))
        if row is not None:
            offset = self.builder.add(offset, self.builder.sext(row, I64))
        return self.builder.gep(self.arena, [offset], source_etype=I8)

    def load(self, section: Section, index: Value | int = 0, row: Value | None = None) -> Value:
        """One element."""
        kind = ir.IntType(8 * section.dtype.itemsize)
        loaded = self.builder.load(self.address(section, index, row), typ=kind)
        loaded.align = section.dtype.itemsize
        return loaded

    def store(
        self, value: Value, section: Section, index: Value | int = 0, row: Value | None = None
    ) -> None:
        """Overwrite one element."""
        stored = self.builder.store(value, self.address(section, index, row))
        stored.align = section.dtype.itemsize

    def add(self, amount: Value | int, section: Section, index: Value | int = 0) -> Value:
        """Add to one element; the new value."""
        old = self.load(section, index)
        change = ir.Constant(old.type, amount) if isinstance(amount, int) else amount
        new = self.builder.add(old, change)
        self.store(new, section, index)
        return new

    def load_vector(
        self, section: Section, index: Value | int = 0, row: Value | None = None
    ) -> Value:
        """A vector of counters, aligned to a counter."""
        loaded = self.builder.load(self.address(section, index, row), typ=self.vector)
        loaded.align = section.dtype.itemsize
        return loaded

    def store_vector(
        self, value: Value, section: Section, index: Value | int = 0, row: Value | None = None
    ) -> None:
        """Overwrite a vector of counters."""
        stored = self.builder.store(value, self.address(section, index, row))
        stored.align = section.dtype.itemsize

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
        packed = self.builder.bitcast(truth, ir.IntType(self.lanes))
        return packed if packed.type == I64 else self.builder.zext(packed, I64)

    def word(self, number: int) -> Value:
        """A 64-bit constant."""
        return ir.Constant(I64, number)

    @contextmanager
    def counting(self, count: Value | int, step: int = 1, kind: Any = I32) -> Iterator[Value]:
        """A loop over 0, ``step``, ... below ``count``."""
        builder = self.builder
        end = ir.Constant(kind, count) if isinstance(count, int) else count
        before = builder.block
        head = self.function.append_basic_block("head")
        body = self.function.append_basic_block("body")
        after = self.function.append_basic_block("after")
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(kind)
        index.add_incoming(ir.Constant(kind, 0), before)
        builder.cbranch(builder.icmp_signed("<", index, end), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, ir.Constant(kind, step)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    @contextmanager
    def lanes_of(self, bits: Value) -> Iterator[Value]:
        """A loop over the numbers (32 bits) of the set bits of a 64-bit number."""
        builder = self.builder
        before = builder.block
        head = self.function.append_basic_block("head")
        body = self.function.append_basic_block("body")
        after = self.function.append_basic_block("after")
        builder.branch(head)
        builder.position_at_end(head)
        left = builder.phi(I64)
        left.add_incoming(bits, before)
        builder.cbranch(builder.icmp_signed("!=", left, self.word(0)), body, after)
        builder.position_at_end(body)
        lane = builder.cttz(left, ir.Constant(I1, 1))
        yield builder.trunc(lane, I32)
        rest = builder.and_(left, builder.sub(left, self.word(1)))
        left.add_incoming(rest, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
