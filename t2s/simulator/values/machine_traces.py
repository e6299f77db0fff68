"""The traces of one machine array during a run: codes one by one, or runs of equal codes.

Generated code writes into the trace of each place, and the arena says where it is and how much may
be written.  A ``CodeTraces`` has an entry for each firing; where codes repeat, runs are made of
them, and rounds (see ``program/rounds.py``) are kept once.  A ``RunTraces``, for machines that fire
in bursts, has a word for each run (see ``program/codes.py``); it begins with a negative word, which
is no run, so that there is one before the first run, too.
"""

from __future__ import annotations

import numpy as np

from t2s.core.ops import Array
from t2s.graph.nodes import Machine
from t2s.simulator.program.codes import Codes, about_runs_of, codes_of_parts
from t2s.simulator.program.rounds import FEWEST_FIRINGS, Folded, first_round
from t2s.simulator.values.layout import (
    TRACE_ADDRESS,
    TRACE_LEFT,
    TRACE_LENGTH,
    TRACE_LIMIT,
    ValueLayout,
    address_of,
)
from t2s.simulator.values.packing import runs_of_trace

_GROWTH = 4
_FIRST_CODES = 1 << 20
_FIRST_CODES_IN_ALL = 1 << 26
_FEWEST_CODES = 1 << 8
_FEW_CODES = 1 << 18
"""Codes that are not worth the effort, unless others of the machine were."""

_PART = 4
"""Parts of a trace, of which one is turned into runs at a time, or several at once."""

_RUNS = 1 << 14
_RUNS_IN_ALL = 1 << 20

MOST_FIRINGS = 1 << 30
"""Most firings of one machine, unless a limit of cycles allows more."""


def traces_of(node: Machine, layout: ValueLayout, arena: Array) -> Traces:
    """The traces of a machine array."""
    kind = RunTraces if layout.in_bursts(node.name) else CodeTraces
    return kind(node, layout, arena)


class CodeTraces:
    """Traces with a code for each firing; those in which codes repeat are turned into runs."""

    def __init__(self, node: Machine, layout: ValueLayout, arena: Array) -> None:
        self._type = layout.codes[node.name]
        self._most = MOST_FIRINGS
        places = node.place_count
        self._state = layout.trace(node.name).view(arena)
        self._first = min(_FIRST_CODES, max(_FEWEST_CODES, _FIRST_CODES_IN_ALL // places))
        self._traces = [np.empty(self._first, self._type) for _ in range(places)]
        self._parts: list[list[Array]] = [[] for _ in range(places)]
        self._in_parts = 0
        self._taken = np.zeros(places, np.int64)
        self._restless = np.zeros(places, np.bool_)
        self._folded: dict[int, Folded] = {}
        self._begin: Array | None = None

    def start(self) -> None:
        """Empty all traces, keeping their capacity but for that of long ones."""
        self._parts, self._in_parts = [[] for _ in self._traces], 0
        self._taken[:] = 0
        self._restless[:] = False
        self._folded = {}
        if self._begin is None or self._most != MOST_FIRINGS:
            self._most = MOST_FIRINGS
            self._traces = [
                trace if len(trace) == self._first else np.empty(self._first, self._type)
                for trace in self._traces
            ]
            self._state[:, TRACE_LENGTH] = 0
            self._bound()
            self._begin = self._state.copy()
        self._state[:] = self._begin

    @property
    def many(self) -> int:
        """Codes of a place that are worth taking."""
        return -(-self._first // _PART)

    @property
    def bytes(self) -> int:
        """The size of long traces."""
        return sum(trace.nbytes for trace in self._traces if len(trace) > self._first)

    @property
    def kept(self) -> int:
        """The size of the codes so far."""
        listed = self.firings * self._type.itemsize
        return listed + self._in_parts + sum(folded.bytes for folded in self._folded.values())

    @property
    def places(self) -> int:
        """The machines of the array."""
        return len(self._traces)

    def drop(self, place: int) -> None:
        """Forget the codes so far, but for what is known of rounds."""
        self._in_parts -= sum(part.nbytes for part in self._parts[place])
        self._parts[place] = []
        if place in self._folded:
            self._folded[place].drop()
        self._taken[place] += self._state[place, TRACE_LENGTH]
        self._state[place, TRACE_LENGTH] = 0
        self._bound()

    def limit(self, firings: int) -> None:
        """Bound the firings of every place."""
        self._most = firings
        self._bound()

    def _bound(self) -> None:
        """Say where traces are, and how long they may become."""
        self._state[:, TRACE_ADDRESS] = [address_of(trace) for trace in self._traces]
        room = np.array([len(trace) for trace in self._traces])
        self._state[:, TRACE_LIMIT] = np.minimum(room, self._most - self._taken)

    def codes(self, place: int) -> Codes:
        """The codes so far."""
        trace, length = self._traces[place], int(self._state[place, TRACE_LENGTH])
        rest, parts = trace[:length], self._parts[place]
        if place in self._folded:
            return codes_of_parts(self._type, [*self._folded[place].parts, rest.copy()])
        if len(trace) == self._first:  # longer ones are given away
            worth = parts or (length >= _FEW_CODES and not self._restless[place])
            runs = runs_of_trace(trace, length) if worth else None
            rest = rest.copy() if runs is None else runs
        return codes_of_parts(self._type, [*parts, rest])

    @property
    def firings(self) -> int:
        """The firings in the traces."""
        return int(self._state[:, TRACE_LENGTH].sum())

    def about_runs(self) -> float:
        """About how many runs of equal codes there are in the traces."""
        lengths = self._state[:, TRACE_LENGTH].tolist()
        traces = zip(self._traces, lengths, strict=True)
        return sum(about_runs_of(trace[:length]) for trace, length in traces if length)

    def take(self) -> bool:
        """Turn the codes in traces, if there are many, into runs; return whether there were any.

        If the runs of a machine's first codes are not shorter, its trace grows instead.
        """
        taken = False
        many = self._state[:, TRACE_LENGTH] >= self.many
        for place in np.flatnonzero(many & ~self._restless).tolist():
            trace, length = self._traces[place], int(self._state[place, TRACE_LENGTH])
            part = runs_of_trace(trace, length)
            if part is None and not self._parts[place]:
                self._restless[place] = True
                continue
            self._parts[place].append(trace[:length].copy() if part is None else part)
            self._in_parts += self._parts[place][-1].nbytes
            self._taken[place] += length
            self._state[place, TRACE_LENGTH] = 0
            taken = True
        if taken:
            self._bound()
        return taken

    def grow(self) -> bool:
        """Take the codes out of full traces with rounds, or enlarge them; return if any was."""
        grown = False
        for place in np.flatnonzero(self._restless).tolist():
            trace, length = self._traces[place], int(self._state[place, TRACE_LENGTH])
            if length < len(trace) or self._taken[place] + length >= self._most:
                continue
            grown = True
            if self._fold(place, trace):
                self._taken[place] += length
                self._state[place, TRACE_LENGTH] = 0
            else:
                larger = np.empty(_GROWTH * length, self._type)
                larger[:length] = trace
                self._traces[place], self._begin = larger, None
        if grown:
            self._bound()
        return grown

    def _fold(self, place: int, trace: Array) -> bool:
        """Take the codes of a full trace if there is a round; return whether there is."""
        if place not in self._folded:
            length = first_round(trace.tobytes(), trace.itemsize, FEWEST_FIRINGS)
            if length < FEWEST_FIRINGS:
                return False
            self._folded[place] = Folded(8 * trace.itemsize, trace[:length].copy())
        self._folded[place].add(trace)
        return True


class RunTraces:
    """Traces with a word for each run."""

    def __init__(self, node: Machine, layout: ValueLayout, arena: Array) -> None:
        self._type = layout.codes[node.name]
        self._state = layout.trace(node.name).view(arena)
        places = node.place_count
        capacity = min(_RUNS, max(_FEWEST_CODES, _RUNS_IN_ALL // places))
        self._traces = np.empty((places, 1 + capacity), np.int32)
        self._folded = [Folded(8 * self._type.itemsize) for _ in range(places)]

    def start(self) -> None:
        """Empty all traces."""
        self._folded = [Folded(8 * self._type.itemsize) for _ in self._folded]
        self._traces[:, 0] = -1
        self._state[:, TRACE_ADDRESS] = [address_of(trace) for trace in self._traces]
        self._state[:, TRACE_LENGTH] = 0
        self._state[:, TRACE_LIMIT] = self._traces.shape[1] - 1
        self._state[:, TRACE_LEFT] = MOST_FIRINGS

    @property
    def many(self) -> int:
        """Runs of a place that are worth taking."""
        return self._traces.shape[1] // 2

    @property
    def bytes(self) -> int:
        """The size of long traces, which there are not."""
        return 0

    def limit(self, firings: int) -> None:
        """Bound the firings of every place."""
        self._state[:, TRACE_LEFT] = firings

    def codes(self, place: int) -> Codes:
        """The codes so far."""
        return codes_of_parts(self._type, [*self._folded[place].parts, self._runs(place)])

    @property
    def kept(self) -> int:
        """The size of the runs so far."""
        return sum(folded.bytes for folded in self._folded)

    @property
    def places(self) -> int:
        """The machines of the array."""
        return len(self._traces)

    def drop(self, place: int) -> None:
        """Forget the runs so far, but for what is known of rounds."""
        self._folded[place].drop()
        self._state[place, TRACE_LENGTH] = 0

    def _runs(self, place: int) -> Array:
        return self._traces[place, 1 : 1 + int(self._state[place, TRACE_LENGTH])].copy()

    def take(self) -> bool:
        """Take the runs out of traces in which there are many; return whether there were any."""
        many = self._state[:, TRACE_LENGTH] >= self.many
        for place in np.flatnonzero(many).tolist():
            self._folded[place].add(self._runs(place))
            self._state[place, TRACE_LENGTH] = 0
        return bool(many.any())

    def grow(self) -> bool:
        """Full traces are taken, and never grow."""
        return False


Traces = CodeTraces | RunTraces
