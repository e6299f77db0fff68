"""The compiled model of a DRAM: the meaning of ``memory/model.py`` on ``dram_tables``.

One function places one request; nothing is allocated.
"""

from __future__ import annotations

import numpy as np

from t2s.simulator.memory.open_bursts import Request
from t2s.simulator.memory.overtaking import NEVER
from t2s.simulator.times.compiled import compiled, within
from t2s.simulator.times.dram_layout import (
    ACTIVATION_WORDS,
    B_ACTIVATE,
    B_COLUMN,
    B_PRECHARGE,
    BANK_OF,
    BANKS,
    BATCH,
    BURST,
    C_BUS,
    C_COLUMN,
    C_USER,
    CHANNEL_OF,
    CHANNELS,
    CL,
    CONFLICTS,
    CONTROLLERS,
    COUNT_WORDS,
    CWL,
    DUE,
    FORWARDED,
    FOUR,
    GROUP_OF,
    GROUPS,
    HITS,
    JOINED,
    MISSES,
    O_BURST,
    O_CHANGED,
    O_END,
    OLDEST,
    OPEN_BURSTS,
    OPEN_WORDS,
    PIECES,
    Q_DRAINED,
    Q_PUT,
    Q_WRITTEN,
    QUEUE,
    QUEUE_WORDS,
    R_COUNT,
    R_FIRST,
    R_FLOOR,
    R_WRITTEN,
    RANK_OF,
    RANK_WORDS,
    RANKS,
    READ_QUEUE,
    READS,
    REFRESHES,
    ROTATE,
    ROW,
    ROW_OF,
    S_ACTIVATE,
    S_READ,
    S_WRITE,
    TCCD_L,
    TCCD_S,
    TFAW,
    TRAS,
    TRCD,
    TREFI,
    TRFC,
    TRP,
    TRRD_L,
    TRRD_S,
    TRTP,
    TURN,
    TWR,
    TWTR_L,
    TWTR_S,
    WRITES,
)
from t2s.simulator.times.dram_open import forget_burst, known_place, open_burst
from t2s.simulator.times.dram_overtaking import (
    activation_between,
    note_activation,
    note_read,
    read_between,
    read_room,
)
from t2s.simulator.times.table_layout import Signed, Word

READ, WRITE, UPDATE = int(Request.READ), int(Request.WRITE), int(Request.UPDATE)


@within
def _refresh(
    parameters: Signed, state: Signed, counts: Signed, channel: Word, first: Word, rank: Word,
    clock: Word,
) -> None:  # fmt: skip
    """Refresh a rank whose first bank is at ``first``; while it idles, as often as is due."""
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
    """Where the write queue of a channel is."""
    ranks = parameters[CHANNELS] * parameters[RANKS]
    groups = ranks * parameters[GROUPS]
    before = 4 * groups * (parameters[BANKS] + 1) + RANK_WORDS * ranks + 4 * parameters[CHANNELS]
    return before + channel * (QUEUE_WORDS + 2 * parameters[QUEUE])


@within
def _controllers(parameters: Signed) -> Word:
    """Where the controllers are."""
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
    """When the bank can open another row; ``at_activations`` is -1 without a read queue."""
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
    """See ``DramModel._access``."""
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
    """See ``DramModel._write``."""
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
    """See ``DramModel._write_back``."""
    queue = _queue_of(parameters, _locate(parameters, burst)[0])
    end = _write(parameters, state, counts, clock, burst)
    state[queue + Q_WRITTEN] = max(state[queue + Q_WRITTEN], end)


@compiled
def flush(parameters: Signed, state: Signed, counts: Signed, clock: Word) -> Word:
    """See ``DramModel.flush``."""
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
    """See ``DramModel.access``."""
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
    """See ``DramModel._read``."""
    if parameters[QUEUE]:
        channel = _locate(parameters, burst)[0]
        queue = _queue_of(parameters, channel)
        for number in range(state[queue + Q_DRAINED], state[queue + Q_PUT]):
            if state[queue + QUEUE_WORDS + number % parameters[QUEUE]] == burst:
                counts[COUNT_WORDS * channel + FORWARDED] += 1
                return clock
    return _access(parameters, state, counts, clock, burst, np.int64(0))


@compiled
def access_all(
    parameters: Signed, state: Signed, counts: Signed, clocks: Signed, bursts: Signed,
    requests: Signed, ends: Signed,
) -> None:  # fmt: skip
    """``access`` for a list of requests in the order of their clocks."""
    for number in range(len(clocks)):
        ends[number] = access(
            parameters, state, counts, clocks[number], bursts[number], requests[number]
        )
