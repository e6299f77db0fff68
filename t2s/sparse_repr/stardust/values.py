"""Expressions of index notation in patterns: operands are read where the expression is computed."""

from __future__ import annotations

from collections.abc import Iterator

from t2s.core.expr import Expr, Select, apply, conjunction, const
from t2s.core.ops import Op
from t2s.sparse_repr.notation.ir import Access, Combine, Expression, Negative, Number
from t2s.sparse_repr.stardust.emitter import is_there
from t2s.sparse_repr.stardust.operands import PatternOperands
from t2s.sparse_repr.stardust.scope import PatternScope


def lower_value(value: Expression, scope: PatternScope, operands: PatternOperands) -> Expr:
    """The value of an expression where all its variables have coordinates."""
    return _ValueLowering(scope, operands).value(value)


class _ValueLowering:
    def __init__(self, scope: PatternScope, operands: PatternOperands) -> None:
        self.scope, self.operands = scope, operands
        self.read: dict[Access, Expr] = {}

    def value(self, value: Expression) -> Expr:
        match value:
            case Number(value=number):
                return const(number, self.operands.type)
            case Negative(value=inner):
                return apply(Op.NEGATE, self.value(inner))
            case Access():
                return self.operand(value)
            case Combine(operator=Op.MULTIPLY, left=left, right=right):
                product = apply(Op.MULTIPLY, self.value(left), self.value(right))
                return self.where_there(product, value)
            case Combine(operator=operator, left=left, right=right):
                return apply(operator, self.value(left), self.value(right))
            case _:
                raise TypeError("sums are loops in concrete index notation")

    def operand(self, access: Access) -> Expr:
        scope = self.scope
        if access.tensor in scope.scalars:
            return scope.scalars[access.tensor]
        if access not in self.read:
            state = scope.states.get(access)
            self.read[access] = self.operands.value(access, state, scope.coordinates)
        return self.read[access]

    def where_there(self, product: Expr, value: Combine) -> Expr:
        """A product of floats is 0 where a factor is not stored, whatever the others are."""
        if not self.operands.type.is_float:
            return product
        there = conjunction(*(is_there(one) for one in self.optional(value)))
        if there is None:
            return product
        zero = const(0.0, product.type)
        return Select(condition=there, if_true=product, if_false=zero, type=product.type)

    def optional(self, value: Expression) -> Iterator[Expr]:
        """The positions of direct factors that may be nowhere."""
        match value:
            case Combine(operator=Op.MULTIPLY, left=left, right=right):
                yield from self.optional(left)
                yield from self.optional(right)
            case Negative(value=inner):
                yield from self.optional(inner)
            case Access():
                state = self.scope.states.get(value)
                if state is not None and state.optional:
                    yield state.position
