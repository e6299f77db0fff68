"""Reducers (Definition 3.7) that keep no dimension: each innermost list becomes one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np

from t2s.core.expr import Expr, const
from t2s.core.ops import OPERATORS
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Statement
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.machine import Choice, Rule
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import (
    BlockKind,
    Draft,
    In,
    StreamBlock,
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
    Operator,
    both,
    decreased,
    equal,
    invert,
    less,
    select,
    zero,
)
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarReducer(StreamBlock):
    """One value for each innermost list: its values combined from the first to the last.

    N counts as a zero (``zero_value``, if it is given).  A stop of a higher level costs one more
    cycle, in which the stop is put.

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
            given = (nothing if one is None else one for one in items)
            return reduce(add, given, nothing) if items else None

        with np.errstate(all="ignore"):
            sums = Lists(depth, each(total, depth, values))
        if self.empty is EmptyFiber.MISSING:
            return (sums.tokens,)
        if depth == 0 or self.empty is EmptyFiber.ZERO:
            return (each(lambda one: nothing if one is None else one, depth, sums),)
        return (each(lambda row: [one for one in row if one is not None], depth - 1, sums),)

    def place(self, graph: Placing, values: Stream, *by: Stream) -> tuple[Stream, ...]:
        block = ScalarReducer(
            combine=Operator(graph.semiring.add),
            empty=self.empty,
            zero_value=graph.zero(values.type.element.lanes),
        )
        return graph.streams.put(block, f"reduce_{graph.loop}", values, *by)
