"""Policies of the table kernel for a DRAM and for shared banks.

A PE whose firing would exceed the outstanding requests sleeps until one of them is done; completion
times are known when requests are sent, so a unit never waits for an unknown event.

For a firing that loads from the banks, the departure time of its tokens is unknown when it fires:
they are in their channels with the time ``UNKNOWN``, and PEs that wait for them sleep until it is
known.  The banks are stepped at the start of a cycle, for the previous one, while they are busy.

``memory.dram``, ``memory.units`` and ``memory.banks`` have the models of the memories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2s.llvm.operands import Word, inlined, within
from t2s.simulator.memory.banks import (
    CHANGED,
    F_TAG,
    IS_CHANGED,
    PE,
    SHARER,
    UNDER_WAY,
    UNKNOWN,
    answered,
    asks_beside,
    leave,
    no_wait,
    step,
)
from t2s.simulator.memory.banks import may_ask as machine_may_ask
from t2s.simulator.memory.units import DramUnits, ask, may_ask, waited, write_rest
from t2s.simulator.report.counters import FOREVER
from t2s.simulator.times.table_kernel import advance_with, credit_policy
from t2s.simulator.times.table_layout import (
    BEGIN,
    END,
    LAST_STORE,
    LATENCY,
    NOW,
    RECEIVER,
    RECEIVES_END,
    USES_END,
    WRITE,
    Tables,
    U,
)


@inlined
def _begin(tables: Tables, memory: DramUnits, now: Word, measured: bool) -> Word:
    """No PE waits to be served by memory."""
    return 0


@inlined
def _allows(tables: Tables, memory: DramUnits, pe: Word, now: Word) -> Word:
    """The first cycle in which the unit may send the requests of its firing."""
    return may_ask(memory, pe)


@inlined
def _asks(tables: Tables, memory: DramUnits, pe: Word, row: Word, now: Word) -> Word:
    """The departure time of a firing's tokens; those of a unit wait for their lines."""
    unit = memory.unit_of[pe]
    return ask(memory, unit, now) if unit >= 0 else now


@inlined
def _serves(tables: Tables, memory: DramUnits, now: Word) -> Word:
    """No PE waits to be served by memory."""
    return FOREVER


@inlined
def _ends(tables: Tables, memory: DramUnits, last: Word) -> None:
    """At the end, write dirty bursts and write queues."""
    tables.clock[LAST_STORE] = max(tables.clock[LAST_STORE], write_rest(memory, last))


def dram_policy(leaves: Callable[..., Word]) -> tuple[Callable[..., Any], ...]:
    """The five functions of a DRAM, combined with another memory that delays tokens (``leaves``).

    ``leaves`` is called for each firing with the DRAM's departure time, as by ``credit_policy``.
    """

    @inlined
    def asks(tables: Tables, memory: DramUnits, pe: Word, row: Word, now: Word) -> Word:
        """The departure time of a firing's tokens."""
        return leaves(tables, memory, pe, row, now, _asks(tables, memory, pe, row, now))

    return _begin, _allows, asks, _serves, _ends


@inlined
def _wake(tables: Tables, pe: Word, time: Word) -> None:
    """Wake a PE that waits for an event at an unknown time."""
    if UNKNOWN <= tables.wake[pe] < FOREVER:
        tables.wake[pe] = time


@within
def _settle(tables: Tables, memory: Any, row: Word, leaves: Word, now: Word) -> None:
    """Set the departure time of a firing's tokens: the first ones for which it was unknown."""
    elements = tables.elements
    for use in range(tables.rows[row + RECEIVES_END], tables.rows[row + USES_END]):
        element = tables.uses[use]
        number = element >> U(3)
        begin, end = elements[element + BEGIN], elements[element + END]
        place = np.int64(elements[element + WRITE]) - memory.unsettled[number]
        if place < np.int64(begin):
            place += np.int64(end - begin)
        memory.unsettled[number] -= 1
        tables.ring[place] = leaves + np.int64(elements[element + LATENCY])
        _wake(tables, elements[element + RECEIVER], now + 1)


@within
def _step(tables: Tables, memory: Any, now: Word) -> None:
    """One cycle of the banks, after all firings in it."""
    step(memory, now)
    for number in range(memory.tally[CHANGED]):
        sharer = memory.changed[number]
        memory.sharers[SHARER * sharer + IS_CHANGED] = 0
        _wake(tables, memory.sharers[SHARER * sharer + PE], now + 1)
        at = answered(memory, sharer)
        while at >= 0:
            _settle(tables, memory, U(memory.firings[at + F_TAG]), leave(memory, sharer, at), now)
            at = answered(memory, sharer)
    memory.tally[CHANGED] = 0


def banked_policy(
    make: Callable[..., tuple[Callable[..., Any], ...]], waits: Callable[..., Word]
) -> tuple[Callable[..., Any], ...]:
    """The five functions of shared banks, combined with another memory.

    ``make(leaves)`` gives those of the other memory, and ``waits`` is as in ``asks_beside``.
    """
    ask_banks = asks_beside(waits)

    @inlined
    def leaves(tables: Tables, memory: Any, pe: Word, row: Word, now: Word, sent: Word) -> Word:
        """The departure time of a firing's tokens; ``sent`` unless a machine uses the banks."""
        if memory.sharer_of[pe] < 0:
            return sent
        first, last = tables.rows[row + RECEIVES_END], tables.rows[row + USES_END]
        leaving = ask_banks(memory, pe, np.int64(row), first != last, now)
        if leaving == UNKNOWN:
            for use in range(first, last):
                memory.unsettled[tables.uses[use] >> U(3)] += 1
        return leaving

    other_begin, other_allows, other_asks, other_serves, other_ends = make(leaves)

    @inlined
    def begin(tables: Tables, memory: Any, now: Word, measured: bool) -> Word:
        """Step the banks for the previous cycle."""
        if memory.tally[UNDER_WAY] > 0:
            _step(tables, memory, now - 1)
        return other_begin(tables, memory, now, measured)

    @inlined
    def allows(tables: Tables, memory: Any, pe: Word, now: Word) -> Word:
        """The first cycle in which both memories allow the firing."""
        other, sharer = other_allows(tables, memory, pe, now), memory.sharer_of[pe]
        return other if sharer < 0 else max(other, machine_may_ask(memory, sharer))

    @inlined
    def serves(tables: Tables, memory: Any, now: Word) -> Word:
        """Now, while the banks are busy."""
        return now if memory.tally[UNDER_WAY] > 0 else other_serves(tables, memory, now)

    @inlined
    def ends(tables: Tables, memory: Any, last: Word) -> None:
        """At the end, serve the remaining requests of the banks."""
        now = tables.clock[NOW] - 1
        while memory.tally[UNDER_WAY] > 0:
            _step(tables, memory, now)
            now += 1
        other_ends(tables, memory, last)

    return begin, allows, other_asks, serves, ends


advance_with_dram = advance_with(_begin, _allows, _asks, _serves, _ends)
"""The table kernel with a DRAM."""

advance_with_banks = advance_with(*banked_policy(credit_policy, no_wait))
"""The table kernel with shared banks and a memory of shared bandwidth."""

advance_with_banks_and_dram = advance_with(*banked_policy(dram_policy, waited))
"""The table kernel with shared banks and a DRAM."""
