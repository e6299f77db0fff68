"""The scanners of level kinds that are rare."""

from __future__ import annotations

from typing import Protocol

from t2s.graph.graph import Tensor
from t2s.sparse_repr.levels import (
    WORD,
    BitTree,
    Bitvector,
    Level,
    LinkedList,
    Singleton,
    words_of,
)
from t2s.sparse_repr.streams import Stream, Streams


class ArrayOfLevel(Protocol):
    """The array of the level with a name; ``words``: it holds words of bits."""

    def __call__(self, of: str, words: bool = False) -> Tensor: ...


def scan_rare(
    streams: Streams, level: Level, array: ArrayOfLevel, size: int, port: Stream, name: str
) -> tuple[Stream, Stream]:
    """Coordinates below ``size`` and references of a level that is neither dense nor compressed."""
    match level:
        case Singleton():
            return streams.scan_singleton(port, array("crd"), name=name)
        case LinkedList():
            arrays = array("head"), array("crd"), array("next")
            return streams.scan_linked_list(port, *arrays, name=name)
        case Bitvector():
            words, ranks = array("bits", words=True), array("pos")
            made = streams.scan_bitvector(port, words, ranks, words_of(size), name=name)
            return streams.coordinates_of(*made, name=f"{name}_bits")
        case BitTree():
            top = array("top", words=True), array("top_pos")
            leaf = array("leaf", words=True), array("leaf_pos")
            blocks = words_of(-(-size // WORD))
            return streams.scan_bit_tree(port, top, leaf, blocks, name=name)
        case _:
            raise ValueError(f"no scanner for a {level.title} level")
