"""The tables of the timing kernel, and the kernel as machine code.

What the kernel does is in ``timing``, which is imported only where it has to be compiled.
"""

from __future__ import annotations

import numpy as np

from t2s.simulator.native.machine_code import Argument, Kernel

U = np.uint64

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

PEAK = U(2)
"""Column of ``stalls`` with the most slots of an element that were in use."""

NOW, CREDIT, CREDIT_AT, LAST_STORE, UNFINISHED, FIRED_IN_ALL, HEAD, QUEUED = range(8)
"""Entries of ``clock``: the next cycle to simulate, the memory credit (in fractions of a byte) and
the cycle it was brought up to, cycle of the last store, PEs with firings left, firings made, and
the first position and the length of the ring of PEs that wait for memory."""

_INT32S, _INT64S, _UINT64S = Argument.INT32_ARRAY, Argument.INT64_ARRAY, Argument.UINT64_ARRAY

advance = Kernel(
    module="t2s.simulator.native.timing",
    name="advance",
    sources=(
        "t2s.simulator.native.timing",
        "t2s.simulator.native.timing_compile",
        "t2s.simulator.native.timing_stalls",
        __name__,
    ),
    arguments=(
        _INT32S,  # codes
        _UINT64S,  # rows
        _UINT64S,  # uses
        _INT64S,  # wake
        _UINT64S,  # pes
        _UINT64S,  # elements
        _INT64S,  # ring
        _INT64S,  # stalls
        _INT64S,  # memory_stalls
        _INT64S,  # clock
        _UINT64S,  # queue
        Argument.INT64,  # rate
        Argument.INT64,  # unit
        _UINT64S,  # stalling
        _UINT64S,  # accesses_memory
        Argument.INT64,  # until
        Argument.BOOLEAN,  # measured
    ),
)
"""``timing.advance``."""
