"""The operator table: the meaning of every scalar operator, once.

Each operator has its numpy meaning (the oracle of every engine and backend), its result-type rule
and its algebra (identity, associative, commutative), from which the legality of reordering a
reduction follows.  Adding an operator is one row here and one spelling per backend.

Meaning, where languages differ:

* Integer arithmetic wraps around.  ``FLOOR_DIVIDE`` and ``MODULO`` round towards minus infinity
  as in Python; division by zero gives 0 and modulo zero gives 0.
* ``MINIMUM(a, b)`` is ``b if b < a else a`` and ``MAXIMUM(a, b)`` is ``b if b > a else a``, also
  for NaN and signed zeros.
* ``EXPONENTIAL``, ``LOGARITHM``, ``HYPERBOLIC_TANGENT``, ``ERROR_FUNCTION`` and
  ``RECIPROCAL_SQUARE_ROOT`` of a type narrower than float64 are computed in float64 and rounded
  once.
* Shifts take the amount as an unsigned number: by the width of the type or more, and by a negative
  amount, no bit of the value is left (0, or -1 for a negative value shifted to the right).
* ``FUSED_MULTIPLY_ADD(a, b, c)`` is ``a * b + c``, rounded once; of types narrower than float32 it
  is computed in float32 and rounded again.
* A cast of a float to an integer truncates towards zero and saturates; NaN becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.types import BOOL, Kind, Type, value_range

# ``a * b + c`` of floating-point numbers, rounded once: exact, on whole arrays.
#
# float64 is computed with error-free transformations and a sum that is rounded to odd (S. Boldo and
# G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008).  These need numbers that are
# neither very large nor very small; all others, and arrays of a few elements, are computed one by
# one in exact fractions.  The product of two narrower numbers is exact in float64, so that one sum
# rounded to odd is enough for float32; float16 and bfloat16 are computed in float32 and rounded.

_FEW = 4
_SPLIT = 2.0**27 + 1
_FACTORS = (2.0**-400, 2.0**400)
_SUMMANDS = (2.0**-800, 2.0**1000)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of arrays of one type: floats are rounded once, integers wrap around."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype.kind in "iu":
        return a * b + c
    if a.dtype == np.float64:
        return _of_float64(a, b, c) if a.size > _FEW else _one_by_one(a, b, c)
    if a.dtype != np.float32:
        wide = (item.astype(np.float32) for item in (a, b, c))
        return fused_multiply_add(*wide).astype(a.dtype)
    product = a.astype(np.float64) * b.astype(np.float64)
    return _sum_to_odd(product, c.astype(np.float64)).astype(np.float32)


def _of_float64(a: Array, b: Array, c: Array) -> Array:
    usual = _between(a, _FACTORS) & _between(b, _FACTORS) & _between(c, _SUMMANDS)
    high, low = _product(a, b)
    middle, small = _sum(c, low)
    result, error = _sum(high, middle)
    result = result + _sum_to_odd(small, error)
    if not usual.all():
        result[~usual] = _one_by_one(a[~usual], b[~usual], c[~usual])
    return result


def _between(values: Array, limits: tuple[float, float]) -> Array:
    size = np.abs(values)
    return (size >= limits[0]) & (size <= limits[1])


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum, and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product, and its error."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high


def _sum_to_odd(a: Array, b: Array) -> Array:
    """The sum where it is exact; else, of the numbers beside it, the one whose last bit is 1."""
    total, error = _sum(a, b)
    bits = np.asarray(total).view(np.int64)
    away = np.where((error > 0) == (total > 0), 1, -1)
    moves = np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    return (bits + np.where(moves, away, 0)).view(np.float64)


def _one_by_one(a: Array, b: Array, c: Array) -> Array:
    each: Callable[..., Array] = np.frompyfunc(_exactly, 3, 1)
    return np.asarray(each(a, b, c), np.float64)


def _exactly(a: float, b: float, c: float) -> float:
    a, b, c = float(a), float(b), float(c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)) or a == 0.0 or b == 0.0:
        product = math.nan if _is_undefined(a, b) else a * b
        return product + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _is_undefined(a: float, b: float) -> bool:
    return (math.isinf(a) and b == 0.0) or (math.isinf(b) and a == 0.0)


Array = Any  # a numpy array or scalar of the operand's dtype


class Op(Enum):
    """Operators of the expression language; the value is the printed spelling."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    FLOOR_DIVIDE = "//"
    MODULO = "%"
    MINIMUM = "min"
    MAXIMUM = "max"
    NEGATE = "neg"
    ABSOLUTE = "abs"
    SQUARE_ROOT = "sqrt"
    RECIPROCAL_SQUARE_ROOT = "rsqrt"
    EXPONENTIAL = "exp"
    LOGARITHM = "log"
    HYPERBOLIC_TANGENT = "tanh"
    ERROR_FUNCTION = "erf"
    FLOOR = "floor"
    CEILING = "ceil"
    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "and"
    OR = "or"
    XOR = "xor"
    NOT = "not"
    SHIFT_LEFT = "<<"
    SHIFT_RIGHT = ">>"
    FUSED_MULTIPLY_ADD = "fma"


class Operands(Enum):
    """Which operand types an operator accepts."""

    NUMBER = "numbers"
    FLOAT = "floating-point numbers"
    INTEGER = "integers"
    LOGIC = "bools or integers"
    ANY = "values"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorInfo:
    """One row of the operator table.

    ``c_function`` is the function of float64 in the C library that computes it, if it is one: then
    nothing else has to be said about it, in no engine and no backend.
    """

    arity: int
    operands: Operands
    evaluate: Callable[..., Array]
    comparison: bool = False
    associative: bool = False
    commutative: bool = False
    c_function: str | None = None


def _floor_divide(left: Array, right: Array) -> Array:
    zero = right == 0
    return np.where(zero, 0, np.floor_divide(left, np.where(zero, 1, right)))


def _modulo(left: Array, right: Array) -> Array:
    zero = right == 0
    return np.where(zero, 0, np.remainder(left, np.where(zero, 1, right)))


def _minimum(left: Array, right: Array) -> Array:
    return np.where(right < left, right, left)


def _maximum(left: Array, right: Array) -> Array:
    return np.where(right > left, right, left)


def _exponential_of(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _logarithm_of(value: float) -> float:
    if value == 0.0:
        return -math.inf
    return math.log(value) if not value < 0.0 else math.nan


def _in_c(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Through the C library's function of float64, which the native engine calls too."""

    def evaluate(value: Array) -> Array:
        wide = np.asarray(value, np.float64)
        result = np.fromiter((function(item) for item in wide.flat), np.float64, wide.size)
        return result.reshape(wide.shape)

    return evaluate


def _c_function(name: str, function: Callable[[float], float]) -> OperatorInfo:
    return OperatorInfo(arity=1, operands=Operands.FLOAT, evaluate=_in_c(function), c_function=name)


def _reciprocal_square_root(value: Array) -> Array:
    return 1.0 / np.sqrt(np.asarray(value, np.float64))


def _logic(
    of_bools: Callable[..., Array], of_integers: Callable[..., Array]
) -> Callable[..., Array]:
    def evaluate(*operands: Array) -> Array:
        boolean = np.asarray(operands[0]).dtype == np.bool_
        return (of_bools if boolean else of_integers)(*operands)

    return evaluate


def _compare(evaluate: Callable[..., Array], operands: Operands = Operands.NUMBER) -> OperatorInfo:
    return OperatorInfo(arity=2, operands=operands, evaluate=evaluate, comparison=True)


OPERATORS: Mapping[Op, OperatorInfo] = MappingProxyType(
    {
        Op.ADD: OperatorInfo(
            arity=2, operands=Operands.NUMBER, evaluate=np.add, associative=True, commutative=True
        ),
        Op.SUBTRACT: OperatorInfo(arity=2, operands=Operands.NUMBER, evaluate=np.subtract),
        Op.MULTIPLY: OperatorInfo(
            arity=2,
            operands=Operands.NUMBER,
            evaluate=np.multiply,
            associative=True,
            commutative=True,
        ),
        Op.DIVIDE: OperatorInfo(arity=2, operands=Operands.FLOAT, evaluate=np.divide),
        Op.FLOOR_DIVIDE: OperatorInfo(arity=2, operands=Operands.INTEGER, evaluate=_floor_divide),
        Op.MODULO: OperatorInfo(arity=2, operands=Operands.INTEGER, evaluate=_modulo),
        Op.MINIMUM: OperatorInfo(
            arity=2, operands=Operands.NUMBER, evaluate=_minimum, associative=True, commutative=True
        ),
        Op.MAXIMUM: OperatorInfo(
            arity=2, operands=Operands.NUMBER, evaluate=_maximum, associative=True, commutative=True
        ),
        Op.NEGATE: OperatorInfo(arity=1, operands=Operands.NUMBER, evaluate=np.negative),
        Op.ABSOLUTE: OperatorInfo(arity=1, operands=Operands.NUMBER, evaluate=np.absolute),
        Op.SQUARE_ROOT: OperatorInfo(arity=1, operands=Operands.FLOAT, evaluate=np.sqrt),
        Op.RECIPROCAL_SQUARE_ROOT: OperatorInfo(
            arity=1, operands=Operands.FLOAT, evaluate=_reciprocal_square_root
        ),
        Op.EXPONENTIAL: _c_function("exp", _exponential_of),
        Op.LOGARITHM: _c_function("log", _logarithm_of),
        Op.HYPERBOLIC_TANGENT: _c_function("tanh", math.tanh),
        Op.ERROR_FUNCTION: _c_function("erf", math.erf),
        Op.FLOOR: OperatorInfo(arity=1, operands=Operands.FLOAT, evaluate=np.floor),
        Op.CEILING: OperatorInfo(arity=1, operands=Operands.FLOAT, evaluate=np.ceil),
        Op.EQUAL: _compare(np.equal, Operands.ANY),
        Op.NOT_EQUAL: _compare(np.not_equal, Operands.ANY),
        Op.LESS: _compare(np.less),
        Op.LESS_EQUAL: _compare(np.less_equal),
        Op.GREATER: _compare(np.greater),
        Op.GREATER_EQUAL: _compare(np.greater_equal),
        Op.AND: OperatorInfo(
            arity=2,
            operands=Operands.LOGIC,
            evaluate=_logic(np.logical_and, np.bitwise_and),
            associative=True,
            commutative=True,
        ),
        Op.OR: OperatorInfo(
            arity=2,
            operands=Operands.LOGIC,
            evaluate=_logic(np.logical_or, np.bitwise_or),
            associative=True,
            commutative=True,
        ),
        Op.XOR: OperatorInfo(
            arity=2,
            operands=Operands.LOGIC,
            evaluate=_logic(np.logical_xor, np.bitwise_xor),
            associative=True,
            commutative=True,
        ),
        Op.NOT: OperatorInfo(
            arity=1, operands=Operands.LOGIC, evaluate=_logic(np.logical_not, np.invert)
        ),
        Op.SHIFT_LEFT: OperatorInfo(arity=2, operands=Operands.INTEGER, evaluate=np.left_shift),
        Op.SHIFT_RIGHT: OperatorInfo(arity=2, operands=Operands.INTEGER, evaluate=np.right_shift),
        Op.FUSED_MULTIPLY_ADD: OperatorInfo(
            arity=3, operands=Operands.NUMBER, evaluate=fused_multiply_add
        ),
    }
)

C_FUNCTIONS: Mapping[Op, str] = MappingProxyType(
    {op: info.c_function for op, info in OPERATORS.items() if info.c_function is not None}
)
"""Operators that are a function of float64 of the C library, in the order of their addresses."""


def accepts(operator: Op, operand: Type) -> bool:
    """Whether ``operator`` is defined on operands of this type."""
    match OPERATORS[operator].operands:
        case Operands.ANY:
            return True
        case Operands.NUMBER:
            return not operand.is_bool
        case Operands.FLOAT:
            return operand.is_float
        case Operands.INTEGER:
            return operand.is_integer
        case Operands.LOGIC:
            return operand.is_bool or operand.is_integer


def result_type(operator: Op, operand: Type) -> Type:
    """The type of the result on operands of type ``operand`` (comparisons give bool)."""
    return BOOL.with_lanes(operand.lanes) if OPERATORS[operator].comparison else operand


def reorderable(operator: Op, operand: Type) -> bool:
    """Whether a reduction may be reordered and still give the same bits.

    True for associative, commutative operators on integers and bools, and for floating-point
    minimum and maximum, as long as neither NaN nor zeros of both signs are among the values; false
    for floating-point sums and products, which round.
    """
    info = OPERATORS[operator]
    if not (info.associative and info.commutative):
        return False
    return not operand.is_float or operator in (Op.MINIMUM, Op.MAXIMUM)


def neutral_element(operator: Op, operand: Type) -> int | float | bool | None:
    """The value ``n`` for which ``operator(x, n)`` is ``x``, bit for bit; ``None`` without one.

    For a sum of floats it is -0.0: adding 0.0 would make 0.0 of -0.0.
    """
    low, high = (-math.inf, math.inf) if operand.is_float else value_range(operand)
    ones = True if operand.is_bool else -1 if operand.kind is Kind.INT else high
    neutral: dict[Op, int | float | bool] = {
        Op.ADD: -0.0 if operand.is_float else 0,
        Op.MULTIPLY: 1.0 if operand.is_float else 1,
        Op.MINIMUM: high,
        Op.MAXIMUM: low,
        Op.AND: ones,
        Op.OR: False if operand.is_bool else 0,
        Op.XOR: False if operand.is_bool else 0,
    }
    return neutral.get(operator)


def apply_operator(operator: Op, result: Type, operands: tuple[Array, ...]) -> Array:
    """The operator on numpy values, rounded to ``result``.

    Callers hold ``np.errstate(all="ignore")``: overflow, NaN and division by zero are values here.
    """
    value = OPERATORS[operator].evaluate(*operands)
    return np.asarray(value).astype(result.numpy, copy=False)


def cast_value(value: Array, target: Type) -> Array:
    """Convert to ``target``: a float becomes an integer by truncation and saturation, NaN 0."""
    array = np.asarray(value)
    dtype = target.numpy
    to_integer = target.is_integer and array.dtype.kind not in "iub"
    if not to_integer:
        return array.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    wide = np.trunc(np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    low, high = float(limits.min), float(limits.max)
    inside = (wide > low) & (wide < high)
    converted = np.where(inside, wide, 0).astype(dtype)
    return np.where(wide >= high, limits.max, np.where(wide <= low, limits.min, converted)).astype(
        dtype
    )
