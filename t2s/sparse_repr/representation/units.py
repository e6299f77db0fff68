"""Dense tiles: how the coordinates of an element divide into those of its unit and of its place.

A dimension that is blocked several times before it is packed gives nested blocks.  Inside of a unit
the outer blocks come first, and rows before columns at the same depth, so that a unit of 2 x 3 is
in memory row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from t2s.sparse_repr.representation.layout import Layout, Tile
from t2s.sparse_repr.representation.vocabulary import Dimension

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """A loop inside of a unit: ``extent`` steps of ``stride`` along ``dimension``."""

    dimension: Dimension
    stride: int
    extent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of a matrix of a given shape.

    ``extents`` are those of the dimensions, in elements; ``digits`` the loops inside of a unit,
    outermost first.
    """

    extents: tuple[tuple[Dimension, int], ...]
    digits: tuple[Digit, ...]

    @property
    def size(self) -> int:
        """Elements of a unit."""
        return prod(digit.extent for digit in self.digits)

    def factor(self, dimension: Dimension) -> int:
        """Elements of a unit along a dimension."""
        return prod(digit.extent for digit in self.digits if digit.dimension is dimension)

    def extent(self, dimension: Dimension) -> int:
        """Elements of the matrix along a dimension."""
        return dict(self.extents)[dimension]

    def count(self, dimension: Dimension) -> int:
        """Units along a dimension, the incomplete last one included."""
        return -(-self.extent(dimension) // self.factor(dimension))

    def place(self, coordinates: dict[Dimension, Array]) -> Array:
        """The position of elements inside of their unit."""
        weight, place = self.size, np.zeros_like(next(iter(coordinates.values())))
        for digit in self.digits:
            weight //= digit.extent
            value = coordinates[digit.dimension] // digit.stride % digit.extent
            place += (value * weight).astype(place.dtype)
        return place

    def offsets(self, dimension: Dimension) -> Array:
        """How far along a dimension each position inside of a unit is."""
        weight, position = self.size, np.arange(self.size)
        result = np.zeros(self.size, np.int64)
        for digit in self.digits:
            weight //= digit.extent
            if digit.dimension is dimension:
                result += position // weight % digit.extent * digit.stride
        return result


def units_of(layout: Layout, shape: tuple[int, int]) -> Units:
    """The units of a matrix of ``shape`` in a layout."""
    rows, columns = shape
    second = columns
    if layout.skewed:
        second = rows + columns - 1 if rows and columns else 0
    extents = dict(zip(layout.dimensions, (rows, second), strict=True))
    strides = dict.fromkeys(layout.dimensions, 1)
    found: list[tuple[int, Digit]] = []
    for tile in layout.tiles:
        factor = _factor(tile, extents[tile.dimension], strides[tile.dimension])
        stride = strides[tile.dimension]
        depth = sum(digit.dimension is tile.dimension for _, digit in found)
        found.append((depth, Digit(dimension=tile.dimension, stride=stride, extent=factor)))
        strides[tile.dimension] *= factor
    order = list(layout.dimensions)
    found.sort(key=lambda item: (-item[0], order.index(item[1].dimension)))
    return Units(extents=tuple(extents.items()), digits=tuple(digit for _, digit in found))


def _factor(tile: Tile, extent: int, stride: int) -> int:
    return tile.factor if tile.factor is not None else max(1, -(-extent // stride))
