"""Which parts to look at in which cycle, and the channels between them.

A token that is sent in cycle t can be taken from t + latency on.  Room that a take makes is there
in the next cycle.  A queue has one sender and one receiver, of which each acts once per cycle.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

from t2s.backends.cgra_tia.machine.floats import Word
from t2s.backends.cgra_tia.netlist import Net

if TYPE_CHECKING:
    from t2s.backends.cgra_tia.machine.parts import PlacedPart

Token = tuple[int, int, Word]
"""The cycle from which on it can be taken, its tag and its word."""


class ChannelQueue:
    """A branch of a net while a design runs; ``source`` and ``sink`` are the parts at its ends."""

    __slots__ = ("branch", "capacity", "latency", "net", "sink", "source", "taken_at", "tokens")

    def __init__(
        self,
        net: Net,
        branch: int,
        latency: int,
        capacity: int,
        ends: tuple[PlacedPart, PlacedPart],
    ) -> None:
        self.net = net
        self.branch = branch
        self.latency = latency
        self.capacity = capacity
        self.source, self.sink = ends
        self.tokens: deque[Token] = deque()
        self.taken_at = 0

    def __str__(self) -> str:
        end = f", branch {self.branch}" if len(self.net.sinks) > 1 else ""
        held = f"{len(self.tokens)} of {self.capacity} tokens"
        return f"{self.net.name!r}{end} ({held})"


class Agenda:
    """Parts by the cycle in which they are to be looked at.

    ``now`` is the current cycle and ``soon`` are the parts of the next one.  ``tokens`` are those
    on their way in all queues, ``unfinished`` the units whose nest is not done: the run ends when
    both are 0.
    """

    __slots__ = ("_cycles", "_later", "now", "soon", "tokens", "unfinished")

    def __init__(self) -> None:
        self.now = 0
        self.soon: list[PlacedPart] = []
        self.tokens = 0
        self.unfinished = 0
        self._later: dict[int, list[PlacedPart]] = {}
        self._cycles: list[int] = []

    def add(self, cycle: int, part: PlacedPart) -> None:
        """Look at a part in a later cycle."""
        if cycle == self.now + 1:
            if part.wake != cycle:
                part.wake = cycle
                self.soon.append(part)
            return
        parts = self._later.get(cycle)
        if parts is None:
            self._later[cycle] = [part]
            heapq.heappush(self._cycles, cycle)
        else:
            parts.append(part)

    def advance(self) -> list[PlacedPart]:
        """Go on to the next cycle in which there is anything to look at, and say what.

        A part may be there several times.  Nothing is there if nothing will happen any more.
        """
        parts, self.soon = self.soon, []
        self.now += 1
        if not parts and self._cycles:
            self.now = self._cycles[0]
        if self._cycles and self._cycles[0] == self.now:
            heapq.heappop(self._cycles)
            parts += self._later.pop(self.now)
        return parts
