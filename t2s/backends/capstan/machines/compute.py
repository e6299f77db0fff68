"""What compute units do: values of locals, and reductions over lanes and iterations."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import Wire, let, put, write
from t2s.backends.capstan.machines.vectors import spread, stages, where
from t2s.core.expr import Expr, ReduceLanes, apply, const
from t2s.graph.body import Role, Statement
from t2s.graph.machine import Put
from t2s.patterns.ir import Bind, Reduce, start_of


def passage(body: PatternBody, value: Expr) -> int:
    """Cycles to the listeners: the stages of a value, and a hop behind each unit of them."""
    times = body.draft.times
    taken = stages(value)
    return taken + times.hop * max(1, -(-taken // times.stages))


def bound(body: PatternBody, statements: Sequence[Bind]) -> dict[str, Wire]:
    """The values that some statements bind, all in one unit."""
    first = statements[0]
    unit = BodyUnit(body, f"bind_{first.target}", Role.COMPUTE, first.location)
    steps: list[Statement] = []
    puts: list[Put] = []
    found: dict[str, Wire] = {}
    for statement in statements:
        value = unit.vector(statement.value)
        steps.append(unit.bind(statement.target, value))
        out = unit.output(statement.target, value.type, latency=passage(body, value))
        puts.append(put(out, unit.reads(statement.target)))
        found[statement.target] = out
    unit.at_each([FiringCase(name="compute", body=tuple(steps), puts=tuple(puts))])
    unit.finish()
    return found


def reduced(body: PatternBody, statement: Reduce) -> Wire:
    """The result of a reduction: a local of the body around."""
    unit = BodyUnit(body, f"reduce_{statement.target}", Role.COMPUTE, statement.location)
    type = statement.value.type
    start = start_of(statement)
    assert start is not None
    neutral = const(start, type)
    operator = statement.operator
    value = where(unit.valid, unit.vector(statement.value), spread(neutral, body.lanes))
    total = unit.register("total", type, start)
    steps: list[Statement] = []
    if body.lanes > 1:
        value = ReduceLanes(operator=operator, value=value, type=type)
    combination = apply(operator, total, value)
    step, combined = let(unit, "combined", combination)
    steps.append(step)
    out = unit.output(statement.target, type, latency=passage(body, combination))
    last = FiringCase(
        name="end",
        when=unit.control.is_last,
        body=(*steps, write(total, neutral)),
        puts=(put(out, combined),),
    )
    more = FiringCase(name="add", body=(*steps, write(total, combined)))
    unit.at_each([last, more])
    unit.finish()
    return out
