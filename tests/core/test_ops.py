"""The operator table: values at the edges, casts, result types and algebra."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from t2s.core.ops import (
    OPERATORS,
    Op,
    accepts,
    apply_operator,
    cast_value,
    reorderable,
    result_type,
)
from t2s.core.types import BOOL, BFloat, Float, Int, Type, UInt

NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def _values_not_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def run(operator: Op, type: Type, *operands: float) -> object:
    values = tuple(np.asarray(operand, type.numpy) for operand in operands)
    result = apply_operator(operator, result_type(operator, type), values)
    assert result.dtype == result_type(operator, type).numpy
    return result.item()


LOW8, HIGH8 = -128, 127
LOW32, LOW64 = -(2**31), -(2**63)


@pytest.mark.parametrize(
    ("operator", "type", "operands", "expected"),
    [
        (Op.ADD, Int(8), (HIGH8, 1), LOW8),
        (Op.ADD, UInt(8), (255, 1), 0),
        (Op.ADD, Float(32), (2.0**24, 1.0), 2.0**24),
        (Op.ADD, BFloat(), (256.0, 1.0), 256.0),
        (Op.SUBTRACT, UInt(16), (0, 1), 65535),
        (Op.SUBTRACT, Int(64), (LOW64, 1), 2**63 - 1),
        (Op.MULTIPLY, Int(32), (65536, 65536), 0),
        (Op.MULTIPLY, Float(16), (300.0, 300.0), INF),
        (Op.DIVIDE, Float(32), (1.0, 0.0), INF),
        (Op.DIVIDE, Float(32), (-1.0, 0.0), -INF),
        (Op.NEGATE, Int(8), (LOW8,), LOW8),
        (Op.NEGATE, UInt(8), (1,), 255),
        (Op.ABSOLUTE, Int(8), (LOW8,), LOW8),
        (Op.ABSOLUTE, Float(32), (-INF,), INF),
        (Op.SQUARE_ROOT, Float(64), (2.25,), 1.5),
        (Op.RECIPROCAL_SQUARE_ROOT, Float(32), (0.25,), 2.0),
        (Op.RECIPROCAL_SQUARE_ROOT, Float(64), (0.0,), INF),
        (Op.EXPONENTIAL, Float(64), (1.0,), math.e),
        (Op.EXPONENTIAL, Float(64), (1000.0,), INF),
        (Op.EXPONENTIAL, Float(32), (-INF,), 0.0),
        (Op.LOGARITHM, Float(64), (math.e,), 1.0),
        (Op.LOGARITHM, Float(32), (0.0,), -INF),
        (Op.LOGARITHM, Float(32), (-0.0,), -INF),
        (Op.LOGARITHM, Float(32), (INF,), INF),
        (Op.HYPERBOLIC_TANGENT, Float(32), (-INF,), -1.0),
        (Op.ERROR_FUNCTION, Float(64), (0.5,), 0.5204998778130465),
        (Op.ERROR_FUNCTION, Float(32), (INF,), 1.0),
        (Op.FLOOR, Float(32), (-1.5,), -2.0),
        (Op.CEILING, BFloat(), (1.5,), 2.0),
        (Op.SHIFT_LEFT, Int(8), (1, 7), LOW8),
        (Op.SHIFT_LEFT, Int(8), (1, 8), 0),
        (Op.SHIFT_LEFT, Int(64), (1, -1), 0),
        (Op.SHIFT_RIGHT, Int(8), (LOW8, 7), -1),
        (Op.SHIFT_RIGHT, Int(32), (-5, 32), -1),
        (Op.SHIFT_RIGHT, Int(32), (-5, -1), -1),
        (Op.SHIFT_RIGHT, Int(32), (5, LOW32), 0),
        (Op.SHIFT_RIGHT, UInt(16), (65535, 15), 1),
        (Op.SHIFT_RIGHT, UInt(16), (65535, 16), 0),
        (Op.EQUAL, Float(32), (0.0, -0.0), True),
        (Op.EQUAL, Float(32), (NAN, NAN), False),
        (Op.NOT_EQUAL, Float(32), (NAN, NAN), True),
        (Op.EQUAL, BOOL, (True, False), False),
        (Op.LESS, UInt(8), (1, 255), True),
        (Op.LESS_EQUAL, Int(8), (3, 3), True),
        (Op.GREATER, Float(32), (NAN, 0.0), False),
        (Op.GREATER_EQUAL, Int(8), (-1, 0), False),
        (Op.AND, BOOL, (True, False), False),
        (Op.AND, Int(8), (0b110, 0b011), 0b010),
        (Op.OR, BOOL, (True, False), True),
        (Op.OR, UInt(8), (0b100, 0b001), 0b101),
        (Op.XOR, BOOL, (True, True), False),
        (Op.XOR, Int(8), (-1, 1), -2),
        (Op.NOT, BOOL, (True,), False),
        (Op.NOT, Int(8), (0,), -1),
        (Op.NOT, UInt(8), (0,), 255),
    ],
)
def test_value(operator: Op, type: Type, operands: tuple[float, ...], expected: float) -> None:
    assert run(operator, type, *operands) == expected


def test_every_operator_has_a_row() -> None:
    assert set(OPERATORS) == set(Op)


@pytest.mark.parametrize("left", [-7, -1, 0, 1, 7])
@pytest.mark.parametrize("right", [-3, -1, 1, 3])
def test_floor_division_rounds_as_python(left: int, right: int) -> None:
    assert run(Op.FLOOR_DIVIDE, Int(16), left, right) == left // right
    assert run(Op.MODULO, Int(16), left, right) == left % right


@pytest.mark.parametrize("type", [Int(8), Int(32), Int(64), UInt(8), UInt(64)])
def test_division_by_zero_is_zero(type: Type) -> None:
    assert run(Op.FLOOR_DIVIDE, type, 5, 0) == 0
    assert run(Op.MODULO, type, 5, 0) == 0


@pytest.mark.parametrize("type", [Int(8), Int(32), Int(64)])
def test_floor_division_of_the_smallest_by_minus_one_wraps(type: Type) -> None:
    smallest = -(2 ** (type.bits - 1))
    assert run(Op.FLOOR_DIVIDE, type, smallest, -1) == smallest
    assert run(Op.MODULO, type, smallest, -1) == 0


def test_minimum_and_maximum_keep_the_left_unless_the_right_is_strictly_beyond() -> None:
    for operator in (Op.MINIMUM, Op.MAXIMUM):
        assert math.isnan(run(operator, Float(32), NAN, 1.0))
        assert run(operator, Float(32), 1.0, NAN) == 1.0
        assert math.copysign(1.0, run(operator, Float(32), -0.0, 0.0)) == -1.0
        assert math.copysign(1.0, run(operator, Float(32), 0.0, -0.0)) == 1.0
    assert run(Op.MINIMUM, Int(8), -1, 1) == -1
    assert run(Op.MAXIMUM, UInt(8), 255, 1) == 255


def test_nan_results() -> None:
    assert math.isnan(run(Op.DIVIDE, Float(32), 0.0, 0.0))
    assert math.isnan(run(Op.SQUARE_ROOT, Float(32), -1.0))
    assert math.isnan(run(Op.EXPONENTIAL, Float(32), NAN))


def test_exponential_of_a_narrow_type_is_rounded_once() -> None:
    value = np.asarray(0.3, np.float32)
    expected = np.float32(math.exp(float(value)))
    assert run(Op.EXPONENTIAL, Float(32), float(value)) == expected.item()


@pytest.mark.parametrize("type", [Int(8), Int(16), Int(32), Int(64), UInt(8), UInt(32), UInt(64)])
def test_shifts_beyond_the_width_leave_the_sign(type: Type) -> None:
    """In arrays of every length: numpy has vector code for some of them."""
    limits = np.iinfo(type.numpy)
    values = np.array([limits.min, limits.max, 0, 1, 5] * 13, type.numpy)
    amounts = [type.bits, type.bits + 1, limits.max] + (
        [-1, -type.bits, limits.min] * bool(limits.min)
    )
    for amount in amounts:
        by = np.full_like(values, amount)
        left = apply_operator(Op.SHIFT_LEFT, type, (values, by))
        right = apply_operator(Op.SHIFT_RIGHT, type, (values, by))
        assert not left.any()
        np.testing.assert_array_equal(right, np.where(values < 0, -1, 0))


def test_logarithm_below_zero_is_no_number() -> None:
    assert math.isnan(run(Op.LOGARITHM, Float(32), -1.0))
    assert math.isnan(run(Op.LOGARITHM, Float(64), NAN))


def test_operators_work_on_whole_arrays() -> None:
    left = np.array([[7, -7], [5, 5]], np.int32)
    right = np.array([2, 0], np.int32)
    quotient = apply_operator(Op.FLOOR_DIVIDE, Int(32), (left, right))
    np.testing.assert_array_equal(quotient, [[3, 0], [2, 0]])
    shape = apply_operator(Op.EXPONENTIAL, Float(64), (np.zeros((2, 0, 3)),)).shape
    assert shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (2.9, Int(32), 2),
        (-2.9, Int(32), -2),
        (-0.9, UInt(8), 0),
        (300.0, Int(8), 127),
        (-300.0, Int(8), -128),
        (127.5, Int(8), 127),
        (-1.0, UInt(16), 0),
        (NAN, Int(32), 0),
        (INF, Int(64), 2**63 - 1),
        (-INF, Int(64), -(2**63)),
        (1e19, Int(64), 2**63 - 1),
        (2.0**62, Int(64), 2**62),
        (INF, UInt(64), 2**64 - 1),
        (2.0**63, UInt(64), 2**63),
        (3e9, Int(32), 2**31 - 1),
        (NAN, UInt(8), 0),
    ],
)
def test_cast_of_a_float_truncates_and_saturates(value: float, target: Type, expected: int) -> None:
    converted = cast_value(np.float64(value), target)
    assert converted.dtype == target.numpy
    assert converted.item() == expected


def test_cast_between_other_types() -> None:
    assert cast_value(np.int32(300), UInt(8)).item() == 44  # integers wrap
    assert cast_value(np.int8(-1), UInt(32)).item() == 2**32 - 1
    assert cast_value(np.bool_(True), Int(8)).item() == 1
    assert cast_value(np.float32(2.5), BOOL).item() is True
    assert cast_value(np.float64(0.1), Float(32)).item() == np.float32(0.1).item()
    bfloat = cast_value(np.float32(257.0), BFloat())
    assert float(bfloat) == 256.0  # ties to even in 8 bits of significand
    assert cast_value(bfloat, Int(8)).item() == 127
    np.testing.assert_array_equal(cast_value(np.array([1.5, NAN]), Int(16)), [1, 0])


def test_result_types() -> None:
    vector = Int(16).with_lanes(8)
    assert result_type(Op.ADD, vector) == vector
    assert result_type(Op.LESS, vector) == BOOL.with_lanes(8)
    assert result_type(Op.EQUAL, BOOL) == BOOL


@pytest.mark.parametrize(
    ("operator", "accepted", "refused"),
    [
        (Op.ADD, (Int(8), UInt(8), Float(32), BFloat()), (BOOL,)),
        (Op.DIVIDE, (Float(32), BFloat()), (Int(32), BOOL)),
        (Op.MODULO, (Int(32), UInt(8)), (Float(32), BOOL)),
        (Op.AND, (BOOL, Int(32)), (Float(32),)),
        (Op.EQUAL, (BOOL, Int(32), Float(32)), ()),
        (Op.LESS, (Int(32), Float(32)), (BOOL,)),
    ],
)
def test_accepts(operator: Op, accepted: tuple[Type, ...], refused: tuple[Type, ...]) -> None:
    assert all(accepts(operator, type) for type in accepted)
    assert not any(accepts(operator, type) for type in refused)


def test_reorderable() -> None:
    assert reorderable(Op.ADD, Int(32))
    assert reorderable(Op.XOR, BOOL)
    assert reorderable(Op.MINIMUM, Float(32))
    assert reorderable(Op.MAXIMUM, BFloat())
    assert not reorderable(Op.ADD, Float(32))  # rounds
    assert not reorderable(Op.MULTIPLY, BFloat())
    assert not reorderable(Op.SUBTRACT, Int(32))  # not associative
    assert not reorderable(Op.EQUAL, BOOL)
