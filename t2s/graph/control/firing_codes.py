"""Firing codes: what each firing of a PE does with its ports, as one small integer per firing.

The control of a node is a set of *features*: for every port the element of the channel array that
a firing uses (or that it uses none), for memory the bytes it moves.  Firings that agree in all
features on all PEs of a domain get the same code, so all PEs of a domain share one list of codes,
and a table says per PE and code what the features are.

Everything is evaluated over the axes it depends on and no others, and iterations of an axis that
are alike share a class, so neither time nor memory grows with the number of firings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.control.domains import Domain

UNUSED = -1
"""The element of a port that a firing does not use."""

_FEW = 8

_FEW_CODES = 64
"""So few codes of firings are counted one after the other."""

_MANY = 64
"""So many PEs are compared all at once."""

_LONG_ROW = 1 << 12
"""Rows of so many bytes are told apart as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """An integer that a firing has where all ``factors`` hold, and ``otherwise`` elsewhere.

    The factors (of booleans) and ``value`` are arrays over (some of) the axes of a domain.
    """

    factors: tuple[Array, ...]
    value: Array
    otherwise: int

    @property
    def arrays(self) -> tuple[Array, ...]:
        """All that the feature depends on."""
        return (*self.factors, self.value)

    def at(self, where: Any, space: tuple[int, ...]) -> Array:
        """The feature at chosen iterations of all PEs: axes of space, then those of ``where``.

        ``where`` gives an array of positions for each time axis, which broadcast.
        """
        active: Array = np.ones((), np.bool_)
        for factor in self.factors:
            active = active & _chosen(factor, where, space)
        return np.where(active, _chosen(self.value, where, space), self.otherwise)


def _chosen(array: Array, where: Sequence[Array], space: tuple[int, ...]) -> Array:
    """Elements of an array over a domain, at positions of the time axes that it has."""
    extents = array.shape[len(space) :]
    index = tuple(
        at if extent > 1 else np.zeros((1,) * at.ndim, np.int64)
        for at, extent in zip(where, extents, strict=True)
    )
    return array[(..., *index)] if index else array


@dataclass(frozen=True, kw_only=True)
class FiringOrder:
    """The codes of a list of firings, as a box of iterations that are alike in classes.

    Iteration ``x`` of time axis ``a`` is of class ``axes[a][x]``, and a firing has the code
    ``codes[classes of its iterations]``.  So the memory is that of the axes, however many firings
    their product is.  The list is a part of the box in row-major order: ``firings`` of them from
    the one at position ``start`` on.
    """

    axes: tuple[NDArray[np.int32], ...]
    codes: NDArray[np.integer]
    start: int
    firings: int

    @property
    def is_list(self) -> bool:
        """Whether the codes are those of the firings, one by one."""
        return self.codes.ndim > len(self.axes)

    def expanded(self) -> NDArray[np.integer]:
        """The code of every firing, in order."""
        if self.is_list:
            return self.codes[self.start : self.start + self.firings]
        box = np.ascontiguousarray(self.codes[np.ix_(*self.axes)]).reshape(-1)
        return box[self.start : self.start + self.firings]

    def at(self, firings: NDArray[np.int64]) -> NDArray[np.int64]:
        """The codes of some firings, without listing the others."""
        positions, extents = firings + self.start, tuple(len(axis) for axis in self.axes)
        if self.is_list:
            return np.asarray(self.codes[positions], np.int64)
        if not extents:
            return np.full(firings.shape, int(self.codes.reshape(-1)[0]), np.int64)
        where = np.unravel_index(positions, extents)
        classes = tuple(axis[at] for axis, at in zip(self.axes, where, strict=True))
        return np.asarray(self.codes[classes], np.int64)


def listed(codes: NDArray[np.integer]) -> FiringOrder:
    """The order of firings whose codes are known one by one."""
    return FiringOrder(axes=(), codes=codes, start=0, firings=len(codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringCodes:
    """The control of the PEs of one domain.

    Attributes
    ----------
    order: the codes of the firings in order; from 0 to the number of codes less one.
    table: feature values by (feature, PE, code).
    counts: number of firings with each code.
    """

    order: FiringOrder
    table: NDArray[np.int64]
    counts: NDArray[np.int64]


def firing_codes(domain: Domain, features: Sequence[Feature]) -> FiringCodes:
    """The codes of a domain from the features of its node."""
    space = domain.shape[: domain.space_rank]
    if domain.firings == 0:
        empty = np.zeros((len(features), domain.pe_count, 0), np.int64)
        none = np.zeros(0, np.int64)
        order = listed(none.astype(np.int32))
        return FiringCodes(order=order, table=empty, counts=none)
    arrays = [array for feature in features for array in feature.arrays]
    fine = _classes_of_iterations(domain, arrays)
    positions = np.ix_(*(_first_positions(labels) for labels in fine))
    codes = _codes_at(features, positions, space)
    axes, classes = [], []
    for axis, labels in enumerate(fine):
        coarse = _alike(codes, axis)
        axes.append(coarse[labels])
        classes.append(_first_positions(coarse))
    shape = tuple(len(first) for first in classes)
    codes = np.ascontiguousarray(codes[np.ix_(*classes)]).reshape(shape)
    expanded = tuple(axes) if domain.long is None else domain.long.expanded(axes)
    order = FiringOrder(axes=expanded, codes=codes, start=domain.start, firings=domain.firings)
    firsts = tuple(_first_positions(labels) for labels in axes)
    count = int(codes.max()) + 1
    representative = np.zeros(count, np.int64)
    representative[codes.reshape(-1)[::-1]] = np.arange(codes.size - 1, -1, -1)
    chosen = np.unravel_index(representative, codes.shape) if codes.shape else ()
    where = tuple(first[at] for first, at in zip(firsts, chosen, strict=True))
    table = np.zeros((len(features), domain.pe_count, count), np.int64)
    for row, feature in zip(table, features, strict=True):
        values = feature.at(where, space)
        full = np.broadcast_to(values if where else values[..., np.newaxis], (*space, count))
        row[:] = full.reshape(domain.pe_count, count)
    return FiringCodes(order=order, table=table, counts=firings_per_code(order, count))


def compressed(domain: Domain, arrays: Sequence[Array]) -> list[Array]:
    """Arrays over a domain, with one iteration of each time axis for all that are alike in them."""
    space = domain.shape[: domain.space_rank]
    classes = _classes_of_iterations(domain, arrays)
    where: Any = np.ix_(*(_first_positions(labels) for labels in classes))
    return [_chosen(array, where, space) for array in arrays]


def _classes_of_iterations(
    domain: Domain, arrays: Sequence[Array]
) -> tuple[NDArray[np.int32], ...]:
    """Per time axis, which iterations are alike in all arrays."""
    rank = domain.space_rank
    return tuple(
        _labels(extent, [array for array in arrays if array.shape[axis] > 1], axis)
        for axis, extent in enumerate(domain.shape[rank:], rank)
    )


def _labels(extent: int, arrays: Sequence[Array], axis: int) -> NDArray[np.int32]:
    labels, count = np.zeros(extent, np.int32), 1
    for array in arrays:
        slices = np.ascontiguousarray(np.moveaxis(array, axis, 0)).reshape(extent, -1)
        if slices.shape[1] <= _FEW:
            for column in slices.T:
                labels, count = _refined(labels, count, column)
        else:
            labels, count = _refined(labels, count, _numbered(slices))
    return labels


def _numbered(rows: Array) -> NDArray[np.int32]:
    """A number for every row of a matrix, the same for equal rows."""
    if rows.dtype == np.bool_:
        rows = np.packbits(rows, axis=1)
    words = np.ascontiguousarray(rows).view(np.uint8)
    if words.shape[1] > _LONG_ROW or len(words) <= words.shape[1]:
        known: dict[bytes, int] = {}
        listed = [known.setdefault(row.tobytes(), len(known)) for row in words]
        return np.asarray(listed, np.int32)
    padded = np.zeros((len(words), -(-words.shape[1] // 8) * 8), np.uint8)
    padded[:, : words.shape[1]] = words
    numbers, count = np.zeros(len(words), np.int32), 1
    for column in padded.view(np.uint64).T:
        _, positions = np.unique(column, return_inverse=True)
        numbers, count = _refined(numbers, count, positions.astype(np.int32))
    return numbers


def _codes_at(features: Sequence[Feature], where: Any, space: tuple[int, ...]) -> Array:
    """Numbers that tell the chosen firings apart by the features that they have on any PE."""
    shape = tuple(len(at.reshape(-1)) for at in where)
    classes: dict[tuple[int, ...], tuple[Array, int]] = {}
    for feature in features:
        values = feature.at(where, space)
        axes = _varying(values, len(space))
        narrow = values[(..., *(slice(None) if varies else slice(1) for varies in axes))]
        key = narrow.shape[len(space) :]
        known = classes.get(key, (np.zeros(key, np.int32), 1))
        rows = narrow.reshape((-1, *key))
        if len(rows) > _MANY:
            columns = _numbered(rows.reshape(len(rows), -1).T)
            known = _refined(*known, columns.reshape(key))
        else:
            for row in rows:
                known = _refined(*known, row)
        classes[key] = known
    codes, count = np.zeros((1,) * len(shape), np.int32), 1
    for narrow, _ in sorted(classes.values(), key=lambda item: item[0].size):
        codes, count = _refined(codes, count, narrow)
    return np.broadcast_to(codes, shape)


def _varying(values: Array, rank: int) -> tuple[bool, ...]:
    """Along which axes after the first ``rank`` the values change."""
    return tuple(
        values.shape[axis] > 1 and bool((values != np.take(values, [0], axis)).any())
        for axis in range(rank, values.ndim)
    )


def _alike(codes: Array, axis: int) -> NDArray[np.int32]:
    """Which positions along an axis have equal codes."""
    return _labels(codes.shape[axis], [codes] if codes.shape[axis] > 1 else [], axis)


def _first_positions(labels: Array) -> NDArray[np.int64]:
    """The first iteration of each class."""
    first = np.zeros(int(labels.max(initial=0)) + 1, np.int64)
    first[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return first


def firings_per_code(order: FiringOrder, count: int) -> NDArray[np.int64]:
    """How many firings have each code: those before the end less those before the start."""
    return _counts_before(order, order.start + order.firings, count) - _counts_before(
        order, order.start, count
    )


def code_counts(codes: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """How often each of so many codes occurs."""
    if count > _FEW_CODES:
        return np.bincount(codes, minlength=count)
    return np.array([np.count_nonzero(codes == code) for code in range(count)], np.int64)


def _counts_before(order: FiringOrder, position: int, count: int) -> NDArray[np.int64]:
    """How often each code occurs before a position of the box.

    These are, axis by axis, the iterations before the position's, with all iterations inside.
    """
    if order.is_list:
        return code_counts(order.codes[:position], count)
    counts = np.zeros(count, np.int64)
    if position == 0:
        return counts
    extents = [len(axis) for axis in order.axes]
    sizes = [np.bincount(axis) for axis in order.axes]
    at: list[int] = []
    for axis, extent in enumerate(extents):
        inner = prod(extents[axis + 1 :])
        done = min(position // inner, extent)
        position -= done * inner
        part = [
            np.bincount(order.axes[n][x : x + 1], minlength=len(sizes[n])) for n, x in enumerate(at)
        ]
        part += [
            np.bincount(order.axes[axis][:done], minlength=len(sizes[axis])),
            *sizes[axis + 1 :],
        ]
        weight = reduce(np.multiply.outer, (w.astype(np.int64) for w in part))
        np.add.at(counts, order.codes.reshape(-1), weight.reshape(-1))
        at.append(min(done, extent - 1))
        if done == extent:
            break
    if not extents:
        counts[order.codes.reshape(-1)] += position
    return counts


def _refined(classes: Array, count: int, values: Array) -> tuple[Array, int]:
    """Classes split by a further integer array, numbered from 0 without gaps."""
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span == 1 and values.size == 1:
        return classes, count
    bound = count * span
    wide = np.int32 if bound < 2**31 else np.int64
    combined = classes.astype(wide) * wide(span) + (values - low).astype(wide)
    if bound <= 4 * combined.size + 4096:
        present = np.zeros(bound, np.bool_)
        present[combined] = True
        numbers = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return numbers[combined], int(numbers[-1]) + 1
    distinct, inverse = np.unique(combined, return_inverse=True)
    return inverse.reshape(combined.shape).astype(np.int32), len(distinct)
