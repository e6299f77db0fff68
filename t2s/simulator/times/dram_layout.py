"""The flat arrays of the compiled model of a DRAM.

``parameters`` are the times and sizes of a ``Dram``; ``state`` has a record of 4 words for every
bank, then for every bank group, then 12 words for every rank and 4 for every channel, and behind
them the write queue of every channel: 4 words, the bursts and the ends of its places.  With a read
queue come that of every channel, 4 words and 2 of each read, and the activations of every rank, 4
words and 2 of each, both in the order of their clocks.  Last come the controllers, 3 words for
each burst that they know (the burst cache).  ``counts`` has a record of 8 words for every channel.
"""

from __future__ import annotations

import numpy as np

from t2s.simulator.memory.model import ACTIVATIONS, NEVER, ChannelCounts
from t2s.simulator.memory.spec import Coordinate, Dram
from t2s.simulator.times.table_layout import Signed

(
    CL, CWL, TRCD, TRP, TRAS, TRRD_S, TRRD_L, TFAW, TCCD_S, TCCD_L, TWR, TWTR_S, TWTR_L, TRTP,
    TURN, TRFC, TREFI, BURST, CHANNELS, RANKS, GROUPS, BANKS, ROTATE, QUEUE, BATCH, READ_QUEUE,
    CONTROLLERS, OPEN_BURSTS, PIECES,
) = range(29)  # fmt: skip
"""Entries of ``parameters``; behind them (coordinate, bits) of each piece of the mapping."""

ROW, B_ACTIVATE, B_PRECHARGE, B_COLUMN = range(4)
"""Words of a bank; a row of -1 is none."""
S_ACTIVATE, S_READ, S_WRITE = range(3)
"""Words of a group, and the first ones of a rank."""
DUE, FOUR, OLDEST, _ = range(3, 7)
"""Words of a rank: when its refresh is due; its last four activations have a place of their own."""
C_COLUMN, C_BUS, C_USER = range(3)
"""Words of a channel; its user is 2 times the rank plus 1 for a write, -1 before the first."""

Q_PUT, Q_DRAINED, Q_WRITTEN = range(3)
"""Words of a write queue: bursts put into it and written, and the end of the last of their data."""
QUEUE_WORDS = 4

R_COUNT, R_FLOOR, R_WRITTEN, R_FIRST = range(4)
"""Words of a read queue: the reads in it, the first clock behind those that are no longer in it,
the end of the data of the channel's last write, and how many places are free before the reads.
There are twice as many places as reads, so that few of these are ever moved."""
R_HEAD = 4
R_COLUMN, R_GROUP = range(2)
"""Words of a read."""
READ_WORDS = 2
A_COUNT, A_FLOOR, A_FIRST = range(3)
"""Words before the activations of a rank: how many, the first clock behind older ones, and how many
of twice as many places are free before them."""
A_HEAD = 4
ACTIVATION_WORDS = A_HEAD + 4 * ACTIVATIONS

O_BURST, O_END, O_CHANGED = range(3)
"""Words of a place for an open burst; a burst of -1 is none."""
OPEN_WORDS = 3

READS, WRITES, HITS, MISSES, CONFLICTS, REFRESHES, FORWARDED, JOINED = range(8)
"""Words of a record of ``counts``."""
COUNT_WORDS = 8

RANK_WORDS = 12
COORDINATES = tuple(Coordinate)
CHANNEL_OF, RANK_OF, GROUP_OF, BANK_OF, ROW_OF = range(5)


def new_parameters(dram: Dram) -> Signed:
    """The parameters of a DRAM."""
    t = dram.timing
    values = [
        t.CL, t.CWL, t.tRCD, t.tRP, t.tRAS, t.tRRD_S, t.tRRD_L, t.tFAW, t.tCCD_S, t.tCCD_L, t.tWR,
        t.tWTR_S, t.tWTR_L, t.tRTP, t.turnaround, t.tRFC, t.tREFI, dram.burst_clocks,
        dram.channels, dram.ranks, dram.groups, dram.banks, int(dram.rotate_banks),
        dram.write_queue, dram.write_batch, dram.read_queue, dram.controllers,
        dram.open_bursts, len(dram.mapping),
    ]  # fmt: skip
    for coordinate, bits in dram.mapping:
        values += [COORDINATES.index(coordinate), bits]
    return np.array(values, np.int64)


def new_state(dram: Dram) -> Signed:
    """The state before the first request."""
    ranks = dram.channels * dram.ranks
    groups = ranks * dram.groups
    bank = [-1, NEVER, NEVER, NEVER]
    rank = [NEVER, NEVER, NEVER, dram.timing.tREFI or 1 << 62, 0, NEVER, NEVER, NEVER, NEVER]
    parts: tuple[Signed, ...] = (
        np.tile(bank, groups * dram.banks),
        np.full(4 * groups, NEVER),
        np.tile(rank + [0] * (RANK_WORDS - len(rank)), ranks),
        np.tile([NEVER, NEVER, -1, 0], dram.channels),
        np.zeros(dram.channels * (QUEUE_WORDS + 2 * dram.write_queue), np.int64),
    )
    if dram.read_queue:
        reads = [0, NEVER, NEVER, 0] + [0] * (2 * READ_WORDS * dram.read_queue)
        activations = [0, NEVER] + [0] * (ACTIVATION_WORDS - 2)
        parts += np.tile(reads, dram.channels), np.tile(activations, ranks)
    parts += (np.tile([-1, 0, 0], dram.controllers * dram.open_bursts),)
    return np.concatenate(parts).astype(np.int64)


def new_counts(dram: Dram) -> Signed:
    """The counters of every channel."""
    return np.zeros(COUNT_WORDS * dram.channels, np.int64)


def channel_counts(counts: Signed) -> tuple[ChannelCounts, ...]:
    """The counters as the plain model has them."""
    rows = counts.reshape(-1, COUNT_WORDS)
    return tuple(ChannelCounts(*(int(value) for value in row)) for row in rows)
