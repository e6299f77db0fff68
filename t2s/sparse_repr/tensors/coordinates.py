"""Entries by coordinates: the common form in every conversion of matrices and tensors.

Formats and representations are built from ``Coordinates``, regardless of the source library or
file, and convert back to them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.arrays import is_array_like
from t2s.core.errors import UserError
from t2s.core.location import user_location


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """A sparse matrix or tensor: its entries, unique and in the order of their coordinates.

    Attributes
    ----------
    shape: the extent of every mode.
    modes: for every mode, the coordinate of each entry; integer arrays, the first counts most.
    values: the entries.
    """

    shape: tuple[int, ...]
    modes: tuple[Array, ...]
    values: Array

    @property
    def rows(self) -> Array:
        """The row of every entry of a matrix."""
        return self.modes[0]

    @property
    def columns(self) -> Array:
        """The column of every entry of a matrix."""
        return self.modes[1]


class HasEntries(ABC):
    """An object that holds a matrix or a tensor in its own form."""

    @abstractmethod
    def entries(self) -> Coordinates:
        """The entries, without those that only the form adds."""


def in_order(shape: tuple[int, ...], modes: Sequence[Array], values: Array) -> Coordinates:
    """Sort entries in any order; duplicates are added up, as in scipy.

    Nothing is copied if the order is right already.
    """
    keys, values = summed(*sorted_entries(tuple(modes), values))
    return Coordinates(shape=shape, modes=keys, values=values)


def sorted_entries(keys: tuple[Array, ...], values: Array) -> tuple[tuple[Array, ...], Array]:
    """Entries in the order of their keys, the first of which counts most; equal ones as they were.

    The arrays themselves if they are in order, none twice.
    """
    if rises(keys, values.size):
        return keys, values
    order = np.lexsort(keys[::-1]) if keys else np.arange(values.size)
    return tuple(key[order] for key in keys), values[order]


def summed(keys: tuple[Array, ...], values: Array) -> tuple[tuple[Array, ...], Array]:
    """Sorted entries with duplicates added up.

    Sums are those of scipy's ``sum_duplicates``: in the type of the values, in their order.
    """
    new = _new(keys, values.size)
    if new.all():
        return keys, values
    starts = np.flatnonzero(new)
    with np.errstate(all="ignore"):
        sums = np.add.reduceat(values, starts, dtype=values.dtype)
    return tuple(key[starts] for key in keys), sums


def first_repeat(keys: tuple[Array, ...], count: int) -> int | None:
    """The first duplicate of sorted entries."""
    repeats = np.flatnonzero(~_new(keys, count))
    return int(repeats[0]) if repeats.size else None


def rises(keys: tuple[Array, ...], count: int) -> bool:
    """Whether entries are strictly increasing."""
    if not keys:
        return count < 2
    later = keys[-1][1:] > keys[-1][:-1]
    for key in reversed(keys[:-1]):
        later &= key[1:] == key[:-1]
        later |= key[1:] > key[:-1]
    return bool(later.all())


def inside(columns: Iterable[Array], shape: Sequence[int]) -> Array:
    """Which coordinates lie in a shape of at least one mode; ``columns`` has an array for each."""
    pairs = zip(columns, shape, strict=True)
    known: Array = np.logical_and.reduce([(column >= 0) & (column < n) for column, n in pairs])
    return known


def chosen(
    which: Array, columns: Sequence[Array], values: Array
) -> tuple[tuple[Array, ...], Array]:
    """The entries for which ``which`` is true: themselves if these are all."""
    if which.all():
        return tuple(columns), values
    return tuple(column[which] for column in columns), values[which]


def stacked(columns: Sequence[Array], count: int) -> Array:
    """Coordinates as a row for each of ``count`` entries, from an array for each mode."""
    return np.stack(columns, axis=1) if columns else np.zeros((count, 0), np.int64)


def _new(keys: tuple[Array, ...], count: int) -> Array:
    """For sorted entries, whether each differs from its predecessor."""
    new = np.zeros(count, bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


# Values of matrices and tensors: arrays of real numbers.

Array = np.ndarray[Any, Any]

MOST_POSITIONS = 2**28
"""Positions of a level: what is stored of each is allocated at once."""


def plain_array(value: Any, what: str) -> Array:
    """A value as a numpy array; errors of its own conversion become ``UserError``."""
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
    """Values as an array of real numbers; ``UserError`` for unsupported types."""
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
    """Refuse a level with too many positions."""
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
