"""The memory of one machine array during a run: traces and sorted memories."""

from __future__ import annotations

import numpy as np

from t2s.core.ops import Array
from t2s.graph.machine import Machine
from t2s.simulator.values.emit_memory import block_words
from t2s.simulator.values.layout import TRACE_LENGTH, ValueLayout, address_of, most_adds
from t2s.simulator.values.point_block import CAPACITY, SIZE, emptied, new_block
from t2s.simulator.values.sorted_memory import enlarged

_GROWTH = 4
_FIRST_CODES = 1 << 20
_FIRST_CODES_IN_ALL = 1 << 26
_FIRST_POINTS = 1 << 14
_FIRST_POINTS_IN_ALL = 1 << 17
_LEAST_POINTS = 16
_NEARLY_FULL = 8
"""A memory grows with the rest if less than this part of it is free."""

MOST_FIRINGS = 1 << 30
"""Most firings of one machine."""


class MachineMemory:
    """Traces and sorted memories of all places, and where the arena says that they are."""

    def __init__(self, node: Machine, layout: ValueLayout, arena: Array) -> None:
        self._type = layout.codes[node.name]
        self._most = MOST_FIRINGS
        places = node.place_count
        self._state = layout.trace(node.name).view(arena)
        first = min(_FIRST_CODES, max(256, _FIRST_CODES_IN_ALL // places))
        self._traces = [np.empty(first, self._type) for _ in range(places)]
        self._begin: Array | None = None
        self._blocks: list[tuple[Array, list[Array]]] = []
        self._adds = [most_adds(node, memory.name) for memory in node.memories]
        for memory in node.memories:
            addresses = layout.memory(node.name, memory.name).view(arena)
            points = _FIRST_POINTS
            while points * places > _FIRST_POINTS_IN_ALL and points > _LEAST_POINTS:
                points //= 2
            blocks = [new_block(points, *block_words(memory)) for _ in range(places)]
            self._blocks.append((addresses, blocks))

    def start(self) -> None:
        """Empty traces and memories, as large as they were."""
        if self._most != MOST_FIRINGS:
            self._most = MOST_FIRINGS
            self._begin = None
        if self._begin is None:
            for place in range(len(self._traces)):
                self._place_trace(place, 0)
            self._begin = self._state.copy()
        self._state[:] = self._begin
        for addresses, blocks in self._blocks:
            for place, block in enumerate(blocks):
                if block[SIZE]:
                    blocks[place] = emptied(block)
            addresses[:] = [address_of(block) for block in blocks]

    @property
    def bytes(self) -> int:
        """Memory that sorted memories take."""
        return sum(block.nbytes for _, blocks in self._blocks for block in blocks)

    def limit(self, firings: int) -> None:
        """Let no place fire more often than this."""
        self._most = min(self._most, firings)
        for place in range(len(self._traces)):
            self._place_trace(place)

    def trace(self, place: int) -> Array:
        """The codes so far, as an array that shares the memory."""
        return self._traces[place][: int(self._state[place, TRACE_LENGTH])]

    def grow(self) -> bool:
        """Enlarge what is full; whether anything was."""
        grown = False
        for place, trace in enumerate(self._traces):
            length = int(self._state[place, TRACE_LENGTH])
            if length == len(trace) and length < self._most:
                larger = np.empty(_GROWTH * length, self._type)
                larger[:length] = trace
                self._traces[place], self._begin = larger, None
                self._place_trace(place)
                grown = True
        for (addresses, blocks), most in zip(self._blocks, self._adds, strict=True):
            for place, block in enumerate(blocks):
                space, capacity = int(block[CAPACITY] - block[SIZE]), int(block[CAPACITY])
                if space < max(most, capacity // _NEARLY_FULL):
                    blocks[place] = enlarged(block)
                    addresses[place] = address_of(blocks[place])
                    grown = True
        return grown

    def _place_trace(self, place: int, length: int | None = None) -> None:
        trace = self._traces[place]
        length = int(self._state[place, TRACE_LENGTH]) if length is None else length
        self._state[place] = address_of(trace), length, min(len(trace), self._most)
