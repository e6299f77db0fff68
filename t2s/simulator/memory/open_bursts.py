"""Bursts that controllers in front of a DRAM have read, and of which parts may be stored since."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum


class Request(IntEnum):
    """What is asked of a burst.

    ``UPDATE`` stores a part of it: what is not stored has to be read first.  ``STREAM`` reads it
    for a queue, which may be filled from what others have read.
    """

    READ = 0
    WRITE = 1
    UPDATE = 2
    STREAM = 3


@dataclass(slots=True)
class OpenBurst:
    """A burst, when its data have moved, and whether it has to be written back."""

    changed: bool = False
    end: int = 0
    burst: int = -1


@dataclass(slots=True)
class OpenBursts:
    """What ``controllers`` with ``places`` each know: burst ``b`` is that of ``b % controllers``.

    A burst that is read takes the place of the one that is not changed, or else of the one that is,
    whose data have moved first.
    """

    controllers: int
    places: int
    tables: list[list[OpenBurst]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = [[OpenBurst() for _ in range(self.places)] for _ in range(self.controllers)]

    def find(self, clock: int, burst: int, request: Request) -> OpenBurst | None:
        """The burst, if it is known and may be used for a request; else it is forgotten.

        A ``READ`` may use one whose data have not moved yet, or that is changed.
        """
        found = self._known(burst)
        if found is None:
            return None
        late = request is Request.READ and not found.changed and clock >= found.end
        if request is Request.WRITE or late:
            found.changed, found.end, found.burst = False, 0, -1
            return None
        return found

    def _known(self, burst: int) -> OpenBurst | None:
        known = self.tables[burst % self.controllers] if self.controllers else []
        return next((one for one in known if one.burst == burst), None)

    def open(self, burst: int, end: int, changed: bool) -> int | None:
        """A burst is read; the one that has to be written back for it, if there is one.

        What is only read does not take the place of what is changed.
        """
        place = min(self.tables[burst % self.controllers], key=lambda one: (one.changed, one.end))
        if place.changed and not changed:
            return None
        before = place.burst if place.changed else None
        place.changed, place.end, place.burst = changed, end, burst
        return before

    def close(self) -> list[int]:
        """The bursts that have to be written back at the end of a run."""
        return [one.burst for known in self.tables for one in known if one.changed]
