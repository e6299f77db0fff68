"""The table kernel where units share the bandwidth of memory, or memory is unlimited.

The bandwidth is served in the order of a queue that a PE joins in the first cycle in which its
interval and channels allow its firing, PEs of one cycle in instance order; in the queue a PE
sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2s.simulator.report.tally import FOREVER
from t2s.simulator.times.compiled import compiled, inlined
from t2s.simulator.times.table_kernel import RECORD_SHIFT, advance_with, fire
from t2s.simulator.times.table_layout import (
    ACCESS,
    CREDIT,
    CREDIT_AT,
    HEAD,
    LAST_STORE,
    QUEUED,
    ROW,
    STORES,
    Credit,
    Signed,
    Tables,
    U,
    Word,
)

_ACCESS_SHIFT = U(2)


@inlined
def _earn(clock: Signed, rate: Word, now: Word) -> None:
    """Bring the memory credit up to this cycle; it never exceeds one cycle's worth."""
    passed = now - clock[CREDIT_AT]
    if passed > (rate - clock[CREDIT]) // rate:
        clock[CREDIT] = rate
    else:
        clock[CREDIT] += passed * rate
    clock[CREDIT_AT] = now


@inlined
def _note_store(tables: Tables, row: Word, now: Word) -> None:
    if tables.rows[row + ACCESS] & STORES:
        tables.clock[LAST_STORE] = now


@inlined
def _at_once(tables: Tables, memory: Credit, pe: Word, row: Word, now: Word, sent: Word) -> Word:
    """Nothing else delays the tokens of a firing."""
    return sent


@inlined
def _allows(tables: Tables, memory: Credit, pe: Word, now: Word) -> Word:
    """A PE may ask at any time."""
    return np.int64(0)


@inlined
def _serves(tables: Tables, memory: Credit, now: Word) -> Word:
    """When there is credit for the head of the queue."""
    if tables.clock[QUEUED] > 0:
        return now + (-tables.clock[CREDIT]) // memory.rate
    return FOREVER


@inlined
def _ends(tables: Tables, memory: Credit, last: Word) -> None:
    """Nothing is left to do."""


def credit_policy(leaves: Callable[..., Word]) -> tuple[Callable[..., Any], ...]:
    """The five functions of this memory.

    ``leaves(tables, memory, pe, row, now, sent)`` is told of each firing that it serves, and says
    when its tokens leave.
    """

    @compiled
    def serve(tables: Tables, memory: Credit, now: Word, measured: bool) -> Word:
        """Fire the PEs at the head of the queue while there is credit; return how many."""
        clock, queue = tables.clock, memory.queue
        fired = 0
        while clock[QUEUED] > 0 and clock[CREDIT] > 0:
            pe = queue[U(clock[HEAD])]
            clock[HEAD] = clock[HEAD] + 1 if clock[HEAD] + 1 < len(queue) else 0
            clock[QUEUED] -= 1
            record = pe << RECORD_SHIFT
            row = tables.pes[record + ROW]
            clock[CREDIT] -= np.int64(tables.rows[row + ACCESS] >> _ACCESS_SHIFT) * memory.unit
            _note_store(tables, row, now)
            sent = leaves(tables, memory, pe, row, now, now)
            fire(tables, pe, record, row, now, sent, measured)
            fired += 1
        return fired

    @inlined
    def begin(tables: Tables, memory: Credit, now: Word, measured: bool) -> Word:
        """Earn credit, and serve those who wait."""
        fired = 0
        if memory.rate > 0:
            _earn(tables.clock, memory.rate, now)
            if tables.clock[QUEUED] > 0:
                fired = serve(tables, memory, now, measured)
        return fired

    @inlined
    def asks(tables: Tables, memory: Credit, pe: Word, row: Word, now: Word) -> Word:
        """Memory serves the access now, and takes the credit; else the PE joins the queue."""
        clock, queue = tables.clock, memory.queue
        access = np.int64(tables.rows[row + ACCESS] >> _ACCESS_SHIFT)
        cost = access * memory.unit if memory.rate > 0 else np.int64(0)
        if cost > 0:
            if clock[QUEUED] > 0 or clock[CREDIT] <= 0:
                at = clock[HEAD] + clock[QUEUED]
                queue[U(at if at < len(queue) else at - len(queue))] = pe
                clock[QUEUED] += 1
                return FOREVER
            clock[CREDIT] -= cost
        _note_store(tables, row, now)
        return leaves(tables, memory, pe, row, now, now)

    return begin, _allows, asks, _serves, _ends


advance = advance_with(*credit_policy(_at_once))
