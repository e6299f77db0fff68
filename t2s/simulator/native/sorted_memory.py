"""Sorted memories: a hash table that finds a point, and a heap that knows the first one.

A memory is a block of 64-bit words: a header; the *entries*, one for each point, its key and its
value; a heap of entries; a table of twice as many places, hashed by key, of entries.  Adding a
point and removing the first one take logarithmic time, whatever the order of the two, and combining
into a point that is there takes constant time.

The functions are compiled once (numba, cached on disk) and called by address from generated code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import numba
import numpy as np

from t2s.core.ops import Array
from t2s.simulator.native.layout import aligned_zeros

SIZE, CAPACITY, KEY_WORDS, ENTRY_WORDS, FREE, HEAP, TABLE = range(7)
"""Words of the header: points held and most points, words of a key and of an entry, the first free
entry (entries that were never used follow in order), and where the heap and the table start."""

PROBE = 8
"""The word where the key looked for is put, at most 8 words."""

HEADER = 16

Word = Any  # a 64-bit integer inside compiled code
F = TypeVar("F", bound=Callable[..., Any])
_njit: Callable[[F], F] = cast(Any, numba.njit(cache=True, nogil=True, forceinline=True))
_callable: Callable[[F], F] = cast(Any, numba.cfunc("int64(CPointer(int64))", cache=True))
_compiled: Callable[[F], F] = cast(Any, numba.njit(cache=True, nogil=True))


@_njit
def _before(block: Any, left: Word, right: Word) -> bool:
    """Whether the key at one position comes before the key at another."""
    for word in range(block[KEY_WORDS]):
        if block[left + word] != block[right + word]:
            return bool(block[left + word] < block[right + word])
    return False


@_njit
def _place(block: Any, key: Word) -> Word:
    """The place in the table of the entry with the key at ``key``, or of the gap it belongs in."""
    mask = 2 * block[CAPACITY] - 1
    mixed = block[key]
    for word in range(1, block[KEY_WORDS]):
        mixed = mixed * 31 + block[key + word]
    mixed = mixed * 0x1E3779B97F4A7C15
    at = (mixed ^ (mixed >> 32)) & mask
    table = block[TABLE]
    while True:
        entry = block[table + at]
        if entry == 0:
            return at
        same = True
        for word in range(block[KEY_WORDS]):
            same = same and block[entry + word] == block[key + word]
        if same:
            return at
        at = (at + 1) & mask


@_callable
def _find(block: Any) -> Word:
    """The position of the entry with the probed key; the negative of it if it is a new one."""
    at = _place(block, PROBE)
    entry = block[block[TABLE] + at]
    if entry:
        return entry
    size, words = block[SIZE], block[ENTRY_WORDS]
    entry = block[FREE]
    following = block[entry]
    block[FREE] = following if following else entry + words
    for word in range(block[KEY_WORDS]):
        block[entry + word] = block[PROBE + word]
    block[block[TABLE] + at] = entry
    heap, hole = block[HEAP], size
    while hole > 0:
        parent = (hole - 1) >> 1
        if not _before(block, entry, block[heap + parent]):
            break
        block[heap + hole] = block[heap + parent]
        hole = parent
    block[heap + hole] = entry
    block[SIZE] = size + 1
    return -entry


@_njit
def _erase(block: Any, key: Word) -> None:
    """Take the entry with this key out of the table; later ones of its run move up."""
    mask = 2 * block[CAPACITY] - 1
    table = block[TABLE]
    gap = _place(block, key)
    block[table + gap] = 0
    at = (gap + 1) & mask
    while block[table + at]:
        entry = block[table + at]
        block[table + at] = 0
        block[table + _place(block, entry)] = entry
        at = (at + 1) & mask


@_callable
def _drop(block: Any) -> Word:
    """Remove the first point, if there is one."""
    size = block[SIZE] - 1
    if size < 0:
        return 0
    heap = block[HEAP]
    first, last = block[heap], block[heap + size]
    _erase(block, first)
    block[SIZE] = size
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and _before(block, block[heap + child + 1], block[heap + child]):
            child += 1
        if not _before(block, block[heap + child], last):
            break
        block[heap + hole] = block[heap + child]
        hole = child
    block[heap + hole] = last
    for word in range(block[ENTRY_WORDS]):
        block[first + word] = 0
    block[first] = block[FREE]
    block[FREE] = first
    return 0


@lru_cache(maxsize=1)
def addresses() -> tuple[int, int]:
    """The compiled ``find`` and ``drop``."""
    found, dropped = cast(Any, _find), cast(Any, _drop)
    return int(found.address), int(dropped.address)


def new_block(capacity: int, key_words: int, value_words: int) -> Array:
    """An empty memory for ``capacity`` points, a power of two."""
    words = key_words + value_words
    heap = HEADER + (capacity + 1) * words
    table = heap + capacity
    block = aligned_zeros(8 * (table + 2 * capacity)).view(np.int64)
    block[[CAPACITY, KEY_WORDS, ENTRY_WORDS]] = capacity, key_words, words
    block[[FREE, HEAP, TABLE]] = HEADER, heap, table
    return block


def enlarged(block: Array) -> Array:
    """A copy with four times the capacity."""
    capacity, key_words, words = (int(block[n]) for n in (CAPACITY, KEY_WORDS, ENTRY_WORDS))
    copy = new_block(4 * capacity, key_words, words - key_words)
    size, heap, moved = int(block[SIZE]), int(block[HEAP]), int(copy[HEAP])
    entries = HEADER + (capacity + 1) * words
    copy[SIZE], copy[FREE] = size, block[FREE]
    copy[HEADER:entries] = block[HEADER:entries]
    copy[moved : moved + size] = block[heap : heap + size]
    _rehash(copy, size)
    return copy


@_compiled
def _rehash(block: Any, size: int) -> None:
    for position in range(size):
        entry = block[block[HEAP] + position]
        block[block[TABLE] + _place(block, entry)] = entry
