"""The meaning of index notation in numpy: dense, direct, the oracle of everything below.

A product is contracted by ``numpy.einsum``; anything else is computed on arrays with one axis for
each variable, and summed where the notation sums.

What is not stored is neither multiplied nor divided: a product is there where all its factors are
stored, a quotient where its dividend is, and zero elsewhere, also where a factor is infinite or NaN
and where the divisor is zero.  Any other function that maps zeros to zero is there where one of its
operands is, and one that does not is there everywhere (``support.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    variables_of,
)
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.support import is_strict, vanishes
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
    return evaluate_where(assignment, inputs, kind, stored)[0]


def evaluate_where(
    assignment: Assignment,
    inputs: Mapping[str, Any],
    kind: np.dtype[Any],
    stored: Mapping[str, Array] | None = None,
) -> tuple[Array, Array]:
    """As ``evaluate``, and where there are values."""
    arrays = {name: np.asarray(value, kind) for name, value in inputs.items()}
    extents = extents_of(assignment, {name: value.shape for name, value in arrays.items()})
    run = _Evaluation(arrays, dict(stored or {}), assignment.semiring, kind)
    with np.errstate(all="ignore"):
        found = run.value(assignment.value)
    target = assignment.result.variables
    shape = tuple(extents[name] for name in target)
    value, there = (_aligned(one, found.axes, target) for one in (found.array, found.there))
    return np.array(np.broadcast_to(value, shape)), np.array(np.broadcast_to(there, shape))


@dataclass(frozen=True, slots=True)
class _Found:
    """Values with an axis for each variable, and where something of them is stored: a mask.

    They are there where that is so, and everywhere unless they ``vanish`` elsewhere.
    """

    array: Array
    axes: tuple[str, ...]
    stored: Array
    vanish: bool = True

    def over(self, axes: tuple[str, ...]) -> _Found:
        """The same with the axes ``axes``."""
        array, stored = (_aligned(one, self.axes, axes) for one in (self.array, self.stored))
        return replace(self, array=array, axes=axes, stored=stored)

    @property
    def there(self) -> Array:
        """Where there are values."""
        return self.stored if self.vanish else np.ones(self.stored.shape, np.bool_)


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
                array = np.asarray(number, self.kind)
                return _Found(array, (), np.asarray(False), vanish=False)
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
        stored = self.stored.get(access.tensor)
        stored = np.ones(array.shape, np.bool_) if stored is None else stored
        axes = tuple(dict.fromkeys(access.variables))
        if len(axes) < len(access.variables):
            places = [axes.index(name) for name in access.variables]
            array, stored = (np.einsum(one, places, range(len(axes))) for one in (array, stored))
        return _Found(array, axes, stored)

    def _combine(self, value: Combine) -> _Found:
        one, other = self.value(value.left), self.value(value.right)
        axes = tuple(dict.fromkeys((*one.axes, *other.axes)))
        one, other = one.over(axes), other.over(axes)
        operator = self.semiring.operator(value.operator)
        result = np.asarray(OPERATORS[operator].evaluate(one.array, other.array))
        stored = one.stored | other.stored
        if is_strict(value, self.semiring):
            divides = value.operator is Op.DIVIDE
            stored = np.broadcast_to(
                one.there if divides else one.there & other.there, stored.shape
            )
            zero = np.asarray(self.semiring.zero, self.kind)
            return _Found(np.where(stored, result, zero), axes, stored)
        return _Found(result, axes, stored, vanishes(value, self.semiring))

    def _sum(self, variables: tuple[str, ...], inner: Expression) -> _Found:
        factors = _factors(inner) if self.semiring == PLUS_TIMES else None
        if factors is not None and all(np.isfinite(array).all() for array in self.arrays.values()):
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
        return _Found(total, kept, np.asarray(found.stored.any(axis=summed)), found.vanish)

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
        found = [self.value(factor) for factor in factors]
        axes = [[names.index(name) for name in one.axes] for one in found]
        kept = tuple(name for name in names if name not in summed)
        target = [names.index(name) for name in kept]

        def contracted(arrays: Sequence[Array]) -> Array:
            operands = [part for pair in zip(arrays, axes, strict=True) for part in pair]
            return np.asarray(np.einsum(*operands, target, optimize=True))

        result = np.asarray(contracted([one.array for one in found]), self.kind)
        there = [one.there for one in found]
        stored = np.ones(result.shape, np.bool_)
        if not all(one.all() for one in there):
            stored = contracted([one.astype(np.float64) for one in there]) > 0
        return _Found(result, kept, stored, any(one.vanish for one in found))


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
