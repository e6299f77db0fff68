"""The machines that share banks: the vectors of all their firings, and their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import InternalError
from t2s.core.ops import Array
from t2s.graph.graph import Graph, MemorySpace, Tensor
from t2s.graph.nodes import Machine
from t2s.graph.semantics import HOLE
from t2s.llvm.operands import Signed
from t2s.simulator.memory import banks
from t2s.simulator.memory.banks import (
    ADDRESS_SHIFT,
    DECIDES,
    LEVEL,
    NOTHING,
    STORE,
    UNIT_SHIFT,
)
from t2s.simulator.memory.machine_accesses import (
    Addresses,
    RuleAccess,
    RuleAccesses,
    levels_of,
    with_addresses,
)
from t2s.simulator.memory.places import bases_in_banks
from t2s.simulator.memory.report import BankedCounts, BankedPortCounts, SharedCounts
from t2s.simulator.memory.spec import Banked
from t2s.simulator.program.sim_program import SimProgram

Address = TypeVar("Address", int, NDArray[np.int64])
Numbers = NDArray[np.int64]


def vectors_of(graph: Graph, access: RuleAccess, banked: Banked) -> int:
    """The vectors of an access."""
    words = access.lanes * (access.bytes // graph.tensor(access.tensor).type.bytes)
    return -(-words // banked.lanes)


def swizzled(address: Address, banked: Banked) -> Address:
    """The physical word of a word of a swizzled tensor, for one address or an array."""
    ports, banks = banked.ports, banked.banks
    above = address // ports
    unit, bank = _folded(address, ports, ports), above % banks
    if not banks & (banks - 1):
        bank = _folded(above, banks, banks * banks)
    return (above // banks * ports + unit) * banks + bank


def _folded(number: Address, base: int, step: int) -> Address:
    """The exclusive or of every ``step``-th digit in a base that is a power of two."""
    digits = number % base
    while base > 1 and np.any(number := number // step):
        digits = digits ^ number % base
    return digits


@dataclass(frozen=True, slots=True, kw_only=True)
class _VectorAccess:
    """An access of a rule, and the number of vectors of its firing before it."""

    code: int
    before: int
    vectors: int
    access: RuleAccess


class BankedVectors:
    """The vectors of one machine; ``rules`` are its accesses to shared banks."""

    def __init__(
        self,
        graph: Graph,
        banked: Banked,
        bases: Mapping[str, int],
        rules: Sequence[RuleAccesses],
        codes: Array,
        addresses: Sequence[Addresses],
    ) -> None:
        self._graph, self._banked, self._bases = graph, banked, bases
        self._codes, self._addresses = codes, addresses
        self._accesses: list[_VectorAccess] = []
        self._counts = np.zeros(max(1, len(rules)), np.int32)
        for code, rule in enumerate(rules):
            for access in rule.accesses:
                vectors = vectors_of(graph, access, banked)
                before = int(self._counts[code])
                vector_access = _VectorAccess(
                    code=code, before=before, vectors=vectors, access=access
                )
                self._accesses.append(vector_access)
                self._counts[code] += vectors
        self._taken = [0 for _ in addresses]
        self.produced = 0

    @property
    def left(self) -> int:
        """Firings that are not yet produced; the last one is of none, for a machine that waits."""
        return len(self._codes) + 1 - self.produced

    @property
    def most(self) -> int:
        """The most vectors of a firing."""
        return int(self._counts.max(initial=0))

    @property
    def stores(self) -> bool:
        """Whether any vector may be a store."""
        return any(item.access.store for item in self._accesses)

    def take(self, count: int) -> tuple[Array, Numbers, Numbers]:
        """The numbers, kinds and words of the vectors of the next firings, at most ``count``."""
        begin, end = self.produced, self.produced + min(count, self.left)
        self.produced = end
        codes = self._codes[begin:end].astype(np.int64)
        asked = np.zeros(end - begin, np.int32)
        asked[: len(codes)] = self._counts[codes]
        first = np.cumsum(asked, dtype=np.int64) - asked
        total = int(asked.sum())
        what = np.zeros(total, np.int64)
        words = np.full((total, self._banked.lanes), NOTHING, np.int64)
        for channel, tokens in enumerate(self._addresses):
            accesses = [item for item in self._accesses if item.access.channel == channel]
            makes = np.zeros(len(self._counts), np.bool_)
            makes[[item.code for item in accesses]] = True
            firings = np.flatnonzero(makes[codes])
            offsets = tokens[self._taken[channel] : self._taken[channel] + len(firings)]
            self._taken[channel] += len(firings)
            for item in accesses:
                chosen = codes[firings] == item.code
                at = first[firings[chosen]] + item.before
                self._put(item, np.asarray(offsets[chosen], np.int64), at, what, words)
        return asked, what, words.reshape(-1)

    def _put(
        self, item: _VectorAccess, offsets: Numbers, at: Numbers, what: Numbers, words: Numbers
    ) -> None:
        """Write the words of an access to the vectors that begin at ``at``."""
        lanes = self._banked.lanes
        vectors = self._words(item.access, offsets)
        missing = item.vectors * lanes - vectors.shape[1]
        if missing:
            vectors = np.pad(vectors, ((0, 0), (0, missing)), constant_values=NOTHING)
        access = item.access
        flags = STORE * access.store + DECIDES * access.decides + LEVEL * access.level
        for number in range(item.vectors):
            words[at + number] = vectors[:, number * lanes : (number + 1) * lanes]
            what[at + number] = flags

    def _words(self, access: RuleAccess, offsets: Numbers) -> Numbers:
        """The words at these offsets, in rows."""
        tensor = self._graph.tensor(access.tensor)
        base = self._bases[access.tensor]
        if offsets.ndim > 1:
            packed = self._packed(tensor, base + np.maximum(offsets, 0))
            packed[offsets == HOLE] = NOTHING
            return packed
        width = access.bytes // tensor.type.bytes
        return self._packed(tensor, (base + offsets)[:, None] + np.arange(width))

    def _packed(self, tensor: Tensor, addresses: Numbers) -> Numbers:
        banked = self._banked
        if tensor.swizzled:
            addresses = swizzled(addresses, banked)
        row, bank = np.divmod(addresses, banked.banks)
        unit = row & (banked.ports - 1)
        return np.asarray(addresses << ADDRESS_SHIFT | unit << UNIT_SHIFT | bank, np.int64)


_MOST_FIRINGS_OF_SHARERS = 1 << 18
"""Approximate number of firings with prepared vectors; at least ``_LEAST_STRETCH`` per machine."""
_LEAST_STRETCH = 256


class BankedUnits:
    """The state of the banks and of the machines that use them."""

    def __init__(self, program: SimProgram, banked: Banked) -> None:
        self.banked = banked
        rules = with_addresses(program.graph, program.timed_places).rules
        self.levels = max(map(levels_of, rules.values()), default=1)
        self.sharer_of = np.full(program.pe_count, -1, np.int64)
        self.streams: list[BankedVectors] = []
        self._add(program)
        count = len(self.streams)
        kept = max([banked.outstanding, *(stream.most for stream in self.streams)])
        stores = any(stream.stores for stream in self.streams)
        self.ways = banks.ways_of(banked, levels=self.levels, kept=kept, stores=stores)
        self.stretch = max(_LEAST_STRETCH, min(1 << 16, _MOST_FIRINGS_OF_SHARERS // max(1, count)))
        self.sharers = np.zeros((max(1, count), banks.SHARER), np.int64)
        self.ports = np.zeros((banked.ports, banks.PORT_WORDS), np.int64)
        waiting = self._place_sharers(program, kept)
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
            shared = [rule.at(MemorySpace.SHARED) for rule in rules[timed.node.name]]
            if not any(rule.accesses for rule in shared):
                continue
            for instance in range(timed.first, timed.first + timed.pe_count):
                if trace is None or instance not in trace.addresses:
                    raise InternalError(f"{timed.node.name} has no addresses in the banks")
                self.sharer_of[instance] = len(self.streams)
                codes, addresses = trace.codes[instance].expanded, trace.addresses[instance]
                self.streams.append(
                    BankedVectors(graph, self.banked, bases, shared, codes, addresses)
                )

    def _place_sharers(self, program: SimProgram, kept: int) -> int:
        """Give every machine its port and its rings; return the words of all rings of firings."""
        sender = program.control.sender
        sent = np.zeros(program.pe_count, np.int64)
        np.add.at(sent, sender[sender >= 0], program.ring_sizes[sender >= 0])
        end = 0
        for number, pe in enumerate(np.flatnonzero(self.sharer_of >= 0).tolist()):
            row, size = self.sharers[number], kept + 1 + int(sent[pe])
            row[banks.PE], row[banks.PORT] = pe, number % self.banked.ports
            row[banks.FIRINGS_BEGIN], row[banks.FIRINGS_SIZE] = end, size
            end += size
            self.ports[number % self.banked.ports, banks.P_SIZE] += kept
        sizes = self.ports[:, banks.P_SIZE]
        self.ports[:, banks.P_BEGIN] = 2 * (np.cumsum(sizes) - sizes)
        return end * (banks.F_WAITS + self.levels)

    def _new_arrays(self, program: SimProgram, slots: int, waiting: int) -> dict[str, Signed]:
        """The kernel's arrays that live as long as the run."""
        banked = self.banked
        links = (banked.ranks + 1) * banked.ports
        entries, places = links * banked.link_depth, banked.ports * banked.queue_depth
        lanes = 1 << (banked.lanes - 1).bit_length()
        sizes = {
            "slots": slots * banks.SLOT,
            "slot_words": slots * lanes,
            "ends": slots,
            "deciding": len(self.sharers) * self.levels,
            "firings": waiting,
            "rings": 2 * int(self.ports[:, banks.P_SIZE].sum()),
            "links": 2 * links,
            "entries": entries * banks.ENTRY,
            "entry_words": entries * banked.lanes,
            "queues": 2 * banked.ports,
            "places": places * banks.ENTRY,
            "place_words": places * banked.lanes,
            "unsettled": len(program.channel_of_element),
            "changed": len(self.sharers),
            "served": banked.ports,
            "tally": 8,
            "granted": 2 * banked.banks,
        }
        return {name: np.zeros(max(1, size), np.int64) for name, size in sizes.items()}

    def tables(self) -> banks.Banks:
        """The state in the kernel's form, valid until the next ``provide``."""
        return banks.Banks(
            sharer_of=self.sharer_of,
            sharers=self.sharers.reshape(-1),
            asking=self.asked,
            vectors=self.vectors,
            words=self.words,
            ports=self.ports.reshape(-1),
            numbers=banks.numbers_of_bits(),
            banks=self.ways,
            **self._arrays,
        )

    def provide(self) -> None:
        """Prepare more vectors."""
        count = len(self.streams)
        columns = [banks.ASKED_AT, banks.VECTOR_AT]
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
        """Cycles before a machine may run out of vectors; 0 at the start and if one has."""
        if not self.more.any():
            return 1 << 40
        asked = self.sharers[: len(self.streams), banks.ASKED_AT]
        return max(0, int((self.end - asked)[self.more].min()))

    @property
    def last_stored(self) -> int:
        """The cycle in which the last store completed."""
        return int(self._arrays["tally"][banks.LAST_STORED])

    def tally(self) -> SharedCounts:
        """The counters."""
        tally = self._arrays["tally"].tolist()
        counts = self.sharers[:, banks.LOADED : banks.LATENCY + 1].tolist()
        return SharedCounts(
            banks=BankedCounts(
                cycles=tally[banks.BUSY_CYCLES],
                vectors=self.ports[:, banks.P_VECTORS].tolist(),
                served=self._arrays["served"].tolist(),
                held=tally[banks.IN_PORT],
                waited=tally[banks.WAITED],
            ),
            machines={
                pe: BankedPortCounts(*counts[number])
                for pe, number in enumerate(self.sharer_of.tolist())
                if number >= 0
            },
        )
