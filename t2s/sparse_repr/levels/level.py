"""The interface of level kinds: storage of coordinates, and the blocks that scan and write them.

A tensor is stored level by level [SAM, sec. 3.1].  A level has a number of *positions*;
each position of the level above (the root is a level with one position) owns a *fiber* of this
level, and each coordinate in it is a position of this level.  The positions of the last level are
those of the values.

A new level kind is one class: its letter, its properties, packing of sorted coordinates into arrays
and unpacking, and its blocks, if it has any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from t2s.core.walk import Term
from t2s.graph.graph import Tensor
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.locators import LocateAddress
from t2s.sparse_repr.blocks.scanners import DenseScanner, JoinStrategy

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

COORDINATES = "crd"
"""The array of a level that lists its coordinates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The result of packing a level: its arrays, the position of every entry, their number."""

    arrays: Arrays
    positions: Array
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """The coordinates of a level: for each its parent's number, the coordinate, the position."""

    parents: Array
    coordinates: Array
    positions: Array


class PackingError(Exception):
    """The entries do not fit the level kind; the text is for the user."""


class ArrayOfLevel(Protocol):
    """The array of a level with a name; ``words``: it holds words of bits."""

    def __call__(self, level: int, of: str, words: bool, /) -> Tensor: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStreams:
    """The inputs of a writer: coordinates, and those of the level above, if there is one.

    Without ``empty_fibers``, empty fibers are dropped.
    """

    coordinate: Stream
    above: Stream | None
    empty_fibers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLevel:
    """A level of a tensor in a graph: its number, its extent, and its arrays.

    ``listed``: the tensor is a list of coordinates (COO).
    """

    kind: Level
    to: Connections
    number: int
    extent: int
    listed: bool
    arrays: ArrayOfLevel

    def array(self, of: str, *, words: bool = False, level: int | None = None) -> Tensor:
        """An array of this level, or of one above."""
        return self.arrays(self.number if level is None else level, of, words)

    def scan(self, reference: Stream, name: str) -> tuple[Stream, Stream]:
        """The coordinates and the references of the fibers."""
        return self.kind.scan(self, reference, name)

    def join(
        self, kind: BlockKind, sides: Sequence[JoinedSide], name: str
    ) -> tuple[Stream, tuple[Stream, ...]]:
        """The coordinates and the references of levels of this kind, joined as they are scanned."""
        return self.kind.join(self.to, kind, sides, name)

    def write(
        self, coordinate: Stream, above: Stream | None, empty_fibers: bool, name: str
    ) -> None:
        """Store coordinates; ``above`` are those of the level above."""
        streams = LevelStreams(coordinate=coordinate, above=above, empty_fibers=empty_fibers)
        self.kind.write(self, streams, name)


JoinedSide = tuple[GraphLevel, Stream, str]
"""A level, the references of its fibers, the name of the scanner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Term):
    """Base of the level kinds.

    ``letter`` is TACO's letter.  A level is *full* if every coordinate has a position, *unique* if
    a fiber holds a coordinate once, *branchless* if every fiber holds exactly one coordinate.
    Levels that blocks do not scan as they are (``scanned``) are read as compressed ones.  Levels of
    one kind may be joined as they are scanned (``together``).
    """

    letter: ClassVar[str]
    title: ClassVar[str]
    array_names: ClassVar[tuple[str, ...]] = ()
    full: ClassVar[bool] = False
    unique: ClassVar[bool] = True
    branchless: ClassVar[bool] = False
    scanned: ClassVar[bool] = False
    together: ClassVar[JoinStrategy | None] = None

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        """Store the entries, sorted by parent and coordinate, below ``count`` parents."""
        raise NotImplementedError

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        """The coordinates in the fibers of the parents at these positions, in order."""
        raise NotImplementedError

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        """Number of positions of the level, given that of the level above."""
        return len(arrays[COORDINATES])

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        """The requirement that arrays below ``count`` positions violate; ``None`` if they fit."""
        return None

    def all_filled(self, arrays: Arrays, count: int, extent: int) -> bool:
        """Whether no fiber is empty."""
        unpacked = self.unpack(arrays, np.arange(count), extent)
        return bool(np.bincount(unpacked.parents, minlength=count).all())

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        """Add the scanner; returns the coordinates and the references of fibers."""
        raise ValueError(f"no scanner for a {self.title} level")

    def join(
        self, to: Connections, kind: BlockKind, sides: Sequence[JoinedSide], name: str
    ) -> tuple[Stream, tuple[Stream, ...]]:
        """Add cooperating scanners and a joiner; returns coordinates and each one's references."""
        raise ValueError(f"no scanners for {self.title} levels together")

    def locate(self, variable: str) -> LocateAddress | None:
        """The block that finds a coordinate of a variable in a fiber; ``None`` if none does."""
        return None

    def has_writer(self, dropping: int) -> bool:
        """Whether blocks write it below a number of levels that leave coordinates out."""
        return False

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        """Add the writer."""
        raise ValueError(f"no writer for a {self.title} level")

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        """The final arrays below ``count`` positions, from those that the writer stored.

        This completes what is only known at the end of a run: the length of a list of coordinates,
        the number of all bits, zeros for fibers without entries.  Raises ``PackingError``.
        """
        return dict(stored)


def segments(parents: Array, count: int) -> Array:
    """The ``pos`` array of entries with these parents."""
    return np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=count))]).astype(np.int64)


def firsts(parents: Array, coordinates: Array) -> Array:
    """For sorted entries: whether each differs from the one before it."""
    first = np.ones(len(parents), bool)
    first[1:] = (parents[1:] != parents[:-1]) | (coordinates[1:] != coordinates[:-1])
    return first


def ranges(begins: Array, ends: Array) -> tuple[Array, Array]:
    """All integers of the ranges, one range after the other, and for each the range's number."""
    lengths = ends - begins
    owner = np.repeat(np.arange(len(begins)), lengths)
    starts = np.cumsum(lengths) - lengths
    numbers = np.repeat(np.asarray(begins - starts, np.int64), lengths)
    numbers += np.arange(len(owner))
    return numbers, owner


# Dense levels: every coordinate has a position, and nothing is stored.


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
