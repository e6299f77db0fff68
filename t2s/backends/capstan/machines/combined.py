"""Sums over partitions: each round of iterations is combined as one vector, the rounds in order.

The values of a round, one from each partition, are put into a vector that goes from partition to
partition; a unit behind the last one combines its lanes and adds them up.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.bodies import PatternBody
from t2s.backends.capstan.machines.compute import passage
from t2s.backends.capstan.machines.kit import UnitDraft, Wire, put, rule, when, write
from t2s.backends.capstan.machines.partitions import is_place, next_place
from t2s.backends.capstan.machines.vectors import is_there, spread, where
from t2s.core.expr import Expr, Index, Insert, ReduceLanes, apply, const
from t2s.graph.body import Role
from t2s.graph.machine import DONE, Choice
from t2s.patterns.ir import Reduce, start_of


def combined(around: PatternBody, body: PatternBody, statement: Reduce, value: Wire) -> Wire:
    """The result of a reduction over partitions: a local of the body around all of them."""
    start = start_of(statement)
    assert start is not None
    neutral = const(start, statement.value.type)
    rounds = _rounds(body, statement, value, neutral)
    unit = UnitDraft(
        around.draft,
        f"reduce_{statement.target}",
        Role.COMPUTE,
        (),
        around.region,
        statement.location,
    )
    vector = unit.take(rounds, unit.local("round"))
    type = statement.value.type
    total = unit.register("total", type, start)
    one = ReduceLanes(operator=statement.operator, value=vector.value, type=type)
    after = apply(statement.operator, total, one)
    out = unit.output(statement.target, type, latency=passage(around, after))
    unit.mode(
        "run",
        when(vector.is_done, rule("end", None, takes=[vector], puts=[put(out, total)])),
        when(None, rule("add", "run", takes=[vector], body=[write(total, after)])),
        needs=[vector],
    )
    unit.finish()
    return out


def _rounds(body: PatternBody, statement: Reduce, value: Wire, neutral: Expr) -> Wire:
    """A vector for each round, and the end.

    The first partition has the most iterations; where another one has none left, its lane stays
    neutral.
    """
    (dimension,) = body.space
    parts, here = dimension.extent, Index(name=dimension.name)
    name = f"collect_{statement.target}"
    unit = UnitDraft(body.draft, name, Role.RELAY, body.space, body.region, statement.location)
    control, own = unit.take(body.control, body.binder), unit.take(value, unit.local("own"))
    type = own.value.type.with_lanes(parts)
    whole = unit.output(f"{statement.target}_rounds", type, tagged=True)
    out = replace(whole, sink_at=(const(parts - 1),))
    on = replace(
        unit.output(f"{statement.target}_on", type, tagged=True, latency=1),
        source_at=(next_place(parts),),
    )
    before = unit.take(on, unit.local("before"))
    valued = where(is_there(control.value), own.value, neutral)

    def with_own(vector: Expr) -> Expr:
        return Insert(vector=vector, lane=here, value=valued, type=type)

    first = [
        when(
            control.is_done,
            rule("first done", None, takes=[control], puts=[put(on, tag=const(DONE))]),
        ),
        when(
            None,
            rule(
                "first",
                "run",
                takes=[control, own],
                puts=[put(on, with_own(spread(neutral, parts)))],
            ),
            needs=[own],
        ),
    ]

    def others(wire: Wire, text: str) -> list[Choice]:
        takes, end = [control, own, before], put(wire, tag=const(DONE))
        return [
            when(
                before.is_done,
                rule(f"{text} done", None, takes=[control, before], puts=[end]),
            ),
            when(
                control.is_done,
                rule(f"{text} without", "run", takes=[before], puts=[put(wire, before.value)]),
            ),
            when(
                None,
                rule(text, "run", takes=takes, puts=[put(wire, with_own(before.value))]),
                needs=[own],
            ),
        ]

    unit.mode(
        "run",
        when(is_place(0), first),
        when(is_place(parts - 1), others(out, "last"), needs=[before]),
        when(None, others(on, "pass"), needs=[before]),
        needs=[control],
    )
    unit.finish()
    return out
