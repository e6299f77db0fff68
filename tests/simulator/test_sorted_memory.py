"""Sorted memories against a dictionary: points are added and removed in turns of any length."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from t2s.simulator.values.sorted_memory import (
    ADDED,
    CAPACITY,
    GROUP,
    HEAP,
    HIGH,
    LOW,
    PROBE,
    SIZE,
    SLOTS,
    SORTED,
    SPAN,
    VALUES,
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
        self._find, self._drop, self._find_row, self._drop_row = map(_FUNCTION, addresses())

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

    @property
    def is_window(self) -> bool:
        return bool(self.block[SPAN])

    def first(self) -> tuple[tuple[int, ...], int]:
        """The first point, as emitted code finds it."""
        if self.is_window:
            low = int(self.block[LOW])
            slot = low % int(self.block[SLOTS])
            return (low,), int(self.block[int(self.block[VALUES]) + slot])
        entry = int(self.block[int(self.block[HEAP]) + 1])
        found = self.block[entry : entry + self.words + 1].tolist()
        return tuple(found[:-1]), found[-1]

    def drop(self) -> tuple[tuple[int, ...], int]:
        first = self.first()
        self._drop(self.block.ctypes.data)
        return first

    def row(self) -> list[tuple[tuple[int, ...], int]]:
        """The points at the beginning that are a row, if all are consecutive."""
        size, low = int(self.block[SIZE]), int(self.block[LOW])
        if not self.is_window or size != int(self.block[HIGH]) - low + 1:
            return []
        slot, values = low % int(self.block[SLOTS]), int(self.block[VALUES])
        count = min(size, int(self.block[SLOTS]) - slot)
        found = self.block[values + slot : values + slot + count].tolist()
        return [((low + n,), value) for n, value in enumerate(found)]

    def drop_row(self, count: int) -> None:
        self.block[PROBE] = count
        self._drop_row(self.block.ctypes.data)


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
    assert was_sorted != (words == 1 and 2 * extent < capacity)  # which is a window


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
        left = 0 if everything else len(expected) // 2
        while len(expected) > left:
            row = memory.row()[: len(expected) - left]
            if row and generator.random() < 0.5:
                some = row[: int(generator.integers(1, len(row) + 1))]
                memory.drop_row(len(some))
                removed = [(point, expected.pop(point)) for point in sorted(expected)[: len(some)]]
                assert some == removed
            else:
                first_point = min(expected)
                assert memory.drop() == (first_point, expected.pop(first_point))
        assert int(memory.block[SIZE]) == len(expected)
    assert rows == {False, True}


@pytest.mark.parametrize(
    ("keys", "fit"),
    [
        ([5], True),
        ([-3, -1, -2, 4, 0], True),
        ([1000, 1000 + 128 - GROUP - 1], True),  # a window of 128 slots
        ([1000, 1000 + 128 - GROUP], False),
        ([130, 120, 127, 128], True),  # around the end of the ring
        ([0, 3 * GROUP], False),
        ([(1 << 63) - 1, (1 << 63) - 2], True),
        ([-(1 << 63), (1 << 63) - 1], False),
        ([7, 1 << 40, 8, -(1 << 40)], False),
    ],
)
def test_keys_that_lie_close_together_are_a_window(keys: list[int], fit: bool) -> None:
    memory = Memory(1, 16)
    for number, key in enumerate(keys):
        memory.add((key,), number)
    assert memory.is_window == fit
    memory.add((keys[0],), 100)
    expected = {key: number + 100 * (number == 0) for number, key in enumerate(keys)}
    for key in sorted(expected):
        assert memory.drop() == ((key,), expected[key])
    assert memory.is_window  # as an empty memory always is


@sampled("seed", range(30), quick=4)
def test_windows_that_move(seed: int) -> None:
    """Points are added ahead of those that are removed, with gaps of many lengths."""
    generator = np.random.default_rng(seed)
    memory, expected, at = Memory(1, 256), dict[tuple[int, ...], int](), -1000
    longest = int(generator.choice([2, 20, 90]))
    for _ in range(400):
        for _ in range(int(generator.integers(0, 4))):
            key, value = at + int(generator.integers(0, longest)), int(generator.integers(1, 9))
            memory.add((key,), value)
            expected[key,] = expected.get((key,), 0) + value
        while expected and generator.random() < 0.5:
            first = min(expected)
            assert memory.drop() == (first, expected.pop(first))
        at = min((*expected, (at + longest,)))[0]
        assert memory.is_window
    assert len(expected) == int(memory.block[SIZE])
