"""Addresses and blocks of a nest: tables as arithmetic, loads and stores for several firings."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from t2s.core.types import Type
from t2s.simulator.emit.llvm import (
    I32,
    I64,
    Value,
    constant_vector,
    integer,
    undefined,
    vector_type,
)
from t2s.simulator.emit.representation import (
    load_value,
    offset_by,
    register_type,
    store_value,
    zero,
)
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.nests.digits import Numbers
from t2s.simulator.values.nests.emit_lanes import transposed
from t2s.simulator.values.nests.groups import Group, pattern, stride
from t2s.simulator.values.nests.nest import Lanes, Nest, NestAccess
from t2s.simulator.values.nests.references import Source, StreamSource, TensorSource

Start = Any
"""The first firing of a block: a number, or an LLVM value where blocks are a loop."""


class AccessEmitter:
    """Emits the addresses of one nest; knows the loops that code is being emitted in.

    ``group_names`` are the indices of the group's loops in the firings of the present block.
    """

    def __init__(self, context: NodeContext, nest: Nest, group: Group) -> None:
        self._context = context
        self._builder = context.builder
        self._nest = nest
        self._group = group
        self._indices: dict[str, Value] = {}
        self._bases: dict[int, Value] = {}
        self._pointers: dict[Any, Value] = {}
        self._tables = 0
        self._outside = {loop.name: at for at, loop in enumerate(nest.node.loops[: group.first])}
        self.group_names: dict[str, Value] = {}

    # -- at the entry -------------------------------------------------------------------------

    def open(self) -> None:
        """Load the addresses and the numbers of this PE that do not change."""
        context, node = self._context, self._nest.node.name
        for key, access in keyed_accesses(self._nest):
            where = context.address(context.layout.sections[("base", node, key)], context.pe)
            self._bases[id(access)] = self._builder.load(where, I64)
        for operand in self._nest.operands.values():
            if operand.source is not None:
                self._pointers[operand.source] = context.pointer(self._section(operand.source))
        for register in self._nest.node.registers:
            row = prod(register.shape) * register.type.bytes
            section = context.layout.register(node, register.name)
            self._pointers[register.name] = context.address(section, context.pe, row)

    def _section(self, source: Source) -> Any:
        match source:
            case TensorSource(tensor=tensor):
                return self._context.layout.tensor(tensor)
            case StreamSource(channel=channel):
                return self._context.layout.sections[("stream", channel)]
        raise KeyError(source)

    def source(self, source: Source) -> Value:
        """The address of the memory of a source."""
        return self._pointers[source]

    def register(self, register: str) -> Value:
        """The address of a register file of this PE."""
        return self._pointers[register]

    # -- loops --------------------------------------------------------------------------------

    def loop(self, first: Value, last: Value, body: Callable[[Value], None]) -> None:
        """Emit ``body`` for the numbers from ``first`` up to, not including, ``last``."""
        builder, context = self._builder, self._context
        with builder.goto_entry_block():
            slot = builder.alloca(I64)
        head, inside, after = (context.block(name) for name in ("head", "inside", "after"))
        builder.store(first, slot)
        builder.branch(head)
        builder.position_at_end(head)
        position = builder.load(slot, I64)
        builder.cbranch(builder.icmp_signed("<", position, last), inside, after)
        builder.position_at_end(inside)
        body(position)
        builder.store(builder.add(position, integer(1), "nsw"), slot)
        builder.branch(head)
        builder.position_at_end(after)

    def enter(self, loop: str, index: Value) -> None:
        """Note the index of a loop outside of the group."""
        self._indices[loop] = index

    def for_blocks(self, emit: Callable[[Start, int], None]) -> None:
        """Emit code for every block of the group, given its first firing and its width."""
        extent, width = self._group.extent, self._group.width
        if self._group.unrolled:
            for start in range(0, extent, width):
                emit(start, min(width, extent - start))
            return
        full, scale = extent // width, integer(width)
        self.loop(
            integer(0),
            integer(full),
            lambda block: emit(self._builder.mul(block, scale, "nsw"), width),
        )
        if extent % width:
            emit(full * width, extent % width)

    def level(self, access: NestAccess) -> int:
        """The innermost loop outside of the group that an address changes with; -1: none."""
        loops = (self._nest.frame.digits[digit].loop for digit in access.tables)
        return max((self._outside[loop] for loop in loops if loop in self._outside), default=-1)

    def bind_group(self, start: Start, width: int) -> None:
        """The indices of the group's loops in the firings of a block."""
        loops = self._nest.node.loops[self._group.first :]
        inner = self._group.extent
        for loop in loops:
            low, extent = self._nest.frame.bounds[loop.name]
            inner //= extent
            if isinstance(start, int):
                numbers = [low + (start + w) // inner % extent for w in range(width)]
                self.group_names[loop.name] = _vector(numbers)
                continue
            first = self._builder.trunc(start, I32)
            vector = undefined(vector_type(I32, width))
            for w in range(width):
                number = self._builder.add(first, integer(low + w, I32))
                vector = self._builder.insert_element(vector, number, w)
            self.group_names[loop.name] = vector

    # -- addresses ----------------------------------------------------------------------------

    def number(self, start: Start) -> Value:
        """The first firing of a block as a value."""
        return integer(start) if isinstance(start, int) else start

    def at(self, pointer: Value, scalars: Value, type: Type) -> Value:
        """The address of a scalar by its number."""
        return offset_by(self._builder, pointer, self._context.scaled(scalars, type.scalar.bytes))

    def _place(self, access: NestAccess, start: Start, width: int) -> tuple[Value, list[int]]:
        """The number of a scalar in a block: a value, and what each firing adds to it."""
        builder = self._builder
        total = self._bases[id(access)]
        for digit, table in access.tables.items():
            if self._nest.frame.digits[digit].loop in self._outside:
                total = builder.add(total, self._entry(digit, table), "nsw")
        steps = pattern(self._nest, self._group.first, access)
        if isinstance(start, int):
            return total, [int(step) for step in steps[start : start + width]]
        step = stride(steps) or 0
        total = builder.add(total, builder.mul(start, integer(step)), "nsw")
        return total, [step * w for w in range(width)]

    def _entry(self, digit: int, table: Numbers) -> Value:
        """The entry of a table at the present value of its digit."""
        builder, found = self._builder, self._nest.frame.digits[digit]
        value = self._indices[found.loop]
        siblings = [d for d in self._nest.frame.digits if d.loop == found.loop]
        if len(siblings) == 2:
            by = integer(siblings[0].unit)
            value = builder.udiv(value, by) if found.unit > 1 else builder.urem(value, by)
        position = builder.sub(value, integer(int(found.values[0])), "nsw")
        step = stride(table)
        if step is not None:
            return builder.mul(position, integer(step), "nsw")
        where = offset_by(builder, self._constant(table), builder.mul(position, integer(8)))
        return builder.load(where, I64)

    def _constant(self, table: Numbers) -> Value:
        """A table in memory."""
        name = f"{self._context.function.name}.table{self._tables}"
        self._tables += 1
        return self._context.function.module.table(name, I64, [int(entry) for entry in table])

    # -- loads and stores ---------------------------------------------------------------------

    def take(self, where: Value, type: Type) -> Value:
        """Load scalars that lie in a row."""
        return load_value(self._builder, where, type, type.scalar.bytes)

    def put(self, value: Value, where: Value, type: Type) -> None:
        """Store scalars in a row."""
        store_value(self._builder, value, where, type, type.scalar.bytes)

    def read(
        self,
        pointer: Value,
        access: NestAccess,
        start: Start,
        width: int,
        type: Type,
        lanes: Lanes,
    ) -> Any:
        """A value in the firings of a block: its lanes, or one vector where blocks are single."""
        total, steps = self._place(access, start, width)
        if self._group.width == 1:
            return self._read_one(self._shifted(pointer, total, type), type, lanes)
        start_at = self._shifted(pointer, total, type)
        if width == 1:
            return [self._scalar(start_at, type, lane, steps[0]) for lane in lanes]
        if _in_a_row(lanes) and _power_of_two(len(lanes)) and _power_of_two(width):
            first = lanes[0] or 0
            rows = [self.take(self._step(start_at, type, first + n), type) for n in steps]
            return transposed(self._builder, rows)
        return [self._column(start_at, type, lane, steps) for lane in lanes]

    def write(
        self, pointer: Value, access: NestAccess, start: Start, width: int, type: Type, value: Any
    ) -> None:
        """The inverse of ``read``."""
        total, steps = self._place(access, start, width)
        first = self._shifted(pointer, total, type)
        if self._group.width == 1:
            self.put(value, first, type)
            return
        for lane, vector in enumerate(value):
            if steps == list(range(steps[0], steps[0] + width)) and type.lanes == 1:
                where = self._step(first, type, steps[0] + lane)
                self.put(vector, where, type.scalar.with_lanes(width))
                continue
            for w, step in enumerate(steps):
                scalar = vector if width == 1 else self._builder.extract_element(vector, w)
                self.put(scalar, self._step(first, type, step + lane), type.scalar)

    def _shifted(self, pointer: Value, total: Value, type: Type) -> Value:
        return self.at(pointer, total, type)

    def _step(self, pointer: Value, type: Type, scalars: int) -> Value:
        return offset_by(self._builder, pointer, scalars * type.scalar.bytes)

    def _read_one(self, pointer: Value, type: Type, lanes: Lanes) -> Value:
        if _in_a_row(lanes):
            return self.take(self._step(pointer, type, lanes[0] or 0), type)
        if type.lanes == 1:
            return self._scalar(pointer, type, lanes[0], 0)
        vector = zero(type)
        for at, lane in enumerate(lanes):
            if lane is not None:
                scalar = self._scalar(pointer, type, lane, 0)
                vector = self._builder.insert_element(vector, scalar, at)
        return vector

    def _scalar(self, pointer: Value, type: Type, lane: int | None, step: int) -> Value:
        if lane is None:
            return zero(type.scalar)
        return self.take(self._step(pointer, type, lane + step), type.scalar)

    def _column(self, pointer: Value, type: Type, lane: int | None, steps: list[int]) -> Value:
        """One lane of all firings of a block."""
        if lane is None:
            return zero(type.scalar)
        if not any(step != steps[0] for step in steps):
            return self._scalar(pointer, type, lane, steps[0])
        row = type.scalar.with_lanes(len(steps))
        if steps == list(range(steps[0], steps[0] + len(steps))):
            return self.take(self._step(pointer, type, lane + steps[0]), row)
        vector = undefined(register_type(row))
        for at, step in enumerate(steps):
            scalar = self._scalar(pointer, type, lane, step)
            vector = self._builder.insert_element(vector, scalar, at)
        return vector


def keyed_accesses(nest: Nest) -> list[tuple[str, NestAccess]]:
    """The accesses of a nest, with the names of their sections in the arena."""
    found = [(f"operand {name}", operand.access) for name, operand in nest.operands.items()]
    return found + [(f"statement {at}", access) for at, access in nest.accesses.items()]


def _vector(numbers: list[int]) -> Value:
    if len(numbers) == 1:
        return integer(numbers[0], I32)
    return constant_vector(numbers, I32)


def _in_a_row(lanes: Lanes) -> bool:
    first = lanes[0]
    return first is not None and lanes == tuple(range(first, first + len(lanes)))


def _power_of_two(number: int) -> bool:
    return number > 1 and number & (number - 1) == 0
