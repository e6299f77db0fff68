"""Level kinds: how the coordinates of one level of a tensor are stored.

A tensor is stored level by level (papers/001, section 3.1).  A level has a number of *positions*;
each position of the level above (the root is a level with one position) owns a *fiber* of this
level, and each coordinate in it is a position of this level.  The positions of the last level are
those of the values.

Adding a level kind is one class here: its letter, its properties, how it packs sorted coordinates
into arrays, and how it gives them back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from t2s.core.walk import Term

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """What packing a level gives: its arrays, the position of every entry, the number of them."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(Term):
    """Base of the level kinds.

    ``letter`` is TACO's letter.  A level is *full* if every coordinate has a position, *unique* if
    a fiber holds a coordinate once, *branchless* if every fiber holds exactly one coordinate.
    """

    letter: ClassVar[str]
    title: ClassVar[str]
    array_names: ClassVar[tuple[str, ...]] = ()
    full: ClassVar[bool] = False
    unique: ClassVar[bool] = True
    branchless: ClassVar[bool] = False

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        """Store the entries, sorted by parent and coordinate, below ``count`` parents."""
        raise NotImplementedError

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        """The coordinates in the fibers of the parents at these positions, in order."""
        raise NotImplementedError

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        """Number of positions of the level, given that of the level above."""
        return len(arrays["crd"])

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        """What arrays below ``count`` positions have to be and are not; ``None`` if they fit."""
        return None


def _segments(parents: Array, count: int) -> Array:
    """The ``pos`` array of entries with these parents."""
    return np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=count))]).astype(np.int64)


def _firsts(parents: Array, coordinates: Array) -> Array:
    """For sorted entries: whether each differs from the one before it."""
    first = np.ones(len(parents), bool)
    first[1:] = (parents[1:] != parents[:-1]) | (coordinates[1:] != coordinates[:-1])
    return first


def ranges(begins: Array, ends: Array) -> tuple[Array, Array]:
    """All integers of the ranges, one range after the other, and for each the range's number."""
    lengths = ends - begins
    owner = np.repeat(np.arange(len(begins)), lengths)
    starts = np.cumsum(lengths) - lengths
    return begins[owner] + np.arange(len(owner)) - starts[owner], owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense(Level):
    """Every coordinate from 0 to the extent; nothing is stored."""

    letter = "d"
    title = "dense"
    full = True

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        return Packed(arrays={}, positions=parents * extent + coordinates, count=count * extent)

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        numbers = np.repeat(np.arange(len(parents)), extent)
        coordinates = np.tile(np.arange(extent), len(parents))
        positions = np.repeat(parents, extent) * extent + coordinates
        return Unpacked(parents=numbers, coordinates=coordinates, positions=positions)

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        return count * extent


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed(Level):
    """``pos`` gives the segment of every fiber in ``crd``, which holds the coordinates."""

    letter = "s"
    title = "compressed"
    array_names = ("pos", "crd")

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        first = _firsts(parents, coordinates)
        arrays = {"pos": _segments(parents[first], count), "crd": coordinates[first]}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedNonUnique(Compressed):
    """A compressed level that repeats a coordinate for every entry below it (COO's first)."""

    letter = "u"
    title = "compressed non-unique"
    unique = False

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        arrays = {"pos": _segments(parents, count), "crd": coordinates.copy()}
        return Packed(arrays=arrays, positions=np.arange(len(parents)), count=len(parents))


@dataclass(frozen=True, slots=True, kw_only=True)
class Singleton(Level):
    """Exactly one coordinate for each position above: ``crd`` alone."""

    letter = "q"
    title = "singleton"
    array_names = ("crd",)
    branchless = True

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        first = _firsts(parents, coordinates)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonNonUnique(Singleton):
    """A singleton level whose coordinate the next fiber may repeat (inner levels of COO)."""

    letter = "c"
    title = "singleton non-unique"
    unique = False


WORD = 64


def words_of(extent: int) -> int:
    """Words of a bitvector over coordinates below ``extent``."""
    return max(1, -(-extent // WORD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitvector(Level):
    """Bit c of a fiber's words says whether coordinate c is there (papers/001, section 4.3).

    ``bits`` has the words of every fiber, ``pos`` the number of bits before every word.
    """

    letter = "b"
    title = "bitvector"
    array_names = ("bits", "pos")

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        words = words_of(extent)
        first = _firsts(parents, coordinates)
        bits = np.zeros(count * words, np.uint64)
        at = parents[first] * words + coordinates[first] // WORD
        mask = np.uint64(1) << (coordinates[first] % WORD).astype(np.uint64)
        np.bitwise_or.at(bits, at, mask)
        return Packed(
            arrays={"bits": bits, "pos": _segments(at, len(bits))},
            positions=np.cumsum(first) - 1,
            count=int(first.sum()),
        )

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        words = words_of(extent)
        table = np.unpackbits(
            arrays["bits"].reshape(-1, words).view(np.uint8), axis=1, bitorder="little"
        )
        owner, coordinates = np.nonzero(table[parents])
        starts = arrays["pos"][parents * words]
        sizes = np.bincount(owner, minlength=len(parents))
        positions, _ = ranges(starts, starts + sizes)
        return Unpacked(parents=owner, coordinates=coordinates, positions=positions)

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        return int(arrays["pos"][-1])

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        bits, words = arrays["bits"], count * words_of(extent)
        if bits.dtype != np.uint64 or len(bits) != words:
            return f"bits of {words} words of type uint64"
        ones = np.unpackbits(bits.view(np.uint8)).reshape(-1, WORD).sum(axis=1)
        before = np.concatenate([[0], np.cumsum(ones)])
        if not np.array_equal(arrays["pos"], before):
            return "pos of the number of bits before every word, and in all"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedList(Level):
    """``head`` of every fiber, then ``next`` from node to node: node n is n + 1, and 0 is none."""

    letter = "l"
    title = "linked list"
    array_names = ("head", "crd", "next")

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        first = _firsts(parents, coordinates)
        owner, stored = parents[first], coordinates[first]
        head = np.zeros(count, np.int64)
        begins = np.flatnonzero(_firsts(owner, np.zeros_like(owner)))
        head[owner[begins]] = begins + 1
        follow = np.arange(2, len(owner) + 2)
        follow[np.append(begins[1:], len(owner))[: len(begins)] - 1] = 0
        arrays = {"head": head, "crd": stored, "next": follow.astype(np.int64)}
        return Packed(arrays=arrays, positions=np.cumsum(first) - 1, count=len(stored))

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        positions: list[int] = []
        owner: list[int] = []
        for number, parent in enumerate(parents):
            node = int(arrays["head"][parent])
            while node > 0:
                positions.append(node - 1)
                owner.append(number)
                node = int(arrays["next"][node - 1])
        where = np.array(positions, np.int64)
        return Unpacked(
            parents=np.array(owner, np.int64), coordinates=arrays["crd"][where], positions=where
        )

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        head, following, nodes = arrays["head"], arrays["next"], len(arrays["crd"])
        if len(head) != count or len(following) != nodes:
            return f"head of {count} nodes, and next as long as crd"
        links = np.concatenate([head, following])
        if not np.array_equal(np.sort(links[links != 0]), np.arange(1, nodes + 1)):
            return f"each of the nodes 1 to {nodes} once, in head or in next"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BitTree(Level):
    """A bitvector of the words of a bitvector that are not zero (papers/001, section 4.3).

    ``top`` has the words over blocks of 64 coordinates, ``leaf`` a word for each block that has
    one; ``top_pos`` and ``leaf_pos`` the number of bits before every word.
    """

    letter = "t"
    title = "bit tree"
    array_names = ("top", "top_pos", "leaf", "leaf_pos")

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        upper = Bitvector().pack(parents, coordinates // WORD, count, -(-extent // WORD))
        lower = Bitvector().pack(upper.positions, coordinates % WORD, upper.count, WORD)
        arrays = {
            "top": upper.arrays["bits"],
            "top_pos": upper.arrays["pos"],
            "leaf": lower.arrays["bits"],
            "leaf_pos": lower.arrays["pos"],
        }
        return Packed(arrays=arrays, positions=lower.positions, count=lower.count)

    def unpack(self, arrays: Arrays, parents: Array, extent: int) -> Unpacked:
        top = {"bits": arrays["top"], "pos": arrays["top_pos"]}
        leaf = {"bits": arrays["leaf"], "pos": arrays["leaf_pos"]}
        upper = Bitvector().unpack(top, parents, -(-extent // WORD))
        lower = Bitvector().unpack(leaf, upper.positions, WORD)
        return Unpacked(
            parents=upper.parents[lower.parents],
            coordinates=upper.coordinates[lower.parents] * WORD + lower.coordinates,
            positions=lower.positions,
        )

    def positions(self, arrays: Arrays, count: int, extent: int) -> int:
        return int(arrays["leaf_pos"][-1])

    def requirement(self, arrays: Arrays, count: int, extent: int) -> str | None:
        top = {"bits": arrays["top"], "pos": arrays["top_pos"]}
        leaf = {"bits": arrays["leaf"], "pos": arrays["leaf_pos"]}
        wrong = Bitvector().requirement(top, count, -(-extent // WORD))
        if wrong is not None:
            return f"for top and top_pos, {wrong}"
        wrong = Bitvector().requirement(leaf, int(top["pos"][-1]), WORD)
        return None if wrong is None else f"for leaf and leaf_pos, {wrong}"


KINDS: tuple[Level, ...] = (
    Dense(),
    Compressed(),
    CompressedNonUnique(),
    Singleton(),
    SingletonNonUnique(),
    Bitvector(),
    BitTree(),
    LinkedList(),
)
"""Every level kind, in the order in which they are listed to users."""
