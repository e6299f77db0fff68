"""Level writers: streams become arrays in memory (Definition 3.8).

A writer takes one token per cycle and ends with the stream.  Its arrays are open tensors, whose
length is the number of stored elements.  A dense level has no arrays; its values are written in
order by ``ValueWriter``, or to their addresses by a locator and ``ArrayStore``.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, unequal, zero
from t2s.graph.build import In, count_up, let, load, rule, store, when, write
from t2s.graph.graph import StreamType, Tensor
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.alu import first_of
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, ends
from t2s.sparse_repr.blocks.expressions import cast, count_ones
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueWriter(StreamBlock):
    """Append the values; N is stored as ``missing`` (default: zero).

    Ports: ``val``.
    """

    kind = BlockKind.WRITE
    role = Role.STORE

    values: Tensor
    missing: Expr | None = None

    def draft(self, draft: Draft, value: StreamType) -> None:
        _append(draft, draft.input("val", value), self.values, self.missing or zero(value.element))


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonWriter(StreamBlock):
    """Append the coordinates.  Ports: ``crd``."""

    kind = BlockKind.WRITE
    role = Role.STORE

    stored: Tensor

    def draft(self, draft: Draft, coordinates: StreamType) -> None:
        _append(draft, draft.input("crd", coordinates), self.stored, None)


def _append(draft: Draft, val: In, stored: Tensor, missing: Expr | None) -> None:
    lanes = val.stream.element.lanes
    at = draft.register("at")
    type, place = stored.type.with_lanes(lanes), first_of(at, lanes)
    stored_value = store(stored, place, cast(val.value, type))
    choices = [
        when(val.is_value, rule("store", "run", takes=[val], body=[stored_value, count_up(at)])),
        *ends([val]),
    ]
    if missing is not None:
        instead = store(stored, place, cast(missing, type))
        fill = rule("fill", "run", takes=[val], body=[instead, count_up(at)])
        choices.append(when(val.is_empty, fill))
    draft.mode("run", *choices, needs=[val], expected="values, stops or D")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedWriter(StreamBlock):
    """Append the coordinates, and the position where each fiber begins and ends.

    A stop without a coordinate before it is an empty fiber if ``empty_fibers``; else it is ignored,
    because coordinate droppers have removed the coordinates of empty fibers.  The only fiber of a
    stream is always written.  The first cycle stores the position 0.  Ports: ``crd``.
    """

    kind = BlockKind.WRITE
    role = Role.STORE

    positions: Tensor
    stored: Tensor
    empty_fibers: bool = False

    def draft(self, draft: Draft, coordinates: StreamType) -> None:
        crd = draft.input("crd", coordinates)
        at, fiber, last = draft.register("at"), draft.register("fiber"), draft.register("last")
        element = self.positions.type
        first = store(self.positions, fiber, zero(element))
        draft.mode("begin", when(None, rule("begin", "run", body=[first, count_up(fiber)])))
        stored = store(self.stored, at, cast(crd.value, self.stored.type))
        end = store(self.positions, fiber, cast(at, element))
        closed = rule("close", "run", takes=[crd], body=[end, count_up(fiber), write(last, at)])
        stops = [when(crd.is_stop, closed)]
        if not self.empty_fibers and coordinates.nesting > 2:
            skip = rule("skip", "run", takes=[crd])
            stops = [
                when(crd.is_stop & unequal(at, last), closed),
                when(crd.is_stop, skip),
            ]
        draft.mode(
            "run",
            when(crd.is_value, rule("store", "run", takes=[crd], body=[stored, count_up(at)])),
            *stops,
            when(crd.is_done, rule("done", None, takes=[crd])),
            needs=[crd],
            expected="coordinates, stops or D",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BitvectorWriter(StreamBlock):
    """Append the words, and the number of bits set before each.  Ports: ``bits``."""

    kind = BlockKind.WRITE
    role = Role.STORE

    words: Tensor
    ranks: Tensor

    def draft(self, draft: Draft, bits: StreamType) -> None:
        val = draft.input("bits", bits)
        at, rank = draft.register("at"), draft.register("rank", self.ranks.type)
        ones = cast(count_ones(val.value), self.ranks.type)
        body = [
            store(self.words, at, val.value),
            store(self.ranks, at, rank),
            count_up(at),
            write(rank, rank + ones),
        ]
        draft.mode(
            "run",
            when(val.is_value, rule("store", "run", takes=[val], body=body)),
            *ends([val]),
            needs=[val],
            expected="words, stops or D",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedListWriter(StreamBlock):
    """Append each coordinate to the list of its fiber; fibers may come in any order.

    The arrays are those of ``LinkedListScanner``; ``tails`` holds the last node of each list.
    Ports: ``crd``, ``fiber``.
    """

    kind = BlockKind.WRITE
    role = Role.STORE

    heads: Tensor
    stored: Tensor
    followers: Tensor
    tails: Tensor

    def draft(self, draft: Draft, coordinates: StreamType, fiber: StreamType) -> None:
        crd, parent = draft.input("crd", coordinates), draft.input("fiber", fiber)
        at = draft.register("at")
        pair = [crd, parent]
        find, tail = load("tail", self.tails, parent.value)
        number, node = let("node", at + 1)
        common = [
            number,
            store(self.stored, at, cast(crd.value, self.stored.type)),
            store(self.followers, at, zero(self.followers.type)),
            store(self.tails, parent.value, cast(node, self.tails.type)),
            write(at, node),
        ]
        chained = [
            *common,
            store(self.followers, tail - 1, cast(node, self.followers.type)),
        ]
        started = [*common, store(self.heads, parent.value, cast(node, self.heads.type))]
        draft.mode(
            "run",
            when(
                crd.is_value & parent.is_value,
                [
                    when(
                        unequal(tail, zero(tail.type)),
                        rule("append", "run", takes=pair, body=chained),
                    ),
                    when(None, rule("start", "run", takes=pair, body=started)),
                ],
                body=[find],
            ),
            *ends(pair),
            needs=pair,
            expected="a fiber for each coordinate, and the same stops",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSink(StreamBlock):
    """Store a stream token by token: values and tags, including ``DONE``.

    Ports: ``in``.
    """

    kind = BlockKind.WRITE
    role = Role.STORE

    values: Tensor
    tags: Tensor

    def draft(self, draft: Draft, stream: StreamType) -> None:
        val = draft.input("in", stream)
        at = draft.register("at")
        body = [store(self.values, at, val.value), store(self.tags, at, val.tag), count_up(at)]
        draft.mode(
            "run",
            when(val.is_done, rule("done", None, takes=[val], body=body)),
            when(None, rule("store", "run", takes=[val], body=body)),
            needs=[val],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteValues(DiagramBlock):
    """Append the values of the result; N is stored as zero."""

    kind = BlockKind.WRITE

    tensor: str

    def meaning(self, known: Known, values: Lists) -> tuple[Nested, ...]:
        zero = known.zero(values.lanes)
        known.write_values(
            each(lambda value: zero if value is None else value, values.depth, values)
        )
        return ()

    def place(self, graph: Placing, values: Stream) -> tuple[Stream, ...]:
        array = graph.values_of(self.tensor, written=True)
        block = ValueWriter(values=array, missing=graph.zero(values.type.element.lanes))
        return graph.streams.put(block, f"write_{self.tensor}", values)
