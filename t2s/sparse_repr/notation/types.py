"""The type in which an assignment is computed, and the values it can hold.

An expression is computed in one type, numpy's result type of all operands.  Numbers adopt it, as in
numpy, so integers wrap around as numpy's do; a quotient, a function such as
exp, or a fraction among the numbers turns integers into float64.  Sums have the type of their
terms, as in ``@`` and ``einsum``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.types import BOOL, Float, Int, Type, UInt
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
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
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Array = np.ndarray[Any, Any]

TYPES = (
    *(Float(bits) for bits in (16, 32, 64)),
    *(Int(bits) for bits in (8, 16, 32, 64)),
    *(UInt(bits) for bits in (8, 16, 32, 64)),
    BOOL,
)
"""Types in which values may be computed."""


def value_type(assignment: Assignment, kinds: Sequence[np.dtype[Any]]) -> Type:
    """The type that numpy gives the expression for operands of these types.

    Raises ``UserError`` for a type that cannot be computed, such as complex numbers.
    """
    common = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    terms = assignment.terms
    numbers = [term.value for term in terms if isinstance(term, Number)]
    divides = any(map(_needs_floats, terms))
    fraction = not float(assignment.semiring.zero).is_integer()  # infinity is not an integer
    if common.kind in "iub" and (divides or fraction or any(isinstance(n, float) for n in numbers)):
        return Float(64)
    computed = numbers or any(isinstance(term, Unary) for term in terms)
    if common.kind == "b" and (computed or assignment.semiring != PLUS_TIMES):
        return Int(64)
    matching = [type for type in TYPES if type.numpy == common]
    if not matching:
        raise _no_type(str(common))
    return matching[0]


def _needs_floats(term: object) -> bool:
    """Whether a term has a value in floating-point types only."""
    return (isinstance(term, Combine) and term.operator is Op.DIVIDE) or (
        isinstance(term, Unary) and term.function.of_floats
    )


def _no_type(type_name: str) -> UserError:
    return UserError(
        f"values of type {type_name} cannot be computed on streams",
        location=user_location(),
        expected=f"one of {', '.join(map(str, TYPES))}",
    )


def check_type(assignment: Assignment, type: Type) -> None:
    """Raise ``UserError`` unless the expression and its numbers can be computed in a type."""
    if type not in TYPES:
        raise _no_type(str(type))
    for term in assignment.terms:
        called = term.function if isinstance(term, Unary) else None
        if not type.is_float and (_needs_floats(term) or (called and not called.accepts(type))):
            raise UserError(
                f"{'a quotient' if called is None else called.value} does not fit {type}",
                location=assignment.location or user_location(),
                expected="a type of numbers, such as int64"
                if called and not called.of_floats
                else "a floating-point type, such as float64",
            )
    numbers = (*constants(assignment.value, assignment.semiring), assignment.semiring.zero)
    for number in {(number.__class__, number): number for number in numbers}.values():
        if not holds(np.asarray(number), type):
            raise UserError(
                f"the number {number} does not fit {type}",
                location=assignment.location or user_location(),
                expected=f"numbers of the type {type}, in which the operands are computed",
                hint="type= computes in another type, such as Int(64) or Float(64)",
            )


def typed_values(values: Array, type: Type, name: str) -> Array:
    """The values in a type; the array itself if it has that type.

    Floats are rounded to shorter ones; any other change of a value is refused, with the first one.
    """
    values = np.asarray(values)
    if values.dtype == type.numpy:
        return values
    if values.dtype.kind not in "iufb":
        raise _no_type(str(values.dtype))
    same = _same(values, type)
    if not same.all():
        first = values.reshape(-1)[int(np.flatnonzero(~same.reshape(-1))[0])]
        raise UserError(
            f"{name} has values that do not fit {type}",
            location=user_location(),
            expected=f"values that {type} holds",
            given=f"{first}, of type {values.dtype}",
            hint=f"convert {name} as you mean it, or compute in another type=",
        )
    with np.errstate(all="ignore"):
        return values.astype(type.numpy)


def holds(number: Array, type: Type) -> bool:
    """Whether a number may be a constant of a type; it may be rounded to a floating-point one."""
    if number.dtype.kind == "O":  # an integer of more than 64 bits
        return type.is_float and holds(np.asarray(float(number)), type)
    return bool(_same(number, type).all())


def _same(values: Array, type: Type) -> Array:
    """The values that do not change, apart from the rounding of floats."""
    with np.errstate(all="ignore"):
        cast = values.astype(type.numpy)
        if type.is_float and values.dtype.kind == "f":
            return np.asarray(np.isfinite(cast) | ~np.isfinite(values))
        if values.dtype.kind == "b":
            return np.ones(values.shape, np.bool_)
        if type.is_float:  # an integer is not rounded
            low, high = np.iinfo(values.dtype).min, float(np.iinfo(values.dtype).max)
            wide = cast.astype(np.float64)
            inside = (wide >= low) & (wide < high + 1)
            back = np.where(inside, wide, 0).astype(values.dtype)
            return np.asarray(inside & (back == values))
        if type.is_bool:
            return np.asarray((values == 0) | (values == 1))
        limits = np.iinfo(type.numpy)
        if values.dtype.kind == "f":
            whole = np.isfinite(values) & (np.trunc(values) == values)
            return np.asarray(whole & (values >= limits.min) & (values < float(limits.max) + 1))
        source_limits = np.iinfo(values.dtype)
        above = values >= max(source_limits.min, limits.min)
        return np.asarray(above & (values <= min(source_limits.max, limits.max)))


def constants(value: Expression, semiring: Semiring) -> Iterator[float | int]:
    """The numbers of an expression, those of operators on numbers alone computed."""
    number = constant(value, semiring)
    if number is not None:
        yield number
        return
    match value:
        case Combine(left=left, right=right):
            yield from constants(left, semiring)
            yield from constants(right, semiring)
        case Choice(condition=condition, value=inner, otherwise=other):
            for part in (condition, inner, other):
                yield from constants(part, semiring)
        case Negative(value=inner) | Unary(value=inner) | Sum(value=inner):
            yield from constants(inner, semiring)
        case Over(semiring=other, value=inner):
            yield from (*constants(inner, other), other.zero)


def constant(value: Expression, semiring: Semiring) -> float | int | None:
    """The value of a constant expression; ``None`` if it reads a tensor."""
    match value:
        case Number(value=number):
            return number
        case Negative(value=inner):
            operand = constant(inner, semiring)
            return None if operand is None else -operand
        case Combine(operator=operator, left=left, right=right):
            one = constant(left, semiring)
            other = None if one is None else constant(right, semiring)
            if one is None or other is None:
                return None
            return combined(semiring.operator(operator), one, other)
        case Access() | Unary() | Choice() | Sum() | OfRow() | Extent() | Over():
            return None


def combined(operator: Op, left: float | int, right: float | int) -> float | int | None:
    """An operator on two numbers; ``None`` for a division by zero."""
    match operator:
        case Op.ADD:
            return left + right
        case Op.SUBTRACT:
            return left - right
        case Op.MULTIPLY:
            return left * right
        case Op.MINIMUM:
            return right if right < left else left
        case Op.MAXIMUM:
            return right if right > left else left
        case _:
            return left / right if right != 0 else None
