"""Transfers between DRAM and chip, as streams or as blocks, one vector of words per firing.

A unit requests all lines of a segment ahead of time: its first firing takes the begin and the
length, and all later ones depend on registers only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from t2s.backends.capstan.machines.bodies import BodyUnit, CreditGate, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import Wire
from t2s.backends.capstan.machines.vectors import addresses, counted_from
from t2s.core.expr import Expr, Local, ReduceLanes, const, select, spread, zero
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Load, Role, Statement, Store
from t2s.graph.build import put, rule, when, write
from t2s.graph.graph import Tensor
from t2s.graph.nodes import Choice, Put
from t2s.patterns.ir import LoadBlock, LoadStream, Push, StoreBlock, StoreStream


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPart:
    """The words that a firing moves: from ``at`` on, ``left`` but at most ``lanes``.

    ``full`` says that it moves ``lanes`` words, ``last`` that these are the last ones.
    """

    at: Expr
    left: Expr
    lanes: int
    full: bool
    last: bool

    @property
    def indices(self) -> Expr:
        """Their addresses: that of the first word if full, else one for each lane, -1 in idle
        ones.
        """
        if self.full or self.lanes == 1:
            return self.at
        present = counted_from(const(0), self.lanes) < spread(self.left, self.lanes)
        return addresses(present, counted_from(self.at, self.lanes))


Moved = tuple[list[Statement], list[Put]]


def in_parts(
    unit: BodyUnit,
    begin: Expr,
    length: Expr,
    lanes: int,
    move: Callable[[SegmentPart], Moved],
    gate: CreditGate | None = None,
) -> None:
    """Make a unit fire for each vector of a segment, once for an empty one, and end with the body.

    ``move`` gives the statements and puts of a firing.  With one lane, an empty segment is a part
    whose ``left`` is the constant 0.
    """
    at, left = unit.register("at"), unit.register("left")
    words = select(unit.valid, length, 0)
    step = const(lanes)

    def of(at: Expr, remaining: Expr, full: bool, last: bool) -> Moved:
        return move(SegmentPart(at=at, left=remaining, lanes=lanes, full=full, last=last))

    body, puts = of(begin, words, True, False)
    goes_on = [write(at, begin + step), write(left, words - step)]
    cases = [
        FiringCase(
            name="first",
            when=step < words,
            body=(*body, *goes_on),
            puts=tuple(puts),
            after="rest",
        )
    ]
    if lanes == 1:
        body, puts = of(begin, const(0), False, True)
        cases.append(
            FiringCase(name="empty", when=words < step, body=tuple(body), puts=tuple(puts))
        )
    body, puts = of(begin, words, False, True)
    cases.append(FiringCase(name="whole", body=tuple(body), puts=tuple(puts)))
    unit.at_each(cases, mode="next", gate=gate)
    more, more_puts = of(at, left, True, False)
    more += [write(at, at + step), write(left, left - step)]
    end, end_puts = of(at, left, False, True)
    choices: list[Choice] = [
        when(step < left, rule("more", "rest", body=more, puts=more_puts)),
        when(None, rule("end", "next", body=end, puts=end_puts)),
    ]
    unit.mode("rest", *choices)


def _load(unit: BodyUnit, tensor: Tensor, part: SegmentPart) -> tuple[list[Statement], Expr]:
    """Load the words of a part as a vector; idle lanes are zero."""
    type = tensor.type.with_lanes(part.lanes)
    if part.lanes == 1 and part.left == const(0):
        return [], zero(type)
    name = unit.local("word")
    load = Load(target=name, tensor=tensor.name, indices=(part.indices,), type=type)
    return [load], Local(name=name, type=type)


def segment_load(body: PatternBody, statement: LoadStream, source: Tensor, lanes: int) -> Wire:
    """The words of a segment as a stream of the body that pops them."""
    unit = BodyUnit(body, f"load_{statement.queue}", Role.LOAD, statement.location)
    begin, length = unit.scalar(statement.begin), unit.scalar(statement.length)
    out = unit.output(statement.queue, source.type.with_lanes(lanes))

    def move(part: SegmentPart) -> Moved:
        loads, value = _load(unit, source, part)
        return loads, [put(out, value)]

    in_parts(unit, begin, length, lanes, move)
    unit.finish()
    return out


class BlockLoad:
    """A unit that loads a block into an on-chip memory.

    ``there`` is the wire on which it announces the loaded block.  The unit is made when all readers
    are
    known: if ``again``, it loads block after block as the readers release them.
    """

    def __init__(
        self, body: PatternBody, statement: LoadBlock, source: Tensor, name: str, again: bool
    ) -> None:
        self._body, self._source, self._name, self._again = body, source, name, again
        unit = BodyUnit(body, f"load_{statement.memory}", Role.LOAD, statement.location)
        self._unit = unit
        self._begin, self._length = unit.scalar(statement.begin), unit.scalar(statement.length)
        self.there = unit.output(name)
        if again:
            body.given_back[name] = []

    def complete(self) -> None:
        """Make the unit."""
        unit, times = self._unit, self._body.draft.times

        def move(part: SegmentPart) -> Moved:
            loads, _ = _load(unit, self._source, part)
            return loads, [put(self.there)] if part.last else []

        gate = None
        readers = self._body.given_back.get(self._name, [])
        if readers:
            heads = tuple(unit.listen(wire, unit.local("read")) for wire in readers)
            gate = CreditGate(
                begun=unit.register("begun"), heads=heads, buffers=times.block_buffers
            )
        in_parts(unit, self._begin, self._length, times.lanes, move, gate)
        unit.finish()


def block_store(
    body: PatternBody, statement: StoreBlock, memory: Tensor, target: Tensor, ready: list[str]
) -> None:
    """Store a memory into the DRAM once the locals ``ready`` have arrived."""
    unit = BodyUnit(body, f"store_{statement.memory}", Role.STORE, statement.location)
    begin, length = unit.scalar(statement.begin), unit.scalar(statement.length)
    unit.wait(ready)
    lanes = body.draft.times.lanes

    def move(part: SegmentPart) -> Moved:
        loads, value = _load(unit, memory, part)
        index = part.indices if begin == const(0) else _moved(part, begin)
        return [*loads, Store(tensor=target.name, indices=(index,), value=value)], []

    in_parts(unit, const(0), length, lanes, move)
    unit.finish()


def inner_store(
    body: PatternBody,
    statement: StoreBlock,
    memory: Tensor,
    target: Tensor,
    region: str,
    ready: str,
) -> None:
    """Store a loop's memory into the DRAM; it begins at the local ``region`` of a tensor."""
    unit = BodyUnit(body, f"store_{statement.memory}", Role.STORE, statement.location)
    begin, length = unit.scalar(statement.begin), unit.scalar(statement.length)
    first = unit.reads(region)
    unit.wait([ready])
    # the locals are taken with the first vector
    further = unit.register("further")

    def move(part: SegmentPart) -> Moved:
        loads, value = _load(unit, memory, part)
        begins = part.at == first
        away = begin - first if begins else further
        store = Store(tensor=target.name, indices=(_moved(part, away),), value=value)
        return [*loads, store, *([write(further, away)] if begins else [])], []

    in_parts(unit, first, length, body.draft.times.lanes, move)
    unit.finish()


def _moved(part: SegmentPart, begin: Expr) -> Expr:
    """The indices of a part, with an offset."""
    return replace(part, at=part.at + begin).indices


# Queues that leave the chip: pushed values go to consecutive words of the DRAM.


def stream_store(body: PatternBody, push: Push, statement: StoreStream, target: Tensor) -> None:
    """Store the values that a body pushes, as many as the statement takes from the queue each time.

    The unit counts the stored words of a segment; after the last one the next segment begins.
    """
    unit = BodyUnit(body, f"store_{push.queue}", Role.STORE, statement.location)
    begin, length = unit.scalar(statement.begin), unit.scalar(statement.length)
    value = unit.vector(push.value)
    count = unit.register("count")
    index = addresses(unit.valid, counted_from(begin + count, body.lanes))
    words: Expr = const(1)
    if body.lanes > 1:
        ones = select(unit.valid, spread(const(1), body.lanes), 0)
        words = ReduceLanes(operator=Op.ADD, value=ones, type=INT32)
    after = count + words
    store = Store(tensor=target.name, indices=(index,), value=value)
    cases = [
        FiringCase(name="end", when=after >= length, body=(store, write(count, 0))),
        FiringCase(name="store", body=(store, write(count, after))),
    ]
    if body.lanes == 1:
        cases.insert(0, FiringCase(name="nothing", when=~unit.valid))
    unit.at_each(cases)
    unit.finish()
