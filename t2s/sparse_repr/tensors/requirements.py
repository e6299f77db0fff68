"""Requirements of tensors: real numbers, 64-bit coordinates, arrays that fit the format.

All values pass through ``real_values``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Array, Arrays
from t2s.sparse_repr.tensors.coordinates import plain_array

MOST_COORDINATE = 2**63 - 1
"""Coordinates are int64."""

_CHECKED_AT_ONCE = 1 << 22
"""Coordinates that are checked at once, so that a check needs no memory of their size."""


def coordinate_table(coordinates: Any, count: int, order: int) -> Array:
    """The coordinates as rows of integers."""
    table = plain_array(coordinates, "coordinates")
    if table.size == 0 and not (count and order):
        return np.zeros((count, order), np.int64)
    if table.shape != (count, order) and not (order == 1 and table.shape == (count,)):
        raise UserError(
            "there is not one row of coordinates for each value",
            location=user_location(),
            expected=f"{count} rows of {order}",
            given=f"an array of shape {' x '.join(map(str, table.shape)) or 'none'}",
        )
    if table.dtype.kind in "iub":
        most = int(table.max(initial=0))
        if most > MOST_COORDINATE:
            raise UserError(
                "a coordinate is too large",
                location=user_location(),
                expected=f"at most {MOST_COORDINATE}",
                given=str(most),
            )
        return table.astype(np.int64).reshape(count, order)
    with np.errstate(all="ignore"):
        whole = table.astype(np.int64) if table.dtype.kind == "f" else None
    if whole is None or (np.abs(table) > 2**53).any() or (whole != table).any():
        raise UserError(
            "coordinates are integers",
            location=user_location(),
            expected=f"integers, or floats that are exact integers up to {2**53}",
            given=f"an array of {table.dtype}",
        )
    return whole.reshape(count, order)


def checked_fill(fill: Any) -> float | int:
    """The fill value.  Raises ``UserError`` unless it is a number."""
    number: Any = fill.item() if isinstance(fill, np.generic) else fill
    if not isinstance(number, int | float):
        raise UserError(
            "what is where nothing is stored is not a number",
            location=user_location(),
            expected="fill, such as 0 or math.inf",
            given=repr(fill),
        )
    return number


def check_levels(
    format: Format,
    extents: Sequence[int],
    levels: Sequence[Arrays],
    values: Array,
    *,
    increasing: bool,
) -> None:
    """Raise ``UserError`` unless arrays fit a format whose levels have these extents."""
    if len(levels) != len(format.levels):
        raise UserError(
            f"the format {format} has {len(format.levels)} levels",
            location=user_location(),
            given=f"the arrays of {len(levels)}",
        )
    count = 1
    for number, (level, arrays, extent) in enumerate(
        zip(format.levels, levels, extents, strict=True)
    ):
        _check_arrays(format, number, arrays, count, extent)
        above, count = count, level.positions(arrays, count, extent)
        if not level.full:
            step = max(1, above * _CHECKED_AT_ONCE // max(1, count))
            for first in range(0, above, step):
                parents = np.arange(first, min(above, first + step))
                _check_coordinates(format, number, arrays, parents, extent, increasing)
    count *= format.lanes
    if np.ndim(values) != 1 or len(values) != count:
        raise UserError(
            f"the format {format} with these arrays stores {count} values",
            location=user_location(),
            given=f"an array of shape {' x '.join(map(str, np.shape(values))) or 'none'}",
        )


def _check_arrays(format: Format, number: int, arrays: Arrays, count: int, extent: int) -> None:
    level = format.levels[number]
    if set(arrays) != set(level.array_names):
        raise UserError(
            f"level {number} of the format {format} is {level.title}",
            location=user_location(),
            expected=f"the arrays {', '.join(level.array_names) or 'of none'}",
            given=", ".join(arrays) or "no array",
        )
    for name, array in arrays.items():
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise UserError(
                f"the array {name} of level {number} is not a list of integers",
                location=user_location(),
                given=f"{array.ndim} dimensions of type {array.dtype}",
            )
    requirement = level.requirement(arrays, count, extent)
    if requirement is not None:
        raise UserError(
            f"the arrays of level {number} of the format {format} do not fit",
            location=user_location(),
            expected=requirement,
            given=", ".join(_shown(name, array) for name, array in arrays.items()),
        )


def _shown(name: str, array: Array) -> str:
    """The text of an array in an error, abbreviated if it is long."""
    if len(array) <= 8:
        return f"{name} {array.tolist()}"
    return f"{name} of {len(array)} numbers from {array[0]} to {array[-1]}"


def _check_coordinates(
    format: Format,
    number: int,
    arrays: Arrays,
    parents: Array,
    extent: int,
    increasing: bool,
) -> None:
    """Check the coordinates in the fibers of some parents."""
    level = format.levels[number]
    unpacked = level.unpack(arrays, parents, extent)
    crd, same = unpacked.coordinates, unpacked.parents[1:] == unpacked.parents[:-1]
    if len(crd) and (crd.min() < 0 or crd.max() >= extent):
        raise UserError(
            f"level {number} of the format {format} has coordinates outside of its mode",
            location=user_location(),
            expected=f"coordinates from 0 to {extent - 1}",
            given=f"{crd.min()} to {crd.max()}",
        )
    step = np.diff(crd)
    wrong = same & ((step <= 0) if level.unique else (step < 0))
    if increasing and wrong.any():
        where = int(np.flatnonzero(wrong)[0])
        word = "there twice" if step[where] == 0 else "not sorted"
        raise UserError(
            f"the coordinates of level {number} of the format {format} are {word}",
            location=user_location(),
            expected="coordinates that increase within a fiber",
            given=f"{crd[where + 1]} after {crd[where]} in the fiber of position "
            f"{parents[unpacked.parents[where]]}",
            hint="make the tensor with t2s.sparse.from_coordinates, which sorts",
        )
