"""Sorted memories: a hash table that finds a point, and a heap that knows the first one.

A memory is a block of 64-bit words: a header; the *entries*, one for each point, its key and its
value; a heap of entries, each after the first word of its key; a table of twice as many places,
hashed by key, of entries.  Adding a point and removing the first one take logarithmic time,
whatever the order of the two; combining into a point that is there takes constant time.

Mostly many points are added and then all removed.  So where many were added since, the first
removal sorts the heap, which it still is then, and is so without its first entry: the heap starts
one further on.  The table is of no use meanwhile, and made again if another point comes.

The functions are in ``point_functions``, compiled once, and called by address from generated
code.
"""

from __future__ import annotations

from pathlib import Path

from t2s.core.ops import Array
from t2s.simulator.emit.kernels import CompiledKernel
from t2s.simulator.emit.operands import Argument
from t2s.simulator.values.point_block import (
    ADDED,
    CAPACITY,
    ENTRY_WORDS,
    FREE,
    HEADER,
    HEAP,
    KEY_WORDS,
    SIZE,
    SORTED,
    new_block,
)

_SOURCES = tuple(Path(__file__).parent / name for name in ("point_functions.py", "point_block.py"))
_FIND, _DROP, _REHASH = (
    CompiledKernel(
        module="t2s.simulator.values.point_functions",
        name=name,
        sources=_SOURCES,
        arguments=(Argument.WORDS,),
    )
    for name in ("find", "drop", "rehash")
)


def addresses() -> tuple[int, int]:
    """The addresses of the compiled functions that find and remove points."""
    return _FIND.address, _DROP.address


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
    _REHASH(copy)
    return copy
