"""Types: spelling, sizes, numpy dtypes and the unification table."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from t2s.core.errors import UserError
from t2s.core.types import (
    BOOL,
    INT32,
    WEAK_FLOAT,
    WEAK_INT,
    BFloat,
    Bool,
    Float,
    Int,
    Type,
    UInt,
    unify,
)


@pytest.mark.parametrize(
    ("type", "text", "size", "dtype"),
    [
        (Int(8), "int8", 1, np.int8),
        (UInt(64), "uint64", 8, np.uint64),
        (Float(16), "float16", 2, np.float16),
        (Float(64), "float64", 8, np.float64),
        (BFloat(), "bfloat16", 2, ml_dtypes.bfloat16),
        (Bool(), "bool", 1, np.bool_),
        (Float(32).with_lanes(8), "float32x8", 32, np.float32),
        (Bool().with_lanes(4), "boolx4", 4, np.bool_),
    ],
)
def test_spelling_size_and_dtype(type: Type, text: str, size: int, dtype: object) -> None:
    assert str(type) == text
    assert type.bytes == size
    assert type.numpy == np.dtype(dtype)


def test_families_are_disjoint() -> None:
    for type, family in ((INT32, "integer"), (UInt(8), "integer"), (BFloat(), "float")):
        assert (type.is_integer, type.is_float, type.is_bool) == (
            family == "integer",
            family == "float",
            False,
        )
    assert (BOOL.is_integer, BOOL.is_float, BOOL.is_bool) == (False, False, True)


def test_scalar_lanes_and_strength() -> None:
    vector = Float(32).with_lanes(16)
    assert vector.scalar == Float(32)
    assert WEAK_INT != INT32
    assert WEAK_INT.strengthened() == INT32
    assert WEAK_FLOAT.strengthened() == Float(32)


@pytest.mark.parametrize(
    ("make", "bits", "text"),
    [
        (Int, 7, "an int type of 8 or 16 or 32 or 64 bits"),
        (UInt, 128, "a uint type of 8 or 16 or 32 or 64 bits"),
        (Float, 8, "a float type of 16 or 32 or 64 bits"),
        (BFloat, 32, "a bfloat type of 16 bits"),
        *((Int, bits, "an int type") for bits in ([1], "32", None, 32.0, True, np.ones(2))),
    ],
)
def test_widths_are_checked(make: Callable[[object], object], bits: object, text: str) -> None:
    with pytest.raises(UserError, match=text):
        make(bits)


def test_widths_of_numpy_are_widths() -> None:
    assert Int(np.int64(16)) == Int(16)
    assert type(Int(np.int64(16)).bits) is int


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        (INT32, INT32, INT32),
        (Int(8), Int(64), Int(64)),
        (UInt(8), UInt(16), UInt(16)),
        (UInt(32), Int(32), None),
        (UInt(8), Int(64), None),
        (Float(16), Float(64), Float(64)),
        (Int(64), Float(16), Float(16)),
        (UInt(8), BFloat(), BFloat()),
        (BFloat(), Float(32), Float(32)),
        (BFloat(), Float(16), None),
        (BOOL, BOOL, BOOL),
        (BOOL, INT32, None),
        (BOOL, Float(32), None),
        # a bare Python number takes the type of what it meets
        (WEAK_INT, Int(8), Int(8)),
        (WEAK_INT, UInt(64), UInt(64)),
        (WEAK_INT, Float(16), Float(16)),
        (WEAK_INT, BFloat(), BFloat()),
        (WEAK_INT, BOOL, None),
        (WEAK_FLOAT, Float(16), Float(16)),
        (WEAK_FLOAT, Float(64), Float(64)),
        (WEAK_FLOAT, INT32, None),
        (WEAK_FLOAT, BOOL, None),
        (WEAK_INT, WEAK_INT, WEAK_INT),
        (WEAK_INT, WEAK_FLOAT, WEAK_FLOAT),
        (WEAK_INT, INT32, INT32),
        (WEAK_FLOAT, Float(32), Float(32)),
        # vectors unify lane by lane
        (Int(8).with_lanes(4), Int(32).with_lanes(4), Int(32).with_lanes(4)),
        (Float(32).with_lanes(4), Float(32).with_lanes(8), None),
        (Float(32), Float(32).with_lanes(8), None),
        (Int(64), Int(32).with_lanes(4), None),
        (WEAK_FLOAT, Float(32).with_lanes(8), Float(32).with_lanes(8)),
        (WEAK_INT, Float(32).with_lanes(8), Float(32).with_lanes(8)),
    ],
)
def test_unify_both_ways(left: Type, right: Type, common: Type | None) -> None:
    assert unify(left, right) == common
    assert unify(right, left) == common
