"""What brings streams about and takes them apart: roots, players, forks, splits, lanes."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Type
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    copy,
    count_up,
    load,
    pass_done,
    put,
    rule,
    when,
)
from t2s.sparse_repr.blocks.expressions import (
    DONE_TAG,
    equal,
    select,
    zero,
)


def root(type: Type = INT32, *, location: SourceLocation | None = None) -> Block:
    """The reference 0 and D: the only fiber of an outermost level.  Ports: ``ref``."""
    draft = Draft(BlockKind.ROOT, Role.RELAY, location)
    ref = draft.output("ref", type, StreamKind.REFERENCE, 1)
    draft.mode("begin", when(None, rule("root", "end", puts=[put(ref, zero(type))])))
    draft.mode("end", when(None, rule("done", None, puts=[put(ref, tag=DONE_TAG)])))
    return draft.block()


def player(
    values: Tensor,
    tags: Tensor,
    kind: StreamKind,
    nesting: int,
    *,
    location: SourceLocation | None = None,
) -> Block:
    """The stream whose tokens are in memory, as ``recorder`` writes them.  Ports: ``out``."""
    draft = Draft(BlockKind.ROOT, Role.LOAD, location)
    draft.tensor(values)
    draft.tensor(tags)
    out = draft.output("out", values.type, kind, nesting)
    at = draft.register("at")
    first, tag = load("tag", tags, at)
    second, value = load("value", values, at)
    token = [put(out, value, tag)]
    draft.mode(
        "run",
        when(
            None,
            [
                when(equal(tag, DONE_TAG), rule("done", None, puts=token)),
                when(None, rule("put", "run", puts=token, body=[count_up(at)])),
            ],
            body=[first, second],
        ),
    )
    return draft.block()


def fork(stream: StreamType, ways: int, *, location: SourceLocation | None = None) -> Block:
    """The stream, several times.  Ports: ``in``; ``out0``, ``out1``, ..."""
    draft = Draft(BlockKind.PARALLEL, Role.RELAY, location)
    val = draft.input("in", stream)
    outs = [
        draft.output(f"out{n}", stream.element, stream.kind, stream.nesting) for n in range(ways)
    ]
    tokens = [copy(o, val) for o in outs]
    draft.mode(
        "run",
        when(val.is_done, rule("done", None, takes=[val], puts=tokens)),
        when(None, rule("pass", "run", takes=[val], puts=tokens)),
        needs=[val],
    )
    return draft.block()


def counted(coordinates: StreamType, *, location: SourceLocation | None = None) -> Block:
    """The number of coordinates before each: its position in the level that is written of them.

    Ports: ``crd``; ``ref``.
    """
    draft = Draft(BlockKind.CONVERT, Role.RELAY, location)
    crd = draft.input("crd", coordinates)
    ref = draft.output("ref", coordinates.element, StreamKind.REFERENCE, coordinates.nesting)
    at = draft.register("at", coordinates.element)
    number = rule("number", "run", takes=[crd], puts=[put(ref, at)], body=[count_up(at)])
    draft.mode(
        "run",
        when(crd.is_value, number),
        when(crd.is_stop, rule("stop", "run", takes=[crd], puts=[put(ref, tag=crd.tag)])),
        pass_done(crd, ref),
        needs=[crd],
        expected="coordinates, stops or D",
    )
    return draft.block()


def values_only(
    stream: StreamType, *, missing: Expr | None = None, location: SourceLocation | None = None
) -> Block:
    """The values alone, as a dense stream (nesting 0) for PE arrays.

    N is ``missing`` (zero, if it is not given).  Ports: ``in``; ``out``.
    """
    draft = Draft(BlockKind.CONVERT, Role.RELAY, location)
    val = draft.input("in", stream)
    out = draft.output("out", stream.element, StreamKind.VALUE, 0)
    instead = missing or zero(stream.element)
    draft.mode(
        "run",
        when(
            val.is_item,
            rule(
                "value",
                "run",
                takes=[val],
                puts=[put(out, select(val.is_value, val.value, instead))],
            ),
        ),
        when(val.is_stop, rule("stop", "run", takes=[val])),
        when(val.is_done, rule("done", None, takes=[val])),
        needs=[val],
    )
    return draft.block()


def with_stops(
    values: StreamType, like: StreamType, *, location: SourceLocation | None = None
) -> Block:
    """A dense stream of values in the shape of another one.  Ports: ``in``, ``like``; ``out``."""
    draft = Draft(BlockKind.CONVERT, Role.RELAY, location)
    val, shape = draft.input("in", values), draft.input("like", like)
    out = draft.output("out", values.element, StreamKind.VALUE, like.nesting)
    draft.mode(
        "run",
        when(
            shape.is_item,
            rule("value", "run", takes=[shape, val], puts=[put(out, val.value)]),
            needs=[val],
        ),
        when(shape.is_stop, rule("stop", "run", takes=[shape], puts=[put(out, tag=shape.tag)])),
        pass_done(shape, out),
        needs=[shape],
    )
    return draft.block()
