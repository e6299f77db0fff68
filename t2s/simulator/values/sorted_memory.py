"""Sorted memories: a hash table to find a point, and a heap for the first one.

A memory is a block of 64-bit words: a header; the *entries*, a key and a value for each point; a
heap of entries, each preceded by the first word of its key; and a hash table of entries with twice
as many slots.  Adding a point and removing the first one take logarithmic time in any order;
combining into an existing point takes constant time.

Usually many points are added and then all are removed.  So if many were added since, the first
removal sorts the heap: a sorted array is a heap, and stays one without its first entry.  The table
is invalid then, and rebuilt if another point is added.

While the points are consecutive, as in a sum of dense rows, they are a *row* instead: the first
key, and the values side by side.  Adding a point elsewhere turns a row into entries.  Only keys of
one word make rows.

The functions are compiled once and called by address from generated code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from t2s.core.ops import Array
from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument, inlined
from t2s.simulator.values.layout import aligned_zeros

_SOURCES = (Path(__file__),)
_FIND, _DROP, _FIND_ROW, _REHASH = (
    CompiledKernel(
        module="t2s.simulator.values.sorted_memory",
        name=name,
        sources=_SOURCES,
        arguments=(Argument.WORDS,),
    )
    for name in ("find", "drop", "find_row", "rehash")
)


def addresses() -> tuple[int, int, int]:
    """The addresses of the compiled functions that find and remove points, and find rows."""
    return _FIND.address, _DROP.address, _FIND_ROW.address


def enlarged(block: Array) -> Array:
    """A copy with four times the capacity."""
    capacity, key_words, words = (int(block[n]) for n in (CAPACITY, KEY_WORDS, ENTRY_WORDS))
    copy = new_block(4 * capacity, key_words, words - key_words)
    size, heap, moved = int(block[SIZE]), int(block[HEAP]), int(copy[HEAP])
    entries = HEADER + (capacity + 1) * words
    copy[SIZE], copy[FREE] = size, block[FREE]
    copy[ADDED] = size if block[ADDED] == SORTED else block[ADDED]
    copy[HEADER:entries] = block[HEADER:entries]
    if block[ROW_POINTS]:
        row, values = int(block[ROW]), size * (words - key_words)
        copy[[ROW_POINTS, ROW_KEY, ADDED]] = size, block[ROW_KEY], 0
        copy[copy[ROW] : copy[ROW] + values] = block[row : row + values]
        return copy
    copy[moved : moved + 2 * size] = block[heap : heap + 2 * size]
    _REHASH(copy)
    return copy


# The layout of a sorted memory: header, entries, heap, table and the values of a row.

SIZE, CAPACITY, KEY_WORDS, ENTRY_WORDS, FREE, HEAP, TABLE, ADDED = range(8)
"""Words of the header: points held and most points, words of a key and of an entry, the first free
entry (entries that were never used follow in order), where the heap and the table start, and the
points added since the heap was sorted, ``SORTED`` if there are none."""

SORTED = -1

PROBE = 8
"""The position of the probed key, at most 8 words."""

ROW_POINTS, ROW_KEY, ROW = 16, 17, 18
"""Further words of the header: points of the row, or 0, its first key, and where its values are."""

HEADER = 19


def new_block(capacity: int, key_words: int, value_words: int) -> Array:
    """An empty memory for ``capacity`` points, a power of two."""
    words = key_words + value_words
    heap = HEADER + (capacity + 1) * words
    table = heap + 2 * capacity
    row = table + 2 * capacity
    size = row + capacity * value_words if key_words == 1 else row
    block = aligned_zeros(8 * size).view(np.int64)
    block[[CAPACITY, KEY_WORDS, ENTRY_WORDS]] = capacity, key_words, words
    block[[FREE, HEAP, TABLE, ROW]] = HEADER, heap, table, row
    return block


def emptied(block: Array) -> Array:
    """An empty memory of the same capacity."""
    capacity, key_words, words = (int(block[n]) for n in (CAPACITY, KEY_WORDS, ENTRY_WORDS))
    return new_block(capacity, key_words, words - key_words)


# The functions of sorted memories, in the subset that compiles.

_BUCKETS = 256
FACTOR = 0x1E3779B97F4A7C15
"""A large odd factor, which spreads neighboring keys over the table."""

_MANY = 32
"""Fewer points are not worth sorting."""

Word = Any  # a 64-bit integer inside compiled code


@inlined
def _before(block: Any, left_key: Word, left: Word, right_key: Word, right: Word) -> bool:
    """Whether one entry comes before another; the first words of their keys come with them."""
    if left_key != right_key:
        return bool(left_key < right_key)
    for word in range(1, block[KEY_WORDS]):
        if block[left + word] != block[right + word]:
            return bool(block[left + word] < block[right + word])
    return False


@inlined
def _place(block: Any, key: Word) -> Word:
    """The table slot of the entry with the key at ``key``, or the empty slot for it."""
    mask = 2 * block[CAPACITY] - 1
    mixed = block[key] * FACTOR
    for word in range(1, block[KEY_WORDS]):
        mixed = ((mixed ^ (mixed >> 32)) + block[key + word]) * FACTOR
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


@inlined
def _tabulate(block: Any) -> None:
    """Move the heap back to its start, and rebuild the table from it."""
    size, table, capacity = block[SIZE], block[TABLE], block[CAPACITY]
    start, heap = table - 2 * capacity, block[HEAP]
    for word in range(2 * size):
        block[start + word] = block[heap + word]
    block[HEAP] = start
    for word in range(2 * capacity):
        block[table + word] = 0
    for position in range(size):
        entry = block[start + 2 * position + 1]
        block[table + _place(block, entry)] = entry
    block[ADDED] = 0


@inlined
def _digit(block: Any, at: Word, word: Word, byte: Word) -> Word:
    """A byte of the key of a heap entry; words are signed."""
    key = block[at] if word == 0 else block[block[at + 1] + word]
    return ((key >> (8 * byte)) & (_BUCKETS - 1)) ^ (0x80 if byte == 7 else 0)


@inlined
def _sort(block: Any, size: Word) -> None:
    """Radix sort the heap, least significant differing byte first, with the table as buffer."""
    heap, table = block[HEAP], block[TABLE]
    counts = table + 2 * size
    source, target = heap, table
    for word in range(block[KEY_WORDS] - 1, -1, -1):
        differ, first = 0, block[block[heap + 1] + word]
        for place in range(size):
            differ |= block[block[source + 2 * place + 1] + word] ^ first
        for byte in range(8):
            if (differ >> (8 * byte)) & (_BUCKETS - 1) == 0:
                continue
            for bucket in range(_BUCKETS):
                block[counts + bucket] = 0
            for place in range(size):
                block[counts + _digit(block, source + 2 * place, word, byte)] += 1
            total = 0
            for bucket in range(_BUCKETS):
                count = block[counts + bucket]
                block[counts + bucket] = total
                total += count
            for place in range(size):
                at = source + 2 * place
                bucket = counts + _digit(block, at, word, byte)
                to = target + 2 * block[bucket]
                block[bucket] += 1
                block[to], block[to + 1] = block[at], block[at + 1]
            source, target = target, source
    if source != heap:
        for place in range(2 * size):
            block[heap + place] = block[source + place]


@inlined
def _is_worth_sorting(block: Any, size: Word) -> bool:
    """Whether enough points were added, and the table is large enough as a buffer."""
    room = 2 * size + _BUCKETS <= 2 * block[CAPACITY]
    return bool(room and size >= _MANY and 4 * block[ADDED] >= size and 8 * size >= block[CAPACITY])


@inlined
def _insert(block: Any) -> Word:
    """The position of the entry with the probed key; negated if it is new."""
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
    heap, hole, key = block[HEAP], size, block[PROBE]
    while hole > 0:
        parent = (hole - 1) >> 1
        above = heap + 2 * parent
        if not _before(block, key, entry, block[above], block[above + 1]):
            break
        block[heap + 2 * hole] = block[above]
        block[heap + 2 * hole + 1] = block[above + 1]
        hole = parent
    block[heap + 2 * hole] = key
    block[heap + 2 * hole + 1] = entry
    block[SIZE] = size + 1
    block[ADDED] += 1
    return -entry


@inlined
def _row_place(block: Any, key: Word, count: Word) -> Word:
    """Where the values of consecutive keys from ``key`` on are in the row, which grows; or 0."""
    words = block[ENTRY_WORDS] - 1
    if block[SIZE] == 0:
        block[ROW] = block[TABLE] + 2 * block[CAPACITY]
        block[ROW_KEY] = key
    elif block[ROW_POINTS] == 0:
        return 0
    distance = key - block[ROW_KEY]
    if distance < 0 or distance > block[ROW_POINTS]:
        return 0
    place = block[ROW] + distance * words
    if place + count * words > block[TABLE] + 2 * block[CAPACITY] + block[CAPACITY] * words:
        return 0
    block[ROW_POINTS] = max(block[ROW_POINTS], distance + count)
    block[SIZE] = block[ROW_POINTS]
    return place


@inlined
def _as_entries(block: Any) -> None:
    """Turn the row into entries."""
    key, words = block[PROBE], block[ENTRY_WORDS] - 1
    count, block[ROW_POINTS], block[SIZE] = block[ROW_POINTS], 0, 0
    if block[ADDED] == SORTED:
        _tabulate(block)
    for number in range(count):
        block[PROBE] = block[ROW_KEY] + number
        entry = -_insert(block)
        for word in range(words):
            block[entry + 1 + word] = block[block[ROW] + number * words + word]
    block[PROBE] = key


def find(block: Any) -> Word:
    """The position of the entry with the probed key; negated if it is new.

    In a row it is the word before the value.
    """
    if block[KEY_WORDS] == 1 and (block[SIZE] == 0 or block[ROW_POINTS]):
        points = block[ROW_POINTS]
        place = _row_place(block, block[PROBE], 1)
        if place:
            return 1 - place if block[ROW_POINTS] > points else place - 1
        _as_entries(block)
    if block[ADDED] == SORTED:
        _tabulate(block)
    return _insert(block)


def find_row(block: Any) -> Word:
    """Where the values of consecutive points are, as many as the second probed word says.

    The first one has the probed key.  The second word becomes the number of points that are not
    new.  If the points do not make a row, the result is 0.
    """
    count, points = block[PROBE + 1], block[ROW_POINTS]
    place = _row_place(block, block[PROBE], count)
    if place:
        block[PROBE + 1] = min(count, points - (block[PROBE] - block[ROW_KEY]))
    return place


@inlined
def _erase(block: Any, key: Word) -> None:
    """Remove the entry with this key from the table; later entries of its cluster move up."""
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


@inlined
def _release(block: Any, entry: Word) -> None:
    """Free an entry."""
    for word in range(block[ENTRY_WORDS]):
        block[entry + word] = 0
    block[entry] = block[FREE]
    block[FREE] = entry


def drop(block: Any) -> Word:
    """Remove the first point, if there is one."""
    size = block[SIZE] - 1
    if size < 0:
        return 0
    if block[ROW_POINTS]:
        block[ROW_POINTS], block[SIZE] = size, size
        block[ROW_KEY] += 1
        block[ROW] += block[ENTRY_WORDS] - 1
        return 0
    if block[ADDED] != SORTED and _is_worth_sorting(block, size + 1):
        _sort(block, size + 1)
        block[ADDED] = SORTED
    heap = block[HEAP]
    if block[ADDED] == SORTED:
        _release(block, block[heap + 1])
        block[HEAP], block[SIZE] = heap + 2, size
        return 0
    first, key, last = block[heap + 1], block[heap + 2 * size], block[heap + 2 * size + 1]
    _erase(block, first)
    block[SIZE] = size
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        at = heap + 2 * child
        if child + 1 < size and _before(
            block, block[at + 2], block[at + 3], block[at], block[at + 1]
        ):
            child, at = child + 1, at + 2
        if not _before(block, block[at], block[at + 1], key, last):
            break
        block[heap + 2 * hole] = block[at]
        block[heap + 2 * hole + 1] = block[at + 1]
        hole = child
    block[heap + 2 * hole] = key
    block[heap + 2 * hole + 1] = last
    _release(block, first)
    return 0


def rehash(block: Any) -> Word:
    """Enter all points of a memory into its empty table."""
    for position in range(block[SIZE]):
        entry = block[block[HEAP] + 2 * position + 1]
        block[block[TABLE] + _place(block, entry)] = entry
    return 0
