"""The codes of a machine's firings, as runs of equal ones where they repeat.

A firing is a byte, so 10^9 of them are a gigabyte for each machine; along the rows of a dense
matrix, runs take a thousandth of that.  ``values/packing.py`` makes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import InternalError
from t2s.core.ops import Array

Runs = NDArray[np.int32]
Counts = NDArray[np.int64]

SHORT = np.dtype(np.uint16)
"""The type of codes that do not fit into a byte."""

_COUNT_BITS = 31
_SAMPLES, _STRETCHES = 256, 4
_AT_ONCE = 1 << 22


def most_in_run(bits: int) -> int:
    """The most firings in a word of a run whose code has so many bits."""
    return (1 << (_COUNT_BITS - bits)) - 1


@dataclass(frozen=True, kw_only=True)
class Codes:
    """The codes of firings, in order.

    A part of them is an array of the codes, of type ``type`` (uint8 or uint16), or of runs (int32:
    ``count << bits | code``), whose codes have as many bits.  A part that comes again, a *round*
    (see ``rounds``), is the same array.  Of codes that are not kept, ``counted`` has how often each
    one came.
    """

    type: np.dtype[np.generic]
    parts: tuple[Array, ...]
    firings: int
    counted: Counts | None = None

    def __len__(self) -> int:
        return self.firings

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return 8 * self.type.itemsize

    @property
    def listed(self) -> int:
        """How many codes are not parts of runs."""
        return sum(len(part) for part in self.parts if part.dtype == self.type)

    @cached_property
    def counts(self) -> Counts:
        """How often each code came, up to the largest one that did."""
        counts = counts_of(self.parts, self.bits) if self.counted is None else self.counted
        return np.trim_zeros(counts, "b")

    @cached_property
    def expanded(self) -> Array:
        """A code for every firing, of codes that are kept."""
        if self.counted is not None:
            raise InternalError("the codes of these firings are not kept")
        if len(self.parts) == 1 and self.parts[0].dtype == self.type:
            return self.parts[0]
        expanded = np.empty(self.firings, self.type)
        at = 0
        for part in self.parts:
            codes = part if part.dtype == self.type else repeated(part, self.bits, self.type)
            expanded[at : at + len(codes)] = codes
            at += len(codes)
        return expanded

    def about_runs(self) -> float:
        """About how many runs there are."""
        times = Counter(map(id, self.parts))
        return sum(
            times[id(p)] * (len(p) if p.dtype == np.int32 else about_runs_of(p))
            for p in {id(p): p for p in self.parts}.values()
        )


def codes_of_parts(type: np.dtype[np.generic], parts: Iterable[Array]) -> Codes:
    """Codes from their parts (see ``Codes``)."""
    kept = tuple(parts)
    bits = 8 * type.itemsize
    counts = {
        id(p): int((p >> bits).sum(dtype=np.int64)) if p.dtype == np.int32 else len(p)
        for p in {id(p): p for p in kept}.values()
    }
    return Codes(type=type, parts=kept, firings=sum(counts[id(p)] for p in kept))


def counts_of(parts: Iterable[Array], bits: int) -> Counts:
    """How often each code of so many bits comes in the parts of a trace."""
    kept = list(parts)
    times = Counter(map(id, kept))
    total = np.zeros(1 << bits, np.int64)
    for part in {id(p): p for p in kept}.values():
        for begin in range(0, len(part), _AT_ONCE):
            codes = part[begin : begin + _AT_ONCE]
            weights = None
            if codes.dtype == np.int32:
                codes, weights = codes & ((1 << bits) - 1), codes >> bits
            counts = np.bincount(codes, weights, len(total)).astype(np.int64)
            total += times[id(part)] * counts
    return total


def about_runs_of(codes: Array) -> float:
    """About how many runs there are, from short stretches at equal distances."""
    changes = max(0, len(codes) - 1)
    if changes <= _STRETCHES * _SAMPLES:
        return float(1 + np.count_nonzero(codes[1:] != codes[:-1]))
    found, apart = 0, (changes - _SAMPLES) // (_STRETCHES - 1)
    for begin in range(0, changes - _SAMPLES + 1, apart):
        stretch = codes[begin : begin + _SAMPLES + 1]
        found += int(np.count_nonzero(stretch[1:] != stretch[:-1]))
    return 1 + changes * found / (_SAMPLES * _STRETCHES)


def repeated(runs: Runs, bits: int, type: np.dtype[np.generic]) -> Array:
    """The codes of runs, one for each firing."""
    return np.repeat((runs & ((1 << bits) - 1)).astype(type), runs >> bits)
