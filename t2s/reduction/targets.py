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
    for stream, line in enumerate(targets):
        present = line[line >= 0]
        starts = present[np.flatnonzero(np.diff(present, prepend=-1))]
        found, counts = np.unique(starts, return_counts=True)
        if (counts > 1).any():
            return stream, int(found[counts > 1][0])
    return None


def shared_target(targets: Array) -> tuple[int, int, int] | None:
    """A target of two streams: (stream, other stream, target); ``None`` if there is none."""
    owners = np.repeat(np.arange(targets.shape[0]), targets.shape[1])
    present = targets.reshape(-1) >= 0
    pairs = np.unique(np.stack([targets.reshape(-1)[present], owners[present]]), axis=1)
    same = np.flatnonzero(pairs[0, 1:] == pairs[0, :-1])
    if not same.size:
        return None
    at = int(same[0])
    return int(pairs[1, at]), int(pairs[1, at + 1]), int(pairs[0, at])
