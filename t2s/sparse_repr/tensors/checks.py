"""What a tensor may be made of: real numbers, coordinates of 64 bits, not too many positions.

Whatever values come from, they pass ``real_values``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Array

MOST_POSITIONS = 2**28
"""Positions of a level: what is stored of each is allocated at once."""

MOST_COORDINATE = 2**63 - 1
"""Coordinates are int64."""


def coordinate_table(coordinates: Any, count: int, order: int) -> Array:
    """The coordinates as rows of integers."""
    given = plain_array(coordinates, "coordinates")
    if given.size == 0 and not (count and order):
        return np.zeros((count, order), np.int64)
    if given.shape != (count, order) and not (order == 1 and given.shape == (count,)):
        raise UserError(
            "there is not one row of coordinates for each value",
            location=user_location(),
            expected=f"{count} rows of {order}",
            given=f"an array of shape {' x '.join(map(str, given.shape)) or 'none'}",
        )
    if given.dtype.kind in "iub":
        most = int(given.max(initial=0))
        if most > MOST_COORDINATE:
            raise UserError(
                "a coordinate is too large",
                location=user_location(),
                expected=f"at most {MOST_COORDINATE}",
                given=str(most),
            )
        return given.astype(np.int64).reshape(count, order)
    with np.errstate(all="ignore"):
        whole = given.astype(np.int64) if given.dtype.kind == "f" else None
    if whole is None or (np.abs(given) > 2**53).any() or (whole != given).any():
        raise UserError(
            "coordinates are integers",
            location=user_location(),
            expected=f"integers, or floats that are exact integers up to {2**53}",
            given=f"an array of {given.dtype}",
        )
    return whole.reshape(count, order)


def plain_array(value: Any, what: str) -> Array:
    """A value as a numpy array, whatever its own conversion raises."""
    try:
        return np.asarray(value)
    except Exception as error:  # noqa: BLE001 - whatever an object raises
        raise UserError(
            f"a {type(value).__name__} is not {what}",
            location=user_location(),
            expected="an array of numbers",
            given=f"{error}" or type(error).__name__,
        ) from None


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


def checked_fill(fill: Any) -> float | int:
    """What is where nothing is stored.  Raises ``UserError`` unless it is a number."""
    number: Any = fill.item() if isinstance(fill, np.generic) else fill
    if not isinstance(number, int | float):
        raise UserError(
            "what is where nothing is stored is no number",
            location=user_location(),
            expected="fill, such as 0 or math.inf",
            given=repr(fill),
        )
    return number


def check_positions(count: int, format: Format | str) -> None:
    if count > MOST_POSITIONS:
        raise UserError(
            f"the format {format} stores too much for this tensor",
            location=user_location(),
            expected=f"at most {MOST_POSITIONS} positions in each level",
            given=f"{count} positions",
            hint="dense levels store every coordinate: compressed ones, or coo, only those needed",
        )
