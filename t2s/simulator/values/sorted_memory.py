"""Sorted memories: a hash table that finds a point, and a heap that knows the first one.

A memory is a block of 64-bit words: a header; the *entries*, one for each point, its key and its
value; a heap of entries, each after the first word of its key; a table of twice as many places,
hashed by key, of entries.  Adding a point and removing the first one take logarithmic time,
whatever the order of the two; combining into a point that is there takes constant time.

Mostly many points are added and then all removed.  So where many were added since, the first
removal sorts the heap, which it still is then, and is so without its first entry: the heap starts
one further on.  The table is of no use meanwhile, and made again if another point comes.

The functions are in ``sorted_memory_code``, compiled once, and called by address from generated
code.
"""

from __future__ import annotations

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.emit.kernels import Callback
from t2s.simulator.values.layout import address_of, aligned_zeros

SIZE, CAPACITY, KEY_WORDS, ENTRY_WORDS, FREE, HEAP, TABLE, ADDED = range(8)
"""Words of the header: points held and most points, words of a key and of an entry, the first free
entry (entries that were never used follow in order), where the heap and the table start, and the
points added since the heap was sorted, ``SORTED`` if there are none."""

SORTED = -1

PROBE = 8
"""The word where the key looked for is put, at most 8 words."""

HEADER = 16

_CODE = "t2s.simulator.values.point_functions"
_FIND, _DROP, _REHASH = (
    Callback(module=_CODE, name=name, sources=(_CODE, __name__))
    for name in ("find", "drop", "rehash")
)


def addresses() -> tuple[int, int]:
    """The addresses of the compiled functions that find and remove points."""
    return _FIND.address, _DROP.address


def new_block(capacity: int, key_words: int, value_words: int) -> Array:
    """An empty memory for ``capacity`` points, a power of two."""
    words = key_words + value_words
    heap = HEADER + (capacity + 1) * words
    table = heap + 2 * capacity
    block = aligned_zeros(8 * (table + 2 * capacity)).view(np.int64)
    block[[CAPACITY, KEY_WORDS, ENTRY_WORDS]] = capacity, key_words, words
    block[[FREE, HEAP, TABLE]] = HEADER, heap, table
    return block


def emptied(block: Array) -> Array:
    """An empty memory of the same capacity."""
    capacity, key_words, words = (int(block[n]) for n in (CAPACITY, KEY_WORDS, ENTRY_WORDS))
    return new_block(capacity, key_words, words - key_words)


def enlarged(block: Array) -> Array:
    """A copy with four times the capacity."""
    capacity, key_words, words = (int(block[n]) for n in (CAPACITY, KEY_WORDS, ENTRY_WORDS))
    copy = new_block(4 * capacity, key_words, words - key_words)
    size, heap, moved = int(block[SIZE]), int(block[HEAP]), int(copy[HEAP])
    entries = HEADER + (capacity + 1) * words
    copy[SIZE], copy[FREE] = size, block[FREE]
    copy[ADDED] = size if block[ADDED] == SORTED else block[ADDED]
    copy[HEADER:entries] = block[HEADER:entries]
    copy[moved : moved + 2 * size] = block[heap : heap + 2 * size]
    _REHASH(address_of(copy))
    return copy
