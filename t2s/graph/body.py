"""The parts of nodes: roles, space dimensions, registers, and the statements of a body.

A body is predicated statements, executed once per firing.  A PE runs a perfect loop nest; one
iteration is one firing, and one firing executes the whole body atomically.  Imperfect loops are
made perfect by predication, so a body is a flat sequence of statements, each with an optional
condition.

Conditions of ``Receive``, ``Send``, ``Load`` and ``Store`` are *static*: they depend on loop
indices, space indices and parameters only, never on data.  That makes every graph of such nodes a
Kahn network, whose values do not depend on time.  Index expressions are static too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.core.expr import Expr, const
from t2s.core.isl import Interval
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement(Term):
    """Base of the statements of a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receive(Statement):
    """Take one token from ``channel`` and bind it to the local ``target``.

    The element of the channel array is the channel's ``sink_index``.  Where the condition does not
    hold nothing is taken and the target is zero.
    """

    target: str
    channel: str
    type: Type
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Statement):
    """Put ``value`` into ``channel``, at the element given by the channel's ``source_index``."""

    channel: str
    value: Expr
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Let(Statement):
    """Bind the local ``target`` to ``value``."""

    target: str
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Statement):
    """Read ``type.lanes`` contiguous elements of ``tensor`` (along its last dimension).

    ``indices`` address the first element.  Where the condition does not hold memory is not touched
    and the target is zero.

    In a machine the last index may be a vector of as many signed integers: then each lane reads the
    element that it names, a gather.  A lane of -1 touches nothing and gives zero.
    """

    target: str
    tensor: str
    indices: tuple[Expr, ...]
    type: Type
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Statement):
    """Write ``value`` (all its lanes, contiguous along the last dimension) to ``tensor``.

    In a machine the last index may be a vector of as many signed integers: then each lane writes
    the element that it names, a scatter.  A lane of -1 touches nothing; of two lanes that name one
    element the last one wins.
    """

    tensor: str
    indices: tuple[Expr, ...]
    value: Expr
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterRead(Statement):
    """Bind the local ``target`` to an element of a register file of this PE."""

    target: str
    register: str
    indices: tuple[Expr, ...]
    type: Type


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterWrite(Statement):
    """Write an element of a register file of this PE; visible to the next firing and below."""

    register: str
    indices: tuple[Expr, ...]
    value: Expr
    condition: Expr | None = None


def by_lanes(indices: tuple[Expr, ...]) -> bool:
    """Whether an access gathers or scatters: its last index is a vector."""
    return bool(indices) and indices[-1].type.lanes > 1


class Role(Enum):
    """What a PE array is for; utilization counts ``COMPUTE`` nodes only."""

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

    @property
    def interval(self) -> Interval:
        """The range of its index."""
        return Interval(name=self.name, minimum=const(self.minimum), extent=const(self.extent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Term):
    """A register file that every PE of the node has; each element starts at ``initial``.

    ``distance`` is the smallest number of firings between a write of an element and the next read
    of it: what the latency of the recurrence through it is divided by to get the II.
    """

    name: str
    type: Type
    shape: tuple[int, ...]
    distance: int
    initial: int | float | bool = 0
    location: SourceLocation | None = None
