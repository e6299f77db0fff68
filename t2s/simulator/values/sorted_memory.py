"""Sorted memories: points by key, of which the first one is removed.

While the keys lie close together, as in a row of a matrix, they are a *window*: a ring of slots for
values, in which a key has the slot of its remainder, and a byte for each slot that says whether
there is a point [a sparse accumulator: Gilbert, Moler and Schreiber 1992].  Adding a point takes
constant time; the next one is found by words of eight bytes, and groups of eight words without a
point are passed over.  Points without a gap are a *row*, whose values lie side by side.  Only keys
of one word have a window.

A key that does not fit turns the window into *entries*, a key and a value for each point, until the
memory is empty: a heap has the first one, each entry preceded by the first word of its key, and a
hash table with twice as many slots finds the others.  Adding a point and removing the first one
take logarithmic time in any order; combining into an existing point takes constant time.  Usually
many points are added and then all are removed.  So if many were added since, the first removal
sorts the heap: a sorted array is a heap, and stays one without its first entry.  The table is
invalid then, and rebuilt if another point is added.

All is in one block of 64-bit words.  The functions are compiled once and called by address from
generated code.
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
_FIND, _DROP, _FIND_ROW, _DROP_ROW, _REHASH = (
    CompiledKernel(
        module="t2s.simulator.values.sorted_memory",
        name=name,
        sources=_SOURCES,
        arguments=(Argument.WORDS,),
    )
    for name in ("find", "drop", "find_row", "drop_row", "rehash")
)


def addresses() -> tuple[int, int, int, int]:
    """The addresses of the functions that find and remove points, and find and remove rows."""
    return _FIND.address, _DROP.address, _FIND_ROW.address, _DROP_ROW.address


def enlarged(block: Array) -> Array:
    """A copy with four times the capacity."""
    capacity, key_words, words = (int(block[n]) for n in (CAPACITY, KEY_WORDS, ENTRY_WORDS))
    copy = new_block(4 * capacity, key_words, words - key_words)
    copy[SIZE] = block[SIZE]
    if block[SPAN] and block[SIZE]:
        _move_window(block, copy)
    elif block[SIZE]:
        size, heap, moved = int(block[SIZE]), int(block[HEAP]), int(copy[HEAP])
        entries = HEADER + (capacity + 1) * words
        copy[FREE], copy[SPAN] = block[FREE], 0
        copy[ADDED] = size if block[ADDED] == SORTED else block[ADDED]
        copy[HEADER:entries] = block[HEADER:entries]
        copy[moved : moved + 2 * size] = block[heap : heap + 2 * size]
        _REHASH(copy)
    return copy


def _move_window(block: Array, copy: Array) -> None:
    """Enter the points of a window into an empty one."""
    copy[[LOW, HIGH]] = block[[LOW, HIGH]]
    keys = np.arange(int(block[LOW]), int(block[HIGH]) + 1)
    from_slots, to_slots = keys & (block[SLOTS] - 1), keys & (copy[SLOTS] - 1)
    held = _bytes(block, PRESENT)[from_slots] > 0
    from_slots, to_slots = from_slots[held], to_slots[held]
    _bytes(copy, PRESENT)[to_slots] = 1
    _bytes(copy, GROUPS)[to_slots // GROUP] = 1
    words = int(block[ENTRY_WORDS]) - 1
    values, moved = (one[one[VALUES] :] for one in (block, copy))
    for word in range(words):
        moved[to_slots * words + word] = values[from_slots * words + word]


def _bytes(block: Array, start: int) -> Array:
    """The bytes from one of the positions on that the header has."""
    return block[block[start] :].view(np.uint8)


# The layout of a sorted memory: header, entries, heap, table, and the window.

SIZE, CAPACITY, KEY_WORDS, ENTRY_WORDS, FREE, HEAP, TABLE, ADDED = range(8)
"""Words of the header: points held and most points, words of a key and of an entry, the first free
entry (entries that were never used follow in order), where the heap and the table start, and the
points added since the heap was sorted, ``SORTED`` if there are none."""

SORTED = -1

PROBE = 8
"""The position of the probed key, at most 8 words."""

LOW, HIGH, SPAN, SLOTS, VALUES, PRESENT, GROUPS = range(16, 23)
"""Further words of the header, of the window: the first and the last key, which are ``HIGHEST`` and
``LOWEST`` if there is none; the keys that may lie between the two, 0 while there are entries; its
slots; and where the values start, the bytes of slots, and those of groups of slots, which are 0 if
no slot of the group has a point.  Behind the slots is another one, which always has a point: for
values that are added nowhere."""

HEADER = 23

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1

GROUP = 64
"""Slots of a group: a window spans so many less than there are slots, so that no group holds both
its first and its last points."""


def new_block(capacity: int, key_words: int, value_words: int) -> Array:
    """An empty memory for ``capacity`` points, a power of two."""
    words = key_words + value_words
    heap = HEADER + (capacity + 1) * words
    table = heap + 2 * capacity
    values = table + 2 * capacity
    slots = max(capacity, 2 * GROUP) if key_words == 1 else 0
    present = values + (slots + 1) * value_words
    groups = present + slots // 8 + 1
    block = aligned_zeros(8 * (groups + slots // GROUP // 8 + 1)).view(np.int64)
    block[[CAPACITY, KEY_WORDS, ENTRY_WORDS]] = capacity, key_words, words
    block[[FREE, HEAP, TABLE]] = HEADER, heap, table
    block[[SLOTS, VALUES, PRESENT, GROUPS]] = slots, values, present, groups
    block[[LOW, HIGH, SPAN]] = HIGHEST, LOWEST, max(0, slots - GROUP)
    _bytes(block, PRESENT)[slots] = 1
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


_ONES = 0x0101010101010101


@inlined
def _byte(block: Any, start: Word, number: Word) -> Word:
    """A byte."""
    return (block[start + (number >> 3)] >> (8 * (number & 7))) & 1


@inlined
def _set_byte(block: Any, start: Word, number: Word, value: Word) -> None:
    word, place = start + (number >> 3), 8 * (number & 7)
    block[word] = (block[word] & ~(1 << place)) | (value << place)


@inlined
def _set_bytes(block: Any, start: Word, first: Word, end: Word, value: Word) -> None:
    """Set the bytes from ``first`` on, before ``end``."""
    at = first
    while at < end:
        place, stop = at & 7, min(8, (at & 7) + end - at)
        some = (_ONES << (8 * place)) & (_ONES >> (8 * (8 - stop)))
        word = start + (at >> 3)
        block[word] = (block[word] & ~some) | (value * some)
        at += stop - place


@inlined
def _begin_window(block: Any) -> None:
    """Make an empty memory a window."""
    block[SPAN], block[LOW], block[HIGH] = max(0, block[SLOTS] - GROUP), HIGHEST, LOWEST


@inlined
def _reaches(block: Any, first: Word, last: Word) -> bool:
    """Extend the window to these keys; return whether they fit."""
    low, high = min(block[LOW], first), max(block[HIGH], last)
    if high - low < 0 or high - low >= block[SPAN]:
        return False
    block[LOW], block[HIGH] = low, high
    return True


@inlined
def _key_after(block: Any, key: Word) -> Word:
    """The first key behind this one in the window, which is not its last one."""
    key += 1
    while True:
        slot = key & (block[SLOTS] - 1)
        if slot & (GROUP - 1) == 0 and _byte(block, block[GROUPS], slot >> 6) == 0:
            key += GROUP
        else:
            word = block[block[PRESENT] + (slot >> 3)] >> (8 * (slot & 7))
            if word:
                lowest = word & -word
                return key + ((((lowest - 1) & _ONES) * _ONES) >> 56)
            key += 8 - (slot & 7)


@inlined
def _as_entries(block: Any) -> None:
    """Turn the window into entries."""
    probed, key, words, points = block[PROBE], block[LOW], block[ENTRY_WORDS] - 1, block[SIZE]
    block[SPAN], block[SIZE] = 0, 0
    if block[ADDED] == SORTED:
        _tabulate(block)
    for left in range(points, 0, -1):
        slot = key & (block[SLOTS] - 1)
        block[PROBE] = key
        entry, value = -_insert(block), block[VALUES] + slot * words
        for word in range(words):
            block[entry + 1 + word] = block[value + word]
        if left > 1:
            key = _key_after(block, key)
        _set_byte(block, block[PRESENT], slot, 0)
        _set_byte(block, block[GROUPS], slot >> 6, 0)
    block[PROBE] = probed


def find(block: Any) -> Word:
    """The position of the entry with the probed key; negated if it is new.

    In a window it is the word before the value.
    """
    if block[SPAN]:
        key = block[PROBE]
        if _reaches(block, key, key):
            slot = key & (block[SLOTS] - 1)
            position = block[VALUES] + slot * (block[ENTRY_WORDS] - 1) - 1
            if _byte(block, block[PRESENT], slot):
                return position
            _set_byte(block, block[PRESENT], slot, 1)
            _set_byte(block, block[GROUPS], slot >> 6, 1)
            block[SIZE] += 1
            return -position
        _as_entries(block)
    if block[ADDED] == SORTED:
        _tabulate(block)
    return _insert(block)


def find_row(block: Any) -> Word:
    """Where the values of consecutive points are, as many as the second probed word says.

    The first one has the probed key.  The second word becomes the number of points that are not
    new.  If the points do not make a row with all others, the result is 0.
    """
    key, count, size = block[PROBE], block[PROBE + 1], block[SIZE]
    slot, end = key & (block[SLOTS] - 1), block[HIGH] + 1
    if block[SPAN] == 0 or slot + count > block[SLOTS]:
        return 0
    if size == 0:
        end = key
    elif key < block[LOW] or key > end or size != end - block[LOW]:
        return 0
    if not _reaches(block, key, key + count - 1):
        return 0
    old = min(count, end - key)
    _set_bytes(block, block[PRESENT], slot + old, slot + count, 1)
    _set_bytes(block, block[GROUPS], (slot + old) >> 6, (slot + count + GROUP - 1) >> 6, 1)
    block[PROBE + 1] = old
    block[SIZE] = size + count - old
    return block[VALUES] + slot * (block[ENTRY_WORDS] - 1)


def drop_row(block: Any) -> Word:
    """Remove the first points of a row, as many as the probed word says."""
    count, low = block[PROBE], block[LOW]
    slot = low & (block[SLOTS] - 1)
    _set_bytes(block, block[PRESENT], slot, slot + count, 0)
    block[SIZE] -= count
    block[LOW] = low + count
    first, end = slot >> 6, (slot + count) >> 6
    if block[SIZE] == 0:
        end = (slot + count + GROUP - 1) >> 6
        _begin_window(block)
    _set_bytes(block, block[GROUPS], first, end, 0)
    return 0


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


@inlined
def _drop_from_window(block: Any, size: Word) -> None:
    """Remove the first point, after which there are ``size``."""
    low = block[LOW]
    slot = low & (block[SLOTS] - 1)
    _set_byte(block, block[PRESENT], slot, 0)
    block[SIZE] = size
    if size == 0:
        _set_byte(block, block[GROUPS], slot >> 6, 0)
        _begin_window(block)
    else:
        following = _key_after(block, low)
        if following >> 6 != low >> 6:
            _set_byte(block, block[GROUPS], slot >> 6, 0)
        block[LOW] = following


def drop(block: Any) -> Word:
    """Remove the first point, if there is one."""
    size = block[SIZE] - 1
    if size < 0:
        return 0
    if block[SPAN]:
        _drop_from_window(block, size)
        return 0
    if size == 0:
        _begin_window(block)
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
