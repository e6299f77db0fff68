"""Coordinate droppers (Definition 3.9): remove coordinates without values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2s.core.expr import Expr, all_hold, equals, unequal, zero
from t2s.core.types import INT32
from t2s.graph.body import Statement
from t2s.graph.build import In, copy, put, rule, when, write
from t2s.graph.graph import StreamKind, StreamType
from t2s.graph.nodes import DONE, VALUE, Choice, Put
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft
from t2s.sparse_repr.blocks.expressions import FIRST_STOP, decreased, increased
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, columns


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateDropper(DiagramBlock):
    """Drop the outer coordinates whose inner lists are empty, and these lists.

    ``inner`` (coordinates or values) is one level deeper than ``outer``; streams ``beside`` have
    the shape of ``outer`` and are dropped with it.  Higher stops stay, so an outer list whose
    coordinates are all dropped becomes an empty list.  The inner stream is delayed by one token,
    because the stop that ends a list is known only after the empty lists that follow it.
    Ports: ``outer``, ``in0``, ..., ``inner``; ``out_outer``, ``out0``, ..., ``out_inner``.
    """

    kind = BlockKind.DROP

    def meaning(self, known: Known, outer: Lists, inner: Lists) -> tuple[Nested, ...]:
        def kept(outer: list[Any], inner: list[Any]) -> tuple[Nested, ...]:
            pairs = [(a, b) for a, b in zip(outer, inner, strict=True) if b]
            return [a for a, _ in pairs], [b for _, b in pairs]

        return columns(kept, 2, outer.depth - 1, outer, inner)

    def place(self, graph: Placing, outer: Stream, inner: Stream) -> tuple[Stream, ...]:
        return graph.streams.put(self, f"drop_{graph.loop}", outer, inner)

    def draft(self, draft: Draft, outer: StreamType, *rest: StreamType) -> None:
        *beside, inner = rest
        dropper = _Dropper(draft, outer, inner, beside)
        dropper.start()
        dropper.inside()
        dropper.close()


class _Dropper:
    """The ports of a coordinate dropper, and the inner token that it holds back."""

    def __init__(
        self, draft: Draft, outer: StreamType, inner: StreamType, beside: Sequence[StreamType]
    ) -> None:
        self._draft = draft
        crd = draft.input("outer", outer)
        others = [draft.input(f"in{n}", stream) for n, stream in enumerate(beside)]
        self.sides, self.val = [crd, *others], draft.input("inner", inner)
        out_crd = draft.output("out_outer", outer.element, outer.kind, outer.nesting)
        outs = [
            draft.output(f"out{n}", stream.element, stream.kind, stream.nesting)
            for n, stream in enumerate(beside)
        ]
        self.outs = [out_crd, *outs]
        self.out_val = draft.output("out_inner", inner.element, inner.kind, inner.nesting)
        held = draft.register("held", inner.element)
        late = draft.register("late", INT32)  # the tag of the token held, plus 3: 0 is not a token
        self.after = draft.register("after", INT32)
        self.holding = unequal(late, zero(INT32))
        self.ended = equals(_less_three(late), FIRST_STOP)
        self.late = [put(self.out_val, held, _less_three(late))]
        self.keep = [write(held, self.val.value), write(late, _plus_three(self.val.tag))]
        self.forget = [write(late, zero(INT32))]
        self.higher = self.val.ends_outer_list
        self.same = all_hold(*(equals(self.val.tag, increased(side.tag)) for side in self.sides))
        self.stops = [put(o, tag=decreased(self.val.tag)) for o in self.outs]

    @property
    def everything(self) -> list[In]:
        return [*self.sides, self.val]

    def start(self) -> None:
        """At the beginning of an inner list."""
        val, everything, item = self.val, self.everything, self.sides[0].is_item
        passed = [copy(o, i) for o, i in zip(self.outs, self.sides, strict=True)]
        close = [*self.keep, write(self.after, decreased(val.tag))]
        ends = [put(o, tag=DONE) for o in (*self.outs, self.out_val)]
        self._draft.mode(
            "start",
            when(val.is_item & item, self._once("open", "inside", passed, self.keep)),
            when(val.ends_list & item, rule("drop", "start", takes=everything)),
            when(self.higher & item, self._higher("drop_last", "close", [], close)),
            when(
                self.higher & self.same,
                self._higher("empty", "start", self.stops, self.keep),
            ),
            when(
                all_hold(val.is_done, *(side.is_done for side in self.sides)),
                [
                    when(self.holding, rule("last", "start", puts=self.late, body=self.forget)),
                    when(None, rule("done", None, takes=everything, puts=ends)),
                ],
            ),
            needs=everything,
            expected=_EXPECTED,
        )

    def inside(self) -> None:
        """In an inner list that is not empty."""
        val = self.val
        puts = [*self.late, *self.stops]
        last = rule("end_last", "start", takes=self.everything, puts=puts, body=self.keep)
        following = rule("next", "inside", takes=[val], puts=self.late, body=self.keep)
        end = rule("end", "start", takes=[val], puts=self.late, body=self.keep)
        self._draft.mode(
            "inside",
            when(val.is_item, following),
            when(val.ends_list, end),
            when(self.higher, [when(self.same, last)], needs=self.sides),
            needs=[val],
            expected=_EXPECTED,
        )

    def close(self) -> None:
        """The outer stop after a list that was the last one, and empty."""
        closes = all_hold(*(equals(side.tag, self.after) for side in self.sides))
        puts = [put(o, tag=self.after) for o in self.outs]
        self._draft.mode(
            "close",
            when(closes, rule("close", "start", takes=self.sides, puts=puts)),
            needs=self.sides,
            expected=_EXPECTED,
        )

    def _once(
        self, name: str, mode: str, puts: Sequence[Put], body: Sequence[Statement]
    ) -> list[Choice]:
        """Take all heads, and emit the held token, if any."""
        takes, first = self.everything, f"{name}_first"
        return [
            when(self.holding, rule(name, mode, takes=takes, puts=[*self.late, *puts], body=body)),
            when(None, rule(first, mode, takes=takes, puts=puts, body=body)),
        ]

    def _higher(
        self, name: str, mode: str, puts: Sequence[Put], body: Sequence[Statement]
    ) -> list[Choice]:
        """A higher stop after an empty list replaces the held stop S0."""
        merged = rule(f"{name}_merged", mode, takes=self.everything, puts=puts, body=body)
        return [when(self.ended, merged), *self._once(name, mode, puts, body)]


_EXPECTED = "a list of inner tokens for each outer coordinate, with stops one level higher"


def _plus_three(tag: Expr) -> Expr:
    return increased(increased(increased(tag)))


def _less_three(tag: Expr) -> Expr:
    return decreased(decreased(decreased(tag)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDropper(DiagramBlock):
    """Drop values equal to ``dropped`` (default: zero), and N, with their coordinates.

    With ``missing_only``, only N is dropped.  Both streams have the same shape.
    Ports: ``crd``, ``val``; ``out_crd``, ``out_val``.
    """

    kind = BlockKind.DROP

    dropped: Expr | None = None
    missing_only: bool = False

    def meaning(self, known: Known, coordinates: Lists, values: Lists) -> tuple[Nested, ...]:
        """In diagrams only N is dropped."""

        def kept(coordinates: list[Any], values: list[Any]) -> tuple[Nested, ...]:
            pairs = [p for p in zip(coordinates, values, strict=True) if p[1] is not None]
            return [a for a, _ in pairs], [b for _, b in pairs]

        return columns(kept, 2, values.depth - 1, coordinates, values)

    def place(self, graph: Placing, coordinates: Stream, values: Stream) -> tuple[Stream, ...]:
        return graph.streams.put(self, f"drop_values_{graph.loop}", coordinates, values)

    def draft(self, draft: Draft, coordinates: StreamType, value: StreamType) -> None:
        crd, val = draft.input("crd", coordinates), draft.input("val", value)
        out_crd = draft.output(
            "out_crd", crd.stream.element, StreamKind.COORDINATE, coordinates.nesting
        )
        out_val = draft.output("out_val", value.element, StreamKind.VALUE, value.nesting)
        pair = [crd, val]
        nothing = zero(value.element) if self.dropped is None else self.dropped
        passed = [copy(out_crd, crd), copy(out_val, val)]
        conditions = [crd.is_value, equals(val.tag, VALUE)]
        if not self.missing_only:
            conditions.append(unequal(val.value, nothing))
        draft.mode(
            "run",
            when(all_hold(*conditions), rule("keep", "run", takes=pair, puts=passed)),
            when(crd.is_value & val.is_item, rule("drop", "run", takes=pair)),
            when(
                crd.is_stop & equals(crd.tag, val.tag),
                rule("stop", "run", takes=pair, puts=passed),
            ),
            when(crd.is_done & val.is_done, rule("done", None, takes=pair, puts=passed)),
            needs=pair,
            expected="a value for each coordinate, and the same stops",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroDropper(DiagramBlock):
    """Drop zeros of the semiring, and N, with their coordinates."""

    kind = BlockKind.DROP

    def meaning(self, known: Known, coordinates: Lists, values: Lists) -> tuple[Nested, ...]:
        zero = known.zero(1)

        def kept(coordinates: list[Any], values: list[Any]) -> tuple[Nested, ...]:
            pairs = zip(coordinates, values, strict=True)
            nonzero = [pair for pair in pairs if pair[1] is not None and pair[1] != zero]
            return [a for a, _ in nonzero], [b for _, b in nonzero]

        return columns(kept, 2, values.depth - 1, coordinates, values)

    def place(self, graph: Placing, coordinates: Stream, values: Stream) -> tuple[Stream, ...]:
        block = ValueDropper(dropped=graph.zero(1))
        return graph.streams.put(block, f"drop_zeros_{graph.loop}", coordinates, values)
