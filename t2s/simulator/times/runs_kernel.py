"""The compiled kernel of runs: the times of a node's firings, many at once.

A *run* of tokens is a number of tokens of which each is ready a cycle after the one before, and a
run of firings is a number of firings by the same rule.  If all channels have space for all their
tokens, a firing waits only for tokens and for the end of the interval before it.  So a *piece*, as
many firings of a run as all runs of tokens that it takes from last, begins in the latest of the
cycles in which the heads are ready, and from then on there is a firing in each cycle: the heads lie
on lines of the same slope, and none of them is above the first firing.  Its tokens are runs again.
With an interval of more than a cycle a piece is a single firing.

Nothing branches on the rule of a firing: every code has masks, all ones for a head that is needed,
a token that is taken or sent, else zero.

Stalls: what a piece waits for a head is how much later than the interval and all heads before it
this head is ready, as in ``run_ahead_emit``; only the first firing of a piece waits.

``runs_layout`` has the tables and the entry points.
"""

from __future__ import annotations

import numpy as np

from t2s.llvm.operands import Signed, Word
from t2s.simulator.times.rounds_kernel import (
    begin,
    enter,
    go_on,
    learn,
    recalled,
    repeat,
    slot_of,
)
from t2s.simulator.times.runs_layout import (
    AT,
    BEGIN,
    DURATION,
    EARLIEST,
    END,
    FIRED,
    FIRINGS,
    FIRST,
    HEAD,
    INTERVAL,
    IS_ROUND,
    KNOWN,
    LAST_STORE,
    LATENCY,
    LEFT,
    LONGEST,
    NEXT,
    READ,
    REPEATS,
    SEALED,
    SHIFT,
    STARVED,
    STORED,
    STRETCH,
    STRETCH_WORDS,
    TIMES,
    USED,
    WRAP,
    WRITTEN,
    RunNode,
)


def visit(node: RunNode, channels: Signed, ring: Signed, patterns: Signed) -> Word:
    """Fire a node until a token is missing, or a ring is full; return the number of pieces.

    Runs that its receivers have seen do not grow any more: a visit begins new ones.
    """
    state, trace, steps, sends = node.state, node.trace, node.steps, node.sends
    at, used, earliest = state[AT], state[USED], state[EARLIEST]
    fired, last_store, interval = state[FIRED], state[LAST_STORE], state[INTERVAL]
    stretch, repeats, shift = state[STRETCH], state[REPEATS], state[SHIFT]
    codes = (1 << shift) - 1
    allowed = LONGEST
    for out in range(len(sends)):
        channel = sends[out]
        held = channels[channel + WRITTEN] - channels[channel + READ]
        allowed = min(allowed, channels[channel + WRAP] + 1 - held)
        channels[channel + NEXT] = SEALED
    for step in range(len(steps)):
        if channels[steps[step] + LEFT] == 0:
            enter(channels, ring, patterns, steps[step])
    pieces: Word = np.int64(0)
    learning, of_round, since = False, np.int64(0), np.int64(0)
    first, stop = _bounds(node, stretch)
    while pieces < allowed and at < stop:
        word = trace[at]
        code = word & codes
        left = (word >> shift) - used
        count = left if interval == 1 else 1
        start = earliest
        blocked: Word = np.int64(0)
        row = code * len(steps)
        for step in range(len(steps)):
            channel, need, take = steps[step], node.needs[row + step], node.takes[row + step]
            blocked |= need & (channels[channel + LEFT] - 1)
            start = max(start, channels[channel + HEAD] & need)
            count = min(count, channels[channel + LEFT] & take | LONGEST & ~take)
            node.reached[step] = start
        if blocked < 0:
            break
        number: Word = np.int64(-1)
        if at == first and used == 0:
            number = recalled(node, channels, ring, patterns, start)
        known = number >= 0 and number < state[KNOWN]
        before = earliest if fired > 0 else LONGEST
        for step in range(len(steps)):
            reached = node.reached[step]
            channels[steps[step] + STARVED] += max(reached - before, 0)
            before = max(before, reached)
        if fired == 0:
            state[FIRST] = start
        if known:
            place = repeat(node, channels, ring, patterns, number, start)
            if node.known[place + STORED] >= 0:
                last_store = start + node.known[place + STORED]
            earliest = start + node.known[place + DURATION]
            fired += state[FIRINGS]
            at = stop
            learning = False
        else:
            if number >= 0:
                begin(node, channels)
                learning, of_round, since = True, pieces, start
            for step in range(len(steps)):
                channel, take = steps[step], node.takes[row + step]
                taken = count & take
                channels[channel + HEAD] += taken
                channels[channel + LEFT] -= taken
                if taken != 0 and channels[channel + LEFT] == 0:
                    go_on(channels, ring, patterns, channel)
            row = code * len(sends)
            for out in range(len(sends)):
                if node.puts[row + out] != 0:
                    channel = sends[out]
                    ready, written = (
                        start + channels[channel + LATENCY],
                        channels[channel + WRITTEN],
                    )
                    if ready == channels[channel + NEXT]:
                        ring[slot_of(channels, channel, written - 1) + 1] += count
                    else:
                        slot = slot_of(channels, channel, written)
                        ring[slot] = ready
                        ring[slot + 1] = count
                        channels[channel + WRITTEN] = written + 1
                    channels[channel + NEXT] = ready + count
            if node.stores[code] != 0:
                last_store = start + count - 1
            earliest = start + count * interval
            fired += count
            over = count == left
            at = at + 1 if over else at
            used = 0 if over else used + count
        pieces += 1
        if at == stop:
            if learning:
                learn(
                    node,
                    channels,
                    ring,
                    patterns,
                    since,
                    earliest,
                    last_store,
                    pieces - of_round,
                )
                learning = False
            repeats -= 1
            if repeats == 0:
                stretch += STRETCH_WORDS
                if stretch < len(node.stretches):
                    repeats = node.stretches[stretch + TIMES]
            first, stop = _bounds(node, stretch)
            if stretch < len(node.stretches):
                at = node.stretches[stretch + BEGIN]
    state[AT], state[USED], state[EARLIEST] = at, used, earliest
    state[FIRED], state[LAST_STORE] = fired, last_store
    state[STRETCH], state[REPEATS] = stretch, repeats
    return pieces


def _bounds(node: RunNode, stretch: Word) -> tuple[Word, Word]:
    """Where a stretch begins, -1 unless it is a round that may be known, and where it ends.

    After the last stretch, all is over.
    """
    if stretch == len(node.stretches):
        return -1, 0
    is_round = node.stretches[stretch + IS_ROUND] != 0 and node.state[KNOWN] >= 0
    first = node.stretches[stretch + BEGIN] if is_round else -1
    return first, node.stretches[stretch + END]
