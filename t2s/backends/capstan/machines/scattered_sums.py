"""Sums in words of a sparse DRAM, at addresses that several iterations may share.

A single unit reads, adds and writes back, a burst per cycle, so updates never race and sums of
floats are added in program order.  Partitions send it their vectors along a chain, one outermost
iteration after the other.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.accesses import Bursts
from t2s.backends.capstan.machines.bodies import BodyUnit, FiringCase, PatternBody
from t2s.backends.capstan.machines.kit import LAST, UnitDraft, Wire
from t2s.backends.capstan.machines.partitions import is_place, to_next_place
from t2s.backends.capstan.machines.vectors import addresses
from t2s.core.expr import Expr, Local, apply, const, equals
from t2s.core.location import SourceLocation
from t2s.core.types import INT32
from t2s.graph.body import Let, Load, Role, Statement, Store
from t2s.graph.build import In, put, rule, when, write
from t2s.graph.graph import Tensor
from t2s.graph.nodes import DONE, VALUE, Choice, Rule
from t2s.patterns.ir import Update

_Pair = tuple[Wire, Wire]
"""Addresses, tagged at the end of each outermost iteration, and the values to add."""


def added(body: PatternBody, statement: Update, target: Tensor) -> None:
    """Make units that add a value to a word in each iteration of a body."""
    wires = _asked(body, statement, target)
    if body.space:
        wires = _in_turn(body, wires, statement)
    _add(body, wires, statement, target)


def _asked(body: PatternBody, statement: Update, target: Tensor) -> _Pair:
    """The addresses of each firing, -1 in idle lanes, and the values."""
    lanes, name = body.lanes, statement.memory
    ends = _ends_iteration(body, statement.location)
    unit = BodyUnit(body, f"ask_{name}", Role.COMPUTE, statement.location)
    index = addresses(unit.valid, unit.vector(statement.index))
    value = unit.vector(statement.value)
    places = unit.output(f"{name}_places", INT32.with_lanes(lanes), tagged=True)
    values = unit.output(f"{name}_values", target.type.with_lanes(lanes))
    ended = (put(places, index, LAST), put(values, value))
    cases = [FiringCase(name="last", puts=ended)]
    if ends is not True:
        last = unit.control.ends_list
        if isinstance(ends, str):
            last = last & equals(unit.reads(ends), 1)
        more = (put(places, index), put(values, value))
        cases = [
            FiringCase(name="last", when=last, puts=ended),
            FiringCase(name="more", puts=more),
        ]
    unit.at_each(cases, done=[put(places, tag=DONE)])
    unit.finish()
    return places, values


def _ends_iteration(body: PatternBody, location: SourceLocation | None) -> bool | str:
    """Whether each firing ends an outermost iteration.

    If not, its last firing in a segment does; given the name of an enclosing local, only if that is
    1.
    """
    around = body.around
    if around is None or around.around is None or around.carry is not None:
        return True
    outer = _ends_iteration(around, location)
    if outer is True:
        return False
    unit = BodyUnit(around, "last_iteration", Role.RELAY, location)
    last = unit.control.ends_list
    if isinstance(outer, str):
        last = last & equals(unit.reads(outer), 1)
    flag = around.draft.names.fresh("is_last")
    out = unit.output(flag)
    unit.at_each(
        [
            FiringCase(name="last", when=last, puts=(put(out, 1),)),
            FiringCase(name="more", puts=(put(out, 0),)),
        ]
    )
    unit.finish()
    around.wires[flag] = out
    return flag


def _in_turn(body: PatternBody, wires: _Pair, statement: Update) -> _Pair:
    """Merge the streams of all partitions, in the order of outermost iterations.

    A place forwards the turns of the places before it, then its own iteration, and marks the end.
    """
    (dimension,) = body.space
    parts, name = dimension.extent, f"order_{statement.memory}"
    unit = UnitDraft(body.draft, name, Role.RELAY, body.space, body.region, statement.location)
    own = tuple(unit.listen(wire, unit.local(wire.port)) for wire in wires)
    chain = tuple(
        to_next_place(unit, f"{wire.port}_on", wire.type, parts, tagged=wire.stream.nesting > 0)
        for wire in wires
    )
    out = tuple(
        replace(
            unit.output(f"{wire.port}_in_turn", wire.type, tagged=wire.stream.nesting > 0),
            sink_at=(const(parts - 1),),
        )
        for wire in wires
    )
    before = tuple(unit.listen(wire, unit.local(wire.port)) for wire in chain)

    def passed(name: str, heads: tuple[In, ...], tag: int, after: str) -> list[Choice]:
        """Forward a vector; the last place sends it to the adder."""

        def to(name: str, onto: tuple[Wire, ...]) -> Rule:
            puts = [put(onto[0], heads[0].value, const(tag)), put(onto[1], heads[1].value)]
            return rule(name, after, takes=heads, puts=puts)

        return [
            when(is_place(parts - 1), to(f"{name}, out", out)),
            when(None, to(name, chain)),
        ]

    def closed(name: str, head: In, after: str | None) -> list[Choice]:
        return [
            when(
                is_place(parts - 1),
                rule(f"{name}, out", after, takes=[head], puts=[put(out[0], tag=DONE)]),
            ),
            when(None, rule(name, after, takes=[head], puts=[put(chain[0], tag=DONE)])),
        ]

    own_done = when(
        own[0].is_done,
        [
            when(is_place(0), closed("first done", own[0], None)),
            when(None, rule("own done", "end", takes=[own[0]])),
        ],
    )
    after_own = [
        when(is_place(0), passed("first last", own, LAST, "own")),
        when(None, passed("own last", own, LAST, "before")),
    ]
    unit.mode(
        "start",
        when(is_place(0), rule("first", "own")),
        when(None, rule("others", "before")),
    )
    unit.mode(
        "own",
        own_done,
        when(own[0].ends_list, after_own, needs=[own[1]]),
        when(None, passed("own", own, VALUE, "own"), needs=[own[1]]),
        needs=[own[0]],
    )
    unit.mode(
        "before",
        when(before[0].is_done, closed("all done", before[0], "close")),
        when(before[0].ends_list, passed("turn", before, VALUE, "own"), needs=[before[1]]),
        when(None, passed("pass", before, VALUE, "before"), needs=[before[1]]),
        needs=[before[0]],
    )
    unit.mode("end", when(None, closed("others done", before[0], None)), needs=[before[0]])
    unit.mode("close", when(None, rule("closed", None, takes=[own[0]])), needs=[own[0]])
    unit.finish()
    return out[0], out[1]


def _add(body: PatternBody, wires: _Pair, statement: Update, target: Tensor) -> None:
    """The unit that reads, adds and writes back."""
    draft, name = body.draft, f"update_{statement.memory}"
    unit = UnitDraft(draft, name, Role.STORE, (), body.region, statement.location)
    places, values = (unit.listen(wire, unit.local(wire.port)) for wire in wires)
    type = values.value.type
    done = when(places.is_done, rule("done", None, takes=[places]))

    def steps(index: Expr) -> tuple[Statement, ...]:
        word, total = unit.local("word"), unit.local("sum")
        load = Load(target=word, tensor=target.name, indices=(index,), type=type)
        value = apply(statement.operator, Local(name=word, type=type), values.value)
        store = Store(tensor=target.name, indices=(index,), value=Local(name=total, type=type))
        return load, Let(target=total, value=value), store

    heads = [places, values]
    if type.lanes == 1:
        adds = [
            when(
                places.value >= 0,
                rule("add", "run", takes=heads, body=steps(places.value)),
            ),
            when(None, rule("nothing", "run", takes=heads)),
        ]
    else:
        bursts = Bursts.of(unit, places.value, target.type)
        ends = (*steps(bursts.asked), write(bursts.begun, 0))
        adds = [
            when(
                bursts.more,
                rule("burst", "run", body=(*steps(bursts.asked), *bursts.waits)),
            ),
            when(None, rule("last burst", "run", takes=heads, body=ends)),
        ]
    unit.mode("run", done, when(None, adds, needs=[values]), needs=[places])
    unit.finish()
