"""What the timing kernels count beside firings: stalls by their cause, and slots in use."""

from __future__ import annotations

import numpy as np

from t2s.simulator.native.timing_compile import Signed, Unsigned, Word, compiled, inlined
from t2s.simulator.native.timing_tables import (
    BEGIN,
    END,
    INTERVAL,
    LAST,
    PEAK,
    PEEKS,
    READ,
    RECEIVES_END,
    USES_END,
    WRITE,
    U,
)

_ONE = U(1)
_ELEMENT = ~PEEKS
_RECORD_SHIFT = U(3)


@inlined
def note_peak(elements: Unsigned, ring: Signed, stalls: Signed, element: Word, now: Word) -> None:
    """After a send: keep the most slots of the element that one cycle ever needed.

    They are those that hold tokens, and one that is freed in this very cycle.
    """
    read, write = elements[element + READ], elements[element + WRITE]
    begin, end = elements[element + BEGIN], elements[element + END]
    held = write - read if write > read else write + (end - begin) - read
    freed = (end if read == begin else read) - _ONE
    if held < end - begin and ring[freed] == -(now + 1):
        held += _ONE
    stalls[element + PEAK] = max(stalls[element + PEAK], np.int64(held))


@compiled
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


@inlined
def account(
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
