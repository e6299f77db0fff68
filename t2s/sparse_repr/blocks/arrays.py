"""Arrays of values (Definition 3.5) and arithmetic on streams of them (Definition 3.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from t2s.core.expr import Expr, const
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import Role
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import (
    BlockKind,
    Draft,
    StreamBlock,
    load,
    pass_done,
    put,
    rule,
    store,
    when,
)
from t2s.sparse_repr.blocks.expressions import EMPTY_TAG, both, equal, multiply
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLoad(StreamBlock):
    """The element of ``values`` at each reference; with lanes, vector ``ref`` of so many elements.

    N gives the value ``missing``, or N where that is ``None``.  Ports: ``ref``; ``val``.
    """

    kind = BlockKind.ARRAY
    role = Role.LOAD

    values: Tensor
    lanes: int = 1
    missing: Expr | None = None

    def draft(self, draft: Draft, reference: StreamType) -> None:
        ref = draft.input("ref", reference)
        type = self.values.type.with_lanes(self.lanes)
        val = draft.output("val", type, StreamKind.VALUE, reference.nesting)
        statement, loaded = load("loaded", self.values, first_of(ref.value, self.lanes), self.lanes)
        lost = put(val, tag=EMPTY_TAG) if self.missing is None else put(val, self.missing)
        draft.mode(
            "run",
            when(
                ref.is_value,
                rule("load", "run", takes=[ref], body=[statement], puts=[put(val, loaded)]),
            ),
            when(ref.is_stop, rule("stop", "run", takes=[ref], puts=[put(val, tag=ref.tag)])),
            pass_done(ref, val),
            when(ref.is_empty, rule("missing", "run", takes=[ref], puts=[lost])),
            needs=[ref],
            expected="references, N, stops or D",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayStore(StreamBlock):
    """Store each value at the reference beside it, vectors as ``ArrayLoad`` loads them.

    N as the reference or the value stores nothing.  Ports: ``ref``, ``val``.
    """

    kind = BlockKind.ARRAY
    role = Role.STORE

    values: Tensor

    def draft(self, draft: Draft, reference: StreamType, value: StreamType) -> None:
        ref, val = draft.input("ref", reference), draft.input("val", value)
        pair = [ref, val]
        kept = store(self.values, first_of(ref.value, value.element.lanes), val.value)
        draft.mode(
            "run",
            when(both(ref.is_value, val.is_value), rule("store", "run", takes=pair, body=[kept])),
            when(both(ref.is_item, val.is_item), rule("nothing", "run", takes=pair)),
            when(both(ref.is_stop, equal(ref.tag, val.tag)), rule("stop", "run", takes=pair)),
            when(both(ref.is_done, val.is_done), rule("done", None, takes=pair)),
            needs=pair,
            expected="a value for each reference, and the same stops",
        )


def first_of(reference: Expr, lanes: int) -> Expr:
    """The first element of a vector with that number."""
    return reference if lanes == 1 else multiply(reference, const(lanes, reference.type))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadValues(DiagramBlock):
    """The value of a tensor at every reference; in lanes, a reference is the number of a vector."""

    kind = BlockKind.ARRAY

    tensor: str
    lanes: int = 1

    def meaning(self, known: Known, references: Lists) -> tuple[Nested, ...]:
        values = known.values(self.tensor)
        if self.lanes > 1:
            values = values.reshape(-1, self.lanes)
        loaded = each(lambda at: None if at is None else values[at], references.depth, references)
        return (loaded,)

    def place(self, graph: Placing, references: Stream) -> tuple[Stream, ...]:
        block = ArrayLoad(values=graph.values_of(self.tensor), lanes=self.lanes)
        return graph.streams.put(block, f"load_{self.tensor}", references)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreValues(DiagramBlock):
    """Every value of the result at its reference; the others stay zero."""

    kind = BlockKind.ARRAY

    tensor: str

    def meaning(self, known: Known, references: Lists, values: Lists) -> tuple[Nested, ...]:
        found: list[tuple[int, Any]] = []
        each(lambda at, one: found.append((at, one)), values.depth, references, values)
        known.store(found)
        return ()

    def place(self, graph: Placing, references: Stream, values: Stream) -> tuple[Stream, ...]:
        block = ArrayStore(values=graph.values_of(self.tensor, written=True))
        return graph.streams.put(block, f"store_{self.tensor}", references, values)
