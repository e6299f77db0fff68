"""Arrays and scalars that users pass in; the error texts are in ``tests/errors``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from t2s.core.arrays import ArraySpec, check_inputs, describe
from t2s.core.errors import UserError
from t2s.core.types import BFloat, Bool, Float, Int, Type, UInt


def spec(type: Type, *shape: int) -> ArraySpec:
    return ArraySpec(name="X", type=type, shape=shape, location=None)


def checked(type: Type, value: Any, *shape: int) -> Any:
    return check_inputs([spec(type, *shape)], {"X": value})["X"]


def refusal(type: Type, value: Any, *shape: int) -> UserError:
    with pytest.raises(UserError) as caught:
        checked(type, value, *shape)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    return caught.value


@pytest.mark.parametrize(
    "type", [Int(8), UInt(64), Float(16), Float(64), BFloat(), Bool()], ids=str
)
def test_arrays_of_the_declared_type_pass(type: Type) -> None:
    array = np.ones((2, 3), type.numpy)
    assert np.array_equal(checked(type, array, 2, 3), array)


def test_arrays_become_contiguous() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    result = checked(Int(32), array, 3, 2)
    assert result.flags.c_contiguous
    assert np.array_equal(result, array)


def test_nested_lists_are_arrays_too() -> None:
    assert checked(Int(64), [[1, 2]], 1, 2).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (Int(8), -128),
        (UInt(8), 255),
        (Int(32), np.int32(7)),
        (Float(32), 2),
        (Float(64), 2.5),
        (Float(16), np.float16(0.5)),
        (Bool(), True),
        (BFloat(), 1.5),
        (UInt(64), 2**64 - 1),
        (Int(8), np.int8(-128)),
        (Float(16), float("inf")),
        (Int(32), np.asarray(3, np.int32)),
    ],
)
def test_scalars_that_pass(type: Type, value: Any) -> None:
    result = checked(type, value)
    assert result == value
    assert np.asarray(result).dtype == type.numpy


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (Int(32), 2.5),
        (Int(32), np.int64(2)),
        (Int(32), "2"),
        (Int(32), [1, 2]),
        (Float(32), np.float64(2)),
        (Float(32), None),
        (Bool(), 1.0),
        (Int(32), np.zeros(2, np.int32)),
    ],
)
def test_scalars_of_another_type(type: Type, value: Any) -> None:
    error = refusal(type, value)
    assert error.message == "the parameter X has the wrong type"
    assert error.expected == describe(spec(type))


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (Int(8), 128),
        (UInt(8), -1),
        (Int(32), 2**31),
        (Int(64), 2**70),
        (Bool(), 2),
        (Float(16), 1e6),
        (Float(64), 10**400),
    ],
)
def test_scalars_that_do_not_fit(type: Type, value: Any) -> None:
    error = refusal(type, value)
    assert error.message == f"the parameter X does not fit into {type}"
    assert error.given == str(value)


@pytest.mark.parametrize(
    ("type", "hint"),
    [
        (Int(16), "array.astype(np.int16)"),
        (BFloat(), "array.astype(ml_dtypes.bfloat16)"),
        (Bool(), "array.astype(np.bool_)"),
    ],
)
def test_the_hint_for_a_wrong_type_can_be_typed_in(type: Type, hint: str) -> None:
    assert refusal(type, np.zeros(2), 2).hint == f"convert it: {hint}"


def test_arrays_of_another_shape() -> None:
    assert refusal(Int(32), np.zeros((2, 2), np.int32), 4).given == "shape (2, 2)"


def test_names_have_to_match() -> None:
    specs = [spec(Int(32), 2)]
    with pytest.raises(UserError, match="the input X is missing"):
        check_inputs(specs, {})
    with pytest.raises(UserError, match="the program has no input Y"):
        check_inputs(specs, {"X": np.zeros(2, np.int32), "Y": 1})


def test_large_integers_of_floats() -> None:
    assert float(checked(BFloat(), 2**100)) == 2.0**100
    assert checked(Float(32), 2**100) == np.float32(2.0**100)


def test_only_required_inputs_have_to_be_given() -> None:
    specs = [spec(Int(32), 2), ArraySpec(name="n", type=Int(32), shape=(), location=None)]
    assert check_inputs(specs, {"n": 3}, required={"n"}) == {"n": 3}
    with pytest.raises(UserError, match="the parameter n is missing"):
        check_inputs(specs, {"X": np.zeros(2, np.int32)}, required={"n"})
    with pytest.raises(UserError, match="the input X has the wrong shape"):
        check_inputs(specs, {"X": np.zeros(3, np.int32), "n": 3}, required={"n"})


def test_what_the_program_computes_is_not_given() -> None:
    result = ArraySpec(name="Y", type=Int(32), shape=(2,), location=None)
    with pytest.raises(UserError, match=r"(?s)has no input Y.*computes Y: leave it out"):
        check_inputs([], {"Y": np.zeros(2, np.int32)}, computed=[result])


def test_ragged_lists() -> None:
    error = refusal(Int(64), [[1], [2, 3]], 2, 2)
    assert error.message == "the input X cannot be converted to an array"
    assert error.given is not None
    assert error.given.startswith("list, which numpy refuses: ")


def test_lists_of_another_type() -> None:
    error = refusal(Int(32), [1.0, 2.0], 2)
    assert error.given == "list, in numpy float64 of shape (2,)"
    assert error.hint == "convert it: np.asarray(x, np.int32)"
