"""Units in front of a DRAM: when they may send requests, when tokens leave; and their state.

A *unit* is a PE whose body loads or stores.  It requests whole lines:

* A load *begins* a line if its element is not in the line of the previous firing's element.  A unit
  knows these lines in advance: at every ``load_lines``-th of them it requests that one and those
  that follow.  The tokens of a firing leave when the lines that its loads began last have arrived,
  and those of earlier firings have left.
* A store begins lines in the same way.  When ``store_lines`` lines have begun and another one
  begins, all of them are written; the last firing of a unit writes the rest.
* At most ``outstanding`` requests of a unit are in flight; a firing that would exceed this waits.
  A firing with more requests than that waits until none is in flight.

The requests of a firing reach the memory in the order of the body, those of one cycle in the order
of the PEs, each at the first memory clock that does not begin before the cycle.  A request is done
in the first cycle that does not begin before the end of its data, plus the round trip.

For a machine (``requests`` determines its lines):

* The tokens of a firing leave when its loads of level 0 have arrived, later by the duration of
  those of level 1, and so on: an access whose address is loaded comes after that load.  (Both are
  requested at once, so that requests come in the order of time.)  Tokens never leave before those
  of earlier firings.
* The next firing waits for the loads that determine the next state of the machine.

The functions are in the subset that compiles, like those of ``dram``; requests of future firings
are prepared a stretch at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.control.domains import domains
from t2s.graph.graph import MemorySpace
from t2s.graph.nodes import Machine, PEArray
from t2s.llvm.operands import Signed, Word, inlined, within
from t2s.simulator.memory.dram import (
    Request,
    access,
    channel_counts,
    flush,
    new_counts,
    new_parameters,
    new_state,
)
from t2s.simulator.memory.machine_accesses import levels_of, with_addresses
from t2s.simulator.memory.places import bases_of
from t2s.simulator.memory.report import MemoryCounts, UnitCounts
from t2s.simulator.memory.requests import (
    MachineRequests,
    RequestStream,
    most_requests,
    uses_memory,
)
from t2s.simulator.memory.spec import Dram
from t2s.simulator.program.sim_program import NodeTiming, SimProgram

ASKED_AT, REQUEST_AT, DONE, READS, WRITES, LATENCIES, LEFT, HELD, WRITTEN = range(9)
UNIT = 9
"""Columns of ``units``: positions in ``asked`` and ``requests``, when the last request is done,
lines read and written, their total latency, when the tokens of the last firing leave, when its
deciding loads have arrived, and when the last write is done."""

UP, DOWN, PATH, OUTSTANDING, BURSTS, KEPT, LEVELS = range(7)
"""Entries of ``ways``: numerator and denominator of memory clocks per cycle; ``path_cycles``,
``outstanding`` and ``line_bursts`` of ``Units``; requests of a unit recorded in ``done``; levels
of loads, half the columns of ``needed`` (0, with one column, if there are no machines)."""

WRITE, UPDATE = int(Request.WRITE), int(Request.UPDATE)


class DramUnits(NamedTuple):
    """A DRAM and its units, by flat tables.

    ``unit_of`` is the unit of every PE, -1 for none; ``units`` has a record for each.  Requests of
    future firings are prepared in ``asked`` (the number of each firing), ``needed`` (the unit's
    requests that its tokens wait for, in ``LEVELS`` columns, and those that its next firing waits
    for, in as many) and ``requests``.  ``done`` has the completion times of each unit's last
    requests.
    """

    unit_of: Signed
    units: Signed
    asked: NDArray[np.int32]
    needed: Signed
    requests: Signed
    done: Signed
    ways: Signed
    parameters: Signed
    state: Signed
    counts: Signed


@within
def scaled(time: Word, up: Word, down: Word) -> Word:
    """``time * up / down`` rounded up, without overflow."""
    return time // down * up + -(-(time % down) * up // down)


@inlined
def may_ask(memory: DramUnits, pe: Word) -> Word:
    """The first cycle in which the unit may send the requests of its firing."""
    unit = memory.unit_of[pe]
    if unit < 0:
        return np.int64(0)
    record = UNIT * unit
    held = memory.units[record + HELD]
    asked = np.int64(memory.asked[memory.units[record + ASKED_AT]])
    if asked == 0:
        return held
    made = memory.units[record + READS] + memory.units[record + WRITES]
    blocking = min(made + asked - memory.ways[OUTSTANDING], made) - 1
    kept = memory.ways[KEPT]
    return max(held, memory.done[unit * kept + blocking % kept]) if blocking >= 0 else held


@within
def ask(memory: DramUnits, unit: Word, now: Word) -> Word:
    """Send the requests of a firing; return when those that it needs are done, or now.

    A request that is no longer recorded is done.
    """
    units, ways, done = memory.units, memory.ways, memory.done
    record = UNIT * unit
    asked = memory.asked[units[record + ASKED_AT]]
    firing = units[record + ASKED_AT]
    bursts, first = ways[BURSTS], unit * ways[KEPT]
    at = units[record + REQUEST_AT]
    arrival = scaled(now, ways[UP], ways[DOWN])
    for number in range(asked):
        line, request = memory.requests[at + number] >> 2, memory.requests[at + number] & 3
        finished = units[record + DONE]
        for burst in range(line * bursts, (line + 1) * bursts):
            end = access(memory.parameters, memory.state, memory.counts, arrival, burst, request)
            finished = max(finished, scaled(end, ways[DOWN], ways[UP]) + ways[PATH])
        made = units[record + READS] + units[record + WRITES]
        done[first + made % ways[KEPT]] = finished
        units[record + DONE] = finished
        units[record + LATENCIES] += finished - now
        if request != WRITE and request != UPDATE:
            units[record + READS] += 1
        else:
            units[record + WRITES] += 1
            units[record + WRITTEN] = finished
    units[record + REQUEST_AT] = at + asked
    units[record + ASKED_AT] += 1
    made = units[record + READS] + units[record + WRITES]
    if ways[LEVELS] == 0:
        needed = memory.needed[firing]
        if needed < 0 or needed < made - ways[KEPT]:
            return now
        return max(now, done[first + needed % ways[KEPT]])
    leaving = held = now
    for column in range(2 * ways[LEVELS]):
        needed = memory.needed[2 * firing * ways[LEVELS] + column]
        if needed >= 0 and needed >= made - ways[KEPT]:
            wait = max(np.int64(0), done[first + needed % ways[KEPT]] - now)
            if column < ways[LEVELS]:
                leaving += wait
            else:
                held += wait
    units[record + LEFT] = max(leaving, units[record + LEFT])
    units[record + HELD] = held
    return units[record + LEFT]


@inlined
def waited(memory: DramUnits, pe: Word, now: Word, column: Word) -> Word:
    """Cycles that the current firing waits for a column of ``needed``."""
    unit = memory.unit_of[pe]
    if unit < 0:
        return np.int64(0)
    record, kept = UNIT * unit, memory.ways[KEPT]
    firing = memory.units[record + ASKED_AT] - 1
    needed = memory.needed[2 * firing * memory.ways[LEVELS] + column]
    made = memory.units[record + READS] + memory.units[record + WRITES]
    if needed < 0 or needed < made - kept:
        return np.int64(0)
    return max(np.int64(0), memory.done[unit * kept + needed % kept] - now)


@within
def write_rest(memory: DramUnits, last: Word) -> Word:
    """Write dirty and queued bursts after the last firing; return when they are done, or 0."""
    arrival = scaled(last, memory.ways[UP], memory.ways[DOWN])
    end = flush(memory.parameters, memory.state, memory.counts, arrival)
    if end == 0:
        return np.int64(0)
    return scaled(end, memory.ways[DOWN], memory.ways[UP]) + memory.ways[PATH]


# The units of a program.

_MOST_FIRINGS_OF_UNITS = 1 << 20
"""Approximate number of firings with prepared requests; at least ``_LEAST`` per unit."""
_LEAST = 256


class MemoryUnits:
    """The state of the memory and of its units."""

    def __init__(self, program: SimProgram, dram: Dram) -> None:
        self.dram = dram
        self.unit_of = np.full(program.pe_count, -1, np.int64)
        self.streams: list[RequestStream | MachineRequests] = []
        rules = with_addresses(program.graph, program.timed_places).rules
        self.levels = max(map(levels_of, rules.values()), default=0)
        self.columns = max(1, 2 * self.levels)
        self._add_units(program)
        count = max(1, len(self.streams))
        self.stretch = max(_LEAST, min(1 << 16, _MOST_FIRINGS_OF_UNITS // count))
        self.units = np.zeros((count, UNIT), np.int64)
        most = [most_requests(node, dram) for node in program.graph.pe_arrays]
        most += [stream.most for stream in self.streams if isinstance(stream, MachineRequests)]
        kept = max(dram.units.outstanding, max(most, default=0))
        self.done = np.zeros(count * kept, np.int64)
        ratio = dram.clock_hz / program.device.clock_hz
        self.ways = np.array(
            [
                ratio.numerator,
                ratio.denominator,
                dram.units.path_cycles,
                dram.units.outstanding,
                dram.units.line_bursts,
                kept,
                self.levels,
            ],
            np.int64,
        )
        self.parameters = new_parameters(dram)
        self.state = new_state(dram)
        self.counts = new_counts(dram)
        self.asked = np.zeros(0, np.int32)
        self.needed = np.zeros((0, self.columns), np.int64)
        self.requests = np.zeros(0, np.int64)
        nothing: tuple[Array, ...] = (self.asked, self.needed, self.requests)
        self.ready = [nothing] * len(self.streams)
        self.begin = np.zeros((count, 2), np.int64)
        self.end = np.zeros(count, np.int64)
        self.more = np.array([stream.left > 0 for stream in self.streams] or [False])

    def _add_units(self, program: SimProgram) -> None:
        """A unit for every PE and every machine that uses the memory."""
        graph, trace = program.graph, program.trace
        bases, room = bases_of(graph, self.dram)
        rules = {
            name: [rule.at(MemorySpace.MEMORY) for rule in accesses]
            for name, accesses in with_addresses(graph, program.timed_places).rules.items()
        }
        for timed in program.nodes:
            node = timed.node
            if not isinstance(node, Machine):
                self._add_pes(program, timed, node, bases)
                continue
            for instance in range(timed.first, timed.first + timed.pe_count):
                if not any(rule.accesses for rule in rules.get(node.name, ())):
                    continue
                if trace is None or instance not in trace.addresses:
                    raise InternalError(f"{node.name} has no addresses in memory")
                self.unit_of[instance] = len(self.streams)
                self.streams.append(
                    MachineRequests(
                        graph=graph,
                        rules=rules[node.name],
                        codes=trace.codes[instance].expanded,
                        ended=instance not in trace.unfinished,
                        addresses=trace.addresses[instance],
                        bases=bases,
                        room=room,
                        dram=self.dram,
                        levels=self.levels,
                    )
                )

    def _add_pes(
        self, program: SimProgram, timed: NodeTiming, node: PEArray, bases: Mapping[str, int]
    ) -> None:
        if not uses_memory(node):
            return
        for domain in domains(node, program.parameters):
            for pe in range(domain.pe_count if domain.firings else 0):
                self.unit_of[timed.first + domain.first_pe + pe] = len(self.streams)
                stream = RequestStream(program.graph, node, domain, pe, bases, self.dram)
                self.streams.append(stream)

    def tables(self) -> DramUnits:
        """The state in the kernel's form, valid until the next ``provide``."""
        return DramUnits(
            unit_of=self.unit_of,
            units=self.units.reshape(-1),
            asked=self.asked,
            needed=self.needed.reshape(-1),
            requests=self.requests,
            done=self.done,
            ways=self.ways,
            parameters=self.parameters,
            state=self.state,
            counts=self.counts,
        )

    def provide(self) -> None:
        """Prepare more requests."""
        taken = self.units[:, :2] - self.begin
        at_asked = at_request = 0
        for unit, stream in enumerate(self.streams):
            asked, needed, requests = self.ready[unit]
            fired, made = taken[unit]
            left: tuple[Array, ...] = (asked[fired:], needed[fired:], requests[made:])
            if stream.left and len(left[0]) < self.stretch:
                asked, needed, requests = stream.take(self.stretch)
                missing = ((0, 0), (0, self.columns - needed.shape[1]))
                more = (asked, np.pad(needed, missing, constant_values=-1), requests)
                left = tuple(np.concatenate(pair) for pair in zip(left, more, strict=True))
            self.ready[unit] = left
            self.begin[unit] = at_asked, at_request
            at_asked += len(left[0])
            self.end[unit] = at_asked
            self.more[unit] = stream.left > 0
            at_request += len(left[2])
        self.units[:, :2] = self.begin
        if self.streams:
            self.asked, self.needed, self.requests = (
                np.concatenate(parts) for parts in zip(*self.ready, strict=True)
            )

    def lasts(self) -> int:
        """Cycles before a unit may run out of requests; 0 at the start and if one has."""
        if not self.more.any():
            return 1 << 40
        least = int((self.end - self.units[:, ASKED_AT])[self.more].min())
        return max(0, least)

    @property
    def last_stored(self) -> int:
        """The cycle in which the last write was done."""
        return int(self.units[:, WRITTEN].max())

    def tally(self) -> MemoryCounts:
        """The counters."""
        units = {
            pe: UnitCounts(*(int(n) for n in self.units[unit, READS:][:3]))
            for pe, unit in enumerate(self.unit_of)
            if unit >= 0
        }
        return MemoryCounts(channels=channel_counts(self.counts), units=units)
