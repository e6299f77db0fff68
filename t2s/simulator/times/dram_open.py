"""Bursts that controllers have read: the meaning of ``memory/open_bursts.py``, compiled.

In each place of a controller there are a burst, or -1; when its data have moved; and whether it has
to be written back.
"""

from __future__ import annotations

import numpy as np

from t2s.simulator.times.compiled import within
from t2s.simulator.times.dram_layout import (
    CONTROLLERS,
    O_BURST,
    O_CHANGED,
    O_END,
    OPEN_BURSTS,
    OPEN_WORDS,
)
from t2s.simulator.times.table_layout import Signed, Word


@within
def known_place(parameters: Signed, state: Signed, controllers: Word, burst: Word) -> Word:
    """Where its controller knows a burst; -1 if it does not."""
    size = OPEN_WORDS * parameters[OPEN_BURSTS]
    first = controllers + size * (burst % parameters[CONTROLLERS])
    for place in range(first, first + size, OPEN_WORDS):
        if state[place + O_BURST] == burst:
            return np.int64(place)
    return np.int64(-1)


@within
def open_burst(
    parameters: Signed, state: Signed, controllers: Word, burst: Word, end: Word, changed: Word
) -> Word:
    """A burst is read that is known nowhere; the one that has to be written back for it, or -1."""
    size = OPEN_WORDS * parameters[OPEN_BURSTS]
    found = first = controllers + size * (burst % parameters[CONTROLLERS])
    for place in range(first + OPEN_WORDS, first + size, OPEN_WORDS):
        more = state[place + O_CHANGED] - state[found + O_CHANGED]
        if more < 0 or (more == 0 and state[place + O_END] < state[found + O_END]):
            found = place
    occupied = state[found + O_CHANGED] > 0
    if occupied and not changed:
        return np.int64(-1)
    before = state[found + O_BURST] if occupied else np.int64(-1)
    state[found + O_BURST], state[found + O_END], state[found + O_CHANGED] = burst, end, changed
    return before


@within
def forget_burst(state: Signed, place: Word) -> None:
    """What is known of a burst is old."""
    state[place + O_BURST], state[place + O_END], state[place + O_CHANGED] = -1, 0, 0
