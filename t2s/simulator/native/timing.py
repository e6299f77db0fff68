"""The compiled timing kernel: the cycle of every firing, without values.

The kernel walks cycles in order and PEs in instance order.  A PE sleeps until its *wake* cycle; a
PE that waits for a token nobody has sent yet, or for a slot nobody has freed yet, sleeps for ever
and marks the channel element, and whoever serves the element wakes it.  If no PE fires in a cycle
the kernel jumps to the next wake.

A channel element is a ring of one integer per slot: a positive entry is a token and the cycle at
which it is ready; an entry of zero or below is a free slot, negated the first cycle at which it
may be filled.  Comparing these times with the current cycle makes the result independent of the
order in which PEs are visited; only the shared memory bandwidth is served in that order.

The whole state is in the arrays, so the kernel may stop after any cycle and go on later.  Tables
are flat and unsigned: a record of 8 words is addressed by 8 times its number plus a column, which
spares the compiler the handling of negative indices and is worth a factor of four in speed.

This module alone imports numba.  The functions compile at their first call and are cached on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Signed = NDArray[np.int64]
Unsigned = NDArray[np.uint64]
Word = Any  # a 64-bit integer inside compiled code, signed for times, unsigned for positions

F = TypeVar("F", bound=Callable[..., Any])

U = np.uint64
FOREVER = np.iinfo(np.int64).max

RECORD = 8
"""Words of a record of ``pes`` and ``elements``; a record of ``rows`` has ``ROW_RECORD``."""
ROW_RECORD = 4

LAST, FIRED, CODE, ROW, FIRST, INTERVAL, FIRINGS, FIRST_ROW = (U(n) for n in range(8))
"""Columns of ``pes``: cycle of the last firing (0 before the first), firings made, position of the
next code, record of the next row, cycle of the first firing, II, firings in all, first row."""

READ, WRITE, BEGIN, END, LATENCY, ASLEEP, SENDER, RECEIVER = (U(n) for n in range(8))
"""Columns of ``elements``: ring positions of the next receive and send, ring bounds, latency, who
sleeps on the element, and the PEs at its ends."""

NOBODY, SENDER_SLEEPS, RECEIVER_SLEEPS = (U(n) for n in range(3))
"""Values of ``ASLEEP``; both ends never sleep at once, for a ring is not both empty and full."""

USES_BEGIN, RECEIVES_END, USES_END, ACCESS = (U(n) for n in range(4))
"""Columns of ``rows``; ``ACCESS`` is 4 times the bytes moved, plus ``LOADS``, plus ``STORES``."""

LOADS, STORES = U(1), U(2)

PEEKS = U(1)
"""Added to the address of an element in ``uses``: the token has to be there, and stays."""

NOW, CREDIT, CREDIT_AT, LAST_STORE, UNFINISHED, FIRED_IN_ALL = range(6)
"""Entries of ``clock``: the next cycle to simulate, the memory credit (in fractions of a byte) and
the cycle it was brought up to, cycle of the last store, PEs with firings left, firings made."""

_ONE, _ZERO = U(1), U(0)
_ELEMENT = ~PEEKS
_ACCESS_SHIFT, _RECORD_SHIFT, _ROW_SHIFT = U(2), U(3), U(2)

# Nothing here allocates.  Without the run-time for reference counts (``_nrt``) passing an array to
# an inlined function costs nothing; with it, an atomic addition: a third of the time of a firing.
_njit = cast(Any, numba.njit)
_compiled: Callable[[F], F] = _njit(cache=True, nogil=True, error_model="numpy", _nrt=False)
_inlined: Callable[[F], F] = _njit(
    cache=True, nogil=True, error_model="numpy", _nrt=False, forceinline=True
)


@_inlined
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


@_inlined
def _move_tokens(
    rows: Unsigned,
    uses: Unsigned,
    elements: Unsigned,
    ring: Signed,
    wake: Signed,
    row: Word,
    now: Word,
) -> None:
    """Free the slots of a firing's receives and fill those of its sends."""
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
        ready = now + np.int64(elements[element + LATENCY])
        ring[at] = ready
        at += _ONE
        elements[element + WRITE] = (
            elements[element + BEGIN] if at == elements[element + END] else at
        )
        if elements[element + ASLEEP] == RECEIVER_SLEEPS:
            elements[element + ASLEEP] = NOBODY
            wake[elements[element + RECEIVER]] = ready
        use += _ONE


@_compiled
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
    """Attribute the cycles from ``seen``, the end of the interval, to a firing at ``now``.

    The cycles belong to the first receive in body order that was not ready, else to the first send
    that had no space, else to memory: a running maximum over the ports.
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


@_inlined
def _account(
    rows: Unsigned,
    uses: Unsigned,
    elements: Unsigned,
    ring: Signed,
    stalls: Signed,
    memory_stalls: Signed,
    pes: Unsigned,
    pe: Word,
    row: Word,
    now: Word,
) -> None:
    """Count the stalled cycles before a firing; there are none before the first."""
    record = pe << _RECORD_SHIFT
    last = pes[record + LAST]
    seen = np.int64(last + pes[record + INTERVAL])
    if now > seen and last:
        _attribute(rows, uses, elements, ring, stalls, memory_stalls, pe, row, seen, now)


@_inlined
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


@_inlined
def _earn(clock: Signed, rate: Word, now: Word) -> None:
    """Bring the memory credit up to this cycle; it never exceeds one cycle's worth."""
    passed = now - clock[CREDIT_AT]
    if passed > (rate - clock[CREDIT]) // rate:
        clock[CREDIT] = rate
    else:
        clock[CREDIT] += passed * rate
    clock[CREDIT_AT] = now


@_inlined
def _granted(clock: Signed, rate: Word, unit: Word, access: Word, now: Word) -> Word:
    """0 if memory serves the access now (and takes the credit), else the cycle to ask again."""
    moved = np.int64(access >> _ACCESS_SHIFT)
    credit = clock[CREDIT]
    if moved > 0 and rate > 0:
        if credit <= 0:
            return now + 1 + (-credit) // rate
        clock[CREDIT] = credit - moved * unit
    if access & STORES:
        clock[LAST_STORE] = now
    return np.int64(0)


@_compiled
def _earliest(wake: Signed) -> Word:
    """The first cycle in which any PE may fire, ``FOREVER`` if there is none."""
    earliest = FOREVER
    pe = _ZERO
    while pe < U(len(wake)):
        earliest = min(earliest, wake[pe])
        pe += _ONE
    return earliest


@_compiled
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
    rate: int,
    unit: int,
    until: int,
) -> bool:
    """Simulate to the end of cycle ``until``; return whether anything may happen after it.

    ``stalls`` counts, by element record, cycles its receiver starved (column 0) and its sender was
    blocked (column 1); ``memory_stalls`` counts by PE.  ``rate`` is memory credit per cycle
    and ``unit`` credit per byte; a rate of 0 is unlimited memory.
    """
    now = clock[NOW]
    count = U(len(wake))
    while now <= until and clock[UNFINISHED] > 0:
        fired = 0
        if rate > 0:
            _earn(clock, rate, now)
        pe = _ZERO
        while pe < count:
            if wake[pe] <= now:
                record = pe << _RECORD_SHIFT
                row = pes[record + ROW]
                need = _ready(rows, uses, elements, ring, row)
                access = rows[row + ACCESS]
                if need <= now and access:
                    need = _granted(clock, rate, unit, access, now)
                if need > now:
                    wake[pe] = need
                else:
                    _account(rows, uses, elements, ring, stalls, memory_stalls, pes, pe, row, now)
                    _move_tokens(rows, uses, elements, ring, wake, row, now)
                    _next_firing(codes, pes, wake, clock, pe, record, now)
                    fired += 1
            pe += _ONE
        clock[FIRED_IN_ALL] += fired
        now += 1
        if fired == 0:
            now = max(now, _earliest(wake))
        clock[NOW] = now
        if now == FOREVER:
            return False
    return bool(clock[UNFINISHED] > 0)
