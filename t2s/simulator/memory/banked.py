"""Banked memories that ports share through a shuffle network, and how machines use them.

A vector of addresses enters at a port, one in a cycle.  The network takes its words to the memory
units that hold them, each unit serves words of several vectors at once, and a vector that loads is
answered when all its words are served and those that entered its port before are answered.

**The network** is a butterfly of ranks of merge units with two inputs and two outputs each.  An
output makes a vector of what the heads of both inputs have for it, the older head first; a word
keeps its lane or moves by ``lane_moves`` at most, and what finds no lane stays in its head for the
next cycle.  A head goes when nothing is left of it.  Links hold ``link_depth`` vectors.

**A unit** has banks with one access each per cycle and a queue of vectors.  In each of ``rounds``
every lane that has not been served in this cycle proposes its oldest word whose bank is still free,
and every bank takes the oldest proposal.  Vectors leave the queue in order.  A word waits while
an older vector in the queue has a word of the same address, and one of the two is stored: the
network keeps the order of what goes from a port to a unit, so loads and stores of a word, which are
all of one machine, come in the order in which they were asked for.

This is a model of ours of what is published of Capstan (MICRO 2021): the shares of the banks' peak
that its abstract gives for random addresses, 32 % in order and 80 % out of order, follow from it,
and what is not published is a parameter.  Replies meet no conflicts.  ``banked_port`` says how
machines use it, and ``times.banked_kernel`` is the same compiled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph, MemorySpace, Tensor
from t2s.graph.nodes import Machine
from t2s.graph.semantics import HOLE
from t2s.graph.verify_machine import accesses_of
from t2s.simulator.memory.machine_accesses import (
    Addresses,
    RuleAccess,
    RuleAccesses,
    accesses_of_rules,
)

NOTHING = -1
"""In place of an address: the lane has no word."""

_MOST = 1 << 16
_MOST_LANES = 32
_LEAST = {"lane_moves": 0, "reply_cycles": 0}
_MOST_OF = {"lanes": _MOST_LANES, "banks": _MOST_LANES, "ports": 1024, "link_depth": 1024}
_MOST_OF |= {"queue_depth": 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class Banked:
    """Memories in banks, and the network in front of them.

    Attributes
    ----------
    ports: of the network, a power of two; it has as many memory units.
    lanes: words of a vector.
    banks: of a unit; word ``a`` is in bank ``a % banks`` of unit ``a // banks % ports``.
    queue_depth: vectors that a unit works on.
    rounds: of its allocator, in a cycle.
    lane_moves: lanes by which a rank of the network may move a word.
    link_depth: vectors that each link of the network holds.
    reply_cycles: from serving the last word of a vector to the answer.
    outstanding: vectors of one machine that may be under way.
    """

    ports: int = 16
    lanes: int = 16
    banks: int = 16
    queue_depth: int = 16
    rounds: int = 2
    lane_moves: int = 1
    link_depth: int = 4
    reply_cycles: int = 0
    outstanding: int = 64

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least, most = _LEAST.get(item.name, 1), _MOST_OF.get(item.name, _MOST)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise _refusal(item.name, f"an integer from {least} to {most}", value)
        if self.ports & (self.ports - 1):
            raise _refusal("ports", "a power of two", self.ports)

    @property
    def ranks(self) -> int:
        """Ranks of the network."""
        return self.ports.bit_length() - 1

    def place(self, address: int) -> tuple[int, int]:
        """The unit and the bank of a word."""
        return address // self.banks % self.ports, address % self.banks


def _refusal(name: str, expected: str, given: object) -> UserError:
    return UserError(
        f"a banked memory cannot have these {name.replace('_', ' ')}",
        location=user_location(),
        expected=expected,
        given=repr(given),
    )


@dataclass(slots=True)
class AskedVector:
    """A vector on its way.

    ``left`` are its words that are not served, ``None`` before it enters its port; ``completed`` is
    the cycle of the answer, or, for a store, the one in which its last word is served; -1 until
    that is known.
    """

    port: int
    addresses: Sequence[int]
    store: bool = False
    entered: int = -1
    left: int | None = None
    served: int = -1
    completed: int = -1


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a vector, and where it goes."""

    asked: AskedVector
    address: int
    unit: int
    bank: int


@dataclass(slots=True)
class _Vector:
    """Words by lane on a link or in a queue; ``age`` orders vectors, the oldest first."""

    age: tuple[int, int]
    words: dict[int, _Word]


@dataclass(slots=True)
class BankedCounts:
    """What a banked memory has done.

    Attributes
    ----------
    cycles: in which it had words to serve.
    vectors: that entered the network, by port.
    served: words, by unit.
    held: cycles that vectors waited before they entered their port, summed over vectors.
    waited: cycles that words took longer to their bank than without any conflict, summed over
        words: in the network, and in the queue of the unit.
    """

    cycles: int = 0
    vectors: list[int] = field(default_factory=list)
    served: list[int] = field(default_factory=list)
    held: int = 0
    waited: int = 0


@dataclass(slots=True)
class BankedModel:
    """A banked memory in use; ``now`` is the cycle."""

    banked: Banked
    now: int = 0
    counts: BankedCounts = field(default_factory=BankedCounts)
    under_way: int = 0
    _stores: bool = False
    _asking: list[deque[tuple[int, AskedVector]]] = field(default_factory=list)
    _links: list[list[deque[_Vector]]] = field(default_factory=list)
    _queues: list[list[_Vector]] = field(default_factory=list)
    _loading: list[deque[AskedVector]] = field(default_factory=list)
    _answered: list[int] = field(default_factory=list)
    _stored: list[AskedVector] = field(default_factory=list)

    def __post_init__(self) -> None:
        ports = range(self.banked.ports)
        self.counts.vectors = [0 for _ in ports]
        self.counts.served = [0 for _ in ports]
        self._asking = [deque() for _ in ports]
        self._links = [[deque() for _ in ports] for _ in range(self.banked.ranks + 1)]
        self._queues = [[] for _ in ports]
        self._loading = [deque() for _ in ports]
        self._answered = [0 for _ in ports]

    @property
    def served(self) -> int:
        """Words served so far."""
        return sum(self.counts.served)

    def has_room(self, port: int) -> bool:
        """Whether a vector that asks a port in this cycle enters it in this cycle."""
        return not self._asking[port] and len(self._links[0][port]) < self.banked.link_depth

    @property
    def is_empty(self) -> bool:
        """Whether it is known of all vectors when they are answered or stored."""
        return not self.under_way

    def ask(self, port: int, addresses: Sequence[int], *, store: bool = False) -> AskedVector:
        """Let a vector of addresses, or ``NOTHING``, one for each lane, wait to enter a port."""
        asked = AskedVector(port, addresses, store)
        self._asking[port].append((self.now, asked))
        self.under_way += 1
        self._stores |= store
        if not store:
            self._loading[port].append(asked)
        return asked

    def step(self) -> list[AskedVector]:
        """One cycle; the vectors of which it is known now when they are answered or stored."""
        self.counts.cycles += bool(self.under_way)
        self._stored = []
        for port in range(self.banked.ports):
            self._enter(port)
        for unit in range(self.banked.ports):
            self._take(unit)
            self._serve(unit)
        for rank in reversed(range(self.banked.ranks)):
            self._move(rank)
        done = self._stored
        for port, waiting in enumerate(self._loading):
            while waiting and waiting[0].served >= 0:
                self._answered[port] = max(self._answered[port], waiting[0].served)
                waiting[0].completed = self._answered[port]
                done.append(waiting.popleft())
        self.now += 1
        return done

    def _enter(self, port: int) -> None:
        """Let the oldest vector that waits for a port enter it, if there is room."""
        waiting = self._asking[port]
        if not waiting or len(self._links[0][port]) >= self.banked.link_depth:
            return
        since, asked = waiting.popleft()
        words = {
            lane: _Word(asked, address, *self.banked.place(address))
            for lane, address in enumerate(asked.addresses)
            if address != NOTHING
        }
        asked.entered, asked.left = self.now, len(words)
        self.counts.vectors[port] += 1
        self.counts.held += self.now - since
        if words:
            self._links[0][port].append(_Vector((self.now, port), words))
        else:
            self._finish(asked, self.now)

    def _finish(self, asked: AskedVector, answered: int) -> None:
        """All words are served."""
        self.under_way -= 1
        if asked.store:
            asked.completed = self.now
            self._stored.append(asked)
        else:
            asked.served = answered

    def _take(self, unit: int) -> None:
        """Move a vector from the last link into the queue of a unit."""
        arrived, queue = self._links[self.banked.ranks][unit], self._queues[unit]
        if arrived and len(queue) < self.banked.queue_depth:
            queue.append(arrived.popleft())

    def _serve(self, unit: int) -> None:
        """Serve a word of every bank that some lane proposes."""
        queue = self._queues[unit]
        free, idle = set(range(self.banked.banks)), set(range(self.banked.lanes))
        for _ in range(self.banked.rounds):
            for bank, (place, lane) in self._proposals(queue, free, idle).items():
                word = queue[place].words.pop(lane)
                free.discard(bank)
                idle.discard(lane)
                self._serve_word(word)
        while queue and not queue[0].words:
            del queue[0]

    def _proposals(
        self, queue: Sequence[_Vector], free: set[int], idle: set[int]
    ) -> dict[int, tuple[int, int]]:
        """For each bank the oldest word that a lane proposes: its place in the queue, its lane."""
        found: dict[int, tuple[int, int]] = {}
        left = set(idle)
        for place, vector in enumerate(queue):
            for lane in sorted(left & vector.words.keys()):
                word = vector.words[lane]
                if word.bank in free and not self._has_to_wait(queue[:place], word):
                    left.discard(lane)
                    found.setdefault(word.bank, (place, lane))
        return found

    def _has_to_wait(self, older: Sequence[_Vector], word: _Word) -> bool:
        """Whether an older vector has a word of the same address, and one of the two is stored."""
        return self._stores and any(
            other.address == word.address and (other.asked.store or word.asked.store)
            for vector in older
            for other in vector.words.values()
        )

    def _serve_word(self, word: _Word) -> None:
        asked = word.asked
        self.counts.served[word.unit] += 1
        self.counts.waited += self.now - asked.entered - self.banked.ranks
        assert asked.left is not None
        asked.left -= 1
        if asked.left == 0:
            self._finish(asked, self.now + self.banked.reply_cycles)

    def _move(self, rank: int) -> None:
        """Let all merge units of a rank make a vector each."""
        before, after = self._links[rank], self._links[rank + 1]
        for output in range(self.banked.ports):
            if len(after[output]) == self.banked.link_depth:
                continue
            inputs = {output, output ^ (1 << rank)}
            heads = sorted((before[at][0] for at in inputs if before[at]), key=lambda v: v.age)
            merged = self._merged(heads, output, 1 << rank)
            if merged:
                after[output].append(_Vector(heads[0].age, merged))
        for link in before:
            if link and not link[0].words:
                link.popleft()

    def _merged(self, heads: Sequence[_Vector], output: int, bit: int) -> dict[int, _Word]:
        """What an output takes from the heads."""
        lanes = self.banked.lanes
        moves = [0, *(s * m for m in range(1, self.banked.lane_moves + 1) for s in (-1, 1))]
        taken: dict[int, _Word] = {}
        for head in heads:
            for lane, word in sorted(head.words.items()):
                if (word.unit ^ output) & bit:
                    continue
                free = (lane + m for m in moves if 0 <= lane + m < lanes and lane + m not in taken)
                found = next(free, None)
                if found is not None:
                    taken[found] = head.words.pop(lane)
        return taken


# How a machine uses banks on the chip: the plain meaning of its vectors, firing by firing.
#
# A machine that loads from or stores to tensors in ``MemorySpace.SHARED`` asks with a vector of
# addresses for each access: a gather or scatter with those of its lanes, any other access with
# those of the elements that it moves, one in each lane.  An access by more lanes than the memory
# has asks with several vectors, and an element is a word, whatever its type.
#
# * These machines are numbered in the order of the graph, the machines of a node in row-major
# order; number ``n`` uses port ``n % ports`` of the network. * A firing asks with all its vectors,
# in the order of its accesses.  A port takes one vector in each cycle, the one that was asked
# first; of one cycle, that of the machine with the lower number. * Loads are answered in the order
# in which their port was asked.  The tokens of a firing leave when its loads of level 0 are
# answered, and later by the time that those of level 1 take, and so on, as with a DRAM
# (``machine_port``); a level takes as long as its slowest load, from whichever memory. Tokens never
# leave before those of earlier firings. * The next firing waits until the cycle after the answers
# of those loads that decide what the machine is then. * At most ``outstanding`` vectors of a
# machine are under way.  They are counted in order: from the first one that is not answered, or, of
# a store, not stored, to the last one.  A firing that would make them more waits until the cycle
# after so many are done; one that asks for more than that at once waits until none is under way.
#
# **Words.**  Shared tensors lie one behind the other in the order of the graph, each at a multiple
# of the lanes; an open one has 2^24 words of addresses, whatever its extent.
#
# A swizzled tensor begins and ends at a multiple of all banks, and its words take turns in the
# units, by a hash: the unit of a word is the exclusive or of all digits of its address in base
# ``ports``, so neighbors are in different units, and so are words that are a power of two apart.
# The digits above the lowest one are the address within the unit.  Its bank is the exclusive or of
# every second digit of that, from the lowest one on, or, where ``banks`` is not a power of two, its
# remainder.

Address = TypeVar("Address", int, NDArray[np.int64])

UNKNOWN = 1 << 62
"""In place of a cycle that is not known yet; no run takes so many."""

_MOST_WORDS = 1 << 31
_OPEN_WORDS = 1 << 24


def uses_shared_banks(graph: Graph) -> bool:
    """Whether machines access tensors in shared banks."""
    shared = {tensor.name for tensor in graph.tensors if tensor.place is MemorySpace.SHARED}
    return bool(shared) and any(accesses_of(node) & shared for node in graph.machines)


def bases_in_banks(graph: Graph, banked: Banked) -> Mapping[str, int]:
    """The first word of every shared tensor by name; ``UserError`` if there are too many words."""
    found: dict[str, int] = {}
    end = 0
    for tensor in graph.tensors:
        if tensor.place is not MemorySpace.SHARED:
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
    rules = accesses_of_rules(graph, node, frozenset({MemorySpace.SHARED}))
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
    """The exclusive or of digits of a base that is a power of two, a ``step`` apart."""
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


# The vectors of a machine for all its firings at once: ``banked_port`` with arrays.

Numbers = NDArray[np.int64]

STORE, DECIDES, LEVEL = 1, 2, 4
"""What is said of a vector: ``STORE`` + ``DECIDES`` + ``LEVEL`` times its level."""

ADDRESS_SHIFT, UNIT_SHIFT, PLACE_BITS = 32, 16, 16
"""A word is its address, its unit and its bank, from the left; or ``NOTHING``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _VectorAccess:
    """An access of a rule, and how many vectors of a firing come before it."""

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
                found = _VectorAccess(code=code, before=before, vectors=vectors, access=access)
                self._accesses.append(found)
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
        """Whether any vector may be one that stores."""
        return any(item.access.store for item in self._accesses)

    def take(self, count: int) -> tuple[Array, Numbers, Numbers]:
        """Of the next firings, at most ``count``: how many vectors, what they are, their words."""
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
            found = [item for item in self._accesses if item.access.channel == channel]
            makes = np.zeros(len(self._counts), np.bool_)
            makes[[item.code for item in found]] = True
            made = np.flatnonzero(makes[codes])
            here = tokens[self._taken[channel] : self._taken[channel] + len(made)]
            self._taken[channel] += len(made)
            for item in found:
                chosen = codes[made] == item.code
                at = first[made[chosen]] + item.before
                self._put(item, np.asarray(here[chosen], np.int64), at, what, words)
        return asked, what, words.reshape(-1)

    def _put(
        self, item: _VectorAccess, offsets: Numbers, at: Numbers, what: Numbers, words: Numbers
    ) -> None:
        """Put the words of an access into the vectors that begin at ``at``."""
        lanes = self._banked.lanes
        found = self._words(item.access, offsets)
        missing = item.vectors * lanes - found.shape[1]
        if missing:
            found = np.pad(found, ((0, 0), (0, missing)), constant_values=NOTHING)
        access = item.access
        said = STORE * access.store + DECIDES * access.decides + LEVEL * access.level
        for number in range(item.vectors):
            words[at + number] = found[:, number * lanes : (number + 1) * lanes]
            what[at + number] = said

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
