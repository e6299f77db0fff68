"""The meaning of index notation in numpy: dense, direct, the oracle of everything below.

A product is contracted by ``numpy.einsum``; anything else is computed on arrays with one axis for
each variable, and summed where the notation sums.

What is not stored is not multiplied: a product is there where all its factors are stored, and zero
elsewhere, also where a factor is infinite or NaN.  Sums, minima and maxima are there where one of
their terms is.  Quotients are there everywhere, and so are products with one in them; in these
what is not stored is a zero as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np

from t2s.core.ops import OPERATORS, Op
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
    is_finite,
    variables_of,
)
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.types import constant
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Array = np.ndarray[Any, Any]


def evaluate(
    assignment: Assignment,
    inputs: Mapping[str, Any],
    kind: np.dtype[Any],
    stored: Mapping[str, Array] | None = None,
) -> Array:
    """The result of an assignment for dense arrays by name, computed in one type.

    ``stored`` says of tensors where they store something; the others store everything.
    """
    arrays = {name: np.asarray(value, kind) for name, value in inputs.items()}
    extents = extents_of(assignment, {name: value.shape for name, value in arrays.items()})
    run = _Evaluation(arrays, dict(stored or {}), assignment.semiring, kind)
    with np.errstate(all="ignore"):
        found = run.value(assignment.value)
    target = assignment.result.variables
    value = _aligned(found.array, found.axes, target)
    shape = tuple(extents[name] for name in target)
    return np.array(np.broadcast_to(value, shape))


@dataclass(frozen=True, slots=True)
class _Found:
    """Values with an axis for each variable, and where there are any: a mask with the same axes."""

    array: Array
    axes: tuple[str, ...]
    there: Array

    def over(self, axes: tuple[str, ...]) -> _Found:
        """The same with the axes ``axes``."""
        array, there = (_aligned(one, self.axes, axes) for one in (self.array, self.there))
        return _Found(array, axes, there)


def _aligned(value: Array, axes: tuple[str, ...], target: tuple[str, ...]) -> Array:
    """The array with the axes ``target``; those that it does not have are of length one."""
    kept = [name for name in target if name in axes]
    value = value.transpose([axes.index(name) for name in kept])
    return value[tuple(slice(None) if name in axes else None for name in target)]


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """What an expression is evaluated on."""

    arrays: Mapping[str, Array]
    stored: Mapping[str, Array]
    semiring: Semiring
    kind: np.dtype[Any]

    def value(self, value: Expression) -> _Found:
        """The values of an expression, and where there are any."""
        match value:
            case Access():
                return self._access(value)
            case Number(value=number):
                return _Found(np.asarray(number, self.kind), (), np.asarray(True))
            case Negative(value=inner):
                found = self.value(inner)
                return replace(found, array=-found.array)
            case Combine():
                known = constant(value, self.semiring)
                if known is not None:
                    return self.value(Number(value=known))
                return self._combine(value)
            case Sum(variables=variables, value=inner):
                return self._sum(variables, inner)
            case _:
                assert_never(value)

    def _access(self, access: Access) -> _Found:
        array = self.arrays[access.tensor]
        there = self.stored.get(access.tensor)
        there = np.broadcast_to(np.asarray(True), array.shape) if there is None else there
        axes = tuple(dict.fromkeys(access.variables))
        if len(axes) < len(access.variables):
            places = [axes.index(name) for name in access.variables]
            array, there = (np.einsum(one, places, range(len(axes))) for one in (array, there))
        return _Found(array, axes, there)

    def _combine(self, value: Combine) -> _Found:
        one, other = self.value(value.left), self.value(value.right)
        axes = tuple(dict.fromkeys((*one.axes, *other.axes)))
        one, other = one.over(axes), other.over(axes)
        operator = self.semiring.operator(value.operator)
        result = OPERATORS[operator].evaluate(one.array, other.array)
        there = one.there | other.there
        if value.operator is Op.MULTIPLY and is_finite(value):
            there = one.there & other.there
            result = np.where(there, result, np.asarray(self.semiring.zero, self.kind))
        elif value.operator in (Op.MULTIPLY, Op.DIVIDE):
            exact = isinstance(value.right, Number) and value.right.value != 0
            there = one.there if exact else np.broadcast_to(np.asarray(True), there.shape)
        return _Found(np.asarray(result), axes, there)

    def _sum(self, variables: tuple[str, ...], inner: Expression) -> _Found:
        factors = _factors(inner) if self.semiring == PLUS_TIMES else None
        if factors is not None and all(np.isfinite(one).all() for one in self.arrays.values()):
            found = self._contract(factors, variables)
            if np.isfinite(found.array).all():
                return found
        found = self.value(inner)
        summed = tuple(found.axes.index(name) for name in variables)
        kept = tuple(name for name in found.axes if name not in variables)
        if self.semiring == PLUS_TIMES:
            total = np.asarray(found.array.sum(axis=summed, dtype=self.kind))
        else:
            moved = np.moveaxis(found.array, summed, range(len(summed)))
            total = self._added(moved, len(summed))
        return _Found(total, kept, np.asarray(found.there.any(axis=summed)))

    def _added(self, array: Array, count: int) -> Array:
        """The sum over the first axes; the zero of the semiring if they are empty."""
        rest = array.shape[count:]
        total = np.full(rest, self.semiring.zero, self.kind)
        for part in array.reshape(-1, *rest) if array.size else ():
            total = OPERATORS[self.semiring.add].evaluate(total, part)
        return total

    def _contract(self, factors: tuple[Expression, ...], summed: tuple[str, ...]) -> _Found:
        """A sum of products, which is right wherever it is finite."""
        names = tuple(dict.fromkeys(name for factor in factors for name in variables_of(factor)))
        operands: list[Any] = []
        for factor in factors:
            found = self.value(factor)
            operands += [found.array, [names.index(name) for name in found.axes]]
        kept = tuple(name for name in names if name not in summed)
        result = np.einsum(*operands, [names.index(name) for name in kept], optimize=True)
        result = np.asarray(result, self.kind)
        return _Found(result, kept, np.broadcast_to(np.asarray(True), result.shape))


def _factors(value: Expression) -> tuple[Expression, ...] | None:
    """The operands of a pure product."""
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            one, other = _factors(left), _factors(right)
            return None if one is None or other is None else one + other
        case Access() | Number():
            return (value,)
        case _:
            return None
