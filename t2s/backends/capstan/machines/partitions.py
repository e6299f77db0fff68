"""From one unit to the partitions, and back: chains that pass from one partition to the next."""

from __future__ import annotations

from dataclasses import replace

from t2s.backends.capstan.machines.bodies import PatternBody
from t2s.backends.capstan.machines.kit import UnitDraft, UnitHead, Wire, put, rule, when
from t2s.core.expr import Expr, Index, apply, const, equals
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.body import Role, SpaceDimension
from t2s.graph.machine import Choice

PARTITION = "partition"


def parted(around: PatternBody, parts: int, location: SourceLocation | None) -> PatternBody:
    """The body of a program as its partitions see it."""
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
    """The partition behind this one; the first one behind the last."""
    here = Index(name=PARTITION)
    return apply(Op.MODULO, apply(Op.ADD, here, const(1)), const(parts))


def _place_before(parts: int) -> Expr:
    here = apply(Op.ADD, Index(name=PARTITION), const(parts - 1))
    return apply(Op.MODULO, here, const(parts))


def to_next_place(
    unit: UnitDraft, name: str, type: Type, parts: int, *, tagged: bool = False
) -> Wire:
    """An output of the partitions' units to the unit of the next one, a cycle later."""
    on = unit.output(name, type, tagged=tagged, latency=1)
    return replace(on, source_at=(_next_place(parts),))


def to_first_place(wire: Wire, parts: int) -> Wire:
    """A wire as all partitions listen to it, and only the first one gets what is put."""
    if wire.shape:
        # the last of another row of partitions puts it, and the first one here listens to that
        return replace(wire, sink_at=(_place_before(parts),))
    return replace(wire, shape=(parts,), source_at=(const(0),))


def is_place(place: int) -> Expr:
    """Whether this is that partition."""
    return equals(Index(name=PARTITION), const(place))


def _spread(
    around: PatternBody,
    wire: Wire,
    name: str,
    space: tuple[SpaceDimension, ...],
    location: SourceLocation | None,
) -> Wire:
    """A wire of the body around in all partitions, each a cycle after the one before.

    A local has one token, the control two.
    """
    parts = space[0].extent
    unit = UnitDraft(around.draft, f"spread_{name}", Role.RELAY, space, around.region, location)
    tagged = wire.stream.nesting > 0
    out = unit.output(name, wire.type, tagged=tagged)
    chain = to_next_place(unit, f"{name}_on", wire.type, parts, tagged=tagged)
    first = unit.take(to_first_place(wire, parts), unit.local(name))
    heads: list[tuple[UnitHead, Expr | None, str]] = [(first, is_place(0), "first")]
    if parts > 1:
        before = unit.take(chain, unit.local(name))
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


def _copies(head: UnitHead, wires: tuple[Wire, ...], text: str) -> list[Choice]:
    puts = [put(wire, head.value, head.tag) for wire in wires]
    if head.tag is None:
        return [when(None, rule(text, None, takes=[head], puts=puts))]
    return [
        when(head.is_done, rule(f"{text} done", None, takes=[head], puts=puts)),
        when(None, rule(text, "run", takes=[head], puts=puts)),
    ]


def finished(around: PatternBody, wire: Wire, name: str, location: SourceLocation | None) -> Wire:
    """A local of the body around: all partitions have put their one token into a wire."""
    (parts,) = wire.shape
    space = (SpaceDimension(name=PARTITION, minimum=0, extent=parts),)
    unit = UnitDraft(around.draft, f"finish_{name}", Role.RELAY, space, around.region, location)
    out = replace(unit.output(name), sink_at=(const(parts - 1),))
    own = unit.take(wire, unit.local(name))
    if parts == 1:
        unit.mode("run", when(None, rule("last", None, takes=[own], puts=[put(out)])), needs=[own])
        unit.finish()
        return out
    chain = to_next_place(unit, f"{name}_on", INT32, parts)
    before = unit.take(chain, unit.local(name))
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
