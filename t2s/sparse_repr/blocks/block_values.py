"""Diagram blocks for values that are blocks: arranged, summed along axes, multiplied as matrices.

What works element by element works on all elements of a block at once.  A *matrix unit* is a
systolic array: of blocks of n x n it takes a pair every n cycles, and a product is complete after
``2*n - 1`` cycles, as in FuseFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from t2s.core.expr import Contract, Expr, ReduceLanes, ReduceRows, any_holds
from t2s.core.ops import OPERATORS, Op
from t2s.sparse_repr.blocks.alu import Alu
from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.expressions import Formula, LaneView, flat
from t2s.sparse_repr.blocks.lists import DiagramBlock, Known, Lists, Nested, Placing, each


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrangeBlock(DiagramBlock):
    """Every value with its lanes in another order, or repeated; N is zero."""

    kind = BlockKind.COMPUTE

    view: LaneView

    def meaning(self, known: Known, values: Lists) -> tuple[Nested, ...]:
        zero = known.zero(values.lanes)

        def arranged(value: Any) -> Any:
            return flat(self.view.array(zero if value is None else value))

        return (each(arranged, values.depth, values),)

    def place(self, graph: Placing, values: Stream) -> tuple[Stream, ...]:
        block = Alu(function=_Arranged(self.view), missing=(graph.zero(values.type.element.lanes),))
        return graph.streams.put(block, "arrange", values)


@dataclass(frozen=True, slots=True)
class _Arranged(Formula):
    view: LaneView

    def __call__(self, *operands: Expr) -> Expr:
        return self.view.of(operands[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class SumBlock(DiagramBlock):
    """The sums of the rows of every block, as balanced trees: N if that is ``optional``, or zero.

    ``view`` has the lanes of a row one after the other.
    """

    kind = BlockKind.COMPUTE

    view: LaneView
    rows: int
    optional: bool = False

    def meaning(self, known: Known, values: Lists) -> tuple[Nested, ...]:
        add, zero = OPERATORS[known.semiring.add].evaluate, known.zero(self.rows)

        def total(block: Any) -> Any:
            if block is None:
                return None if self.optional else zero
            columns = self.view.array(block).reshape(self.rows, -1).T
            return flat(reduce(add, columns))

        with np.errstate(all="ignore"):
            return (each(total, values.depth, values),)

    def place(self, graph: Placing, values: Stream) -> tuple[Stream, ...]:
        block = Alu(
            function=_RowSums(self.view, self.rows, graph.semiring.add),
            missing=(graph.zero(values.type.element.lanes),),
            lost=any_holds,
            instead=None if self.optional else graph.zero(self.rows),
        )
        return graph.streams.put(block, "sum_block", values)


@dataclass(frozen=True, slots=True)
class _RowSums(Formula):
    view: LaneView
    rows: int
    operator: Op

    def __call__(self, *operands: Expr) -> Expr:
        value, scalar = self.view.of(operands[0]), operands[0].type.scalar
        if self.rows == 1:
            return ReduceLanes(operator=self.operator, value=value, type=scalar)
        type = scalar.with_lanes(self.rows)
        return ReduceRows(operator=self.operator, value=value, type=type)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct(DiagramBlock):
    """A matrix unit: the product of two blocks, seen as matrices by ``left`` and ``right``.

    Where an operand is N there is no product: the result is N if ``optional``, else zero.
    """

    kind = BlockKind.COMPUTE

    left: LaneView
    right: LaneView
    rows: int
    inner: int
    columns: int
    optional: bool = False

    @property
    def longest(self) -> int:
        """The longest side of the matrices: the size of the array that multiplies them."""
        return max(self.rows, self.inner, self.columns)

    def meaning(self, known: Known, left: Lists, right: Lists) -> tuple[Nested, ...]:
        ring, zero = known.semiring, known.zero(self.rows * self.columns)
        add, multiply = (OPERATORS[o].evaluate for o in (ring.add, ring.operator(Op.MULTIPLY)))

        def product(one: Any, other: Any) -> Any:
            if one is None or other is None:
                return None if self.optional else zero
            rows = self.left.array(one).reshape(self.rows, self.inner)
            columns = self.right.array(other).reshape(self.inner, self.columns)
            products = (multiply(rows[:, [k]], columns[[k], :]) for k in range(self.inner))
            return flat(reduce(add, products))

        with np.errstate(all="ignore"):
            return (each(product, left.depth, left, right),)

    def place(self, graph: Placing, left: Stream, right: Stream) -> tuple[Stream, ...]:
        ring = graph.semiring
        operators = ring.add, ring.operator(Op.MULTIPLY)
        block = Alu(
            function=_Product(
                self.left, self.right, self.rows * self.columns, self.inner, operators
            ),
            missing=tuple(graph.zero(side.type.element.lanes) for side in (left, right)),
            lost=any_holds,
            instead=None if self.optional else graph.zero(self.rows * self.columns),
            interval=self.longest,
            latency=2 * self.longest - 1,
        )
        return graph.streams.put(block, "matrix_multiply", left, right)


@dataclass(frozen=True, slots=True)
class _Product(Formula):
    left: LaneView
    right: LaneView
    lanes: int
    inner: int
    operators: tuple[Op, Op]

    def __call__(self, *operands: Expr) -> Expr:
        add, multiply = self.operators
        left, right = (
            view.of(o) for view, o in zip((self.left, self.right), operands, strict=True)
        )
        type = operands[0].type.with_lanes(self.lanes)
        return Contract(
            add=add, multiply=multiply, left=left, right=right, inner=self.inner, type=type
        )
