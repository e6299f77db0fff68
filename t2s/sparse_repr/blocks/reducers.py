"""Reducers (Definition 3.7) that keep no dimension: each innermost list becomes one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np

from t2s.core.expr import Expr, Local, all_hold, const, equals, select, unequal, zero
from t2s.core.ops import OPERATORS, Op
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import Statement
from t2s.graph.build import In, Out, copy, put, rule, when, write
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import (
    DONE,
    EMPTY,
    Choice,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Role,
    Rule,
    stop,
)
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, pass_done
from t2s.sparse_repr.blocks.expressions import Operator, decreased
from t2s.sparse_repr.blocks.lists import (
    DiagramBlock,
    Known,
    Lists,
    Nested,
    Placing,
    columns,
    each,
    tree,
)
from t2s.sparse_repr.blocks.repeats import Repeat

Combine = Callable[[Expr, Expr], Expr]


class EmptyFiber(Enum):
    """The result of reducing a list without values.

    DROP: nothing, so that a coordinate dropper removes its coordinate too.  ZERO: an explicit
    zero, so that there is a value for every coordinate.  MISSING: N, so that there is an item for
    every coordinate, and a value dropper removes both.
    """

    DROP = "drop"
    ZERO = "zero"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarReducer(StreamBlock):
    """Combine the values of each innermost list, from the first to the last.

    N counts as ``zero_value`` (default: zero).  A higher stop costs one more cycle, in which it is
    emitted.

    A list of lists may end with an empty list or may have no list at all; the stops are the same.
    With ``ZERO`` and ``MISSING`` give the coordinates of the lists as ``outer``, which tell: then
    each has exactly one value.  Without ``outer`` a higher stop always counts as the end of a list.
    Ports: ``val``, ``outer``; ``out``.
    """

    kind = BlockKind.REDUCE
    role = Role.COMPUTE

    combine: Combine
    empty: EmptyFiber = EmptyFiber.DROP
    zero_value: Expr | None = None

    def draft(self, draft: Draft, value: StreamType, outer: StreamType | None = None) -> None:
        reducer = _Drafting(draft, value, self.combine, self.empty, self.zero_value)
        if outer is None:
            reducer.by_stops()
        else:
            reducer.by_coordinates(draft.input("outer", outer))
        draft.start("run")


class _Drafting:
    """The ports and registers of a scalar reducer, and its rules at the end of a list."""

    def __init__(
        self,
        draft: Draft,
        value: StreamType,
        combine: Combine,
        empty: EmptyFiber,
        zero_value: Expr | None,
    ) -> None:
        self._draft, self._empty = draft, empty
        self.val = val = draft.input("val", value)
        self.out = draft.output("out", value.element, StreamKind.VALUE, value.nesting - 1)
        total, self.some = draft.register("total", value.element), draft.register("some", BOOL)
        self.after = draft.register("after", INT32)
        nothing = zero(value.element) if zero_value is None else zero_value
        self._sum = [put(self.out, select(self.some, total, nothing))]
        self._later = write(self.after, decreased(val.tag))
        combined = select(self.some, combine(total, val.value), val.value)
        keep = [write(total, combined), write(self.some, const(True, BOOL))]
        begin = [write(total, nothing), write(self.some, const(True, BOOL))]
        missing = [
            when(self.some, rule("nothing", "run", takes=[val])),
            when(None, rule("nothing_first", "run", takes=[val], body=begin)),
        ]
        self._items = [
            when(val.is_value, rule("add", "run", takes=[val], body=keep)),
            when(val.is_empty, missing),
        ]
        self._is_last = val.ends_outer_list

    def by_stops(self) -> None:
        """Every stop ends a list."""
        val, lowered = self.val, [put(self.out, tag=decreased(self.val.tag))]
        skip = rule("sum_empty", "run", takes=[val])
        skip_last = rule("last_sum_empty", "run", takes=[val], puts=lowered)
        self._draft.mode(
            "stop", when(None, rule("stop", "run", puts=[put(self.out, tag=self.after)]))
        )
        self._draft.mode(
            "run",
            *self._items,
            when(val.ends_list, self._ends("sum", "run", [], [val], skip)),
            when(self._is_last, self._ends("last_sum", "stop", [self._later], [val], skip_last)),
            pass_done(val, self.out),
            needs=[val],
            expected="values with stops",
        )

    def by_coordinates(self, crd: In) -> None:
        """There is a list for each coordinate."""
        val, pair = self.val, [self.val, crd]
        expected = "a list of values for each coordinate of outer"
        put_stop = rule("stop", "run", takes=[crd], puts=[put(self.out, tag=self.after)])
        skip = rule("sum_empty", "run", takes=pair)
        skip_last = rule("last_sum_empty", "stop", takes=pair, body=[self._later])
        no_list = rule("empty_list", "run", takes=pair, puts=[put(self.out, tag=crd.tag)])
        done = rule("done", None, takes=pair, puts=[put(self.out, tag=DONE)])
        same = equals(decreased(val.tag), crd.tag)
        one_list = when(crd.is_value, self._ends("sum", "run", [], pair, skip))
        last = self._ends("last_sum", "stop", [self._later], pair, skip_last)
        lasts = [when(crd.is_value, last), when(same & ~self.some, no_list)]
        self._draft.mode(
            "stop", when(equals(crd.tag, self.after), put_stop), needs=[crd], expected=expected
        )
        self._draft.mode(
            "run",
            *self._items,
            when(val.ends_list, [one_list], needs=[crd]),
            when(self._is_last, lasts, needs=[crd]),
            when(val.is_done, [when(crd.is_done, done)], needs=[crd]),
            needs=[val],
            expected=expected,
        )

    def _ends(
        self, name: str, mode: str, body: Sequence[Statement], takes: Sequence[In], skip: Rule
    ) -> list[Choice]:
        """The choices at the end of a list; ``skip`` is for a list without values, if these are
        dropped.
        """
        fresh = write(self.some, const(False, BOOL))
        put_it = rule(name, mode, takes=takes, body=[fresh, *body], puts=self._sum)
        if self._empty is EmptyFiber.ZERO:
            return [when(None, put_it)]
        if self._empty is EmptyFiber.MISSING:
            lost = [put(self.out, tag=EMPTY)]
            none = rule(f"{name}_missing", mode, takes=takes, body=body, puts=lost)
            return [when(self.some, put_it), when(None, none)]
        return [when(self.some, put_it), when(None, skip)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceLists(DiagramBlock):
    """The sum of each innermost list of values, as the semiring adds.

    Besides the values it takes the coordinates of the lists where stop tokens alone do not tell a
    list that is empty from one that holds empty lists only.
    """

    kind = BlockKind.REDUCE

    empty: EmptyFiber = EmptyFiber.ZERO

    def meaning(self, known: Known, values: Lists, *by: Lists) -> tuple[Nested, ...]:
        add, nothing = OPERATORS[known.semiring.add].evaluate, known.zero(values.lanes)
        depth = values.depth - 1

        def total(items: list[Any]) -> Any:
            values = (nothing if item is None else item for item in items)
            return reduce(add, values, nothing) if items else None

        with np.errstate(all="ignore"):
            sums = Lists(depth, each(total, depth, values))
        if self.empty is EmptyFiber.MISSING:
            return (sums.tokens,)
        if depth == 0 or self.empty is EmptyFiber.ZERO:
            return (each(lambda value: nothing if value is None else value, depth, sums),)
        return (each(lambda row: [value for value in row if value is not None], depth - 1, sums),)

    def place(self, graph: Placing, values: Stream, *by: Stream) -> tuple[Stream, ...]:
        block = ScalarReducer(
            combine=Operator(graph.semiring.add),
            empty=self.empty,
            zero_value=graph.zero(values.type.element.lanes),
        )
        return graph.streams.put(block, f"reduce_{graph.loop}", values, *by)


# Reducers (Definition 3.7) that keep dimensions: sums of values with equal coordinates.
#
# A ``PointReducer`` keeps n coordinates of each value, adds up values with equal coordinates, and
# emits the points in order when the reduced list ends.  Two of them may take turns.


@dataclass(frozen=True, slots=True, kw_only=True)
class PointReducer(StreamBlock):
    """Values with the same n >= 1 coordinates are combined by ``operator``; one level disappears.

    The coordinate streams (the outermost first) and the values have one shape, N levels deep; the
    outer coordinates are repeated over the inner ones.  Stops below level n only separate addends;
    a stop of level n or higher ends a reduction: then all points are emitted in order, one per
    cycle (and one more cycle between lists), with stops of one level less.  No input is taken in
    the meantime; see ``reduce_points`` for two reducers that take turns.
    Ports: ``crd0``, ..., ``val``; ``out_crd0``, ..., ``out_val``; the outermost output is N - n
    levels deep, the innermost and the values N - 1.
    """

    kind = BlockKind.REDUCE
    role = Role.COMPUTE

    operator: Op = Op.ADD

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        *coordinates, value = streams
        n = len(coordinates)
        crds = [draft.input(f"crd{at}", stream) for at, stream in enumerate(coordinates)]
        val = draft.input("val", value)
        inputs = [*crds, val]
        depth = value.nesting - 1
        outs = [
            draft.output(
                f"out_crd{at}", stream.element, StreamKind.COORDINATE, depth - (n - 1 - at)
            )
            for at, stream in enumerate(coordinates)
        ]
        out_val = draft.output("out_val", value.element, StreamKind.VALUE, depth)
        points = draft.memory(
            "points", [c.stream.element for c in crds], value.element, self.operator
        )
        level = draft.register("level", INT32)
        add = MemoryAdd(memory=points, keys=tuple(c.value for c in crds), value=val.value)
        same = [equals(val.tag, c.tag) for c in crds]
        values = all_hold(*(c.is_value for c in crds))
        inner, outer = val.tag < stop(n), val.tag >= stop(n)
        begin = [write(level, val.tag)]
        fresh = draft.register("fresh", INT32)
        draft.mode(
            "take",
            when(val.is_value & values, rule("add", "take", takes=inputs, body=[add])),
            when(val.is_empty & values, rule("nothing", "take", takes=inputs)),
            when(all_hold(val.is_stop, inner, *same), rule("inner_stop", "take", takes=inputs)),
            when(
                all_hold(val.is_stop, outer, *same),
                rule("end", "put", takes=inputs, body=[*begin, write(fresh, 0)]),
            ),
            when(
                all_hold(val.is_done, *same),
                rule(
                    "done",
                    None,
                    takes=inputs,
                    puts=[put(o, tag=DONE) for o in (*outs, out_val)],
                ),
            ),
            needs=inputs,
            expected="coordinates and values of one shape",
        )
        _put_points(
            draft, points, [c.stream.element for c in crds], (outs, out_val), (level, fresh)
        )


def _put_points(
    draft: Draft,
    points: str,
    keys: Sequence[Type],
    outputs: tuple[Sequence[Out], Out],
    state: tuple[Local, Local],
) -> None:
    """The mode that empties the memory: ``fresh`` is the outermost coordinate that is new."""
    (outs, out_val), (level, fresh), n = outputs, state, len(keys)
    last = [draft.register(f"last{at}", type) for at, type in enumerate(keys[:-1])]
    names = [f"point{at}" for at in range(n)]
    key_locals = [Local(name=name, type=type) for name, type in zip(names, keys, strict=True)]
    total = Local(name="total", type=out_val.stream.element)
    first = MemoryFirst(targets=tuple(names), value=total.name, memory=points)
    size, count = MemorySize(target="count", memory=points), Local(name="count", type=INT32)
    keep = [write(register, value) for register, value in zip(last, key_locals[:-1], strict=True)]
    choices: list[Choice] = []
    for at in range(n):
        puts = [*(put(o, v) for o, v in zip(outs[at:], key_locals[at:], strict=True))]
        put_point = rule(
            f"put_from{at}",
            "put",
            body=[*keep, write(fresh, n), MemoryDrop(memory=points)],
            puts=[*puts, put(out_val, total)],
        )
        choices.append(when(equals(fresh, at), put_point))
        if at == n - 1:
            continue
        stops = [put(o, tag=stop(inside)) for inside, o in enumerate(outs[at + 1 :])]
        stops.append(put(out_val, tag=stop(n - 2 - at)))
        new_list = rule(f"new_list{at}", "put", body=[write(fresh, at)], puts=stops)
        changed = equals(fresh, n) & unequal(key_locals[at], last[at])
        choices.append(when(changed, new_list))
    puts = [put(outs[-1], key_locals[-1]), put(out_val, total)]
    choices.append(
        when(None, rule("put", "put", body=[*keep, MemoryDrop(memory=points)], puts=puts))
    )
    ends = [put(o, tag=level - (n - at)) for at, o in enumerate(outs)]
    ends.append(put(out_val, tag=decreased(level)))
    draft.mode(
        "put",
        when(
            None,
            [
                when(unequal(count, 0), choices, body=[first]),
                when(None, rule("put_stop", "take", puts=ends)),
            ],
            body=[size],
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternateSplit(StreamBlock):
    """Whole lists to two sides in turn: a stop of ``level`` or higher ends a turn; both get D.

    The streams have one shape.  Ports: ``in0``, ...; ``out0_0`` (stream 0, side 0), ``out0_1``, ...
    """

    kind = BlockKind.PARALLEL

    level: int

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(streams)]
        outs = [
            [draft.output(f"out{n}_{side}", s.element, s.kind, s.nesting) for side in range(2)]
            for n, s in enumerate(streams)
        ]
        first = inputs[0]
        done = rule(
            "done", None, takes=inputs, puts=[put(o, tag=DONE) for two in outs for o in two]
        )
        ends = const(self.level, INT32) < first.tag
        for side in range(2):
            passed = [copy(two[side], i) for two, i in zip(outs, inputs, strict=True)]
            own, other = f"side{side}", f"side{1 - side}"
            choices = [
                when(ends, rule(f"end{side}", other, takes=inputs, puts=passed)),
                when(None, rule(f"pass{side}", own, takes=inputs, puts=passed)),
            ]
            last = (
                [when(first.is_done, done)] if side == 0 else [when(first.is_done, _renamed(done))]
            )
            draft.mode(own, *last, *choices, needs=inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternateMerge(StreamBlock):
    """The inverse of ``AlternateSplit`` for one stream.  Ports: ``in0``, ``in1``; ``out``."""

    kind = BlockKind.PARALLEL

    level: int

    def draft(self, draft: Draft, stream: StreamType, _: StreamType) -> None:
        inputs = [draft.input(f"in{side}", stream) for side in range(2)]
        out = draft.output("out", stream.element, stream.kind, stream.nesting)
        for side, source in enumerate(inputs):
            other = inputs[1 - side]
            ends = const(self.level, INT32) < source.tag
            passed = [copy(out, source)]
            done = rule(f"done{side}", None, takes=inputs, puts=passed)
            draft.mode(
                f"side{side}",
                when(source.is_done, [when(other.is_done, done)], needs=[other]),
                when(ends, rule(f"end{side}", f"side{1 - side}", takes=[source], puts=passed)),
                when(None, rule(f"pass{side}", f"side{side}", takes=[source], puts=passed)),
                needs=[source],
            )


def _renamed(done: Rule) -> Rule:
    return replace(done, name="done_too")


def reduce_points(
    to: Connections, crds: Sequence[Stream], val: Stream, operator: Op, banks: int, name: str
) -> tuple[Stream, ...]:
    """The coordinates and the values, one level less, with each point once and in order.

    Each of ``crds`` is one level deeper than the one before.  With two ``banks`` a reduction is
    emitted while the next one is taken in.
    """
    to.count(BlockKind.REDUCE)
    aligned: list[Stream] = []  # repeat every coordinate over the levels below its own
    for at, crd in enumerate(crds):
        for deeper in crds[at + 1 :]:
            (crd,) = to.put(Repeat(), f"{name}_hold", deeper, crd, count=False)
        aligned.append(crd)
    streams, n = [*aligned, val], len(crds)
    reducer = PointReducer(operator=operator)
    if banks == 1:
        return to.put(reducer, name, *streams, count=False)
    dealt = to.put(AlternateSplit(level=n), f"{name}_deal", *streams, count=False)
    sides = [to.put(reducer, name, *dealt[side::2], count=False) for side in range(2)]
    return tuple(
        to.put(AlternateMerge(level=min(at, n - 1)), f"{name}_merge", left, right, count=False)[0]
        for at, (left, right) in enumerate(zip(*sides, strict=True))
    )


def default_banks(crds: Sequence[Stream], val: Stream) -> int:
    """Two banks if there is more than one reduction to overlap."""
    return 2 if val.nesting > len(crds) + 2 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducePoints(DiagramBlock):
    """The sums of values with the same coordinates, without the level above those of ``keys``.

    Its inputs and outputs are a stream of coordinates for each key, and the values.
    """

    kind = BlockKind.REDUCE

    keys: int

    def meaning(self, known: Known, *streams: Lists) -> tuple[Nested, ...]:
        values = streams[-1]
        add, nothing = OPERATORS[known.semiring.add].evaluate, known.zero(values.lanes)

        def total(*parts: Any) -> dict[tuple[int, ...], Any]:
            sums: dict[tuple[int, ...], Any] = {}
            for row in zip(*parts, strict=True):
                for point, value in _points(row):
                    addend = nothing if value is None else value
                    sums[point] = add(sums.get(point, nothing), addend)
            return sums

        def levels(*parts: Any) -> tuple[Nested, ...]:
            points = total(*parts)
            return tuple(tree(points, n, self.keys) for n in range(self.keys + 1))

        with np.errstate(all="ignore"):
            return columns(levels, self.keys + 1, values.depth - 1 - self.keys, *streams)

    def place(self, graph: Placing, *streams: Stream) -> tuple[Stream, ...]:
        *crds, val = streams
        name, banks = f"reduce_{graph.loop}", default_banks(crds, val)
        return reduce_points(graph.streams, crds, val, graph.semiring.add, banks, name)


def _points(parts: tuple[Any, ...], point: tuple[int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Pairs of coordinates and value, from lists of coordinates and values."""
    level = len(point)
    if level == len(parts) - 1:
        yield point, parts[-1]
        return
    for number, coordinate in enumerate(parts[level]):
        inner = tuple(part[number] if n > level else part for n, part in enumerate(parts))
        yield from _points(inner, (*point, coordinate))
