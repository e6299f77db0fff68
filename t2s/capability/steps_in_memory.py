"""Whether a function takes an array with the steps that it has in memory, or a copy of it."""

from __future__ import annotations

from typing import Any, Literal, assert_never

import numpy as np

from t2s.capability.ir import Strides

Array = np.ndarray[Any, Any]


def suits(array: Array, strides: Strides) -> bool:
    """Whether a function that asks for these steps takes the array as it is."""
    if not array.flags.aligned or not array.dtype.isnative:
        return False
    match strides:
        case Strides.ANY:
            return True
        case Strides.DENSE:
            return bool(array.flags.c_contiguous)
        case Strides.STEPS:
            return all(
                step > 0 and step % array.itemsize == 0
                for step, extent in zip(array.strides, array.shape, strict=True)
                if extent > 1
            )
        case Strides.ROWS:
            return is_by_rows(array)
        case Strides.COLUMNS:
            return is_by_rows(array.T)
        case Strides.ONE_IS_1:
            return is_by_rows(array) or is_by_rows(array.T)
        case _:
            assert_never(strides)


def is_by_rows(array: Array) -> bool:
    """Whether the last mode has step 1, and rows do not overlap."""
    reach = array.itemsize
    for at in reversed(range(array.ndim)):
        step, extent = array.strides[at], array.shape[at]
        last = at == array.ndim - 1
        if extent > 1:
            inner = at < array.ndim - 1 and at > 0 and step != reach
            if (last and step != array.itemsize) or step < reach or step % array.itemsize or inner:
                return False
            reach = step * extent if not last else array.itemsize * extent
        elif last:
            reach = array.itemsize
    return True


def suited(array: Array, strides: Strides) -> Array:
    """The array, or a copy of it that suits."""
    if suits(array, strides):
        return array
    order: Literal["F", "C"] = "F" if strides is Strides.COLUMNS else "C"
    return np.asarray(array.astype(array.dtype.newbyteorder("="), order=order, copy=True))
