"""The meaning of what is not stored, for every evaluation and lowering of index notation.

A product is zero where a factor is not stored, and a quotient where its dividend is not, even if
other operands are infinite or NaN there.  Other operators are evaluated by the operator table, with
the zero of the semiring for elements that are not stored.  ``stored(f(x))`` is f where x is stored,
and zero elsewhere.

``elsewhere`` says what an expression is where its operands store nothing, which decides where loops
have to look: ``max(A(i,j), 0)`` is zero wherever A stores nothing, so they visit what A stores;
``max(A(i,j), 1)`` is one there, so they visit everything.  ``StoredValues`` computes expressions by
these rules, on whatever stands for values and conditions: arrays, numbers, or expressions of code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, reduce
from typing import Any, Generic, TypeVar, assert_never

import numpy as np

from t2s.core.ops import Op, accepts
from t2s.core.types import Type
from t2s.sparse_repr.functions import Choosing, Operator, evaluate
from t2s.sparse_repr.notation.ir import (
    Access,
    Choice,
    Combine,
    Expression,
    Extent,
    Negative,
    Number,
    OfRow,
    Over,
    Sum,
    Unary,
)
from t2s.sparse_repr.notation.types import TYPES, constant, holds
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring, TypedNumber

Operand = TypeVar("Operand")


def annihilators(operator: Op, left: Operand, right: Operand) -> tuple[Operand, ...]:
    """The operands that make the result zero where they are not stored: factors, or a dividend."""
    return {Op.MULTIPLY: (left, right), Op.DIVIDE: (left,)}.get(operator, ())


class Rest(Enum):
    """What an expression may be apart from a known number: the semiring's zero, or anything."""

    ZERO = "zero"
    UNKNOWN = "unknown"


def elsewhere(
    value: Expression, variable: str | None = None, semiring: Semiring = PLUS_TIMES
) -> Rest | TypedNumber:
    """What an expression is where none of its operands stores anything.

    With a ``variable``: where those with the variable have no coordinate of it, and the others have
    any value.
    """
    number = constant(value, semiring)
    if number is not None:
        return _typed(number)
    match value:
        case Access(variables=variables):
            return Rest.ZERO if variable is None or variable in variables else Rest.UNKNOWN
        case Number(value=number):
            return _typed(number)
        case Negative(value=inner):
            return _applied(Op.NEGATE, (elsewhere(inner, variable, semiring),), semiring)
        case Unary(function=function, value=inner, stored=stored):
            operand = elsewhere(inner, variable, semiring)
            if stored and operand is Rest.ZERO:
                return Rest.ZERO
            return _applied(function, (operand,), semiring)
        case Choice(condition=condition, value=inner, otherwise=otherwise):
            chosen, rest = (
                _applied(Choosing.WHERE, (_typed(1), part, part), semiring)  # 0 is zero
                for part in (elsewhere(part, variable, semiring) for part in (inner, otherwise))
            )
            decides = elsewhere(condition, variable, semiring)
            if decides is Rest.ZERO or chosen == rest:
                return rest
            if decides is Rest.UNKNOWN:
                return Rest.UNKNOWN
            return _applied(Choosing.WHERE, (decides, chosen, rest), semiring)
        case Sum(value=inner):
            term = elsewhere(inner, variable, semiring)
            return term if term is Rest.ZERO else Rest.UNKNOWN
        case Combine(operator=operator, left=left, right=right):
            one = elsewhere(left, variable, semiring)
            other = elsewhere(right, variable, semiring)
            if Rest.ZERO in annihilators(operator, one, other):
                return Rest.ZERO
            return _applied(semiring.operator(operator), (one, other), semiring)
        case Extent():
            return Rest.UNKNOWN
        case Over(semiring=other, value=inner):
            return elsewhere(inner, variable, other)
        case OfRow():
            raise ValueError("functions of rows are statements of a program")
        case _:
            assert_never(value)


def vanishes(value: Expression, semiring: Semiring = PLUS_TIMES) -> bool:
    """Whether an expression is zero where none of its operands stores anything."""
    return elsewhere(value, None, semiring) is Rest.ZERO


def is_strict(value: Combine, semiring: Semiring = PLUS_TIMES) -> bool:
    """Whether a product or a quotient is zero where a factor, or the dividend, is not stored."""
    sides = annihilators(value.operator, value.left, value.right)
    return any(vanishes(side, semiring) for side in sides)


def _typed(number: float | int) -> TypedNumber:
    return _typed_as(number, repr(number))


@lru_cache(maxsize=256)
def _typed_as(number: float | int, _: str) -> TypedNumber:
    """The number in all types; by its text too, since 0 and -0.0 are equal."""
    types = (type for type in TYPES if holds(np.asarray(number), type))
    return TypedNumber(by_type=tuple((type, np.asarray(number, type.numpy)[()]) for type in types))


def _applied(
    operator: Operator, operands: tuple[Rest | TypedNumber, ...], semiring: Semiring
) -> Rest | TypedNumber:
    """An operator on numbers, in every type: zero only if it is that in all of them."""
    if Rest.UNKNOWN in operands:
        return Rest.UNKNOWN
    if all(operand is Rest.ZERO for operand in operands):
        return _of_zeros(operator, len(operands), semiring)
    zero = _typed(semiring.zero)
    numbers = [zero if operand is Rest.ZERO else operand for operand in operands]
    return _of_numbers(operator, numbers, semiring)


@lru_cache(maxsize=256)
def _of_zeros(operator: Operator, count: int, semiring: Semiring) -> Rest | TypedNumber:
    """An operator on zeros alone; cached, because every merge lattice asks for it."""
    return _of_numbers(operator, [_typed(semiring.zero)] * count, semiring)


def _of_numbers(
    operator: Operator, operands: Sequence[Rest | TypedNumber], semiring: Semiring
) -> Rest | TypedNumber:
    results: list[tuple[Type, Any]] = []
    for type in TYPES:
        numbers = [
            dict(operand.by_type).get(type)
            for operand in operands
            if isinstance(operand, TypedNumber)
        ]
        defined = accepts(operator, type) if isinstance(operator, Op) else operator.accepts(type)
        if defined and all(number is not None for number in numbers):
            with np.errstate(all="ignore"):
                result = evaluate(operator, *numbers)
            results.append((type, np.asarray(result, type.numpy)[()]))
    if results and all(number == semiring.zero for _, number in results):
        return Rest.ZERO
    return TypedNumber(by_type=tuple(results))


Value = TypeVar("Value")
Where = TypeVar("Where")


@dataclass(frozen=True, slots=True)
class StoredValue(Generic[Value, Where]):
    """A value, and where any of its operands is stored; ``None`` means everywhere.

    It is there where that is so, and everywhere unless it ``vanishes`` elsewhere.
    """

    value: Value
    stored: Where | None
    vanishes: bool = True

    @property
    def there(self) -> Where | None:
        """Where there is a value."""
        return self.stored if self.vanishes else None


class StoredValues(ABC, Generic[Value, Where]):
    """Computes expressions; a subclass says what a value and a condition ``Where`` are.

    ``never`` is the condition that holds nowhere.
    """

    semiring: Semiring
    never: Where

    @abstractmethod
    def number(self, number: float | int) -> Value:
        """A constant."""

    @abstractmethod
    def read(self, access: Access) -> StoredValue[Value, Where]:
        """An operand; the zero of the semiring where it stores nothing."""

    @abstractmethod
    def apply(self, operator: Operator, *operands: Value) -> Value:
        """An operator, already that of the semiring, a function, or a choice."""

    @abstractmethod
    def zero_unless(self, where: Where, value: Value) -> Value:
        """The value where a condition holds, and zero elsewhere."""

    @abstractmethod
    def both(self, one: Where, other: Where) -> Where:
        """Where both conditions hold."""

    @abstractmethod
    def either(self, one: Where, other: Where) -> Where:
        """Where one of two conditions holds."""

    def summed(self, total: Sum) -> StoredValue[Value, Where]:
        """A sum.  Concrete index notation has loops in place of it."""
        raise ValueError("sums are loops in concrete index notation")

    def value(self, value: Expression) -> StoredValue[Value, Where]:
        """The value of an expression, and where anything of it is stored."""
        match value:
            case Access():
                return self.read(value)
            case Sum():
                return self.summed(value)
        number = constant(value, self.semiring)
        if number is not None:
            return StoredValue(self.number(number), self.never, vanishes=False)
        match value:
            case Negative(value=inner):
                operand = self.value(inner)
                return replace(operand, value=self.apply(Op.NEGATE, operand.value))
            case Unary(function=function, value=inner, stored=stored):
                operand = self.value(inner)
                result = self.apply(function, operand.value)
                if not stored:
                    return StoredValue(result, operand.stored, self.vanishes(value))
                if operand.there is not None:
                    result = self.zero_unless(operand.there, result)
                return StoredValue(result, operand.there)
            case Combine(operator=operator, left=left, right=right):
                return self._combined(value, operator, self.value(left), self.value(right))
            case Choice(condition=condition, value=inner, otherwise=other):
                parts = self.value(condition), self.value(inner), self.value(other)
                return self._chosen(value, *parts)
        raise TypeError(f"{value} has no operator")

    def _combined(
        self,
        term: Combine,
        operator: Op,
        left: StoredValue[Value, Where],
        right: StoredValue[Value, Where],
    ) -> StoredValue[Value, Where]:
        result = self.apply(self.semiring.operator(operator), left.value, right.value)
        strict = annihilators(operator, left, right)
        if any(side.vanishes for side in strict):
            needed = [side.there for side in strict if side.there is not None]
            if not needed:
                return StoredValue(result, None)
            presence = reduce(self.both, needed)
            return StoredValue(self.zero_unless(presence, result), presence)
        return StoredValue(result, self._any_of(left.stored, right.stored), self.vanishes(term))

    def _chosen(
        self,
        term: Choice,
        condition: StoredValue[Value, Where],
        value: StoredValue[Value, Where],
        otherwise: StoredValue[Value, Where],
    ) -> StoredValue[Value, Where]:
        result = self.apply(Choosing.WHERE, condition.value, value.value, otherwise.value)
        if not (condition.vanishes and self.vanishes(term)):
            stored = self._any_of(self._any_of(condition.stored, value.stored), otherwise.stored)
            return StoredValue(result, stored, self.vanishes(term))
        needed = [part.there for part in (condition, value) if part.there is not None]
        chosen = reduce(self.both, needed) if needed else None
        return StoredValue(result, self._any_of(chosen, otherwise.stored))

    def vanishes(self, term: Combine | Unary | Choice) -> bool:
        """Whether an expression is zero where none of its operands stores anything."""
        return vanishes(term, self.semiring)

    def _any_of(self, one: Where | None, other: Where | None) -> Where | None:
        if one is None or other is None:
            return None
        if one is self.never or other is self.never:
            return other if one is self.never else one
        return self.either(one, other)
