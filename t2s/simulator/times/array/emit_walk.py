"""The function that takes a PE to the next run of its firings.

``walk(arena, lane)`` is called when the firings of a lane are used up.  It fills the lane up from
what is left of the run, or goes on to the next run: the next iterations of the innermost axis,
carrying into the outer ones, and from their classes the code, the row, and what each port does.
"""

from __future__ import annotations

from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.llvm import (
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    LLVMFunction,
    Module,
    Value,
    integer,
)
from t2s.simulator.times.array.arena import (
    CLOCK,
    POSITION,
    REMAINING,
    REST,
    ROW,
    WALK,
    WALK_AXES,
    WALK_CODES,
    WALK_FIRST,
    WALK_REPEAT,
    WALK_RUNS,
    ArenaLayout,
    NodeMemory,
)
from t2s.simulator.times.array.code import Code
from t2s.simulator.times.array.plan import NodePlan

CLOCK_WORD = {name: number for number, name in enumerate(CLOCK)}


def emit_walk(module: Module, layout: ArenaLayout, node: NodePlan, number: int) -> LLVMFunction:
    """Add the function of a node to a module."""
    function = module.function(
        f"walk{number}", VOID, [POINTER, I32], attributes="nounwind noinline"
    )
    code = Code(layout, function, Builder(function))
    _WalkEmitter(code, node, layout.nodes[number], number).emit()
    return function


class _WalkEmitter:
    def __init__(self, code: Code, node: NodePlan, memory: NodeMemory, number: int) -> None:
        self._code = code
        self._node = node
        self._memory = memory
        self._number = number
        builder = code.builder
        self._lane = code.function.args[1]
        self._pe = builder.add(self._lane, integer(node.timing.first, I32))
        self._words = code.layout.pes.shape[1]
        self._record = builder.mul(builder.sext(self._pe, I64), code.word(self._words))
        self._level, self._index = builder.alloca(I64), builder.alloca(I64)

    def emit(self) -> None:
        code, builder = self._code, self._code.builder
        block = code.function.block
        fill, onward, move, finished = (
            block(name) for name in ("fill", "onward", "move", "finished")
        )
        rest = self._get(REST)
        builder.store(self._axes(), self._level)
        builder.cbranch(builder.icmp_signed(">", rest, code.word(0)), fill, onward)
        builder.position_at_end(onward)
        remaining = self._get(REMAINING)
        builder.cbranch(builder.icmp_signed(">", remaining, code.word(0)), move, finished)
        builder.position_at_end(finished)
        code.add(-1, code.layout.clock, CLOCK_WORD["unfinished"])
        builder.ret_void()
        builder.position_at_end(move)
        self._carry()
        self._new_run(remaining)
        builder.branch(fill)
        builder.position_at_end(fill)
        rest = self._get(REST)
        most = code.word(code.layout.chunk)
        filled = builder.select(builder.icmp_signed("<", rest, most), rest, most)
        self._set(REST, builder.sub(rest, filled))
        narrow = builder.trunc(filled, code.counter)
        code.store(narrow, self._memory.left, self._lane)
        watched = code.load(code.layout.clock, CLOCK_WORD["watched"])
        with builder.if_then(
            builder.icmp_signed("==", watched, builder.sext(self._pe, I64)), rare=True
        ):
            code.store(builder.load(self._level, I64), code.layout.clock, CLOCK_WORD["event"])
        builder.ret_void()

    def _get(self, word: int) -> Value:
        return self._code.load(self._code.layout.pes, self._at(self._code.word(word)))

    def _set(self, word: int, value: Value) -> None:
        self._code.store(value, self._code.layout.pes, self._at(self._code.word(word)))

    def _at(self, word: Value) -> Value:
        return self._code.builder.add(self._record, word)

    def _pool(self, position: Value, offset: int = 0) -> Value:
        at = self._code.builder.add(position, self._code.word(offset)) if offset else position
        return self._code.load(self._code.layout.pool, at)

    def _axes(self) -> Value:
        return self._pool(self._get(WALK), WALK_AXES)

    def _position_of(self, axis: Value) -> Value:
        """Where in the records the iteration of an axis is."""
        return self._at(self._code.builder.add(axis, self._code.word(POSITION)))

    def _run_length(self, walk: Value, axes: Value) -> Value:
        """Iterations alike from the innermost one on."""
        code, builder = self._code, self._code.builder
        innermost = builder.sub(axes, code.word(1))
        at = code.load(code.layout.pes, self._position_of(innermost))
        return self._pool(builder.add(self._pool(walk, WALK_RUNS), at))

    def _carry(self) -> None:
        """Step over the run, carrying into outer axes; the level is the last axis changed."""
        code, builder = self._code, self._code.builder
        walk = self._get(WALK)
        axes = self._axes()
        first_step = self._run_length(walk, axes)
        innermost = builder.sub(axes, code.word(1))
        before = builder.block
        turn, wrap, done = (code.function.block(name) for name in ("turn", "wrap", "done"))
        builder.branch(turn)
        builder.position_at_end(turn)
        axis, step = builder.phi(I64), builder.phi(I64)
        axis.add_incoming(innermost, before)
        step.add_incoming(first_step, before)
        position = self._position_of(axis)
        moved = builder.add(code.load(code.layout.pes, position), step)
        header = builder.add(walk, builder.mul(axis, code.word(2)))
        inside = builder.icmp_signed("<", moved, self._pool(header, WALK_FIRST))
        code.store(builder.select(inside, moved, code.word(0)), code.layout.pes, position)
        builder.cbranch(inside, done, wrap)
        builder.position_at_end(wrap)
        axis.add_incoming(builder.sub(axis, code.word(1)), wrap)
        step.add_incoming(code.word(1), wrap)
        builder.branch(turn)
        builder.position_at_end(done)
        builder.store(axis, self._level)

    def _new_run(self, remaining: Value) -> None:
        """The run at the iterations that are set: its length, and what its firings do."""
        code, builder = self._code, self._code.builder
        walk, axes = self._get(WALK), self._axes()
        builder.store(self._pool(walk, WALK_CODES), self._index)
        with code.counting(axes, kind=I64) as axis:
            header = builder.add(walk, builder.mul(axis, code.word(2)))
            classes = self._pool(header, WALK_FIRST + 1)
            at = code.load(code.layout.pes, self._position_of(axis))
            term = self._pool(builder.add(classes, at))
            so_far = builder.load(self._index, I64)
            builder.store(builder.add(so_far, term), self._index)
        run = builder.mul(self._run_length(walk, axes), self._pool(walk, WALK_REPEAT))
        run = builder.select(builder.icmp_signed("<", run, remaining), run, remaining)
        self._set(REST, run)
        self._set(REMAINING, builder.sub(remaining, run))
        row = builder.add(self._get(ROW), self._pool(builder.load(self._index, I64)))
        self._do(row)

    def _do(self, row: Value) -> None:
        """What the firings of a row do, into the lane."""
        code, builder, layout = self._code, self._code.builder, self._code.layout
        zero, minus = integer(0, code.counter), integer(-1, code.counter)
        for port, memory, table in zip(
            self._node.ports, self._memory.ports, layout.tables[self._number], strict=True
        ):
            position = code.load(table, row)
            used = builder.icmp_signed(">=", position, integer(0, I32))
            code.store(builder.select(used, minus, zero), memory.use, self._lane)
            if not port.regular:
                safe = builder.select(used, position, integer(0, I32))
                code.store(safe, memory.position, self._lane)
        if self._node.moved.any():
            code.store(code.load(layout.moved[self._number], row), layout.moving, self._pe)
        if self._node.stores.any():
            stores = builder.icmp_signed(
                "!=", code.load(layout.stores[self._number], row), integer(0, I8)
            )
            code.store(builder.select(stores, minus, zero), self._memory.storing, self._lane)
