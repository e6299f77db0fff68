"""Sources, forks and conversions of streams."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr, equals, select, zero
from t2s.core.types import INT32, Type
from t2s.graph.build import copy, count_up, load, put, rule, when
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import DONE, Role
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, ends, pass_done
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Nested, Placing


@dataclass(frozen=True, slots=True, kw_only=True)
class Root(DiagramBlock):
    """The reference 0 and D: the only fiber of an outermost level.  Ports: ``ref``."""

    kind = BlockKind.ROOT

    type: Type = INT32

    counted = ()

    def meaning(self, known: Known) -> tuple[Nested, ...]:
        return (0,)

    def place(self, graph: Placing) -> tuple[Stream, ...]:
        return graph.streams.put(Root(type=graph.streams.index), "root")

    def draft(self, draft: Draft) -> None:
        ref = draft.output("ref", self.type, StreamKind.REFERENCE, 1)
        draft.mode("begin", when(None, rule("root", "end", puts=[put(ref, zero(self.type))])))
        draft.mode("end", when(None, rule("done", None, puts=[put(ref, tag=DONE)])))


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSource(StreamBlock):
    """A stream of tokens from memory, as written by ``TokenSink``.  Ports: ``out``."""

    kind = BlockKind.ROOT
    role = Role.LOAD

    values: Tensor
    tags: Tensor
    stream: StreamKind
    nesting: int

    def draft(self, draft: Draft) -> None:
        out = draft.output("out", self.values.type, self.stream, self.nesting)
        at = draft.register("at")
        first, tag = load("tag", self.tags, at)
        second, value = load("value", self.values, at)
        token = [put(out, value, tag)]
        draft.mode(
            "run",
            when(
                None,
                [
                    when(equals(tag, DONE), rule("done", None, puts=token)),
                    when(None, rule("put", "run", puts=token, body=[count_up(at)])),
                ],
                body=[first, second],
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(StreamBlock):
    """Copies of a stream.  Ports: ``in``; ``out0``, ``out1``, ..."""

    kind = BlockKind.PARALLEL

    ways: int

    def draft(self, draft: Draft, stream: StreamType) -> None:
        val = draft.input("in", stream)
        outs = [
            draft.output(f"out{n}", stream.element, stream.kind, stream.nesting)
            for n in range(self.ways)
        ]
        tokens = [copy(o, val) for o in outs]
        draft.mode(
            "run",
            when(val.is_done, rule("done", None, takes=[val], puts=tokens)),
            when(None, rule("pass", "run", takes=[val], puts=tokens)),
            needs=[val],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(StreamBlock):
    """The running count of coordinates: the position of each in the level that stores them.

    Ports: ``crd``; ``ref``.
    """

    kind = BlockKind.CONVERT

    def draft(self, draft: Draft, coordinates: StreamType) -> None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesOnly(StreamBlock):
    """The values alone, as a dense stream (nesting 0) for PE arrays.

    N becomes ``missing`` (default: zero).  Ports: ``in``; ``out``.
    """

    kind = BlockKind.CONVERT

    missing: Expr | None = None

    def draft(self, draft: Draft, stream: StreamType) -> None:
        val = draft.input("in", stream)
        out = draft.output("out", stream.element, StreamKind.VALUE, 0)
        instead = self.missing or zero(stream.element)
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
            *ends([val]),
            needs=[val],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WithStops(StreamBlock):
    """A dense stream of values with the stops of another stream.  Ports: ``in``, ``like``;
    ``out``.
    """

    kind = BlockKind.CONVERT

    def draft(self, draft: Draft, values: StreamType, like: StreamType) -> None:
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
