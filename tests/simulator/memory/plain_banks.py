"""Shared banks and the machines in front of them, to check ``t2s.simulator.memory.banks``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from t2s.core.ops import Array
from t2s.graph.graph import Graph
from t2s.graph.semantics import HOLE
from t2s.simulator.memory.banks import NOTHING, UNKNOWN
from t2s.simulator.memory.machine_accesses import RuleAccess, RuleAccesses
from t2s.simulator.memory.report import BankedCounts, BankedPortCounts
from t2s.simulator.memory.sharers import swizzled
from t2s.simulator.memory.spec import Banked


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVector:
    """A vector that a firing asks with."""

    addresses: tuple[int, ...]
    store: bool
    level: int
    decides: bool


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
