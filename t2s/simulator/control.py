"""Firing codes: what each firing of a PE does with its ports, as one small integer per firing.

The control of a node is a set of *features*: for every port the element of the channel array that
a firing uses (or that it uses none), for memory the bytes it moves.  Firings that agree in all
features on all PEs of a domain get the same code, so all PEs of a domain share one list of codes,
and a table says per PE and code what the features are.

Everything is evaluated over the axes it depends on and no others, so the cost of a usual node is
that of a few passes over its list of codes, however many PEs it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.simulator.domain import Domain

UNUSED = -1
"""The element of a port that a firing does not use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """An integer that a firing has where ``active`` holds, and ``otherwise`` elsewhere.

    ``active`` and ``value`` are arrays over (some of) the axes of a domain.
    """

    active: Array
    value: Array
    otherwise: int

    def distinction(self, space_rank: int) -> Array:
        """An array that tells any two firings apart that differ in this feature on some PE."""
        if prod(self.value.shape[space_rank:]) == 1:
            return self.active.view(np.int8)
        return np.where(self.active, self.value, self.otherwise)

    def at(self, where: Any, shape: tuple[int, ...]) -> Array:
        """The feature at chosen points of a domain of that shape."""
        active = np.broadcast_to(self.active, shape)[where]
        return np.where(active, np.broadcast_to(self.value, shape)[where], self.otherwise)


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringCodes:
    """The control of the PEs of one domain.

    Attributes
    ----------
    codes: per firing, in order; from 0 to the number of codes less one.
    table: feature values by (feature, PE, code).
    counts: number of firings with each code.
    """

    codes: NDArray[np.int32]
    table: NDArray[np.int64]
    counts: NDArray[np.int64]


def firing_codes(domain: Domain, features: Sequence[Feature]) -> FiringCodes:
    """The codes of a domain from the features of its node."""
    space, time = domain.space_rank, domain.shape[domain.space_rank :]
    if domain.firings == 0:
        empty = np.zeros((len(features), domain.pe_count, 0), np.int64)
        none = np.zeros(0, np.int64)
        return FiringCodes(codes=np.zeros(0, np.int32), table=empty, counts=none)
    classes: dict[tuple[int, ...], tuple[Array, int]] = {}
    for feature in features:
        distinction = feature.distinction(space)
        axes = distinction.shape[space:]
        rows = distinction.reshape((-1, *axes))
        found = classes.get(axes, (np.zeros(axes, np.int32), 1))
        for row in rows:
            found = _refined(*found, row)
        classes[axes] = found
    codes, count = np.zeros((1,) * len(time), np.int32), 1
    for narrow, _ in sorted(classes.values(), key=lambda item: item[0].size):
        codes, count = _refined(codes, count, narrow)
    flat = np.ascontiguousarray(np.broadcast_to(codes, time)).reshape(-1)
    representative = np.zeros(count, np.int64)
    representative[flat[::-1]] = np.arange(flat.size - 1, -1, -1)
    return FiringCodes(
        codes=flat,
        table=_table(domain, features, representative),
        counts=np.bincount(flat, minlength=count),
    )


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


def _table(domain: Domain, features: Sequence[Feature], firings: Array) -> NDArray[np.int64]:
    """The features of chosen firings on every PE."""
    extents = domain.shape[domain.space_rank :]
    time: tuple[Any, ...] = np.unravel_index(firings, extents) if extents else ()
    where: Any = (..., *time)
    table = np.zeros((len(features), domain.pe_count, len(firings)), np.int64)
    for row, feature in zip(table, features, strict=True):
        row[:] = feature.at(where, domain.shape).reshape(domain.pe_count, -1)
    return table
