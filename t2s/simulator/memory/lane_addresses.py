"""Vectors of addresses, kept small: most lanes of most vectors touch nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t2s.core.ops import Array
from t2s.graph.semantics import HOLE

_BLOCK = 1 << 10
"""Vectors between two of those of which it is known how many addresses come before them."""

_FEW_LANES = 2
"""Addresses of less than one in so many lanes are picked one by one: numpy is faster then."""


@dataclass(frozen=True, slots=True, eq=False)
class LaneRows:
    """Some vectors: the bits of their lanes, and the addresses."""

    chosen: NDArray[np.uint8]
    addresses: Array

    def counts(self) -> NDArray[np.int64]:
        """How many addresses each vector has."""
        return np.asarray(np.bitwise_count(self.chosen).sum(axis=1, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class LaneAddresses:
    """Addresses of vectors: a sequence of rows of ``lanes``, with -1 where a lane touches nothing.

    Attributes
    ----------
    lanes: of each vector.
    chosen: which lanes have addresses, a row of bits for each vector, eight in a byte.
    addresses: theirs, vector by vector.
    before: how many of these come before each ``_BLOCK``-th vector.
    """

    lanes: int
    chosen: NDArray[np.uint8]
    addresses: Array
    before: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, rows: slice) -> Array:
        """The vectors from one on up to another one."""
        begin, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("vectors of addresses are read one after the other")
        first = begin // _BLOCK
        at = int(self.before[first]) + _bits(self.chosen[first * _BLOCK : begin])
        mask = np.unpackbits(self.chosen[begin:end], axis=1, count=self.lanes).view(np.bool_)
        found = np.full(mask.shape, HOLE, self.addresses.dtype)
        found[mask] = self.addresses[at : at + np.count_nonzero(mask)]
        return found

    def first(self, vectors: int) -> LaneRows:
        """The first so many vectors."""
        chosen = self.chosen[:vectors]
        return LaneRows(chosen=chosen, addresses=self.addresses[: _bits(chosen)])


Addresses = Array | LaneAddresses
"""What a channel of addresses carried: one for each access, or vectors of them."""


def lane_rows(rows: Array) -> LaneRows:
    """An array with a row for each vector."""
    mask = rows != HOLE
    lanes, chosen = mask.shape[1], mask.reshape(-1)
    whole = mask if lanes % 8 else chosen
    bits = np.packbits(whole, axis=-1).reshape(len(rows), -(-lanes // 8))
    sparse = np.count_nonzero(chosen) * _FEW_LANES < len(chosen)
    picked = rows.reshape(-1)[np.flatnonzero(chosen) if sparse else chosen]
    return LaneRows(chosen=bits, addresses=narrowed(picked))


def lane_addresses(lanes: int, parts: Sequence[LaneRows]) -> LaneAddresses:
    """All vectors of some parts, in order."""
    nothing = np.zeros((0, -(-lanes // 8)), np.uint8)
    bits = np.concatenate([nothing, *(part.chosen for part in parts)])
    counts = [_bits(bits[at : at + _BLOCK]) for at in range(0, len(bits), _BLOCK)]
    return LaneAddresses(
        lanes=lanes,
        chosen=bits,
        addresses=np.concatenate([np.zeros(0, np.int32), *(part.addresses for part in parts)]),
        before=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)]),
    )


def narrowed(addresses: Array) -> Array:
    """The same numbers in 32 bits, if all of them fit."""
    fits = not len(addresses) or int(addresses.max()) <= np.iinfo(np.int32).max
    return addresses.astype(np.int32 if fits else np.int64)


def _bits(rows: NDArray[np.uint8]) -> int:
    return int(np.bitwise_count(rows).sum(dtype=np.int64))
