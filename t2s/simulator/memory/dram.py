"""The model of a DRAM and its controller: timing, read reordering, burst cache.

There is no clock that ticks.  Every bank, bank group, rank and channel remembers the earliest time
of its next command of each kind; the times of a request's commands are maxima of these.

**The controller.**  Pages stay open.  The read and write commands of a channel are in the order of
the requests; precharging and activating for a request happen as early as the bank, the rank and
earlier activations of the rank allow, long before the data of the requests in front of it have
moved.  A rank is refreshed as a whole, in the order of requests: if the read or write command of a
request would not come before the rank's refresh is due, the refresh comes first, as soon as the
open banks are precharged.  The buses for row and for column commands are taken to be separate and
row commands of different banks not to be in each other's way, so that the only conflicts are those
of the named times and of the data bus.

**The write queue** (optional): writes of a channel wait in it, in order, and count as done as soon
as they have a slot.  When it is full, the oldest ``write_batch`` of them are written one after the
other, ahead of later requests; a slot is free again when its data have moved.  A read of a burst in
the queue is forwarded from there at once.  At the end of the run the rest is written.

**The read queue** (optional): reads do not wait for one another.  A read, and its activation,
overtakes reads whose rows are not open yet if the data bus is free between theirs; but requests of
one bank stay in order, and no read overtakes a write.

**Controllers in front of the channels** (optional) cache the bursts that they read last: a
streaming queue that asks for one of them is filled from the cache, and so is any request that
arrives before the data have moved.  A partial store first reads its burst and makes it *dirty*; it
stays until another dirty burst needs its slot, or the run ends, and is then written back.  Without
such controllers it is read and written each time.

**The code** is in the subset of Python that compiles (``llvm/kernels.py``), over flat arrays, and
nothing is allocated: the native engine runs it as machine code, the reference engine as it is, on
lists.

``parameters`` are the times and sizes of a ``Dram``; ``state`` has a record of 4 words for every
bank, then for every bank group, then 12 words for every rank and 4 for every channel, and behind
them the write queue of every channel: 4 words, the bursts and the ends of its places.  With a read
queue come that of every channel, 4 words and 2 of each read, and the activations of every rank, 4
words and 2 of each, both in the order of their clocks.  Last come the controllers, 3 words for
each burst that they know (the burst cache).  ``counts`` has a record of 8 words for every channel.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from t2s.llvm.operands import Signed, Word, inlined, within
from t2s.simulator.memory.report import ChannelCounts
from t2s.simulator.memory.spec import Coordinate, Dram

NEVER = -(1 << 40)
"""A time before all others."""
ACTIVATIONS = 16
"""Recorded activations of a rank."""


class Request(IntEnum):
    """The kind of access to a burst.

    ``UPDATE`` stores a part of it, so the rest has to be read first.  ``STREAM`` reads it for a
    queue, which may be filled from bursts that others have read.
    """

    READ = 0
    WRITE = 1
    UPDATE = 2
    STREAM = 3


(
    CL, CWL, TRCD, TRP, TRAS, TRRD_S, TRRD_L, TFAW, TCCD_S, TCCD_L, TWR, TWTR_S, TWTR_L, TRTP,
    TURN, TRFC, TREFI, BURST, CHANNELS, RANKS, GROUPS, BANKS, ROTATE, QUEUE, BATCH, READ_QUEUE,
    CONTROLLERS, OPEN_BURSTS, PIECES,
) = range(29)  # fmt: skip
"""Entries of ``parameters``; behind them (coordinate, bits) of each piece of the mapping."""

ROW, B_ACTIVATE, B_PRECHARGE, B_COLUMN = range(4)
"""Words of a bank; row -1 for none."""
S_ACTIVATE, S_READ, S_WRITE = range(3)
"""Words of a group, and the first ones of a rank."""
DUE, FOUR, OLDEST, _ = range(3, 7)
"""Words of a rank: when its refresh is due, and its last four activations."""
C_COLUMN, C_BUS, C_USER = range(3)
"""Words of a channel; its user is 2 times the rank plus 1 for a write, -1 before the first."""

Q_PUT, Q_DRAINED, Q_WRITTEN = range(3)
"""Words of a write queue: bursts put into it and written, and the end of the last of their data."""
QUEUE_WORDS = 4

R_COUNT, R_FLOOR, R_WRITTEN, R_FIRST = range(4)
"""Words of a read queue: the reads in it, the first clock after all forgotten ones, the end of the
data of the channel's last write, and the free slots before the reads.  There are twice as many
slots as reads, so that reads rarely move."""
R_HEAD = 4
R_COLUMN, R_GROUP = range(2)
"""Words of a read."""
READ_WORDS = 2
A_COUNT, A_FLOOR, A_FIRST = range(3)
"""Words before the activations of a rank: their number, the first clock after forgotten ones, and
the free slots before them."""
A_HEAD = 4
ACTIVATION_WORDS = A_HEAD + 4 * ACTIVATIONS

O_BURST, O_END, O_CHANGED = range(3)
"""Words of a burst cache slot; burst -1 for none."""
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
    """The counters by channel."""
    rows = counts.reshape(-1, COUNT_WORDS)
    return tuple(ChannelCounts(*(int(value) for value in row)) for row in rows)


READ, WRITE, UPDATE = int(Request.READ), int(Request.WRITE), int(Request.UPDATE)


@within
def _refresh(
    parameters: Signed, state: Signed, counts: Signed, channel: Word, first: Word, rank: Word,
    clock: Word,
) -> None:  # fmt: skip
    """Refresh a rank whose first bank is at ``first``; if it was idle, as often as was due."""
    banks = parameters[GROUPS] * parameters[BANKS]
    start = state[rank + DUE]
    closed = start
    opened = False
    for number in range(banks):
        bank = first + 4 * number
        if state[bank + ROW] >= 0:
            opened = True
            start = max(start, state[bank + B_PRECHARGE])
        else:
            closed = max(closed, state[bank + B_ACTIVATE])
    if opened:
        start += parameters[TRP]
    start = max(start, closed)
    state[rank + DUE] += parameters[TREFI]
    counts[COUNT_WORDS * channel + REFRESHES] += 1
    if clock >= state[rank + DUE]:
        more = (clock - state[rank + DUE]) // parameters[TREFI] + 1
        start = state[rank + DUE] + (more - 1) * parameters[TREFI]
        state[rank + DUE] += more * parameters[TREFI]
        counts[COUNT_WORDS * channel + REFRESHES] += more
    for number in range(banks):
        bank = first + 4 * number
        state[bank + ROW] = -1
        state[bank + B_ACTIVATE] = start + parameters[TRFC]


@within
def _locate(parameters: Signed, burst: Word) -> tuple[Word, Word, Word, Word, Word]:
    """Channel, rank, group, bank and row of a burst: ``Dram.place``."""
    channel = rank = group = bank = row = column = 0
    channel_shift = rank_shift = group_shift = bank_shift = row_shift = column_shift = 0
    for piece in range(parameters[PIECES]):
        coordinate = parameters[PIECES + 1 + 2 * piece]
        bits = parameters[PIECES + 2 + 2 * piece]
        part = burst & ((1 << bits) - 1)
        burst >>= bits
        if coordinate == CHANNEL_OF:
            channel |= part << channel_shift
            channel_shift += bits
        elif coordinate == RANK_OF:
            rank |= part << rank_shift
            rank_shift += bits
        elif coordinate == GROUP_OF:
            group |= part << group_shift
            group_shift += bits
        elif coordinate == BANK_OF:
            bank |= part << bank_shift
            bank_shift += bits
        elif coordinate == ROW_OF:
            row |= part << row_shift
            row_shift += bits
        else:
            column |= part << column_shift
            column_shift += bits
    groups = parameters[GROUPS]
    if parameters[ROTATE]:
        group = (group + column + column // groups + row) & (groups - 1)
        above = row >> 2
        while above > 0:
            bank += above
            above >>= 2
        bank &= parameters[BANKS] - 1
    return channel, rank, group, bank, row


@within
def _queue_of(parameters: Signed, channel: Word) -> Word:
    """The offset of a channel's write queue."""
    ranks = parameters[CHANNELS] * parameters[RANKS]
    groups = ranks * parameters[GROUPS]
    before = 4 * groups * (parameters[BANKS] + 1) + RANK_WORDS * ranks + 4 * parameters[CHANNELS]
    return before + channel * (QUEUE_WORDS + 2 * parameters[QUEUE])


@within
def _controllers(parameters: Signed) -> Word:
    """The offset of the controllers."""
    before = _queue_of(parameters, parameters[CHANNELS])
    if parameters[READ_QUEUE]:
        before += parameters[CHANNELS] * read_room(parameters)
        before += parameters[CHANNELS] * parameters[RANKS] * ACTIVATION_WORDS
    return before


@within
def _activation(
    parameters: Signed, state: Signed, clock: Word, at_bank: Word, at_group: Word, at_rank: Word,
    at_activations: Word,
) -> Word:  # fmt: skip
    """The first clock to open a row of the bank; ``at_activations`` is -1 without a read queue."""
    activate = max(clock, state[at_bank + B_ACTIVATE])
    if state[at_bank + ROW] >= 0:
        activate = max(activate, max(clock, state[at_bank + B_PRECHARGE]) + parameters[TRP])
    if at_activations >= 0:
        return activation_between(parameters, state, activate, at_group, at_activations)
    activate = max(activate, state[at_group + S_ACTIVATE])
    activate = max(activate, state[at_rank + S_ACTIVATE])
    oldest = at_rank + OLDEST + state[at_rank + FOUR]
    return max(activate, state[oldest] + parameters[TFAW])


@within
def _activate(
    parameters: Signed, state: Signed, activate: Word, row: Word, at_bank: Word, at_group: Word,
    at_rank: Word, at_activations: Word,
) -> None:  # fmt: skip
    """Open a row."""
    state[at_bank + ROW] = row
    state[at_bank + B_COLUMN] = activate + parameters[TRCD]
    state[at_bank + B_PRECHARGE] = activate + parameters[TRAS]
    state[at_bank + B_ACTIVATE] = activate + parameters[TRAS] + parameters[TRP]
    if at_activations >= 0:
        note_activation(parameters, state, activate, at_group, at_activations)
        return
    state[at_group + S_ACTIVATE] = activate + parameters[TRRD_L]
    state[at_rank + S_ACTIVATE] = activate + parameters[TRRD_S]
    state[at_rank + OLDEST + state[at_rank + FOUR]] = activate
    state[at_rank + FOUR] = (state[at_rank + FOUR] + 1) & 3


@within
def _move(
    parameters: Signed, state: Signed, column: Word, write: Word, at_bank: Word, at_group: Word,
    at_rank: Word, at_channel: Word, reads: Word,
) -> Word:  # fmt: skip
    """Read or write; return the end of the data.  ``reads`` is -1 without a read queue."""
    end = column + parameters[CWL if write else CL] + parameters[BURST]
    state[at_group + S_WRITE] = max(state[at_group + S_WRITE], column + parameters[TCCD_L])
    state[at_rank + S_WRITE] = max(state[at_rank + S_WRITE], column + parameters[TCCD_S])
    if write:
        state[at_group + S_READ] = end + parameters[TWTR_L]
        state[at_rank + S_READ] = end + parameters[TWTR_S]
        recovered = end + parameters[TWR]
        if reads >= 0:
            state[reads + R_COUNT] = state[reads + R_FIRST] = 0
            state[reads + R_FLOOR] = column + 1
            state[reads + R_WRITTEN] = end
    else:
        if reads < 0:
            state[at_group + S_READ] = column + parameters[TCCD_L]
            state[at_rank + S_READ] = column + parameters[TCCD_S]
        recovered = column + parameters[TRTP]
    state[at_bank + B_PRECHARGE] = max(state[at_bank + B_PRECHARGE], recovered)
    state[at_channel + C_COLUMN] = max(state[at_channel + C_COLUMN], column + 1)
    state[at_channel + C_BUS] = max(state[at_channel + C_BUS], end)
    return end


@within
def _access(
    parameters: Signed, state: Signed, counts: Signed, clock: Word, burst: Word, write: Word
) -> Word:
    """Access a burst; return the clock in which its last data have moved."""
    channel, rank, group, bank, row = _locate(parameters, burst)
    groups, banks = parameters[GROUPS], parameters[BANKS]
    ranks = parameters[CHANNELS] * parameters[RANKS]
    rank_number = channel * parameters[RANKS] + rank
    first_group = 4 * ranks * groups * banks
    first_rank = first_group + 4 * ranks * groups
    first_bank = 4 * rank_number * groups * banks
    at_bank = first_bank + 4 * (group * banks + bank)
    at_group = first_group + 4 * (rank_number * groups + group)
    at_rank = first_rank + RANK_WORDS * rank_number
    at_channel = first_rank + RANK_WORDS * ranks + 4 * channel
    reads = at_activations = np.int64(-1)
    if parameters[READ_QUEUE]:
        reads = _queue_of(parameters, parameters[CHANNELS])
        at_activations = reads + parameters[CHANNELS] * read_room(parameters)
        at_activations += rank_number * ACTIVATION_WORDS
        reads += channel * read_room(parameters)
    user, before = 2 * rank + write, state[at_channel + C_USER]
    ready = S_WRITE if write else S_READ
    earliest = max(clock, max(state[at_group + ready], state[at_rank + ready]))
    if write or reads < 0:
        gap = parameters[TURN] if before >= 0 and before != user else 0
        bus = state[at_channel + C_BUS] + gap - parameters[CWL if write else CL]
        earliest = max(earliest, max(state[at_channel + C_COLUMN], bus))
    else:
        earliest = max(earliest, state[reads + R_WRITTEN] + parameters[TURN] - parameters[CL])
    while True:
        opened = state[at_bank + ROW]
        if opened == row:
            activate = np.int64(NEVER)
            column = max(earliest, state[at_bank + B_COLUMN])
        else:
            activate = _activation(
                parameters, state, clock, at_bank, at_group, at_rank, at_activations
            )
            column = max(earliest, activate + parameters[TRCD])
        if reads >= 0 and not write:
            column = read_between(
                parameters, state, column, rank_number, rank_number * groups + group, reads
            )
        if column < state[at_rank + DUE]:
            break
        _refresh(parameters, state, counts, channel, first_bank, at_rank, clock)
    counts[COUNT_WORDS * channel + (WRITES if write else READS)] += 1
    if opened == row:
        counts[COUNT_WORDS * channel + HITS] += 1
    else:
        counts[COUNT_WORDS * channel + (CONFLICTS if opened >= 0 else MISSES)] += 1
        _activate(parameters, state, activate, row, at_bank, at_group, at_rank, at_activations)
    state[at_channel + C_USER] = user
    end = _move(parameters, state, column, write, at_bank, at_group, at_rank, at_channel, reads)
    if reads >= 0 and not write:
        note_read(parameters, state, column, rank_number * groups + group, reads)
    return end


@within
def _drain(
    parameters: Signed, state: Signed, counts: Signed, queue: Word, clock: Word, count: Word
) -> None:
    """Write the oldest bursts of a queue."""
    places = parameters[QUEUE]
    for _ in range(count):
        place = queue + QUEUE_WORDS + state[queue + Q_DRAINED] % places
        end = _access(parameters, state, counts, clock, state[place], np.int64(1))
        state[place + places] = end
        state[queue + Q_DRAINED] += 1
        state[queue + Q_WRITTEN] = max(state[queue + Q_WRITTEN], end)


@within
def _write(parameters: Signed, state: Signed, counts: Signed, clock: Word, burst: Word) -> Word:
    """Write or enqueue a burst; return the clock in which it is done or has a slot."""
    places = parameters[QUEUE]
    if places == 0:
        return _access(parameters, state, counts, clock, burst, np.int64(1))
    queue = _queue_of(parameters, _locate(parameters, burst)[0])
    put, drained = state[queue + Q_PUT], state[queue + Q_DRAINED]
    place = queue + QUEUE_WORDS + put % places
    accepted = clock if put < places else max(clock, state[place + places])
    state[place] = burst
    state[queue + Q_PUT] = put + 1
    if put + 1 - drained == places:
        _drain(parameters, state, counts, queue, accepted, parameters[BATCH])
    return accepted


@within
def _write_back(
    parameters: Signed, state: Signed, counts: Signed, clock: Word, burst: Word
) -> None:
    """Write a burst whose completion nothing waits for."""
    queue = _queue_of(parameters, _locate(parameters, burst)[0])
    end = _write(parameters, state, counts, clock, burst)
    state[queue + Q_WRITTEN] = max(state[queue + Q_WRITTEN], end)


@within
def flush(parameters: Signed, state: Signed, counts: Signed, clock: Word) -> Word:
    """Write the dirty bursts, and those in the write queues.

    Returns the clock in which the last of these writes has moved, 0 without any.
    """
    first = _controllers(parameters)
    known = parameters[CONTROLLERS] * parameters[OPEN_BURSTS]
    for place in range(first, first + OPEN_WORDS * known, OPEN_WORDS):
        if state[place + O_CHANGED] > 0:
            _write_back(parameters, state, counts, clock, state[place + O_BURST])
    written = np.int64(0)
    for channel in range(parameters[CHANNELS]):
        queue = _queue_of(parameters, channel)
        left = state[queue + Q_PUT] - state[queue + Q_DRAINED]
        _drain(parameters, state, counts, queue, clock, left)
        written = max(written, state[queue + Q_WRITTEN])
    return written


@within
def access(
    parameters: Signed, state: Signed, counts: Signed, clock: Word, burst: Word, request: Word
) -> Word:
    """Request a burst at ``clock``; return the clock in which its data have moved.

    A write is done when it is in the write queue, if there is one.  Requests have to come in the
    order of their clocks.
    """
    first, place = np.int64(0), np.int64(-1)
    if parameters[CONTROLLERS]:
        first = _controllers(parameters)
        place = known_place(parameters, state, first, burst)
    changed = np.int64(request == UPDATE)
    if place >= 0:
        late = request == READ and state[place + O_CHANGED] == 0 and clock >= state[place + O_END]
        if request != WRITE and not late:
            counts[COUNT_WORDS * _locate(parameters, burst)[0] + JOINED] += 1
            state[place + O_CHANGED] |= changed
            return max(clock, state[place + O_END])
        forget_burst(state, place)
    if request == WRITE:
        return _write(parameters, state, counts, clock, burst)
    end = _read(parameters, state, counts, clock, burst)
    if parameters[CONTROLLERS]:
        replaced = open_burst(parameters, state, first, burst, end, changed)
        if replaced >= 0:
            _write_back(parameters, state, counts, clock, replaced)
    elif changed:
        end = max(end, _write(parameters, state, counts, clock, burst))
    return end


@within
def _read(parameters: Signed, state: Signed, counts: Signed, clock: Word, burst: Word) -> Word:
    """Read a burst, from the write queue if it is there."""
    if parameters[QUEUE]:
        channel = _locate(parameters, burst)[0]
        queue = _queue_of(parameters, channel)
        for number in range(state[queue + Q_DRAINED], state[queue + Q_PUT]):
            if state[queue + QUEUE_WORDS + number % parameters[QUEUE]] == burst:
                counts[COUNT_WORDS * channel + FORWARDED] += 1
                return clock
    return _access(parameters, state, counts, clock, burst, np.int64(0))


@within
def access_all(
    parameters: Signed, state: Signed, counts: Signed, clocks: Signed, bursts: Signed,
    requests: Signed, ends: Signed,
) -> None:  # fmt: skip
    """``access`` for a list of requests in the order of their clocks."""
    for number in range(len(clocks)):
        ends[number] = access(
            parameters, state, counts, clocks[number], bursts[number], requests[number]
        )


# The burst cache: burst ``b`` belongs to controller ``b % controllers``.  A burst that is read
# replaces the clean one, or else the dirty one, whose data moved first.
#
# A slot of a controller has a burst, or -1; the clock in which its data have moved; and whether it
# is dirty.


@within
def known_place(parameters: Signed, state: Signed, controllers: Word, burst: Word) -> Word:
    """The slot of a burst in its controller's cache; -1 for a miss."""
    size = OPEN_WORDS * parameters[OPEN_BURSTS]
    first = controllers + size * (burst % parameters[CONTROLLERS])
    for place in range(first, first + size, OPEN_WORDS):
        if state[place + O_BURST] == burst:
            return np.int64(place)
    return np.int64(-1)


@within
def open_burst(
    parameters: Signed, state: Signed, controllers: Word, burst: Word, end: Word, changed: Word
) -> Word:
    """Cache a burst after a miss; return the evicted dirty burst, or -1."""
    size = OPEN_WORDS * parameters[OPEN_BURSTS]
    victim = first = controllers + size * (burst % parameters[CONTROLLERS])
    for place in range(first + OPEN_WORDS, first + size, OPEN_WORDS):
        more = state[place + O_CHANGED] - state[victim + O_CHANGED]
        if more < 0 or (more == 0 and state[place + O_END] < state[victim + O_END]):
            victim = place
    occupied = state[victim + O_CHANGED] > 0
    if occupied and not changed:
        return np.int64(-1)
    before = state[victim + O_BURST] if occupied else np.int64(-1)
    state[victim + O_BURST], state[victim + O_END], state[victim + O_CHANGED] = burst, end, changed
    return before


@within
def forget_burst(state: Signed, place: Word) -> None:
    """Invalidate the cached data of a burst."""
    state[place + O_BURST], state[place + O_END], state[place + O_CHANGED] = -1, 0, 0


# Commands that overtake others: the bookkeeping of a controller with a read queue.
#
# The time of a command is final once it is determined, so a younger command is placed between the
# recorded ones, at the first clock that keeps its distance from each of them.  Only the last ones,
# in the order of time, are recorded; a younger command comes after all forgotten ones.
#
# Records are in the order of time, in twice the room they need: forgetting one frees a slot at the
# front, and the records move when there is none at the end.  Most commands come late, so searches
# begin at the newest.


@within
def activation_between(
    parameters: Signed, state: Signed, activate: Word, group: Word, queue: Word
) -> Word:
    """The first clock for an activation between the recorded ones of the rank."""
    count, first = state[queue + A_COUNT], queue + A_HEAD + 2 * state[queue + A_FIRST]
    activate = max(activate, state[queue + A_FLOOR])
    far = max(parameters[TRRD_L], parameters[TRRD_S])
    near_enough = count
    while near_enough > 0 and state[first + 2 * near_enough - 2] + far > activate:
        near_enough -= 1
    while True:
        before = number = near_enough
        while number < count and state[first + 2 * number] < activate + far:
            other = state[first + 2 * number]
            near = state[first + 2 * number + 1] == group
            apart = parameters[TRRD_L if near else TRRD_S]
            if other - apart < activate < other + apart:
                activate = other + apart
            number += 1
            if other <= activate:
                before = number
        moved = False
        for after in range(5):
            low, high = before - 4 + after, before + after - 1
            if low < 0 or high >= count:
                continue
            begin = state[first + 2 * low] if after < 4 else activate
            end = state[first + 2 * high] if after else activate
            if end - begin < parameters[TFAW]:
                behind = state[first + 2 * before] + 1 if after else begin + parameters[TFAW]
                activate = max(activate + 1, behind)
                moved = True
                break
        if not moved:
            return activate


@within
def note_activation(
    parameters: Signed, state: Signed, activate: Word, group: Word, queue: Word
) -> None:
    """Record an activation of a rank, and forget the oldest one if there are too many."""
    count, first = state[queue + A_COUNT], queue + A_HEAD + 2 * state[queue + A_FIRST]
    if count == ACTIVATIONS:
        far = max(parameters[TFAW], max(parameters[TRRD_L], parameters[TRRD_S]))
        if activate < state[first]:
            state[queue + A_FLOOR] = max(state[queue + A_FLOOR], activate + far)
            return
        state[queue + A_FLOOR] = max(state[queue + A_FLOOR], state[first] + far)
        count -= 1
        first += 2
        state[queue + A_FIRST] += 1
    if state[queue + A_FIRST] + count == 2 * ACTIVATIONS:
        for word in range(2 * count):
            state[queue + A_HEAD + word] = state[first + word]
        first = queue + A_HEAD
        state[queue + A_FIRST] = 0
    place = count
    while place > 0 and state[first + 2 * place - 2] > activate:
        state[first + 2 * place] = state[first + 2 * place - 2]
        state[first + 2 * place + 1] = state[first + 2 * place - 1]
        place -= 1
    state[first + 2 * place], state[first + 2 * place + 1] = activate, group
    state[queue + A_COUNT] = count + 1


@inlined
def read_room(parameters: Signed) -> Word:
    """Words of the recorded reads of a channel, and of twice as many."""
    return R_HEAD + 2 * READ_WORDS * parameters[READ_QUEUE]


@inlined
def _first_read(state: Signed, reads: Word) -> Word:
    """The offset of a channel's oldest recorded read; the others follow in order of time."""
    return reads + R_HEAD + READ_WORDS * state[reads + R_FIRST]


@inlined
def _farthest(parameters: Signed) -> Word:
    """Clocks after which a read no longer constrains another one."""
    far = parameters[BURST] + parameters[TURN]
    return max(far, max(parameters[TCCD_L], parameters[TCCD_S]))


@within
def read_between(
    parameters: Signed, state: Signed, column: Word, rank: Word, group: Word, reads: Word
) -> Word:
    """The first clock for a read between the recorded ones of the channel."""
    column = max(column, state[reads + R_FLOOR])
    far = _farthest(parameters)
    first = _first_read(state, reads)
    end = first + READ_WORDS * state[reads + R_COUNT]
    place = end
    while place > first and state[place - READ_WORDS + R_COLUMN] + far > column:
        place -= READ_WORDS
    while place < end and state[place + R_COLUMN] < column + far:
        other, near = state[place + R_COLUMN], state[place + R_GROUP]
        apart = parameters[BURST]
        if near == group:
            apart = max(apart, parameters[TCCD_L])
        elif near // parameters[GROUPS] == rank:
            apart = max(apart, parameters[TCCD_S])
        else:
            apart += parameters[TURN]
        if other - apart < column < other + apart:
            column = other + apart
        place += READ_WORDS
    return column


@within
def note_read(parameters: Signed, state: Signed, column: Word, group: Word, reads: Word) -> None:
    """Record a read of a channel, and forget the oldest one if there are too many."""
    count, first = state[reads + R_COUNT], _first_read(state, reads)
    if count == parameters[READ_QUEUE]:
        far = _farthest(parameters)
        if column < state[first + R_COLUMN]:
            state[reads + R_FLOOR] = max(state[reads + R_FLOOR], column + far)
            return
        state[reads + R_FLOOR] = max(state[reads + R_FLOOR], state[first + R_COLUMN] + far)
        count -= 1
        first += READ_WORDS
        state[reads + R_FIRST] += 1
    if state[reads + R_FIRST] + count == 2 * parameters[READ_QUEUE]:
        begin = reads + R_HEAD
        for word in range(READ_WORDS * count):
            state[begin + word] = state[first + word]
        first = begin
        state[reads + R_FIRST] = 0
    place = first + READ_WORDS * count
    while place > first and state[place - READ_WORDS + R_COLUMN] > column:
        for word in range(READ_WORDS):
            state[place + word] = state[place + word - READ_WORDS]
        place -= READ_WORDS
    state[place + R_COLUMN], state[place + R_GROUP] = column, group
    state[reads + R_COUNT] = count + 1
