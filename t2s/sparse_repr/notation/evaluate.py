"""The meaning of index notation in numpy, on dense arrays: the oracle of all lowerings.

A product is contracted by ``numpy.einsum``; anything else is computed on arrays with one axis for
each variable, and summed where the notation sums.

``support.py`` defines the value of an expression where operands store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from t2s.core.ops import OPERATORS, Op
from t2s.sparse_repr.functions import Operator
from t2s.sparse_repr.functions import evaluate as evaluate_operator
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Combine,
    Expression,
    Number,
    Sum,
    variables_of,
)
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.support import StoredValue, StoredValues
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Array = np.ndarray[Any, Any]


def evaluate(
    assignment: Assignment,
    inputs: Mapping[str, Any],
    kind: np.dtype[Any],
    stored: Mapping[str, Array] | None = None,
) -> Array:
    """The result of an assignment for dense arrays by name, computed in one type.

    ``stored`` has masks of stored elements for some tensors; the others store everything.
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
    run = _Arrays(arrays, dict(stored or {}), assignment.semiring, kind)
    with np.errstate(all="ignore"):
        result = run.value(assignment.value)
    presence = _EVERYWHERE if result.there is None else result.there
    target = assignment.result.variables
    shape = tuple(extents[name] for name in target)
    value, mask = (np.broadcast_to(part.over(target), shape) for part in (result.value, presence))
    return np.array(value), np.array(mask)


@dataclass(frozen=True, slots=True)
class _NamedAxes:
    """An array with an axis for each of some variables."""

    array: Array
    axes: tuple[str, ...] = ()

    def over(self, axes: Sequence[str]) -> Array:
        """The array with these axes; missing ones have length one."""
        own = [name for name in axes if name in self.axes]
        array = self.array.transpose([self.axes.index(name) for name in own])
        return array[tuple(slice(None) if name in own else None for name in axes)]


_EVERYWHERE, _NEVER = _NamedAxes(np.asarray(True)), _NamedAxes(np.asarray(False))


def _elementwise(function: Callable[..., Any], *operands: _NamedAxes) -> _NamedAxes:
    axes = tuple(dict.fromkeys(name for operand in operands for name in operand.axes))
    return _NamedAxes(np.asarray(function(*(operand.over(axes) for operand in operands))), axes)


_Values = StoredValue[_NamedAxes, _NamedAxes]


class _Arrays(StoredValues[_NamedAxes, _NamedAxes]):
    """Evaluates on whole arrays; conditions are masks."""

    never = _NEVER

    def __init__(
        self,
        arrays: Mapping[str, Array],
        stored: Mapping[str, Array],
        semiring: Semiring,
        kind: np.dtype[Any],
    ) -> None:
        self.arrays, self.stored, self.semiring, self.kind = arrays, stored, semiring, kind

    def number(self, number: float | int) -> _NamedAxes:
        # constants of unsigned types wrap around, as all of their arithmetic does
        return _NamedAxes(np.asarray(number).astype(self.kind))

    def read(self, access: Access) -> _Values:
        axes = tuple(dict.fromkeys(access.variables))
        places = [axes.index(name) for name in access.variables]

        def diagonal(array: Array) -> _NamedAxes:
            if len(axes) < len(places):
                array = np.einsum(array, places, range(len(axes)))
            return _NamedAxes(array, axes)

        stored = self.stored.get(access.tensor)
        where = None if stored is None else diagonal(stored)
        return StoredValue(diagonal(self.arrays[access.tensor]), where)

    def apply(self, operator: Operator, *operands: _NamedAxes) -> _NamedAxes:
        return _elementwise(partial(evaluate_operator, operator), *operands)

    def zero_unless(self, where: _NamedAxes, value: _NamedAxes) -> _NamedAxes:
        return _elementwise(np.where, where, value, self.number(self.semiring.zero))

    def both(self, one: _NamedAxes, other: _NamedAxes) -> _NamedAxes:
        return _elementwise(np.logical_and, one, other)

    def either(self, one: _NamedAxes, other: _NamedAxes) -> _NamedAxes:
        return _elementwise(np.logical_or, one, other)

    def summed(self, total: Sum) -> _Values:
        variables, inner = total.variables, total.value
        factors = _factors(inner) if self.semiring == PLUS_TIMES else None
        if factors is not None and all(np.isfinite(array).all() for array in self.arrays.values()):
            contracted = self._contract(factors, variables)
            if np.isfinite(contracted.value.array).all():
                return contracted
        terms = self.value(inner)
        array, axes = terms.value.array, terms.value.axes
        places = tuple(axes.index(name) for name in variables)
        rest = tuple(name for name in axes if name not in variables)
        if self.semiring == PLUS_TIMES:
            result = np.asarray(array.sum(axis=places, dtype=self.kind))
        else:
            result = self._added(np.moveaxis(array, places, range(len(places))), len(places))
        stored = _EVERYWHERE if terms.stored is None else terms.stored
        mask = np.broadcast_to(stored.over(axes), array.shape).any(axis=places)
        where = _NamedAxes(np.asarray(mask), rest)
        return StoredValue(_NamedAxes(result, rest), where, terms.vanishes)

    def _added(self, array: Array, count: int) -> Array:
        """The sum over the first axes; the zero of the semiring if they are empty."""
        rest = array.shape[count:]
        total = np.full(rest, self.semiring.zero, self.kind)
        for part in array.reshape(-1, *rest) if array.size else ():
            total = OPERATORS[self.semiring.add].evaluate(total, part)
        return total

    def _contract(self, factors: tuple[Expression, ...], summed: tuple[str, ...]) -> _Values:
        """A sum of products by einsum, which is right wherever it is finite."""
        names = tuple(dict.fromkeys(name for factor in factors for name in variables_of(factor)))
        rest = tuple(name for name in names if name not in summed)

        def contracted(arrays: Iterable[_NamedAxes]) -> Array:
            operands: list[Any] = []
            for operand in arrays:
                operands += [operand.array, [names.index(name) for name in operand.axes]]
            target = [names.index(name) for name in rest]
            return np.asarray(np.einsum(*operands, target, optimize=True))

        values = [self.value(factor) for factor in factors]
        result = np.asarray(contracted(stored.value for stored in values), self.kind)
        masks = [
            _NamedAxes(stored.there.array.astype(np.float64), stored.there.axes)
            if stored.there is not None
            else _NamedAxes(np.ones(stored.value.array.shape), stored.value.axes)
            for stored in values
        ]
        where = None
        if not all(mask.array.all() for mask in masks):
            where = _NamedAxes(contracted(masks) > 0, rest)
        return StoredValue(
            _NamedAxes(result, rest), where, any(stored.vanishes for stored in values)
        )


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
