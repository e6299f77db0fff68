"""What all kinds of nodes are made of: roles, space dimensions and registers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term


class Role(Enum):
    """What a PE array is for; utilisation counts ``COMPUTE`` nodes only."""

    COMPUTE = "compute"
    RELAY = "relay"
    LOAD = "load"
    STORE = "store"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceDimension(Term):
    """One dimension of the space domain: indices ``minimum`` to ``minimum + extent - 1``."""

    name: str
    minimum: int
    extent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Term):
    """A register file that every PE of the node has; it starts at zero.

    ``distance`` is the smallest number of firings between a write of an element and the next read
    of it: what the latency of the recurrence through it is divided by to get the II.
    """

    name: str
    type: Type
    shape: tuple[int, ...]
    distance: int
    location: SourceLocation | None = None
