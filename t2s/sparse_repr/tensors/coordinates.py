"""Entries by their coordinates: the one form that every matrix and every tensor comes through.

Formats of levels and representations of streams are made from ``Coordinates``, whatever library or
file these came from, and both give them back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from t2s.sparse_repr.tensors.numbers import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """A sparse matrix or tensor: its entries in the order of their coordinates, none there twice.

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
    """What holds a matrix or a tensor in memory in some form of its own."""

    @abstractmethod
    def entries(self) -> Coordinates:
        """What is stored, without what only the form makes it store."""


def in_order(shape: tuple[int, ...], modes: Sequence[Array], values: Array) -> Coordinates:
    """The coordinates of entries in any order; those at one place are added up, as scipy does.

    Nothing is copied where the order is right already.
    """
    keys, values = summed(*sorted_entries(tuple(modes), values))
    return Coordinates(shape=shape, modes=keys, values=values)


def sorted_entries(keys: tuple[Array, ...], values: Array) -> tuple[tuple[Array, ...], Array]:
    """Entries in the order of their keys, the first of which counts most; equal ones as they were.

    The arrays themselves if they are in order, none twice.
    """
    if _rises(keys, values.size):
        return keys, values
    order = np.lexsort(keys[::-1]) if keys else np.arange(values.size)
    return tuple(key[order] for key in keys), values[order]


def summed(keys: tuple[Array, ...], values: Array) -> tuple[tuple[Array, ...], Array]:
    """Sorted entries, of which those with the same keys are added up.

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
    """The first of sorted entries that has the keys of the one before."""
    repeats = np.flatnonzero(~_new(keys, count))
    return int(repeats[0]) if repeats.size else None


def _rises(keys: tuple[Array, ...], count: int) -> bool:
    """Whether every entry is behind the one before."""
    if not keys:
        return count < 2
    later = keys[-1][1:] > keys[-1][:-1]
    for key in reversed(keys[:-1]):
        later &= key[1:] == key[:-1]
        later |= key[1:] > key[:-1]
    return bool(later.all())


def _new(keys: tuple[Array, ...], count: int) -> Array:
    """Of sorted entries, which have other keys than the one before."""
    new = np.zeros(count, bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new
