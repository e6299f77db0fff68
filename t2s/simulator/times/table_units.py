"""The load and store units of a program with a DRAM, for the compiled kernel ``table_dram``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.graph import Place
from t2s.graph.nodes import Machine, PEArray
from t2s.simulator.memory.machine_accesses import with_addresses
from t2s.simulator.memory.machine_requests import MachineRequests, levels_of
from t2s.simulator.memory.port import bases_of, most_requests, uses_memory
from t2s.simulator.memory.report import MemoryCounts, UnitCounts
from t2s.simulator.memory.requests import RequestStream
from t2s.simulator.memory.spec import Dram
from t2s.simulator.program.firing_domain import domains
from t2s.simulator.program.sim_program import NodeTiming, SimProgram
from t2s.simulator.times import dram_layout as dram_tables
from t2s.simulator.times import table_layout as timing

_MOST_FIRINGS = 1 << 20
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
        self.stretch = max(_LEAST, min(1 << 16, _MOST_FIRINGS // count))
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
