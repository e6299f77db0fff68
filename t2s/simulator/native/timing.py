"""The compiled timing kernel: the cycle of every firing, without values.

The kernel walks cycles in order and PEs in instance order.  A PE sleeps until its *wake* cycle; a
PE that waits for a token nobody has sent yet, or for a slot nobody has freed yet, sleeps for ever
and marks the channel element, and whoever serves the element wakes it.  If no PE fires in a cycle
the kernel jumps to the next wake.

A channel element is a ring of one integer per slot: a positive entry is a token and the cycle at
which it is ready; an entry of zero or below is a free slot, negated the first cycle at which it
may be filled.  Comparing these times with the current cycle makes the result independent of the
order in which PEs are visited.  The shared memory bandwidth is served in the order of a queue that
a PE joins in the first cycle in which its interval and channels allow its firing, PEs of one cycle
in instance order; in the queue a PE sleeps.

The whole state is in the arrays, so the kernel may stop after any cycle and go on later.  Tables
are flat and unsigned: a record of 8 words is addressed by 8 times its number plus a column, which
spares the compiler the handling of negative indices and is worth a factor of four in speed.

The columns of the tables are in ``timing_tables``, with the way in; ``machine_code`` compiles
``advance`` and keeps it on disk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from t2s.simulator.native.timing_compile import Signed, Unsigned, Word, compiled, inlined
from t2s.simulator.native.timing_stalls import account, note_peak
from t2s.simulator.native.timing_tables import (
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
    U,
)
from t2s.simulator.tally import FOREVER

_ONE, _ZERO = U(1), U(0)
_ELEMENT = ~PEEKS
_ACCESS_SHIFT, _RECORD_SHIFT, _ROW_SHIFT = U(2), U(3), U(2)


@inlined
def _ready(rows: Unsigned, uses: Unsigned, elements: Unsigned, ring: Signed, row: Word) -> Word:
    """The first cycle at which the channels allow a firing, ``FOREVER`` if it is not known yet.

    In that case the element that the firing waits for is marked.
    """
    need: Word = np.int64(0)
    use, middle, end = rows[row], rows[row + RECEIVES_END], rows[row + USES_END]
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
def _move_tokens(
    rows: Unsigned,
    uses: Unsigned,
    elements: Unsigned,
    ring: Signed,
    wake: Signed,
    stalls: Signed,
    row: Word,
    now: Word,
    sent: Word,
    measured: bool,
) -> None:
    """Free the slots of a firing's receives; fill those of its sends, which leave at ``sent``."""
    use, middle, end = rows[row], rows[row + RECEIVES_END], rows[row + USES_END]
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
            note_peak(elements, ring, stalls, element, now)
        use += _ONE


@inlined
def _next_firing(
    codes: NDArray[np.int32],
    pes: Unsigned,
    wake: Signed,
    clock: Signed,
    pe: Word,
    record: Word,
    now: Word,
) -> None:
    """Count the firing, and find the row and the earliest cycle of the next one."""
    fired = pes[record + FIRED] + _ONE
    pes[record + FIRED] = fired
    pes[record + LAST] = U(now)
    if fired == _ONE:
        pes[record + FIRST] = U(now)
    if fired == pes[record + FIRINGS]:
        wake[pe] = FOREVER
        clock[UNFINISHED] -= 1
    else:
        code = pes[record + CODE] + _ONE
        pes[record + CODE] = code
        pes[record + ROW] = pes[record + FIRST_ROW] + (U(codes[code]) << _ROW_SHIFT)
        wake[pe] = now + np.int64(pes[record + INTERVAL])


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
def _unstalled(stalling: Unsigned, pe: Word, now: Word) -> Word:
    """The first cycle from ``now`` in which ``RandomStalls.holds`` is false.

    ``stalling`` is the seed and, 0 for no stalls at all, one in how many cycles.
    """
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


@inlined
def _granted(clock: Signed, queue: Unsigned, pe: Word, cost: Word) -> Word:
    """Whether memory serves the access now, and takes the credit; else the PE joins the queue."""
    if cost > 0:
        if clock[QUEUED] > 0 or clock[CREDIT] <= 0:
            at = clock[HEAD] + clock[QUEUED]
            queue[U(at if at < len(queue) else at - len(queue))] = pe
            clock[QUEUED] += 1
            return False
        clock[CREDIT] -= cost
    return True


@inlined
def _fire(
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
    measured: bool,
    pe: Word,
    record: Word,
    row: Word,
    now: Word,
) -> None:
    """Fire a PE that everything allows to."""
    if rows[row + ACCESS] & STORES:
        clock[LAST_STORE] = now
    account(rows, uses, elements, ring, stalls, memory_stalls, pes, pe, row, now)
    _move_tokens(rows, uses, elements, ring, wake, stalls, row, now, now, measured)
    _next_firing(codes, pes, wake, clock, pe, record, now)


@compiled
def _serve(
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
    queue: Unsigned,
    measured: bool,
    unit: Word,
    now: Word,
) -> Word:
    """Fire the PEs at the head of the queue while there is credit; return how many."""
    fired = 0
    while clock[QUEUED] > 0 and clock[CREDIT] > 0:
        pe = queue[U(clock[HEAD])]
        clock[HEAD] = clock[HEAD] + 1 if clock[HEAD] + 1 < len(queue) else 0
        clock[QUEUED] -= 1
        record = pe << _RECORD_SHIFT
        row = pes[record + ROW]
        clock[CREDIT] -= np.int64(rows[row + ACCESS] >> _ACCESS_SHIFT) * unit
        _fire(
            codes, rows, uses, wake, pes, elements, ring, stalls, memory_stalls, clock,
            measured, pe, record, row, now,
        )  # fmt: skip
        fired += 1
    return fired


@compiled
def _earliest(wake: Signed) -> Word:
    """The first cycle in which any PE may fire, ``FOREVER`` if there is none."""
    earliest = FOREVER
    pe = _ZERO
    while pe < U(len(wake)):
        earliest = min(earliest, wake[pe])
        pe += _ONE
    return earliest


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
    queue: Unsigned,
    rate: int,
    unit: int,
    stalling: Unsigned,
    accesses_memory: Unsigned,
    until: int,
    measured: bool,
) -> bool:
    """Simulate to the end of cycle ``until``; return whether anything may happen after it.

    ``stalls`` counts, by element record, cycles its receiver starved (column 0) and its sender was
    blocked (column 1), and in column ``PEAK``, if ``measured``, the most slots in use;
    ``memory_stalls`` counts by PE.  ``rate`` is memory credit per cycle
    and ``unit`` credit per byte; a rate of 0 is unlimited memory.  ``stalling`` holds up the PEs
    that ``accesses_memory`` marks, before they ask for credit (see ``_unstalled``).
    """
    now = clock[NOW]
    count = U(len(wake))
    while now <= until and clock[UNFINISHED] > 0:
        fired = 0
        if rate > 0:
            _earn(clock, rate, now)
            if clock[QUEUED] > 0:
                fired = _serve(
                    codes, rows, uses, wake, pes, elements, ring, stalls, memory_stalls, clock,
                    queue, measured, unit, now,
                )  # fmt: skip
        pe = _ZERO
        while pe < count:
            if wake[pe] <= now:
                record = pe << _RECORD_SHIFT
                row = pes[record + ROW]
                need = _ready(rows, uses, elements, ring, row)
                if need <= now and accesses_memory[pe] > _ZERO:
                    need = _unstalled(stalling, pe, now)
                cost = np.int64(rows[row + ACCESS] >> _ACCESS_SHIFT) * unit if rate > 0 else 0
                if need > now:
                    wake[pe] = need
                elif _granted(clock, queue, pe, cost):
                    _fire(
                        codes, rows, uses, wake, pes, elements, ring, stalls, memory_stalls, clock,
                        measured, pe, record, row, now,
                    )  # fmt: skip
                    fired += 1
                else:
                    wake[pe] = FOREVER
            pe += _ONE
        clock[FIRED_IN_ALL] += fired
        now += 1
        if fired == 0:
            earliest = _earliest(wake)
            if clock[QUEUED] > 0:
                earliest = min(earliest, now + (-clock[CREDIT]) // rate)
            now = max(now, earliest)
        clock[NOW] = now
        if now == FOREVER:
            return False
    return bool(clock[UNFINISHED] > 0)
