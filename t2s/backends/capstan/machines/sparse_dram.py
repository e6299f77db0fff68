"""Ports of sparse DRAMs: the words of a vector that are in one burst are one request, and a cycle.

A *port* looks at the addresses of a firing and asks for a burst in each of its own firings, the one
with the lowest address first; a *collector* puts the words together again.  Bursts are asked for as
addresses come, many may be under way, and what they bring stays in order.  Scalars go straight to
inputs of units, so a port asks for no more of them than an input has places.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.backends.capstan.machines.accesses import writes
from t2s.backends.capstan.machines.bodies import BodyUnit, CreditGate, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import LAST, UnitDraft, Wire, put, rule, when, write
from t2s.backends.capstan.machines.vectors import (
    addresses,
    at_least,
    both,
    is_there,
    number,
    spread,
    where,
    zero,
)
from t2s.core.expr import Expr, Local, ReduceLanes, apply, const, equals
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Load, RegisterWrite, Role, Store
from t2s.graph.graph import Tensor
from t2s.graph.machine import DONE
from t2s.patterns.ir import NOWHERE, ReadMemory, WriteMemory

_BEHIND_ALL = (1 << 31) - 1
"""In place of an address: higher than any."""

_INSIDE = 1
"""Cycles of the links inside of a port."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Of the addresses of a firing, those in the first burst, and those that wait behind it."""

    asked: Expr
    rest: Expr
    begun: Local
    waiting: Local

    @staticmethod
    def of(unit: UnitDraft, index: Expr, type: Type) -> Bursts:
        """The bursts of addresses, the one with the lowest first; there is nothing at -1."""
        lanes = index.type.lanes
        wide = INT32.with_lanes(lanes)
        begun, waiting = unit.register("begun"), unit.register("waiting", wide)
        first = spread(equals(begun, number(0)), lanes)
        current = where(first, index, waiting)
        behind = where(is_there(current), current, number(_BEHIND_ALL, lanes))
        lowest = ReduceLanes(operator=Op.MINIMUM, value=behind, type=INT32)
        words = const(unit.draft.times.burst_bytes // type.bytes)
        burst = apply(Op.FLOOR_DIVIDE, lowest, words)
        bursts = apply(Op.FLOOR_DIVIDE, current, spread(words, lanes))
        chosen = apply(Op.EQUAL, bursts, spread(burst, lanes))
        nowhere = number(NOWHERE, lanes)
        asked, rest = where(chosen, current, nowhere), where(chosen, nowhere, current)
        return Bursts(asked, rest, begun, waiting)

    @property
    def more(self) -> Expr:
        """Whether there is another burst."""
        highest = ReduceLanes(operator=Op.MAXIMUM, value=self.rest, type=INT32)
        return at_least(highest, number(0))

    @property
    def waits(self) -> tuple[RegisterWrite, ...]:
        """Go on with the rest in the next firing."""
        return write(self.waiting, self.rest), write(self.begun, number(1))


def _addressed(unit: BodyUnit, statement: ReadMemory | WriteMemory) -> Expr:
    return addresses(unit.valid, unit.vector(statement.index))


def write_lines(body: PatternBody, statement: WriteMemory, target: Tensor) -> Wire:
    """Store in a sparse DRAM in each iteration; one token when all is on the way."""
    if body.lanes == 1:
        return writes(body, statement, target)
    unit = BodyUnit(body, f"write_{statement.memory}", Role.STORE, statement.location)
    bursts = Bursts.of(unit, _addressed(unit, statement), target.type)
    value = unit.vector(statement.value)
    stored = unit.output(f"{statement.memory}_written")
    store = Store(tensor=target.name, indices=(bursts.asked,), value=value)
    unit.at_each(
        [
            FiringCase(name="burst", when=bursts.more, body=(store, *bursts.waits), final=False),
            FiringCase(name="last burst", body=(store, write(bursts.begun, number(0)))),
        ],
        done=[put(stored)],
    )
    unit.finish()
    return stored


def read_lines(body: PatternBody, statement: ReadMemory, source: Tensor) -> Wire:
    """What a statement reads in a sparse DRAM."""
    if body.lanes == 1:
        return _read_scalars(body, statement, source)
    unit = BodyUnit(body, f"ask_{statement.memory}", Role.LOAD, statement.location)
    bursts = Bursts.of(unit, _addressed(unit, statement), source.type)
    type = source.type.with_lanes(body.lanes)
    word = Local(name=unit.local("word"), type=type)
    load = Load(target=word.name, tensor=source.name, indices=(bursts.asked,), type=type)
    brought = unit.output(f"{statement.target}_brought", type, tagged=True)
    places = unit.output(f"{statement.target}_places", INT32.with_lanes(body.lanes))
    unit.at_each(
        [
            FiringCase(
                name="burst",
                when=bursts.more,
                body=(load, *bursts.waits),
                puts=(put(brought, word), put(places, bursts.asked)),
                final=False,
            ),
            FiringCase(
                name="last burst",
                body=(load, write(bursts.begun, number(0))),
                puts=(put(brought, word, const(LAST)), put(places, bursts.asked)),
            ),
        ],
        done=[put(brought, tag=const(DONE))],
    )
    unit.finish()
    return _collected(body, statement, (brought, places))


def _read_scalars(body: PatternBody, statement: ReadMemory, source: Tensor) -> Wire:
    """What a statement reads at one address in each iteration, a few of them under way."""
    unit = BodyUnit(body, f"ask_{statement.memory}", Role.LOAD, statement.location)
    collector = _collector(body, statement)
    place = collector.output(f"{statement.target}_taken", latency=_INSIDE)
    gate = CreditGate(
        begun=unit.register("begun"),
        heads=(unit.take(place, unit.local("place")),),
        buffers=body.draft.times.input_queue,
    )
    index = unit.vector(statement.index)
    word = Local(name=unit.local("word"), type=source.type)
    load = Load(target=word.name, tensor=source.name, indices=(index,), type=source.type)
    brought = unit.output(f"{statement.target}_brought", source.type, tagged=True, latency=_INSIDE)
    there = both(unit.valid, at_least(index, number(0)))
    unit.at_each(
        [
            FiringCase(name="read", when=there, body=(load,), puts=(put(brought, word),)),
            FiringCase(name="nothing", puts=(put(brought, zero(source.type)),)),
        ],
        gate=gate,
        done=[put(brought, tag=const(DONE))],
    )
    unit.finish()
    head = collector.take(brought, collector.local("brought"))
    out = collector.output(statement.target, source.type)
    collector.mode(
        "run",
        when(head.is_done, rule("done", None, takes=[head])),
        when(None, rule("take", "run", takes=[head], puts=[put(out, head.value), put(place)])),
        needs=[head],
    )
    collector.finish()
    return out


def _collector(body: PatternBody, statement: ReadMemory) -> UnitDraft:
    name = f"collect_{statement.target}"
    return UnitDraft(body.draft, name, Role.RELAY, body.space, body.region, statement.location)


def _collected(body: PatternBody, statement: ReadMemory, wires: tuple[Wire, Wire]) -> Wire:
    """The words of all bursts of a firing as one vector."""
    unit = _collector(body, statement)
    brought, places = (unit.take(wire, unit.local(wire.port)) for wire in wires)
    type = brought.value.type
    words = unit.register("words", type)
    together = where(is_there(places.value), brought.value, words)
    out = unit.output(statement.target, type)
    heads = [brought, places]
    last = rule(
        "last", "run", takes=heads, puts=[put(out, together)], body=[write(words, zero(type))]
    )
    more = rule("more", "run", takes=heads, body=[write(words, together)])
    unit.mode(
        "run",
        when(brought.is_done, rule("done", None, takes=[brought])),
        when(None, [when(brought.is_last, last), when(None, more)], needs=[places]),
        needs=[brought],
    )
    unit.finish()
    return out
