"""Dense levels: every coordinate has a place, and nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t2s.sparse_repr.blocks.connections import Stream
from t2s.sparse_repr.blocks.locators import LocateAddress
from t2s.sparse_repr.blocks.scanners import DenseScanner
from t2s.sparse_repr.levels.level import Array, Arrays, GraphLevel, Level, Packed, Unpacked


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense(Level):
    """Every coordinate from 0 to the extent; nothing is stored."""

    letter = "d"
    title = "dense"
    full = True
    scanned = True

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        return Packed(arrays={}, positions=parents * extent + coordinates, count=count * extent)

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        numbers = np.repeat(np.arange(len(parents)), extent)
        coordinates = np.tile(np.arange(extent), len(parents))
        positions = np.repeat(parents, extent) * extent + coordinates
        return Unpacked(parents=numbers, coordinates=coordinates, positions=positions)

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        return count * extent

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        return level.to.pair(DenseScanner(size=level.extent), name, reference)

    def locate(self, variable: str) -> LocateAddress | None:
        return LocateAddress(scale=(variable,))
