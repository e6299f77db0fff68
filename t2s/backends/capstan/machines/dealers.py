"""From a stream of vectors to partitions: lane ``q`` is that of partition ``q``.

A vector goes from partition to partition, and each takes its word.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.bodies import PatternBody
from t2s.backends.capstan.machines.kit import UnitDraft, UnitHead, Wire, put, rule, when
from t2s.backends.capstan.machines.partitions import is_place, to_first_place, to_next_place
from t2s.backends.capstan.machines.vectors import spread, where
from t2s.core.expr import Expr, Index, LaneNumbers, ReduceLanes, apply, const
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Role
from t2s.graph.machine import DONE, Choice


def dealt_words(body: PatternBody, wire: Wire, name: str, location: SourceLocation | None) -> Wire:
    """The words of a queue of the body around for the iterations of partitions.

    There is a vector for each firing of the first partition, and a word of it for each partition
    that has an iteration then.
    """
    (dimension,) = body.space
    parts = dimension.extent
    unit = UnitDraft(body.draft, f"deal_{name}", Role.RELAY, body.space, body.region, location)
    control = unit.take(body.control, body.binder)
    first = unit.take(to_first_place(wire, parts), unit.local(name))
    out = unit.output(name, wire.type.scalar)
    on = to_next_place(unit, f"{name}_on", wire.type, parts, tagged=True)
    before = unit.take(on, unit.local(name))

    def deals(head: UnitHead, text: str, *, further: bool) -> Choice:
        puts = [put(out, _own_lane(head.value, dimension.name))]
        puts += [put(on, head.value)] if further else []
        needs = [head] if head is first else []
        return when(None, rule(text, "run", takes=[control, head], puts=puts), needs=needs)

    def others(text: str, *, further: bool) -> list[Choice]:
        done = [put(on, tag=const(DONE))] if further else []
        passed = [put(on, before.value)] if further else []
        return [
            when(
                before.is_done,
                rule(f"{text} done", None, takes=[control, before], puts=done),
            ),
            when(
                control.is_done,
                rule(f"{text} without", "run", takes=[before], puts=passed),
            ),
            deals(before, text, further=further),
        ]

    end = rule("first done", None, takes=[control], puts=[put(on, tag=const(DONE))])
    unit.mode(
        "run",
        when(is_place(0), [when(control.is_done, end), deals(first, "first", further=True)]),
        when(is_place(parts - 1), others("last", further=False), needs=[before]),
        when(None, others("pass", further=True), needs=[before]),
        needs=[control],
    )
    unit.finish()
    return out


def dealt_body(body: PatternBody, around: PatternBody) -> PatternBody:
    """A body that takes as many iterations at a time as there are partitions, as these see it.

    Each partition has a firing for each of its firings, which may have no iteration.
    """
    wires = {name: _dealt(body, around, wire, name) for name, wire in body.wires.items()}
    return replace(
        body,
        around=around,
        lanes=1,
        space=around.space,
        control=_dealt(body, around, body.control, body.binder),
        wires=wires,
        _repeated=set(),
    )


def _dealt(body: PatternBody, around: PatternBody, wire: Wire, name: str) -> Wire:
    (dimension,) = around.space
    parts = dimension.extent
    unit = UnitDraft(body.draft, f"deal_{name}", Role.RELAY, around.space, body.region, None)
    tagged = wire.stream.nesting > 0
    first = unit.take(to_first_place(wire, parts), unit.local(name))
    out = unit.output(name, wire.type.scalar, tagged=tagged)
    on = to_next_place(unit, f"{name}_on", wire.type, parts, tagged=tagged)
    before = unit.take(on, unit.local(name))

    def deals(head: UnitHead, text: str, *, further: bool) -> list[Choice]:
        puts = [put(out, _own_lane(head.value, dimension.name), head.tag)]
        puts += [put(on, head.value, head.tag)] if further else []
        goes_on = when(None, rule(text, "run", takes=[head], puts=puts))
        if head.tag is None:
            return [goes_on]
        return [when(head.is_done, rule(f"{text} done", None, takes=[head], puts=puts)), goes_on]

    unit.mode(
        "run",
        when(is_place(0), deals(first, "first", further=True), needs=[first]),
        when(is_place(parts - 1), deals(before, "last", further=False), needs=[before]),
        when(None, deals(before, "pass", further=True), needs=[before]),
    )
    unit.finish(endless=not tagged)
    return out


def _own_lane(vector: Expr, index: str) -> Expr:
    """The lane with the number of the partition."""
    lanes = vector.type.lanes
    scalar = vector.type.scalar
    number = spread(Index(name=index), lanes)
    own = apply(Op.EQUAL, LaneNumbers(type=INT32.with_lanes(lanes)), number)
    # the sum of a number and any zeros below zero is that number
    neutral = spread(const(-0.0 if scalar.is_float else 0, scalar), lanes)
    return ReduceLanes(operator=Op.ADD, value=where(own, vector, neutral), type=scalar)
