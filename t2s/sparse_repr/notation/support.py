"""What an expression is where its operands store nothing: zero, another number, or not known.

That decides where it has to be looked at.  ``max(A(i,j), 0)`` is zero wherever A stores nothing,
so only what A stores is looked at; ``max(A(i,j), 1)`` is one there, so everything is.

What is not stored is neither multiplied nor divided: a product is zero where a factor is not
stored, and a quotient where its dividend is not, whatever the others are.  Other operators are
evaluated by the operator table, with the zero of the semiring in place of what is not stored.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, assert_never

import numpy as np

from t2s.core.ops import OPERATORS, Op, accepts
from t2s.core.types import Type
from t2s.sparse_repr.notation.ir import Access, Combine, Expression, Negative, Number, Sum
from t2s.sparse_repr.notation.types import TYPES, constant, holds
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring, TypedNumber


class Rest(Enum):
    """What there is apart from a number: the zero of what is not stored, or anything."""

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
        case Sum(value=inner):
            found = elsewhere(inner, variable, semiring)
            return found if found is Rest.ZERO else Rest.UNKNOWN
        case Combine(operator=operator, left=left, right=right):
            one = elsewhere(left, variable, semiring)
            other = elsewhere(right, variable, semiring)
            strict = {Op.MULTIPLY: (one, other), Op.DIVIDE: (one,)}.get(operator, ())
            if Rest.ZERO in strict:
                return Rest.ZERO
            return _applied(semiring.operator(operator), (one, other), semiring)
        case _:
            assert_never(value)


def vanishes(value: Expression, semiring: Semiring = PLUS_TIMES) -> bool:
    """Whether an expression is zero where none of its operands stores anything."""
    return elsewhere(value, None, semiring) is Rest.ZERO


def is_strict(value: Combine, semiring: Semiring = PLUS_TIMES) -> bool:
    """Whether a product or a quotient is zero where a factor, or the dividend, is not stored."""
    strict = {Op.MULTIPLY: (value.left, value.right), Op.DIVIDE: (value.left,)}
    return any(vanishes(side, semiring) for side in strict.get(value.operator, ()))


def _typed(number: float | int) -> TypedNumber:
    return _typed_as(number, repr(number))


@lru_cache(maxsize=256)
def _typed_as(number: float | int, _: str) -> TypedNumber:
    """The number in all types; by its text too, since 0 and -0.0 are equal."""
    given = np.asarray(number)
    held = ((type, np.asarray(number, type.numpy)[()]) for type in TYPES if holds(given, type))
    return TypedNumber(by_type=tuple(held))


def _applied(
    operator: Op, given: tuple[Rest | TypedNumber, ...], semiring: Semiring
) -> Rest | TypedNumber:
    """An operator on numbers, in every type: zero only if it is that in all of them."""
    if Rest.UNKNOWN in given:
        return Rest.UNKNOWN
    operands = [_typed(semiring.zero) if one is Rest.ZERO else one for one in given]
    made: list[tuple[Type, Any]] = []
    for type in TYPES:
        numbers = [dict(one.by_type).get(type) for one in operands if isinstance(one, TypedNumber)]
        if accepts(operator, type) and all(number is not None for number in numbers):
            with np.errstate(all="ignore"):
                found = OPERATORS[operator].evaluate(*numbers)
            made.append((type, np.asarray(found, type.numpy)[()]))
    if made and all(number == semiring.zero for _, number in made):
        return Rest.ZERO
    return TypedNumber(by_type=tuple(made))
