"""Coordinate droppers (Definition 3.9): no trace is left of what came to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.expr import Expr, const
from t2s.core.location import SourceLocation
from t2s.core.types import BOOL, INT32
from t2s.graph.body import Statement
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.machine import Choice, Put
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    In,
    copy,
    pass_done,
    put,
    rule,
    when,
    write,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    FIRST_STOP,
    VALUE_TAG,
    both,
    decreased,
    equal,
    increased,
    less,
    unequal,
    zero,
)


def coordinate_dropper(
    outer: StreamType,
    inner: StreamType,
    beside: Sequence[StreamType] = (),
    *,
    location: SourceLocation | None = None,
) -> Block:
    """Drop the outer coordinates whose inner lists are empty, and these lists.

    ``inner`` (coordinates or values) is one level deeper than ``outer``; what is ``beside`` has the
    shape of ``outer`` and is dropped with it.  Stops of higher levels stay, so an outer list whose
    coordinates were all dropped is an empty list.  The inner stream is one token late, since which
    stop ends a list is known only when the empty lists after it have been seen.
    Ports: ``outer``, ``in0``, ..., ``inner``; ``out_outer``, ``out0``, ..., ``out_inner``.
    """
    draft = Draft(BlockKind.DROP, Role.RELAY, location)
    crd = draft.input("outer", outer)
    others = [draft.input(f"in{n}", stream) for n, stream in enumerate(beside)]
    val = draft.input("inner", inner)
    out_crd = draft.output("out_outer", outer.element, outer.kind, outer.nesting)
    outs = [
        draft.output(f"out{n}", stream.element, stream.kind, stream.nesting)
        for n, stream in enumerate(beside)
    ]
    out_val = draft.output("out_inner", inner.element, inner.kind, inner.nesting)
    held = draft.register("held", inner.element)
    held_tag = draft.register("late", INT32)  # the tag of the token held, plus 3: 0 is no token
    late_tag = _less_three(held_tag)
    sides, outer_outs = [crd, *others], [out_crd, *outs]
    everything = [*sides, val]
    late = [put(out_val, held, late_tag)]
    keep: list[Statement] = [write(held, val.value), write(held_tag, _plus_three(val.tag))]
    kept = [copy(o, i) for o, i in zip(outer_outs, sides, strict=True)]
    forget = [write(held_tag, zero(INT32))]
    after = draft.register("after", INT32)

    def once(
        name: str, mode: str, takes: Sequence[In], puts: Sequence[Put], body: Sequence[Statement]
    ) -> list[Choice]:
        """Put what is held, if anything is."""
        holding = unequal(held_tag, zero(INT32))
        return [
            when(holding, rule(name, mode, takes=takes, puts=[*late, *puts], body=body)),
            when(None, rule(f"{name}_first", mode, takes=takes, puts=puts, body=body)),
        ]

    def stops(
        name: str, mode: str, takes: Sequence[In], puts: Sequence[Put], body: Sequence[Statement]
    ) -> list[Choice]:
        """A higher stop after an empty list takes the place of the stop S0 that is held."""
        merged = rule(f"{name}_merged", mode, takes=takes, puts=puts, body=body)
        ended = equal(late_tag, FIRST_STOP)
        return [when(ended, merged), *once(name, mode, takes, puts, body)]

    item, higher = crd.is_item, less(FIRST_STOP, val.tag)
    same = both(*(equal(val.tag, increased(side.tag)) for side in sides))
    outer_stops = [put(o, tag=decreased(val.tag)) for o in outer_outs]
    expected = "a list of inner tokens for each outer coordinate, with stops one level higher"
    draft.mode(
        "start",
        when(both(val.is_item, item), once("open", "inside", everything, kept, keep)),
        when(both(equal(val.tag, FIRST_STOP), item), rule("drop", "start", takes=everything)),
        when(
            both(higher, item),
            stops("drop_last", "close", everything, [], [*keep, write(after, decreased(val.tag))]),
        ),
        when(both(higher, same), stops("empty", "start", everything, outer_stops, keep)),
        when(
            both(val.is_done, *(side.is_done for side in sides)),
            [
                when(unequal(held_tag, zero(INT32)), rule("last", "start", puts=late, body=forget)),
                when(
                    None,
                    rule(
                        "done",
                        None,
                        takes=everything,
                        puts=[put(o, tag=DONE_TAG) for o in (*outer_outs, out_val)],
                    ),
                ),
            ],
        ),
        needs=everything,
        expected=expected,
    )
    draft.mode(
        "inside",
        when(val.is_item, rule("next", "inside", takes=[val], puts=late, body=keep)),
        when(
            equal(val.tag, FIRST_STOP),
            rule("end", "start", takes=[val], puts=late, body=keep),
        ),
        when(
            higher,
            [
                when(
                    same,
                    rule(
                        "end_last",
                        "start",
                        takes=everything,
                        puts=[*late, *outer_stops],
                        body=keep,
                    ),
                )
            ],
            needs=sides,
        ),
        needs=[val],
        expected=expected,
    )
    closes = both(*(equal(side.tag, after) for side in sides))
    draft.mode(
        "close",
        when(
            closes,
            rule("close", "start", takes=sides, puts=[put(o, tag=after) for o in outer_outs]),
        ),
        needs=sides,
        expected=expected,
    )
    return draft.block()


def _plus_three(tag: Expr) -> Expr:
    return increased(increased(increased(tag)))


def _less_three(tag: Expr) -> Expr:
    return decreased(decreased(decreased(tag)))


def value_dropper(
    coordinates: StreamType,
    value: StreamType,
    dropped: Expr | None = None,
    *,
    location: SourceLocation | None = None,
) -> Block:
    """Drop the values that are ``dropped`` (zero, if it is not given) or N, with their coordinates.

    Both streams have one shape.  Ports: ``crd``, ``val``; ``out_crd``, ``out_val``.
    """
    draft = Draft(BlockKind.DROP, Role.RELAY, location)
    crd, val = draft.input("crd", coordinates), draft.input("val", value)
    out_crd = draft.output(
        "out_crd", crd.stream.element, StreamKind.COORDINATE, coordinates.nesting
    )
    out_val = draft.output("out_val", value.element, StreamKind.VALUE, value.nesting)
    pair = [crd, val]
    nothing = zero(value.element) if dropped is None else dropped
    passed = [copy(out_crd, crd), copy(out_val, val)]
    draft.mode(
        "run",
        when(
            both(crd.is_value, equal(val.tag, VALUE_TAG), unequal(val.value, nothing)),
            rule("keep", "run", takes=pair, puts=passed),
        ),
        when(both(crd.is_value, val.is_item), rule("drop", "run", takes=pair)),
        when(
            both(crd.is_stop, equal(crd.tag, val.tag)), rule("stop", "run", takes=pair, puts=passed)
        ),
        when(both(crd.is_done, val.is_done), rule("done", None, takes=pair, puts=passed)),
        needs=pair,
        expected="a value for each coordinate, and the same stops",
    )
    return draft.block()


def empty_list_dropper(stream: StreamType, *, location: SourceLocation | None = None) -> Block:
    """Remove empty lists of all levels: of stops in a row the highest stays.

    Stops at the beginning go as well, but of a stream of nothing but stops the highest stays.
    One token late.  Ports: ``in``; ``out``.
    """
    draft = Draft(BlockKind.DROP, Role.RELAY, location)
    val = draft.input("in", stream)
    out = draft.output("out", stream.element, stream.kind, stream.nesting)
    held, held_tag = draft.register("held", stream.element), draft.register("late", INT32)
    late = [put(out, held, _less_three(held_tag))]
    seen = draft.register("seen", BOOL)
    keep = [write(held, val.value), write(held_tag, _plus_three(val.tag))]
    first = [*keep, write(seen, const(True, BOOL))]
    ended = less(_plus_three(VALUE_TAG), held_tag)
    holding = unequal(held_tag, zero(INT32))
    raised = less(held_tag, _plus_three(val.tag))
    draft.mode(
        "run",
        when(
            val.is_item,
            [
                when(seen, rule("next", "run", takes=[val], puts=late, body=keep)),
                when(None, rule("first", "run", takes=[val], body=first)),
            ],
        ),
        when(
            val.is_stop,
            [
                when(both(ended, raised), rule("raise", "run", takes=[val], body=keep)),
                when(ended, rule("merge", "run", takes=[val])),
                when(holding, rule("end", "run", takes=[val], puts=late, body=keep)),
                when(None, rule("leading", "run", takes=[val], body=keep)),
            ],
        ),
        when(
            both(val.is_done, holding),
            rule("last", "run", puts=late, body=[write(held_tag, zero(INT32))]),
        ),
        pass_done(val, out),
        needs=[val],
        expected="items, stops or D",
    )
    return draft.block()
