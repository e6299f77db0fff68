"""Which memory holds an array, and the rule that chose it [Stardust, sec. 6.2].

The rules are those of the paper, from the memory with the most restrictions to the one with the
least, with their conditions made exact.  ``PinningRule`` is what users read beside each memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.core.walk import Term
from t2s.patterns.ir import MemoryKind

CAPACITY = 1 << 16
"""Words of one memory unit: 256 KiB of 32-bit words."""


class PinningRule(Enum):
    """Why an array is in the memory that it is in."""

    OFF_CHIP = "0: off chip, filled or read by the host"
    AT_COORDINATES = "1: found at coordinates, and too large to be brought on chip"
    JOINED_VALUES = "1: values of a level that is joined, found by the scanner's positions"
    SEGMENTS_AT_COORDINATES = "1: segments below a level that is found at coordinates"
    BELOW_COMPRESSED = "1: dense levels below a compressed one, found at positions"
    ALLOCATED = "1: a result whose places are allocated while it is written"
    SCATTERED = "1: a result that is written at coordinates, or added up in memory"
    SEGMENTS = "2: segments that counters walk"
    COUNTED = "2: a dense tensor that counters address"
    TILE = "2: a part of a dense tensor, brought on chip before its loop"
    STAGED = "2: a dense result, stored behind its loop"
    VECTOR = "3: a dense vector that is brought on chip and read at any address"
    WORKSPACE = "3: a workspace on chip that is read or written at any address"
    ALLOCATOR = "3: the number of entries so far"
    BITS = "4: coordinates of a level that is joined, as bits"
    POSITIONS_AMONG_ALL = "3: where the visited bits of an operand are among all of its bits"
    POSITIONS = "5: positions of an operand, one for each coordinate that several join to"
    IN_ORDER = "5: taken in order, each word once"
    RESULT_IN_ORDER = "5: values of a result in the order of an operand's entries"


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedMemory(Term):
    """A kind of memory and the rule that chose it."""

    kind: MemoryKind
    rule: PinningRule


def pin_dense(order: int, *, irregular: bool, partitions: int) -> PinnedMemory:
    """A dense operand off chip; ``irregular``: some of its coordinates are those of entries."""
    if order == 1:
        return PinnedMemory(kind=shared_memory(partitions), rule=PinningRule.VECTOR)
    if irregular:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.AT_COORDINATES)
    return PinnedMemory(kind=MemoryKind.SRAM, rule=PinningRule.COUNTED)


def pin_positions(*, irregular: bool) -> PinnedMemory:
    """The segments of a compressed level."""
    if irregular:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.SEGMENTS_AT_COORDINATES)
    return PinnedMemory(kind=MemoryKind.SRAM, rule=PinningRule.SEGMENTS)


def pin_values(*, joined: bool, ends_compressed: bool) -> PinnedMemory:
    """The values of a compressed operand off chip."""
    if joined:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.JOINED_VALUES)
    if not ends_compressed:
        return PinnedMemory(kind=MemoryKind.SPARSE_DRAM, rule=PinningRule.BELOW_COMPRESSED)
    return PinnedMemory(kind=MemoryKind.FIFO, rule=PinningRule.IN_ORDER)


def shared_memory(partitions: int) -> MemoryKind:
    """The sparse memory on chip that all partitions of a program reach."""
    return MemoryKind.PARTITIONED_SRAM if partitions > 1 else MemoryKind.SPARSE_SRAM
