"""How a machine uses banks on the chip: the plain meaning of its vectors, firing by firing.

A machine that loads from or stores to tensors in ``Place.SHARED`` asks with a vector of addresses
for each access: a gather or scatter with those of its lanes, any other access with those of
the elements that it moves, one in each lane.  An access by more lanes than the memory has asks
with several vectors, and an element is a word, whatever its type.

* These machines are numbered in the order of the graph, the machines of a node in row-major order;
  number ``n`` uses port ``n % ports`` of the network.
* A firing asks with all its vectors, in the order of its accesses.  A port takes one vector in each
  cycle, the one that was asked first; of one cycle, that of the machine with the lower number.
* Loads are answered in the order in which their port was asked.  The tokens of a firing leave when
  its loads of level 0 are answered, and later by the time that those of level 1 take, and so on, as
  with a DRAM (``machine_port``); a level takes as long as its slowest load, from whichever memory.
  Tokens never leave before those of earlier firings.
* The next firing waits until the cycle after the answers of those loads that decide what the
  machine is then.
* At most ``outstanding`` vectors of a machine are under way.  They are counted in order: from the
  first one that is not answered, or, of a store, not stored, to the last one.  A firing that would
  make them more waits until the cycle after so many are done; one that asks for more than that at
  once waits until none is under way.

**Words.**  Shared tensors lie one behind the other in the order of the graph, each at a multiple of
the lanes; an open one has 2^24 words of addresses, whatever its extent.

A swizzled tensor begins and ends at a multiple of all banks, and its words take turns in the units,
by a hash: the unit of a word is the exclusive or of all digits of its address in base ``ports``, so
neighbors are in different units, and so are words that are a power of two apart.  The digits above
the lowest one are the address within the unit.  Its bank is the exclusive or of every second digit
of that, from the lowest one on, or, where ``banks`` is no power of two, its remainder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Place
from t2s.graph.machine import Machine
from t2s.graph.semantics import HOLE
from t2s.graph.verify_machine import accesses_of
from t2s.simulator.memory.banked import NOTHING, AskedVector, Banked, BankedModel
from t2s.simulator.memory.machine_accesses import RuleAccess, RuleAccesses, accesses_of_rules

Address = TypeVar("Address", int, NDArray[np.int64])

UNKNOWN = 1 << 62
"""In place of a cycle that is not known yet; no run takes so many."""

_MOST_WORDS = 1 << 31
_OPEN_WORDS = 1 << 24


def uses_shared_banks(graph: Graph) -> bool:
    """Whether machines access tensors in shared banks."""
    shared = {tensor.name for tensor in graph.tensors if tensor.place is Place.SHARED}
    return bool(shared) and any(accesses_of(node) & shared for node in graph.machines)


def bases_in_banks(graph: Graph, banked: Banked) -> Mapping[str, int]:
    """The first word of every shared tensor by name; ``UserError`` if there are too many words."""
    found: dict[str, int] = {}
    end = 0
    for tensor in graph.tensors:
        if tensor.place is not Place.SHARED:
            continue
        aligned = banked.ports * banked.banks if tensor.swizzled else banked.lanes
        found[tensor.name] = -(-end // aligned) * aligned
        end = found[tensor.name] + (_OPEN_WORDS if tensor.open else prod(tensor.allocated))
        if tensor.swizzled:
            end = -(-end // aligned) * aligned
        if end >= _MOST_WORDS:
            raise UserError(
                f"{tensor.name!r} of {graph.name!r} does not fit into shared banks",
                location=tensor.location or user_location(),
                expected=f"fewer than {_MOST_WORDS:,} words of all shared tensors",
                given=f"{end:,}",
                hint="leave large tensors in the device's memory",
            )
    return found


def vectors_of(graph: Graph, access: RuleAccess, banked: Banked) -> int:
    """The vectors of an access."""
    words = access.lanes * (access.bytes // graph.tensor(access.tensor).type.bytes)
    return -(-words // banked.lanes)


def most_loads(graph: Graph, node: Machine, banked: Banked) -> int:
    """The most vectors that a firing of a machine loads from shared banks."""
    if not uses_shared_banks(graph):
        return 0
    rules = accesses_of_rules(graph, node, frozenset({Place.SHARED}))
    counts = (
        sum(vectors_of(graph, access, banked) for access in rule.accesses if not access.store)
        for rule in rules
    )
    return max(counts, default=0)


def swizzled(address: Address, banked: Banked) -> Address:
    """The word in whose place a word of a swizzled tensor is; of one address or of an array."""
    ports, banks = banked.ports, banked.banks
    above = address // ports
    unit, bank = _folded(address, ports, ports), above % banks
    if not banks & (banks - 1):
        bank = _folded(above, banks, banks * banks)
    return (above // banks * ports + unit) * banks + bank


def _folded(number: Address, base: int, step: int) -> Address:
    """The exclusive or of digits of a base, a power of two, that are a ``step`` apart."""
    found = number % base
    while base > 1 and np.any(number := number // step):
        found = found ^ number % base
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVector:
    """A vector that a firing asks with."""

    addresses: tuple[int, ...]
    store: bool
    level: int
    decides: bool


@dataclass(slots=True)
class BankedPortCounts:
    """Vectors that a machine has loaded and stored with, words, and cycles from ask to answer."""

    loads: int = 0
    stores: int = 0
    words: int = 0
    latency: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BankedFirings:
    """What is known of one machine; ``rules`` are its accesses to shared banks."""

    graph: Graph
    banked: Banked
    bases: Mapping[str, int]
    rules: Sequence[RuleAccesses]
    codes: Sequence[int]
    addresses: Sequence[Sequence[Array]]

    def plans(self) -> list[list[PlannedVector]]:
        """The vectors of each firing."""
        streams = [iter(stream) for stream in self.addresses]
        found: list[list[PlannedVector]] = []
        for code in self.codes:
            vectors: list[PlannedVector] = []
            for access in self.rules[code].accesses:
                vectors += self._vectors(access, next(streams[access.channel]))
            found.append(vectors)
        return found

    def _vectors(self, access: RuleAccess, token: Array) -> Iterator[PlannedVector]:
        """The vectors of an access."""
        tensor = self.graph.tensor(access.tensor)
        words: list[int] = []
        for offset in np.atleast_1d(token).tolist():
            if access.lanes > 1 and offset == HOLE:
                words.append(NOTHING)
                continue
            for word in range(access.bytes // tensor.type.bytes):
                address = self.bases[access.tensor] + offset + word
                words.append(swizzled(address, self.banked) if tensor.swizzled else address)
        for begin in range(0, len(words), self.banked.lanes):
            yield PlannedVector(
                addresses=tuple(words[begin : begin + self.banked.lanes]),
                store=access.store,
                level=access.level,
                decides=access.decides,
            )


Waits = Mapping[int, int]
"""Cycles that loads take, by level."""


@dataclass(slots=True, kw_only=True)
class _Firing:
    """A firing whose tokens have not left; ``settle`` is told when they do."""

    fired: int
    waits: dict[int, int]
    settle: Sequence[Callable[[int], None]]
    unanswered: int = 0

    @property
    def leaves(self) -> int:
        """When its tokens could leave, if all is answered."""
        return self.fired + sum(self.waits.values())


@dataclass(slots=True, kw_only=True)
class _Open:
    """A vector that is not done, and the firing that asked with it."""

    asked: AskedVector
    planned: PlannedVector
    firing: _Firing
    noticed: bool = False


@dataclass(slots=True, kw_only=True)
class BankedPort:
    """The state of a machine that uses a port of the network."""

    banked: Banked
    model: BankedModel
    number: int
    plans: Sequence[Sequence[PlannedVector]]
    counts: BankedPortCounts = field(default_factory=BankedPortCounts)
    stored: int = 0
    _planned: Sequence[PlannedVector] = ()
    _open: deque[_Open] = field(default_factory=deque)
    _done: list[int] = field(default_factory=list)
    _firings: deque[_Firing] = field(default_factory=deque)
    _left: int = 0
    _held: int = 0
    _undecided: int = 0
    _deciding: dict[int, int] = field(default_factory=dict)

    def prepare(self, firing: int) -> None:
        """Find the vectors of the next firing."""
        self._planned = self.plans[firing] if firing < len(self.plans) else ()

    def free(self) -> int:
        """The cycle from which the next firing may ask, or ``UNKNOWN``."""
        if self._undecided:
            return UNKNOWN
        made, asked = len(self._done) + len(self._open), len(self._planned)
        blocking = min(made + asked - self.banked.outstanding, made) - 1
        if not asked or blocking < 0:
            return self._held
        if blocking >= len(self._done):
            return UNKNOWN
        return max(self._held, self._done[blocking] + 1)

    def ask(
        self, now: int, waits: Waits, deciding: Waits, settle: Sequence[Callable[[int], None]]
    ) -> int:
        """Ask with the firing's vectors; when its tokens leave, or ``UNKNOWN``.

        ``waits`` and ``deciding`` are those for other memories, of all loads and of those that
        decide.  ``settle`` is told when the tokens leave if that was not known.
        """
        firing = _Firing(fired=now, waits=dict(waits), settle=settle)
        self._deciding = dict(deciding)
        for planned in self._planned:
            asked = self.model.ask(self.number, planned.addresses, store=planned.store)
            self._open.append(_Open(asked=asked, planned=planned, firing=firing))
            self.counts.words += sum(address != NOTHING for address in planned.addresses)
            if planned.store:
                self.counts.stores += 1
                continue
            self.counts.loads += 1
            firing.unanswered += 1
            self._undecided += planned.decides
        if not self._undecided:
            self._held = now + sum(self._deciding.values())
        if self._firings or firing.unanswered:
            self._firings.append(firing)
            return UNKNOWN
        self._left = max(self._left, firing.leaves)
        return self._left

    def advance(self) -> None:
        """Take notice of vectors of which it is known since the last cycle when they are done."""
        for item in self._open:
            if item.asked.completed >= 0 and not item.noticed:
                item.noticed = True
                self._complete(item, item.asked.completed)
        while self._open and self._open[0].asked.completed >= 0:
            completed = self._open.popleft().asked.completed
            self._done.append(max(completed, self._done[-1] if self._done else 0))
        while self._firings and not self._firings[0].unanswered:
            firing = self._firings.popleft()
            self._left = max(self._left, firing.leaves)
            for settle in firing.settle:
                settle(self._left)

    def _complete(self, item: _Open, completed: int) -> None:
        planned, firing = item.planned, item.firing
        if planned.store:
            self.stored = completed
            return
        wait = completed - firing.fired
        self.counts.latency += wait
        firing.unanswered -= 1
        firing.waits[planned.level] = max(wait, firing.waits.get(planned.level, 0))
        if planned.decides:
            self._undecided -= 1
            waited = self._deciding.get(planned.level, 0)
            self._deciding[planned.level] = max(wait + 1, waited)
            if not self._undecided:
                self._held = firing.fired + sum(self._deciding.values())
