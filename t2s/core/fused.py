"""``a * b + c`` of floating-point numbers, rounded once: exact, on whole arrays.

float64 is computed with error-free transformations and a sum that is rounded to odd (S. Boldo and
G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008).  These need numbers that are
neither very large nor very small; all others, and arrays of a few elements, are computed one by
one in exact fractions.  The product of two narrower numbers is exact in float64, so that one sum
rounded to odd is enough for float32; float16 and bfloat16 are computed in float32 and rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Array = Any

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
