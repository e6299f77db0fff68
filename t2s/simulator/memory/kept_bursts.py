"""Bursts that the controller of a channel keeps after it has read them, where there is room."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KeptBursts:
    """The last ``most`` bursts that a channel has read, the oldest first; when they have moved.

    What is written leaves a place empty, which is used again in its turn.
    """

    most: int
    places: list[tuple[int, int]] = field(default_factory=list)

    def end(self, burst: int) -> int | None:
        """When the data of a burst have moved; ``None`` if it is not kept."""
        return next((end for kept, end in self.places if kept == burst), None)

    def note(self, burst: int, end: int) -> None:
        """A burst is read, which was not kept."""
        if self.most:
            del self.places[: max(0, len(self.places) + 1 - self.most)]
            self.places.append((burst, end))

    def drop(self, burst: int) -> None:
        """A burst is written: what is kept of it is old."""
        self.places = [(EMPTY, 0) if kept == burst else (kept, end) for kept, end in self.places]


EMPTY = -1
"""In a place without a burst."""
