"""Sorted memories against a dictionary: points are added and removed in turns of any length."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from t2s.simulator.values.sorted_memory import (
    ADDED,
    CAPACITY,
    HEAP,
    PROBE,
    SIZE,
    SORTED,
    addresses,
    enlarged,
    new_block,
)
from tests.sampling import sampled

_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class Memory:
    """A block, with the functions that compiled code calls."""

    def __init__(self, words: int, capacity: int) -> None:
        self.words = words
        self.block = new_block(capacity, words, 1)
        self._find, self._drop = (_FUNCTION(address) for address in addresses())

    def add(self, key: tuple[int, ...], value: int) -> None:
        if 2 * self.block[SIZE] >= self.block[CAPACITY]:
            self.block = enlarged(self.block)
        self.block[PROBE : PROBE + self.words] = key
        entry = self._find(self.block.ctypes.data)
        where = abs(entry) + self.words
        self.block[where] = value if entry < 0 else self.block[where] + value

    def drop(self) -> tuple[tuple[int, ...], int]:
        entry = int(self.block[int(self.block[HEAP]) + 1])
        found = self.block[entry : entry + self.words + 1].tolist()
        self._drop(self.block.ctypes.data)
        return tuple(found[:-1]), found[-1]


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("capacity", [16, 1024])
@sampled("extent", [40, 300, 1 << 40], quick=1)
def test_turns_of_adding_and_removing(words: int, capacity: int, extent: int) -> None:
    generator = np.random.default_rng(extent + words)
    memory, expected, was_sorted = Memory(words, capacity), dict[tuple[int, ...], int](), False
    for _ in range(12):
        keys = generator.integers(-extent, extent, (int(generator.integers(1, 900)), words))
        for number, key in enumerate(map(tuple, keys.tolist())):
            memory.add(key, number)
            expected[key] = expected.get(key, 0) + number
        few = int(generator.integers(0, len(expected) + 1))
        for _ in range(int(generator.choice([few, 3, len(expected)]))):
            if not expected:
                break
            first = min(expected)
            assert memory.drop() == (first, expected.pop(first))
            was_sorted |= int(memory.block[ADDED]) == SORTED
        assert int(memory.block[SIZE]) == len(expected)
    few_points = (words, capacity, extent) == (1, 1024, 40)
    assert was_sorted != few_points
