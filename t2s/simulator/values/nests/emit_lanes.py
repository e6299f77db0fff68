"""Expressions of several firings at once: a vector register holds one lane of all of them.

A value with ``L`` lanes is ``L`` LLVM values.  Each is a vector over the firings of a block, or a
scalar where it is the same in all of them.  The lanes of one firing never meet in a register, so
``ReduceLanes`` needs no shuffles: its tree is a tree of vector operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Broadcast,
    Cast,
    Const,
    Expr,
    Index,
    Insert,
    LaneNumbers,
    Local,
    Parameter,
    ReduceLanes,
    Select,
)
from t2s.core.types import Type
from t2s.simulator.emit.builder import Builder
from t2s.simulator.emit.casts import convert
from t2s.simulator.emit.expressions import ExpressionEmitter
from t2s.simulator.emit.llvm import Value, integer
from t2s.simulator.emit.representation import constant, register_type


class LaneEmitter:
    """Emits single lanes of expressions for ``width`` firings.

    ``names`` holds indices and parameters, ``locals`` the lanes of each local.
    """

    def __init__(
        self,
        builder: Builder,
        names: Mapping[str, Value],
        locals: Mapping[str, Sequence[Value]],
        scalars: ExpressionEmitter,
        width: int,
    ) -> None:
        self._builder = builder
        self._names = names
        self._locals = locals
        self._scalars = scalars
        self._width = width

    def emit(self, expr: Expr) -> list[Value]:
        """All lanes."""
        return [self.lane(expr, lane) for lane in range(expr.type.lanes)]

    def lane(self, expr: Expr, lane: int) -> Value:
        """One lane."""
        builder, scalar = self._builder, expr.type.scalar
        match expr:
            case Const(value=value):
                return constant(builder, value, scalar)
            case Index(name=name) | Parameter(name=name):
                return self._names[name]
            case Local(name=name):
                return self._locals[name][lane]
            case Apply(operator=operator, operands=operands):
                values = self._equal([self.lane(operand, lane) for operand in operands])
                type = self._typed(operands[0].type.scalar, values[0])
                return self._scalars.apply(operator, type, values)
            case Select(condition=condition, if_true=if_true, if_false=if_false):
                chosen = self.lane(condition, lane if condition.type.lanes > 1 else 0)
                sides = [self.lane(if_true, lane), self.lane(if_false, lane)]
                wide = self._is_wide(chosen)
                sides = [self.widened(side) for side in sides] if wide else self._equal(sides)
                return builder.select(chosen, *sides)
            case Cast(value=value):
                operand = self.lane(value, lane)
                source = self._typed(value.type.scalar, operand)
                return convert(builder, operand, source, scalar.with_lanes(source.lanes))
            case Broadcast(value=value):
                return self.lane(value, 0)
            case LaneNumbers():
                return integer(lane, register_type(scalar))
            case ReduceLanes(value=value):
                return self._reduced(expr, value.type.lanes)
            case Insert(vector=vector, lane=at, value=value):
                here = self._scalars_equal(self.lane(at, 0), at.type, lane)
                sides = self._equal([self.lane(value, 0), self.lane(vector, lane)])
                if self._is_wide(here):
                    sides = [self.widened(side) for side in sides]
                return builder.select(here, *sides)
        raise InternalError(f"{expr.__class__.__name__} in the body of a PE")

    def widened(self, value: Value) -> Value:
        """A value as a vector over the firings."""
        return value if self._is_wide(value) else self._builder.splat(value, self._width)

    def _reduced(self, reduce: ReduceLanes, lanes: int) -> Value:
        """The tree of ``core.expr.reduce_lanes``, depth first, so that few values wait."""
        counts = [lanes]
        while counts[-1] > 1:
            counts.append(counts[-1] // 2 + counts[-1] % 2)

        def node(level: int, at: int) -> Value:
            if level == 0:
                return self.lane(reduce.value, at)
            if 2 * at + 1 >= counts[level - 1]:
                return node(level - 1, 2 * at)
            pair = self._equal([node(level - 1, 2 * at), node(level - 1, 2 * at + 1)])
            type = self._typed(reduce.type, pair[0])
            return self._scalars.apply(reduce.operator, type, pair)

        return node(len(counts) - 1, 0)

    def _scalars_equal(self, value: Value, type: Type, number: int) -> Value:
        wanted = integer(number, value.type)
        return self._builder.icmp_signed("==", value, wanted)

    def _equal(self, values: list[Value]) -> list[Value]:
        """All of them vectors if one is."""
        if not any(self._is_wide(value) for value in values):
            return values
        return [self.widened(value) for value in values]

    def _is_wide(self, value: Value) -> bool:
        return value.type.lanes > 0

    def _typed(self, scalar: Type, value: Value) -> Type:
        return scalar.with_lanes(self._width if self._is_wide(value) else 1)


def transposed(builder: Builder, rows: list[Value]) -> list[Value]:
    """From a vector of lanes for each firing to a vector of firings for each lane.

    There are as many firings, and lanes, as a power of two, and two at least.
    """
    firings, lanes = len(rows), rows[0].type.lanes
    vectors = rows
    while vectors[0].type.lanes < firings:
        vectors = [
            _joined(builder, *pair) for pair in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    while vectors[0].type.lanes > firings:
        half = vectors[0].type.lanes // 2
        vectors = [
            _picked(builder, vector, vector, list(range(first, first + half)))
            for vector in vectors
            for first in (0, half)
        ]
    low = [n // 2 + firings * (n % 2) for n in range(firings)]
    high = [at + firings // 2 for at in low]
    for _ in range((firings - 1).bit_length()):
        half = len(vectors) // 2
        pairs = list(zip(vectors[:half], vectors[half:], strict=True))
        vectors = [_picked(builder, *pair, lanes) for pair in pairs for lanes in (low, high)]
    if len(vectors) != lanes:
        raise InternalError("a block was not transposed")
    return vectors


def _joined(builder: Builder, left: Value, right: Value) -> Value:
    return _picked(builder, left, right, list(range(2 * left.type.lanes)))


def _picked(builder: Builder, left: Value, right: Value, lanes: list[int]) -> Value:
    return builder.shuffle_vector(left, right, lanes)
