"""Parallel lanes: dealing a stream out to several copies of a graph, and joining what they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t2s.core.expr import TRUE, Expr, Local, const
from t2s.core.location import SourceLocation
from t2s.core.types import INT32
from t2s.graph.body import Statement
from t2s.graph.graph import StreamType
from t2s.graph.machine import Choice, Rule
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    In,
    Out,
    check_number,
    copy,
    put,
    rule,
    when,
    write,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    add,
    both,
    cast,
    equal,
    less,
    minimum,
    select,
    unequal,
)

WIDEST = 8
"""A switch between more lanes than this is a tree of switches."""


class _Turns:
    """Whose turn it is: a turn of lane n is ``runs[n]`` items, and each list starts with lane 0."""

    def __init__(self, draft: Draft, runs: Sequence[int]) -> None:
        self._runs = runs
        self.lane = draft.register("turn", INT32)
        self._count = draft.register("count", INT32) if max(runs) > 1 else None

    def is_first(self) -> Expr:
        """Whether the item is the first one of its turn."""
        return TRUE if self._count is None else equal(self._count, const(0))

    def after(self, lane: int) -> list[Statement]:
        """After an item of a lane."""
        following = const((lane + 1) % len(self._runs))
        if self._count is None:
            return [write(self.lane, following)]
        last = equal(self._count, const(self._runs[lane] - 1))
        return [
            write(self.lane, select(last, following, const(lane))),
            write(self._count, select(last, const(0), add(self._count, const(1)))),
        ]

    def again(self) -> list[Statement]:
        """At the end of a list."""
        registers = [self.lane] if self._count is None else [self.lane, self._count]
        return [write(register, const(0)) for register in registers]


def _runs(run: int | Sequence[int], lanes: int, location: SourceLocation | None) -> tuple[int, ...]:
    """The items in a turn of each lane."""
    runs = tuple(run) if isinstance(run, Sequence) else (run,) * lanes
    for number in runs:
        check_number("the number of items in a turn", number, 1, location)
    return runs


def parallelizer(
    streams: Sequence[StreamType],
    lanes: int,
    *,
    run: int | Sequence[int] = 1,
    location: SourceLocation | None = None,
) -> Block:
    """Deal the items of streams of one shape to lanes in turn; all lanes get the stops and D.

    A turn is ``run`` items, the same for all lanes or one number for each.  Each list starts with
    lane 0.  Ports: ``in0``, ``in1``, ...; ``out0_0`` (stream 0, lane 0), ...
    """
    check_number("the number of lanes", lanes, 1, location)
    runs = _runs(run, lanes, location)
    draft = Draft(BlockKind.PARALLEL, Role.RELAY, location)
    inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(streams)]
    outs = [
        [draft.output(f"out{n}_{lane}", s.element, s.kind, s.nesting) for lane in range(lanes)]
        for n, s in enumerate(streams)
    ]
    turns = _Turns(draft, runs)
    choices: list[Choice] = []
    for lane in range(lanes):
        tokens = [copy(ways[lane], i) for ways, i in zip(outs, inputs, strict=True)]
        deal = rule(f"deal{lane}", "run", takes=inputs, body=turns.after(lane), puts=tokens)
        choices.append(when(equal(turns.lane, const(lane)), deal))
    everywhere = [copy(o, i) for ways, i in zip(outs, inputs, strict=True) for o in ways]
    same = [equal(inputs[0].tag, i.tag) for i in inputs[1:]]
    draft.mode(
        "run",
        when(both(*(i.is_item for i in inputs)), choices),
        when(
            both(inputs[0].is_stop, *same),
            rule("stop", "run", takes=inputs, body=turns.again(), puts=everywhere),
        ),
        when(both(inputs[0].is_done, *same), rule("done", None, takes=inputs, puts=everywhere)),
        needs=inputs,
        expected="streams of one shape",
    )
    return draft.block()


def serializer(
    lanes: Sequence[StreamType],
    order: StreamType,
    *,
    run: int | Sequence[int] = 1,
    location: SourceLocation | None = None,
) -> Block:
    """The inverse of ``parallelizer``: ``run`` items, or lists, from each lane in turn.

    ``order`` is the stream that was dealt out (its values do not matter): it tells which lane is
    next.  A lane may be d levels deeper than ``order``: then its turn is a whole list d deep.
    Ports: ``in0``, ..., ``order``; ``out``.
    """
    draft = Draft(BlockKind.PARALLEL, Role.RELAY, location)
    inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(lanes)]
    like = draft.input("order", order)
    first = lanes[0]
    depth = first.nesting - order.nesting
    out = draft.output("out", first.element, first.kind, first.nesting)
    turns = _Turns(draft, _runs(run, len(lanes), location))
    if depth == 0:
        _serialize_items(draft, inputs, like, out, turns)
        return draft.block()
    used = draft.register("used", INT32)
    _serialize_lists(draft, (inputs, like, out), (turns, used), depth)
    return draft.block("choose")


_EXPECTED = "on the lane whose turn it is what belongs to an item of order, on all the same stops"


def _serialize_items(draft: Draft, inputs: Sequence[In], like: In, out: Out, turns: _Turns) -> None:
    everything = [like, *inputs]
    choices: list[Choice] = []
    for lane, source in enumerate(inputs):
        after = turns.after(lane)
        pair = [like, source]
        take = rule(f"take{lane}", "run", takes=pair, body=after, puts=[copy(out, source)])
        there = [when(source.is_item, take)]
        choices.append(when(equal(turns.lane, const(lane)), there, needs=[source]))
    same = both(*(equal(like.tag, source.tag) for source in inputs))
    again, passed = turns.again(), [put(out, tag=like.tag)]
    ends = [
        when(
            both(like.is_stop, same),
            rule("stop", "run", takes=everything, body=again, puts=passed),
        ),
        when(both(like.is_done, same), rule("done", None, takes=everything, puts=passed)),
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
    """Mode ``ended``: the stop of the last list is owed; which one the next item of order tells."""
    (inputs, like, out), (turns, used) = ends, state
    lanes = len(inputs)
    own = const(depth, INT32)
    begun = cast(turns.is_first(), INT32)
    more = write(used, minimum(add(used, begun), const(lanes)))
    first: list[Choice] = []
    for lane, source in enumerate(inputs):
        inner = less(source.tag, own)
        going = both(inner, unequal(source.tag, DONE_TAG))
        body = [more, *turns.after(lane)]
        pair, passed = [like, source], [copy(out, source)]
        inside = [
            when(
                going,
                rule(f"begin{lane}", f"lane{lane}", takes=pair, body=body, puts=passed),
            ),
            when(source.is_stop, rule(f"empty{lane}", "ended", takes=pair, body=body)),
        ]
        first.append(when(equal(turns.lane, const(lane)), inside, needs=[source]))
        draft.mode(
            f"lane{lane}",
            when(going, rule(f"next{lane}", f"lane{lane}", takes=[source], puts=passed)),
            when(source.is_stop, rule(f"end{lane}", "ended", takes=[source])),
            needs=[source],
            expected=_EXPECTED,
        )

    same = both(*(source.is_done for source in inputs))
    done = rule("done", None, takes=[like, *inputs], puts=[put(out, tag=DONE_TAG)])
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
    """A stop of order: the lanes that had no turn have it as an empty list of their own."""
    (inputs, like, out), (turns, used) = ends, state
    found: list[Choice] = []
    raised = add(like.tag, const(depth, INT32))
    clear = [write(used, const(0)), *turns.again()]
    for count in range(len(inputs) + 1):
        idle = inputs[count:]
        same = both(like.is_stop, *(equal(source.tag, raised) for source in idle))
        puts = [put(out, tag=raised)]
        stop = rule(f"{name}{count}", "choose", takes=[like, *idle], body=clear, puts=puts)
        found.append(when(equal(used, const(count)), [when(same, stop)], needs=idle))
    return found


def groups_of(ways: int) -> tuple[int, ...]:
    """The lanes of each group into which a switch of so many ways is divided: one if it is narrow.

    One switch of all lanes would have a state for each of them, and rules for each pair: as a tree
    it grows with the lanes, in hardware and in the time that it takes to compile.
    """
    if ways <= WIDEST:
        return (ways,)
    count = min(WIDEST, -(-ways // WIDEST))
    return tuple(ways // count + (group < ways % count) for group in range(count))


def dealer(
    streams: Sequence[StreamType], level: int, *, location: SourceLocation | None = None
) -> Block:
    """Whole lists to two sides in turn: a stop of ``level`` or higher ends a turn; both get D.

    The streams have one shape.  Ports: ``in0``, ...; ``out0_0`` (stream 0, side 0), ``out0_1``, ...
    """
    draft = Draft(BlockKind.PARALLEL, Role.RELAY, location)
    inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(streams)]
    outs = [
        [draft.output(f"out{n}_{side}", s.element, s.kind, s.nesting) for side in range(2)]
        for n, s in enumerate(streams)
    ]
    first = inputs[0]
    done = rule(
        "done", None, takes=inputs, puts=[put(o, tag=DONE_TAG) for two in outs for o in two]
    )
    ends = less(const(level, INT32), first.tag)
    for side in range(2):
        passed = [copy(two[side], i) for two, i in zip(outs, inputs, strict=True)]
        here, there = f"side{side}", f"side{1 - side}"
        choices = [
            when(ends, rule(f"end{side}", there, takes=inputs, puts=passed)),
            when(None, rule(f"pass{side}", here, takes=inputs, puts=passed)),
        ]
        last = [when(first.is_done, done)] if side == 0 else [when(first.is_done, _renamed(done))]
        draft.mode(here, *last, *choices, needs=inputs)
    return draft.block()


def alternator(stream: StreamType, level: int, *, location: SourceLocation | None = None) -> Block:
    """The inverse of ``dealer`` for one stream.  Ports: ``in0``, ``in1``; ``out``."""
    draft = Draft(BlockKind.PARALLEL, Role.RELAY, location)
    inputs = [draft.input(f"in{side}", stream) for side in range(2)]
    out = draft.output("out", stream.element, stream.kind, stream.nesting)
    for side, source in enumerate(inputs):
        other = inputs[1 - side]
        ends = less(const(level, INT32), source.tag)
        passed = [copy(out, source)]
        done = rule(f"done{side}", None, takes=inputs, puts=passed)
        draft.mode(
            f"side{side}",
            when(source.is_done, [when(other.is_done, done)], needs=[other]),
            when(ends, rule(f"end{side}", f"side{1 - side}", takes=[source], puts=passed)),
            when(None, rule(f"pass{side}", f"side{side}", takes=[source], puts=passed)),
            needs=[source],
        )
    return draft.block()


def _renamed(done: Rule) -> Rule:
    return replace(done, name="done_too")
