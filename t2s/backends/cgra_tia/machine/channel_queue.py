"""A branch of a net while a design runs: tokens on their way, and room for more.

A token that is sent in cycle t can be taken from t + latency on.  Room that a take makes is there
in the next cycle.  A queue has one sender and one receiver, of which each acts once per cycle.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from t2s.backends.cgra_tia.machine.floats import Word
from t2s.backends.cgra_tia.netlist import Net

if TYPE_CHECKING:
    from t2s.backends.cgra_tia.machine.parts import PlacedPart

Token = tuple[int, int, Word]
"""The cycle from which on it can be taken, its tag and its word."""


class ChannelQueue:
    """The FIFO of a branch; ``source`` and ``sink`` are the parts at its ends."""

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

    def full(self, now: int) -> bool:
        """Whether nothing can be sent in this cycle; what is taken in it makes no room yet."""
        return len(self.tokens) + (self.taken_at == now) >= self.capacity

    def ready(self, now: int) -> bool:
        """Whether a token can be taken in this cycle."""
        return bool(self.tokens) and self.tokens[0][0] <= now

    def __str__(self) -> str:
        end = f", branch {self.branch}" if len(self.net.sinks) > 1 else ""
        held = f"{len(self.tokens)} of {self.capacity} tokens"
        return f"{self.net.name!r}{end} ({held})"
