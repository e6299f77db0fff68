"""Joins of fibers: intersect and union of any number of sides.

A side of a join is a stream of coordinates and any number of payload streams of the same shape
(references or values).  Coordinates of a fiber increase.  Stops of all sides have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from t2s.core.errors import InternalError
from t2s.core.expr import Expr, all_hold, any_holds, equals, select
from t2s.graph.body import Statement
from t2s.graph.build import In, Out, copy, let, put, rule, when
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import DONE, EMPTY, Choice, Put, Rule
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock
from t2s.sparse_repr.blocks.expressions import largest, maximum, minimum
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, columns

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
        """The payloads match the coordinate: items for a value, else the same tag."""
        return [
            (self.crd.is_value & p.is_item) | equals(self.crd.tag, p.tag) for p in self.payloads
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersecter(StreamBlock):
    """The coordinates common to all sides, with their payloads (Definition 3.2).

    One comparison per cycle: either all sides agree, or all sides below the largest coordinate drop
    theirs.  ``sides`` are the numbers of streams of each.  With ``skipping`` the outputs ``skip0``,
    ``skip1``, ... tell the scanners which coordinate is needed next (see ``skipping``).
    Ports: ``crd0``, ``in0_0``, ``in0_1``, ..., ``crd1``, ...; ``out0_0``, ..., ``crd``, ``skip0``,
    ...
    """

    kind = BlockKind.INTERSECT

    sides: tuple[int, ...]
    skipping: bool = False

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        joined, crd = _ports(draft, self.sides, streams)
        top, furthest = let("furthest", maximum(*(side.crd.value for side in joined)))
        others, mixed = let("mixed", any_holds(*(~side.crd.is_value for side in joined)))
        body: list[Statement] = [top, others]
        late: list[Expr] = []
        for number, side in enumerate(joined):
            behind = side.crd.is_value & (mixed | (side.crd.value < furthest))
            statement, local = let(f"late{number}", behind)
            body.append(statement)
            late.append(local)
        passed = [
            copy(o, p) for side in joined for p, o in zip(side.payloads, side.outputs, strict=True)
        ]
        wish = select(mixed, largest(crd.stream.element), furthest)
        skips = [
            draft.output(f"skip{n}", crd.stream.element, StreamKind.CONTROL, 1)
            for n in range(len(joined) if self.skipping else 0)
        ]

        def wishes(chosen: Sequence[_Side]) -> list[Put]:
            return [put(o, wish) for o, side in zip(skips, joined, strict=False) if side in chosen]

        def leaf(chosen: tuple[_Side, ...]) -> Rule | None:
            if chosen:
                name = _name("drop", joined, chosen)
                return rule(name, "run", takes=_all(chosen), puts=wishes(chosen))
            puts = [put(crd, joined[0].crd.value), *passed, *(put(o, tag=EMPTY) for o in skips)]
            return rule("match", "run", takes=_all(joined), puts=puts)

        _join_mode(draft, joined, crd, body, _tree(joined, late, leaf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unioner(StreamBlock):
    """The coordinates of any side, with N as the payload of a side that lacks one (Definition 3.3).

    One coordinate per cycle.  Ports as those of ``Intersecter``.
    """

    kind = BlockKind.UNION

    sides: tuple[int, ...]

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        joined, crd = _ports(draft, self.sides, streams)
        infinity = largest(crd.stream.element)
        values = [select(side.crd.is_value, side.crd.value, infinity) for side in joined]
        bottom, nearest = let("nearest", minimum(*values))
        body: list[Statement] = [bottom]
        presence: list[Expr] = []
        for number, side in enumerate(joined):
            present = side.crd.is_value & equals(side.crd.value, nearest)
            statement, local = let(f"here{number}", present)
            body.append(statement)
            presence.append(local)

        def leaf(chosen: tuple[_Side, ...]) -> Rule | None:
            if not chosen:
                return None
            puts = [put(crd, nearest)]
            for side in joined:
                for payload, out in zip(side.payloads, side.outputs, strict=True):
                    puts.append(copy(out, payload) if side in chosen else put(out, tag=EMPTY))
            return rule(_name("take", joined, chosen), "run", takes=_all(chosen), puts=puts)

        _join_mode(draft, joined, crd, body, _tree(joined, presence, leaf))


def _ports(
    draft: Draft, sides: Sequence[int], streams: Sequence[StreamType]
) -> tuple[tuple[_Side, ...], Out]:
    joined: list[_Side] = []
    rest = iter(streams)
    for number, size in enumerate(sides):
        coordinates, *payloads = (next(rest) for _ in range(size))
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
    """A binary decision tree over the sides' conditions, with an alternative for every subset."""

    def split(at: int, chosen: tuple[_Side, ...]) -> list[Choice] | Rule | None:
        if at == len(sides):
            return leaf(chosen)
        yes, no = split(at + 1, (*chosen, sides[at])), split(at + 1, chosen)
        choices = [] if yes is None else [when(conditions[at], yes)]
        return choices if no is None else [*choices, when(None, no)]

    tree = split(0, ())
    assert isinstance(tree, list)
    return tree


def _join_mode(
    draft: Draft,
    sides: Sequence[_Side],
    crd: Out,
    body: Sequence[Statement],
    choices: Sequence[Choice],
) -> None:
    outputs = [crd, *(o for side in sides for o in side.outputs)]
    first = sides[0].crd
    no_values = all_hold(*(~side.crd.is_value for side in sides))
    agree = all_hold(*(equals(first.tag, side.crd.tag) for side in sides[1:]), no_values)
    stops = rule(
        "pass_stop", "run", takes=_all(sides), puts=[put(o, tag=first.tag) for o in outputs]
    )
    done = rule("done", None, takes=_all(sides), puts=[put(o, tag=DONE) for o in outputs])
    ends = [when(first.is_stop, stops), when(first.is_done, done)]
    some_value = any_holds(*(side.crd.is_value for side in sides))
    inside = [when(some_value, choices, body=body), when(agree, ends)]
    aligned = [condition for side in sides for condition in side.is_aligned]
    draft.mode(
        "run",
        *([when(all_hold(*aligned), inside)] if aligned else inside),
        needs=[*(side.crd for side in sides), *(p for side in sides for p in side.payloads)],
        expected="on all sides fibers of coordinates that end with the same stops, each coordinate"
        " with one token beside it",
    )


def join(
    to: Connections,
    kind: BlockKind,
    sides: Sequence[Sequence[Stream]],
    name: str,
    *,
    count: bool = True,
) -> tuple[Stream, tuple[tuple[Stream, ...], ...]]:
    """The coordinates of an intersection or a union, and the payloads of each side.

    Up to ``MOST_SIDES`` sides are one block, more a tree of blocks.
    """
    if len(sides) > MOST_SIDES:
        first, rest = sides[:MOST_SIDES], sides[MOST_SIDES:]
        crd, inside = join(to, kind, first, name, count=count)
        merged = [crd, *(stream for side in inside for stream in side)]
        crd, others = join(to, kind, [merged, *rest], name, count=False)
        beside = iter(others[0])
        back = tuple(tuple(next(beside) for _ in side[1:]) for side in first)
        return crd, (*back, *others[1:])
    for side in sides:
        to.require_order(side[0])
    counts = tuple(map(len, sides))
    block = Intersecter(sides=counts) if kind is BlockKind.INTERSECT else Unioner(sides=counts)
    drafted = to.drafted(block, [stream.type for side in sides for stream in side])
    inputs = {f"crd{n}": side[0] for n, side in enumerate(sides)}
    inputs |= {
        f"in{n}_{at}": stream for n, side in enumerate(sides) for at, stream in enumerate(side[1:])
    }
    outs = to.place(drafted, name, inputs, count=count)
    crd, beside = outs[-1], iter(outs[:-1])
    return crd, tuple(tuple(next(beside) for _ in side[1:]) for side in sides)


def joined_fibers(
    kind: BlockKind, sides: Sequence[int], fibers: Sequence[list[Any]]
) -> tuple[list[Any], ...]:
    """The meaning of a join on fibers: coordinates and payload lists of each side."""
    tables: list[dict[int, tuple[Any, ...]]] = []
    rest = iter(fibers)
    for size in sides:
        crd, *beside = (next(rest) for _ in range(size))
        if crd != sorted(set(crd)):
            raise InternalError("the coordinates of a fiber do not increase")
        rows = zip(*beside, strict=True) if beside else [()] * len(crd)
        tables.append(dict(zip(crd, rows, strict=True)))
    keys = [set(table) for table in tables]
    combine = set.intersection if kind is BlockKind.INTERSECT else set.union
    chosen = sorted(combine(*keys))
    columns: list[list[Any]] = [chosen]
    for table, size in zip(tables, sides, strict=True):
        columns += (
            [table[at][number] if at in table else None for at in chosen]
            for number in range(size - 1)
        )
    return tuple(columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(DiagramBlock):
    """Intersecter or unioner of any number of sides, each of coordinates and references.

    ``sides`` are the numbers of streams of each.  The outputs are the coordinates and all
    references, in order; a union gives empty ones for sides that lack the coordinate.
    """

    kind: BlockKind
    sides: tuple[int, ...]

    def meaning(self, known: Known, *streams: Lists) -> tuple[Nested, ...]:
        def joined(*fibers: list[Any]) -> tuple[Nested, ...]:
            return joined_fibers(self.kind, self.sides, fibers)

        count = 1 + len(streams) - len(self.sides)
        return columns(joined, count, streams[0].depth - 1, *streams)

    def place(self, graph: Placing, *streams: Stream) -> tuple[Stream, ...]:
        rest = iter(streams)
        sides = [[next(rest) for _ in range(size)] for size in self.sides]
        name = f"{self.kind.value}_{graph.loop}"
        crd, beside = join(graph.streams, self.kind, sides, name)
        return (crd, *(stream for side in beside for stream in side))
