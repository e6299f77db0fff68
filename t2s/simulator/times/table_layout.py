"""The tables of the table kernel, and its form for a memory of shared bandwidth as machine code.

``table_kernel`` has the kernel itself, and is imported only to compile it; ``table_memories`` has
the forms for other memories.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument, Record, Signed, Unsigned

U = np.uint64

RECORD = 8
"""Words of a record of ``pes`` and ``elements``; a record of ``rows`` has ``ROW_RECORD``."""
ROW_RECORD = 4

LAST, FIRED, CODE, ROW, FIRST, INTERVAL, FIRINGS, FIRST_ROW = (U(n) for n in range(8))
"""Columns of ``pes``: cycle of the last firing (0 before the first), firings made, position of the
next code, record of the next row, cycle of the first firing, II, total firings, first row."""

READ, WRITE, BEGIN, END, LATENCY, ASLEEP, SENDER, RECEIVER = (U(n) for n in range(8))
"""Columns of ``elements``: ring positions of the next receive and send, ring bounds, latency, the
end that sleeps on the element, and the PEs at its ends."""

NOBODY, SENDER_SLEEPS, RECEIVER_SLEEPS = (U(n) for n in range(3))
"""Values of ``ASLEEP``; both ends never sleep at once, because no ring is both empty and full."""

USES_BEGIN, RECEIVES_END, USES_END, ACCESS = (U(n) for n in range(4))
"""Columns of ``rows``; ``ACCESS`` is 4 times the bytes moved, plus ``LOADS``, plus ``STORES``."""

LOADS, STORES = U(1), U(2)

PEEKS = U(1)
"""Flag of an element in ``uses``: the token is required but not taken."""

PEAK = U(2)
"""Column of ``stalls`` with the peak number of slots in use."""

NOW, CREDIT, CREDIT_AT, LAST_STORE, UNFINISHED, FIRED_IN_ALL, HEAD, QUEUED = range(8)
"""Entries of ``clock``: the next cycle to simulate, the memory credit (in fractions of a byte) and
the cycle of its last update, cycle of the last store, PEs with firings left, firings made, and
the first position and the length of the ring of PEs that wait for memory."""


class Tables(NamedTuple):
    """The state of a run without its memory.

    ``stalls`` counts, by element record, cycles its receiver starved (column 0) and its sender was
    blocked (column 1), and in column ``PEAK``, if that is measured, the most slots in use;
    ``memory_stalls`` counts by PE.  ``stalling`` is the seed of random stalls and, 0 for none at
    all, one in how many cycles; they hold up the PEs that ``accesses_memory`` marks.
    """

    codes: NDArray[np.int32]
    rows: Unsigned
    uses: Unsigned
    wake: Signed
    pes: Unsigned
    elements: Unsigned
    ring: Signed
    stalls: Signed
    memory_stalls: Signed
    clock: Signed
    stalling: Unsigned
    accesses_memory: Unsigned


class Credit(NamedTuple):
    """A memory of shared bandwidth: ``rate`` is credit per cycle, ``unit`` credit per byte.

    A rate of 0 is unlimited memory.  ``queue`` is a ring of the PEs that wait.
    """

    queue: Unsigned
    rate: int
    unit: int


_INT32S, _INT64S, _UINT64S = Argument.INT32_ARRAY, Argument.INT64_ARRAY, Argument.UINT64_ARRAY
TABLES = Record(
    Tables,
    (
        *(_INT32S, _UINT64S, _UINT64S, _INT64S, _UINT64S, _UINT64S),
        *(_INT64S, _INT64S, _INT64S, _INT64S, _UINT64S, _UINT64S),
    ),
)
CREDIT_RECORD = Record(Credit, (_UINT64S, Argument.INT64, Argument.INT64))
_ROOM = "t2s.simulator.times"
_HERE = Path(__file__).parent
SOURCES = (_HERE, _HERE.parent / "memory", _HERE.parent / "report" / "counters.py")
"""The source files that the machine code of all forms of the kernel depends on."""

advance_with_credit = CompiledKernel(
    module=f"{_ROOM}.table_kernel",
    name="advance_with_credit",
    sources=SOURCES,
    arguments=(TABLES, CREDIT_RECORD, Argument.INT64, Argument.BOOLEAN),
)
"""``table_kernel.advance`` with a memory of shared bandwidth."""
