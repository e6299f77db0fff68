"""Level writers: streams become arrays in memory (Definition 3.8).

A writer takes one token per cycle and ends with the stream.  Its arrays are open tensors: they are
as long as what was stored.  A dense level has no arrays; its values are written in order by
``value_writer``, or to their addresses by a locator and ``array_store``.
"""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.graph.graph import StreamType, Tensor
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.arrays import first_of
from t2s.sparse_repr.blocks.draft import (
    Block,
    BlockKind,
    Draft,
    count_up,
    let,
    load,
    rule,
    store,
    when,
    write,
)
from t2s.sparse_repr.blocks.expressions import (
    add,
    both,
    cast,
    count_ones,
    equal,
    one,
    subtract,
    unequal,
    zero,
)


def value_writer(
    value: StreamType,
    values: Tensor,
    *,
    missing: Expr | None = None,
    location: SourceLocation | None = None,
) -> Block:
    """The values one after the other; N is ``missing`` (zero, if it is not given).

    Ports: ``val``.
    """
    return _appending(value, values, "val", missing or zero(value.element), location)


def singleton_writer(
    coordinates: StreamType, stored: Tensor, *, location: SourceLocation | None = None
) -> Block:
    """The coordinates one after the other.  Ports: ``crd``."""
    return _appending(coordinates, stored, "crd", None, location)


def _appending(
    stream: StreamType,
    stored: Tensor,
    port: str,
    missing: Expr | None,
    location: SourceLocation | None,
) -> Block:
    draft = Draft(BlockKind.WRITE, Role.STORE, location)
    draft.tensor(stored)
    val = draft.input(port, stream)
    at = draft.register("at")
    type, place = stored.type.with_lanes(stream.element.lanes), first_of(at, stream.element.lanes)
    kept = store(stored, place, cast(val.value, type))
    choices = [
        when(val.is_value, rule("store", "run", takes=[val], body=[kept, count_up(at)])),
        when(val.is_stop, rule("stop", "run", takes=[val])),
        when(val.is_done, rule("done", None, takes=[val])),
    ]
    if missing is not None:
        instead = store(stored, place, cast(missing, type))
        fill = rule("fill", "run", takes=[val], body=[instead, count_up(at)])
        choices.append(when(val.is_empty, fill))
    draft.mode("run", *choices, needs=[val], expected="values, stops or D")
    return draft.block()


def compressed_writer(
    coordinates: StreamType,
    positions: Tensor,
    stored: Tensor,
    *,
    empty_fibers: bool = False,
    location: SourceLocation | None = None,
) -> Block:
    """The coordinates one after the other, and where each fiber begins and ends.

    A stop without a coordinate before it is an empty fiber if ``empty_fibers``; else it is none,
    since coordinate droppers have removed the coordinates of empty fibers.  Of a stream with one
    fiber this is always written.  The first cycle stores the position 0.  Ports: ``crd``.
    """
    draft = Draft(BlockKind.WRITE, Role.STORE, location)
    draft.tensor(positions)
    draft.tensor(stored)
    crd = draft.input("crd", coordinates)
    at, fiber, last = draft.register("at"), draft.register("fiber"), draft.register("last")
    element = positions.type
    first = store(positions, fiber, zero(element))
    draft.mode("begin", when(None, rule("begin", "run", body=[first, count_up(fiber)])))
    kept = store(stored, at, cast(crd.value, stored.type))
    end = store(positions, fiber, cast(at, element))
    closed = rule("close", "run", takes=[crd], body=[end, count_up(fiber), write(last, at)])
    stops = [when(crd.is_stop, closed)]
    if not empty_fibers and coordinates.nesting > 2:
        skip = rule("skip", "run", takes=[crd])
        stops = [
            when(both(crd.is_stop, unequal(at, last)), closed),
            when(crd.is_stop, skip),
        ]
    draft.mode(
        "run",
        when(crd.is_value, rule("store", "run", takes=[crd], body=[kept, count_up(at)])),
        *stops,
        when(crd.is_done, rule("done", None, takes=[crd])),
        needs=[crd],
        expected="coordinates, stops or D",
    )
    return draft.block()


def bitvector_writer(
    bits: StreamType, words: Tensor, ranks: Tensor, *, location: SourceLocation | None = None
) -> Block:
    """The words one after the other, and the number of bits set before each.  Ports: ``bits``."""
    draft = Draft(BlockKind.WRITE, Role.STORE, location)
    draft.tensor(words)
    draft.tensor(ranks)
    val = draft.input("bits", bits)
    at, rank = draft.register("at"), draft.register("rank", ranks.type)
    ones = cast(count_ones(val.value), ranks.type)
    body = [
        store(words, at, val.value),
        store(ranks, at, rank),
        count_up(at),
        write(rank, add(rank, ones)),
    ]
    draft.mode(
        "run",
        when(val.is_value, rule("store", "run", takes=[val], body=body)),
        when(val.is_stop, rule("stop", "run", takes=[val])),
        when(val.is_done, rule("done", None, takes=[val])),
        needs=[val],
        expected="words, stops or D",
    )
    return draft.block()


def linked_list_writer(
    coordinates: StreamType,
    fiber: StreamType,
    heads: Tensor,
    stored: Tensor,
    followers: Tensor,
    tails: Tensor,
    *,
    location: SourceLocation | None = None,
) -> Block:
    """Append each coordinate to the list of the fiber beside it, in any order of fibers.

    The arrays are those of ``linked_list_scanner``; ``tails`` holds the last node of each list.
    Ports: ``crd``, ``fiber``.
    """
    draft = Draft(BlockKind.WRITE, Role.STORE, location)
    for tensor in (heads, stored, followers, tails):
        draft.tensor(tensor)
    crd, parent = draft.input("crd", coordinates), draft.input("fiber", fiber)
    at = draft.register("at")
    pair = [crd, parent]
    find, tail = load("tail", tails, parent.value)
    number, node = let("node", add(at, one(at.type)))
    common = [
        number,
        store(stored, at, cast(crd.value, stored.type)),
        store(followers, at, zero(followers.type)),
        store(tails, parent.value, cast(node, tails.type)),
        write(at, node),
    ]
    chained = [
        *common,
        store(followers, subtract(tail, one(tail.type)), cast(node, followers.type)),
    ]
    started = [*common, store(heads, parent.value, cast(node, heads.type))]
    same = equal(crd.tag, parent.tag)
    draft.mode(
        "run",
        when(
            both(crd.is_value, parent.is_value),
            [
                when(
                    unequal(tail, zero(tail.type)),
                    rule("append", "run", takes=pair, body=chained),
                ),
                when(None, rule("start", "run", takes=pair, body=started)),
            ],
            body=[find],
        ),
        when(both(crd.is_stop, same), rule("stop", "run", takes=pair)),
        when(both(crd.is_done, same), rule("done", None, takes=pair)),
        needs=pair,
        expected="a fiber for each coordinate, and the same stops",
    )
    return draft.block()


def recorder(
    stream: StreamType, values: Tensor, tags: Tensor, *, location: SourceLocation | None = None
) -> Block:
    """The whole stream, token by token: its values and its tags, ``DONE`` included.

    Ports: ``in``.
    """
    draft = Draft(BlockKind.WRITE, Role.STORE, location)
    draft.tensor(values)
    draft.tensor(tags)
    val = draft.input("in", stream)
    at = draft.register("at")
    body = [store(values, at, val.value), store(tags, at, val.tag), count_up(at)]
    draft.mode(
        "run",
        when(val.is_done, rule("done", None, takes=[val], body=body)),
        when(None, rule("store", "run", takes=[val], body=body)),
        needs=[val],
    )
    return draft.block()
