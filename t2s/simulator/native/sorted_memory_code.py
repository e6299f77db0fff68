"""The functions of sorted memories (``sorted_memory``), compiled once by numba and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

import numba

from t2s.simulator.native.sorted_memory import (
    CAPACITY,
    ENTRY_WORDS,
    FREE,
    HEAP,
    KEY_WORDS,
    PROBE,
    SIZE,
    TABLE,
)

Word = Any  # a 64-bit integer inside compiled code
F = TypeVar("F", bound=Callable[..., Any])
_njit: Callable[[F], F] = cast(Any, numba.njit(cache=True, nogil=True, forceinline=True))
_callable: Callable[[F], F] = cast(Any, numba.cfunc("int64(CPointer(int64))", cache=True))
_compiled: Callable[[F], F] = cast(Any, numba.njit(cache=True, nogil=True))


@_njit
def _before(block: Any, left_key: Word, left: Word, right_key: Word, right: Word) -> bool:
    """Whether one entry comes before another; the first words of their keys come with them."""
    if left_key != right_key:
        return bool(left_key < right_key)
    for word in range(1, block[KEY_WORDS]):
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
    for word in range(block[ENTRY_WORDS]):
        block[first + word] = 0
    block[first] = block[FREE]
    block[FREE] = first
    return 0


@_compiled
def rehash(block: Any, size: int) -> None:
    for position in range(size):
        entry = block[block[HEAP] + 2 * position + 1]
        block[block[TABLE] + _place(block, entry)] = entry


@lru_cache(maxsize=1)
def addresses() -> tuple[int, int]:
    """The compiled ``find`` and ``drop``."""
    found, dropped = cast(Any, _find), cast(Any, _drop)
    return int(found.address), int(dropped.address)
