"""The meaning of a program of patterns: an interpreter over numpy arrays.

In: the arguments, and an array for each memory off chip that the host fills.  Out: all memories
off chip after the run, and the returned scalars.  A program that takes from an empty queue, leaves
words in one, or accesses a memory out of range is wrong: ``UserError`` with the line that made the
statement.  There is no time, so the depth of a queue does not matter here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Expr, evaluate, reduce_lanes
from t2s.core.ops import Array, apply_operator
from t2s.patterns.ir import (
    NOWHERE,
    WINDOW_BITS,
    WORD_BITS,
    Bind,
    BuildBits,
    CountHeader,
    DeclareMemory,
    Foreach,
    Header,
    JoinKind,
    LoadBlock,
    LoadStream,
    PatternMemory,
    PatternProgram,
    PatternStatement,
    Pop,
    Push,
    ReadMemory,
    Reduce,
    ScanHeader,
    StoreBlock,
    StoreStream,
    Update,
    WriteMemory,
    start_of,
)


@dataclass(frozen=True, kw_only=True)
class PatternOutcome:
    """The memories off chip after a run, by name, and the scalars that it hands back."""

    memories: Mapping[str, Array]
    scalars: Mapping[str, Array]


def interpret_patterns(
    program: PatternProgram,
    memories: Mapping[str, Array],
    arguments: Mapping[str, Any] | None = None,
) -> PatternOutcome:
    """Run a program.

    ``memories`` has one-dimensional arrays of the types of the memories; missing ones start at
    zero.  The arrays are not modified.
    """
    scalars = {
        item.name: np.asarray((arguments or {})[item.name], item.type.numpy)
        for item in program.arguments
    }
    scalars |= {name: np.asarray(value, np.int32) for name, value in program.environment}
    run = _PatternRun(program, dict(scalars))
    with np.errstate(all="ignore"):
        for memory in program.memories:
            run.begin(memory, memories.get(memory.name))
        run.execute(program.body)
    stored = {m.name: run.arrays[m.name] for m in program.memories if m.alias is None}
    returned = {
        result.values: run.locals[result.values]
        for result in program.results
        if result.values in run.locals
    }
    return PatternOutcome(memories=stored, scalars=returned)


@dataclass
class _PatternRun:
    """The state: locals by name, arrays of memories, and queues."""

    program: PatternProgram
    locals: dict[str, Array]
    arrays: dict[str, Array] = field(default_factory=dict)
    queues: dict[str, deque[Array]] = field(default_factory=dict)
    memories: dict[str, PatternMemory] = field(default_factory=dict)

    def begin(self, memory: PatternMemory, given: Array | None = None) -> None:
        """Allocate a memory."""
        self.memories[memory.name] = memory
        if memory.kind.queue:
            self.queues[memory.name] = deque()
        elif memory.alias is not None:
            self.arrays[memory.name] = self.arrays[memory.alias]
        elif given is not None:
            self.arrays[memory.name] = np.array(given, memory.type.numpy)
        else:
            self.arrays[memory.name] = np.zeros(self.whole(memory.size), memory.type.numpy)

    def value(self, expr: Expr) -> Array:
        return np.asarray(evaluate(expr, self.locals), expr.type.numpy)

    def whole(self, expr: Expr) -> int:
        return int(self.value(expr))

    def execute(self, body: tuple[PatternStatement, ...]) -> None:
        """Execute a body; the queues that it declares have to be empty at its end."""
        for statement in body:
            self.step(statement)
        for statement in body:
            if isinstance(statement, DeclareMemory) and statement.memory.kind.queue:
                left = len(self.queues[statement.memory.name])
                if left:
                    _refuse(statement, f"{left} words are left in {statement.memory.name!r}")

    @singledispatchmethod
    def step(self, statement: PatternStatement) -> None:
        raise TypeError(f"{statement.__class__.__name__} has no meaning yet")

    @step.register
    def _(self, statement: DeclareMemory) -> None:
        self.begin(statement.memory)

    @step.register
    def _(self, statement: Bind) -> None:
        self.locals[statement.target] = self.value(statement.value)

    @step.register
    def _(self, statement: LoadBlock) -> None:
        words = self._slice(statement, statement.source, statement.begin, statement.length)
        here = self.arrays[statement.memory]
        if len(words) > len(here):
            _refuse(statement, f"{statement.memory!r} has no room for {len(words)} words")
        here[: len(words)] = words

    @step.register
    def _(self, statement: StoreBlock) -> None:
        there = self._slice(statement, statement.target, statement.begin, statement.length)
        there[:] = self.arrays[statement.memory][: len(there)]

    @step.register
    def _(self, statement: LoadStream) -> None:
        words = self._slice(statement, statement.source, statement.begin, statement.length)
        self.queues[statement.queue].extend(words.copy())

    @step.register
    def _(self, statement: StoreStream) -> None:
        there = self._slice(statement, statement.target, statement.begin, statement.length)
        for at in range(len(there)):
            there[at] = self._pop(statement, statement.queue)

    @step.register
    def _(self, statement: BuildBits) -> None:
        words = np.zeros(self.whole(statement.bits) // WORD_BITS, np.uint32)
        last = -1
        for _ in range(self.whole(statement.count)):
            coordinate = int(self._pop(statement, statement.coordinates))
            if not last < coordinate < len(words) * WORD_BITS:
                _refuse(statement, f"coordinate {coordinate} follows {last}, or is out of range")
            words[coordinate // WORD_BITS] |= np.uint32(1 << coordinate % WORD_BITS)
            last = coordinate
        self.queues[statement.words].extend(words)

    @step.register
    def _(self, statement: Pop) -> None:
        self.locals[statement.target] = self._pop(statement, statement.queue)

    @step.register
    def _(self, statement: Push) -> None:
        self.queues[statement.queue].append(self.value(statement.value))

    @step.register
    def _(self, statement: ReadMemory) -> None:
        memory, at = self.memories[statement.memory], self.whole(statement.index)
        if at == NOWHERE and memory.kind.sparse:
            self.locals[statement.target] = np.zeros((), memory.type.numpy)
            return
        self._check(statement, statement.memory, at)
        self.locals[statement.target] = np.asarray(self.arrays[statement.memory][at])

    @step.register
    def _(self, statement: WriteMemory) -> None:
        at = self.whole(statement.index)
        self._check(statement, statement.memory, at)
        self.arrays[statement.memory][at] = self.value(statement.value)

    @step.register
    def _(self, statement: Update) -> None:
        at, memory = self.whole(statement.index), self.memories[statement.memory]
        self._check(statement, statement.memory, at)
        operands = np.asarray(self.arrays[statement.memory][at]), self.value(statement.value)
        result = apply_operator(statement.operator, memory.type, operands)
        self.arrays[statement.memory][at] = result
        self.locals[statement.target] = np.asarray(result)

    @step.register
    def _(self, statement: Foreach) -> None:
        for values in self._iterations(statement, statement.header):
            self.locals.update(zip(statement.binders, values, strict=True))
            self.execute(statement.body)

    @step.register
    def _(self, statement: Reduce) -> None:
        type = statement.value.type
        neutral = np.asarray(start_of(statement), type.numpy)
        lanes, total = statement.header.parallel.factor, neutral
        for _, window in groupby(self._values(statement), key=itemgetter(0)):
            while group := [value for _, value in islice(window, lanes)]:
                vector = np.array([*group, *[neutral] * (lanes - len(group))], type.numpy)
                one = reduce_lanes(statement.operator, type, vector)
                total = np.asarray(apply_operator(statement.operator, type, (total, one)))
        self.locals[statement.target] = total

    def _values(self, statement: Reduce) -> Iterator[tuple[int, Array]]:
        """The value of each iteration, and the window that it is in."""
        scans = isinstance(statement.header, ScanHeader)
        for values in self._iterations(statement, statement.header):
            self.locals.update(zip(statement.binders, values, strict=True))
            self.execute(statement.body)
            window = int(values[0]) // WINDOW_BITS if scans else 0
            yield window, self.value(statement.value)

    def _iterations(
        self, statement: PatternStatement, header: Header
    ) -> Iterator[tuple[Array, ...]]:
        match header:
            case CountHeader(extent=extent):
                for at in range(self.whole(extent)):
                    yield (np.asarray(at, np.int32),)
            case ScanHeader(bits=bits, left=left, right=right, join=join):
                count = self.whole(bits) // WORD_BITS
                first = self._bits(statement, left, count)
                if right is None:
                    for position, coordinate in enumerate(np.flatnonzero(first)):
                        yield np.int32(coordinate), np.int32(position)
                    return
                second = self._bits(statement, right, count)
                both = first & second if join is JoinKind.AND else first | second
                ranks = np.cumsum(first) - first, np.cumsum(second) - second
                for output, coordinate in enumerate(np.flatnonzero(both)):
                    in_first, in_second = (
                        np.int32(rank[coordinate] if bits[coordinate] else NOWHERE)
                        for rank, bits in zip(ranks, (first, second), strict=True)
                    )
                    yield np.int32(coordinate), in_first, np.int32(output), in_second

    def _bits(self, statement: PatternStatement, queue: str, count: int) -> Array:
        words = np.array([self._pop(statement, queue) for _ in range(count)], "<u4")
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)

    def _pop(self, statement: PatternStatement, queue: str) -> Array:
        waiting = self.queues[queue]
        if not waiting:
            _refuse(statement, f"{queue!r} is empty")
        return np.asarray(waiting.popleft())

    def _slice(self, statement: PatternStatement, memory: str, begin: Expr, length: Expr) -> Array:
        first, count = self.whole(begin), self.whole(length)
        if first < 0 or count < 0 or first + count > len(self.arrays[memory]):
            _refuse(
                statement,
                f"words {first} to {first + count - 1} are not all in {memory!r},"
                f" which has {len(self.arrays[memory])}",
            )
        return self.arrays[memory][first : first + count]

    def _check(self, statement: PatternStatement, memory: str, at: int) -> None:
        if not 0 <= at < len(self.arrays[memory]):
            size = len(self.arrays[memory])
            _refuse(statement, f"word {at} is not in {memory!r}, which has {size}")


def _refuse(statement: PatternStatement, why: str) -> NoReturn:
    raise UserError(
        f"{statement.__class__.__name__} in a program of patterns: {why}",
        location=statement.location,
        expected="queues that are emptied, and addresses inside of memories",
    )
