"""Allocators: words that iterations add to in their order, in whatever partition they are.

The word is a token that goes from partition to partition: each adds what its iteration has, tells
it the sum, and hands the token on.  So there is an addition in each cycle.  What is left of the
token at the end is taken by whoever has no iteration more.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import (
    UnitDraft,
    UnitHead,
    Wire,
    put,
    rule,
    when,
    write,
)
from t2s.backends.capstan.machines.partitions import is_place, to_next_place
from t2s.backends.capstan.machines.vectors import both, is_there, number, where, zero
from t2s.core.expr import Expr, apply, const, equals
from t2s.core.types import INT32, Type
from t2s.graph.body import Role
from t2s.graph.machine import DONE, Choice
from t2s.patterns.ir import Update


def updated(body: PatternBody, statement: Update, value: Wire, *, each: bool) -> Wire:
    """The sums after the iterations of a body, of a word that is 0 at the start.

    ``each``: each iteration of the body is one of the partitions; else a segment of it is.
    """
    if body.space:
        return _in_turn(body, statement, value, each)
    unit = BodyUnit(body, f"update_{statement.memory}", Role.COMPUTE, statement.location)
    type = value.type
    total = unit.register("total", type)
    count = where(unit.valid, unit.scalar(statement.value), zero(type))
    after = apply(statement.operator, total, count)
    out = unit.output(statement.target, type, latency=_answer(body))
    unit.at_each([FiringCase(name="update", body=(write(total, after),), puts=(put(out, after),))])
    unit.finish()
    return out


def _answer(body: PatternBody) -> int:
    """Cycles to the listeners: there and back through the network."""
    return 2 * body.draft.times.hop


def _in_turn(body: PatternBody, statement: Update, value: Wire, each: bool) -> Wire:
    """A unit in each partition.  A turn is from taking the token to handing it on.

    Every partition has a turn in the first round, with an iteration or without; the first one
    begins with 0.
    """
    draft, location = body.draft, statement.location
    name = f"update_{statement.memory}"
    unit = UnitDraft(draft, name, Role.COMPUTE, body.space, body.region, location)
    control, counted = unit.take(body.control, body.binder), unit.take(value, unit.local("count"))
    type, parts = value.type, body.space[0].extent
    out = unit.output(statement.target, type, latency=_answer(body))
    ring = to_next_place(unit, f"{statement.target}_on", type, parts, tagged=True)
    before = unit.take(ring, unit.local("before"))
    total, begun, has_turn = (unit.register(n, t) for n, t in _registers(type))
    count = where(is_there(control.value), counted.value, zero(type))

    def turn(name: str, start: Expr, takes: tuple[UnitHead, ...]) -> list[Choice]:
        """Add to what the word was at the start; the last firing of a turn hands the sum on."""
        after = apply(statement.operator, start, count)
        takes = (control, counted, *takes)
        ends = [write(begun, number(1)), write(has_turn, number(0))]
        hands_on = rule(f"{name}, last", "run", takes=takes, puts=[put(out, after)], body=ends)
        hands_on = replace(hands_on, puts=(*hands_on.puts, put(ring, after)))
        if each:
            return [when(None, hands_on)]
        goes_on = [write(begun, number(1)), write(has_turn, number(1)), write(total, after)]
        more = rule(name, "run", takes=takes, puts=[put(out, after)], body=goes_on)
        return [when(control.is_last, hands_on), when(None, more)]

    first = both(is_place(0), equals(begun, number(0)))
    done = rule("done", "drain", takes=[control], puts=[put(ring, tag=const(DONE))])
    turns = [
        when(equals(has_turn, number(1)), turn("in turn", total, ())),
        when(first, turn("begin", zero(type), ())),
        when(None, turn("take", before.value, (before,)), needs=[before]),
    ]
    unit.mode(
        "run",
        when(control.is_done, done),
        when(None, turns, needs=[counted]),
        needs=[control],
    )
    unit.mode(
        "drain",
        when(before.is_done, rule("end", None, takes=[before])),
        when(None, rule("nobody's", "drain", takes=[before])),
        needs=[before],
    )
    unit.finish()
    return out


def _registers(type: Type) -> tuple[tuple[str, Type], ...]:
    """The sum in a turn, whether there was a turn yet, and whether there is one."""
    return ("total", type), ("begun", INT32), ("has_turn", INT32)
