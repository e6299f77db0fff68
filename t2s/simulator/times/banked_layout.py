"""The flat arrays of shared banks and of the machines in front of them, for the table kernel.

See ``banked_kernel`` for what is done with them.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np

from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument, Record
from t2s.simulator.memory.banked import Banked
from t2s.simulator.times.table_layout import (
    CREDIT_RECORD,
    DRAM_UNITS,
    SOURCES,
    TABLES,
    Credit,
    DramUnits,
    Signed,
)

(
    PORTS, LANES, LANE_BITS, BANKS, QUEUE, ROUNDS, MOVES, LINK, REPLY, RANKS, OUTSTANDING, LEVELS,
    KEPT, STORES, FIRING_WORDS,
) = range(15)  # fmt: skip
"""Entries of ``banks``: those of ``Banked``, the bits of the number of a lane, levels of loads,
vectors of a machine that are kept, whether any vector stores, and the words of a waiting firing."""

PE, PORT, ASKED_AT, VECTOR_AT, MADE, POPPED, LAST_DONE, LEFT, HELD, UNDECIDED = range(10)
FIRST_FIRING, FIRINGS, FIRINGS_BEGIN, FIRINGS_SIZE = range(10, 14)
LOADED, STORED, WORDS, LATENCY = range(14, 18)
SHARER = 24
"""Columns of ``sharers``: its PE and port; positions in ``asking`` and ``vectors``; vectors made
and done, in order, and when the last of these was; when its last tokens leave, when its next
firing may ask, and how many loads that decide on this are under way; the ring of firings whose
tokens have not left; counters."""

S_LEFT, S_ENTERED, S_FIRED, S_FIRING, S_WHAT, S_SERVED, S_DONE, S_SHARER = range(8)
SLOT = 8
"""Columns of ``slots``, a vector under way: words not served, cycles in which it entered and was
asked for, the waiting firing, what is said of it, when it is served and done, and whose it is."""

F_FIRED, F_UNANSWERED, F_ROW, F_AFTER, F_WAITS = range(5)
"""Words of a waiting firing: its cycle, loads not answered, its row, when tokens of later firings
may leave at the earliest, and from there the cycles that its loads take, by level."""

P_FIRST, P_WAITING, P_BEGIN, P_SIZE, P_REPLY, P_REPLIES, P_LAST, P_VECTORS = range(8)
PORT_WORDS = 8
"""Columns of ``ports``: two rings of vectors, those that wait to enter and, P_SIZE behind, loads
that are not answered; when the last was answered; and how many entered."""

HEAD, COUNT = range(2)
"""Words of a link and of a queue."""

MASK, ONES, AGE = range(3)
ENTRY = 4
"""Words of a vector on a link or in a queue: its lanes, those of them that leave the rank at the
output with the rank's bit (in a queue those that may have to wait), and its age."""

UNDER_WAY, BUSY_CYCLES, WAITED, IN_PORT, LAST_STORED = range(5)
"""Entries of ``tally``: vectors with words that are not served; counters; the cycle of the last
store."""


class Banks(NamedTuple):
    """The arrays."""

    sharer_of: Signed
    sharers: Signed
    asking: Signed
    vectors: Signed
    words: Signed
    slots: Signed
    slot_words: Signed
    ends: Signed
    deciding: Signed
    firings: Signed
    ports: Signed
    rings: Signed
    links: Signed
    entries: Signed
    entry_words: Signed
    queues: Signed
    places: Signed
    place_words: Signed
    unsettled: Signed
    served: Signed
    tally: Signed
    granted: Signed
    numbers: Signed
    banks: Signed


_named: Any = namedtuple

CreditBanks = _named("CreditBanks", (*Credit._fields, *Banks._fields))
"""A memory of shared bandwidth and the banks."""

DramBanks = _named("DramBanks", (*DramUnits._fields, *Banks._fields))
"""A DRAM and the banks."""

_ARRAYS = (Argument.INT64_ARRAY,) * len(Banks._fields)
_ROOM = "t2s.simulator.times"

advance_with_banks = CompiledKernel(
    module=f"{_ROOM}.table_banked",
    name="advance",
    sources=SOURCES,
    arguments=(
        TABLES,
        Record(CreditBanks, (*CREDIT_RECORD.fields, *_ARRAYS)),
        Argument.INT64,
        Argument.BOOLEAN,
    ),
)
"""``table_kernel.advance`` with shared banks and a memory of shared bandwidth."""

advance_with_banks_and_dram = CompiledKernel(
    module=f"{_ROOM}.table_banked",
    name="advance_with_dram",
    sources=SOURCES,
    arguments=(
        TABLES,
        Record(DramBanks, (*DRAM_UNITS.fields, *_ARRAYS)),
        Argument.INT64,
        Argument.BOOLEAN,
    ),
)
"""The same with a DRAM."""

MAGIC = 0x077CB531
"""Times a power of two: the upper 5 of 32 bits tell them apart."""


def numbers_of_bits() -> Signed:
    """The numbers of bits by what ``MAGIC`` makes of them."""
    found = np.zeros(32, np.int64)
    for bit in range(32):
        found[(MAGIC << bit & 0xFFFFFFFF) >> 27] = bit
    return found


def ways_of(banked: Banked, *, levels: int, kept: int, stores: bool) -> Signed:
    """``banks`` of a banked memory."""
    return np.array(
        [
            banked.ports, banked.lanes, (banked.lanes - 1).bit_length(), banked.banks,
            banked.queue_depth, banked.rounds, banked.lane_moves, banked.link_depth,
            banked.reply_cycles, banked.ranks, banked.outstanding, levels, kept, stores,
            F_WAITS + levels,
        ],
        np.int64,
    )  # fmt: skip
