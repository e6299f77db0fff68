"""Arithmetic on streams of values (Definition 3.6): ALUs, and the diagram blocks that use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from typing import Any

import numpy as np

from t2s.core.expr import (
    Const,
    Expr,
    ReduceLanes,
    all_hold,
    any_holds,
    apply,
    equals,
    select,
    spread,
    zero,
)
from t2s.core.ops import OPERATORS, Op
from t2s.graph.build import load, put, rule, store, when
from t2s.graph.graph import StreamKind, StreamType, Tensor
from t2s.graph.nodes import EMPTY, Role
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind, Draft, StreamBlock, ends, pass_done
from t2s.sparse_repr.blocks.expressions import Formula, LaneView, cast, flat
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each
from t2s.sparse_repr.functions import Operator, evaluate
from t2s.sparse_repr.semiring import TypedNumber


@dataclass(frozen=True, slots=True, kw_only=True)
class Alu(StreamBlock):
    """An ALU: ``function`` of the operands, element by element.

    The function maps one expression for each operand to one, so it works for any semiring.  An
    operand N stands for its value in ``missing`` (default: zero), unless ``lost``, a predicate on
    which operands are N, says that there is nothing to compute: then the output is N, or
    ``instead``.  All operands have the same shape.  A unit that is not pipelined has an
    ``interval`` between firings, and a ``latency`` besides that of its operators, in cycles.
    Ports: ``in0``, ``in1``, ...; ``val``.
    """

    kind = BlockKind.COMPUTE
    role = Role.COMPUTE

    function: Callable[..., Expr]
    missing: tuple[Expr, ...] | None = None
    lost: Callable[..., Expr] | None = None
    instead: Expr | None = None
    interval: int = 1
    latency: int = 0

    def draft(self, draft: Draft, *operands: StreamType) -> None:
        draft.takes(interval=self.interval, latency=self.latency)
        inputs = [draft.input(f"in{n}", stream) for n, stream in enumerate(operands)]
        zeros = self.missing or [zero(stream.element) for stream in operands]
        values = [
            select(i.is_value, i.value, cast(value, i.stream.element))
            for i, value in zip(inputs, zeros, strict=True)
        ]
        result = self.function(*values)
        val = draft.output("val", result.type, StreamKind.VALUE, operands[0].nesting)
        nothing = put(val, tag=EMPTY) if self.instead is None else put(val, self.instead)
        empty = (
            []
            if self.lost is None
            else [all_hold(*(i.is_item for i in inputs), self.lost(*(i.is_empty for i in inputs)))]
        )
        present = all_hold(*(i.is_item for i in inputs))
        draft.mode(
            "run",
            *(
                when(condition, rule("nothing", "run", takes=inputs, puts=[nothing]))
                for condition in empty
            ),
            when(present, rule("compute", "run", takes=inputs, puts=[put(val, result)])),
            *ends(inputs, val),
            needs=inputs,
            expected="operands of one shape",
        )


@dataclass(frozen=True, slots=True)
class _Constant(Formula):
    """A constant function."""

    value: Const

    def __call__(self, *operands: Expr) -> Expr:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(DiagramBlock):
    """A constant for every token."""

    kind = BlockKind.COMPUTE

    value: float | int

    def meaning(self, known: Known, by: Lists) -> tuple[Nested, ...]:
        constant = known.constant(self.value)
        return (each(lambda _: constant, by.depth, by),)

    def place(self, graph: Placing, by: Stream) -> tuple[Stream, ...]:
        block = Alu(function=_Constant(graph.constant(self.value)))
        return graph.streams.put(block, "constant", by)


class EmptyOperand(Enum):
    """For which empty operands (N, not stored) an operator has no result.

    ``NEVER``: N counts as a number.  A product has no result if ``ANY`` operand is N, a sum if
    ``ALL`` are, a quotient if the ``FIRST`` one is, and a ``CHOICE`` if the last one is and another
    one.
    """

    NEVER = "never"
    ANY = "any"
    ALL = "all"
    FIRST = "first"
    CHOICE = "choice"


def _first(*operands: Expr) -> Expr:
    return operands[0]


def _last_and_another(*operands: Expr) -> Expr:
    return all_hold(any_holds(*operands[:-1]), operands[-1])


@dataclass(frozen=True, slots=True)
class _Applied(Formula):
    """An operator on constants, and on operands where the constant is ``None``, by lane."""

    operator: Operator
    constants: tuple[Const | None, ...]
    lanes: int
    views: tuple[LaneView | None, ...]

    def __call__(self, *operands: Expr) -> Expr:
        if self.views:
            pairs = zip(self.views, operands, strict=True)
            operands = tuple(o if view is None else view.of(o) for view, o in pairs)
        rest = iter(operands)
        full = [next(rest) if constant is None else constant for constant in self.constants]
        parts = [spread(operand, self.lanes) for operand in full]
        if isinstance(self.operator, Op):
            return apply(self.operator, *parts)
        return self.operator.expression(*parts)


_EVALUATED: dict[Op, Callable[..., Any]] = {
    Op.ADD: lambda a, b: a + b,
    Op.SUBTRACT: lambda a, b: a - b,
    Op.MULTIPLY: lambda a, b: a * b,
    Op.DIVIDE: lambda a, b: np.divide(a, b),
    Op.NEGATE: lambda a: -a,
    Op.MINIMUM: OPERATORS[Op.MINIMUM].evaluate,
    Op.MAXIMUM: OPERATORS[Op.MAXIMUM].evaluate,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute(DiagramBlock):
    """An operator, function or choice on streams, and on a constant for each of ``constants``.

    Streams take the places of constants that are ``None``, in order; their N stand for the numbers
    in ``absent``, or for zero.  Where there is no result the output is N if ``optional``, else
    zero.  Streams of blocks are seen by ``views``, so that their lanes are those of the result.
    """

    kind = BlockKind.COMPUTE

    operator: Operator
    constants: tuple[float | int | None, ...]
    absent: tuple[TypedNumber | None, ...] = ()
    lanes: int = 1
    lost: EmptyOperand = EmptyOperand.NEVER
    optional: bool = False
    views: tuple[LaneView | None, ...] = ()

    def meaning(self, known: Known, *operands: Lists) -> tuple[Nested, ...]:
        zero = known.zero(self.lanes)
        absent = [
            zero if constant is None else np.full_like(zero, constant.of(zero.dtype))[()]
            for constant in self.absent or [None] * len(operands)
        ]
        views = self.views or (None,) * len(operands)

        def apply(*tokens: Any) -> Any:
            empty = [token is None for token in tokens]
            nothing = {
                EmptyOperand.NEVER: False,
                EmptyOperand.ANY: any(empty),
                EmptyOperand.ALL: all(empty),
                EmptyOperand.FIRST: empty[0],
                EmptyOperand.CHOICE: any(empty[:-1]) and empty[-1],
            }
            if nothing[self.lost]:
                return None if self.optional else zero
            present = (
                default if token is None else token if view is None else flat(view.array(token))
                for token, default, view in zip(tokens, absent, views, strict=True)
            )
            full = [
                next(present) if default is None else known.constant(default)
                for default in self.constants
            ]
            with np.errstate(all="ignore"):
                if isinstance(self.operator, Op):
                    return _EVALUATED[self.operator](*full)
                return evaluate(self.operator, *full)[()]

        return (each(apply, operands[0].depth, *operands),)

    def place(self, graph: Placing, *operands: Stream) -> tuple[Stream, ...]:
        constants = tuple(
            None if constant is None else graph.constant(constant) for constant in self.constants
        )
        lost = {
            EmptyOperand.NEVER: None,
            EmptyOperand.ANY: any_holds,
            EmptyOperand.ALL: all_hold,
            EmptyOperand.FIRST: _first,
            EmptyOperand.CHOICE: _last_and_another,
        }[self.lost]
        absent = self.absent or [None] * len(operands)
        block = Alu(
            function=_Applied(self.operator, constants, self.lanes, self.views),
            missing=tuple(
                graph.zero(lanes)
                if constant is None
                else spread(graph.constant(constant.of(graph.values.numpy).item()), lanes)
                for constant, lanes in zip(
                    absent, (o.type.element.lanes for o in operands), strict=True
                )
            ),
            lost=lost,
            instead=None if self.optional or lost is None else graph.zero(self.lanes),
        )
        return graph.streams.put(block, self.operator.name.lower(), *operands)


@dataclass(frozen=True, slots=True)
class _InLanes(Formula):
    """A value repeated over lanes; with one lane, the lanes of a vector combined by an operator."""

    operator: Op
    lanes: int

    def __call__(self, *operands: Expr) -> Expr:
        (value,) = operands
        if self.lanes > 1:
            return spread(value, self.lanes)
        return ReduceLanes(operator=self.operator, value=value, type=value.type.scalar)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumLanes(DiagramBlock):
    """The sum of the lanes of every vector, as a balanced tree."""

    kind = BlockKind.COMPUTE

    def meaning(self, known: Known, vectors: Lists) -> tuple[Nested, ...]:
        add, zero = OPERATORS[known.semiring.add].evaluate, known.zero(vectors.lanes)
        summed = each(
            lambda vector: reduce(add, zero if vector is None else vector), vectors.depth, vectors
        )
        return (summed,)

    def place(self, graph: Placing, vectors: Stream) -> tuple[Stream, ...]:
        return _placed_lanes(graph, vectors, 1, "sum_lanes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(DiagramBlock):
    """Every value in all lanes of a vector."""

    kind = BlockKind.COMPUTE

    lanes: int

    def meaning(self, known: Known, values: Lists) -> tuple[Nested, ...]:
        zero = known.zero(values.lanes)
        vectors = each(
            lambda value: np.full(self.lanes, zero if value is None else value),
            values.depth,
            values,
        )
        return (vectors,)

    def place(self, graph: Placing, values: Stream) -> tuple[Stream, ...]:
        return _placed_lanes(graph, values, self.lanes, "spread")


def _placed_lanes(graph: Placing, values: Stream, lanes: int, name: str) -> tuple[Stream, ...]:
    missing = (graph.zero(values.type.element.lanes),)
    block = Alu(function=_InLanes(graph.semiring.add, lanes), missing=missing)
    return graph.streams.put(block, name, values)


# Arrays of values (Definition 3.5) and arithmetic on streams of them (Definition 3.6).


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayLoad(StreamBlock):
    """The element of ``values`` at each reference; with lanes, vector number ``ref``.

    N gives ``missing``, or N if that is ``None``.  Ports: ``ref``; ``val``.
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
        lost = put(val, tag=EMPTY) if self.missing is None else put(val, self.missing)
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
    """Store each value at its reference; the counterpart of ``ArrayLoad``.

    N as the reference or the value stores nothing.  Ports: ``ref``, ``val``.
    """

    kind = BlockKind.ARRAY
    role = Role.STORE

    values: Tensor

    def draft(self, draft: Draft, reference: StreamType, value: StreamType) -> None:
        ref, val = draft.input("ref", reference), draft.input("val", value)
        pair = [ref, val]
        stored = store(self.values, first_of(ref.value, value.element.lanes), val.value)
        draft.mode(
            "run",
            when(ref.is_value & val.is_value, rule("store", "run", takes=pair, body=[stored])),
            when(ref.is_item & val.is_item, rule("nothing", "run", takes=pair)),
            when(ref.is_stop & equals(ref.tag, val.tag), rule("stop", "run", takes=pair)),
            when(ref.is_done & val.is_done, rule("done", None, takes=pair)),
            needs=pair,
            expected="a value for each reference, and the same stops",
        )


def first_of(reference: Expr, lanes: int) -> Expr:
    """The index of the first element of a vector, from the number of the vector."""
    return reference if lanes == 1 else reference * lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadValues(DiagramBlock):
    """The value of a tensor at every reference; with lanes, a reference is the number of a
    vector.
    """

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
    """Store every value of the result at its reference; all others are zero."""

    kind = BlockKind.ARRAY

    tensor: str

    def meaning(self, known: Known, references: Lists, values: Lists) -> tuple[Nested, ...]:
        stores: list[tuple[int, Any]] = []
        each(lambda at, value: stores.append((at, value)), values.depth, references, values)
        known.store(stores)
        return ()

    def place(self, graph: Placing, references: Stream, values: Stream) -> tuple[Stream, ...]:
        block = ArrayStore(values=graph.values_of(self.tensor, written=True))
        return graph.streams.put(block, f"store_{self.tensor}", references, values)
