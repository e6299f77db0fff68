"""Values of matrices and tensors, whatever they come from: arrays of real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.core.arrays import is_array_like
from t2s.core.errors import UserError
from t2s.core.location import user_location

Array = np.ndarray[Any, Any]

MOST_POSITIONS = 2**28
"""Positions of a level: what is stored of each is allocated at once."""


def plain_array(value: Any, what: str) -> Array:
    """A value as a numpy array, whatever its own conversion raises."""
    try:
        if is_array_like(value):
            return np.asarray(value)
        reason = "an object without an array protocol"
    except Exception as error:  # noqa: BLE001 - whatever an object raises
        reason = f"{error}" or type(error).__name__
    raise UserError(
        f"a {type(value).__name__} is not {what}",
        location=user_location(),
        expected="an array of numbers",
        given=reason,
    )


def real_values(values: Any) -> Array:
    """Values as an array of real numbers; ``UserError`` for what streams cannot compute with."""
    array = plain_array(values, "a tensor")
    check_positions(array.size, "dense")
    if array.dtype.kind == "c":
        raise UserError(
            f"values of type {array.dtype} cannot be computed on streams",
            location=user_location(),
            expected="real numbers",
            hint="compute with the real and the imaginary parts, x.real and x.imag",
        )
    if array.dtype.kind not in "iufb" and array.dtype.name != "bfloat16":
        raise UserError(
            f"values of type {array.dtype} cannot be computed on streams",
            location=user_location(),
            expected="numbers",
        )
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def check_positions(count: int, format: object) -> None:
    """Refuse a level of so many positions, of a tensor in that format."""
    if count > MOST_POSITIONS:
        raise UserError(
            f"the format {format} stores too much for this tensor",
            location=user_location(),
            expected=f"at most {MOST_POSITIONS} positions in each level",
            given=f"{count} positions",
            hint="dense levels store every coordinate: compressed ones, or coo, only those needed",
        )


INDICES = ("pos", "crd")
"""The arrays of levels with positions and coordinates, of which others are computed."""


def indices(array: Array, name: str) -> Array:
    """An array of a level, with room for what is computed from it: int64 if not int32.

    Raises ``UserError`` for unsigned ones that are no int64; bits, and what is no integer, stay as
    they are.
    """
    if name not in INDICES or array.dtype.kind not in "iu" or array.dtype in (np.int32, np.int64):
        return array
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise UserError(
            f"the array {name} has integers of more than 63 bits",
            location=user_location(),
            expected=f"at most {np.iinfo(np.int64).max}",
            given=str(int(array.max())),
        )
    return array.astype(np.int64)
