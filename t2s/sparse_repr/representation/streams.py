"""Streams of structure: lengths and indices, as they are in memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Scope(Enum):
    """Who reads a stream of structure."""

    SHARED = "shared"
    MACHINE = "machine"


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """A part of the structure: one row for each machine, or one sequence for all of them.

    Entries that stand for nothing are -1 in a stream of indices and 0 in a stream of lengths.
    """

    scope: Scope
    data: Array
