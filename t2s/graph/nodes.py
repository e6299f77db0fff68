"""Nodes of the graph: arrays of PEs, of load and store units, and of machines.

A ``PEArray`` is one node, however many PEs it has: its space domain defines the PEs, its loops what
each of them iterates over in time, its body what one firing does.  OpenCL unrolls the space domain,
the simulator expands it, a placer places it.  A ``Machine`` is the other kind of node: its next
action depends on the tokens that it sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import Expr, evaluate
from t2s.core.isl import Interval, LoopDomain
from t2s.core.location import SourceLocation
from t2s.core.ops import Array, Op
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.graph.body import Register, Role, SpaceDimension, Statement

# Machines: nodes with data-dependent control.
#
# A ``Machine`` is a finite state machine over streams.  It is always in one of its *modes*.  A mode
# names the channels whose next token (the *head*) it needs; it waits until all of these have
# arrived, regardless of other channels, and then takes the first of its alternatives that holds for
# the heads and for its registers.  That alternative, a ``Rule``, is the firing: it takes some of
# the heads, puts tokens into channels, changes registers and memories, and names the next mode.
# One firing is atomic, as everywhere (docs/simulation.md).
#
# An alternative may need further heads, which are waited for once it has been taken: a scanner
# peeks at its next reference only at the end of a fiber.  The heads that a firing needs, and the
# choice, therefore depend on the mode and on values only, never on time or on how full a channel
# is.  A machine is a process of a Kahn network: its values and the sequence of its rules can be
# computed without timing, and the timing needs only the number of each rule (its position in
# ``Machine.paths``), which determines what the firing needs, takes, puts and moves.
#
# Every block of the Sparse Abstract Machine [SAM, sec. 3], the decoders of sparse
# representations [Sparse T2S, sec. 4] and reduction circuits of unknown length are machines.
#
# Tokens.  On a channel whose stream has nesting 0 every token is a value.  On a stream with nesting
# n >= 1 a token has a *tag* besides its value: ``VALUE``, ``EMPTY`` (the token N of SAM: no value
# here), ``DONE`` (the stream ends), or a stop of some level, ``stop(0)``, ``stop(1)``, ...  The
# value of a token with another tag than ``VALUE`` is zero, unless the stream says otherwise
# (``StreamType.values_under_tags``).

VALUE = 0
"""The tag of a token that carries a value."""

EMPTY = -1
"""The tag of a token that stands for a missing value: ``N``."""

DONE = -2
"""The tag of the last token of a stream: ``D``."""


def stop(level: int) -> int:
    """The tag of the stop token of a level: ``S0`` is 1."""
    return level + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Head(Term):
    """How expressions name the next token of an input channel: two locals.

    ``tag`` (int32) is ``None`` on a stream of nesting 0.  A head may be used where it is needed
    only.
    """

    channel: str
    value: str
    tag: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Put(Term):
    """One token into a channel; ``tag`` ``None`` is a value, ``value`` ``None`` is zero."""

    channel: str
    value: Expr | None = None
    tag: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Term):
    """A firing: what is taken and put, what is changed, and the mode after it.

    Attributes
    ----------
    name: describes the rule in reports; unique in the machine.
    body: statements executed in order: ``Let``, ``Load``, ``Search``, ``Store``, ``RegisterRead``,
        ``RegisterWrite`` and the statements on ``SortedMemory``, all without conditions.
    takes: channels whose head is taken, of those needed on the way to the rule.
    puts: tokens sent, at most one for each channel.
    next: name of the next mode; ``None`` ends the machine.
    """

    name: str
    body: tuple[Statement, ...] = ()
    takes: tuple[str, ...] = ()
    puts: tuple[Put, ...] = ()
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Term):
    """An alternative: taken if it is the first one whose condition ``when`` holds.

    ``when=None`` always holds.  ``needs`` are heads, besides those of the mode, that are waited for
    if the alternative is taken.  ``body`` (``Let``, ``Load``, ``Search``, ``RegisterRead``,
    ``MemorySize`` and ``MemoryFirst``) binds locals for what is inside: a rule, or further
    alternatives, one of which has to hold.
    """

    when: Expr | None = None
    needs: tuple[str, ...] = ()
    body: tuple[Statement, ...] = ()
    inside: tuple[Choice, ...] | Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode(Term):
    """A state of the machine: the heads that it waits for, and its alternatives in order.

    If no alternative holds, the machine has met a token that its protocol does not allow:
    ``expected`` says for the error what it accepts.
    """

    name: str
    needs: tuple[str, ...]
    choices: tuple[Choice, ...]
    expected: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(Statement):
    """Bind ``target`` to the first position from ``begin`` on whose element is at least ``value``.

    The elements ``begin`` to ``end - 1`` of the one-dimensional ``tensor`` must not decrease; the
    target is ``end`` if all are smaller.  ``begin``, ``end`` and the target have one integer type,
    ``value`` has the tensor's.  It takes the time and the traffic of one load, as a memory that
    is addressed by its content does.
    """

    target: str
    tensor: str
    begin: Expr
    end: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedMemory(Term):
    """A memory of points with a value each, kept in lexicographic order: the heart of a reducer.

    ``keys`` are the types of a point's coordinates, the outermost first.  A value that is added to
    a point already there is combined with the one there by ``operator``.
    """

    name: str
    keys: tuple[Type, ...]
    type: Type
    operator: Op
    location: SourceLocation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAdd(Statement):
    """Combine ``value`` into the point ``keys`` of a sorted memory."""

    memory: str
    keys: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySize(Statement):
    """Bind ``target`` (int32) to the number of points."""

    target: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFirst(Statement):
    """Bind ``targets`` to the coordinates and ``value`` to the value of the first point.

    All are zero if there is none.
    """

    targets: tuple[str, ...]
    value: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDrop(Statement):
    """Remove the first point."""

    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine(Term):
    """An array of identical state machines: a node of the graph.

    Attributes
    ----------
    name, role, space, region, location: as in ``PEArray``.  Index maps of the channels at a machine
        use its space indices only, and so may all of its expressions.
    heads: one for each input channel.
    registers: storage, zero at the start; those of shape () may be used in expressions by their
        name (a ``Local``), with the value that they had at the start of the firing.
    memories: sorted memories, empty at the start.
    modes: the first one is the mode at the start.
    endless: the machine waits for ever when all others have ended, and that is no error: a run is
        finished when nothing can fire and all that has not ended are endless machines that wait for
        a token.  Such a machine has an input, and may end as well.
    interval: the fewest cycles from one firing to the next, as of a unit that is not pipelined; its
        recurrences and memory ports may need more.
    latency: the cycles that tokens take in the unit besides those of its operators.
    """

    name: str
    role: Role
    space: tuple[SpaceDimension, ...] = ()
    heads: tuple[Head, ...]
    registers: tuple[Register, ...] = ()
    memories: tuple[SortedMemory, ...] = ()
    modes: tuple[Mode, ...]
    region: str | None = None
    endless: bool = False
    interval: int = 1
    latency: int = 0
    location: SourceLocation | None = None

    @property
    def place_count(self) -> int:
        """Number of machines."""
        return prod(dimension.extent for dimension in self.space)

    @property
    def pe_count(self) -> int:
        """Number of machines."""
        return self.place_count

    @property
    def there(self) -> NDArray[np.bool_]:
        """At which points of the space domain there is a machine: at all of them."""
        return np.ones(self.place_count, bool)

    def paths(self) -> tuple[Path, ...]:
        """The paths to all rules, in order: the position of a path is the firing code of its
        rule.
        """
        return tuple(path for mode in self.modes for path in _paths(mode, (), mode.choices))

    def mode(self, name: str) -> Mode:
        """The mode of that name; ``KeyError`` if there is none."""
        for mode in self.modes:
            if mode.name == name:
                return mode
        raise KeyError(name)

    def statements(self) -> Iterator[Statement]:
        """All statements, each once."""
        for mode in self.modes:
            yield from _statements(mode.choices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The path to a rule: its mode, the enclosing alternatives, outermost first, and the rule."""

    mode: Mode
    choices: tuple[Choice, ...]
    rule: Rule

    @property
    def needs(self) -> tuple[str, ...]:
        """The channels whose heads a firing needs, in the order in which it waits for them."""
        return self.mode.needs + tuple(name for choice in self.choices for name in choice.needs)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What a firing executes, in order."""
        return (*(step for choice in self.choices for step in choice.body), *self.rule.body)


def _statements(choices: tuple[Choice, ...]) -> Iterator[Statement]:
    for choice in choices:
        yield from choice.body
        match choice.inside:
            case Rule(body=body):
                yield from body
            case inner:
                yield from _statements(inner)


def _paths(mode: Mode, outer: tuple[Choice, ...], choices: tuple[Choice, ...]) -> Iterator[Path]:
    for choice in choices:
        match choice.inside:
            case Rule() as rule:
                yield Path(mode=mode, choices=(*outer, choice), rule=rule)
            case inner:
                yield from _paths(mode, (*outer, choice), inner)


__all__ = ["Loop", "Machine", "Node", "PEArray", "Register", "Role", "SpaceDimension"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop(Term):
    """One loop in time: ``extent`` iterations from ``minimum``.

    Both are affine in the indices of outer loops and of space dimensions.
    """

    name: str
    minimum: Expr
    extent: Expr

    @property
    def interval(self) -> Interval:
        """The range of its index."""
        return Interval(name=self.name, minimum=self.minimum, extent=self.extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class PEArray(Term):
    """An array of identical PEs.

    Attributes
    ----------
    name: unique in the graph; the user's name of the function where there is one.
    role: compute, relay (passes data on), load or store.
    space: the space domain, one PE per point; empty for a single PE.
    exists: where not all points of that box have a PE (a triangular array), the condition over the
        space indices for there being one.
    loops: time loops, outermost first; a firing is one iteration of the innermost loop, unless it
        is an empty slot (``active``).
    registers, body: storage and statements, see ``graph.body``.
    active: which iterations the definition has, over space and loops (``None``: all).  The others
        are empty slots of a schedule: they take their cycle, do nothing, and are not firings.
    region: name of the innermost region (loop level) the node belongs to.
    location: the user's line that made this node.
    """

    name: str
    role: Role
    space: tuple[SpaceDimension, ...]
    loops: tuple[Loop, ...]
    registers: tuple[Register, ...] = ()
    body: tuple[Statement, ...]
    exists: Expr | None = None
    active: Expr | None = None
    region: str | None = None
    location: SourceLocation | None = None

    @property
    def place_count(self) -> int:
        """Number of points of the space domain, those without a PE included."""
        return prod(dimension.extent for dimension in self.space)

    @property
    def pe_count(self) -> int:
        """Number of PEs."""
        return self.place_count if self.exists is None else int(self.there.sum())

    @property
    def there(self) -> NDArray[np.bool_]:
        """At which points of the space domain there is a PE; as long as ``place_count``."""
        return self.where(self.exists, {})

    def iterations(self) -> LoopDomain:
        """The iterations of all PEs; ``NotAffine`` if that is not a quasi-affine set."""
        intervals = [*(d.interval for d in self.space), *(loop.interval for loop in self.loops)]
        return LoopDomain(intervals, [] if self.exists is None else [self.exists])

    def where(self, condition: Expr | None, known: Mapping[str, Array]) -> NDArray[np.bool_]:
        """At which points of the space domain a condition on them holds, and on what is known."""
        if condition is None:
            return np.ones(self.place_count, bool)
        ranges = (np.arange(d.minimum, d.minimum + d.extent, dtype=np.int32) for d in self.space)
        names = [dimension.name for dimension in self.space]
        points = dict(zip(names, np.ix_(*ranges), strict=True))
        with np.errstate(all="ignore"):
            holds = np.asarray(evaluate(condition, {**known, **points}))
        return np.broadcast_to(holds, [d.extent for d in self.space]).reshape(-1).astype(bool)

    def has_pe(self, point: tuple[int, ...]) -> bool:
        """Whether there is a PE at a point of the space domain."""
        if self.exists is None:
            return True
        names = (dimension.name for dimension in self.space)
        values = {name: np.int32(at) for name, at in zip(names, point, strict=True)}
        return bool(evaluate(self.exists, dict(values)))


Node = PEArray | Machine
