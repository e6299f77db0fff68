"""Level kinds: the storage of the coordinates of one level of a tensor.

A new one is a class, with its tests, and its name in ``KINDS``.
"""

from t2s.sparse_repr.levels.bits import WORD, BitTree, Bitvector, words_of
from t2s.sparse_repr.levels.compressed import (
    Compressed,
    CompressedNonUnique,
    Singleton,
    SingletonNonUnique,
)
from t2s.sparse_repr.levels.level import (
    Array,
    Arrays,
    Dense,
    GraphLevel,
    Level,
    LevelStreams,
    Packed,
    PackingError,
    Unpacked,
    ranges,
)
from t2s.sparse_repr.levels.linked_list import LinkedList

__all__ = [
    "KINDS",
    "WORD",
    "Array",
    "Arrays",
    "BitTree",
    "Bitvector",
    "Compressed",
    "CompressedNonUnique",
    "Dense",
    "GraphLevel",
    "Level",
    "LevelStreams",
    "LinkedList",
    "Packed",
    "PackingError",
    "Singleton",
    "SingletonNonUnique",
    "Unpacked",
    "ranges",
    "words_of",
]

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
