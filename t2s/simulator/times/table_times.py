"""Times by the table kernel: its tables, units and sharers of memories, and what they measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.control.domains import domains
from t2s.graph.graph import Place
from t2s.graph.nodes import Machine, PEArray
from t2s.simulator.limits import Limits
from t2s.simulator.memory.banked import (
    Banked,
    BankedCounts,
    BankedPortCounts,
    BankedVectors,
    bases_in_banks,
)
from t2s.simulator.memory.machine_accesses import with_addresses
from t2s.simulator.memory.machine_port import MachineRequests, levels_of
from t2s.simulator.memory.port import RequestStream, bases_of, most_requests, uses_memory
from t2s.simulator.memory.report import MemoryCounts, SharedCounts, UnitCounts
from t2s.simulator.memory.spec import Dram
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.report.counters import (
    FOREVER,
    Counts,
    Ending,
    Requirement,
    Stuck,
    Tally,
    end_of_run,
    ending_of,
    stuck_at,
    wait_until,
)
from t2s.simulator.times import banked_layout as layout
from t2s.simulator.times import dram_layout as dram_tables
from t2s.simulator.times import table_layout as timing
from t2s.simulator.times.table_layout import Signed


class TableTimes:
    """The arrays that the timing kernel works on (see ``times.table_kernel``)."""

    def __init__(self, program: SimProgram, *, measured: bool = False) -> None:
        control = program.control
        self.program = program
        self.measured = measured
        self.rows = _rows(control.rows)
        self.uses = control.uses.astype(np.uint64) * timing.U(timing.RECORD)
        self.uses[~control.taken] += timing.PEEKS
        self.elements = _elements(program)
        self.pes = _pes(program)
        busy = control.firings > 0
        wake = np.where(busy, 1, FOREVER).astype(np.int64)
        ends = self.elements[:, int(timing.END)]
        self.ring = np.zeros(int(ends.max(initial=0)), np.int64)
        self.stalls = np.zeros((len(self.elements), timing.RECORD), np.int64)
        self.memory_stalls = np.zeros(program.pe_count, np.int64)
        rate = program.memory_rate
        stalls = program.stalls
        stalling = (0, 0) if stalls is None else (stalls.seed, stalls.one_in)
        dram = program.device.memory
        self.memory = MemoryUnits(program, dram) if dram is not None else None
        sizes = (ends - self.elements[:, int(timing.BEGIN)]).astype(np.int64)
        banked = program.banked
        self.banks = BankedUnits(program, banked, sizes) if banked is not None else None
        accesses = program.accesses_memory if self.memory is None else self.memory.unit_of >= 0
        self.credit = timing.Credit(
            queue=np.zeros(max(1, program.pe_count), np.uint64),
            rate=0 if rate is None else rate.numerator,
            unit=1 if rate is None else rate.denominator,
        )
        self.clock = np.zeros(8, np.int64)
        self.clock[timing.NOW] = self.clock[timing.CREDIT_AT] = 1
        self.clock[timing.CREDIT] = self.credit.rate
        self.clock[timing.UNFINISHED] = int(busy.sum())
        self._run: Callable[..., int] | None = None
        self.tables = timing.Tables(
            codes=control.codes,
            rows=self.rows.reshape(-1),
            uses=self.uses,
            wake=wake,
            pes=self.pes.reshape(-1),
            elements=self.elements.reshape(-1),
            ring=self.ring,
            stalls=self.stalls.reshape(-1),
            memory_stalls=self.memory_stalls,
            clock=self.clock,
            stalling=np.array(stalling, np.uint64),
            accesses_memory=accesses.astype(np.uint64),
        )

    @property
    def now(self) -> int:
        """The next cycle to simulate."""
        return int(self.clock[timing.NOW])

    @property
    def fired(self) -> int:
        """Firings made."""
        return int(self.clock[timing.FIRED_IN_ALL])

    @property
    def unfinished(self) -> int:
        """PEs with firings left."""
        return int(self.clock[timing.UNFINISHED])

    def earliest_end(self) -> int:
        """A cycle before which the run cannot end, from the firings that are left."""
        left = self.program.control.firings - self._column(timing.FIRED)
        soonest = np.maximum(self._column(timing.LAST) + self.program.intervals, self.now)
        ends = soonest + (left - 1) * self.program.intervals
        return int(ends[left > 0].max(initial=0))

    def advance(self, until: int) -> bool:
        """Simulate to the end of a cycle; whether anything may happen after it."""
        for units in (self.memory, self.banks):
            if units is not None and (self._run is None or not units.lasts()):
                units.provide()
                self._run = None
        if self._run is None:
            self._run = self._prepared()
        for units in (self.memory, self.banks):
            if units is not None:
                until = min(until, self.now + units.lasts() - 1)
        return bool(self._run(until, self.measured))

    def _prepared(self) -> Callable[..., int]:
        """The kernel for the memories that there are, on their present tables."""
        tables = self.tables
        if self.banks is None and self.memory is None:
            return timing.advance_with_credit.prepared(tables, self.credit)
        if self.banks is None and self.memory is not None:
            return timing.advance_with_dram.prepared(tables, self.memory.tables())
        assert self.banks is not None
        banks = self.banks.tables()
        if self.memory is None:
            both = layout.CreditBanks(*self.credit, *banks)
            return layout.advance_with_banks.prepared(tables, both)
        with_dram = layout.DramBanks(*self.memory.tables(), *banks)
        return layout.advance_with_banks_and_dram.prepared(tables, with_dram)

    def tally(self, limits: Limits, interrupted: bool) -> Tally:
        """The counters, with the stalls of unfinished PEs up to the last cycle."""
        program = self.program
        firings = self._column(timing.FIRED)
        last = self._column(timing.LAST)
        tails = {
            int(pe): self._requirements(int(pe))
            for pe in np.flatnonzero(firings < program.control.firings)
        }
        never = [stuck_at(pe, requirements) for pe, requirements in tails.items()]
        stuck = tuple(item for item in never if item is not None)
        ending, cycles = self._ending(limits, interrupted, len(tails), stuck)
        waiting = np.maximum(firings - 1, 0) * (program.intervals - 1)
        starved, blocked = self.stalls[:, 0].copy(), self.stalls[:, 1].copy()
        memory = self.memory_stalls.copy()
        begun = {pe: found for pe, found in tails.items() if firings[pe]}
        wait_until(cycles, program, begun, last, waiting, starved, blocked, memory)
        return Tally(
            ending=ending,
            cycles=cycles,
            firings=firings,
            first=self._column(timing.FIRST),
            last=last,
            waiting=waiting,
            starved=starved,
            blocked=blocked,
            memory_starved=np.where(program.loads, memory, 0),
            memory_blocked=np.where(program.loads, 0, memory),
            left=self._left(),
            stuck=stuck,
            memory=self.memory.tally() if self.memory is not None else None,
            shared=self.banks.tally() if self.banks is not None else None,
        )

    def sample(self, cycle: int) -> Tally:
        """The counters at the end of a cycle, up to which the run has advanced.

        They are those of ``tally``, for all PEs at once, and nobody looks for what waits for ever.
        """
        firings, last = self._column(timing.FIRED), self._column(timing.LAST)
        waiting = np.maximum(firings - 1, 0) * (self.program.intervals - 1)
        starved, blocked = self.stalls[:, 0].copy(), self.stalls[:, 1].copy()
        memory = self.memory_stalls.copy()
        unfinished = np.flatnonzero((firings > 0) & (firings < self.program.control.firings))
        seen = np.minimum(last + self.program.intervals, cycle + 1)[unfinished]
        waiting[unfinished] += seen - last[unfinished] - 1
        for at, element, sending, times in self._needed(unfinished):
            passed = np.maximum(np.minimum(times, cycle + 1) - seen[at], 0)
            np.add.at(blocked, element[sending], passed[sending])
            np.add.at(starved, element[~sending], passed[~sending])
            seen[at] += passed
        memory[unfinished] += cycle + 1 - seen
        return Tally(
            ending=Ending.LIMIT,
            cycles=cycle,
            firings=firings,
            first=self._column(timing.FIRST),
            last=last,
            waiting=waiting,
            starved=starved,
            blocked=blocked,
            memory_starved=np.where(self.program.loads, memory, 0),
            memory_blocked=np.where(self.program.loads, 0, memory),
            left=self._left(),
            stuck=(),
            memory=self.memory.tally() if self.memory is not None else None,
        )

    def _needed(self, pes: Counts) -> Iterator[tuple[Counts, Counts, Array, Counts]]:
        """What the next firings of PEs require, one requirement of each PE after the other.

        Positions among ``pes``, channel elements, whether they are sent to, and the cycles from
        which that is possible.
        """
        rows = self.rows[self._column(timing.ROW)[pes] // int(timing.ROW_RECORD)].astype(np.int64)
        begin, middle, end = rows[:, 0], rows[:, 1], rows[:, 2]
        elements = self.elements.astype(np.int64)
        for place in range(int((end - begin).max(initial=0))):
            at = np.flatnonzero(begin + place < end)
            use = begin[at] + place
            sending = use >= middle[at]
            element = self.uses[use].astype(np.int64) // int(timing.RECORD)
            write, read = elements[element, int(timing.WRITE)], elements[element, int(timing.READ)]
            entry = self.ring[np.where(sending, write, read)].astype(np.int64)
            known = np.where(sending, entry <= 0, entry > 0)
            yield at, element, sending, np.where(known, np.abs(entry), FOREVER)

    def _column(self, column: np.uint64) -> Counts:
        return np.asarray(self.pes[:, int(column)], np.int64)

    def _ending(
        self, limits: Limits, interrupted: bool, unfinished: int, stuck: Sequence[Stuck]
    ) -> tuple[Ending, int]:
        end = end_of_run(
            self.program,
            int(self._column(timing.LAST).max(initial=0)),
            int(self.clock[timing.LAST_STORE]),
            self.banks.last_stored if self.banks is not None else 0,
        )
        if interrupted:
            return Ending.INTERRUPTED, max(end, self.now - 1)
        if unfinished == len(stuck):
            return ending_of(self.program, stuck), end
        return Ending.LIMIT, min(limits.max_cycles or 0, max(end, self.now - 1))

    def ready(self, element: int) -> int:
        """When the next token of an element is ready; ``FOREVER`` if there is none."""
        entry = int(self.ring[int(self.elements[element, int(timing.READ)])])
        return entry if entry > 0 else FOREVER

    def _requirements(self, pe: int) -> list[Requirement]:
        """(element, sending, first cycle that allows it) of a PE's next firing, in body order."""
        begin, middle, end = (int(n) for n in self._next_row(pe)[:3])
        found: list[Requirement] = []
        for use in range(begin, end):
            sending = use >= middle
            element = int(self.uses[use]) // timing.RECORD
            at = self.elements[element, int(timing.WRITE if sending else timing.READ)]
            entry = int(self.ring[int(at)])
            known = entry <= 0 if sending else entry > 0
            found.append((element, sending, abs(entry) if known else FOREVER))
        return found

    def _next_row(self, pe: int) -> Array:
        return self.rows[int(self.pes[pe, int(timing.ROW)]) // timing.ROW_RECORD]

    def _left(self) -> Counts:
        """Tokens in every element: those between where its ring is read and where it is written.

        Where these are one place the ring is full, or empty.
        """
        columns = (timing.BEGIN, timing.END, timing.READ, timing.WRITE)
        begin, end, read, write = (self.elements[:, int(n)].astype(np.int64) for n in columns)
        size = end - begin
        full = (read == write) & (self.ring[read] > 0)
        return np.asarray(np.where(full, size, (write - read) % size), np.int64)


def _rows(rows: Array) -> Array:
    table = np.zeros((len(rows), timing.ROW_RECORD), np.uint64)
    table[:, :3] = rows[:, :3]
    table[:, 3] = 4 * rows[:, 3].astype(np.int64) + rows[:, 4]
    return table


def _elements(program: SimProgram) -> Array:
    """Rings are no longer than the tokens that pass: a longer one would never be full either."""
    control = program.control
    capacity = program.per_element([channel.capacity for channel in program.channels])
    size = np.maximum(1, np.minimum(capacity, control.sent))
    end = np.cumsum(size)
    table = np.zeros((len(size), timing.RECORD), np.uint64)
    for column, values in (
        (timing.READ, end - size),
        (timing.WRITE, end - size),
        (timing.BEGIN, end - size),
        (timing.END, end),
        (timing.LATENCY, program.per_element([channel.latency for channel in program.channels])),
        (timing.SENDER, np.maximum(control.sender, 0)),
        (timing.RECEIVER, np.maximum(control.receiver, 0)),
    ):
        table[:, int(column)] = values
    return table


def _pes(program: SimProgram) -> Array:
    control = program.control
    table = np.zeros((program.pe_count, timing.RECORD), np.uint64)
    first_row = control.row_start * timing.ROW_RECORD
    busy = control.firings > 0
    row = first_row.copy()
    row[busy] += control.codes[control.code_start[busy]].astype(np.int64) * timing.ROW_RECORD
    for column, values in (
        (timing.CODE, control.code_start),
        (timing.ROW, row),
        (timing.INTERVAL, program.intervals),
        (timing.FIRINGS, control.firings),
        (timing.FIRST_ROW, first_row),
    ):
        table[:, int(column)] = values
    return table


# The load and store units of a program with a DRAM, for the compiled kernel ``table_dram``.

_MOST_FIRINGS_OF_UNITS = 1 << 20
"""Firings of all units whose requests lie ready, about; at least ``_LEAST`` of each unit."""
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
        self.units = np.zeros((count, 8), np.int64)
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
        self.parameters = dram_tables.new_parameters(dram)
        self.state = dram_tables.new_state(dram)
        self.counts = dram_tables.new_counts(dram)
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
            name: [rule.at(Place.MEMORY) for rule in found]
            for name, found in with_addresses(graph, program.timed_places).rules.items()
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
                    raise InternalError(f"nobody knows where {node.name} accesses memory")
                self.unit_of[instance] = len(self.streams)
                self.streams.append(
                    MachineRequests(
                        graph=graph,
                        rules=rules[node.name],
                        codes=trace.codes[instance],
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

    def tables(self) -> timing.DramUnits:
        """The state as the kernel takes it, until the next ``provide``."""
        return timing.DramUnits(
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
        """Have more requests ready."""
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
        """Cycles before a unit may run out; 0 at the beginning and if one has."""
        if not self.more.any():
            return 1 << 40
        least = int((self.end - self.units[:, timing.ASKED_AT])[self.more].min())
        return max(0, least)

    def tally(self) -> MemoryCounts:
        """What was measured."""
        units = {
            pe: UnitCounts(*(int(n) for n in self.units[unit, timing.READS :][:3]))
            for pe, unit in enumerate(self.unit_of)
            if unit >= 0
        }
        return MemoryCounts(channels=dram_tables.channel_counts(self.counts), units=units)


# The machines of a program that share banks, for the compiled kernel ``table_banked``.

_MOST_FIRINGS_OF_SHARERS = 1 << 18
"""Firings of all machines whose vectors lie ready, about; at least ``_LEAST_STRETCH`` of each."""
_LEAST_STRETCH = 256


class BankedUnits:
    """The state of the banks and of the machines that use them.

    ``slots`` are the slots of the rings of the program's channel elements.
    """

    def __init__(self, program: SimProgram, banked: Banked, slots: Signed) -> None:
        self.banked = banked
        rules = with_addresses(program.graph, program.timed_places).rules
        self.levels = max(map(levels_of, rules.values()), default=1)
        self.sharer_of = np.full(program.pe_count, -1, np.int64)
        self.streams: list[BankedVectors] = []
        self._add(program)
        count = len(self.streams)
        kept = max([banked.outstanding, *(stream.most for stream in self.streams)])
        stores = any(stream.stores for stream in self.streams)
        self.ways = layout.ways_of(banked, levels=self.levels, kept=kept, stores=stores)
        self.stretch = max(_LEAST_STRETCH, min(1 << 16, _MOST_FIRINGS_OF_SHARERS // max(1, count)))
        self.sharers = np.zeros((max(1, count), layout.SHARER), np.int64)
        self.ports = np.zeros((banked.ports, layout.PORT_WORDS), np.int64)
        waiting = self._place_sharers(program, slots, kept)
        self._arrays = self._new_arrays(program, count * kept, waiting)
        nothing = np.zeros(0, np.int64)
        self.ready: list[tuple[Array, ...]] = [(nothing, nothing, nothing)] * count
        self.begin = np.zeros((count, 2), np.int64)
        self.end = np.zeros(count, np.int64)
        self.more = np.array([stream.left > 0 for stream in self.streams], np.bool_)
        self.asked = self.vectors = self.words = nothing

    def _add(self, program: SimProgram) -> None:
        """The vectors of every machine that uses the banks."""
        graph, trace = program.graph, program.trace
        bases = bases_in_banks(graph, self.banked)
        rules = with_addresses(graph, program.timed_places).rules
        for timed in program.nodes:
            if not isinstance(timed.node, Machine) or timed.node.name not in rules:
                continue
            shared = [rule.at(Place.SHARED) for rule in rules[timed.node.name]]
            if not any(rule.accesses for rule in shared):
                continue
            for instance in range(timed.first, timed.first + timed.pe_count):
                if trace is None or instance not in trace.addresses:
                    raise InternalError(f"nobody knows where {timed.node.name} accesses the banks")
                self.sharer_of[instance] = len(self.streams)
                codes, addresses = trace.codes[instance], trace.addresses[instance]
                self.streams.append(
                    BankedVectors(graph, self.banked, bases, shared, codes, addresses)
                )

    def _place_sharers(self, program: SimProgram, slots: Signed, kept: int) -> int:
        """Give every machine its port and its rings; the words of all rings of firings."""
        sender = program.control.sender
        sent = np.zeros(program.pe_count, np.int64)
        np.add.at(sent, sender[sender >= 0], slots[sender >= 0])
        end = 0
        for number, pe in enumerate(np.flatnonzero(self.sharer_of >= 0).tolist()):
            row, size = self.sharers[number], kept + 1 + int(sent[pe])
            row[layout.PE], row[layout.PORT] = pe, number % self.banked.ports
            row[layout.FIRINGS_BEGIN], row[layout.FIRINGS_SIZE] = end, size
            end += size
            self.ports[number % self.banked.ports, layout.P_SIZE] += kept
        sizes = self.ports[:, layout.P_SIZE]
        self.ports[:, layout.P_BEGIN] = 2 * (np.cumsum(sizes) - sizes)
        return end * (layout.F_WAITS + self.levels)

    def _new_arrays(self, program: SimProgram, slots: int, waiting: int) -> dict[str, Signed]:
        """The arrays of the kernel that stay as long as the run."""
        banked = self.banked
        links = (banked.ranks + 1) * banked.ports
        entries, places = links * banked.link_depth, banked.ports * banked.queue_depth
        lanes = 1 << (banked.lanes - 1).bit_length()
        sizes = {
            "slots": slots * layout.SLOT,
            "slot_words": slots * lanes,
            "ends": slots,
            "deciding": len(self.sharers) * self.levels,
            "firings": waiting,
            "rings": 2 * int(self.ports[:, layout.P_SIZE].sum()),
            "links": 2 * links,
            "entries": entries * layout.ENTRY,
            "entry_words": entries * banked.lanes,
            "queues": 2 * banked.ports,
            "places": places * layout.ENTRY,
            "place_words": places * banked.lanes,
            "unsettled": len(program.channel_of_element),
            "served": banked.ports,
            "tally": 8,
            "granted": 2 * banked.banks,
        }
        return {name: np.zeros(max(1, size), np.int64) for name, size in sizes.items()}

    def tables(self) -> layout.Banks:
        """The state as the kernel takes it, until the next ``provide``."""
        return layout.Banks(
            sharer_of=self.sharer_of,
            sharers=self.sharers.reshape(-1),
            asking=self.asked,
            vectors=self.vectors,
            words=self.words,
            ports=self.ports.reshape(-1),
            numbers=layout.numbers_of_bits(),
            banks=self.ways,
            **self._arrays,
        )

    def provide(self) -> None:
        """Have more vectors ready."""
        count = len(self.streams)
        columns = [layout.ASKED_AT, layout.VECTOR_AT]
        taken = self.sharers[:count, columns] - self.begin
        lanes, at_asked, at_vector = self.banked.lanes, 0, 0
        for number, stream in enumerate(self.streams):
            asked, vectors, words = self.ready[number]
            fired, made = taken[number].tolist()
            left: tuple[Array, ...] = (asked[fired:], vectors[made:], words[made * lanes :])
            if stream.left and len(left[0]) < self.stretch:
                more = stream.take(self.stretch)
                left = tuple(np.concatenate(pair) for pair in zip(left, more, strict=True))
            self.ready[number] = left
            self.begin[number] = at_asked, at_vector
            at_asked += len(left[0])
            at_vector += len(left[1])
            self.end[number] = at_asked
            self.more[number] = stream.left > 0
        self.sharers[:count, columns] = self.begin
        if self.streams:
            self.asked, self.vectors, self.words = (
                np.concatenate(parts).astype(np.int64, copy=False)
                for parts in zip(*self.ready, strict=True)
            )

    def lasts(self) -> int:
        """Cycles before a machine may run out; 0 at the beginning and if one has."""
        if not self.more.any():
            return 1 << 40
        asked = self.sharers[: len(self.streams), layout.ASKED_AT]
        return max(0, int((self.end - asked)[self.more].min()))

    @property
    def last_stored(self) -> int:
        """The cycle in which the last store was complete."""
        return int(self._arrays["tally"][layout.LAST_STORED])

    def tally(self) -> SharedCounts:
        """What was measured."""
        tally = self._arrays["tally"].tolist()
        counts = self.sharers[:, layout.LOADED : layout.LATENCY + 1].tolist()
        return SharedCounts(
            banks=BankedCounts(
                cycles=tally[layout.BUSY_CYCLES],
                vectors=self.ports[:, layout.P_VECTORS].tolist(),
                served=self._arrays["served"].tolist(),
                held=tally[layout.IN_PORT],
                waited=tally[layout.WAITED],
            ),
            machines={
                pe: BankedPortCounts(*counts[number])
                for pe, number in enumerate(self.sharer_of.tolist())
                if number >= 0
            },
        )
