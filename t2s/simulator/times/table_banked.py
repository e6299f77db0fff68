"""The table kernel with shared banks, beside memory by credit or beside a DRAM.

When the tokens of a firing leave that loads from the banks is not known when it fires: until then
they are in their channels with the time ``UNKNOWN``, and whoever waits for them sleeps until then.
The banks are stepped at the start of a cycle, for the one before, as long as anything is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2s.simulator.memory.banked import DECIDES, STORE, UNKNOWN
from t2s.simulator.times.banked_kernel import step
from t2s.simulator.times.banked_layout import (
    ASKED_AT,
    F_AFTER,
    F_FIRED,
    F_ROW,
    F_UNANSWERED,
    F_WAITS,
    FIRING_WORDS,
    FIRINGS,
    FIRINGS_BEGIN,
    FIRINGS_SIZE,
    FIRST_FIRING,
    HELD,
    KEPT,
    LANE_BITS,
    LANES,
    LEFT,
    LEVELS,
    LOADED,
    MADE,
    OUTSTANDING,
    P_BEGIN,
    P_FIRST,
    P_REPLIES,
    P_REPLY,
    P_SIZE,
    P_WAITING,
    PORT,
    PORT_WORDS,
    S_DONE,
    S_FIRED,
    S_FIRING,
    S_LEFT,
    S_SHARER,
    S_WHAT,
    SHARER,
    SLOT,
    STORED,
    UNDECIDED,
    UNDER_WAY,
    VECTOR_AT,
    WORDS,
)
from t2s.simulator.times.table_dram import dram_policy, waited
from t2s.simulator.times.table_kernel import advance_with, credit_policy
from t2s.simulator.times.table_layout import (
    NOW,
    RECEIVES_END,
    USES_END,
    Tables,
    U,
    Word,
    inlined,
    within,
)


@within
def _insert(memory: Any, begin: Word, size: Word, first: Word, count: Word, slot: Word) -> None:
    """Put a vector into a ring, behind those of earlier cycles and of machines before its own.

    Machines that wait for bandwidth fire before the others of a cycle.
    """
    rings, slots = memory.rings, memory.slots
    now, sharer = slots[SLOT * slot + S_FIRED], slots[SLOT * slot + S_SHARER]
    while count > 0:
        at = first + count - 1
        before = rings[begin + (at if at < size else at - size)]
        if slots[SLOT * before + S_FIRED] < now or slots[SLOT * before + S_SHARER] <= sharer:
            break
        at = first + count
        rings[begin + (at if at < size else at - size)] = before
        count -= 1
    at = first + count
    rings[begin + (at if at < size else at - size)] = slot


@within
def _queue(memory: Any, port: Word, slot: Word, what: Word) -> None:
    """Let a vector wait to enter a port, and a load for its answer."""
    ports = memory.ports
    size, begin = ports[port + P_SIZE], ports[port + P_BEGIN]
    _insert(memory, begin, size, ports[port + P_FIRST], ports[port + P_WAITING], slot)
    ports[port + P_WAITING] += 1
    if what & STORE == 0:
        begin += size
        _insert(memory, begin, size, ports[port + P_REPLY], ports[port + P_REPLIES], slot)
        ports[port + P_REPLIES] += 1


@within
def _make(memory: Any, sharer: Word, firing: Word, now: Word) -> Word:
    """Ask with the machine's next vector; what is said of it."""
    record, banks, slots = SHARER * sharer, memory.banks, memory.slots
    sharers, lanes = memory.sharers, banks[LANES]
    at = sharers[record + VECTOR_AT]
    what = memory.vectors[at]
    slot = sharer * banks[KEPT] + sharers[record + MADE] % banks[KEPT]
    sharers[record + VECTOR_AT] += 1
    sharers[record + MADE] += 1
    sharers[record + (STORED if what & STORE else LOADED)] += 1
    vector = SLOT * slot
    slots[vector + S_LEFT] = lanes + 1
    slots[vector + S_FIRED] = now
    slots[vector + S_FIRING] = firing
    slots[vector + S_WHAT] = what
    slots[vector + S_DONE] = UNKNOWN
    memory.ends[slot] = UNKNOWN
    slots[vector + S_SHARER] = sharer
    number = slot << banks[LANE_BITS]
    for lane in range(lanes):
        word = memory.words[at * lanes + lane]
        memory.slot_words[number + lane] = word
        if word >= 0:
            sharers[record + WORDS] += 1
    memory.tally[UNDER_WAY] += 1
    _queue(memory, PORT_WORDS * sharers[record + PORT], slot, what)
    return what


@within
def _wait(tables: Tables, memory: Any, sharer: Word, firing: Word, row: Word) -> None:
    """Keep a firing until its tokens leave."""
    sharers = memory.sharers
    sharers[SHARER * sharer + FIRINGS] += 1
    memory.firings[firing + F_ROW] = np.int64(row)
    memory.firings[firing + F_AFTER] = 0
    for use in range(tables.rows[row + RECEIVES_END], tables.rows[row + USES_END]):
        memory.unsettled[tables.uses[use] >> U(3)] += 1


@inlined
def _place(memory: Any, record: Word, number: Word) -> Word:
    """Where the words are of the waiting firing with this number, of a machine's."""
    sharers = memory.sharers
    at = sharers[record + FIRST_FIRING] + number
    if at >= sharers[record + FIRINGS_SIZE]:
        at -= sharers[record + FIRINGS_SIZE]
    return (sharers[record + FIRINGS_BEGIN] + at) * memory.banks[FIRING_WORDS]


@within
def _ask(
    tables: Tables, memory: Any, sharer: Word, row: Word, now: Word, leaving: Word, held: Word
) -> Word:
    """Ask with the vectors of a firing; when its tokens leave, or ``UNKNOWN``.

    For other memories they leave at ``leaving``, and the next firing may be at ``held``.
    """
    record, sharers, firings = SHARER * sharer, memory.sharers, memory.firings
    firing = _place(memory, record, sharers[record + FIRINGS])
    unanswered = undecided = 0
    for _ in range(memory.asking[sharers[record + ASKED_AT]]):
        what = _make(memory, sharer, firing, now)
        if what & STORE == 0:
            unanswered += 1
            undecided += what & DECIDES == DECIDES
    sharers[record + ASKED_AT] += 1
    sharers[record + UNDECIDED] = undecided
    sharers[record + HELD] = held
    if sharers[record + FIRINGS] == 0 and unanswered == 0:
        sharers[record + LEFT] = max(leaving, sharers[record + LEFT])
        return sharers[record + LEFT]
    if unanswered == 0 and tables.rows[row + RECEIVES_END] == tables.rows[row + USES_END]:
        last = _place(memory, record, sharers[record + FIRINGS] - 1)
        firings[last + F_AFTER] = max(firings[last + F_AFTER], leaving)
        return UNKNOWN
    firings[firing + F_FIRED] = now
    firings[firing + F_UNANSWERED] = unanswered
    _wait(tables, memory, sharer, firing, row)
    return UNKNOWN


@inlined
def _free(memory: Any, sharer: Word) -> Word:
    """The cycle from which a machine may ask with the vectors of its next firing."""
    record, banks, sharers = SHARER * sharer, memory.banks, memory.sharers
    if sharers[record + UNDECIDED] > 0:
        return UNKNOWN
    asked, made = memory.asking[sharers[record + ASKED_AT]], sharers[record + MADE]
    blocking = min(made + asked - banks[OUTSTANDING], made) - 1
    if asked == 0 or blocking < 0:
        return sharers[record + HELD]
    slot = sharer * banks[KEPT] + blocking % banks[KEPT]
    return max(sharers[record + HELD], memory.ends[slot] + 1)


def banked_policy(
    make: Callable[..., tuple[Callable[..., Any], ...]], waits: Callable[..., Word]
) -> tuple[Callable[..., Any], ...]:
    """The five functions of shared banks beside another memory.

    ``make(leaves)`` gives those of the other memory, and ``waits(memory, pe, now, column)`` the
    cycles that the firing that asked last waits for it: by level, and behind that by level of
    those loads that decide.
    """

    @inlined
    def leaves(tables: Tables, memory: Any, pe: Word, row: Word, now: Word, sent: Word) -> Word:
        """When the tokens of a firing leave; those of others than machines here, at ``sent``."""
        sharer, levels = memory.sharer_of[pe], memory.banks[LEVELS]
        if sharer < 0:
            return sent
        record = SHARER * sharer
        firing = _place(memory, record, memory.sharers[record + FIRINGS])
        leaving = held = now
        for level in range(levels):
            wait = waits(memory, pe, now, level)
            memory.firings[firing + F_WAITS + level] = wait
            leaving += wait
            wait = waits(memory, pe, now, levels + level)
            memory.deciding[sharer * levels + level] = wait
            held += wait
        return _ask(tables, memory, sharer, row, now, leaving, held)

    other_begin, other_allows, other_asks, other_serves, other_ends = make(leaves)

    @inlined
    def begin(tables: Tables, memory: Any, now: Word, measured: bool) -> Word:
        """Step the banks, for the cycle before."""
        if memory.tally[UNDER_WAY] > 0:
            step(tables, memory, now - 1)
        return other_begin(tables, memory, now, measured)

    @inlined
    def allows(tables: Tables, memory: Any, pe: Word, now: Word) -> Word:
        """The cycle from which both memories allow the firing."""
        other, sharer = other_allows(tables, memory, pe, now), memory.sharer_of[pe]
        return other if sharer < 0 else max(other, _free(memory, sharer))

    @inlined
    def serves(tables: Tables, memory: Any, now: Word) -> Word:
        """At once, while there is anything in the banks."""
        return now if memory.tally[UNDER_WAY] > 0 else other_serves(tables, memory, now)

    @inlined
    def ends(tables: Tables, memory: Any, last: Word) -> None:
        """What is in the banks when all is done is served then."""
        now = tables.clock[NOW] - 1
        while memory.tally[UNDER_WAY] > 0:
            step(tables, memory, now)
            now += 1
        other_ends(tables, memory, last)

    return begin, allows, other_asks, serves, ends


@inlined
def _nothing(memory: Any, pe: Word, now: Word, column: Word) -> Word:
    """Where the other memory has a constant latency, it is part of the channels'."""
    return np.int64(0)


advance = advance_with(*banked_policy(credit_policy, _nothing))


# The table kernel with shared banks beside a DRAM.

advance_with_dram = advance_with(*banked_policy(dram_policy, waited))
