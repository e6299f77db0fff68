"""The functions of the language: ``select``, ``cast``, ``minimum``, ``sqrt`` and so on.

The package exports them under their short names: ``t2s.min``, ``t2s.max``, ``t2s.abs``.
"""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.core.expr import Cast, Select
from t2s.core.location import user_location
from t2s.core.ops import Op
from t2s.core.types import Type, unify
from t2s.func.expressions import (
    Expression,
    Number,
    as_expression,
    combine,
    common_type,
    convert,
    merge_symbols,
)


def select(condition: Number, if_true: Number, if_false: Number) -> Expression:
    """``if_true`` where ``condition`` holds, else ``if_false``; only the chosen side is read."""
    location = user_location()
    test, *sides = (as_expression(value) for value in (condition, if_true, if_false))
    if not test.type.is_bool:
        raise UserError(
            "the condition of select has to be a truth value",
            location=location,
            expected="bool, for example i > 0",
            given=f"{test!r} of type {test.type}",
        )
    type = common_type(location, "select", tuple(sides))
    yes, no = (convert(side.node, type, location) for side in sides)
    symbols = merge_symbols(location, test.symbols, *(side.symbols for side in sides))
    node = Select(condition=test.node, if_true=yes, if_false=no, type=type)
    return Expression(node, symbols, location)


def cast(type: Type, value: Number) -> Expression:
    """``value`` converted to ``type``; floats to integers truncate towards zero and saturate."""
    location = user_location()
    if not isinstance(type, Type):
        raise UserError(
            "cast needs a type as its first argument",
            location=location,
            expected="for example t2s.cast(t2s.Float(32), x)",
            given=repr(type),
        )
    operand = as_expression(value)
    node = operand.node
    if node.type.weak:
        adopted = type if unify(node.type, type) == type else node.type.strengthened()
        node = convert(node, adopted, location)
    return Expression(
        node if node.type == type else Cast(value=node, type=type), operand.symbols, location
    )


def minimum(left: Number, right: Number, *others: Number) -> Expression:
    """The smallest of the values, from left to right (``right if right < left else left``)."""
    return _in_turn(Op.MINIMUM, left, right, *others)


def maximum(left: Number, right: Number, *others: Number) -> Expression:
    """The largest of the values, from left to right (``right if right > left else left``)."""
    return _in_turn(Op.MAXIMUM, left, right, *others)


def _in_turn(operator: Op, left: Number, right: Number, *others: Number) -> Expression:
    """Fold a binary operator over the values, from left to right."""
    result = combine(operator, left, right)
    for other in others:
        result = combine(operator, result, other)
    return result


def sqrt(value: Number) -> Expression:
    """The square root of a floating-point value, correctly rounded."""
    return combine(Op.SQUARE_ROOT, value)


def rsqrt(value: Number) -> Expression:
    """One divided by the square root, as a single hardware operator."""
    return combine(Op.RECIPROCAL_SQUARE_ROOT, value)


def exp(value: Number) -> Expression:
    """The exponential of a floating-point value."""
    return combine(Op.EXPONENTIAL, value)


def log(value: Number) -> Expression:
    """The natural logarithm of a floating-point value; minus infinity for 0, NaN below 0."""
    return combine(Op.LOGARITHM, value)


def tanh(value: Number) -> Expression:
    """The hyperbolic tangent of a floating-point value."""
    return combine(Op.HYPERBOLIC_TANGENT, value)


def erf(value: Number) -> Expression:
    """The error function of a floating-point value: ``2/sqrt(pi)`` times the integral of
    ``exp(-t**2)`` from 0 to the value.
    """
    return combine(Op.ERROR_FUNCTION, value)


def fma(a: Number, b: Number, c: Number) -> Expression:
    """``a * b + c`` as one operator: floating-point values are rounded once, at the end."""
    return combine(Op.FUSED_MULTIPLY_ADD, a, b, c)


def floor(value: Number) -> Expression:
    """The largest integer not above a value, in the value's type."""
    return _rounded(Op.FLOOR, value)


def ceil(value: Number) -> Expression:
    """The smallest integer not below a value, in the value's type."""
    return _rounded(Op.CEILING, value)


def _rounded(operator: Op, value: Number) -> Expression:
    """Integers pass through, as in numpy."""
    operand = as_expression(value)
    return operand if operand.type.is_integer else combine(operator, operand)


def absolute(value: Number) -> Expression:
    """The absolute value."""
    return combine(Op.ABSOLUTE, value)
