"""The writers of every kind of level, and what they leave to the end of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from t2s.core.types import UInt
from t2s.sparse_repr.levels import (
    WORD,
    Array,
    Arrays,
    BitTree,
    Bitvector,
    Compressed,
    CompressedNonUnique,
    Level,
    LinkedList,
    Singleton,
    words_of,
)
from t2s.sparse_repr.lowering.scans import ArrayOfLevel
from t2s.sparse_repr.streams import Stream, Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPorts:
    """What a writer takes; see ``WriteLevel``.  ``size`` is the extent of the level."""

    coordinate: Stream
    above: Stream | None
    size: int
    empty_fibers: bool


def write_level(
    streams: Streams, level: Level, array: ArrayOfLevel, ports: LevelPorts, name: str
) -> None:
    """The machines that write a level, which is not a dense one."""
    crd, kept = ports.coordinate, ports.empty_fibers
    match level:
        case CompressedNonUnique() | Singleton():
            streams.write_singleton(crd, array("crd"), name=name)
        case Compressed():
            pos, stored = array("pos"), array("crd")
            streams.write_compressed(crd, pos, stored, empty_fibers=kept, name=name)
        case Bitvector():
            size = words_of(ports.size) * WORD
            words, _ = streams.bits_of(
                crd, UInt(WORD), size, empty_fibers=kept, name=f"{name}_bits"
            )
            streams.write_bitvector(words, array("bits", words=True), array("pos"), name=name)
        case BitTree():
            top = array("top", words=True), array("top_pos")
            leaf = array("leaf", words=True), array("leaf_pos")
            streams.write_bit_tree(crd, ports.size, top, leaf, name, empty_fibers=kept)
        case LinkedList():
            above, fiber = ports.above, f"{name}_fiber"
            parents = streams.root() if above is None else streams.counted(above, name=fiber)
            arrays = [array(of) for of in ("head", "crd", "next", "tail")]
            streams.write_linked_list(crd, streams.repeat(crd, parents, fiber), arrays, name=name)
        case _:
            raise ValueError(f"no writer for a {level.title} level")


def level_arrays(level: Level, stored: Mapping[str, Array], count: int, extent: int) -> Arrays:
    """The arrays of a level below ``count`` positions, of what its writer has stored.

    That is their ends: the length of a list of coordinates, the number of all bits, and zeros for
    fibers that nothing was written to.
    """
    match level:
        case CompressedNonUnique():
            crd = stored["crd"]
            return {"pos": np.array([0, len(crd)], np.int64), "crd": crd}
        case Compressed():  # no fibers of a variable of extent 0
            return {"pos": stored["pos"][: count + 1], "crd": stored["crd"]}
        case Bitvector():
            bits, pos = _bits(stored, "bits", "pos", count * words_of(extent))
            return {"bits": bits, "pos": pos}
        case BitTree():
            blocks = count * words_of(-(-extent // WORD))
            top, top_pos = _bits(stored, "top", "top_pos", blocks)
            leaf, leaf_pos = _bits(stored, "leaf", "leaf_pos", int(top_pos[-1]))
            return {"top": top, "top_pos": top_pos, "leaf": leaf, "leaf_pos": leaf_pos}
        case LinkedList():
            head = np.zeros(count, np.int64)
            head[: len(stored["head"])] = stored["head"][:count]
            return {"head": head, "crd": stored["crd"], "next": stored["next"]}
    return dict(stored)


def _bits(stored: Mapping[str, Array], words: str, ranks: str, count: int) -> tuple[Array, Array]:
    """``count`` words of bits, and the number of bits before each and in all."""
    bits, before = stored[words][:count], stored[ranks][:count]
    total = int(before[-1]) + int(bits[-1]).bit_count() if len(bits) else 0
    missing = count - len(bits)
    bits = np.concatenate([bits, np.zeros(missing, bits.dtype)])
    return bits, np.concatenate([before, np.full(missing + 1, total, before.dtype)])
