"""Banked memories on a chip that several ports share through a shuffle network, cycle by cycle.

A vector of addresses enters at a port.  The network takes its words to the memory units that hold
them, each unit serves words of several vectors at once, and a vector is answered when all its words
are served and those that entered its port before are answered.

**The network** is a butterfly of ranks of merge units with two inputs and two outputs each.  An
output makes a vector of what the heads of both inputs have for it, the older head first; a word
keeps its lane or moves by ``lane_moves`` at most, and what finds no lane stays in its head for the
next cycle.  A head goes when nothing is left of it.  Links hold ``link_depth`` vectors.

**A unit** has banks with one access each per cycle and a queue of vectors.  In each of ``rounds``
every lane that has not been served in this cycle proposes its oldest word whose bank is still free,
and every bank takes the oldest proposal.  Vectors leave the queue in order.

This is a model of ours of what is published of Capstan (MICRO 2021): the shares of the banks' peak
that its abstract gives for random addresses, 32 % in order and 80 % out of order, follow from it,
and what is not published is a parameter.  Replies meet no conflicts.  No device has a banked memory
yet, so the engines know nothing of it; ``benchmarks/banked.py`` shows what it does.
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
    """

    ports: int = 16
    lanes: int = 16
    banks: int = 16
    queue_depth: int = 16
    rounds: int = 2
    lane_moves: int = 1
    link_depth: int = 4
    reply_cycles: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            least = 0 if item.name in ("lane_moves", "reply_cycles") else 1
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
                raise _refusal(item.name, f"an integer from {least} to {_MOST}", value)
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
class _Asked:
    """A vector on its way: when its last word is served."""

    words: int
    served: int = 0
    answered: int = -1


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a vector, and where it goes."""

    asked: _Asked
    unit: int
    bank: int


@dataclass(slots=True)
class _Vector:
    """Words by lane on a link or in a queue; ``age`` orders vectors, the oldest first."""

    age: tuple[int, int]
    words: dict[int, _Word]


@dataclass(slots=True)
class BankedModel:
    """A banked memory in use.

    ``now`` is the cycle, ``served`` counts words.
    """

    banked: Banked
    now: int = 0
    served: int = 0
    _links: list[list[deque[_Vector]]] = field(default_factory=list)
    _queues: list[list[_Vector]] = field(default_factory=list)
    _asked: list[deque[_Asked]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ports = range(self.banked.ports)
        self._links = [[deque() for _ in ports] for _ in range(self.banked.ranks + 1)]
        self._queues = [[] for _ in ports]
        self._asked = [deque() for _ in ports]

    def has_room(self, port: int) -> bool:
        """Whether a port takes a vector in this cycle."""
        return len(self._links[0][port]) < self.banked.link_depth

    @property
    def is_empty(self) -> bool:
        """Whether all vectors are answered."""
        return not any(self._asked)

    def ask(self, port: int, addresses: Sequence[int]) -> None:
        """Let a vector of addresses, or ``NOTHING``, one for each lane, enter a port with room."""
        asked = _Asked(sum(address != NOTHING for address in addresses))
        words = {
            lane: _Word(asked, *self.banked.place(address))
            for lane, address in enumerate(addresses)
            if address != NOTHING
        }
        self._asked[port].append(asked)
        if words:
            self._links[0][port].append(_Vector((self.now, port), words))
        else:
            asked.answered = self.now

    def step(self) -> list[int]:
        """One cycle; the ports whose oldest vector is answered in it, once for each vector."""
        for unit in range(self.banked.ports):
            self._take(unit)
            self._serve(unit)
        for rank in reversed(range(self.banked.ranks)):
            self._move(rank)
        answered: list[int] = []
        for port, waiting in enumerate(self._asked):
            while waiting and 0 <= waiting[0].answered <= self.now:
                waiting.popleft()
                answered.append(port)
        self.now += 1
        return answered

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
                self._finish(word)
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
                bank = vector.words[lane].bank
                if bank in free:
                    left.discard(lane)
                    found.setdefault(bank, (place, lane))
        return found

    def _finish(self, word: _Word) -> None:
        self.served += 1
        word.asked.served += 1
        if word.asked.served == word.asked.words:
            word.asked.answered = self.now + self.banked.reply_cycles

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
