"""The meaning of a chain of transformations: the order of values in memory.

Four terms describe every legal chain.

* A *unit* is stored or left out as a whole: one value, or a dense tile if dimensions are blocked
  before they are packed.
* A *fiber* is the sequence of units along the packed dimension: a row, where columns are packed.
* A fiber occupies *slots*, one for each of its units and one for each unit of padding.
* A *job* is what a schedule assigns to a machine: some consecutive fibers, or a block of slots.

For a matrix of some shape, ``units_of`` divides the coordinates of an element into those of its
unit and its offset in the unit.  A dimension that is blocked several times before it is packed
gives nested blocks.  Inside a unit the order is outer blocks first, and rows before columns at the
same depth, so a unit of 2 x 3 is stored row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.func.func import Var

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseTile:
    """A block of a dimension that is not packed yet; ``factor`` ``None`` is the whole dimension."""

    dimension: MatrixDimension
    factor: int | None
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A packed dimension and the structure that it records."""

    dimension: MatrixDimension
    index: str
    length: str | None
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocking:
    """Blocks of a packed dimension: ``factor`` units, or blocks of the blocking before.

    ``group`` is the number of fibers that ``Longest`` pads to their longest one; ``None`` means
    all.
    """

    factor: int
    padding: BlockPadding
    name: str | None
    group: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Blocks of ``size`` consecutive fibers."""

    size: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberJob:
    """A job of ``fibers`` consecutive fibers."""

    fibers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockJob:
    """A job of ``slots`` consecutive slots of one fiber."""

    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """The last step; ``index`` records the number of each job."""

    job: FiberJob | BlockJob
    machines: int
    policy: Policy
    index: str | None
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The structure that records the number of slots of a fiber.

    Structure ``name`` holds one entry ``n`` for every ``fibers`` fibers (a single entry if
    ``fibers`` is ``None``); each of these fibers has ``ceil(n / round) * round * scale`` slots.
    """

    name: str
    fibers: int | None
    scale: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLayout:
    """The meaning of a (partial) chain.

    ``minor`` is the packing of the units of a fiber, ``fiber`` the packing of the fibers
    themselves; ``major`` is the dimension of the fibers as soon as it is known.
    """

    skewed: bool = False
    tiles: tuple[DenseTile, ...] = ()
    major: MatrixDimension | None = None
    minor: Packing | None = None
    fiber: Packing | None = None
    blocks: tuple[Blocking, ...] = ()
    groups: tuple[Grouping, ...] = ()
    schedule: Scheduling | None = None

    @property
    def dimensions(self) -> tuple[MatrixDimension, MatrixDimension]:
        """The two dimensions of the matrix at this step."""
        return (
            MatrixDimension.ROWS,
            MatrixDimension.DIAGONALS if self.skewed else MatrixDimension.COLUMNS,
        )

    def other(self, dimension: MatrixDimension) -> MatrixDimension:
        """The dimension that is not ``dimension``."""
        first, second = self.dimensions
        return second if dimension is first else first

    @property
    def group_size(self) -> int:
        """Fibers are padded to a multiple of this number."""
        return prod(group.size for group in self.groups)

    @property
    def block_slots(self) -> int:
        """The number of slots of a fiber is a multiple of this."""
        return prod(block.factor for block in self.blocks)

    @property
    def whole_fiber(self) -> bool:
        """Whether there is a single fiber, because its dimension is blocked as a whole."""
        return (
            any(tile.dimension is self.major and tile.factor is None for tile in self.tiles)
            and not self.groups
        )

    @property
    def rows_of_values(self) -> bool:
        """Whether fibers are rows and units are values: rows and columns need no arithmetic."""
        plain = not (self.tiles or self.skewed or self.minor is None)
        return plain and self.major is MatrixDimension.ROWS

    @property
    def indexed_slots(self) -> bool:
        """Whether every unit records its fiber: packed twice, without lengths."""
        return self.fiber is not None and self.lengths is None

    @property
    def lengths(self) -> Lengths | None:
        """The lengths that give the slots of fibers; ``None`` if none are recorded."""
        if self.minor is None:
            return None
        lengths = None
        if self.minor.length is not None:
            lengths = Lengths(name=self.minor.length, fibers=1, scale=1, round=1)
        scale = 1
        for block in self.blocks:
            scale *= block.factor
            if block.name is not None:
                fibers = block.group if block.padding is BlockPadding.LONGEST else 1
                lengths = Lengths(name=block.name, fibers=fibers, scale=scale, round=1)
            elif lengths is None or block.padding is BlockPadding.LONGEST:
                lengths = None
            else:
                lengths = Lengths(
                    name=lengths.name,
                    fibers=lengths.fibers,
                    scale=lengths.scale,
                    round=lengths.round * block.factor,
                )
        return lengths

    @property
    def equal_jobs(self) -> bool:
        """Whether all jobs have the same length for every matrix."""
        assert self.schedule is not None
        if isinstance(self.schedule.job, BlockJob) or self.minor is None:
            return True
        lengths = self.lengths
        return lengths is not None and lengths.fibers is None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLoop:
    """A loop inside a unit: ``extent`` steps of ``stride`` along ``dimension``."""

    dimension: MatrixDimension
    stride: int
    extent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixUnits:
    """The units of a matrix of a given shape.

    ``extents`` are those of the dimensions, in elements; ``digits`` are the loops inside a unit,
    outermost first.
    """

    extents: tuple[tuple[MatrixDimension, int], ...]
    digits: tuple[UnitLoop, ...]

    @property
    def size(self) -> int:
        """Elements of a unit."""
        return prod(digit.extent for digit in self.digits)

    def factor(self, dimension: MatrixDimension) -> int:
        """Elements of a unit along a dimension."""
        return prod(digit.extent for digit in self.digits if digit.dimension is dimension)

    def extent(self, dimension: MatrixDimension) -> int:
        """Elements of the matrix along a dimension."""
        return dict(self.extents)[dimension]

    def count(self, dimension: MatrixDimension) -> int:
        """Units along a dimension, including an incomplete last one."""
        return -(-self.extent(dimension) // self.factor(dimension))

    def place(self, coordinates: dict[MatrixDimension, Array]) -> Array:
        """The position of elements inside their unit."""
        weight, place = self.size, np.zeros_like(next(iter(coordinates.values())))
        for digit in self.digits:
            weight //= digit.extent
            value = coordinates[digit.dimension] // digit.stride % digit.extent
            place += (value * weight).astype(place.dtype)
        return place

    def offsets(self, dimension: MatrixDimension) -> Array:
        """The offset along a dimension of each position inside a unit."""
        weight, position = self.size, np.arange(self.size)
        result = np.zeros(self.size, np.int64)
        for digit in self.digits:
            weight //= digit.extent
            if digit.dimension is dimension:
                result += position // weight % digit.extent * digit.stride
        return result


def units_of(layout: ChainLayout, shape: tuple[int, int]) -> MatrixUnits:
    """The units of a matrix of ``shape`` in a layout."""
    rows, columns = shape
    second = columns
    if layout.skewed:
        second = rows + columns - 1 if rows and columns else 0
    extents = dict(zip(layout.dimensions, (rows, second), strict=True))
    strides = dict.fromkeys(layout.dimensions, 1)
    loops: list[tuple[int, UnitLoop]] = []
    for tile in layout.tiles:
        factor = _factor(tile, extents[tile.dimension], strides[tile.dimension])
        stride = strides[tile.dimension]
        depth = sum(digit.dimension is tile.dimension for _, digit in loops)
        loops.append((depth, UnitLoop(dimension=tile.dimension, stride=stride, extent=factor)))
        strides[tile.dimension] *= factor
    order = list(layout.dimensions)
    loops.sort(key=lambda item: (-item[0], order.index(item[1].dimension)))
    return MatrixUnits(extents=tuple(extents.items()), digits=tuple(digit for _, digit in loops))


def _factor(tile: DenseTile, extent: int, stride: int) -> int:
    return tile.factor if tile.factor is not None else max(1, -(-extent // stride))


# The arguments of a chain's steps: dimensions, paddings, schedules, names of structure.


class MatrixDimension(Enum):
    """A dimension of the matrix."""

    ROWS = "Rows"
    COLUMNS = "Columns"
    DIAGONALS = "Diagonals"

    def __repr__(self) -> str:
        return self.value


class BlockPadding(Enum):
    """How incomplete blocks are padded.

    ``Zero`` pads the last block.  ``Longest`` pads everything to the longest of its group: its
    block of rows, or the whole matrix.
    """

    ZERO = "Zero"
    LONGEST = "Longest"

    def __repr__(self) -> str:
        return self.value


class Policy(Enum):
    """Which machine gets the next job.

    ``ASAP``: jobs in order, each to the machine that is free first (the lowest numbered of those).
    ``RoundRobin``: job k to machine k modulo the number of machines.
    ``LongestFirst``: as ``ASAP``, but the jobs sorted by length, the longest first.
    """

    ASAP = "ASAP"
    ROUND_ROBIN = "RoundRobin"
    LONGEST_FIRST = "LongestFirst"

    def __repr__(self) -> str:
        return self.value


class WholeExtent(Enum):
    """A block factor that depends on the matrix: ``Whole`` is the whole dimension."""

    WHOLE = "Whole"

    def __repr__(self) -> str:
        return self.value


Rows, Columns, Diagonals = MatrixDimension.ROWS, MatrixDimension.COLUMNS, MatrixDimension.DIAGONALS
Zero, Longest = BlockPadding.ZERO, BlockPadding.LONGEST
ASAP, RoundRobin, LongestFirst = Policy.ASAP, Policy.ROUND_ROBIN, Policy.LONGEST_FIRST
Whole = WholeExtent.WHOLE


@dataclass(frozen=True, slots=True)
class NamedStructure:
    """A part of the structure, named by a ``Var``."""

    variable: Var
    location: SourceLocation

    @property
    def name(self) -> str:
        return self.variable.name


class Index(NamedStructure):
    """``Index(col_idx)``: record the position of each value (or row, or job) along the
    dimension.
    """

    __slots__ = ()

    def __init__(self, variable: Var) -> None:
        super().__init__(_variable("Index", variable), user_location())

    def __repr__(self) -> str:
        return f"Index({self.name})"


class Length(NamedStructure):
    """``Length(row_len)``: record the number of values, or blocks, along the dimension."""

    __slots__ = ()

    def __init__(self, variable: Var) -> None:
        super().__init__(_variable("Length", variable), user_location())

    def __repr__(self) -> str:
        return f"Length({self.name})"


def _variable(what: str, variable: object) -> Var:
    if not isinstance(variable, Var):
        raise UserError(
            f"{what} needs the Var that names this part of the structure",
            location=user_location(),
            expected=f'for example {what}(Var("{"col_idx" if what == "Index" else "row_len"}"))',
            given=repr(variable),
        )
    return variable
