"""The function of one node, which runs its PEs in row-major order; and the module of a graph.

The shape of the code, for loops ``i`` (outer) and ``j`` (inner)::

    for each PE that has not finished:          # visit, see ``emit_frame``
        the number of firings that the batched ports allow
        continue at the saved loop indices, or enter the nest
        enter i ... enter j                     # evaluate bounds, skip empty ranges
        row: while firings are allowed:         # the inner loop, all state in registers
            wait for the other ports, or pause
            body
        carry j, carry i                        # next iteration of an outer loop
        save counters and loop indices          # pause, or finish
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.gc_pause import gc_paused
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import Graph
from t2s.graph.machine_shapes import MachineShape, shapes_of
from t2s.graph.nodes import Machine, PEArray
from t2s.llvm.compile import ENTRY
from t2s.llvm.expressions import offset_by
from t2s.llvm.ir import (
    I1,
    I32,
    I64,
    POINTER,
    BasicBlock,
    Builder,
    LLVMFunction,
    Module,
    Slot,
    Value,
    integer,
)
from t2s.simulator.values.emit_body import BodyEmitter
from t2s.simulator.values.emit_frame import (
    FAULTED,
    UNLIMITED,
    Frame,
    PortEmitter,
    numbers_of,
    port_of,
    renamed,
    smaller,
)
from t2s.simulator.values.emit_machine import emit_machine
from t2s.simulator.values.emit_rows import SINGLE, STATUS_BITS, WAITS, emit_rows
from t2s.simulator.values.layout import FINISHED, NOT_STARTED, RUNNING, Key, ValueLayout
from t2s.simulator.values.rows import Rows, rows_of
from t2s.simulator.values.spans import Carried


def emit_node(
    module: Module, graph: Graph, node: PEArray, layout: ValueLayout, number: int, faults: list[str]
) -> LLVMFunction:
    """Add the function of a node to a module; messages of its checks are added to ``faults``."""
    frame = Frame(module, graph, node, layout, number, faults)
    _NodeEmitter(frame).emit()
    return frame.function


class _NodeEmitter:
    """Emits the blocks of one node's function.

    Variables live in stack slots, which LLVM promotes to registers.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._context = context = frame.context
        self._builder = builder = context.builder
        self._again = builder.alloca(I1)
        self._misuse = builder.alloca(I64)
        self._allowed: Value
        self._state_row: Value
        self._indices = [builder.alloca(I32) for loop in context.pe_array.loops]
        self._ports = tuple(
            PortEmitter(context, port_of(context, statement))
            for statement in context.pe_array.body
            if isinstance(statement, Receive | Send)
        )
        context.load_parameters()
        tensors = {
            statement.tensor: context.pointer(context.layout.tensor(statement.tensor))
            for statement in context.pe_array.body
            if isinstance(statement, Load | Store)
        }
        by_use = {(port.port.channel.name, port.port.receives): port for port in self._ports}
        self._body = BodyEmitter(context, by_use, tensors)
        depth = len(context.pe_array.loops)
        self._enter = [context.block(f"enter{level}") for level in range(depth)]
        self._carry = [context.block(f"carry{level}") for level in range(depth)]
        self._row, self._pause, self._finish = (
            context.block(name) for name in ("row", "pause", "finish")
        )

    def emit(self) -> None:
        """The whole function."""
        self._frame.emit_loop()
        self._emit_visit()
        for level in range(len(self._enter)):
            self._emit_enter(level)
            self._emit_carry(level)
        self._emit_row()
        self._emit_pause()
        self._emit_leave()

    def _emit_visit(self) -> None:
        """Visit one PE: compute its allowance, and resume its loops."""
        context, builder = self._context, self._builder
        self._state_row, status = self._frame.begin_visit()
        self._emit_allowance()
        resume = context.block("resume")
        fresh = builder.icmp_signed("==", status, integer(NOT_STARTED, I32))
        start = self._enter[0] if self._enter else self._row
        builder.cbranch(fresh, start, resume)

        builder.position_at_end(resume)
        for level, slot in enumerate(self._indices):
            saved = offset_by(builder, self._state_row, 4 * (level + 1))
            builder.store(builder.load(saved, I32), slot)
        builder.branch(self._row)

    def _emit_allowance(self) -> None:
        """The number of firings of this visit that the batched ports allow."""
        builder = self._builder
        available, straight = integer(UNLIMITED), integer(UNLIMITED)
        misuse = integer(0)
        for port in self._ports:
            port.begin_visit()
            if not port.port.batched:
                continue
            tokens, contiguous = port.allowance()
            available = smaller(builder, available, tokens)
            straight = smaller(builder, straight, contiguous)
            fault = port.misuse()
            misuse = builder.select(builder.icmp_signed("==", fault, integer(0)), misuse, fault)
        wraps = builder.icmp_signed("<", straight, available)
        builder.store(wraps, self._again)
        allowed = smaller(builder, smaller(builder, available, straight), self._frame.budget())
        fine = builder.icmp_signed("==", misuse, integer(0))
        self._allowed = builder.select(fine, allowed, integer(0))
        builder.store(misuse, self._misuse)

    def _bind_loops(self, count: int) -> None:
        """Bind the names of the ``count`` outermost loops to their current values."""
        for loop, slot in zip(self._context.pe_array.loops[:count], self._indices, strict=False):
            self._context.names[loop.name] = self._load(slot)

    def _bounds(self, level: int) -> tuple[Value, Value]:
        """Minimum and extent of a loop, whose outer loops are bound."""
        loop = self._context.pe_array.loops[level]
        wide = self._context.expressions.wide
        return wide(loop.minimum), wide(loop.extent)

    def _last(self, level: int) -> Value:
        """The last value of a nonempty loop."""
        builder = self._builder
        minimum, extent = self._bounds(level)
        return builder.trunc(builder.sub(builder.add(minimum, extent), integer(1)), I32)

    def _emit_enter(self, level: int) -> None:
        """Enter a loop at its minimum; an empty one ends at once."""
        builder = self._builder
        builder.position_at_end(self._enter[level])
        self._bind_loops(level)
        minimum, extent = self._bounds(level)
        builder.store(builder.trunc(minimum, I32), self._indices[level])
        inner = self._enter[level + 1] if level + 1 < len(self._enter) else self._row
        empty = builder.icmp_signed("<=", extent, integer(0))
        builder.cbranch(empty, self._outward(level), inner)

    def _emit_carry(self, level: int) -> None:
        """Go to the next iteration of a loop."""
        builder = self._builder
        builder.position_at_end(self._carry[level])
        self._bind_loops(level)
        step = self._context.block(f"step{level}")
        index = self._load(self._indices[level])
        over = builder.icmp_signed("==", index, self._last(level))
        builder.cbranch(over, self._outward(level), step)
        builder.position_at_end(step)
        builder.store(builder.add(index, integer(1, I32)), self._indices[level])
        builder.branch(self._enter[level + 1] if level + 1 < len(self._enter) else self._row)

    def _outward(self, level: int) -> BasicBlock:
        """The block to continue in when a loop ends."""
        return self._carry[level - 1] if level else self._finish

    def _emit_row(self) -> None:
        """The innermost loop over firings."""
        context, builder = self._context, self._builder
        depth = len(self._indices)
        head, fire = context.block("head"), context.block("fire")
        builder.position_at_end(self._row)
        self._bind_loops(depth - 1 if depth else 0)
        last = self._last(depth - 1) if depth else None
        builder.branch(head)

        builder.position_at_end(head)
        fired = self._frame.fired()
        if depth:
            context.names[context.pe_array.loops[-1].name] = self._load(self._indices[-1])
        builder.cbranch(builder.icmp_signed("<", fired, self._allowed), fire, self._pause)

        builder.position_at_end(fire)
        waits = [port.begin_firing() for port in self._ports]
        for wait in (pending for pending in waits if pending is not None):
            ready = context.block("ready")
            builder.cbranch(wait, self._pause, ready)
            builder.position_at_end(ready)
        self._body.emit(fired)
        self._frame.count(fired)
        if last is None:
            builder.branch(self._finish)
            return
        step = context.block("step")
        index = context.names[context.pe_array.loops[-1].name]
        over = builder.icmp_signed("==", index, last)
        builder.cbranch(over, self._outward(depth - 1), step)
        builder.position_at_end(step)
        builder.store(builder.add(index, integer(1, I32)), self._indices[-1])
        builder.branch(head)

    def _emit_pause(self) -> None:
        """Stop before a firing, or after the last one."""
        context, builder = self._context, self._builder
        builder.position_at_end(self._pause)
        misuse = self._load(self._misuse)
        faulty, save = context.block("faulty"), context.block("save")
        builder.cbranch(builder.icmp_signed("==", misuse, integer(0)), save, faulty)
        builder.position_at_end(faulty)
        builder.store(misuse, context.address(context.layout.fault))
        context.give_up()

        builder.position_at_end(save)
        builder.store(integer(RUNNING, I32), self._state_row)
        for level, slot in enumerate(self._indices):
            saved = offset_by(builder, self._state_row, 4 * (level + 1))
            builder.store(self._load(slot), saved)
        builder.branch(self._frame.leave)

        builder.position_at_end(self._finish)
        builder.store(integer(FINISHED, I32), self._state_row)
        builder.store(integer(0, I1), self._again)
        self._frame.finish()
        builder.branch(self._frame.leave)

    def _emit_leave(self) -> None:
        """Write counters back; revisit the PE if that may help."""
        self._builder.position_at_end(self._frame.leave)
        fired = self._frame.fired()
        for port in self._ports:
            port.end_visit(fired)
        self._frame.end_visit(fired, self._load(self._again))

    def _load(self, slot: Slot) -> Value:
        return self._frame.load(slot)


# A graph as one LLVM module, and its machine code.
#
# The module has one entry, ``run(arena, budget)``: it calls the functions of the nodes round robin
# until a whole round fires nothing or ``budget`` firings are made, and returns the number of
# firings, or -1 after a fault.
#
# Machines that fire along rows (see ``rows``) are called as one, before all others.  If they wait,
# none of them is called by itself, since its tokens would fill the channels between them.  If they
# come to what they cannot do as one, each makes a few firings; more, if that happens again at once,
# and if it goes on, all do for a while what they can.  A round that fires nothing is repeated with
# every node by itself.


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The code of a graph as text.

    Attributes
    ----------
    faults: the messages of its run-time checks, from fault 1 on.
    rows: the machines that fire as one.
    """

    text: str
    faults: tuple[str, ...]
    rows: tuple[Rows, ...]


_Kind = tuple[int, bool, tuple[Carried | None, ...]]
"""Machines with the same code: their shape, whether they burst, and what their channels carry."""


def _kind(layout: ValueLayout, node: str, shape: MachineShape) -> _Kind:
    carried = tuple(layout.spans.carried.get(name) for name in shape.names)
    return shape.number, layout.in_bursts(node), carried


@gc_paused()
def emit_program(graph: Graph, layout: ValueLayout, *, vectors: bool = False) -> Program:
    """Write the code of a graph; with ``vectors`` machines may fire in these (see ``vectors``)."""
    module = Module()
    faults: list[str] = []
    shapes = shapes_of(graph)
    functions: dict[_Kind, _SharedFunction] = {}
    kinds = {name: _kind(layout, name, shape) for name, shape in shapes.items()}
    counts = Counter(kinds.values())
    calls: list[_Call] = []
    for number, node in enumerate(graph.nodes):
        if not isinstance(node, Machine):
            calls.append(_Call(node.name, emit_node(module, graph, node, layout, number, faults)))
            continue
        shape, kind = shapes[node.name], kinds[node.name]
        if counts[kind] == 1:
            machine = emit_machine(module, graph, node, layout, number, faults, vectors=vectors)
            calls.append(_Call(node.name, machine))
            continue
        if kind not in functions:
            functions[kind] = _shared_function(
                module, graph, node, layout, number, shape, vectors=vectors
            )
        shared = functions[kind]
        numbers = shared.numbers(graph, layout, shape, len(faults))
        faults += shared.faults_of(shape)
        table = module.table(f"table{number}", I64, numbers)
        calls.append(_Call(node.name, shared.function, (table,)))
    found = rows_of(graph, besides=layout.spans.bursts) if vectors else ()
    groups = [
        _Group(rows, emit_rows(module, graph, rows, layout, number))
        for number, rows in enumerate(found)
    ]
    for function in (*(call.function for call in calls), *(group.function for group in groups)):
        function.internal = True
    _emit_run(module, calls, groups)
    return Program(text=str(module), faults=tuple(faults), rows=found)


@dataclass(frozen=True, slots=True)
class _Call:
    """The function of a node, with the tables that it takes."""

    node: str
    function: LLVMFunction
    tables: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """The function of machines that fire along rows."""

    rows: Rows
    function: LLVMFunction


_FEW, _TIMES_AS_MANY, _TOO_MANY = 4, 4, 1 << 10
"""Firings of a scanner by itself at first, how that grows, and when that is given up."""

_MANY = 64
"""Firings of each machine along rows that are worth another attempt at once."""

_PAUSE = 64
"""Rounds without an attempt."""


class _RowsCall:
    """The calls of machines that fire along rows: as one, and each by itself."""

    def __init__(self, run: LLVMFunction, builder: Builder, group: _Group) -> None:
        self._run, self._builder, self._group = run, builder, group
        self._scanner = group.rows.scanner.node.name
        self.names = tuple(machine.name for machine in group.rows.machines)
        self._status, self._few, self._pause, self._most = (builder.alloca(I64) for _ in range(4))
        builder.store(integer(_FEW), self._few)
        builder.store(integer(0), self._pause)

    def emit(self, arena: Value, budget: Value, total: Slot, alone: Slot) -> None:
        """Call them as one, unless all are to be called alone, or that is of no use."""
        builder = self._builder
        attempt, pause, done = (self._run.block(name) for name in ("attempt", "pause", "rows"))
        rests = builder.icmp_signed(">", builder.load(self._pause, I64), integer(0))
        builder.cbranch(builder.or_(rests, builder.load(alone, I1)), pause, attempt)
        builder.position_at_end(pause)
        left = builder.sub(builder.load(self._pause, I64), integer(1))
        builder.store(builder.select(rests, left, integer(0)), self._pause)
        builder.store(integer(SINGLE), self._status)
        builder.store(integer(UNLIMITED), self._most)
        builder.branch(done)
        builder.position_at_end(attempt)
        so_far = builder.load(total, I64)
        result = builder.call(self._group.function, [arena, builder.sub(budget, so_far)])
        fired = builder.ashr(result, integer(STATUS_BITS))
        status = builder.and_(result, integer((1 << STATUS_BITS) - 1))
        builder.store(builder.add(so_far, fired), total)
        builder.store(status, self._status)
        few = builder.load(self._few, I64)
        more = builder.mul(few, integer(_TIMES_AS_MANY))
        more = builder.select(builder.icmp_signed("==", status, integer(SINGLE)), more, few)
        many = builder.icmp_signed(">=", fired, integer(_MANY * len(self.names)))
        more = builder.select(many, integer(_FEW), more)
        too_many = builder.icmp_signed(">", more, integer(_TOO_MANY))
        builder.store(builder.select(too_many, integer(_PAUSE), integer(0)), self._pause)
        builder.store(builder.select(too_many, integer(_FEW), more), self._few)
        builder.store(few, self._most)
        builder.branch(done)
        builder.position_at_end(done)

    def allowed(self, node: str, left: Value, skip: BasicBlock) -> Value:
        """The firings that a machine may make by itself; go to ``skip`` if it may make none."""
        builder = self._builder
        status, call = builder.load(self._status, I64), self._run.block("call")
        called = builder.icmp_signed("==", status, integer(SINGLE))
        if node == self._scanner:
            left = smaller(builder, left, builder.load(self._most, I64))
        else:
            called = builder.icmp_signed("!=", status, integer(WAITS))
        builder.cbranch(called, call, skip)
        builder.position_at_end(call)
        return left


@dataclass(frozen=True, slots=True, kw_only=True)
class _SharedFunction:
    """A function that several machines share, and the one for which it was written."""

    function: LLVMFunction
    first: MachineShape
    places: tuple[Key, ...]
    faults: tuple[str, ...]

    def numbers(
        self, graph: Graph, layout: ValueLayout, shape: MachineShape, faults: int
    ) -> list[int]:
        """The table of one of the machines, whose faults come after so many others."""
        return numbers_of(graph, layout, self.places, self.first.names_in(shape), faults)

    def faults_of(self, shape: MachineShape) -> list[str]:
        """The messages of one of the machines."""
        return renamed(self.faults, self.first.names_in(shape))


def _shared_function(
    module: Module,
    graph: Graph,
    node: Machine,
    layout: ValueLayout,
    number: int,
    shape: MachineShape,
    *,
    vectors: bool,
) -> _SharedFunction:
    places: list[Key] = []
    faults: list[str] = []
    function = emit_machine(module, graph, node, layout, number, faults, places, vectors=vectors)
    return _SharedFunction(
        function=function, first=shape, places=tuple(places), faults=tuple(faults)
    )


def _emit_run(module: Module, calls: Sequence[_Call], groups: Sequence[_Group]) -> None:
    run = module.function(ENTRY, I64, [POINTER, I64])
    arena, budget = run.args
    builder = Builder(run)
    leave, faulty, again = (run.block(name) for name in ("leave", "faulty", "again"))
    total, alone = builder.alloca(I64), builder.alloca(I1)
    builder.store(integer(0), total)
    builder.store(integer(0, I1), alone)
    in_rows = [_RowsCall(run, builder, group) for group in groups]
    of_node = {name: call for call in in_rows for name in call.names}
    builder.branch(again)
    builder.position_at_end(again)
    before = builder.load(total, I64)
    for rows in in_rows:
        rows.emit(arena, budget, total, alone)
    for call in calls:
        so_far = builder.load(total, I64)
        left, skip = builder.sub(budget, so_far), run.block("skip")
        if call.node in of_node:
            left = of_node[call.node].allowed(call.node, left, skip)
        fired = builder.call(call.function, [arena, left, *call.tables])
        advance = run.block("advance")
        failed = builder.icmp_signed("==", fired, integer(FAULTED))
        builder.cbranch(failed, faulty, advance)
        builder.position_at_end(advance)
        builder.store(builder.add(so_far, fired), total)
        builder.branch(skip)
        builder.position_at_end(skip)
    after = builder.load(total, I64)
    progress = builder.icmp_signed(">", after, before)
    if in_rows:
        stuck = builder.or_(progress, builder.load(alone, I1))
        builder.store(builder.not_(progress), alone)
        progress = builder.or_(progress, builder.not_(stuck))
    builder.cbranch(builder.and_(progress, builder.icmp_signed("<", after, budget)), again, leave)
    builder.position_at_end(leave)
    builder.ret(builder.load(total, I64))
    builder.position_at_end(faulty)
    builder.ret(integer(FAULTED))
