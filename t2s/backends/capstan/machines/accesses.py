"""Reads and writes of on-chip memories, at addresses computed from locals."""

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
    """The values that some statements read from a memory, by the names of their targets.

    Word 0 of the memory is at ``begin`` of the tensor, and the memory is complete once the locals
    ``ready`` have arrived.  A memory unit serves all of the statements in one cycle.
    """
    first = statements[0]
    unit = BodyUnit(body, f"read_{first.memory}", Role.LOAD, first.location)
    unit.wait(ready)
    times = body.draft.times
    type = tensor.type.with_lanes(body.lanes)
    loads: list[Load] = []
    puts, empty = [], []
    outputs: dict[str, Wire] = {}
    inside: Expr | None = None
    for statement in statements:
        index = unit.vector(_from(begin, statement.index))
        if body.lanes > 1:
            index = addresses(unit.valid, index)
        else:
            present = unit.valid & (index >= 0)
            inside = present if inside is None else inside & present
        out = unit.output(statement.target, type, latency=times.hop + times.memory_access)
        name = unit.local("word")
        loads.append(Load(target=name, tensor=tensor.name, indices=(index,), type=type))
        puts.append(put(out, Local(name=name, type=type)))
        empty.append(put(out, zero(type)))
        outputs[statement.target] = out
    cases = [FiringCase(name="read", when=inside, body=tuple(loads), puts=tuple(puts))]
    if inside is not None:
        cases.append(FiringCase(name="nothing", puts=tuple(empty)))
    unit.at_each(cases)
    unit.finish()
    return outputs


def _from(begin: Expr, index: Expr) -> Expr:
    return index if begin == const(0) else begin + index


def varies(
    body: PatternBody,
    index: Expr,
    values: Mapping[str, Expr],
    allocated: Set[str],
    inside: PatternBody | None = None,
) -> bool:
    """Whether an index depends on every enclosing loop, as it must for words that are written once.

    Only loops ``inside`` a body count, if one is given: the memory is new in each of its
    iterations.  ``values`` are the definitions of bound locals.  ``allocated`` are locals that an
    allocator returns: they differ in every iteration of all loops around it.
    """
    names = set(_needed(index, values))
    inner: PatternBody | None = body
    while inner is not None and inner is not inside and inner.around is not None:
        locals = names & inner.made
        if inner.carry is None and not locals:
            return False
        if locals & allocated:
            return True
        inner = inner.around
    return True


def varies_in(body: PatternBody, index: Expr, values: Mapping[str, Expr]) -> bool:
    """Whether an index depends on the loop of a body."""
    return bool(set(_needed(index, values)) & body.made)


def _needed(expr: Expr, values: Mapping[str, Expr]) -> Iterator[str]:
    """The locals that an expression depends on, with bound ones replaced by their definitions."""
    for term in walk(expr):
        if isinstance(term, Local):
            if term.name in values:
                yield from _needed(values[term.name], values)
            else:
                yield term.name


def writes(body: PatternBody, statement: WriteMemory, tensor: Tensor) -> Wire:
    """Store a value in each iteration; returns the wire of one token, sent when all are stored."""
    unit = BodyUnit(body, f"write_{statement.memory}", Role.STORE, statement.location)
    index, value = unit.vector(statement.index), unit.vector(statement.value)
    stored = unit.output(f"{statement.memory}_written")
    if body.lanes > 1:
        index = addresses(unit.valid, index)
    store = Store(tensor=tensor.name, indices=(index,), value=value)
    present = None if body.lanes > 1 else unit.valid
    cases = [FiringCase(name="write", when=present, body=(store,))]
    if present is not None:
        cases.append(FiringCase(name="nothing"))
    unit.at_each(cases, done=[put(stored)])
    unit.finish()
    return stored


def returned(body: PatternBody, name: str, tensor: Tensor, location: SourceLocation | None) -> None:
    """Return a local of the outermost body to the host."""
    unit = BodyUnit(body, f"return_{name}", Role.STORE, location)
    value = unit.reads(name)
    store = Store(tensor=tensor.name, indices=(const(0),), value=value)
    unit.at_each([FiringCase(name="store", body=(store,))])
    unit.finish()


# Ports of sparse DRAMs: those words of a vector that share a burst are one request, of one cycle.
#
# A *port* splits the addresses of a firing into bursts, lowest address first, and requests one
# burst in each of its own firings; a *collector* reassembles the vector.  Requests are issued as
# addresses arrive, many may be outstanding, and replies stay in order.  Scalars go straight to the
# inputs of units, so a port has no more of them outstanding than an input has entries.

_BEHIND_ALL = (1 << 31) - 1
"""Stands for no address: higher than any."""

_INSIDE = 1
"""Cycles of the links inside a port."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """The addresses of a firing: those in the first burst, and the rest."""

    asked: Expr
    rest: Expr
    begun: Local
    waiting: Local

    @staticmethod
    def of(unit: UnitDraft, index: Expr, type: Type) -> Bursts:
        """Split addresses into bursts, lowest address first; -1 is no address."""
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
        """Continue with the rest in the next firing."""
        return write(self.waiting, self.rest), write(self.begun, 1)


def _addressed(unit: BodyUnit, statement: ReadMemory | WriteMemory) -> Expr:
    return addresses(unit.valid, unit.vector(statement.index))


def write_lines(body: PatternBody, statement: WriteMemory, target: Tensor) -> Wire:
    """Store into a sparse DRAM in each iteration; one token when all stores are issued."""
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
    """The values that a statement reads from a sparse DRAM."""
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
    """The values that a statement reads at one address per iteration, a few of them outstanding."""
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
    present = unit.valid & (index >= 0)
    unit.at_each(
        [
            FiringCase(name="read", when=present, body=(load,), puts=(put(brought, word),)),
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
