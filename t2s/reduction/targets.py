"""What is promised about the results that sums go to, and the check of promises against data."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Target(Enum):
    """Whether reductions that are combined go to one result.

    ``SameTarget``: all of them do.  ``MaybeDifferentTarget``: neighbours may go to different ones.
    """

    SAME = "SameTarget"
    MAYBE_DIFFERENT = "MaybeDifferentTarget"

    def __repr__(self) -> str:
        return self.value


SameTarget, MaybeDifferentTarget = Target.SAME, Target.MAYBE_DIFFERENT


def interrupted_target(targets: Array) -> tuple[int, int] | None:
    """A target that a stream comes back to after another one: (stream, target); else ``None``.

    ``targets`` has a row for each stream; negative ones are no targets.
    """
    streams, found = _changes(targets)
    order = np.lexsort((found, streams))
    streams, found = streams[order], found[order]
    again = np.flatnonzero((streams[1:] == streams[:-1]) & (found[1:] == found[:-1]))
    return (int(streams[again[0]]), int(found[again[0]])) if again.size else None


def shared_target(targets: Array) -> tuple[int, int, int] | None:
    """A target of two streams: (stream, other stream, target); ``None`` if there is none."""
    streams, found = _changes(targets)
    order = np.lexsort((streams, found))
    streams, found = streams[order], found[order]
    shared = np.flatnonzero((streams[1:] != streams[:-1]) & (found[1:] == found[:-1]))
    if not shared.size:
        return None
    at = int(shared[0])
    return int(streams[at]), int(streams[at + 1]), int(found[at])


def _changes(targets: Array) -> tuple[Array, Array]:
    """Where a stream goes on to another target: the streams, and the targets."""
    present = targets.reshape(-1) >= 0
    streams = np.repeat(np.arange(targets.shape[0]), targets.shape[1])[present]
    found = targets.reshape(-1)[present]
    first = np.ones(found.size, bool)
    first[1:] = (found[1:] != found[:-1]) | (streams[1:] != streams[:-1])
    return streams[first], found[first]
