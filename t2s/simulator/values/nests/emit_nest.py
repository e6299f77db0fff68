"""The function of a nest: ``nest(arena, first, last, begin, end)`` runs some PEs for some time.

It runs the rounds from ``begin`` to ``end`` of the PEs from ``first`` to ``last``, the ends left
out.  A **round** is one iteration of the outermost loops, as few of them as leave some thousands of
firings.  PEs take turns after every round, because those of an array often read the same data.  The
shape of the code, for a round of loop ``h``, further loops ``i`` and ``j``, and a group ``v``::

    for h:
        for each PE:
            load the operands that change with h alone        # or not at all
            for i:
                load the operands that change with i, and not with j
                for j:
                    load the operands that change with j
                    for each block of v:
                        body, for all firings of the block

An operand that changes with ``v``, but not with the loop around it, is laid out for the blocks as
soon as the loops that it changes with are entered: lane by lane, the firings of a block in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t2s.core.collector import without_collections
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Graph
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.compile import NEST
from t2s.simulator.emit.llvm import I8, I32, I64, POINTER, VOID, Module, Value, integer, null
from t2s.simulator.emit.representation import zero
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.layout import ALIGNMENT, ValueLayout
from t2s.simulator.values.nests.emit_access import AccessEmitter, Start
from t2s.simulator.values.nests.emit_lanes import LaneEmitter
from t2s.simulator.values.nests.groups import Group, group_of, pattern, rounds_of
from t2s.simulator.values.nests.nest import Nest, NestAccess, Operand

_LARGEST_COPY = 1 << 17
"""Bytes on the stack for an operand that is laid out for the blocks, at most."""


@without_collections()
def emit_nest(graph: Graph, nest: Nest, layout: ValueLayout) -> str:
    """The code of a nest: a module with one function."""
    module = Module()
    numbers = [I64] * 4
    function = module.function(NEST, VOID, [POINTER, *numbers], attributes="nounwind", noalias=True)
    arena = function.args[0]
    context = NodeContext(
        graph=graph,
        node=nest.node,
        layout=layout,
        function=function,
        builder=Builder(function),
        arena=arena,
        faults=[],
        abandon=None,
    )
    _NestEmitter(context, nest, group_of(nest)).emit()
    return str(module)


class _NestEmitter:
    """Emits the function of one nest."""

    def __init__(self, context: NodeContext, nest: Nest, group: Group) -> None:
        self._context = context
        self._builder = context.builder
        self._nest = nest
        self._group = group
        self._access = AccessEmitter(context, nest, group)
        self._types = {name: _type_of(nest, name) for name in nest.operands}
        self._ready: dict[str, Any] = {}
        self._copies: dict[str, Value] = {}
        self._locals: dict[str, Any] = {}
        self._levels = {
            name: group.first - 1
            if operand.condition is not None
            else self._access.level(operand.access)
            for name, operand in nest.operands.items()
        }

    def emit(self) -> None:
        """The whole function."""
        _, first, last, begin, end = self._context.function.args
        self._context.load_parameters()

        def one_round(number: Value) -> None:
            self._access.loop(first, last, lambda place: self._emit_turn(number, place))

        self._access.loop(begin, end, one_round)
        self._builder.ret_void()

    def _emit_turn(self, number: Value, place: Value) -> None:
        """One PE in one round."""
        self._context.pe = place
        self._bind_space()
        self._access.open()
        rest = number
        loops = self._nest.node.loops[: rounds_of(self._nest, self._group)[1]]
        positions: list[Value] = []
        for loop in reversed(loops):
            extent = integer(self._nest.frame.bounds[loop.name][1])
            positions.insert(0, self._builder.urem(rest, extent))
            rest = self._builder.udiv(rest, extent)
        for loop, position in zip(loops, positions, strict=True):
            self._enter(loop.name, position)
        for level in range(-1, len(loops)):
            self._prepare(level)
        self._emit_loops(len(loops))

    def _bind_space(self) -> None:
        context, builder = self._context, self._builder
        rest = context.pe
        for dimension in reversed(self._nest.node.space):
            extent = integer(dimension.extent)
            value = builder.add(builder.urem(rest, extent), integer(dimension.minimum))
            context.names[dimension.name] = builder.trunc(value, I32)
            rest = builder.udiv(rest, extent)

    def _emit_loops(self, level: int) -> None:
        """The loops from a level on."""
        if level == self._group.first:
            self._access.for_blocks(self._emit_block)
            return
        loop = self._nest.node.loops[level]

        def body(position: Value) -> None:
            self._enter(loop.name, position)
            self._prepare(level)
            self._emit_loops(level + 1)

        extent = self._nest.frame.bounds[loop.name][1]
        self._access.loop(integer(0), integer(extent), body)

    def _enter(self, loop: str, position: Value) -> None:
        """Bind a loop in its iteration ``position``, counted from 0."""
        low = integer(self._nest.frame.bounds[loop][0])
        index = self._builder.add(position, low, "nsw")
        self._access.enter(loop, index)
        self._context.names[loop] = self._builder.trunc(index, I32)

    def _prepare(self, level: int) -> None:
        """Load the operands that change at a level and no further inside."""
        for name, operand in self._nest.operands.items():
            if self._levels[name] != level or operand.condition is not None:
                continue
            varies = pattern(self._nest, self._group.first, operand.access).any()
            if not varies:
                self._ready[name] = self._loaded(name, 0, 1)
            elif level < self._group.first - 1 and self._copy_bytes(name) <= _LARGEST_COPY:
                self._lay_out(name)

    def _copy_bytes(self, name: str) -> int:
        blocks = -(-self._group.extent // self._group.width)
        type = self._types[name]
        return blocks * self._group.width * type.lanes * type.scalar.bytes

    def _lay_out(self, name: str) -> None:
        """Copy an operand for all blocks of the group."""
        builder, type = self._builder, self._types[name]
        if name not in self._copies:
            with builder.goto_entry_block():
                self._copies[name] = builder.alloca(I8, self._copy_bytes(name), ALIGNMENT)

        def copy(start: Start, width: int) -> None:
            for lane, value in enumerate(self._loaded(name, start, width)):
                where = self._in_copy(name, start, lane)
                wide = self._lanes(width).widened(value)
                self._access.put(wide, where, type.scalar.with_lanes(width))

        self._access.for_blocks(copy)

    def _in_copy(self, name: str, start: Start, lane: int) -> Value:
        """Where one lane of a block begins."""
        type, width = self._types[name], self._group.width
        first = self._access.number(start)
        offset = self._builder.add(
            self._builder.mul(first, integer(type.lanes)), integer(lane * width)
        )
        return self._access.at(self._copies[name], offset, type)

    def _loaded(self, name: str, start: Start, width: int) -> Any:
        """An operand in the firings of a block: lanes, or one vector where blocks are single."""
        operand, type = self._nest.operands[name], self._types[name]
        if operand.source is None:
            zeros = [zero(type.scalar)] * type.lanes
            return zeros if self._group.width > 1 else zero(type)
        pointer = self._access.source(operand.source)
        return self._access.read(pointer, operand.access, start, width, type, operand.lanes)

    def _emit_block(self, start: Start, width: int) -> None:
        """The body for the firings of one block."""
        self._locals = {}
        self._access.bind_group(start, width)
        for name, operand in self._nest.operands.items():
            self._locals[name] = self._operand(name, operand, start, width)
        for at, statement in enumerate(self._nest.statements):
            self._emit_statement(statement, self._nest.accesses.get(at), start, width)

    def _operand(self, name: str, operand: Operand, start: Start, width: int) -> Any:
        type = self._types[name]
        if name in self._ready:
            return self._ready[name]
        if name in self._copies:
            row = type.scalar.with_lanes(width)
            wheres = [self._in_copy(name, start, lane) for lane in range(type.lanes)]
            return [self._access.take(where, row) for where in wheres]
        if operand.condition is None:
            return self._loaded(name, start, width)
        return self._where(operand.condition, lambda: self._loaded(name, start, width))

    def _emit_statement(
        self, statement: Statement, access: NestAccess | None, start: Start, width: int
    ) -> None:
        context, nest = self._context, self._nest
        match statement:
            case Let(target=target, value=value):
                self._locals[target] = self._value(value, width)
            case RegisterRead(target=target, register=register, type=type):
                assert access is not None
                row = self._access.register(register)
                lanes = tuple(range(type.lanes))
                self._locals[target] = self._access.read(row, access, start, width, type, lanes)
            case RegisterWrite(register=register, value=value, condition=condition):
                row = self._access.register(register)
                self._write(row, access, value, condition, start, width)
            case Send(channel=channel, value=value, condition=condition):
                pointer = context.pointer(context.layout.sections[("stream", channel)])
                self._write(pointer, access, value, condition, start, width)
            case Store(tensor=tensor, value=value, condition=condition):
                pointer = context.pointer(context.layout.tensor(tensor))
                self._write(pointer, access, value, condition, start, width)
            case _:
                raise NotImplementedError(f"{statement} in {nest.node.name}")

    def _write(
        self,
        pointer: Value,
        access: NestAccess | None,
        value: Expr,
        condition: Expr | None,
        start: Start,
        width: int,
    ) -> None:
        assert access is not None

        def write() -> None:
            found = self._value(value, width)
            if self._group.width > 1:
                found = [self._lanes(width).widened(lane) for lane in found]
            self._access.write(pointer, access, start, width, value.type, found)

        if condition is None:
            write()
            return
        with self._builder.if_then(self._condition(condition)):
            write()

    def _where(self, condition: Expr, emit: Callable[[], Any]) -> Any:
        """What ``emit`` gives, or zeros where the condition does not hold."""
        builder = self._builder
        holds, before = self._condition(condition), builder.block
        with builder.if_then(holds):
            found = emit()
            inside = builder.block
        values = found if isinstance(found, list) else [found]
        merged: list[Value] = []
        for value in values:
            phi = builder.phi(value.type)
            phi.add_incoming(null(value.type), before)
            phi.add_incoming(value, inside)
            merged.append(phi)
        return merged if isinstance(found, list) else merged[0]

    def _condition(self, condition: Expr) -> Value:
        """A condition, which is the same in all firings of a group."""
        if self._group.width > 1:
            return self._context.expressions.emit(condition)
        value: Value = self._value(condition, 1)
        return value

    def _value(self, expr: Expr, width: int) -> Any:
        if self._group.width > 1:
            return self._lanes(width).emit(expr)
        names: dict[str, Value] = {**self._context.names, **self._locals}
        saved = dict(self._context.names)
        self._context.names.update(names)
        value = self._context.expressions.emit(expr)
        self._context.names.clear()
        self._context.names.update(saved)
        return value

    def _lanes(self, width: int) -> LaneEmitter:
        context = self._context
        names = {**context.names, **self._access.group_names}
        return LaneEmitter(self._builder, names, self._locals, context.expressions, width)


def _type_of(nest: Nest, name: str) -> Type:
    """The type of an operand, from the statement that binds it."""
    for statement in nest.node.body:
        match statement:
            case Receive(target=target, type=type) | Load(target=target, type=type) if (
                target == name
            ):
                return type
            case RegisterRead(target=target, type=type) if target == name:
                return type
            case Let(target=target, value=value) if target == name:
                return value.type
    raise KeyError(name)
