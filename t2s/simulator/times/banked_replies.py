"""What follows from vectors whose words are served: answers, tokens that leave, free places.

The compiled form of the second half of ``memory/banked_port.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s.simulator.memory.banked_port import UNKNOWN
from t2s.simulator.memory.banked_vectors import DECIDES, LEVEL, STORE
from t2s.simulator.report.tally import FOREVER
from t2s.simulator.times.banked_layout import (
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
    LAST_DONE,
    LAST_STORED,
    LATENCY,
    LEFT,
    LEVELS,
    MADE,
    P_BEGIN,
    P_LAST,
    P_REPLIES,
    P_REPLY,
    P_SIZE,
    PE,
    POPPED,
    PORT,
    PORT_WORDS,
    S_DONE,
    S_FIRED,
    S_FIRING,
    S_LEFT,
    S_SERVED,
    S_SHARER,
    S_WHAT,
    SHARER,
    SLOT,
    UNDECIDED,
    UNDER_WAY,
)
from t2s.simulator.times.compiled import inlined, within
from t2s.simulator.times.table_layout import (
    BEGIN,
    END,
    RECEIVER,
    RECEIVES_END,
    USES_END,
    WRITE,
    Tables,
    U,
    Word,
)
from t2s.simulator.times.table_layout import (
    LATENCY as CHANNEL_LATENCY,
)


@inlined
def _wake(tables: Tables, pe: Word, time: Word) -> None:
    """Let a PE that waits for something unknown look again."""
    if UNKNOWN <= tables.wake[pe] < FOREVER:
        tables.wake[pe] = time


@within
def _settle(tables: Tables, memory: Any, sharer: Word, now: Word) -> None:
    """Say when the tokens of firings leave whose loads are answered, and those of all before."""
    record = SHARER * sharer
    sharers, firings, ring = memory.sharers, memory.firings, tables.ring
    elements = tables.elements
    while sharers[record + FIRINGS] > 0:
        at = sharers[record + FIRINGS_BEGIN] + sharers[record + FIRST_FIRING]
        at *= memory.banks[FIRING_WORDS]
        if firings[at + F_UNANSWERED] > 0:
            return
        leaves = firings[at + F_FIRED]
        for level in range(memory.banks[LEVELS]):
            leaves += firings[at + F_WAITS + level]
        leaves = max(leaves, sharers[record + LEFT])
        sharers[record + LEFT] = max(leaves, firings[at + F_AFTER])
        row = U(firings[at + F_ROW])
        for use in range(tables.rows[row + RECEIVES_END], tables.rows[row + USES_END]):
            element = tables.uses[use]
            number = element >> U(3)
            begin, end = elements[element + BEGIN], elements[element + END]
            place = np.int64(elements[element + WRITE]) - memory.unsettled[number]
            if place < np.int64(begin):
                place += np.int64(end - begin)
            memory.unsettled[number] -= 1
            ring[place] = leaves + np.int64(elements[element + CHANNEL_LATENCY])
            _wake(tables, elements[element + RECEIVER], now + 1)
        first = sharers[record + FIRST_FIRING] + 1
        sharers[record + FIRST_FIRING] = 0 if first == sharers[record + FIRINGS_SIZE] else first
        sharers[record + FIRINGS] -= 1


@within
def _complete(tables: Tables, memory: Any, slot: Word, time: Word, now: Word) -> None:
    """A vector is answered, or stored: those done, in order, free places of its machine."""
    slots, sharers = memory.slots, memory.sharers
    slots[SLOT * slot + S_DONE] = time
    sharer = slots[SLOT * slot + S_SHARER]
    record, kept = SHARER * sharer, memory.banks[KEPT]
    popped, made = sharers[record + POPPED], sharers[record + MADE]
    while popped < made:
        at = sharer * kept + popped % kept
        done = slots[SLOT * at + S_DONE]
        if done >= UNKNOWN:
            break
        done = max(done, sharers[record + LAST_DONE])
        sharers[record + LAST_DONE] = done
        memory.ends[at] = done
        popped += 1
    sharers[record + POPPED] = popped
    _wake(tables, sharers[record + PE], now + 1)


@within
def _answer(tables: Tables, memory: Any, slot: Word, time: Word, now: Word) -> None:
    """A load is answered."""
    slots, sharers, firings, deciding = (
        memory.slots,
        memory.sharers,
        memory.firings,
        memory.deciding,
    )
    at = SLOT * slot
    sharer, fired, firing = slots[at + S_SHARER], slots[at + S_FIRED], slots[at + S_FIRING]
    record, levels = SHARER * sharer, memory.banks[LEVELS]
    what = slots[at + S_WHAT]
    wait, level = time - fired, what // LEVEL
    sharers[record + LATENCY] += wait
    firings[firing + F_UNANSWERED] -= 1
    firings[firing + F_WAITS + level] = max(wait, firings[firing + F_WAITS + level])
    if what & DECIDES:
        sharers[record + UNDECIDED] -= 1
        deciding[sharer * levels + level] = max(wait + 1, deciding[sharer * levels + level])
        if sharers[record + UNDECIDED] == 0:
            held = fired
            for level in range(levels):
                held += deciding[sharer * levels + level]
            sharers[record + HELD] = held
    _complete(tables, memory, slot, time, now)
    _settle(tables, memory, sharer, now)


@within
def finish(tables: Tables, memory: Any, slot: Word, time: Word, now: Word) -> None:
    """All words of a vector are served; a load is answered at ``time``, or later."""
    slots, ports, rings = memory.slots, memory.ports, memory.rings
    memory.tally[UNDER_WAY] -= 1
    if slots[SLOT * slot + S_WHAT] & STORE:
        memory.tally[LAST_STORED] = now
        _complete(tables, memory, slot, now, now)
        return
    slots[SLOT * slot + S_SERVED] = time
    port = PORT_WORDS * memory.sharers[SHARER * slots[SLOT * slot + S_SHARER] + PORT]
    begin = ports[port + P_BEGIN] + ports[port + P_SIZE]
    while ports[port + P_REPLIES] > 0:
        first = rings[begin + ports[port + P_REPLY]]
        if slots[SLOT * first + S_LEFT] > 0:
            return
        answered = max(ports[port + P_LAST], slots[SLOT * first + S_SERVED])
        ports[port + P_LAST] = answered
        following = ports[port + P_REPLY] + 1
        ports[port + P_REPLY] = 0 if following == ports[port + P_SIZE] else following
        ports[port + P_REPLIES] -= 1
        _answer(tables, memory, first, answered, now)
