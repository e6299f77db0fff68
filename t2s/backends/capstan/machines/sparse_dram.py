"""Ports of sparse DRAMs: the words of a vector that are in one burst are one request, and a cycle.

A *port* looks at the addresses of a firing and asks for a burst in each of its own firings, the one
with the lowest address first; a *collector* puts the words together again.  Bursts are asked for as
addresses come, many may be under way, and what they bring stays in order.
"""

from __future__ import annotations

from t2s.backends.capstan.machines.accesses import read
from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import LAST, UnitDraft, Wire, put, rule, when, write
from t2s.backends.capstan.machines.vectors import (
    addresses,
    at_least,
    is_there,
    number,
    spread,
    where,
    zero,
)
from t2s.core.expr import Local, ReduceLanes, apply, const, equals
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Load, Role
from t2s.graph.graph import Tensor
from t2s.graph.machine import DONE
from t2s.patterns.ir import NOWHERE, ReadMemory

_BEHIND_ALL = (1 << 31) - 1
"""In place of an address: higher than any."""


def read_lines(body: PatternBody, statement: ReadMemory, source: Tensor) -> Wire:
    """What a statement reads in a sparse DRAM."""
    if body.lanes == 1:
        return read(body, [statement], source, number(0), [])[statement.target]
    unit = BodyUnit(body, f"ask_{statement.memory}", Role.LOAD, statement.location)
    lanes = INT32.with_lanes(body.lanes)
    begun, waiting = unit.register("begun"), unit.register("waiting", lanes)
    first = spread(equals(begun, number(0)), body.lanes)
    current = where(first, addresses(unit.valid, unit.vector(statement.index)), waiting)
    behind = where(is_there(current), current, number(_BEHIND_ALL, body.lanes))
    lowest = ReduceLanes(operator=Op.MINIMUM, value=behind, type=INT32)
    words = const(body.draft.times.burst_bytes // source.type.bytes)
    burst = apply(Op.FLOOR_DIVIDE, lowest, words)
    bursts = apply(Op.FLOOR_DIVIDE, current, spread(words, body.lanes))
    chosen = apply(Op.EQUAL, bursts, spread(burst, body.lanes))
    nowhere = number(NOWHERE, body.lanes)
    asked, rest = where(chosen, current, nowhere), where(chosen, nowhere, current)
    type = source.type.with_lanes(body.lanes)
    word = Local(name=unit.local("word"), type=type)
    load = Load(target=word.name, tensor=source.name, indices=(asked,), type=type)
    brought = unit.output(f"{statement.target}_brought", type, tagged=True)
    places = unit.output(f"{statement.target}_places", lanes)
    more = ReduceLanes(operator=Op.MAXIMUM, value=rest, type=INT32)
    unit.at_each(
        [
            FiringCase(
                name="burst",
                when=at_least(more, number(0)),
                body=(load, write(waiting, rest), write(begun, number(1))),
                puts=(put(brought, word), put(places, asked)),
                final=False,
            ),
            FiringCase(
                name="last burst",
                body=(load, write(begun, number(0))),
                puts=(put(brought, word, const(LAST)), put(places, asked)),
            ),
        ],
        done=[put(brought, tag=const(DONE))],
    )
    unit.finish()
    return _collected(body, statement.target, (brought, places), statement.location)


def _collected(
    body: PatternBody, target: str, wires: tuple[Wire, Wire], location: SourceLocation | None
) -> Wire:
    """The words of all bursts of a firing as one vector."""
    unit = UnitDraft(body.draft, f"collect_{target}", Role.RELAY, body.space, body.region, location)
    brought, places = (unit.take(wire, unit.local(wire.port)) for wire in wires)
    type = brought.value.type
    words = unit.register("words", type)
    together = where(is_there(places.value), brought.value, words)
    out = unit.output(target, type)
    both = [brought, places]
    last = rule(
        "last", "run", takes=both, puts=[put(out, together)], body=[write(words, zero(type))]
    )
    more = rule("more", "run", takes=both, body=[write(words, together)])
    unit.mode(
        "run",
        when(brought.is_done, rule("done", None, takes=[brought])),
        when(None, [when(brought.is_last, last), when(None, more)], needs=[places]),
        needs=[brought],
    )
    unit.finish()
    return out
