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
    ROW,
    ROW_KEY,
    ROW_POINTS,
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
        self._find, self._drop, self._find_row = map(_FUNCTION, addresses())

    def add(self, key: tuple[int, ...], value: int) -> None:
        if 2 * self.block[SIZE] >= self.block[CAPACITY]:
            self.block = enlarged(self.block)
        self.block[PROBE : PROBE + self.words] = key
        entry = self._find(self.block.ctypes.data)
        where = abs(entry) + self.words
        self.block[where] = value if entry < 0 else self.block[where] + value

    def add_row(self, key: int, values: list[int]) -> bool:
        """Add consecutive points; whether they make a row with what is there."""
        while 2 * (self.block[SIZE] + len(values)) >= self.block[CAPACITY]:
            self.block = enlarged(self.block)
        self.block[PROBE : PROBE + 2] = key, len(values)
        where = self._find_row(self.block.ctypes.data)
        if not where:
            for number, value in enumerate(values):
                self.add((key + number,), value)
            return False
        old = int(self.block[PROBE + 1])
        self.block[where : where + old] += np.array(values[:old], np.int64)
        self.block[where + old : where + len(values)] = values[old:]
        return True

    def drop(self) -> tuple[tuple[int, ...], int]:
        if self.block[ROW_POINTS]:
            row = int(self.block[ROW_KEY]), int(self.block[int(self.block[ROW])])
            self._drop(self.block.ctypes.data)
            return (row[0],), row[1]
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


@sampled("seed", range(40), quick=4)
def test_rows(seed: int) -> None:
    """Consecutive points, at once or one by one, that overlap, go on, or leave gaps."""
    generator = np.random.default_rng(seed)
    memory, expected, rows = Memory(1, 16), dict[tuple[int, ...], int](), set[bool]()
    for _ in range(60):
        gaps = generator.random() < 0.3
        for _ in range(int(generator.integers(1, 5))):
            first = int(generator.integers(-20, 300) if gaps else generator.integers(0, 3))
            values = generator.integers(0, 9, int(generator.integers(1, 200))).tolist()
            if generator.random() < 0.5:
                rows.add(memory.add_row(first, values))
            else:
                for number, value in enumerate(values):
                    memory.add((first + number,), value)
            for number, value in enumerate(values):
                expected[first + number,] = expected.get((first + number,), 0) + value
        everything = generator.random() < 0.8
        for _ in range(len(expected) if everything else len(expected) // 2):
            assert memory.drop() == (min(expected), expected.pop(min(expected)))
        assert int(memory.block[SIZE]) == len(expected)
    assert rows == {False, True}
