"""The machines of a program that share banks, for the compiled kernel ``table_banked``."""

from __future__ import annotations

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.graph import Place
from t2s.graph.nodes import Machine
from t2s.simulator.memory.banked import Banked, BankedCounts
from t2s.simulator.memory.banked_port import BankedPortCounts, bases_in_banks
from t2s.simulator.memory.banked_report import SharedCounts
from t2s.simulator.memory.banked_vectors import BankedVectors
from t2s.simulator.memory.machine_accesses import with_addresses
from t2s.simulator.memory.machine_requests import levels_of
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.times import banked_layout as layout
from t2s.simulator.times.table_layout import Signed

_MOST_FIRINGS = 1 << 18
"""Firings of all machines whose vectors lie ready, about; at least ``_LEAST`` of each."""
_LEAST = 256


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
        self.stretch = max(_LEAST, min(1 << 16, _MOST_FIRINGS // max(1, count)))
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
