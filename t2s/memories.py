"""Memories: DRAMs, and banks on the chip that units share.

``MEMORIES`` maps the names that ``memory=`` takes to memories.  A variant, such as
``dataclasses.replace(MEMORIES["ddr4-2133"], ...)``, may be passed in place of a name.
"""

from __future__ import annotations

from t2s.graph.graph import MemorySpace
from t2s.simulator.memory.spec import (
    MEMORIES,
    Banked,
    Coordinate,
    Dram,
    Timing,
    Units,
    find_memory,
    mapping_of,
)

__all__ = [
    "MEMORIES",
    "Banked",
    "Coordinate",
    "Dram",
    "MemorySpace",
    "Timing",
    "Units",
    "find_memory",
    "mapping_of",
]
