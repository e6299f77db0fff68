"""Splitting coordinates into two levels, and flattening two levels into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2s.core.expr import Expr, Local, const, equals
from t2s.core.types import BOOL, INT32
from t2s.graph.build import In, Out, copy, let, put, rule, when, write
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import DONE
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, check_number
from t2s.sparse_repr.blocks.expressions import FIRST_STOP, decreased, increased
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class Splitter(StreamBlock):
    """Split each coordinate into the number of its block of ``factor``, and its offset in the
    block.

    The inner stream is one level deeper.  With ``keep`` its coordinates are unchanged.  Streams
    ``beside`` follow the inner stream.  A new block costs one more cycle, for the stop.
    Ports: ``crd``, ``in0``, ...; ``outer``, ``inner``, ``out0``, ...
    """

    kind = BlockKind.CONVERT

    factor: int
    keep: bool = False

    def draft(self, draft: Draft, coordinates: StreamType, *beside: StreamType) -> None:
        check_number("the factor of a split", self.factor, 1, draft.location)
        crd = draft.input("crd", coordinates)
        others = [draft.input(f"in{n}", stream) for n, stream in enumerate(beside)]
        type, kind, deep = coordinates.element, StreamKind.COORDINATE, coordinates.nesting + 1
        outer = draft.output("outer", type, kind, coordinates.nesting)
        inner = draft.output("inner", type, kind, deep)
        outs = [draft.output(f"out{n}", s.element, s.kind, deep) for n, s in enumerate(beside)]
        size = const(self.factor, type)
        current, some = draft.register("current", type), draft.register("some", BOOL)
        inputs, deep_outs = [crd, *others], [inner, *outs]
        divide, block = let("block", crd.value // size)
        within = crd.value if self.keep else crd.value % size
        token = [put(inner, within), *(copy(o, i) for o, i in zip(outs, others, strict=True))]
        begin = [write(current, block), write(some, const(True, BOOL))]
        end = [write(some, const(False, BOOL))]
        raised = [put(o, tag=increased(crd.tag)) for o in deep_outs]
        ends = [put(o, tag=DONE) for o in (outer, *deep_outs)]
        closes = [put(o, tag=FIRST_STOP) for o in deep_outs]
        fresh = rule("begin", "run", takes=inputs, body=begin, puts=[put(outer, block), *token])
        following = rule("next", "run", takes=inputs, puts=token)
        stop = rule("stop", "run", takes=inputs, body=end, puts=[copy(outer, crd), *raised])
        in_block = [
            when(some & equals(block, current), following),
            when(some, rule("end_block", "run", body=end, puts=closes)),
            when(None, fresh),
        ]
        draft.mode(
            "run",
            when(crd.is_value, in_block, body=[divide]),
            when(crd.is_stop, stop),
            when(crd.is_done, rule("done", None, takes=inputs, puts=ends)),
            needs=inputs,
            expected="streams of one shape",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flattener(StreamBlock):
    """The inverse of ``split``: merge two coordinates into one, with one level less.

    With ``keep`` the inner coordinates are unchanged.  Streams ``beside`` have the shape of
    ``inner``.
    Ports: ``outer``, ``inner``, ``in0``, ...; ``crd``, ``out0``, ...
    """

    kind = BlockKind.CONVERT

    factor: int
    keep: bool = False

    def draft(
        self, draft: Draft, outer: StreamType, inner: StreamType, *beside: StreamType
    ) -> None:
        check_number("the factor of flattened levels", self.factor, 0, draft.location)
        high, low = draft.input("outer", outer), draft.input("inner", inner)
        others = [draft.input(f"in{n}", stream) for n, stream in enumerate(beside)]
        type, lows = outer.element, [low, *others]
        crd = draft.output("crd", type, StreamKind.COORDINATE, outer.nesting)
        outs = [
            draft.output(f"out{n}", s.element, s.kind, outer.nesting) for n, s in enumerate(beside)
        ]
        base, after = draft.register("base", type), draft.register("after", INT32)
        everything = [high, *lows]
        passed = [copy(o, i) for o, i in zip(outs, others, strict=True)]
        scaled = high.value * const(self.factor, type)

        def whole(start: Expr) -> Expr:
            return low.value if self.keep else start + low.value

        higher = low.ends_outer_list
        same = equals(low.tag, increased(high.tag))
        lowered = [put(o, tag=decreased(low.tag)) for o in (crd, *outs)]
        expected = "an inner list for each outer coordinate, with stops one level higher"
        ends = [put(o, tag=DONE) for o in (crd, *outs)]
        puts, body = [put(crd, whole(scaled)), *passed], [write(base, scaled)]
        first = rule("first", "inside", takes=everything, body=body, puts=puts)
        empty = rule("empty", "start", takes=everything)
        more = rule("next", "inside", takes=lows, puts=[put(crd, whole(base)), *passed])
        stop = rule("stop", "start", takes=everything, puts=lowered)
        last = [write(after, decreased(low.tag))]
        draft.mode(
            "start",
            when(low.is_value & high.is_value, first),
            when(low.ends_list & high.is_value, empty),
            when(
                higher & high.is_value,
                rule("empty_last", "close", takes=everything, body=last),
            ),
            when(higher & same, rule("empty_list", "start", takes=everything, puts=lowered)),
            when(low.is_done & high.is_done, rule("done", None, takes=everything, puts=ends)),
            needs=everything,
            expected=expected,
        )
        draft.mode(
            "inside",
            when(low.is_value, more),
            when(low.ends_list, rule("end", "start", takes=lows)),
            when(higher, [when(same, stop)], needs=[high]),
            needs=lows,
            expected=expected,
        )
        _close(draft, high, after, (crd, *outs), expected)


def _close(draft: Draft, high: In, after: Local, outputs: Sequence[Out], expected: str) -> None:
    """The outer stop after an inner list that was the last one, and empty."""
    puts = [put(o, tag=after) for o in outputs]
    closing = when(equals(high.tag, after), rule("close", "start", takes=[high], puts=puts))
    draft.mode("close", closing, needs=[high], expected=expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatten(DiagramBlock):
    """Two levels of coordinates as one, ``outer * extent + inner``, and the streams beside
    ``inner``.

    ``extent`` names a variable.
    """

    kind = BlockKind.CONVERT
    counted = ("flatten",)

    extent: str

    def meaning(
        self, known: Known, outer: Lists, inner: Lists, *beside: Lists
    ) -> tuple[Nested, ...]:
        extent, depth = known.extent(self.extent), outer.depth - 1

        def flat(high: list[int], low: list[list[int]]) -> list[int]:
            return [a * extent + b for a, row in zip(high, low, strict=True) for b in row]

        others = (
            each(lambda rows: [item for row in rows for item in row], depth, stream)
            for stream in beside
        )
        return (each(flat, depth, outer, inner), *others)

    def place(
        self, graph: Placing, outer: Stream, inner: Stream, *beside: Stream
    ) -> tuple[Stream, ...]:
        block = Flattener(factor=graph.extent(self.extent))
        return graph.streams.put(block, f"flatten_{graph.loop}", outer, inner, *beside)
