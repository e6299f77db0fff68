"""Which parts to look at in which cycle, and how much is still to come."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")


class Agenda(Generic[T]):
    """Parts by the cycle in which they are to be looked at.

    ``tokens`` are those on their way in all channels, ``unfinished`` the units whose nest is not
    done: the run ends when both are 0.
    """

    def __init__(self) -> None:
        self._parts: dict[int, list[T]] = {}
        self._cycles: list[int] = []
        self.tokens = 0
        self.unfinished = 0

    def add(self, cycle: int, part: T) -> None:
        """Look at a part in a cycle."""
        parts = self._parts.get(cycle)
        if parts is None:
            self._parts[cycle] = [part]
            heapq.heappush(self._cycles, cycle)
        else:
            parts.append(part)

    @property
    def next_cycle(self) -> int | None:
        """The next cycle in which there is anything to look at."""
        return self._cycles[0] if self._cycles else None

    def pop(self) -> list[T]:
        """The parts of the next cycle, some of them several times."""
        return self._parts.pop(heapq.heappop(self._cycles))
