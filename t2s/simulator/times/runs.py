"""The engine of runs: times of feed-forward nodes in channels without bounds, many firings at once.

Where firings follow one another by the same rule, as along the rows of a dense matrix, times of
whole runs follow from those of their first firings (``runs_kernel``).  Where a node makes firings
that it has made before, those of a whole round do (``rounds_kernel``).  Nothing is approximate:
runs of one firing are the general case.  A channel is a ring of the runs that its receiver has not
taken yet, so memory does not grow with the cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

import numpy as np

from t2s.core.errors import InternalError
from t2s.graph.graph import UNBOUNDED
from t2s.simulator.program.codes import Codes
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.counters import Counts, Ending, Tally, end_of_run
from t2s.simulator.times.rounds import Rounds, is_folded, rounds_of, without_rounds
from t2s.simulator.times.run_ahead import shares_channels_alone, twin_elements
from t2s.simulator.times.run_ahead_emit import RowPorts, Rows, common_order, used_positions
from t2s.simulator.times.runs_layout import (
    AT,
    BASE,
    BEGIN,
    CHANNEL,
    EARLIEST,
    FEWEST,
    FIRED,
    FIRINGS,
    FIRST,
    INSIDE,
    INTERVAL,
    LAST_STORE,
    LATENCY,
    LEFT,
    MOST_KNOWN,
    OF_INPUT,
    OF_ROUND,
    OF_SEND,
    PATTERN,
    READ,
    REPEATS,
    RUNS,
    SHIFT,
    STARVED,
    STATE,
    STRETCH,
    STRETCH_WORDS,
    TIMES,
    TOKENS,
    WRAP,
    WRITTEN,
    RunNode,
    visit,
)
from t2s.simulator.times.stepping import cost_in_time_order

_MOST_ROWS = 1 << 16
_FIRST_RUNS = 1 << 13
_ROUNDS_IN_RINGS = 4
_GROWTH = 4
_PATTERN_WORDS = 1 << 22
"""Words of all patterns; rounds that find no space are made firing by firing."""

_FEW_PIECES = 16
"""A round of fewer pieces is made as fast as it is recognized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTables:
    """The masks of a node, as ``RunNode`` has them; its ports are channel elements."""

    steps: tuple[int, ...]
    sends: tuple[int, ...]
    needs: Counts
    takes: Counts
    puts: Counts
    stores: Counts

    @property
    def inputs(self) -> tuple[int, ...]:
        """The elements of the steps, each once."""
        return tuple(dict.fromkeys(self.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTables:
    """The tables of all nodes of a program; ``order`` has senders before receivers."""

    nodes: tuple[NodeTables, ...]
    order: tuple[int, ...]


def runs_of(program: SimProgram, *, complete: bool = True) -> RunTables | None:
    """The tables of a program with a complete trace; ``None`` if its times do not follow from runs.

    Nodes must share only channels, which have space for all their tokens and make no cycle.  If the
    trace is not yet complete, channels must be without bounds.
    """
    if not shares_channels_alone(program):
        return None
    capacity = program.per_element([c.capacity for c in program.channels])
    tokens = program.control.sent if complete else UNBOUNDED
    if (capacity < np.clip(tokens, 1, UNBOUNDED)).any():
        return None
    return run_tables(Rows(program.control), twin_elements(program))


@lru_cache(maxsize=16)
def run_tables(rows: Rows, twin: tuple[int, ...]) -> RunTables | None:
    """The tables; ``None`` if nodes wait for one another, or have too many rules.

    ``twin`` has the element that stands for each (see ``run_ahead.twin_elements``).
    """
    instances = range(len(rows.row_start))
    if any(rows.count(instance) > _MOST_ROWS for instance in instances):
        return None
    nodes = [_tables(rows.ports(instance), twin) for instance in instances]
    senders = {element: n for n, node in enumerate(nodes) for element in node.sends}
    waits = {n: {senders[e] for e in node.steps if e in senders} for n, node in enumerate(nodes)}
    try:
        order = tuple(TopologicalSorter(waits).static_order())
    except CycleError:
        return None
    return RunTables(nodes=tuple(nodes), order=order)


def _tables(table: Sequence[RowPorts], twin: Sequence[int]) -> NodeTables:
    def kept(elements: Sequence[int]) -> list[int]:
        return [element for element in elements if twin[element] == element]

    needs = [kept(row.needs) for row in table]
    steps = common_order(needs)
    sends = list(dict.fromkeys(element for row in table for element in kept(row.puts)))
    asked = [used_positions(steps, row) for row in needs]
    return NodeTables(
        steps=tuple(steps),
        sends=tuple(sends),
        needs=_masks([[n in used for n in range(len(steps))] for used in asked]),
        takes=_masks(
            [
                [n in used and element in row.takes for n, element in enumerate(steps)]
                for row, used in zip(table, asked, strict=True)
            ]
        ),
        puts=_masks([[element in row.puts for element in sends] for row in table]),
        stores=_masks([[row.stores] for row in table]),
    )


_RUN_COST, _ROUND_COST, _CODE_COST, _NODE_COST = 20, 200, 1, 50_000
"""Nanoseconds for a run of firings, for a round of them, for a code that is not part of a run yet,
and for a node."""

_TIMES_AS_FAST = 2
"""What runs must gain: the costs of the other kernels are those of slow processors."""


_MANY_RUNS, _TRIED = 1 << 16, 3
"""Runs of a node among which rounds are looked for, and in how many nodes at first."""


def worthwhile_runs(codes: Sequence[Codes]) -> list[Rounds] | None:
    """The traces in runs, or in rounds of them, if these are faster than other kernels.

    Whether runs repeat is estimated by samples; whether rounds do is looked for in one node first.
    """
    most = cost_in_time_order(np.array([len(c) for c in codes])) / _TIMES_AS_FAST
    least = _NODE_COST * len(codes)
    if least >= most:
        return None
    runs = [c.about_runs() for c in codes]
    costs = [_RUN_COST * n + _CODE_COST * c.listed for n, c in zip(runs, codes, strict=True)]
    found: list[Rounds | None] = [None] * len(codes)
    many = [n for n in range(len(codes)) if runs[n] > _MANY_RUNS]
    busiest = sorted(many, key=lambda n: (not is_folded(codes[n]), -runs[n]))[:_TRIED]
    tried = ((n, rounds_of(codes[n])) for n in busiest)
    which, first = next((one for one in tried if one[1] is not None), (None, None))
    if first is not None:
        times = first.most_times
        found = [first if n == which else rounds_of(c, known=times) for n, c in enumerate(codes)]
        costs = [
            cost if trace is None else _RUN_COST * len(trace.runs) + _ROUND_COST * trace.times
            for trace, cost in zip(found, costs, strict=True)
        ]
    if least + sum(costs) >= most:
        return None
    return [trace or without_rounds(c) for trace, c in zip(found, codes, strict=True)]


def _masks(holds: Sequence[Sequence[bool]]) -> Counts:
    return -np.array([mask for row in holds for mask in row], np.int64)


class RunTimes:
    """The state of a run of a program, of whose firings all that are known are made (``extend``).

    Channels hold at first ``most_runs``, a power of two, or a round of their receiver; and rounds
    of less than ``few_pieces`` are not recognized.  Both only affect the speed.
    """

    def __init__(
        self,
        program: SimProgram,
        tables: RunTables,
        *,
        most_runs: int = _FIRST_RUNS,
        few_pieces: int = _FEW_PIECES,
    ) -> None:
        self._program, self._tables = program, tables
        elements, nodes = len(program.channel_of_element), tables.nodes
        self._states = np.zeros((len(nodes), STATE), np.int64)
        self._states[:, EARLIEST] = 1
        self._states[:, INTERVAL] = program.intervals
        self._states[:, FEWEST] = few_pieces
        self._patterns = np.ones(1, np.int64)
        self._channels = np.zeros((elements, CHANNEL), np.int64)
        self._channels[:, LATENCY] = program.per_element([c.latency for c in program.channels])
        self._slots = np.zeros(elements, np.int64)
        for node in nodes:
            self._slots[[*node.steps, *node.sends]] = most_runs
        self._ring = np.zeros(0, np.int64)
        self._traces: list[Rounds] = []
        self._known = [np.zeros(0, np.int64)] * len(nodes)
        self._visits: list[Callable[..., int]] = []

    def extend(self, traces: Sequence[Rounds]) -> None:
        """Know the firings of every node that follow those before."""
        if self._traces:
            done = self._states[:, [AT, STRETCH, REPEATS]].tolist()
            left = [
                trace.from_here(at, stretch // STRETCH_WORDS, repeats)
                for trace, (at, stretch, repeats) in zip(self._traces, done, strict=True)
            ]
            traces = [one.followed_by(more) for one, more in zip(left, traces, strict=True)]
        for number, (state, trace) in enumerate(zip(self._states, traces, strict=True)):
            first = trace.stretches[:STRETCH_WORDS].tolist() or [0] * STRETCH_WORDS
            state[AT], state[STRETCH], state[REPEATS] = first[BEGIN], 0, first[TIMES]
            state[SHIFT] = trace.bits
            if trace.firings and not len(self._known[number]):
                state[FIRINGS] = trace.firings
                self._known[number] = _known_rounds(self._tables.nodes[number])
        self._traces = list(traces)
        longest = max((len(t.round) for t in traces), default=0)
        if longest and len(self._patterns) == 1:
            self._patterns = np.zeros(_PATTERN_WORDS, np.int64)
            self._patterns[0] = 1
        in_rounds = 1 << (_ROUNDS_IN_RINGS * longest).bit_length() if longest else 0
        self._lay_out(np.where(self._slots, np.maximum(self._slots, in_rounds), 0))

    def _lay_out(self, slots: Counts) -> None:
        """Give every channel a ring of that many runs, a power of two, with those that it holds."""
        old, channels = self._ring, self._channels
        self._ring = np.zeros(2 * int(slots.sum()), np.int64)
        begin = 2 * (np.cumsum(slots) - slots)
        for element in np.flatnonzero(channels[:, WRITTEN] > channels[:, READ]).tolist():
            numbers = np.arange(channels[element, READ], channels[element, WRITTEN])
            at = int(channels[element, BASE]) + 2 * (numbers & int(channels[element, WRAP]))
            to = int(begin[element]) + 2 * (numbers & int(slots[element] - 1))
            self._ring[to], self._ring[to + 1] = old[at], old[at + 1]
        channels[:, BASE], channels[:, WRAP] = begin, slots - 1
        self._slots = slots
        flat = channels.reshape(-1)
        self._visits = [
            visit.prepared(self._node(instance), flat, self._ring, self._patterns)
            for instance in self._tables.order
            if len(self._traces[instance].stretches)
        ]

    def _node(self, instance: int) -> RunNode:
        tables, trace = self._tables.nodes[instance], self._traces[instance]
        steps, sends = len(tables.steps), len(tables.sends)
        return RunNode(
            state=self._states[instance],
            trace=trace.runs,
            stretches=trace.stretches,
            steps=CHANNEL * np.array(tables.steps, np.int64),
            sends=CHANNEL * np.array(tables.sends, np.int64),
            needs=tables.needs,
            takes=tables.takes,
            puts=tables.puts,
            stores=tables.stores,
            inputs=CHANNEL * np.array(tables.inputs, np.int64),
            tokens=_tokens(tables, trace),
            reached=np.zeros(steps, np.int64),
            before=np.zeros(len(tables.inputs), np.int64),
            begun=np.zeros(sends, np.int64),
            known=self._known[instance],
        )

    def advance(self) -> bool:
        """Visit every node once; return whether any may fire again."""
        if sum(visit() for visit in self._visits):
            return True
        full = self._channels[:, WRITTEN] - self._channels[:, READ] == self._slots
        full &= self._slots > 0
        if self.finished or not full.any():
            return False
        self._lay_out(np.where(full, _GROWTH * self._slots, self._slots))
        return True

    @property
    def finished(self) -> bool:
        """Whether all firings that are known are made."""
        ends = [len(trace.stretches) for trace in self._traces]
        return bool((self._states[:, STRETCH] == ends).all())

    def check_finished(self) -> None:
        """``InternalError`` if a node waits although all firings are known."""
        if not self.finished:
            raise InternalError(f"{self._program.graph.name} waits for a token that never comes")

    @property
    def fired(self) -> int:
        """Firings made."""
        return int(self._states[:, FIRED].sum())

    @property
    def latest(self) -> int:
        """The latest cycle of any node."""
        return int(self._states[:, EARLIEST].max(initial=1)) - 1

    def tally(self, *, interrupted: bool) -> Tally:
        """The counters."""
        program, states = self._program, self._states
        firings = states[:, FIRED].copy()
        last = np.where(firings > 0, states[:, EARLIEST] - program.intervals, 0)
        last_store = int(states[:, LAST_STORE].max(initial=0))
        nothing = np.zeros(program.pe_count, np.int64)
        twin = np.array(twin_elements(program), np.int64)
        return Tally(
            ending=Ending.INTERRUPTED if interrupted else Ending.FINISHED,
            cycles=end_of_run(program, int(last.max(initial=0)), last_store),
            firings=firings,
            first=states[:, FIRST].copy(),
            last=last,
            waiting=np.maximum(firings - 1, 0) * (program.intervals - 1),
            starved=self._channels[:, STARVED].copy(),
            blocked=np.zeros(len(twin), np.int64),
            memory_starved=nothing,
            memory_blocked=nothing,
            left=self._left()[twin],
            stuck=(),
        )

    def _left(self) -> Counts:
        """Tokens in every element."""
        left = self._channels[:, LEFT].copy()
        for element, record in enumerate(self._channels.tolist()):
            numbers = np.arange(record[READ] + (record[LEFT] > 0), record[WRITTEN])
            words = self._ring[record[BASE] + 2 * (numbers & record[WRAP]) + 1]
            is_run = words > 0
            left[element] += words[is_run].sum() + self._patterns[TOKENS - words[~is_run]].sum()
            if record[INSIDE]:
                pattern = -self._ring[record[BASE] + 2 * (record[READ] & record[WRAP]) + 1]
                end = pattern + PATTERN + 2 * self._patterns[pattern + RUNS]
                left[element] += self._patterns[record[INSIDE] + 1 : end : 2].sum()
        return left


def _known_rounds(tables: NodeTables) -> Counts:
    """Space for the rounds that are known of a node, and for one more."""
    words = OF_INPUT * len(tables.inputs) + OF_SEND * len(tables.sends) + OF_ROUND
    return np.zeros((MOST_KNOWN + 1) * words, np.int64)


def _tokens(tables: NodeTables, trace: Rounds) -> Counts:
    """For each channel that a node waits for, the tokens that a round takes, and looks at."""
    runs, inputs = trace.round, tables.inputs
    if not inputs or not len(runs):
        return np.zeros(2 * len(inputs), np.int64)
    codes, counts = runs & ((1 << trace.bits) - 1), (runs >> trace.bits).astype(np.int64)
    needs, takes = (_of_inputs(tables, mask)[codes] for mask in (tables.needs, tables.takes))
    taken = takes & counts[:, None]
    so_far = np.cumsum(taken, axis=0)
    looked = needs & (so_far - taken + np.maximum(taken, 1))
    return np.stack([taken.sum(axis=0), looked.max(axis=0, initial=0)], axis=1).reshape(-1)


def _of_inputs(tables: NodeTables, masks: Counts) -> Counts:
    """Masks for each code and input from those for each code and step."""
    of_step = masks.reshape(-1, len(tables.steps))
    steps = np.array(tables.steps, np.int64)
    columns = [of_step[:, steps == element].min(axis=1) for element in tables.inputs]
    return np.stack(columns, axis=1)
