"""The table kernel where units ask a DRAM for lines.

A PE whose firing would have too many requests under way sleeps until one of them is done; the times
of all requests are known when they are made, so a unit never waits for something unknown, and
``units`` has the requests of the firings to come ready, a stretch at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2s.simulator.memory.model import Request
from t2s.simulator.report.counters import FOREVER
from t2s.simulator.times.dram_kernel import access, flush
from t2s.simulator.times.table_kernel import advance_with
from t2s.simulator.times.table_layout import (
    ASKED_AT,
    BURSTS,
    DONE,
    DOWN,
    HELD,
    KEPT,
    LAST_STORE,
    LATENCIES,
    LEFT,
    LEVELS,
    OUTSTANDING,
    PATH,
    READS,
    RECORD,
    REQUEST_AT,
    UP,
    WRITES,
    DramUnits,
    Signed,
    Tables,
    Word,
    inlined,
    within,
)

WRITE, UPDATE = int(Request.WRITE), int(Request.UPDATE)


@within
def _scaled(time: Word, up: Word, down: Word) -> Word:
    """``time * up / down`` rounded up, without overflow."""
    return time // down * up + -(-(time % down) * up // down)


@inlined
def _begin(tables: Tables, memory: DramUnits, now: Word, measured: bool) -> Word:
    """Nobody waits for memory to be served."""
    return 0


@inlined
def _allows(tables: Tables, memory: DramUnits, pe: Word, now: Word) -> Word:
    """The cycle from which the unit may make the requests of its firing."""
    unit = memory.unit_of[pe]
    if unit < 0:
        return np.int64(0)
    record = RECORD * unit
    held = memory.units[record + HELD]
    asked = np.int64(memory.asked[memory.units[record + ASKED_AT]])
    if asked == 0:
        return held
    made = memory.units[record + READS] + memory.units[record + WRITES]
    blocking = min(made + asked - memory.ways[OUTSTANDING], made) - 1
    kept = memory.ways[KEPT]
    return max(held, memory.done[unit * kept + blocking % kept]) if blocking >= 0 else held


@within
def _ask(clock: Signed, memory: DramUnits, unit: Word, now: Word) -> Word:
    """Make the requests of a firing; return when those that it needs are done, or now.

    A request that is no longer kept is done.
    """
    units, ways, done = memory.units, memory.ways, memory.done
    record = RECORD * unit
    asked = memory.asked[units[record + ASKED_AT]]
    firing = units[record + ASKED_AT]
    bursts, first = ways[BURSTS], unit * ways[KEPT]
    at = units[record + REQUEST_AT]
    arrival = _scaled(now, ways[UP], ways[DOWN])
    for number in range(asked):
        line, request = memory.requests[at + number] >> 2, memory.requests[at + number] & 3
        finished = units[record + DONE]
        for burst in range(line * bursts, (line + 1) * bursts):
            end = access(memory.parameters, memory.state, memory.counts, arrival, burst, request)
            finished = max(finished, _scaled(end, ways[DOWN], ways[UP]) + ways[PATH])
        made = units[record + READS] + units[record + WRITES]
        done[first + made % ways[KEPT]] = finished
        units[record + DONE] = finished
        units[record + LATENCIES] += finished - now
        if request != WRITE and request != UPDATE:
            units[record + READS] += 1
        else:
            units[record + WRITES] += 1
            clock[LAST_STORE] = max(clock[LAST_STORE], finished)
    units[record + REQUEST_AT] = at + asked
    units[record + ASKED_AT] += 1
    made = units[record + READS] + units[record + WRITES]
    if ways[LEVELS] == 0:
        needed = memory.needed[firing]
        if needed < 0 or needed < made - ways[KEPT]:
            return now
        return max(now, done[first + needed % ways[KEPT]])
    leaving = held = now
    for column in range(2 * ways[LEVELS]):
        needed = memory.needed[2 * firing * ways[LEVELS] + column]
        if needed >= 0 and needed >= made - ways[KEPT]:
            wait = max(np.int64(0), done[first + needed % ways[KEPT]] - now)
            if column < ways[LEVELS]:
                leaving += wait
            else:
                held += wait
    units[record + LEFT] = max(leaving, units[record + LEFT])
    units[record + HELD] = held
    return units[record + LEFT]


@inlined
def waited(memory: DramUnits, pe: Word, now: Word, column: Word) -> Word:
    """What the firing that has just asked waits for in a column of ``needed``: cycles."""
    unit = memory.unit_of[pe]
    if unit < 0:
        return np.int64(0)
    record, kept = RECORD * unit, memory.ways[KEPT]
    firing = memory.units[record + ASKED_AT] - 1
    needed = memory.needed[2 * firing * memory.ways[LEVELS] + column]
    made = memory.units[record + READS] + memory.units[record + WRITES]
    if needed < 0 or needed < made - kept:
        return np.int64(0)
    return max(np.int64(0), memory.done[unit * kept + needed % kept] - now)


@inlined
def _asks(tables: Tables, memory: DramUnits, pe: Word, row: Word, now: Word) -> Word:
    """When the tokens of a firing leave; those of a unit wait for the line that they need."""
    unit = memory.unit_of[pe]
    return _ask(tables.clock, memory, unit, now) if unit >= 0 else now


@inlined
def _serves(tables: Tables, memory: DramUnits, now: Word) -> Word:
    """Nobody waits for memory to be served."""
    return FOREVER


@inlined
def _ends(tables: Tables, memory: DramUnits, last: Word) -> None:
    """What is changed or waits in write queues when all is done is written then."""
    arrival = _scaled(last, memory.ways[UP], memory.ways[DOWN])
    end = flush(memory.parameters, memory.state, memory.counts, arrival)
    if end > 0:
        end = _scaled(end, memory.ways[DOWN], memory.ways[UP]) + memory.ways[PATH]
        tables.clock[LAST_STORE] = max(tables.clock[LAST_STORE], end)


def dram_policy(leaves: Callable[..., Word]) -> tuple[Callable[..., Any], ...]:
    """The five functions of a DRAM beside which something else delays tokens: ``leaves``.

    It is told of each firing, and of when its tokens leave for the DRAM, as in ``table_credit``.
    """

    @inlined
    def asks(tables: Tables, memory: DramUnits, pe: Word, row: Word, now: Word) -> Word:
        """When the tokens of a firing leave."""
        return leaves(tables, memory, pe, row, now, _asks(tables, memory, pe, row, now))

    return _begin, _allows, asks, _serves, _ends


advance = advance_with(_begin, _allows, _asks, _serves, _ends)
