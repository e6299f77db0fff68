"""Directives as values: what the user asked for, and the line that asked.

A directive is checked as far as its own arguments go when the fluent call is made
(``schedule.py``) and interpreted when the design is lowered (``passes``).  Loops and functions are
named by the user's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation

DEFAULT_CAPACITY = 2  # tokens: enough for one every cycle over a channel of latency 1
SKEW = 32  # more of them, where a hop waits for values that take longer to the next PE


class Place(Enum):
    """Where a function runs.

    One on the host is the outer end of a chain: it orders an array for the device's memory.
    """

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """Base of all directives; ``text`` is the call as the user would write it."""

    location: SourceLocation
    text: str

    @property
    def new_loops(self) -> tuple[str, ...]:
        """Names of the loops that the directive makes."""
        return ()

    @property
    def new_functions(self) -> tuple[str, ...]:
        """Names of the functions that the directive makes."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Directive):
    """``loop`` becomes ``outer`` over ``inner``, ``inner`` having ``factor`` iterations."""

    loop: str
    outer: str
    inner: str
    factor: int

    @property
    def new_loops(self) -> tuple[str, ...]:
        return (self.outer, self.inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile(Directive):
    """Several splits; then all inner loops go inside all outer ones, innermost first."""

    loops: tuple[str, ...]
    outers: tuple[str, ...]
    inners: tuple[str, ...]
    factors: tuple[int, ...]

    @property
    def new_loops(self) -> tuple[str, ...]:
        return (*self.outers, *self.inners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder(Directive):
    """The named loops change places among themselves; innermost first."""

    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuse(Directive):
    """``outer`` and ``inner``, directly nested, become the one loop ``fused``."""

    inner: str
    outer: str
    fused: str

    @property
    def new_loops(self) -> tuple[str, ...]:
        return (self.fused,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unroll(Directive):
    """The loops become space: one PE for each iteration."""

    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceTimeTransform(Directive):
    """``loops`` become loops in space and one loop in time.

    ``maps`` gives each new loop over the old ones, time last.  Without it ``coefficients`` gives
    the skew of time along each loop; without those the loops are unrolled and time stays.
    """

    loops: tuple[str, ...]
    coefficients: tuple[int, ...]
    maps: tuple[tuple[str, Expr], ...]

    @property
    def new_loops(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.maps if name not in self.loops)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolateProducer(Directive):
    """A value moves into ``producers`` (farthest from the function first).

    ``operand`` is its name or text.  ``target`` is the expression that moves; ``None`` stands for
    the one element of the operand of that name.  ``on_host``: the first producer is on the host.
    ``shared``: the first producer was isolated from another function before.
    """

    operand: str
    target: Expr | None
    producers: tuple[str, ...]
    on_host: bool
    shared: bool

    @property
    def method(self) -> str:
        """The name of the method that was called."""
        return self.text.partition("(")[0]

    @property
    def new_functions(self) -> tuple[str, ...]:
        return self.producers[1:] if self.shared else self.producers


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolateConsumer(Directive):
    """The saving of results moves into ``consumers`` (nearest to the function first).

    ``on_host``: the last consumer is on the host.
    """

    consumers: tuple[str, ...]
    on_host: bool

    @property
    def new_functions(self) -> tuple[str, ...]:
        return self.consumers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(Directive):
    """The results of ``function`` come through a channel instead of through memory."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward(Directive):
    """``operand`` enters at the boundary PEs of ``loop`` and is passed on from PE to PE.

    ``capacity`` is the depth of the channels between the PEs (``None``: the compiler's).
    """

    operand: str
    loop: str
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribute(Directive):
    """What the last stage of a chain sends gets to all PEs; becomes ``Forward`` and ``Scatter``.

    ``operand`` is that stage, ``scattering`` are the stages that may take one stream.
    """

    operand: str
    scattering: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveReuse(Directive):
    """A producer drops all loops inside of ``scope`` along which it would send the same values.

    ``None``: all such loops that it has.  Becomes ``Remove``.
    """

    scope: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove(Directive):
    """A producer drops loops along which it would send the same values again."""

    loops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer(Directive):
    """A feeder keeps what ``operand`` sends during one iteration of ``loop`` on chip."""

    operand: str
    loop: str
    double: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter(Directive):
    """The PEs along ``loop`` take ``operand`` from one stream, from PE to PE.

    The stream enters at the first PE, or with ``reverse`` at the last one.
    """

    operand: str
    loop: str
    reverse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(Directive):
    """The PEs along ``loop`` send the results of ``function`` as one stream, from PE to PE.

    The stream leaves at the first PE, or with ``reverse`` at the last one.
    """

    function: str
    loop: str
    reverse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLoad(Directive):
    """The innermost loop becomes the lanes of vectors; ``operands`` are loaded as vectors."""

    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStore(Directive):
    """The results of ``function`` are stored as vectors along the innermost loop.

    ``lanes`` is that loop if the user named it.
    """

    function: str
    lanes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassociate(Directive):
    """The user allows rounding reductions to be computed in another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth(Directive):
    """The channel that carries the function's results holds ``capacity`` tokens."""

    capacity: int
