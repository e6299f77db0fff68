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
STRETCH, REPEATS, FIRINGS, KNOWN, FEWEST = range(8, 13)
STATE = 13
"""Entries of a node's ``state``: the run of its trace that goes on, firings of it made, the end of
the interval of the last firing, firings made, cycles of the first one and of the last one that
stores, the interval, and how many bits of a word of the trace are the code; the stretch of the
trace that goes on, and how often it does; firings of a round, how many rounds are known, or
``USELESS``, and the fewest pieces of rounds that are worth it."""

BASE, WRAP, READ, WRITTEN, NEXT, LATENCY, STARVED, HEAD, LEFT, INSIDE = range(10)
CHANNEL = 10
"""Columns of ``channels``, a record for each channel element: the first word of its ring, the
entries that it holds less one, entries taken and sent, the cycle that would make the last run
longer, or ``SEALED``, the latency, and the cycles its receiver starved on it; of the run that is
taken from, the cycle in which its next token is ready, the tokens left, none if there is no run,
and where its pattern goes on, 0 outside of patterns."""

SEALED = -1
USELESS = -1
LONGEST = 1 << 60
"""A length, and a number of runs, that is never reached."""

BEGIN, END, TIMES, IS_ROUND = range(4)
STRETCH_WORDS = 4
"""Columns of the stretches of a trace: the first of its words, the one after the last, how often it
is repeated, and whether it is the round."""

RUNS, TOKENS, SPAN = range(3)
PATTERN = 3
"""The head of a pattern: its runs, its tokens, and the cycles from the first token to the last one.
The runs follow, each with its first cycle after that of the pattern, and its tokens."""

ENTRIES = 4
"""Most runs or patterns in which the tokens of a round may arrive, unless all of them are early."""

OF_INPUT, OF_SEND = 2 + 2 * ENTRIES, 2
DURATION, STORED = range(2)
OF_ROUND = 2
"""Words of a known round for an input: how many entries its tokens arrive in, 0 if they are early,
each with its word in the ring and its cycle after that of the first firing, and what the node
starves on them; for a send: the entry that it sends, likewise; and the cycles of the round, and
when its last store is, or -1."""

MOST_KNOWN = 16
"""Most rounds that are known of a node."""


class RunNode(NamedTuple):
    """A node: its trace in runs, of a word each, and its tables.

    The low bits of a word are the code, the others the number of firings.  ``stretches`` say which
    words of the trace follow one another.  ``steps`` are the channel records that its firings wait
    for, in a common order, and ``sends`` those that they send to; ``needs`` and ``takes`` have
    masks for each code and step, ``puts`` for each code and send, ``stores`` for each code.
    A channel is several steps if rules wait for it in different orders: ``inputs`` has each once,
    and ``tokens`` for each of them how many tokens a round takes, and how many it looks at.
    ``reached``, ``before`` and ``begun`` are scratch: the latest cycle up to each step, the cycles
    starved on each input when a round began, and for each send the entries before the round.
    ``known`` has the rounds that are known, and space for one more.
    """

    state: Signed
    trace: NDArray[np.int32]
    stretches: Signed
    steps: Signed
    sends: Signed
    needs: Signed
    takes: Signed
    puts: Signed
    stores: Signed
    inputs: Signed
    tokens: Signed
    reached: Signed
    before: Signed
    begun: Signed
    known: Signed


_ROOM = "t2s.simulator.times"
_FOLDER = Path(__file__).parent
_SOURCES = (Path(__file__), _FOLDER / "runs_kernel.py", _FOLDER / "rounds_kernel.py")

visit = CompiledKernel(
    module=f"{_ROOM}.runs_kernel",
    name="visit",
    sources=_SOURCES,
    arguments=(
        Record(
            RunNode,
            (Argument.INT64_ARRAY, Argument.INT32_ARRAY, *(Argument.INT64_ARRAY,) * 13),
        ),
        Argument.INT64_ARRAY,
        Argument.INT64_ARRAY,
        Argument.INT64_ARRAY,
    ),
)
"""``runs_kernel.visit``."""
