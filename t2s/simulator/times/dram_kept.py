"""Bursts that the controllers of a DRAM keep: the meaning of ``memory/kept_bursts.py``, compiled.

Of each channel there are a word that says which place is used next, the bursts in all places, and
the ends of their data; a place without a burst has -1.
"""

from __future__ import annotations

import numpy as np

from t2s.simulator.memory.kept_bursts import EMPTY
from t2s.simulator.times.compiled import within
from t2s.simulator.times.dram_layout import STREAM_BURSTS
from t2s.simulator.times.table_layout import Signed, Word


@within
def kept_place(parameters: Signed, state: Signed, kept: Word, burst: Word) -> Word:
    """Where a burst is kept; -1 if it is not."""
    found = np.int64(-1)
    for place in range(kept + 1, kept + 1 + parameters[STREAM_BURSTS]):
        if state[place] == burst:
            found = np.int64(place)
    return found


@within
def note_kept(parameters: Signed, state: Signed, kept: Word, burst: Word, end: Word) -> None:
    """Keep a burst in the place of the oldest one."""
    place = kept + 1 + state[kept]
    state[place], state[place + parameters[STREAM_BURSTS]] = burst, end
    state[kept] = (state[kept] + 1) % parameters[STREAM_BURSTS]


@within
def drop_kept(parameters: Signed, state: Signed, kept: Word, burst: Word) -> None:
    """A burst is written: what is kept of it is old."""
    place = kept_place(parameters, state, kept, burst)
    if place >= 0:
        state[place] = EMPTY
