"""The words of a sorted memory: where its header, its entries, its heap and its table are."""

from __future__ import annotations

import numpy as np

from t2s.core.ops import Array
from t2s.simulator.values.layout import aligned_zeros

SIZE, CAPACITY, KEY_WORDS, ENTRY_WORDS, FREE, HEAP, TABLE, ADDED = range(8)
"""Words of the header: points held and most points, words of a key and of an entry, the first free
entry (entries that were never used follow in order), where the heap and the table start, and the
points added since the heap was sorted, ``SORTED`` if there are none."""

SORTED = -1

PROBE = 8
"""The word where the key looked for is put, at most 8 words."""

HEADER = 16


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
