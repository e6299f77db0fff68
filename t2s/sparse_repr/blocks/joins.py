"""Joins of fibers: intersect and union of any number of sides.

A side of a join is a stream of coordinates and any number of streams beside it that have the same
shape (references or values).  Coordinates of a fiber increase.  Stops of all sides have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.graph.body import Statement
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.machine import Choice, Put, Rule
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    In,
    Out,
    copy,
    let,
    put,
    rule,
    when,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    EMPTY_TAG,
    both,
    either,
    equal,
    invert,
    largest,
    less,
    maximum,
    minimum,
    select,
)

MOST_SIDES = 6
"""Most sides of one join: it has a rule for every set of sides that it may take from."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The ports of one side, and its payload outputs."""

    crd: In
    payloads: tuple[In, ...]
    outputs: tuple[Out, ...]

    @property
    def ports(self) -> tuple[In, ...]:
        return (self.crd, *self.payloads)

    @property
    def is_aligned(self) -> list[Expr]:
        """What is beside the coordinate has its kind: an item by a value, else the same tag."""
        return [
            either(both(self.crd.is_value, p.is_item), equal(self.crd.tag, p.tag))
            for p in self.payloads
        ]


Sides = Sequence[tuple[StreamType, Sequence[StreamType]]]


def intersect(
    sides: Sides, *, skipping: bool = False, location: SourceLocation | None = None
) -> Block:
    """The coordinates that all sides have, with what is beside them (Definition 3.2).

    One comparison per cycle: either all sides agree, or all that are behind the furthest drop their
    coordinate.  With ``skipping`` the outputs ``skip0``, ``skip1``, ... tell the scanners what is
    needed (see ``skipping``).
    Ports: ``crd0``, ``in0_0``, ``in0_1``, ..., ``crd1``, ...; ``out0_0``, ..., ``crd``, ``skip0``,
    ...
    """
    draft = Draft(BlockKind.INTERSECT, Role.RELAY, location)
    joined, crd = _ports(draft, sides)
    top, furthest = let("furthest", maximum(*(side.crd.value for side in joined)))
    others, mixed = let("mixed", either(*(invert(side.crd.is_value) for side in joined)))
    body: list[Statement] = [top, others]
    late: list[Expr] = []
    for number, side in enumerate(joined):
        behind = both(side.crd.is_value, either(mixed, less(side.crd.value, furthest)))
        statement, local = let(f"late{number}", behind)
        body.append(statement)
        late.append(local)
    passed = [
        copy(o, p) for side in joined for p, o in zip(side.payloads, side.outputs, strict=True)
    ]
    wish = select(mixed, largest(crd.stream.element), furthest)
    skips = [
        draft.output(f"skip{n}", crd.stream.element, StreamKind.CONTROL, 1)
        for n in range(len(joined) if skipping else 0)
    ]

    def wishes(chosen: Sequence[_Side]) -> list[Put]:
        return [put(o, wish) for o, side in zip(skips, joined, strict=False) if side in chosen]

    def leaf(chosen: tuple[_Side, ...]) -> Rule | None:
        if chosen:
            name = _name("drop", joined, chosen)
            return rule(name, "run", takes=_all(chosen), puts=wishes(chosen))
        puts = [put(crd, joined[0].crd.value), *passed, *(put(o, tag=EMPTY_TAG) for o in skips)]
        return rule("match", "run", takes=_all(joined), puts=puts)

    _join_mode(draft, joined, crd, body, _tree(joined, late, leaf))
    return draft.block()


def union(sides: Sides, *, location: SourceLocation | None = None) -> Block:
    """The coordinates that any side has; N beside those that a side lacks (Definition 3.3).

    One coordinate per cycle.  Ports as those of ``intersect``.
    """
    draft = Draft(BlockKind.UNION, Role.RELAY, location)
    joined, crd = _ports(draft, sides)
    infinity = largest(crd.stream.element)
    values = [select(side.crd.is_value, side.crd.value, infinity) for side in joined]
    bottom, nearest = let("nearest", minimum(*values))
    body: list[Statement] = [bottom]
    here: list[Expr] = []
    for number, side in enumerate(joined):
        present = both(side.crd.is_value, equal(side.crd.value, nearest))
        statement, local = let(f"here{number}", present)
        body.append(statement)
        here.append(local)

    def leaf(chosen: tuple[_Side, ...]) -> Rule | None:
        if not chosen:
            return None
        puts = [put(crd, nearest)]
        for side in joined:
            for payload, out in zip(side.payloads, side.outputs, strict=True):
                puts.append(copy(out, payload) if side in chosen else put(out, tag=EMPTY_TAG))
        return rule(_name("take", joined, chosen), "run", takes=_all(chosen), puts=puts)

    _join_mode(draft, joined, crd, body, _tree(joined, here, leaf))
    return draft.block()


def _ports(draft: Draft, sides: Sides) -> tuple[tuple[_Side, ...], Out]:
    joined: list[_Side] = []
    for number, (coordinates, payloads) in enumerate(sides):
        crd = draft.input(f"crd{number}", coordinates)
        inputs = [draft.input(f"in{number}_{at}", stream) for at, stream in enumerate(payloads)]
        outputs = [
            draft.output(f"out{number}_{at}", stream.element, stream.kind, stream.nesting)
            for at, stream in enumerate(payloads)
        ]
        joined.append(_Side(crd, tuple(inputs), tuple(outputs)))
    first = joined[0].crd.stream
    return tuple(joined), draft.output("crd", first.element, StreamKind.COORDINATE, first.nesting)


def _all(sides: Sequence[_Side]) -> list[In]:
    return [port for side in sides for port in side.ports]


def _name(verb: str, sides: Sequence[_Side], chosen: Sequence[_Side]) -> str:
    return f"{verb}_{'_'.join(str(sides.index(side)) for side in chosen)}"


def _tree(
    sides: Sequence[_Side],
    conditions: Sequence[Expr],
    leaf: Callable[[tuple[_Side, ...]], Rule | None],
) -> list[Choice]:
    """Alternatives for every set of sides whose condition holds, as nested yes and no."""

    def split(at: int, chosen: tuple[_Side, ...]) -> list[Choice] | Rule | None:
        if at == len(sides):
            return leaf(chosen)
        yes, no = split(at + 1, (*chosen, sides[at])), split(at + 1, chosen)
        choices = [] if yes is None else [when(conditions[at], yes)]
        return choices if no is None else [*choices, when(None, no)]

    found = split(0, ())
    assert isinstance(found, list)
    return found


def _join_mode(
    draft: Draft,
    sides: Sequence[_Side],
    crd: Out,
    body: Sequence[Statement],
    choices: Sequence[Choice],
) -> None:
    outputs = [crd, *(o for side in sides for o in side.outputs)]
    first = sides[0].crd
    no_values = both(*(invert(side.crd.is_value) for side in sides))
    agree = both(*(equal(first.tag, side.crd.tag) for side in sides[1:]), no_values)
    stops = rule(
        "pass_stop", "run", takes=_all(sides), puts=[put(o, tag=first.tag) for o in outputs]
    )
    done = rule("done", None, takes=_all(sides), puts=[put(o, tag=DONE_TAG) for o in outputs])
    ends = [when(first.is_stop, stops), when(first.is_done, done)]
    some_value = either(*(side.crd.is_value for side in sides))
    inside = [when(some_value, choices, body=body), when(agree, ends)]
    aligned = [condition for side in sides for condition in side.is_aligned]
    draft.mode(
        "run",
        *([when(both(*aligned), inside)] if aligned else inside),
        needs=[*(side.crd for side in sides), *(p for side in sides for p in side.payloads)],
        expected="on all sides fibers of coordinates that end with the same stops, each coordinate"
        " with one token beside it",
    )
