"""The meaning of index notation in numpy: dense, direct, the oracle of everything below.

A product is contracted by ``numpy.einsum``; anything else is computed on arrays with one axis for
each variable, and summed where the notation sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from t2s.core.ops import OPERATORS, Op
from t2s.sparse_repr.notation.check import extents_of
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
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Array = np.ndarray[Any, Any]


def evaluate(assignment: Assignment, inputs: Mapping[str, Any]) -> Array:
    """The result of an assignment for dense arrays, by name.

    Integers are computed in int64, everything else in the type numpy gives, but at least float64
    for a division.
    """
    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    extents = extents_of(assignment, {name: value.shape for name, value in arrays.items()})
    with np.errstate(all="ignore"):
        value, axes = _value(assignment.value, arrays, assignment.semiring)
    target = assignment.result.variables
    value = _aligned(value, axes, target)
    shape = tuple(extents[name] for name in target)
    return np.array(np.broadcast_to(value, shape))


def _aligned(value: Array, axes: tuple[str, ...], target: tuple[str, ...]) -> Array:
    """The array with the axes ``target``; those that it does not have are of length one."""
    kept = [name for name in target if name in axes]
    value = value.transpose([axes.index(name) for name in kept])
    return value[tuple(slice(None) if name in axes else None for name in target)]


def _value(
    value: Expression, arrays: Mapping[str, Array], semiring: Semiring
) -> tuple[Array, tuple[str, ...]]:
    match value:
        case Access(tensor=tensor, variables=variables):
            return _diagonal(arrays[tensor], variables)
        case Number(value=number):
            return np.asarray(number), ()
        case Negative(value=inner):
            array, axes = _value(inner, arrays, semiring)
            return -array, axes
        case Combine(operator=operator, left=left, right=right):
            one, other = _value(left, arrays, semiring), _value(right, arrays, semiring)
            return _combine(semiring.operator(operator), one, other)
        case Sum(variables=variables, value=inner):
            factors = _factors(inner) if semiring == PLUS_TIMES else None
            if factors is not None:
                return _contract(factors, variables, arrays)
            array, axes = _value(inner, arrays, semiring)
            summed = tuple(axes.index(name) for name in variables)
            kept = tuple(name for name in axes if name not in variables)
            if semiring == PLUS_TIMES:
                return array.sum(axis=summed), kept
            return _added(
                np.moveaxis(array, summed, range(len(summed))), len(summed), semiring
            ), kept
        case _:
            assert_never(value)


def _added(array: Array, count: int, semiring: Semiring) -> Array:
    """The sum over the first axes; the zero of the semiring if they are empty."""
    rest = array.shape[count:]
    total = np.full(rest, semiring.zero, np.result_type(array, np.float64))
    for part in array.reshape(-1, *rest) if array.size else ():
        total = OPERATORS[semiring.add].evaluate(total, part)
    return total


def _diagonal(array: Array, variables: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    axes = tuple(dict.fromkeys(variables))
    if len(axes) == len(variables):
        return array, axes
    return np.einsum(array, [axes.index(name) for name in variables], range(len(axes))), axes


def _combine(
    operator: Op, left: tuple[Array, tuple[str, ...]], right: tuple[Array, tuple[str, ...]]
) -> tuple[Array, tuple[str, ...]]:
    axes = tuple(dict.fromkeys((*left[1], *right[1])))
    one, other = _aligned(*left, axes), _aligned(*right, axes)
    match operator:
        case Op.ADD:
            return one + other, axes
        case Op.SUBTRACT:
            return one - other, axes
        case Op.MULTIPLY:
            return one * other, axes
        case Op.MINIMUM | Op.MAXIMUM:
            return OPERATORS[operator].evaluate(one, other), axes
        case _:
            return np.asarray(one / other), axes


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


def _contract(
    factors: tuple[Expression, ...], summed: tuple[str, ...], arrays: Mapping[str, Array]
) -> tuple[Array, tuple[str, ...]]:
    names = tuple(dict.fromkeys(name for factor in factors for name in variables_of(factor)))
    operands: list[Any] = []
    for factor in factors:
        array, axes = _value(factor, arrays, PLUS_TIMES)
        operands += [array, [names.index(name) for name in axes]]
    kept = tuple(name for name in names if name not in summed)
    result = np.einsum(*operands, [names.index(name) for name in kept], optimize=True)
    return result, kept
