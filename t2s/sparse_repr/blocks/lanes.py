"""Parallel lanes: distribute a stream over several copies of a graph, and merge their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from t2s.core.expr import TRUE, Expr, Local, all_hold, const, equals, select, unequal
from t2s.core.location import SourceLocation
from t2s.core.types import INT32
from t2s.graph.body import Statement
from t2s.graph.build import In, Out, copy, put, rule, when, write
from t2s.graph.graph import StreamType
from t2s.graph.nodes import DONE, Choice
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, check_number
from t2s.sparse_repr.blocks.expressions import cast, minimum
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each

WIDEST = 8
"""A switch between more lanes than this is a tree of switches."""


class _Turns:
    """The turn counter: a turn of lane n is ``runs[n]`` items, and each list starts with lane 0."""

    def __init__(self, draft: Draft, runs: Sequence[int]) -> None:
        self._runs = runs
        self.lane = draft.register("turn", INT32)
        self._count = draft.register("count", INT32) if max(runs) > 1 else None

    def is_first(self) -> Expr:
        """Whether the item is the first one of its turn."""
        return TRUE if self._count is None else equals(self._count, 0)

    def after(self, lane: int) -> list[Statement]:
        """Statements after an item of a lane."""
        following = const((lane + 1) % len(self._runs))
        if self._count is None:
            return [write(self.lane, following)]
        last = equals(self._count, self._runs[lane] - 1)
        return [
            write(self.lane, select(last, following, const(lane))),
            write(self._count, select(last, const(0), self._count + 1)),
        ]

    def again(self) -> list[Statement]:
        """Statements at the end of a list."""
        registers = [self.lane] if self._count is None else [self.lane, self._count]
        return [write(register, const(0)) for register in registers]


def _runs(run: int | Sequence[int], lanes: int, location: SourceLocation | None) -> tuple[int, ...]:
    """The items in a turn of each lane."""
    runs = tuple(run) if isinstance(run, Sequence) else (run,) * lanes
    for number in runs:
        check_number("the number of items in a turn", number, 1, location)
    return runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallelizer(StreamBlock):
    """Distribute the items of streams of one shape over lanes in turn; all lanes get the stops and
    D.

    A turn is ``run`` items, the same for all lanes or one number for each.  Each list starts with
    lane 0.  Ports: ``in0``, ``in1``, ...; ``out0_0`` (stream 0, lane 0), ...
    """

    kind = BlockKind.PARALLEL

    lanes: int
    run: int | tuple[int, ...] = 1

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        check_number("the number of lanes", self.lanes, 1, draft.location)
        runs = _runs(self.run, self.lanes, draft.location)
        inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(streams)]
        outs = [
            [
                draft.output(f"out{n}_{lane}", s.element, s.kind, s.nesting)
                for lane in range(self.lanes)
            ]
            for n, s in enumerate(streams)
        ]
        turns = _Turns(draft, runs)
        choices: list[Choice] = []
        for lane in range(self.lanes):
            tokens = [copy(ways[lane], i) for ways, i in zip(outs, inputs, strict=True)]
            deal = rule(f"deal{lane}", "run", takes=inputs, body=turns.after(lane), puts=tokens)
            choices.append(when(equals(turns.lane, lane), deal))
        everywhere = [copy(o, i) for ways, i in zip(outs, inputs, strict=True) for o in ways]
        same = [equals(inputs[0].tag, i.tag) for i in inputs[1:]]
        draft.mode(
            "run",
            when(all_hold(*(i.is_item for i in inputs)), choices),
            when(
                all_hold(inputs[0].is_stop, *same),
                rule("stop", "run", takes=inputs, body=turns.again(), puts=everywhere),
            ),
            when(
                all_hold(inputs[0].is_done, *same),
                rule("done", None, takes=inputs, puts=everywhere),
            ),
            needs=inputs,
            expected="streams of one shape",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Serializer(StreamBlock):
    """The inverse of ``Parallelizer``: ``run`` items, or lists, from each lane in turn.

    ``order`` is the stream that was distributed (its values are ignored); it tells which lane is
    next.  A lane may be d levels deeper than ``order``: then its turn is a whole list d deep.
    Ports: ``in0``, ..., ``order``; ``out``.
    """

    kind = BlockKind.PARALLEL

    run: int | tuple[int, ...] = 1

    def draft(self, draft: Draft, *streams: StreamType) -> None:
        *lanes, order = streams
        inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(lanes)]
        like = draft.input("order", order)
        first = lanes[0]
        depth = first.nesting - order.nesting
        out = draft.output("out", first.element, first.kind, first.nesting)
        turns = _Turns(draft, _runs(self.run, len(lanes), draft.location))
        if depth == 0:
            _serialize_items(draft, inputs, like, out, turns)
            return
        used = draft.register("used", INT32)
        _serialize_lists(draft, (inputs, like, out), (turns, used), depth)
        draft.start("choose")


_EXPECTED = "on the lane whose turn it is what belongs to an item of order, on all the same stops"


def _serialize_items(draft: Draft, inputs: Sequence[In], like: In, out: Out, turns: _Turns) -> None:
    everything = [like, *inputs]
    choices: list[Choice] = []
    for lane, source in enumerate(inputs):
        after = turns.after(lane)
        pair = [like, source]
        take = rule(f"take{lane}", "run", takes=pair, body=after, puts=[copy(out, source)])
        items = [when(source.is_item, take)]
        choices.append(when(equals(turns.lane, lane), items, needs=[source]))
    same = all_hold(*(equals(like.tag, source.tag) for source in inputs))
    again, passed = turns.again(), [put(out, tag=like.tag)]
    ends = [
        when(
            like.is_stop & same,
            rule("stop", "run", takes=everything, body=again, puts=passed),
        ),
        when(like.is_done & same, rule("done", None, takes=everything, puts=passed)),
    ]
    draft.mode(
        "run",
        when(like.is_item, choices),
        when(None, ends, needs=inputs),
        needs=[like],
        expected=_EXPECTED,
    )


def _serialize_lists(
    draft: Draft, ends: tuple[Sequence[In], In, Out], state: tuple[_Turns, Local], depth: int
) -> None:
    """In mode ``ended`` the stop of the last list is pending: the next item of ``order`` tells
    which.
    """
    (inputs, like, out), (turns, used) = ends, state
    lanes = len(inputs)
    own = const(depth, INT32)
    begun = cast(turns.is_first(), INT32)
    more = write(used, minimum(used + begun, const(lanes)))
    first: list[Choice] = []
    for lane, source in enumerate(inputs):
        inner = source.tag < own
        going = inner & unequal(source.tag, DONE)
        body = [more, *turns.after(lane)]
        pair, passed = [like, source], [copy(out, source)]
        inside = [
            when(
                going,
                rule(f"begin{lane}", f"lane{lane}", takes=pair, body=body, puts=passed),
            ),
            when(source.is_stop, rule(f"empty{lane}", "ended", takes=pair, body=body)),
        ]
        first.append(when(equals(turns.lane, lane), inside, needs=[source]))
        draft.mode(
            f"lane{lane}",
            when(going, rule(f"next{lane}", f"lane{lane}", takes=[source], puts=passed)),
            when(source.is_stop, rule(f"end{lane}", "ended", takes=[source])),
            needs=[source],
            expected=_EXPECTED,
        )

    same = all_hold(*(source.is_done for source in inputs))
    done = rule("done", None, takes=[like, *inputs], puts=[put(out, tag=DONE)])
    draft.mode(
        "choose",
        when(like.is_item, first),
        when(like.is_stop, _list_stops("empty_list", ends, state, depth)),
        when(like.is_done, [when(same, done)], needs=inputs),
        needs=[like],
        expected=_EXPECTED,
    )
    draft.mode(
        "ended",
        when(like.is_item, rule("between", "choose", puts=[put(out, tag=own)])),
        when(like.is_stop, _list_stops("stop", ends, state, depth)),
        when(like.is_done, rule("last", "choose", puts=[put(out, tag=own)])),
        needs=[like],
        expected=_EXPECTED,
    )


def _list_stops(
    name: str, ends: tuple[Sequence[In], In, Out], state: tuple[_Turns, Local], depth: int
) -> list[Choice]:
    """The choices for a stop of ``order``: lanes that had no turn have an empty list for it."""
    (inputs, like, out), (turns, used) = ends, state
    choices: list[Choice] = []
    raised = like.tag + const(depth, INT32)
    clear = [write(used, const(0)), *turns.again()]
    for count in range(len(inputs) + 1):
        idle = inputs[count:]
        same = all_hold(like.is_stop, *(equals(source.tag, raised) for source in idle))
        puts = [put(out, tag=raised)]
        stop = rule(f"{name}{count}", "choose", takes=[like, *idle], body=clear, puts=puts)
        choices.append(when(equals(used, count), [when(same, stop)], needs=idle))
    return choices


def groups_of(ways: int) -> tuple[int, ...]:
    """The lanes of each group that a wide switch is divided into; a narrow switch is one group.

    A single switch has a state for each lane and rules for each pair of lanes; a tree of switches
    grows only linearly, in hardware and in compile time.
    """
    if ways <= WIDEST:
        return (ways,)
    count = min(WIDEST, -(-ways // WIDEST))
    return tuple(ways // count + (group < ways % count) for group in range(count))


def deal(
    to: Connections,
    streams: Sequence[Stream],
    ways: int,
    run: int,
    name: str,
    *,
    count: bool = True,
) -> tuple[tuple[Stream, ...], ...]:
    """Distribute items in turn; returns for each lane its part of every stream.  Many lanes are
    a tree.
    """
    if ways <= WIDEST:
        return _deal(to, streams, ways, run, name, count=count)
    groups = groups_of(ways)
    runs = tuple(run * n for n in groups)
    sides = _deal(to, streams, len(groups), runs, name, count=count)
    return tuple(
        lane
        for side, own in zip(sides, groups, strict=True)
        for lane in deal(to, side, own, run, name, count=False)
    )


def _deal(
    to: Connections,
    streams: Sequence[Stream],
    ways: int,
    run: int | tuple[int, ...],
    name: str,
    *,
    count: bool,
) -> tuple[tuple[Stream, ...], ...]:
    """Distribute by a single block."""
    outs = to.put(Parallelizer(lanes=ways, run=run), name, *streams, count=count)
    return tuple(tuple(outs[lane::ways]) for lane in range(ways))


def gather(
    to: Connections,
    order: Stream,
    parts: Sequence[Stream],
    run: int,
    name: str,
    *,
    count: bool = True,
) -> Stream:
    """Merge lanes in the order in which ``order`` was distributed.

    Many lanes are a tree of blocks, and ``order`` is distributed over its branches.
    """
    groups, runs = groups_of(len(parts)), (run,) * len(parts)
    if len(groups) > 1:
        runs = tuple(run * n for n in groups)
        orders = _deal(to, [order], len(groups), runs, f"{name}_order", count=False)
        ends = list(accumulate(groups))
        parts = [
            gather(to, own, parts[end - n : end], run, name, count=False)
            for (own,), n, end in zip(orders, groups, ends, strict=True)
        ]
    return to.put(Serializer(run=runs), name, *parts, order, count=count)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class DealLanes(DiagramBlock):
    """Distribute the items of streams of one shape, ``run`` of them to each lane in turn."""

    kind = BlockKind.PARALLEL
    counted = ("parallelizer",)

    lanes: int
    run: int = 1

    def meaning(self, known: Known, *streams: Lists) -> tuple[Nested, ...]:
        def dealt(items: list[Any], lane: int) -> list[Any]:
            turns = enumerate(items)
            return [item for at, item in turns if at // self.run % self.lanes == lane]

        return tuple(
            each(lambda items, n=lane: dealt(items, n), stream.depth - 1, stream)
            for lane in range(self.lanes)
            for stream in streams
        )

    def place(self, graph: Placing, *streams: Stream) -> tuple[Stream, ...]:
        lanes = deal(graph.streams, streams, self.lanes, self.run, f"deal_{graph.loop}")
        return tuple(stream for lane in lanes for stream in lane)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatherLanes(DiagramBlock):
    """Merge the results of lanes, in the order of the items."""

    kind = BlockKind.PARALLEL
    counted = ("serializer",)

    run: int = 1

    def meaning(self, known: Known, order: Lists, *parts: Lists) -> tuple[Nested, ...]:
        run = self.run

        def gathered(items: list[Any], *rows: list[Any]) -> list[Any]:
            turns = [(n // run, n % run) for n in range(len(items))]
            return [rows[t % len(rows)][t // len(rows) * run + n] for t, n in turns]

        return (each(gathered, order.depth - 1, order, *parts),)

    def place(self, graph: Placing, order: Stream, *parts: Stream) -> tuple[Stream, ...]:
        return (gather(graph.streams, order, parts, self.run, f"gather_{graph.loop}"),)
