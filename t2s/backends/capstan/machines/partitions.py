"""Communication between one unit and the partitions of a pattern, and between partitions.

Chains lead from each partition to the next; vectors are distributed over partitions and collected;
reductions and allocations that partitions share travel along a chain.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import LAST, UnitDraft, Wire
from t2s.backends.capstan.machines.vectors import is_there, stages
from t2s.core.expr import (
    Expr,
    Index,
    Insert,
    LaneNumbers,
    ReduceLanes,
    apply,
    const,
    equals,
    select,
    spread,
    zero,
)
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Role, SpaceDimension, Statement
from t2s.graph.build import In, copy, put, rule, when, write
from t2s.graph.nodes import DONE, Choice, Put
from t2s.patterns.ir import Reduce, Update, start_of

PARTITION = "partition"


def parted(around: PatternBody, parts: int, location: SourceLocation | None) -> PatternBody:
    """The outermost body as its partitions see it."""
    space = (SpaceDimension(name=PARTITION, minimum=0, extent=parts),)

    def carried(wire: Wire, name: str) -> Wire:
        return _spread(around, wire, name, space, location)

    return PatternBody(
        draft=around.draft,
        around=around,
        lanes=1,
        space=space,
        region=around.region,
        control=carried(around.control, around.binder),
        binder=around.binder,
        environment=around.environment,
        carry=carried,
    )


def _next_place(parts: int) -> Expr:
    """The next partition; the first one after the last."""
    place = Index(name=PARTITION)
    return (place + 1) % parts


def _place_before(parts: int) -> Expr:
    before = Index(name=PARTITION) + (parts - 1)
    return before % parts


def to_next_place(
    unit: UnitDraft, name: str, type: Type, parts: int, *, tagged: bool = False
) -> Wire:
    """An output to the unit of the next partition, with a latency of one cycle."""
    on = unit.output(name, type, tagged=tagged, latency=1)
    return replace(on, source_at=(_next_place(parts),))


def to_first_place(wire: Wire, parts: int) -> Wire:
    """A wire that all partitions listen to, of which only the first one receives tokens."""
    if wire.shape:
        # the last of another row of partitions puts it, and the first one here listens to that
        return replace(wire, sink_at=(_place_before(parts),))
    return replace(wire, shape=(parts,), source_at=(const(0),))


def is_place(place: int) -> Expr:
    """Whether this is the given partition."""
    return equals(Index(name=PARTITION), place)


def _spread(
    around: PatternBody,
    wire: Wire,
    name: str,
    space: tuple[SpaceDimension, ...],
    location: SourceLocation | None,
) -> Wire:
    """A wire of the enclosing body in all partitions, each a cycle after the one before.

    A local of the outermost body has one token, its control two.
    """
    parts = space[0].extent
    unit = UnitDraft(around.draft, f"spread_{name}", Role.RELAY, space, around.region, location)
    tagged = wire.stream.nesting > 0
    out = unit.output(name, wire.type, tagged=tagged)
    chain = to_next_place(unit, f"{name}_on", wire.type, parts, tagged=tagged)
    first = unit.listen(to_first_place(wire, parts), unit.local(name))
    heads: list[tuple[In, Expr | None, str]] = [(first, is_place(0), "first")]
    if parts > 1:
        before = unit.listen(chain, unit.local(name))
        heads = [
            (first, is_place(0), "first"),
            (before, is_place(parts - 1), "last"),
            (before, None, "pass"),
        ]
    choices = []
    for head, condition, text in heads:
        further = text != "last" and parts > 1
        wires = (out, chain) if further else (out,)
        choices.append(when(condition, _copies(head, wires, text), needs=[head]))
    unit.mode("run", *choices)
    unit.finish()
    return out


def _copies(head: In, wires: tuple[Wire, ...], text: str) -> list[Choice]:
    puts = [copy(wire, head) for wire in wires]
    if not head.stream.nesting:
        return [when(None, rule(text, None, takes=[head], puts=puts))]
    return [
        when(head.is_done, rule(f"{text} done", None, takes=[head], puts=puts)),
        when(None, rule(text, "run", takes=[head], puts=puts)),
    ]


def finished(around: PatternBody, wire: Wire, name: str, location: SourceLocation | None) -> Wire:
    """A local of the enclosing body, sent when all partitions have sent their one token."""
    (parts,) = wire.shape
    space = (SpaceDimension(name=PARTITION, minimum=0, extent=parts),)
    unit = UnitDraft(around.draft, f"finish_{name}", Role.RELAY, space, around.region, location)
    out = replace(unit.output(name), sink_at=(const(parts - 1),))
    own = unit.listen(wire, unit.local(name))
    if parts == 1:
        unit.mode("run", when(None, rule("last", None, takes=[own], puts=[put(out)])), needs=[own])
        unit.finish()
        return out
    chain = to_next_place(unit, f"{name}_on", INT32, parts)
    before = unit.listen(chain, unit.local(name))
    unit.mode(
        "run",
        when(is_place(0), rule("first", None, takes=[own], puts=[put(chain)])),
        when(
            is_place(parts - 1),
            rule("last", None, takes=[own, before], puts=[put(out)]),
            needs=[before],
        ),
        when(None, rule("pass", None, takes=[own, before], puts=[put(chain)]), needs=[before]),
        needs=[own],
    )
    unit.finish()
    return out


# Distributing a stream of vectors: lane ``q`` belongs to partition ``q``.
#
# A vector goes from partition to partition, and each takes its word.


def dealt_words(body: PatternBody, wire: Wire, name: str, location: SourceLocation | None) -> Wire:
    """The words of a queue of the enclosing body, distributed over the iterations of partitions.

    Each firing of the first partition takes a vector, with one word for each partition that has an
    iteration then.
    """
    (dimension,) = body.space
    parts = dimension.extent
    unit = UnitDraft(body.draft, f"deal_{name}", Role.RELAY, body.space, body.region, location)
    control = unit.listen(body.control, body.binder)
    first = unit.listen(to_first_place(wire, parts), unit.local(name))
    out = unit.output(name, wire.type.scalar)
    on = to_next_place(unit, f"{name}_on", wire.type, parts, tagged=True)
    before = unit.listen(on, unit.local(name))

    def deals(head: In, text: str, *, further: bool) -> Choice:
        puts = [put(out, _own_lane(head.value, dimension.name))]
        puts += [put(on, head.value)] if further else []
        needs = [head] if head is first else []
        return when(None, rule(text, "run", takes=[control, head], puts=puts), needs=needs)

    def others(text: str, *, further: bool) -> list[Choice]:
        done = [put(on, tag=DONE)] if further else []
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

    end = rule("first done", None, takes=[control], puts=[put(on, tag=DONE)])
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
    """A body with as many lanes as there are partitions, as these see it.

    Each partition fires whenever the body fires, with an idle lane where it has no iteration.
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
    first = unit.listen(to_first_place(wire, parts), unit.local(name))
    out = unit.output(name, wire.type.scalar, tagged=tagged)
    on = to_next_place(unit, f"{name}_on", wire.type, parts, tagged=tagged)
    before = unit.listen(on, unit.local(name))

    def deals(head: In, text: str, *, further: bool) -> list[Choice]:
        passed = copy(on, head)
        puts = [put(out, _own_lane(head.value, dimension.name), passed.tag)]
        puts += [passed] if further else []
        goes_on = when(None, rule(text, "run", takes=[head], puts=puts))
        if not head.stream.nesting:
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
    """The partition's own lane."""
    lanes = vector.type.lanes
    scalar = vector.type.scalar
    number = spread(Index(name=index), lanes)
    own = equals(LaneNumbers(type=INT32.with_lanes(lanes)), number)
    # -0.0 is the neutral element of float addition: 0.0 would turn a sum of -0.0 into 0.0
    neutral = spread(const(-0.0 if scalar.is_float else 0, scalar), lanes)
    return ReduceLanes(operator=Op.ADD, value=select(own, vector, neutral), type=scalar)


# A reduction that the partitions share: a vector of their values travels along a chain.
#
# As in every reduction, ``p`` values are reduced by a tree, and the results are combined in order;
# the ``p`` values are those of one iteration of each partition.  The first partition starts the
# vector, each one fills its lane, and the last one reduces it.


def reduced_over_partitions(body: PatternBody, statement: Reduce) -> Wire:
    """The result of a reduction over partitions: a local of the outermost body."""
    return _PartitionSum(body, statement).made()


class _PartitionSum:
    """The draft of the unit; ``ended`` says that a partition has no more values."""

    def __init__(self, body: PatternBody, statement: Reduce) -> None:
        unit = BodyUnit(body, f"reduce_{statement.target}", Role.COMPUTE, statement.location)
        self._unit, self._statement = unit, statement
        (self._parts,) = body.control.shape
        self._type = statement.value.type
        start = start_of(statement)
        assert start is not None
        self._neutral = const(start, self._type)
        self._value = select(unit.valid, unit.vector(statement.value), self._neutral)
        self._total = unit.register("total", self._type, start)
        self._ended = unit.register("ended")
        vector, times = self._type.with_lanes(self._parts), body.draft.times
        chain = f"{statement.target}_on"
        self._chain = to_next_place(unit, chain, vector, self._parts, tagged=True)
        addition = apply(
            statement.operator,
            self._neutral,
            ReduceLanes(
                operator=statement.operator,
                value=spread(self._neutral, self._parts),
                type=self._type,
            ),
        )
        self._out = replace(
            unit.output(statement.target, self._type, latency=times.hop + stages(addition)),
            sink_at=(const(self._parts - 1),),
        )
        self._before = unit.listen(self._chain, unit.local("before"))

    def made(self) -> Wire:
        """The wire of the result."""
        unit, own = self._unit, self._unit.control
        first = self._with_own("first", spread(self._neutral, self._parts), own.ends_list, [])
        later = [
            when(equals(self._ended, 1), self._without_own()),
            when(
                None,
                self._with_own("own", self._before.value, self._before.ends_list, [self._before]),
                needs=[own, *unit.operands],
            ),
        ]
        unit.mode(
            "run",
            when(is_place(0), first, needs=[own, *unit.operands]),
            when(None, later, needs=[self._before]),
        )
        unit.mode("end", when(None, rule("done", None, takes=[own])), needs=[own])
        unit.finish()
        return self._out

    def _with_own(self, name: str, vector: Expr, is_last: Expr, taken: list[In]) -> list[Choice]:
        """Fill the partition's lane of the vector; ``is_last`` says that the partition is the last
        one.
        """
        unit = self._unit
        place = Index(name=PARTITION)
        mine = Insert(vector=vector, lane=place, value=self._value, type=vector.type)
        ends: list[Statement] = [write(self._ended, 1)]
        heads = [unit.control, *taken]
        whole, part = [*heads, *unit.operands], [*heads, *unit.own_operands]
        return [
            when(
                unit.control.ends_list,
                self._passed(f"{name} last", mine, is_last, whole, ends),
            ),
            when(None, self._passed(name, mine, is_last, part, [])),
        ]

    def _without_own(self) -> list[Choice]:
        taken = [self._before]
        return self._passed("none", self._before.value, self._before.ends_list, taken, [])

    def _passed(
        self, name: str, vector: Expr, is_last: Expr, takes: list[In], body: list[Statement]
    ) -> list[Choice]:
        """Pass the vector on, or reduce it in the last partition."""
        on = put(self._chain, vector)
        over = put(self._chain, vector, LAST)
        operator = self._statement.operator
        tree = ReduceLanes(operator=operator, value=vector, type=self._type)
        total = apply(operator, self._total, tree)
        added = [*body, write(self._total, total)]
        reducing = [
            self._ruled(f"{name} result", "end", takes, [put(self._out, total)], body, is_last),
            self._ruled(f"{name} add", "run", takes, [], added, None),
        ]
        passing = [
            self._ruled(f"{name} over", "end", takes, [over], body, is_last),
            self._ruled(f"{name} on", "run", takes, [on], body, None),
        ]
        return [when(is_place(self._parts - 1), reducing), when(None, passing)]

    def _ruled(
        self,
        name: str,
        after: str,
        takes: list[In],
        puts: list[Put],
        body: list[Statement],
        condition: Expr | None,
    ) -> Choice:
        return when(condition, rule(name, after, takes=takes, puts=puts, body=body))


# Allocators: words that iterations add to in program order, whatever partition they run in.
#
# The word is a token that circulates through the partitions: each adds its iteration's value,
# returns the sum to the iteration, and passes the token on, so there is one addition in each cycle.
# At the end, a partition without further iterations drops the token.


def updated(body: PatternBody, statement: Update, value: Wire, *, each: bool) -> Wire:
    """The running sums of a word that is 0 at the start, one for each iteration of a body.

    ``each``: an iteration of the body is an iteration of its partition; else a segment is.
    """
    if body.space:
        return _in_turn(body, statement, value, each)
    unit = BodyUnit(body, f"update_{statement.memory}", Role.COMPUTE, statement.location)
    type = value.type
    total = unit.register("total", type)
    count = select(unit.valid, unit.scalar(statement.value), zero(type))
    after = apply(statement.operator, total, count)
    out = unit.output(statement.target, type, latency=_answer(body))
    unit.at_each([FiringCase(name="update", body=(write(total, after),), puts=(put(out, after),))])
    unit.finish()
    return out


def _answer(body: PatternBody) -> int:
    """Cycles to the listeners: there and back through the network."""
    return 2 * body.draft.times.hop


def _in_turn(body: PatternBody, statement: Update, value: Wire, each: bool) -> Wire:
    """Make a unit in each partition.  A turn lasts from taking the token to passing it on.

    Every partition has a turn in the first round, with or without an iteration; the first one
    starts the token with 0.
    """
    draft, location = body.draft, statement.location
    name = f"update_{statement.memory}"
    unit = UnitDraft(draft, name, Role.COMPUTE, body.space, body.region, location)
    control, counted = (
        unit.listen(body.control, body.binder),
        unit.listen(value, unit.local("count")),
    )
    type, parts = value.type, body.space[0].extent
    out = unit.output(statement.target, type, latency=_answer(body))
    ring = to_next_place(unit, f"{statement.target}_on", type, parts, tagged=True)
    before = unit.listen(ring, unit.local("before"))
    total, begun, has_turn = (unit.register(n, t) for n, t in _registers(type))
    count = select(is_there(control.value), counted.value, zero(type))

    def turn(name: str, start: Expr, takes: tuple[In, ...]) -> list[Choice]:
        """Add to the word's value at the start of the turn; the last firing passes the sum on."""
        after = apply(statement.operator, start, count)
        takes = (control, counted, *takes)
        ends = [write(begun, 1), write(has_turn, 0)]
        hands_on = rule(f"{name}, last", "run", takes=takes, puts=[put(out, after)], body=ends)
        hands_on = replace(hands_on, puts=(*hands_on.puts, put(ring, after)))
        if each:
            return [when(None, hands_on)]
        goes_on = [write(begun, 1), write(has_turn, 1), write(total, after)]
        more = rule(name, "run", takes=takes, puts=[put(out, after)], body=goes_on)
        return [when(control.ends_list, hands_on), when(None, more)]

    first = is_place(0) & equals(begun, 0)
    done = rule("done", "drain", takes=[control], puts=[put(ring, tag=DONE)])
    turns = [
        when(equals(has_turn, 1), turn("in turn", total, ())),
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
    """Registers: the sum in a turn, whether there was a turn yet, and whether one is active."""
    return ("total", type), ("begun", INT32), ("has_turn", INT32)
