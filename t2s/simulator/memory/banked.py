"""Banked memories on a chip that several ports share through a shuffle network, cycle by cycle.

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
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from t2s.core.errors import UserError
from t2s.core.location import user_location

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
