"""Types of definitions: what weak literals become, and how operands are unified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import t2s
from t2s import BFloat, Bool, Float, Func, ImageParam, Int, Param, RDom, Type, UInt, Var

i, j = Var("i"), Var("j")
NUMBERS = (Float(64), Float(32), Float(16), BFloat(), Int(8), Int(64), UInt(8), UInt(32))


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_a_weak_initial_value_takes_the_type_of_the_update(type: Type) -> None:
    A, C, k = ImageParam(type, 2, name="A"), Func("C"), RDom(0, 3, name="k")
    C[i] = 0
    C[i] += A[i, k] * 2
    a = np.arange(6).reshape(2, 3).astype(type.numpy)
    result = t2s.interpret(C.bound(i, 0, 2), {"A": a})
    assert C.type == type
    assert result.dtype == type.numpy
    assert result.astype(int).tolist() == [6, 24]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(3, "int32"), (3.5, "float32"), (True, "bool"), (np.int16(3), "int16"), (np.float64(3), "f8")],
)
def test_a_literal_alone_has_the_default_type(value: object, dtype: str) -> None:
    f = Func("f")
    f[i] = value
    assert t2s.interpret(f.bound(i, 0, 2), {}).dtype == np.dtype(dtype)


def test_a_declared_type_wins_over_literals() -> None:
    f = Func("f", Int(16))
    f[i] = 7
    assert f.type == Int(16)
    assert t2s.interpret(f.bound(i, 0, 2), {}).dtype == np.int16


def test_a_func_that_is_read_before_its_type_is_known() -> None:
    """``total`` is weak while the update is written, and float64 because of it."""
    A, total, k = ImageParam(Float(64), 1, name="A"), Func("total"), RDom(0, 4, name="k")
    total[i] = 1
    total[i] = total[i] * 2 + A[k]
    a = np.array([0.25, 0.5, 1.0, 2.0])
    assert t2s.interpret(total.bound(i, 0, 1), {"A": a}).tolist() == [24.0]


def element(type: Type) -> Any:
    return ImageParam(type, 1, name=f"{type}_input")[i]


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (Int(8), Int(32), Int(32)),
        (UInt(8), UInt(16), UInt(16)),
        (Float(16), Float(32), Float(32)),
        (BFloat(), Float(32), Float(32)),
        (Int(64), Float(32), Float(32)),
        (UInt(8), BFloat(), BFloat()),
    ],
    ids=str,
)
def test_operands_are_widened(left: Type, right: Type, result: Type) -> None:
    assert (element(left) + element(right)).type == result
    assert (element(right) + element(left)).type == result


@pytest.mark.parametrize("type", NUMBERS, ids=str)
def test_literals_adopt_the_type_they_meet(type: Type) -> None:
    assert (element(type) + 1).type == type
    assert (1 - element(type)).type == type
    assert t2s.select(i > 0, element(type), 0).type == type
    assert t2s.max(element(type), 3).type == type


@pytest.mark.parametrize("type", [Float(16), Float(32), Float(64), BFloat()], ids=str)
def test_fractions_adopt_the_type_of_floats(type: Type) -> None:
    assert (element(type) * 0.5).type == type
    assert (element(type) * float("inf")).type == type


def test_numpy_scalars_have_the_type_they_say() -> None:
    assert (element(Float(32)) * np.float64(2)).type == Float(64)
    assert (np.float64(2) * element(Float(32))).type == Float(64)
    assert (np.int8(1) + element(Int(32))).type == Int(32)


def test_comparisons_and_logic_give_bools() -> None:
    assert (element(Int(8)) < 3).type == Bool()
    assert ((element(Int(8)) == 3) & (i > 0) | ~(j != 2)).type == Bool()


def test_variables_and_integer_parameters_are_int32() -> None:
    assert (i + j * 2).type == Int(32)
    assert (Param(Int(32), name="n") + i).type == Int(32)


@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        (Int(64), 3_000_000_000, 3_000_000_000),
        (UInt(8), 255, 255),
        (Int(32), 2.9, 2),
        (Int(8), 1e9, 127),
        (Float(16), 0.1, float(np.float16(0.1))),
        (Bool(), 5, True),
    ],
)
def test_cast_of_literals(type: Type, value: float, expected: float) -> None:
    f = Func("f")
    f[i] = t2s.cast(type, value)
    result = t2s.interpret(f.bound(i, 0, 1), {})
    assert result.dtype == type.numpy
    assert result[0] == expected
