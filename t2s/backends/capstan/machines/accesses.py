"""Reads and writes of memories on the chip, at addresses that follow from locals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from t2s.backends.capstan.machines.bodies import BodyUnit, CreditGate, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import LAST, UnitDraft, Wire
from t2s.backends.capstan.machines.vectors import addresses, is_there
from t2s.core.expr import Expr, Local, ReduceLanes, const, equals, select, spread, zero
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.core.walk import walk
from t2s.graph.body import Load, RegisterWrite, Role, Store
from t2s.graph.build import put, rule, when, write
from t2s.graph.graph import Tensor
from t2s.graph.nodes import DONE
from t2s.patterns.ir import NOWHERE, ReadMemory, WriteMemory


def read(
    body: PatternBody,
    statements: Sequence[ReadMemory],
    tensor: Tensor,
    begin: Expr,
    ready: Sequence[str],
) -> dict[str, Wire]:
    """What some statements read in a memory, by their targets.

    Its word 0 is that at ``begin`` of the tensor, and it is complete when the locals ``ready`` are
    there.  A memory unit serves all of them in a cycle.
    """
    first = statements[0]
    unit = BodyUnit(body, f"read_{first.memory}", Role.LOAD, first.location)
    unit.wait(ready)
    times = body.draft.times
    type = tensor.type.with_lanes(body.lanes)
    loads: list[Load] = []
    puts, empty = [], []
    found: dict[str, Wire] = {}
    inside: Expr | None = None
    for statement in statements:
        index = unit.vector(_from(begin, statement.index))
        if body.lanes > 1:
            index = addresses(unit.valid, index)
        else:
            there = unit.valid & (index >= 0)
            inside = there if inside is None else inside & there
        out = unit.output(statement.target, type, latency=times.hop + times.memory_access)
        name = unit.local("word")
        loads.append(Load(target=name, tensor=tensor.name, indices=(index,), type=type))
        puts.append(put(out, Local(name=name, type=type)))
        empty.append(put(out, zero(type)))
        found[statement.target] = out
    cases = [FiringCase(name="read", when=inside, body=tuple(loads), puts=tuple(puts))]
    if inside is not None:
        cases.append(FiringCase(name="nothing", puts=tuple(empty)))
    unit.at_each(cases)
    unit.finish()
    return found


def _from(begin: Expr, index: Expr) -> Expr:
    return index if begin == const(0) else begin + index


def varies(
    body: PatternBody,
    index: Expr,
    values: Mapping[str, Expr],
    allocated: Set[str],
    inside: PatternBody | None = None,
) -> bool:
    """Whether an index follows each of the loops around, as that of words written once does.

    Only loops ``inside`` of a body count, if there is one: it has the memory anew each time.
    ``values`` are those of the locals that are bound.  The ``allocated`` ones are those that an
    allocator answers: they follow all loops around it.
    """
    names = set(_needed(index, values))
    here: PatternBody | None = body
    while here is not None and here is not inside and here.around is not None:
        found = names & here.made
        if here.carry is None and not found:
            return False
        if found & allocated:
            return True
        here = here.around
    return True


def varies_in(body: PatternBody, index: Expr, values: Mapping[str, Expr]) -> bool:
    """Whether an index follows the loop of a body."""
    return bool(set(_needed(index, values)) & body.made)


def _needed(expr: Expr, values: Mapping[str, Expr]) -> Iterator[str]:
    """The locals that an expression needs, without those that are bound to others."""
    for term in walk(expr):
        if isinstance(term, Local):
            if term.name in values:
                yield from _needed(values[term.name], values)
            else:
                yield term.name


def writes(body: PatternBody, statement: WriteMemory, tensor: Tensor) -> Wire:
    """Store a value in each iteration; the wire of the one token that says that all are stored."""
    unit = BodyUnit(body, f"write_{statement.memory}", Role.STORE, statement.location)
    index, value = unit.vector(statement.index), unit.vector(statement.value)
    stored = unit.output(f"{statement.memory}_written")
    if body.lanes > 1:
        index = addresses(unit.valid, index)
    store = Store(tensor=tensor.name, indices=(index,), value=value)
    there = None if body.lanes > 1 else unit.valid
    cases = [FiringCase(name="write", when=there, body=(store,))]
    if there is not None:
        cases.append(FiringCase(name="nothing"))
    unit.at_each(cases, done=[put(stored)])
    unit.finish()
    return stored


def returned(body: PatternBody, name: str, tensor: Tensor, location: SourceLocation | None) -> None:
    """Hand a local of the whole program back to the host."""
    unit = BodyUnit(body, f"return_{name}", Role.STORE, location)
    value = unit.reads(name)
    store = Store(tensor=tensor.name, indices=(const(0),), value=value)
    unit.at_each([FiringCase(name="store", body=(store,))])
    unit.finish()


# Ports of sparse DRAMs: the words of a vector that are in one burst are one request, and a cycle.
#
# A *port* looks at the addresses of a firing and asks for a burst in each of its own firings, the
# one with the lowest address first; a *collector* puts the words together again.  Bursts are asked
# for as addresses come, many may be under way, and what they bring stays in order.  Scalars go
# straight to inputs of units, so a port asks for no more of them than an input has places.

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
        first = spread(equals(begun, 0), lanes)
        current = select(first, index, waiting)
        behind = select(is_there(current), current, _BEHIND_ALL)
        lowest = ReduceLanes(operator=Op.MINIMUM, value=behind, type=INT32)
        words = const(unit.draft.times.burst_bytes // type.bytes)
        burst = lowest // words
        bursts = current // spread(words, lanes)
        chosen = equals(bursts, spread(burst, lanes))
        asked, rest = select(chosen, current, NOWHERE), select(chosen, NOWHERE, current)
        return Bursts(asked, rest, begun, waiting)

    @property
    def more(self) -> Expr:
        """Whether there is another burst."""
        highest = ReduceLanes(operator=Op.MAXIMUM, value=self.rest, type=INT32)
        return highest >= 0

    @property
    def waits(self) -> tuple[RegisterWrite, ...]:
        """Go on with the rest in the next firing."""
        return write(self.waiting, self.rest), write(self.begun, 1)


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
            FiringCase(name="last burst", body=(store, write(bursts.begun, 0))),
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
                body=(load, write(bursts.begun, 0)),
                puts=(put(brought, word, LAST), put(places, bursts.asked)),
            ),
        ],
        done=[put(brought, tag=DONE)],
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
        heads=(unit.listen(place, unit.local("place")),),
        buffers=body.draft.times.input_queue,
    )
    index = unit.vector(statement.index)
    word = Local(name=unit.local("word"), type=source.type)
    load = Load(target=word.name, tensor=source.name, indices=(index,), type=source.type)
    brought = unit.output(f"{statement.target}_brought", source.type, tagged=True, latency=_INSIDE)
    there = unit.valid & (index >= 0)
    unit.at_each(
        [
            FiringCase(name="read", when=there, body=(load,), puts=(put(brought, word),)),
            FiringCase(name="nothing", puts=(put(brought, zero(source.type)),)),
        ],
        gate=gate,
        done=[put(brought, tag=DONE)],
    )
    unit.finish()
    head = collector.listen(brought, collector.local("brought"))
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
    brought, places = (unit.listen(wire, unit.local(wire.port)) for wire in wires)
    type = brought.value.type
    words = unit.register("words", type)
    together = select(is_there(places.value), brought.value, words)
    out = unit.output(statement.target, type)
    heads = [brought, places]
    last = rule(
        "last", "run", takes=heads, puts=[put(out, together)], body=[write(words, zero(type))]
    )
    more = rule("more", "run", takes=heads, body=[write(words, together)])
    unit.mode(
        "run",
        when(brought.is_done, rule("done", None, takes=[brought])),
        when(None, [when(brought.ends_list, last), when(None, more)], needs=[places]),
        needs=[brought],
    )
    unit.finish()
    return out
