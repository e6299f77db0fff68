"""Reducers (Definition 3.7): sums over the innermost lists, with any number of dimensions kept.

``scalar_reducer`` keeps none: each innermost list becomes one value.  ``point_reducer`` keeps n
coordinates of each value, adds up what has the same coordinates, and puts the points in order when
the list of lists that is reduced ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from t2s.core.expr import Expr, Local, const
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Type
from t2s.graph.body import Statement
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.machine import Choice, MemoryAdd, MemoryDrop, MemoryFirst, MemorySize, Rule, stop
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    In,
    Out,
    pass_done,
    put,
    rule,
    when,
    write,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    EMPTY_TAG,
    FIRST_STOP,
    at_least,
    both,
    decreased,
    equal,
    invert,
    less,
    select,
    subtract,
    tag,
    unequal,
    zero,
)

Combine = Callable[[Expr, Expr], Expr]


class EmptyFiber(Enum):
    """What becomes of a list without values.

    DROP: nothing, so that a coordinate dropper removes its coordinate too.  ZERO: an explicit
    zero, so that there is a value for every coordinate.  MISSING: N, so that there is an item for
    every coordinate, and a value dropper removes both.
    """

    DROP = "drop"
    ZERO = "zero"
    MISSING = "missing"


def scalar_reducer(
    value: StreamType,
    combine: Combine,
    *,
    empty: EmptyFiber = EmptyFiber.DROP,
    zero_value: Expr | None = None,
    outer: StreamType | None = None,
    location: SourceLocation | None = None,
) -> Block:
    """One value for each innermost list: its values combined from the first to the last.

    N counts as a zero (``zero_value``, if it is given).  A stop of a higher level costs one more
    cycle, in which the stop is put.

    A list of lists may end with an empty list or may have no list at all; the stops are the same.
    With ``ZERO`` and ``MISSING`` give the coordinates of the lists as ``outer``, which tell: then
    each has exactly one value.  Without ``outer`` a higher stop always counts as the end of a list.
    Ports: ``val``, ``outer``; ``out``.
    """
    draft = Draft(BlockKind.REDUCE, Role.COMPUTE, location)
    reducer = _ScalarReducer(draft, value, combine, empty, zero_value)
    if outer is None:
        reducer.by_stops()
    else:
        reducer.by_coordinates(draft.input("outer", outer))
    return draft.block("run")


class _ScalarReducer:
    """The ports and registers of a scalar reducer, and what it does at the end of a list."""

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
        self._is_last = less(FIRST_STOP, val.tag)

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
            when(equal(val.tag, FIRST_STOP), self._ends("sum", "run", [], [val], skip)),
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
        done = rule("done", None, takes=pair, puts=[put(self.out, tag=DONE_TAG)])
        same = equal(decreased(val.tag), crd.tag)
        one_list = when(crd.is_value, self._ends("sum", "run", [], pair, skip))
        last = self._ends("last_sum", "stop", [self._later], pair, skip_last)
        lasts = [when(crd.is_value, last), when(both(same, invert(self.some)), no_list)]
        self._draft.mode(
            "stop", when(equal(crd.tag, self.after), put_stop), needs=[crd], expected=expected
        )
        self._draft.mode(
            "run",
            *self._items,
            when(equal(val.tag, FIRST_STOP), [one_list], needs=[crd]),
            when(self._is_last, lasts, needs=[crd]),
            when(val.is_done, [when(crd.is_done, done)], needs=[crd]),
            needs=[val],
            expected=expected,
        )

    def _ends(
        self, name: str, mode: str, body: Sequence[Statement], takes: Sequence[In], skip: Rule
    ) -> list[Choice]:
        """At the end of a list, of one without values do as ``skip`` says if these are dropped."""
        fresh = write(self.some, const(False, BOOL))
        put_it = rule(name, mode, takes=takes, body=[fresh, *body], puts=self._sum)
        if self._empty is EmptyFiber.ZERO:
            return [when(None, put_it)]
        if self._empty is EmptyFiber.MISSING:
            lost = [put(self.out, tag=EMPTY_TAG)]
            none = rule(f"{name}_missing", mode, takes=takes, body=body, puts=lost)
            return [when(self.some, put_it), when(None, none)]
        return [when(self.some, put_it), when(None, skip)]


def point_reducer(
    coordinates: Sequence[StreamType],
    value: StreamType,
    operator: Op = Op.ADD,
    *,
    location: SourceLocation | None = None,
) -> Block:
    """Values with the same n >= 1 coordinates are combined by ``operator``; one level disappears.

    The coordinate streams (the outermost first) and the values have one shape, N levels deep; the
    outer coordinates are repeated over the inner ones.  Stops below level n only separate what is
    added up; a stop of level n or higher ends a reduction: then all points are put in order, one
    per cycle (and one more cycle between lists), with stops of one level less.  Nothing is taken
    meanwhile; see ``Streams.reduce`` for two reducers that take turns.
    Ports: ``crd0``, ..., ``val``; ``out_crd0``, ..., ``out_val``; the outermost output is N - n
    levels deep, the innermost and the values N - 1.
    """
    draft = Draft(BlockKind.REDUCE, Role.COMPUTE, location)
    n = len(coordinates)
    crds = [draft.input(f"crd{at}", stream) for at, stream in enumerate(coordinates)]
    val = draft.input("val", value)
    inputs = [*crds, val]
    depth = value.nesting - 1
    outs = [
        draft.output(f"out_crd{at}", stream.element, StreamKind.COORDINATE, depth - (n - 1 - at))
        for at, stream in enumerate(coordinates)
    ]
    out_val = draft.output("out_val", value.element, StreamKind.VALUE, depth)
    points = draft.memory("points", [c.stream.element for c in crds], value.element, operator)
    level = draft.register("level", INT32)
    add = MemoryAdd(memory=points, keys=tuple(c.value for c in crds), value=val.value)
    same = [equal(val.tag, c.tag) for c in crds]
    values = both(*(c.is_value for c in crds))
    inner, outer = less(val.tag, tag(stop(n))), at_least(val.tag, tag(stop(n)))
    begin = [write(level, val.tag)]
    fresh = draft.register("fresh", INT32)
    draft.mode(
        "take",
        when(both(val.is_value, values), rule("add", "take", takes=inputs, body=[add])),
        when(both(val.is_empty, values), rule("nothing", "take", takes=inputs)),
        when(both(val.is_stop, inner, *same), rule("inner_stop", "take", takes=inputs)),
        when(
            both(val.is_stop, outer, *same),
            rule("end", "put", takes=inputs, body=[*begin, write(fresh, tag(0))]),
        ),
        when(
            both(val.is_done, *same),
            rule("done", None, takes=inputs, puts=[put(o, tag=DONE_TAG) for o in (*outs, out_val)]),
        ),
        needs=inputs,
        expected="coordinates and values of one shape",
    )
    _put_points(draft, points, [c.stream.element for c in crds], (outs, out_val), (level, fresh))
    return draft.block()


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
    found = [Local(name=name, type=type) for name, type in zip(names, keys, strict=True)]
    total = Local(name="total", type=out_val.stream.element)
    first = MemoryFirst(targets=tuple(names), value=total.name, memory=points)
    size, count = MemorySize(target="count", memory=points), Local(name="count", type=INT32)
    keep = [write(register, value) for register, value in zip(last, found[:-1], strict=True)]
    choices: list[Choice] = []
    for at in range(n):
        puts = [*(put(o, v) for o, v in zip(outs[at:], found[at:], strict=True))]
        put_point = rule(
            f"put_from{at}",
            "put",
            body=[*keep, write(fresh, tag(n)), MemoryDrop(memory=points)],
            puts=[*puts, put(out_val, total)],
        )
        choices.append(when(equal(fresh, tag(at)), put_point))
        if at == n - 1:
            continue
        stops = [put(o, tag=tag(stop(inside))) for inside, o in enumerate(outs[at + 1 :])]
        stops.append(put(out_val, tag=tag(stop(n - 2 - at))))
        new_list = rule(f"new_list{at}", "put", body=[write(fresh, tag(at))], puts=stops)
        changed = both(equal(fresh, tag(n)), unequal(found[at], last[at]))
        choices.append(when(changed, new_list))
    puts = [put(outs[-1], found[-1]), put(out_val, total)]
    choices.append(
        when(None, rule("put", "put", body=[*keep, MemoryDrop(memory=points)], puts=puts))
    )
    ends = [put(o, tag=subtract(level, tag(n - at))) for at, o in enumerate(outs)]
    ends.append(put(out_val, tag=decreased(level)))
    draft.mode(
        "put",
        when(
            None,
            [
                when(unequal(count, tag(0)), choices, body=[first]),
                when(None, rule("put_stop", "take", puts=ends)),
            ],
            body=[size],
        ),
    )
