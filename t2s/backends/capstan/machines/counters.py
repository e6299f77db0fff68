"""Where firings come from: the start of a program, and the counter of a pattern."""

from __future__ import annotations

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import LAST, GraphDraft, UnitDraft, put, rule, when, write
from t2s.backends.capstan.machines.vectors import (
    addresses,
    counted_from,
    less,
    number,
    plus,
    spread,
    where,
)
from t2s.core.expr import Expr, Index, const
from t2s.core.location import SourceLocation
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.machine import DONE
from t2s.patterns.ir import Foreach, Reduce


def start(
    draft: GraphDraft, environment: dict[str, int], location: SourceLocation | None
) -> PatternBody:
    """The body of a whole program: one firing, and the end."""
    unit = UnitDraft(draft, "start", Role.RELAY, (), None, location)
    binder = draft.names.fresh("once")
    control = unit.output(binder, tagged=True)
    unit.mode("once", when(None, rule("go", "end", puts=[put(control, tag=const(LAST))])))
    unit.mode("end", when(None, rule("done", None, puts=[put(control, tag=const(DONE))])))
    unit.finish()
    return PatternBody(
        draft=draft,
        around=None,
        lanes=1,
        space=(),
        region=None,
        control=control,
        binder=binder,
        environment=environment,
    )


def counted(
    around: PatternBody,
    pattern: Foreach | Reduce,
    extent: Expr,
    lanes: int,
    region: str,
    parts: int,
) -> PatternBody:
    """The body of a pattern that counts to an extent, by a unit that makes its firings.

    Each of ``parts`` partitions makes every ``parts``-th iteration.
    """
    (binder,) = pattern.binders
    unit = BodyUnit(around, f"count_{binder}", Role.RELAY, pattern.location)
    most = where(unit.valid, unit.scalar(extent), number(0))
    begin = unit.register("at")
    first: Expr = begin
    if parts > 1:
        (dimension,) = around.space
        first = plus(begin, Index(name=dimension.name))
    type = INT32.with_lanes(lanes)
    numbers = counted_from(first, lanes)
    there = less(numbers, spread(most, lanes))
    value = addresses(there, numbers)
    # a link carries the first number and how many there are: lanes count by themselves
    room = around.draft.times.room(1)
    control = unit.output(binder, type, tagged=True, capacity=room)
    local = unit.output(binder, type, capacity=room)
    step = number(lanes * parts)
    more = less(plus(first, step), most)
    unit.at_each(
        [
            FiringCase(
                name="count",
                when=more,
                body=(write(begin, plus(begin, step)),),
                puts=(put(control, value), put(local, value)),
                final=False,
            ),
            FiringCase(
                name="end",
                body=(write(begin, number(0)),),
                puts=(put(control, value, const(LAST)), put(local, value)),
            ),
        ],
        done=[put(control, tag=const(DONE))],
    )
    unit.finish()
    return PatternBody(
        draft=around.draft,
        around=around,
        lanes=lanes,
        space=around.space,
        region=region,
        control=control,
        binder=binder,
        wires={binder: local},
        environment=around.environment,
    )
