"""Functions of one value, and the choice between two.

Each function is one formula of scalar operators, which every engine follows.  A formula is built by
a function that applies an operator to operands and to numbers, so that the same lines give the
expression that hardware computes and the values in numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from math import pi, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.expr import Expr, apply, as_expression, select
from t2s.core.ops import OPERATORS, Array, Op, accepts
from t2s.core.types import Type

Apply = Callable[..., Any]
"""An operator on operands, each of which is a value or a number."""


class Function(Enum):
    """A function of one value; the value is its name in index notation."""

    RELU = "relu"
    ABSOLUTE = "abs"
    EXPONENTIAL = "exp"
    LOGARITHM = "log"
    HYPERBOLIC_TANGENT = "tanh"
    ERROR_FUNCTION = "erf"
    SIGMOID = "sigmoid"
    GELU = "gelu"
    GELU_OF_ERROR_FUNCTION = "gelu_erf"
    SILU = "silu"
    SQUARE_ROOT = "sqrt"
    RECIPROCAL_SQUARE_ROOT = "rsqrt"

    @property
    def of_floats(self) -> bool:
        """Whether only floating-point numbers have a result."""
        return self not in (Function.RELU, Function.ABSOLUTE)

    @property
    def is_finite(self) -> bool:
        """Whether finite values have finite results."""
        return self in (
            Function.RELU,
            Function.ABSOLUTE,
            Function.HYPERBOLIC_TANGENT,
            Function.ERROR_FUNCTION,
            Function.SIGMOID,
            Function.GELU,
            Function.GELU_OF_ERROR_FUNCTION,
            Function.SILU,
        )

    @property
    def keeps_zero(self) -> bool:
        """Whether the function of zero is zero."""
        with np.errstate(all="ignore"):
            return bool(evaluate(self, np.float64(0)) == 0)

    def accepts(self, type: Type) -> bool:
        """Whether the function is defined on a type."""
        return accepts(Op.EXPONENTIAL if self.of_floats else Op.NEGATE, type)

    def expression(self, value: Expr) -> Expr:
        """The function of an expression, in all its lanes."""

        def applied(operator: Op, *operands: Any) -> Expr:
            return apply(operator, *(as_expression(operand, value.type) for operand in operands))

        result: Expr = _FORMULAS[self](applied, value)
        return result


class Choosing(Enum):
    """An operator of a condition and two values; the value is its name in index notation."""

    WHERE = "where"

    def accepts(self, type: Type) -> bool:
        """Whether the operator is defined on a type, as it is on all."""
        return True

    def expression(self, condition: Expr, value: Expr, otherwise: Expr) -> Expr:
        """The value where the condition is not zero, and the other one elsewhere."""
        none = as_expression(0, condition.type)
        return select(apply(Op.NOT_EQUAL, condition, none), value, otherwise)


Operator = Op | Function | Choosing
"""What computes one value of others."""


def evaluate(operator: Operator, *operands: Array) -> Array:
    """An operator or a function on numpy values, of the type of the last.

    Callers hold ``np.errstate(all="ignore")``.
    """
    if isinstance(operator, Op):
        return OPERATORS[operator].evaluate(*operands)
    if isinstance(operator, Choosing):
        condition, chosen, otherwise = operands
        return np.where(np.asarray(condition) != 0, chosen, otherwise)
    (value,) = operands
    kind = np.asarray(value).dtype

    def applied(operator: Op, *parts: Any) -> Array:
        result = OPERATORS[operator].evaluate(*(np.asarray(part, kind) for part in parts))
        return np.asarray(result).astype(kind, copy=False)

    return _FORMULAS[operator](applied, value)


def _relu(apply: Apply, x: Any) -> Any:
    return apply(Op.MAXIMUM, x, 0)


def _sigmoid(apply: Apply, x: Any) -> Any:
    return apply(Op.DIVIDE, 1, _one_more_than_exponential_of_negative(apply, x))


def _silu(apply: Apply, x: Any) -> Any:
    return apply(Op.DIVIDE, x, _one_more_than_exponential_of_negative(apply, x))


def _one_more_than_exponential_of_negative(apply: Apply, x: Any) -> Any:
    return apply(Op.ADD, apply(Op.EXPONENTIAL, apply(Op.NEGATE, x)), 1)


def _gelu(apply: Apply, x: Any) -> Any:
    """``x/2 * (1 + tanh(u))`` for ``u = sqrt(2/pi) * (x + 0.044715*x**3)``.

    As ``x / (1 + exp(-2*u))``, which keeps its digits where the tangent is nearly -1.
    """
    cube = apply(Op.MULTIPLY, apply(Op.MULTIPLY, x, x), x)
    inner = apply(Op.ADD, x, apply(Op.MULTIPLY, cube, 0.044715))
    twice = apply(Op.MULTIPLY, inner, 2 * sqrt(2 / pi))
    return apply(Op.DIVIDE, x, _one_more_than_exponential_of_negative(apply, twice))


def _gelu_of_error_function(apply: Apply, x: Any) -> Any:
    half = apply(Op.MULTIPLY, x, 0.5)
    error = apply(Op.ERROR_FUNCTION, apply(Op.MULTIPLY, x, sqrt(0.5)))
    return apply(Op.MULTIPLY, half, apply(Op.ADD, error, 1))


def _operator(operator: Op) -> Callable[[Apply, Any], Any]:
    return lambda apply, x: apply(operator, x)


_FORMULAS: Mapping[Function, Callable[[Apply, Any], Any]] = MappingProxyType(
    {
        Function.RELU: _relu,
        Function.ABSOLUTE: _operator(Op.ABSOLUTE),
        Function.EXPONENTIAL: _operator(Op.EXPONENTIAL),
        Function.LOGARITHM: _operator(Op.LOGARITHM),
        Function.HYPERBOLIC_TANGENT: _operator(Op.HYPERBOLIC_TANGENT),
        Function.ERROR_FUNCTION: _operator(Op.ERROR_FUNCTION),
        Function.SIGMOID: _sigmoid,
        Function.GELU: _gelu,
        Function.GELU_OF_ERROR_FUNCTION: _gelu_of_error_function,
        Function.SILU: _silu,
        Function.SQUARE_ROOT: _operator(Op.SQUARE_ROOT),
        Function.RECIPROCAL_SQUARE_ROOT: _operator(Op.RECIPROCAL_SQUARE_ROOT),
    }
)
