"""The memory of one machine array during a run: traces and sorted memories."""

from __future__ import annotations

from t2s.core.ops import Array
from t2s.graph.nodes import Machine
from t2s.simulator.values.emit_block import block_words
from t2s.simulator.values.layout import ValueLayout, address_of, most_adds
from t2s.simulator.values.machine_traces import traces_of
from t2s.simulator.values.sorted_memory import CAPACITY, SIZE, emptied, enlarged, new_block

_FIRST_POINTS = 1 << 14
_FIRST_POINTS_IN_ALL = 1 << 17
_LEAST_POINTS = 16
_NEARLY_FULL = 8
"""When others grow, a memory with less free space than this share grows, too."""


class MachineMemory:
    """Traces and sorted memories of all places, and their entries in the arena."""

    def __init__(self, node: Machine, layout: ValueLayout, arena: Array) -> None:
        places = node.place_count
        self.traces = traces_of(node, layout, arena)
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
        """Empty traces and memories, keeping their capacity but for that of long traces."""
        self.traces.start()
        for addresses, blocks in self._blocks:
            for place, block in enumerate(blocks):
                if block[SIZE]:
                    blocks[place] = emptied(block)
            addresses[:] = [address_of(block) for block in blocks]

    @property
    def bytes(self) -> int:
        """The size of the sorted memories and of long traces."""
        sizes = (int(block.nbytes) for _, blocks in self._blocks for block in blocks)
        return self.traces.bytes + sum(sizes)

    def grow(self) -> bool:
        """Enlarge full traces and memories; return whether any was."""
        grown = self.traces.grow()
        for (addresses, blocks), most in zip(self._blocks, self._adds, strict=True):
            for place, block in enumerate(blocks):
                space, capacity = int(block[CAPACITY] - block[SIZE]), int(block[CAPACITY])
                if space < max(most, capacity // _NEARLY_FULL):
                    blocks[place] = enlarged(block)
                    addresses[place] = address_of(blocks[place])
                    grown = True
        return grown
