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
from t2s.simulator.times.runs_layout import (
    AT,
    BASE,
    EARLIEST,
    FIRED,
    FIRST,
    INTERVAL,
    LAST_STORE,
    LATENCY,
    LONGEST,
    NEXT,
    READ,
    SEALED,
    SHIFT,
    STARVED,
    TAKEN,
    USED,
    WRAP,
    WRITTEN,
    RunNode,
)


def visit(node: RunNode, channels: Signed, ring: Signed) -> Word:
    """Fire a node until a token is missing, or a ring is full; return the number of pieces.

    Runs that its receivers have seen do not grow any more: a visit begins new ones.
    """
    state, trace, steps, sends = node.state, node.trace, node.steps, node.sends
    at, used, earliest = state[AT], state[USED], state[EARLIEST]
    fired, last_store, interval = state[FIRED], state[LAST_STORE], state[INTERVAL]
    shift, end = state[SHIFT], len(trace)
    codes = (1 << shift) - 1
    allowed = LONGEST
    for out in range(len(sends)):
        channel = sends[out]
        held = channels[channel + WRITTEN] - channels[channel + READ]
        allowed = min(allowed, channels[channel + WRAP] + 1 - held)
        channels[channel + NEXT] = SEALED
    pieces: Word = np.int64(0)
    while pieces < allowed and at < end:
        word = trace[at]
        code = word & codes
        left = (word >> shift) - used
        count = left if interval == 1 else 1
        start = earliest
        blocked: Word = np.int64(0)
        row = code * len(steps)
        for step in range(len(steps)):
            channel, need, take = steps[step], node.needs[row + step], node.takes[row + step]
            read = channels[channel + READ]
            slot = channels[channel + BASE] + 2 * (read & channels[channel + WRAP])
            taken = channels[channel + TAKEN]
            blocked |= need & (channels[channel + WRITTEN] - read - 1)
            start = max(start, (ring[slot] + taken) & need)
            count = min(count, (ring[slot + 1] - taken) & take | LONGEST & ~take)
            node.reached[step] = start
        if blocked < 0:
            break
        before = earliest if fired > 0 else LONGEST
        for step in range(len(steps)):
            channel, take = steps[step], node.takes[row + step]
            read = channels[channel + READ]
            slot = channels[channel + BASE] + 2 * (read & channels[channel + WRAP])
            taken = channels[channel + TAKEN] + (count & take)
            whole = take != 0 and taken == ring[slot + 1]
            channels[channel + READ] = read + 1 if whole else read
            channels[channel + TAKEN] = 0 if whole else taken
            reached = node.reached[step]
            channels[channel + STARVED] += max(reached - before, 0)
            before = max(before, reached)
        row = code * len(sends)
        for out in range(len(sends)):
            if node.puts[row + out] != 0:
                channel = sends[out]
                ready, written = start + channels[channel + LATENCY], channels[channel + WRITTEN]
                if ready == channels[channel + NEXT]:
                    slot = channels[channel + BASE] + 2 * ((written - 1) & channels[channel + WRAP])
                    ring[slot + 1] += count
                else:
                    slot = channels[channel + BASE] + 2 * (written & channels[channel + WRAP])
                    ring[slot] = ready
                    ring[slot + 1] = count
                    channels[channel + WRITTEN] = written + 1
                channels[channel + NEXT] = ready + count
        if fired == 0:
            state[FIRST] = start
        if node.stores[code] != 0:
            last_store = start + count - 1
        earliest = start + count * interval
        fired += count
        over = count == left
        at = at + 1 if over else at
        used = 0 if over else used + count
        pieces += 1
    state[AT], state[USED], state[EARLIEST] = at, used, earliest
    state[FIRED], state[LAST_STORE] = fired, last_store
    return pieces
