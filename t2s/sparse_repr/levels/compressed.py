"""Levels that list coordinates: compressed ones, singletons, and those of lists of coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.scanners import (
    JoinStrategy,
    RunScanner,
    SingletonScanner,
    UniqueScanner,
    scan_compressed,
)
from t2s.sparse_repr.blocks.skipping import intersect_skipping
from t2s.sparse_repr.blocks.writers import CompressedWriter, SingletonWriter
from t2s.sparse_repr.levels.level import (
    Array,
    Arrays,
    GraphLevel,
    JoinedSide,
    Level,
    LevelStreams,
    Packed,
    PackingError,
    Unpacked,
    firsts,
    ranges,
    segments,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed(Level):
    """``pos`` gives the segment of every fiber in ``crd``, which holds the coordinates."""

    letter = "s"
    title = "compressed"
    array_names = ("pos", "crd")
    scanned = True
    together: ClassVar[JoinStrategy | None] = JoinStrategy.SKIPPING

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        first = firsts(parents, coordinates)
        arrays = {"pos": segments(parents[first], count), "crd": coordinates[first]}
        positions = np.cumsum(first) - 1
        return Packed(arrays=arrays, positions=positions, count=len(arrays["crd"]))

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        begins, ends = arrays["pos"][parents], arrays["pos"][parents + 1]
        positions, owner = ranges(begins, ends)
        coordinates = arrays["crd"][positions]
        return Unpacked(parents=owner, coordinates=coordinates, positions=positions)

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        pos, length = arrays["pos"], len(arrays["crd"])
        fits = len(pos) == count + 1 and pos[0] == 0 and pos[-1] == length
        if fits and not (np.diff(pos) < 0).any():
            return None
        return (
            f"pos of {count + 1} numbers that never decrease, from 0 to the length of crd, {length}"
        )

    def all_filled(self, arrays: Arrays, count: int, extent: int) -> bool:
        return bool(np.diff(arrays["pos"]).all())

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        pos, crd = level.array("pos"), level.array("crd")
        return scan_compressed(level.to, reference, pos, crd, name)

    def join(
        self, to: Connections, kind: BlockKind, sides: Sequence[JoinedSide], name: str
    ) -> tuple[Stream, tuple[Stream, ...]]:
        levels = [(ref, level.array("pos"), level.array("crd")) for level, ref, _ in sides]
        return intersect_skipping(to, levels, name)

    def has_writer(self, dropping: int) -> bool:
        return True

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        pos, crd = level.array("pos"), level.array("crd")
        block = CompressedWriter(positions=pos, stored=crd, empty_fibers=given.empty_fibers)
        level.to.put(block, name, given.coordinate)

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        """The written arrays; a variable of extent 0 has no fibers."""
        return {"pos": stored["pos"][: count + 1], "crd": stored["crd"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedNonUnique(Compressed):
    """A compressed level that repeats a coordinate for every entry below it (COO's first)."""

    letter = "u"
    title = "compressed non-unique"
    unique = False
    scanned = False
    together = None

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        arrays = {"pos": segments(parents, count), "crd": coordinates.copy()}
        return Packed(arrays=arrays, positions=np.arange(len(parents)), count=len(parents))

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        """Each coordinate once, with its run in the list as its fiber."""
        pos, crd = level.array("pos"), level.array("crd")
        return level.to.pair(UniqueScanner(positions=pos, coordinates=crd), name, reference)

    def has_writer(self, dropping: int) -> bool:
        return False

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        level.to.put(SingletonWriter(stored=level.array("crd")), name, given.coordinate)

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        crd = stored["crd"]
        return {"pos": np.array([0, len(crd)], np.int64), "crd": crd}


@dataclass(frozen=True, slots=True, kw_only=True)
class Singleton(Level):
    """Exactly one coordinate for each position above: ``crd`` alone."""

    letter = "q"
    title = "singleton"
    array_names = ("crd",)
    branchless = True
    scanned = True

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        first = firsts(parents, coordinates)
        if not np.array_equal(parents[first], np.arange(count)):
            raise self.misfit()
        return Packed(arrays={"crd": coordinates[first]}, positions=parents, count=count)

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        return None if len(arrays["crd"]) == count else f"crd of {count} coordinates"

    def misfit(self) -> PackingError:
        """The error for a fiber of no coordinate or several."""
        return PackingError(
            f"a {self.title} level holds exactly one coordinate for each position above it"
        )

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        numbers = np.arange(len(parents))
        return Unpacked(parents=numbers, coordinates=arrays["crd"][parents], positions=parents)

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        """In a list of coordinates, scan each of them once, below the runs of the levels above."""
        if not level.listed:
            return level.to.pair(SingletonScanner(coordinates=level.array("crd")), name, reference)
        block = RunScanner(
            positions=level.array("pos", level=0),
            above=tuple(level.array("crd", level=number) for number in range(level.number)),
            coordinates=level.array("crd"),
        )
        return level.to.pair(block, name, reference)

    def has_writer(self, dropping: int) -> bool:
        """Whether blocks write it: not below dense levels only, whose fibers may be empty."""
        return dropping > 0

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        level.to.put(SingletonWriter(stored=level.array("crd")), name, given.coordinate)

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        if len(stored["crd"]) != count:
            raise self.misfit()
        return dict(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonNonUnique(Singleton):
    """A singleton level whose coordinate the next fiber may repeat (inner levels of COO)."""

    letter = "c"
    title = "singleton non-unique"
    unique = False
    scanned = False

    def has_writer(self, dropping: int) -> bool:
        return False
