"""``SparseTensor``: a tensor stored in a format, as the arrays of its levels and its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format, as_format, csf
from t2s.sparse_repr.levels import Array, Arrays, Level, PackingError
from t2s.sparse_repr.shapes import checked_shape
from t2s.sparse_repr.tensors.checks import (
    check_positions,
    checked_fill,
    coordinate_table,
    plain_array,
    real_values,
)


class SparseTensor:
    """A tensor in a format.

    Attributes
    ----------
    shape: the extent of every mode.
    format: level kinds and what each level stores.
    levels: the arrays of every level by name (``pos``, ``crd``, ...), outermost first.
    values: the values, one for every position of the last level.
    fill: the value where nothing is stored.

    Make one with ``from_coordinates``, ``from_dense``, ``from_levels``, or of another library's
    object with ``t2s.sparse.tensor``.
    """

    def __init__(
        self,
        shape: Sequence[int],
        format: Format | str,
        levels: Sequence[Arrays],
        values: Array,
        *,
        fill: float | int = 0,
    ) -> None:
        self.shape = checked_shape(shape)
        self.format = as_format(format)
        self.levels = _level_arrays(levels)
        self.values = real_values(values)
        self.fill = checked_fill(fill)
        check_tensor(self, increasing=False)

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape)) or "scalar"
        return f"<SparseTensor {size}, {self.format}, {len(self.values)} values>"

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""
        kind: np.dtype[Any] = self.values.dtype
        return kind

    @property
    def extents(self) -> tuple[int, ...]:
        """The extent of every level."""
        return level_extents(self.shape, self.format)

    def coordinates(self) -> tuple[Array, Array]:
        """Coordinates (one row for each stored value, one column for each mode) and the values.

        In the order in which they are stored; dense levels store zeros too.
        """
        owner = np.zeros(1, np.int64)
        positions = np.zeros(1, np.int64)
        columns: list[Array] = []
        for level, arrays, extent in zip(
            self.format.levels, self.levels, self.extents, strict=True
        ):
            found = level.unpack(arrays, positions, extent)
            columns = [column[found.parents] for column in columns]
            columns.append(np.asarray(found.coordinates, np.int64))
            owner, positions = owner[found.parents], found.positions
        modes = [np.zeros(len(positions), np.int64) for _ in self.shape]
        for part, column in zip(self.format.parts, columns, strict=True):
            modes[part.mode] += column * part.divisor
        table = np.stack(modes, axis=1) if modes else np.zeros((len(positions), 0), np.int64)
        inside = (table < np.array(self.shape, np.int64)).all(axis=1)
        return table[inside], self.values[positions[inside]]

    def to_dense(self) -> Array:
        """The tensor as a numpy array."""
        table, values = self.coordinates()
        if not self.shape:
            return values.reshape(())
        check_positions(math.prod(self.shape), "dense")
        result = np.full(self.shape, self.fill, self.dtype)
        if all(level.unique for level in self.format.levels):
            result[tuple(table.T)] = values
        elif self.fill != 0:
            stored = values != self.fill
            result[tuple(table[stored].T)] = values[stored]
        else:  # what lies below a repeated coordinate is one fiber in parts
            np.add.at(result, tuple(table.T), values)
        return result

    def convert(self, format: Format | str) -> SparseTensor:
        """The same tensor in another format; the tensor itself if that is the same.

        Zeros that only a dense level made the tensor store are left out.
        """
        format = as_format(format)
        if format == self.format:
            return self
        table, values = self.coordinates()
        stored = values != self.fill
        return from_coordinates(table[stored], values[stored], self.shape, format, fill=self.fill)


def as_stored(
    shape: Sequence[int],
    format: Format,
    levels: Sequence[Arrays],
    values: Array,
    *,
    fill: float | int = 0,
) -> SparseTensor:
    """The tensor of arrays that are known to fit: none of them is looked at."""
    made = object.__new__(SparseTensor)
    made.shape, made.format, made.levels = tuple(shape), format, tuple(levels)
    made.values, made.fill = values, fill
    return made


def _level_arrays(levels: Any) -> tuple[Arrays, ...]:
    """The arrays of every level, whatever sequences they are."""
    if not isinstance(levels, Sequence) or not all(isinstance(one, Mapping) for one in levels):
        raise UserError(
            "the levels of a tensor are no list of arrays by name",
            location=user_location(),
            expected="a mapping for each level, such as ({}, {'pos': starts, 'crd': coordinates})",
            given=repr(levels),
        )
    return tuple(
        {name: plain_array(array, f"the array {name}") for name, array in one.items()}
        for one in levels
    )


def level_extents(shape: Sequence[int], format: Format) -> tuple[int, ...]:
    """The extent of every level of a tensor of that shape."""
    return tuple(part.extent(shape[part.mode]) for part in format.parts)


def from_dense(array: Any, format: Format | str, *, fill: float | int = 0) -> SparseTensor:
    """A numpy array in a format: what is not ``fill``, and every value below dense levels."""
    dense, fill = real_values(array), checked_fill(fill)
    table = np.argwhere(dense != fill) if dense.ndim else np.zeros((1, 0), np.int64)
    values = dense[dense != fill] if dense.ndim else dense.reshape(1)
    return from_coordinates(table, values, dense.shape, format, fill=fill)


def from_coordinates(
    coordinates: Any,
    values: Any,
    shape: Sequence[int],
    format: Format | str | None = None,
    *,
    sum_duplicates: bool = False,
    fill: float | int = 0,
) -> SparseTensor:
    """A tensor of coordinates (one row for each value) in any order; ``fill`` is elsewhere.

    Raises ``UserError`` for coordinates outside of the shape, and for a coordinate that is there
    twice unless ``sum_duplicates``.
    """
    shape = checked_shape(shape)
    format = csf(len(shape)) if format is None else as_format(format)
    fill = checked_fill(fill)
    data = real_values(values).reshape(-1)
    table = coordinate_table(coordinates, len(data), len(shape))
    _check_format(shape, format)
    _check_inside(table, shape)
    columns = [
        table[:, part.mode] // part.divisor
        if part.modulus is None
        else table[:, part.mode] // part.divisor % part.modulus
        for part in format.parts
    ]
    order = np.lexsort(columns[::-1]) if columns else np.arange(len(data))
    table, data = table[order], data[order]
    columns = [column[order] for column in columns]
    table, data, columns = _unique(table, data, columns, sum_duplicates)
    levels, positions, count = _pack_levels(columns, shape, format)
    stored = np.full(count, fill, data.dtype) if len(data) < count else np.zeros(count, data.dtype)
    stored[positions] = data
    return as_stored(shape, format, levels, stored, fill=fill)


def _pack_levels(
    columns: Sequence[Array], shape: Sequence[int], format: Format
) -> tuple[list[Arrays], Array, int]:
    entries = len(columns[0]) if columns else 1
    positions, count = np.zeros(entries, np.int64), 1
    levels: list[Arrays] = []
    extents = level_extents(shape, format)
    for level, column, extent in zip(format.levels, columns, extents, strict=True):
        if not level.branchless:
            check_positions(count, format)
        if level.full:
            check_positions(count * extent, format)
        try:
            packed = level.pack(positions, column, count, extent)
        except PackingError as error:
            raise misfit(format, level, error) from None
        levels.append(packed.arrays)
        positions, count = packed.positions, packed.count
    return levels, positions, count


def misfit(format: Format, level: Level, error: PackingError) -> UserError:
    """The error for entries that a level of the format cannot store."""
    return UserError(
        f"the tensor does not fit the format {format}: {error}",
        location=user_location(),
        hint=f"a {level.title} level goes below a non-unique one, as in uq",
    )


def _unique(
    table: Array, data: Array, columns: list[Array], sum_duplicates: bool
) -> tuple[Array, Array, list[Array]]:
    """The sorted entries without duplicates."""
    if len(data) < 2:
        return table, data, columns
    new = np.concatenate([[True], (table[1:] != table[:-1]).any(axis=1)])
    if new.all():
        return table, data, columns
    if not sum_duplicates:
        where = int(np.flatnonzero(~new)[0])
        raise UserError(
            f"the coordinate {_show(table[where])} is there twice",
            location=user_location(),
            expected="each coordinate at most once",
            given=f"values {data[where - 1]} and {data[where]} at it",
            hint="sum_duplicates=True adds them up",
        )
    starts = np.flatnonzero(new)
    with np.errstate(all="ignore"):
        sums = np.add.reduceat(data, starts, dtype=data.dtype)
    return table[starts], sums, [column[starts] for column in columns]


def _show(row: Array) -> str:
    return f"({', '.join(map(str, row))})"


def _check_format(shape: Sequence[int], format: Format) -> None:
    if not isinstance(format, Format):
        raise UserError(
            "the format of a tensor is no format",
            location=user_location(),
            expected="a format: sparse.csr, sparse.coo(2), sparse.make_format('ds')",
            given=f"an object of class {type(format).__name__}",
        )
    if format.order != len(shape):
        raise UserError(
            f"the format {format} does not fit a tensor of order {len(shape)}",
            location=user_location(),
            expected=f"a format of order {len(shape)}",
            given=f"order {format.order}",
        )


def _check_inside(table: Array, shape: Sequence[int]) -> None:
    outside = ((table < 0) | (table >= np.array(shape, np.int64))).any(axis=1)
    if outside.any():
        row = table[int(np.flatnonzero(outside)[0])]
        raise UserError(
            f"the coordinate {_show(row)} lies outside of the tensor",
            location=user_location(),
            expected=f"coordinates of a tensor of shape {_show(np.array(shape))}, from 0",
        )


def from_levels(
    shape: Sequence[int], format: Format | str, levels: Sequence[Arrays], values: Array
) -> SparseTensor:
    """A tensor of the arrays of its levels, which are kept, not copied.

    Raises ``UserError`` if an array is missing or does not fit, and if the coordinates of a fiber
    do not increase.
    """
    made = as_stored(
        checked_shape(shape), as_format(format), _level_arrays(levels), real_values(values)
    )
    check_tensor(made)
    return made


def check_tensor(tensor: SparseTensor, *, increasing: bool = True) -> None:
    """Raise ``UserError`` unless the arrays of a tensor fit its shape and its format.

    Without ``increasing`` the coordinates of a fiber may come in any order.
    """
    shape, format, levels = tensor.shape, tensor.format, tensor.levels
    _check_format(shape, format)
    if len(levels) != len(format.levels):
        raise UserError(
            f"the format {format} has {len(format.levels)} levels",
            location=user_location(),
            given=f"the arrays of {len(levels)}",
        )
    parents = np.zeros(1, np.int64)
    count = 1
    extents = level_extents(shape, format)
    for number, (level, arrays, extent) in enumerate(
        zip(format.levels, levels, extents, strict=True)
    ):
        _check_arrays(format, number, arrays, count, extent)
        count = level.positions(arrays, count, extent)
        _check_coordinates(format, number, arrays, parents, extent, increasing)
        parents = np.arange(count)
    if np.ndim(tensor.values) != 1 or len(tensor.values) != count:
        raise UserError(
            f"the format {format} with these arrays stores {count} values",
            location=user_location(),
            given=f"an array of shape {' x '.join(map(str, np.shape(tensor.values))) or 'none'}",
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
    """An array in an error: all of it if it is short."""
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
    level = format.levels[number]
    if level.full:
        return
    found = level.unpack(arrays, parents, extent)
    crd, same = found.coordinates, found.parents[1:] == found.parents[:-1]
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
            f"{parents[found.parents[where]]}",
            hint="make the tensor with t2s.sparse.from_coordinates, which sorts",
        )
