"""The compiled timing kernel of programs with a DRAM: ``timing`` with requests in place of credit.

A PE whose firing would have too many requests under way sleeps until one of them is done; the times
of all requests are known when they are made, so a unit never waits for something unknown.  The
requests of the firings to come lie ready in ``asked_in`` (how many each firing makes),
``needed_in`` (the unit's request whose line it needs) and ``requests``; ``units`` fills them a
stretch at a time.

The cache of compiled functions looks at the age of this file only: after a change of ``dram``,
``timing`` or ``timing_stalls``, whose functions are compiled into ``advance``, this file has to be
saved again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.native import timing, timing_tables
from t2s.simulator.native.dram import access
from t2s.simulator.native.timing_compile import Signed, Unsigned, Word, compiled
from t2s.simulator.native.timing_stalls import account
from t2s.simulator.native.timing_tables import U
from t2s.simulator.tally import FOREVER

ASKED_AT, REQUEST_AT, DONE, READS, WRITES, LATENCY = range(6)
"""Columns of ``units``: positions in ``asked_in`` and ``requests``, when the last request is done,
lines read and written, cycles from asking to done of all."""

UP, DOWN, PATH, OUTSTANDING, BURSTS, KEPT = range(6)
"""Entries of ``ways``: numerator and denominator of memory clocks per cycle; ``path_cycles``,
``outstanding`` and ``line_bursts`` of ``Units``; how many requests ``done`` keeps for a unit."""

_ACCESS, _CODE, _ROW = timing_tables.ACCESS, timing_tables.CODE, timing_tables.ROW
_NOW, _LAST_STORE, _UNFINISHED = (
    timing_tables.NOW,
    timing_tables.LAST_STORE,
    timing_tables.UNFINISHED,
)
_FIRED_IN_ALL = timing_tables.FIRED_IN_ALL
_RECORD_SHIFT = U(3)


@compiled
def _scaled(time: Word, up: Word, down: Word) -> Word:
    """``time * up / down`` rounded up, without overflow."""
    return time // down * up + -(-(time % down) * up // down)


@compiled
def _free(units: Signed, done: Signed, ways: Signed, unit: Word, asked: Word) -> Word:
    """The cycle from which the unit may make so many requests."""
    made = units[unit, READS] + units[unit, WRITES]
    blocking = min(made + asked - ways[OUTSTANDING], made) - 1
    return done[unit * ways[KEPT] + blocking % ways[KEPT]] if blocking >= 0 else np.int64(0)


@compiled
def _ask(
    units: Signed,
    done: Signed,
    ways: Signed,
    requests: Signed,
    parameters: Signed,
    state: Signed,
    counts: Signed,
    clock: Signed,
    unit: Word,
    asked: Word,
    needed: Word,
    now: Word,
) -> Word:
    """Make the requests of a firing; return when request ``needed`` is done, or now.

    A request that is no longer kept is done.
    """
    bursts, first = ways[BURSTS], unit * ways[KEPT]
    at = units[unit, REQUEST_AT]
    arrival = _scaled(now, ways[UP], ways[DOWN])
    for number in range(asked):
        line, write = requests[at + number] >> 1, requests[at + number] & 1
        finished = units[unit, DONE]
        for burst in range(line * bursts, (line + 1) * bursts):
            end = access(parameters, state, counts, arrival, burst, write)
            finished = max(finished, _scaled(end, ways[DOWN], ways[UP]) + ways[PATH])
        made = units[unit, READS] + units[unit, WRITES]
        done[first + made % ways[KEPT]] = finished
        units[unit, DONE] = finished
        units[unit, LATENCY] += finished - now
        if write:
            units[unit, WRITES] += 1
            clock[_LAST_STORE] = max(clock[_LAST_STORE], finished)
        else:
            units[unit, READS] += 1
    units[unit, REQUEST_AT] = at + asked
    units[unit, ASKED_AT] += 1
    made = units[unit, READS] + units[unit, WRITES]
    if needed < 0 or needed < made - ways[KEPT]:
        return now
    return max(now, done[first + needed % ways[KEPT]])


@compiled
def advance(
    codes: NDArray[np.int32],
    rows: Unsigned,
    uses: Unsigned,
    wake: Signed,
    pes: Unsigned,
    elements: Unsigned,
    ring: Signed,
    stalls: Signed,
    memory_stalls: Signed,
    clock: Signed,
    unit_of: Signed,
    units: Signed,
    asked_in: NDArray[np.int32],
    needed_in: Signed,
    requests: Signed,
    done: Signed,
    ways: Signed,
    parameters: Signed,
    state: Signed,
    counts: Signed,
    stalling: Unsigned,
    until: int,
) -> bool:
    """See ``timing.advance``; ``unit_of`` is the unit of every PE, -1 where it is none."""
    now = clock[_NOW]
    while now <= until and clock[_UNFINISHED] > 0:
        fired = 0
        for number in range(len(wake)):
            if wake[number] > now:
                continue
            pe = U(number)
            record = pe << _RECORD_SHIFT
            row = pes[record + _ROW]
            need = timing._ready(rows, uses, elements, ring, row)
            unit = unit_of[number]
            asked = 0
            if unit >= 0 and need <= now:
                asked = asked_in[units[unit, ASKED_AT]]
                if asked > 0:
                    need = max(need, _free(units, done, ways, unit, asked))
                if need <= now:
                    need = timing._unstalled(stalling, pe, now)
            if need > now:
                wake[number] = need
                continue
            sent = now
            if unit >= 0:
                needed = needed_in[units[unit, ASKED_AT]]
                sent = _ask(
                    units, done, ways, requests, parameters, state, counts, clock,
                    unit, asked, needed, now,
                )  # fmt: skip
            account(rows, uses, elements, ring, stalls, memory_stalls, pes, pe, row, now)
            timing._move_tokens(rows, uses, elements, ring, wake, stalls, row, now, sent, False)
            timing._next_firing(codes, pes, wake, clock, pe, record, now)
            fired += 1
        clock[_FIRED_IN_ALL] += fired
        now += 1
        if fired == 0:
            now = max(now, timing._earliest(wake))
        clock[_NOW] = now
        if now == FOREVER:
            return False
    return bool(clock[_UNFINISHED] > 0)
