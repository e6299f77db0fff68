"""Tensors as operands: slices of sparse ones, strides of dense ones, properties of both.

A sparse tensor whose outer levels are dense can be sliced at coordinates and cut into windows of
rows.  Fibers below dense levels are contiguous, so the result shares a window of each array; only
positions are copied, because they count from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

import numpy as np

from t2s.capability.ir import Strides
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.sparse_repr.formats import Format, Part
from t2s.sparse_repr.levels import Compressed, Dense, Level
from t2s.sparse_repr.notation.ir import ADDITIVE, Access, Combine, Expression, Negative, Number, Sum
from t2s.sparse_repr.notation.symbols import SYMMETRIC
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored

Array = np.ndarray[Any, Any]

PARTED = {"d", "s", "u", "q"}
"""Letters of the levels that can be cut into windows: dense, compressed, singleton."""


def is_dense(format: Format) -> bool:
    """Whether a tensor stores all of its values, in whole levels."""
    return format.plain and all(level.full for level in format.levels)


def fits(stored: Format, accepted: Sequence[Format]) -> bool:
    """Whether a format is one of those; dense ones are alike, as strides tell them apart."""
    return stored in accepted or (is_dense(stored) and any(map(is_dense, accepted)))


def fixed_modes(access: Access, fixed: Collection[str]) -> list[int]:
    """The modes of an access whose variables are fixed."""
    return [mode for mode, name in enumerate(access.variables) if name in fixed]


def sliced_format(format: Format, fixed: Collection[int]) -> Format | None:
    """The format of a tensor at one coordinate of some modes; ``None`` if it has no such slices.

    It has them if these modes are the outermost levels, and all of them are dense.
    """
    count = len(set(fixed))
    outer = format.levels[:count]
    if not format.plain or not set(format.letters) <= PARTED or count == len(format.levels):
        return None
    if set(format.modes[:count]) != set(fixed) or not all(level.full for level in outer):
        return None
    modes = [mode for mode in range(format.order) if mode not in fixed]
    parts = tuple(Part(mode=modes.index(mode)) for mode in format.modes[count:])
    return Format(levels=format.levels[count:], parts=parts)


def format_with_slices(format: Format, fixed: Sequence[int], order: int) -> Format:
    """The format of a tensor whose slices at some modes have a given format."""
    sliced = [mode for mode in range(order) if mode not in fixed]
    outer: tuple[Level, ...] = (Dense(),) * len(fixed)
    modes = (*fixed, *(sliced[mode] for mode in format.modes))
    return Format(levels=(*outer, *format.levels), parts=tuple(Part(mode=mode) for mode in modes))


def reordered_format(format: Format, modes: Sequence[int]) -> Format:
    """The format of a tensor after its mode ``modes[at]`` has become mode ``at``."""
    parts = tuple(replace(part, mode=modes.index(part.mode)) for part in format.parts)
    return replace(format, parts=parts)


def format_in_order(stored: Format, modes: Sequence[int], accepted: Sequence[Format]) -> Format:
    """The format in which a tensor with its modes in this order is passed.

    That is the one that it has then, if the function takes it, else the first one it takes.
    """
    seen = reordered_format(stored, modes)
    return seen if seen in accepted else accepted[0]


def reordered(tensor: SparseTensor, modes: Sequence[int]) -> SparseTensor:
    """The tensor with its modes in another order, over the same arrays."""
    shape = tuple(tensor.shape[mode] for mode in modes)
    format = reordered_format(tensor.format, modes)
    return as_stored(shape, format, tensor.levels, tensor.values, fill=tensor.fill)


def rows_of(format: Format) -> int | None:
    """The mode that can be cut into windows: a dense level above a compressed one."""
    if not format.plain or not set(format.letters) <= PARTED or not format.levels[0].full:
        return None
    first = next((level for level in format.levels if not level.full), None)
    return format.modes[0] if isinstance(first, Compressed) else None


def slice_of(tensor: SparseTensor, at: Mapping[int, int]) -> SparseTensor:
    """The tensor at coordinates of its outermost modes, which are dense; it shares the values."""
    format = sliced_format(tensor.format, at)
    if format is None:
        raise ValueError("these modes are not the outermost levels")
    place = 0
    for mode in tensor.format.modes[: len(at)]:
        place = place * tensor.shape[mode] + at[mode]
    levels, values = _below(tensor, len(at), (place, place + 1), 0)
    shape = tuple(extent for mode, extent in enumerate(tensor.shape) if mode not in at)
    return as_stored(shape, format, levels, values, fill=tensor.fill)


def window_of(tensor: SparseTensor, mode: int, piece: tuple[int, int, int]) -> SparseTensor:
    """The tensor between two coordinates of its outermost mode, padded with empty ones."""
    start, end, extent = piece
    levels, values = _below(tensor, 1, (start, end), extent - (end - start))
    shape = list(tensor.shape)
    shape[mode] = extent
    return as_stored(tuple(shape), tensor.format, ({}, *levels), values, fill=tensor.fill)


def _below(
    tensor: SparseTensor, first: int, above: tuple[int, int], padded: int
) -> tuple[tuple[dict[str, Array], ...], Array]:
    """The arrays of all levels from ``first`` on, below positions and ``padded`` more."""
    begin, end = above
    levels: list[dict[str, Array]] = []
    for number in range(first, len(tensor.format.levels)):
        level, arrays = tensor.format.levels[number], tensor.levels[number]
        if level.full:
            extent = tensor.shape[tensor.format.modes[number]]
            begin, end, padded = begin * extent, end * extent, padded * extent
            levels.append({})
            continue
        if not isinstance(level, Compressed):
            levels.append({"crd": arrays["crd"][begin:end]})
            continue
        positions = np.asarray(arrays["pos"])
        mine = np.empty(end - begin + 1 + padded, positions.dtype)
        mine[: end - begin + 1] = positions[begin : end + 1]
        mine[end - begin + 1 :] = positions[end]
        mine -= positions[begin]
        mine.flags.writeable = False
        begin, end, padded = int(positions[begin]), int(positions[end]), 0
        levels.append({"pos": mine, "crd": arrays["crd"][begin:end]})
    return tuple(levels), tensor.values[begin:end]


# Whether a function takes an array with its strides, or needs a copy.


def suits(array: Array, strides: Strides) -> bool:
    """Whether the strides of an array meet a requirement."""
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
    """Whether the last mode has stride 1, and rows do not overlap."""
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
    """The array, or a copy whose strides meet the requirement."""
    if suits(array, strides):
        return array
    order: Literal["F", "C"] = "F" if strides is Strides.COLUMNS else "C"
    return np.asarray(array.astype(array.dtype.newbyteorder("="), order=order, copy=True))


# Properties of tensors: declared by users, required by functions, derived for results by rules.
#
# They are checked on the values when a plan runs, unless the user vouches for them.


def symmetric_in(value: Expression, declared: Mapping[str, tuple[str, ...]]) -> set[frozenset[str]]:
    """The pairs of variables that can be exchanged without changing an expression.

    Sums, differences and scaled values of symmetric matrices at the same variables are symmetric,
    and so is a transpose.
    """
    match value:
        case Access(tensor=name, variables=variables):
            good = SYMMETRIC in declared.get(name, ()) and len(set(variables)) == 2
            return {frozenset(variables)} if good else set()
        case Negative(value=inner) | Sum(value=inner):
            return symmetric_in(inner, declared)
        case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
            return symmetric_in(left, declared) & symmetric_in(right, declared)
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            if _is_scalar(left):
                return symmetric_in(right, declared)
            if _is_scalar(right):
                return symmetric_in(left, declared)
    return set()


def _is_scalar(value: Expression) -> bool:
    return isinstance(value, Number) or (isinstance(value, Access) and not value.variables)


def check_property(
    name: str, property: str, values: Array, location: SourceLocation | None
) -> None:
    """Raise ``UserError`` with the first pair of indices that violates a declared property."""
    if property != SYMMETRIC:
        raise UserError(f"unknown property {property!r}", location=location, expected=SYMMETRIC)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise UserError(
            f"{name} is not symmetric, which it is declared to be",
            location=location,
            expected="a square matrix",
            given=f"shape {' x '.join(map(str, values.shape)) or 'of a scalar'}",
        )
    with np.errstate(all="ignore"):
        wrong = np.argwhere((values != values.T) & ((values == values) | (values.T == values.T)))
    if len(wrong):
        row, column = map(int, wrong[0])
        raise UserError(
            f"{name} is not symmetric, which it is declared to be",
            location=location,
            expected=f"{name}[{row}, {column}] equal to {name}[{column}, {row}]",
            given=f"{values[row, column]} and {values[column, row]}",
        )
