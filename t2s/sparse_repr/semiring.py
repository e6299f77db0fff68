"""Semirings: the meaning of ``+``, ``*`` and sums, and the value where nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import OPERATORS, Array, Op, Operands
from t2s.core.types import Type
from t2s.core.walk import Term

SAMPLES = (0.5, 1.0, 2.0, 3.0)
"""Values at which the laws of a semiring are tried: those of max-times hold from zero on only."""

_CHECKED_AT_ONCE = 1 << 20
"""Values that are checked at once, so that the check needs no memory of their size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Semiring(Term):
    """``add`` for sums, ``multiply`` for products, and the ``zero`` of what is not stored.

    ``add`` is associative and commutative; ``zero`` is neutral for it and annihilates products.
    """

    add: Op
    multiply: Op
    zero: float | int

    def operator(self, written: Op) -> Op:
        """The operator that ``+`` or ``*`` stands for; other operators stay the same."""
        return {Op.ADD: self.add, Op.MULTIPLY: self.multiply}.get(written, written)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedNumber(Term):
    """A number in every type that can hold it; constants are rounded or wrap around in it."""

    by_type: tuple[tuple[Type, Any], ...]

    def of(self, kind: np.dtype[Any]) -> Any:
        """The number in a numpy type; ``KeyError`` if that cannot hold it."""
        return {type.numpy: number for type, number in self.by_type}[kind]


def make_semiring(add: Op | str, multiply: Op | str, zero: float | int) -> Semiring:
    """A semiring of operators or their spellings: ``make_semiring("min", "+", math.inf)``.

    Raises ``UserError`` if one of its laws does not hold at positive numbers.
    """
    if isinstance(zero, bool) or not isinstance(zero, int | float | np.integer | np.floating):
        raise UserError(
            "the zero of a semiring is a number",
            location=user_location(),
            expected="such as 0 or math.inf",
            given=repr(zero),
        )
    try:
        if not isinstance(add, Op | str) or not isinstance(multiply, Op | str):
            raise ValueError
        semiring = Semiring(add=Op(add), multiply=Op(multiply), zero=zero)
    except ValueError:
        raise UserError(
            "a semiring is made of operators of two numbers",
            location=user_location(),
            expected="such as '+', '*', 'min' or 'max'",
            given=f"{add} and {multiply}",
        ) from None
    broken = _broken_law(semiring)
    if broken is not None:
        raise UserError(
            f"this is not a semiring: {broken}",
            location=user_location(),
            expected="a sum in any order, and a zero that it leaves out and a product keeps",
            given=f"{semiring.add.value}, {semiring.multiply.value} and zero {zero}",
        )
    return semiring


def check_members(ring: Semiring, values: Array, name: str) -> None:
    """Raise ``UserError`` for a value outside of the semiring, for which zero is not neutral.

    0 max -1 is 0, so max-times has no negative numbers: a sum over stored elements and a sum over
    all elements would differ.
    """
    add, zero = OPERATORS[ring.add].evaluate, np.asarray(ring.zero).astype(values.dtype)
    flat = values.reshape(-1)
    for first in range(0, flat.size, _CHECKED_AT_ONCE):
        some = flat[first : first + _CHECKED_AT_ONCE]
        wrong = some[(add(zero, some) != some) & (some == some)]
        if wrong.size:
            raise UserError(
                f"{name} has a value outside of the semiring",
                location=user_location(),
                expected=f"values v for which {ring.zero} {ring.add.value} v is v",
                given=f"{wrong[0]}: {ring.zero} {ring.add.value} {wrong[0]} is {ring.zero}",
            )


def _broken_law(ring: Semiring) -> str | None:
    add, multiply = OPERATORS[ring.add], OPERATORS[ring.multiply]
    for operator, info in ((ring.add, add), (ring.multiply, multiply)):
        if info.arity != 2 or info.comparison or info.operands is not Operands.NUMBER:
            return f"{operator.value} is not an operator from two numbers to one"
    if not (add.associative and add.commutative):
        return f"{ring.add.value} depends on the order of what is added"
    for sample in SAMPLES:
        both = np.array([ring.zero, sample])
        if (add.evaluate(both, both[::-1]) != sample).any():
            return f"{ring.zero} {ring.add.value} {sample} is not {sample}"
        product = multiply.evaluate(both, both[::-1])
        if (product != ring.zero).any():
            return f"{ring.zero} {ring.multiply.value} {sample} is {product[0]}, not {ring.zero}"
    return None


PLUS_TIMES = Semiring(add=Op.ADD, multiply=Op.MULTIPLY, zero=0)
OR_AND = Semiring(add=Op.MAXIMUM, multiply=Op.MINIMUM, zero=0)
MIN_PLUS = Semiring(add=Op.MINIMUM, multiply=Op.ADD, zero=inf)
MAX_PLUS = Semiring(add=Op.MAXIMUM, multiply=Op.ADD, zero=-inf)
MAX_TIMES = Semiring(add=Op.MAXIMUM, multiply=Op.MULTIPLY, zero=0)
MIN_MAX = Semiring(add=Op.MINIMUM, multiply=Op.MAXIMUM, zero=inf)
