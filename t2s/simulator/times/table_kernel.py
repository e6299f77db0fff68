"""The compiled table kernel: the cycle of every firing, without values; memory of shared bandwidth.

The kernel walks cycles in order and PEs in instance order.  A PE sleeps until its *wake* cycle; a
PE that waits for a token that has not been sent, or a slot that has not been freed, sleeps
indefinitely and marks the channel element; the PE that serves the element wakes it.  If no PE fires
in a cycle the kernel jumps to the next wake.

A channel element is a ring of one integer per slot: a positive entry is a token and the cycle at
which it is ready; an entry of zero or below is a free slot, negated the first cycle at which it
may be filled.  Comparing these times with the current cycle makes the result independent of the
order in which PEs are visited.

The behavior of memory is a *policy* of five functions, from which ``advance_with`` makes a kernel
for each kind of memory: shared bandwidth (below), and those of ``memory_policies``.

The whole state is in arrays, so the kernel may stop after any cycle and resume later.  Tables are
flat and unsigned: a record of 8 words is addressed by 8 times its number plus a column, which
avoids the handling of negative indices and makes the kernel four times faster.

``table_layout`` has the columns of the tables and the entry point; ``llvm/kernels.py`` compiles
``advance`` and caches it on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from t2s.llvm.operands import Signed, Unsigned, Word, inlined, within
from t2s.simulator.report.counters import FOREVER
from t2s.simulator.times.table_layout import (
    ACCESS,
    ASLEEP,
    BEGIN,
    CODE,
    CREDIT,
    CREDIT_AT,
    END,
    FIRED,
    FIRED_IN_ALL,
    FIRINGS,
    FIRST,
    FIRST_ROW,
    HEAD,
    INTERVAL,
    LAST,
    LAST_STORE,
    LATENCY,
    NOBODY,
    NOW,
    PEAK,
    PEEKS,
    QUEUED,
    READ,
    RECEIVER,
    RECEIVER_SLEEPS,
    RECEIVES_END,
    ROW,
    SENDER,
    SENDER_SLEEPS,
    STORES,
    UNFINISHED,
    USES_END,
    WRITE,
    Credit,
    Tables,
    U,
)

_ONE, _ZERO = U(1), U(0)
_ELEMENT = ~PEEKS
_ROW_SHIFT = U(2)
RECORD_SHIFT = U(3)


@inlined
def _ready(tables: Tables, row: Word) -> Word:
    """The first cycle at which the channels allow a firing, ``FOREVER`` if unknown yet.

    In that case the blocking element is marked.
    """
    uses, elements, ring = tables.uses, tables.elements, tables.ring
    need: Word = np.int64(0)
    use, middle, end = (
        tables.rows[row],
        tables.rows[row + RECEIVES_END],
        tables.rows[row + USES_END],
    )
    while use < middle:
        element = uses[use] & _ELEMENT
        time = ring[elements[element + READ]]
        if time <= 0:
            elements[element + ASLEEP] = RECEIVER_SLEEPS
            return FOREVER
        need = max(need, time)
        use += _ONE
    while use < end:
        element = uses[use]
        time = -ring[elements[element + WRITE]]
        if time < 0:
            elements[element + ASLEEP] = SENDER_SLEEPS
            return FOREVER
        need = max(need, time)
        use += _ONE
    return need


@inlined
def _note_peak(elements: Unsigned, ring: Signed, stalls: Signed, element: Word, now: Word) -> None:
    """After a send, update the peak number of slots that the element needed in a cycle.

    These are the slots with tokens, and one that is freed in this cycle.
    """
    read, write = elements[element + READ], elements[element + WRITE]
    begin, end = elements[element + BEGIN], elements[element + END]
    held = write - read if write > read else write + (end - begin) - read
    freed = (end if read == begin else read) - _ONE
    if held < end - begin and ring[freed] == -(now + 1):
        held += _ONE
    stalls[element + PEAK] = max(stalls[element + PEAK], np.int64(held))


@inlined
def _move_tokens(tables: Tables, row: Word, now: Word, sent: Word, measured: bool) -> None:
    """Free the slots of a firing's receives; fill those of its sends, departing at ``sent``."""
    uses, elements, ring, wake = tables.uses, tables.elements, tables.ring, tables.wake
    use, middle, end = (
        tables.rows[row],
        tables.rows[row + RECEIVES_END],
        tables.rows[row + USES_END],
    )
    while use < middle:
        element = uses[use]
        if element & PEEKS:
            use += _ONE
            continue
        at = elements[element + READ]
        ring[at] = -(now + 1)
        at += _ONE
        elements[element + READ] = (
            elements[element + BEGIN] if at == elements[element + END] else at
        )
        if elements[element + ASLEEP] == SENDER_SLEEPS:
            elements[element + ASLEEP] = NOBODY
            wake[elements[element + SENDER]] = now + 1
        use += _ONE
    while use < end:
        element = uses[use]
        at = elements[element + WRITE]
        ready = sent + np.int64(elements[element + LATENCY])
        ring[at] = ready
        at += _ONE
        elements[element + WRITE] = (
            elements[element + BEGIN] if at == elements[element + END] else at
        )
        if elements[element + ASLEEP] == RECEIVER_SLEEPS:
            elements[element + ASLEEP] = NOBODY
            wake[elements[element + RECEIVER]] = ready
        if measured:
            _note_peak(elements, ring, tables.stalls, element, now)
        use += _ONE


@inlined
def _next_firing(tables: Tables, pe: Word, record: Word, now: Word) -> None:
    """Count the firing, and determine the row and the earliest cycle of the next one."""
    pes, clock = tables.pes, tables.clock
    fired = pes[record + FIRED] + _ONE
    pes[record + FIRED] = fired
    pes[record + LAST] = U(now)
    if fired == _ONE:
        pes[record + FIRST] = U(now)
    if fired == pes[record + FIRINGS]:
        tables.wake[pe] = FOREVER
        clock[UNFINISHED] -= 1
    else:
        code = pes[record + CODE] + _ONE
        pes[record + CODE] = code
        pes[record + ROW] = pes[record + FIRST_ROW] + (U(tables.codes[code]) << _ROW_SHIFT)
        tables.wake[pe] = now + np.int64(pes[record + INTERVAL])


@inlined
def _unstalled(stalling: Unsigned, pe: Word, now: Word) -> Word:
    """The first cycle from ``now`` in which ``RandomStalls.holds`` is false."""
    word = U(0xFFFFFFFF)
    seed, one_in = stalling[_ZERO], stalling[_ONE]
    while one_in > _ZERO:
        mixed = seed * U(0x9E3779B9) + pe * U(0x85EBCA6B) + (U(now) & word) * U(0xC2B2AE35)
        mixed &= word
        mixed ^= mixed >> U(16)
        mixed = mixed * U(0x7FEB352D) & word
        mixed ^= mixed >> U(15)
        mixed = mixed * U(0x846CA68B) & word
        mixed ^= mixed >> U(16)
        if mixed % one_in != _ZERO:
            break
        now += 1
    return now


@within
def _attribute(
    rows: Unsigned,
    uses: Unsigned,
    elements: Unsigned,
    ring: Signed,
    stalls: Signed,
    memory_stalls: Signed,
    pe: Word,
    row: Word,
    seen: Word,
    now: Word,
) -> None:
    """Attribute the stalled cycles from ``seen``, the end of the interval, to ``now``.

    A cycle belongs to the first receive in body order that was not ready, else to the first send
    without space, else to memory: a running maximum over the ports.
    """
    use, middle, end = rows[row], rows[row + RECEIVES_END], rows[row + USES_END]
    while use < middle:
        element = uses[use] & _ELEMENT
        time = ring[elements[element + READ]]
        if time > seen:
            stalls[element] += time - seen
            seen = time
        use += _ONE
    while use < end:
        element = uses[use]
        time = -ring[elements[element + WRITE]]
        if time > seen:
            stalls[element + _ONE] += time - seen
            seen = time
        use += _ONE
    memory_stalls[pe] += now - seen


@inlined
def _account(tables: Tables, pe: Word, record: Word, row: Word, now: Word) -> None:
    """Count the stalled cycles before a firing; the first firing has none."""
    last = tables.pes[record + LAST]
    seen = np.int64(last + tables.pes[record + INTERVAL])
    if now > seen and last:
        _attribute(
            tables.rows, tables.uses, tables.elements, tables.ring, tables.stalls,
            tables.memory_stalls, pe, row, seen, now,
        )  # fmt: skip


@inlined
def fire(
    tables: Tables, pe: Word, record: Word, row: Word, now: Word, sent: Word, measured: bool
) -> None:
    """Fire a ready PE; its tokens leave at ``sent``."""
    _account(tables, pe, record, row, now)
    _move_tokens(tables, row, now, sent, measured)
    _next_firing(tables, pe, record, now)


@within
def _earliest(wake: Signed) -> Word:
    """The first cycle in which any PE may fire, ``FOREVER`` if there is none."""
    earliest = FOREVER
    pe = _ZERO
    while pe < U(len(wake)):
        earliest = min(earliest, wake[pe])
        pe += _ONE
    return earliest


@within
def _last_firing(tables: Tables) -> Word:
    """The cycle of the last firing of all."""
    last = np.int64(0)
    for pe in range(len(tables.wake)):
        last = max(last, np.int64(tables.pes[(U(pe) << RECORD_SHIFT) + LAST]))
    return last


def advance_with(
    begin: Callable[..., Word],
    allows: Callable[..., Word],
    asks: Callable[..., Word],
    serves: Callable[..., Word],
    ends: Callable[..., None],
) -> Callable[..., bool]:
    """A kernel for a kind of memory, whose state is ``memory``.

    Parameters
    ----------
    begin(tables, memory, now, measured): start a cycle; the number of PEs it fired.
    allows(tables, memory, pe, now): the first cycle in which a PE may send requests, as far as
        known.
    asks(tables, memory, pe, row, now): send the requests of a firing; the cycle in which its tokens
        leave, or ``FOREVER`` if the PE has to wait until memory serves it in ``begin``.
    serves(tables, memory, now): the first cycle from ``now`` in which ``begin`` may fire a PE.
    ends(tables, memory, last): called after the last firing of the run.
    """

    def advance(tables: Tables, memory: Any, until: int, measured: bool) -> bool:
        """Simulate to the end of cycle ``until``; return whether anything may happen after it."""
        clock, wake = tables.clock, tables.wake
        now = clock[NOW]
        count = U(len(wake))
        while now <= until and clock[UNFINISHED] > 0:
            fired = begin(tables, memory, now, measured)
            pe = _ZERO
            while pe < count:
                if wake[pe] <= now:
                    record = pe << RECORD_SHIFT
                    row = tables.pes[record + ROW]
                    need = _ready(tables, row)
                    if need <= now:
                        need = max(need, allows(tables, memory, pe, now))
                    if need <= now and tables.accesses_memory[pe] > _ZERO:
                        need = _unstalled(tables.stalling, pe, now)
                    if need > now:
                        wake[pe] = need
                    else:
                        sent = asks(tables, memory, pe, row, now)
                        if sent < FOREVER:
                            fire(tables, pe, record, row, now, sent, measured)
                            fired += 1
                        else:
                            wake[pe] = FOREVER
                pe += _ONE
            clock[FIRED_IN_ALL] += fired
            now += 1
            if fired == 0:
                now = max(now, min(_earliest(wake), serves(tables, memory, now)))
            clock[NOW] = now
            if now == FOREVER:
                break
        if now == FOREVER or clock[UNFINISHED] == 0:
            ends(tables, memory, _last_firing(tables))
            return False
        return True

    return advance


# The policy of shared or unlimited memory bandwidth.
#
# A PE joins a queue in the first cycle in which its interval and channels allow its firing, PEs of
# one cycle in instance order, and sleeps until it is served.

_ACCESS_SHIFT = U(2)


@inlined
def _earn(clock: Signed, rate: Word, now: Word) -> None:
    """Update the memory credit to this cycle; it never exceeds that of one cycle."""
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
    """No other memory delays the tokens of a firing."""
    return sent


@inlined
def _allows(tables: Tables, memory: Credit, pe: Word, now: Word) -> Word:
    """A PE may send requests at any time."""
    return np.int64(0)


@inlined
def _serves(tables: Tables, memory: Credit, now: Word) -> Word:
    """The cycle with enough credit for the head of the queue."""
    if tables.clock[QUEUED] > 0:
        return now + (-tables.clock[CREDIT]) // memory.rate
    return FOREVER


@inlined
def _ends(tables: Tables, memory: Credit, last: Word) -> None:
    """Nothing remains to be done."""


def credit_policy(leaves: Callable[..., Word]) -> tuple[Callable[..., Any], ...]:
    """The five functions of this memory.

    ``leaves(tables, memory, pe, row, now, sent)`` is called for each served firing, and returns
    when its tokens leave.
    """

    @within
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
        """Earn credit, and serve the queue."""
        fired = 0
        if memory.rate > 0:
            _earn(tables.clock, memory.rate, now)
            if tables.clock[QUEUED] > 0:
                fired = serve(tables, memory, now, measured)
        return fired

    @inlined
    def asks(tables: Tables, memory: Credit, pe: Word, row: Word, now: Word) -> Word:
        """Serve the access now for its credit, or let the PE join the queue."""
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


advance_with_credit = advance_with(*credit_policy(_at_once))
