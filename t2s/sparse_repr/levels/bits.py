"""Levels of bits: bitvectors, and trees of them [SAM, sec. 4.3]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2s.core.types import UInt
from t2s.sparse_repr.blocks.bitvectors import (
    BitvectorConverter,
    Words,
    coordinates_of,
    join_bits,
    scan_bit_tree,
    write_bit_tree,
)
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.scanners import BitvectorScanner, JoinStrategy
from t2s.sparse_repr.blocks.writers import BitvectorWriter
from t2s.sparse_repr.levels.level import (
    Array,
    Arrays,
    GraphLevel,
    JoinedSide,
    Level,
    LevelStreams,
    Packed,
    Unpacked,
    firsts,
    ranges,
    segments,
)

WORD = 64


def words_of(extent: int) -> int:
    """Words of a bitvector over coordinates below ``extent``."""
    return max(1, -(-extent // WORD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bitvector(Level):
    """Bit c of a fiber's words tells whether coordinate c is stored [SAM, sec. 4.3].

    ``bits`` has the words of every fiber, ``pos`` the number of bits before every word.
    """

    letter = "b"
    title = "bitvector"
    array_names = ("bits", "pos")
    scanned = True
    together = JoinStrategy.WORDS

    def pack(self, parents: Array, coordinates: Array, count: int, extent: int) -> Packed:
        words = words_of(extent)
        first = firsts(parents, coordinates)
        bits = np.zeros(count * words, np.uint64)
        at = parents[first] * words + coordinates[first] // WORD
        mask = np.uint64(1) << (coordinates[first] % WORD).astype(np.uint64)
        np.bitwise_or.at(bits, at, mask)
        return Packed(
            arrays={"bits": bits, "pos": segments(at, len(bits))},
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

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        words = self._scan_words(level, reference, name)
        return coordinates_of(level.to, *words, f"{name}_bits")

    def join(
        self, to: Connections, kind: BlockKind, sides: Sequence[JoinedSide], name: str
    ) -> tuple[Stream, tuple[Stream, ...]]:
        for level, _, _ in sides:
            level.array("bits", words=True), level.array("pos")
        words = [self._scan_words(*side) for side in sides]
        _, coordinate, references = join_bits(to, kind, words, name)
        return coordinate, references

    def _scan_words(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        block = BitvectorScanner(
            words=level.array("bits", words=True),
            ranks=level.array("pos"),
            words_per_fiber=words_of(level.extent),
        )
        return level.to.pair(block, name, reference)

    def has_writer(self, dropping: int) -> bool:
        return True

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        converter = BitvectorConverter(
            word=UInt(WORD),
            size=words_of(level.extent) * WORD,
            empty_fibers=given.empty_fibers,
            rank=level.to.index,
        )
        words, _ = level.to.pair(converter, f"{name}_bits", given.coordinate)
        arrays = level.array("bits", words=True), level.array("pos")
        level.to.put(BitvectorWriter(words=arrays[0], ranks=arrays[1]), name, words)

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        bits, pos = _all_bits(stored, "bits", "pos", count * words_of(extent))
        return {"bits": bits, "pos": pos}


@dataclass(frozen=True, slots=True, kw_only=True)
class BitTree(Level):
    """A bitvector of the words of a bitvector that are not zero [SAM, sec. 4.3].

    ``top`` has the words over blocks of 64 coordinates, ``leaf`` a word for each block that has
    one; ``top_pos`` and ``leaf_pos`` the number of bits before every word.
    """

    letter = "t"
    title = "bit tree"
    array_names = ("top", "top_pos", "leaf", "leaf_pos")
    scanned = True

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

    def scan(self, level: GraphLevel, reference: Stream, name: str) -> tuple[Stream, Stream]:
        blocks = words_of(-(-level.extent // WORD))
        return scan_bit_tree(level.to, reference, *_words(level), blocks, name)

    def has_writer(self, dropping: int) -> bool:
        return True

    def write(self, level: GraphLevel, given: LevelStreams, name: str) -> None:
        top, leaves = _words(level)
        to, size = level.to, level.extent
        write_bit_tree(
            to, given.coordinate, size, top, leaves, name, empty_fibers=given.empty_fibers
        )

    def written(self, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
        blocks = count * words_of(-(-extent // WORD))
        top, top_pos = _all_bits(stored, "top", "top_pos", blocks)
        leaf, leaf_pos = _all_bits(stored, "leaf", "leaf_pos", int(top_pos[-1]))
        return {"top": top, "top_pos": top_pos, "leaf": leaf, "leaf_pos": leaf_pos}


def _words(level: GraphLevel) -> tuple[Words, Words]:
    """Words and ranks of the top, and of the leaves."""
    top = level.array("top", words=True), level.array("top_pos")
    return top, (level.array("leaf", words=True), level.array("leaf_pos"))


def _all_bits(
    stored: Mapping[str, Array], words: str, ranks: str, count: int
) -> tuple[Array, Array]:
    """``count`` words of bits, and the number of bits before each and in all."""
    bits, before = stored[words][:count], stored[ranks][:count]
    total = int(before[-1]) + int(bits[-1]).bit_count() if len(bits) else 0
    missing = count - len(bits)
    bits = np.concatenate([bits, np.zeros(missing, bits.dtype)])
    return bits, np.concatenate([before, np.full(missing + 1, total, before.dtype)])
