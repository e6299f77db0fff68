"""``SparseTensor``: a tensor stored in a format, as the arrays of its levels and its values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from t2s.core.display import CardPart, NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.sparse_repr.formats import Format, Part, as_format, checked_shape, csf
from t2s.sparse_repr.levels import Array, Arrays, Level, PackingError
from t2s.sparse_repr.tensors.coordinates import (
    Coordinates,
    HasEntries,
    check_positions,
    chosen,
    first_repeat,
    in_order,
    indices,
    inside,
    plain_array,
    real_values,
    rises,
    sorted_entries,
    stacked,
    summed,
)
from t2s.sparse_repr.tensors.matrix_chart import MOST_VALUES, entries_chart
from t2s.sparse_repr.tensors.requirements import (
    check_levels,
    checked_fill,
    coordinate_table,
)

LARGEST_WIDTH = 1 << 40
"""Columns of the widest matrix that is drawn."""


class SparseTensor(HasEntries, NotebookDisplay):
    """A tensor in a format.

    Attributes
    ----------
    shape: the extent of every mode.
    format: level kinds and what each level stores.
    levels: the arrays of every level by name (``pos``, ``crd``, ...), outermost first.
    values: the values, one for every position of the last level, or the elements of a block, in
        row-major order.
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

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The dense array, for functions of numpy; ``UserError`` for one that is too large."""
        if copy is False:
            raise ValueError("a dense array of a sparse tensor is always a copy")
        return self.to_dense().astype(dtype or self.dtype, copy=False)

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def ndim(self) -> int:
        """Number of modes, as numpy calls it."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """The number of stored entries, without zeros due to dense levels."""
        return int(self.entries().values.size)

    @property
    def T(self) -> SparseTensor:
        """The transposed tensor, whose modes are in the reverse order.

        It shares the arrays, unless values are blocks.
        """
        parts = tuple(replace(p, mode=self.order - 1 - p.mode) for p in self.format.parts)
        if self.format.block:
            found = self.entries()
            reverse = Coordinates(
                shape=self.shape[::-1], modes=found.modes[::-1], values=found.values
            )
            turned = replace(self.format, parts=parts, block=self.format.block[::-1])
            return from_entries(reverse, turned, fill=self.fill)
        transposed = replace(self.format, parts=parts)
        return as_stored(self.shape[::-1], transposed, self.levels, self.values, fill=self.fill)

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

        In the order in which they are stored; dense levels and blocks store zeros too.
        """
        columns, values = self.columns()
        return stacked(columns, len(values)), values

    def columns(self) -> tuple[tuple[Array, ...], Array]:
        """Like ``coordinates()``, with an array for each mode."""
        if self.format.block:
            return self._by_element.columns()
        columns, positions = self._positions()
        if not self.format.plain:
            columns, positions = chosen(inside(columns, self.shape), columns, positions)
        return columns, self.values[positions]

    def _positions(self) -> tuple[tuple[Array, ...], Array]:
        """Coordinates and positions of all values, also of those beyond the end of a mode."""
        positions = np.zeros(1, np.int64)
        columns: list[Array] = []
        for level, arrays, extent in zip(
            self.format.levels, self.levels, self.extents, strict=True
        ):
            unpacked = level.unpack(arrays, positions, extent)
            for number, column in enumerate(columns):
                columns[number] = column[unpacked.parents]
            columns.append(np.asarray(unpacked.coordinates, np.int64))
            positions = unpacked.positions
        return whole_modes(zip(self.format.parts, columns, strict=True)), positions

    def with_padding(self) -> SparseTensor:
        """The tensor with ``fill`` in the parts of its blocks that are beyond the end of a mode."""
        block = self.format.block
        if not block or not any(n % size for n, size in zip(self.shape, block, strict=True)):
            return self
        columns, positions = self._by_element._positions()
        values = self.values.copy()
        values[positions[~inside(columns, self.shape)]] = self.fill
        return as_stored(self.shape, self.format, self.levels, values, fill=self.fill)

    @property
    def _by_element(self) -> SparseTensor:
        """The same arrays with levels inside of blocks."""
        format = self.format.elements
        levels = (*self.levels, *({} for _ in format.levels[len(self.levels) :]))
        return as_stored(self.shape, format, levels, self.values, fill=self.fill)

    def entries(self) -> Coordinates:
        """Entries in order, without values due to dense levels."""
        return in_order(self.shape, *self.entries_as_stored())

    def entries_as_stored(self) -> tuple[tuple[Array, ...], Array]:
        """``columns()`` without zeros due to dense levels."""
        columns, values = self.columns()
        if any(level.full for level in self.format.elements.levels[-1:]):
            return chosen(values != self.fill, columns, values)
        return columns, values

    def to_dense(self) -> Array:
        """The tensor as a numpy array."""
        columns, values = self.columns()
        if not self.shape:
            return values.reshape(())
        check_positions(math.prod(self.shape), "dense")
        result = np.full(self.shape, self.fill, self.dtype)
        if all(level.unique for level in self.format.levels):
            result[columns] = values
        elif self.fill != 0:
            columns, values = chosen(values != self.fill, columns, values)
            result[columns] = values
        else:  # the runs below a repeated coordinate form one fiber
            np.add.at(result, columns, values)
        return result

    def todense(self) -> Array:
        """The same as ``to_dense``, as pydata/sparse and scipy call it."""
        return self.to_dense()

    def toarray(self) -> Array:
        """The same as ``to_dense``, as scipy calls it."""
        return self.to_dense()

    def convert(self, format: Format | str) -> SparseTensor:
        """The same entries in another format; the tensor itself if that is the same.

        Zeros that are stored stay, but for those due to a dense last level.
        """
        format = as_format(format)
        if format == self.format:
            return self
        if self.format.is_array and format.is_array and format.order == len(self.shape):
            values = in_order_of(format.modes, self)
            return as_stored(self.shape, format, self.levels, values, fill=self.fill)
        columns, values = self.entries_as_stored()
        return from_columns(columns, values, self.shape, format, fill=self.fill)

    @property
    def table(self) -> Table:
        """The levels, outermost first, with their arrays."""
        rows = [
            (
                str(number),
                level.title,
                f"{extent:,}",
                ", ".join(f"{name}[{len(array):,}]" for name, array in arrays.items()) or "-",
            )
            for number, (level, extent, arrays) in enumerate(
                zip(self.format.levels, self.extents, self.levels, strict=True)
            )
        ]
        rows.append(("", "values", "", f"{self.dtype}[{len(self.values):,}]"))
        headers = ("level", "kind", "extent", "arrays")
        return Table(title="levels", headers=headers, rows=tuple(rows), left=frozenset({1, 3}))

    def _card(self) -> NotebookCard:
        """Its levels, and a picture of its entries as a matrix of the first mode and all others."""
        size = " x ".join(f"{extent:,}" for extent in self.shape) or "scalar"
        summary = [("shape", size), ("format", str(self.format)), ("type", str(self.dtype))]
        picture: CardPart | None = None
        if self.shape and len(self.values) <= MOST_VALUES:
            entries = self.entries()
            summary.append(("entries", f"{entries.values.size:,}"))
            first, rest = (1, self.shape) if self.order == 1 else (self.shape[0], self.shape[1:])
            others = np.zeros(entries.values.size, np.int64)
            for mode, extent in zip(entries.modes[-len(rest) :], rest, strict=True):
                others = others * extent + mode
            down = np.zeros_like(others) if self.order == 1 else np.asarray(entries.modes[0])
            if math.prod(rest) <= LARGEST_WIDTH:
                picture = entries_chart((first, math.prod(rest)), down, others)
        if self.shape and picture is None:
            picture = Preformatted(title="The tensor is too large to draw.")
        return NotebookCard(
            title="Sparse tensor", summary=tuple(summary), parts=(picture, self.table)
        )


def as_stored(
    shape: Sequence[int],
    format: Format,
    levels: Sequence[Arrays],
    values: Array,
    *,
    fill: float | int = 0,
) -> SparseTensor:
    """A tensor from arrays that are known to fit, without checks."""
    tensor = object.__new__(SparseTensor)
    tensor.shape, tensor.format, tensor.levels = tuple(shape), format, tuple(levels)
    tensor.values, tensor.fill = values, fill
    return tensor


def in_order_of(modes: Sequence[int], tensor: SparseTensor) -> Array:
    """The values of a tensor whose levels are all dense, with its modes in another order."""
    stored = tensor.format.modes
    array = tensor.values.reshape([tensor.shape[mode] for mode in stored])
    axes = [stored.index(mode) for mode in modes]
    return np.ascontiguousarray(array.transpose(axes)).reshape(-1)


def with_fill(tensor: SparseTensor, fill: float | int) -> SparseTensor:
    """The same entries, with another value of what is not stored; bools become integers."""
    values = tensor.values.astype(np.int64) if tensor.dtype.kind == "b" and fill else tensor.values
    return as_stored(tensor.shape, tensor.format, tensor.levels, values, fill=fill)


def _level_arrays(levels: Any) -> tuple[Arrays, ...]:
    """The arrays of every level, whatever sequences they are."""
    if not isinstance(levels, Sequence) or not all(isinstance(level, Mapping) for level in levels):
        raise UserError(
            "the levels of a tensor are not a list of arrays by name",
            location=user_location(),
            expected="a mapping for each level, such as ({}, {'pos': starts, 'crd': coordinates})",
            given=repr(levels),
        )
    return tuple(
        {
            name: indices(plain_array(array, f"the array {name}"), name)
            for name, array in level.items()
        }
        for level in levels
    )


def level_extents(shape: Sequence[int], format: Format) -> tuple[int, ...]:
    """The extent of every level of a tensor of that shape."""
    grid = format.in_grid(shape)
    return tuple(part.extent(grid[part.mode]) for part in format.parts)


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
    columns = tuple(table.T)
    return from_columns(columns, data, shape, format, sum_duplicates=sum_duplicates, fill=fill)


def from_columns(
    columns: Sequence[Array],
    values: Array,
    shape: Sequence[int],
    format: Format,
    *,
    sum_duplicates: bool = False,
    fill: float | int = 0,
) -> SparseTensor:
    """Like ``from_coordinates``, of arrays for each mode that are known to be in its shape."""
    _check_format(shape, format)
    keys = _keys(columns, format.elements)
    if not rises(keys, len(values)):
        keys, values = sorted_entries(keys, values)
        if not sum_duplicates:
            _check_twice(keys, values, format.elements)
        keys, values = summed(keys, values)
    return _packed(keys, values, shape, format, fill)


def from_entries(found: Coordinates, format: Format, *, fill: float | int = 0) -> SparseTensor:
    """A tensor of entries that are known to be in its shape."""
    values = real_values(found.values)
    return from_columns(found.modes, values, checked_shape(found.shape), format, fill=fill)


def _keys(modes: Sequence[Array], format: Format) -> tuple[Array, ...]:
    """The part of the coordinates that every level stores."""
    return tuple(part_of(modes, part) for part in format.parts)


def part_of(modes: Sequence[Array], part: Part) -> Array:
    """The part of the coordinates of one mode, which ``modes`` has an array for each of."""
    column = np.ascontiguousarray(modes[part.mode], np.int64)
    column = column if part.divisor == 1 else column // part.divisor
    return column if part.modulus is None else column % part.modulus


def whole_modes(parts: Iterable[tuple[Part, Array]]) -> tuple[Array, ...]:
    """The coordinates of all modes from their parts: the inverse of ``part_of``."""
    modes: dict[int, Array] = {}
    for part, key in parts:
        scaled = key if part.divisor == 1 else key * part.divisor
        modes[part.mode] = modes[part.mode] + scaled if part.mode in modes else scaled
    return tuple(modes[mode] for mode in sorted(modes))


def _packed(
    keys: Sequence[Array], data: Array, shape: Sequence[int], format: Format, fill: float | int
) -> SparseTensor:
    """The tensor of unique entries in the order of their levels, and then of those in blocks."""
    packed, positions, count = _pack_levels(keys, len(data), shape, format.elements)
    levels = packed[: len(format.levels)]
    stored = np.full(count, fill, data.dtype) if len(data) < count else np.zeros(count, data.dtype)
    stored[positions] = data
    return as_stored(shape, format, levels, stored, fill=fill)


def _pack_levels(
    columns: Sequence[Array], entries: int, shape: Sequence[int], format: Format
) -> tuple[list[Arrays], Array, int]:
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


def _check_twice(keys: tuple[Array, ...], data: Array, format: Format) -> None:
    """Refuse duplicates among sorted entries."""
    where = first_repeat(keys, len(data))
    if where is None:
        return
    modes = whole_modes(zip(format.parts, keys, strict=True))
    row = np.array([mode[where] for mode in modes], np.int64)
    raise UserError(
        f"the coordinate {_show(row)} is there twice",
        location=user_location(),
        expected="each coordinate at most once",
        given=f"values {data[where - 1]} and {data[where]} at it",
        hint="sum_duplicates=True adds them up",
    )


def _show(row: Array) -> str:
    return f"({', '.join(map(str, row))})"


def _check_format(shape: Sequence[int], format: Format) -> None:
    if not isinstance(format, Format):
        raise UserError(
            "the format of a tensor is not a format",
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
    known = inside(table.T, shape) if shape else np.ones(len(table), bool)
    if not known.all():
        row = table[int(np.flatnonzero(~known)[0])]
        raise UserError(
            f"the coordinate {_show(row)} lies outside of the tensor",
            location=user_location(),
            expected=f"coordinates of a tensor of shape {_show(np.array(shape))}, from 0",
        )


def from_levels(
    shape: Sequence[int], format: Format | str, levels: Sequence[Arrays], values: Array
) -> SparseTensor:
    """A tensor of the arrays of its levels, which are kept, not copied, if they are int32 or int64.

    Raises ``UserError`` if an array is missing or does not fit, and if the coordinates of a fiber
    do not increase.
    """
    tensor = as_stored(
        checked_shape(shape), as_format(format), _level_arrays(levels), real_values(values)
    )
    check_tensor(tensor)
    return tensor


def check_tensor(tensor: SparseTensor, *, increasing: bool = True) -> None:
    """Raise ``UserError`` unless the arrays of a tensor fit its shape and its format.

    Without ``increasing`` the coordinates of a fiber may come in any order.
    """
    _check_format(tensor.shape, tensor.format)
    extents = level_extents(tensor.shape, tensor.format)
    check_levels(tensor.format, extents, tensor.levels, tensor.values, increasing=increasing)
