"""The tables of the kernel of runs, and the kernel as machine code.

``runs_kernel`` has the kernel itself, and is imported only to compile it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument, Record, Signed

AT, USED, EARLIEST, FIRED, FIRST, LAST_STORE, INTERVAL, SHIFT = range(8)
"""Entries of a node's ``state``: the run of its trace that goes on, firings of it made, the end of
the interval of the last firing, firings made, cycles of the first one and of the last one that
stores, the interval, and how many bits of a word of the trace are the code."""

BASE, WRAP, READ, TAKEN, WRITTEN, NEXT, LATENCY, STARVED = range(8)
CHANNEL = 8
"""Columns of ``channels``, a record for each channel element: the first word of its ring, the runs
that it holds less one, runs taken and tokens taken of the next, runs sent, the cycle that would
make the last one longer, or ``SEALED``, the latency, and the cycles its receiver starved on it."""

SEALED = -1
LONGEST = 1 << 60
"""A length, and a number of runs, that is never reached."""


class RunNode(NamedTuple):
    """A node: its trace in runs, of a word each, and its tables.

    The low bits of a word are the code, the others the number of firings.  ``steps`` are the
    channel records that its firings wait for, in a common order, and ``sends`` those that they send
    to; ``needs`` and ``takes`` have masks for each code and step, ``puts`` for each code and send,
    ``stores`` for each code.  ``reached`` is scratch: the latest cycle up to each step.
    """

    state: Signed
    trace: NDArray[np.int32]
    steps: Signed
    sends: Signed
    needs: Signed
    takes: Signed
    puts: Signed
    stores: Signed
    reached: Signed


_ROOM = "t2s.simulator.times"
_SOURCES = (Path(__file__), Path(__file__).parent / "runs_kernel.py")

visit = CompiledKernel(
    module=f"{_ROOM}.runs_kernel",
    name="visit",
    sources=_SOURCES,
    arguments=(
        Record(
            RunNode,
            (Argument.INT64_ARRAY, Argument.INT32_ARRAY, *(Argument.INT64_ARRAY,) * 7),
        ),
        Argument.INT64_ARRAY,
        Argument.INT64_ARRAY,
    ),
)
"""``runs_kernel.visit``."""
