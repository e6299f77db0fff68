"""What a kernel does in an iteration: one class for each kind of work.

A ``SpatialKernel`` (``spatial/ir.py``) is a nest of loops with one of these.  Expressions are over
the domain's variables; nothing here knows any loop, except by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from t2s.core.expr import Expr, Local
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.spatial.directive import Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTarget(Term):
    """Where a kernel stores what it has: ``tensor[indices]``."""

    tensor: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation(Term):
    """Base of the work that computes.

    ``vector_operands``: operands asked for by ``vload``; ``vector_store``: asked for by ``vstore``.
    """

    vector_operands: tuple[str, ...] = ()
    vector_store: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation(Calculation):
    """A value in every iteration.

    Reads in ``value`` are not placed yet; ``store``: where it goes, as long as it is this kernel
    that stores it.
    """

    value: Expr
    store: StoreTarget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction(Calculation):
    """As ``Evaluation``, and ``value`` is over the value of the step before, first ``initial``.

    ``reassociate``: the steps may be taken in another order, though that rounds otherwise.
    """

    value: Expr
    initial: Expr
    store: StoreTarget | None = None
    reassociate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMember(Term):
    """One of the Funcs that a kernel computes together: uniform recurrence equations.

    Attributes
    ----------
    name: the Func; other members read it as ``Read(source=name)`` over the domain's variables.
    type: of one element.
    arguments: the domain's variables that index it.
    value: what one iteration computes.
    lanes: it has a value in each lane of the vector loop, not one for all.
    combine: the lanes of ``value`` are reduced with this operator, starting from ``initial``.
    location: the user's definition.
    """

    name: str
    type: Type
    arguments: tuple[str, ...]
    value: Expr
    lanes: bool
    combine: Op | None = None
    initial: Expr | None = None
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Term):
    """A stream of final values of a kernel that computes several Funcs.

    Attributes
    ----------
    function: the Func whose elements these are.
    member: the member whose values they are.
    indices: the element, over the domain's variables, from 0.
    condition: static, over the domain's variables: where there is one (``None``: everywhere).
    consumer: the kernel that takes the stream, once there is one.
    """

    function: str
    member: str
    indices: tuple[Expr, ...]
    condition: Expr | None
    consumer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrences(Calculation):
    """A system of recurrences: the Funcs that are computed, and the streams that leave.

    ``timed``: the time loop of a schedule; a value that goes to another PE takes as many cycles as
    the schedule says.
    """

    members: tuple[SystemMember, ...]
    results: tuple[Result, ...]
    timed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadUnit(Term):
    """Sends elements of an array in memory.

    Attributes
    ----------
    value: the element, a ``Read``; an expression only until the load units are placed.
    on_host: it puts the elements into the device's memory, in its order; no node of the graph.
    address: for a tensor that the host orders, the subscripts over the loops.
    """

    value: Expr
    on_host: bool = False
    address: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUnit(Term):
    """Stores what it receives; ``on_host`` and ``address`` are as those of a ``LoadUnit``."""

    value: Local
    store: StoreTarget
    on_host: bool = False
    address: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayBuffer(Term):
    """A memory for what arrives in one iteration of ``loop``; ``double``: filled ahead."""

    loop: str
    double: bool
    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedStream(Term):
    """Base of the streams that the PEs along ``loop`` pass on from PE to PE.

    They enter or leave at the first PE, with ``reverse`` at the last one.
    """

    loop: str
    reverse: bool
    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatteredStream(PassedStream):
    """Every PE keeps its own values of one stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredStream(PassedStream):
    """Every PE adds its own values to one stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay(Term):
    """Passes its one operand on.

    Attributes
    ----------
    value: the operand.
    inserted: made by the compiler, for a buffer, a scatter or a gather in a Func of another kind.
    buffer: the buffer that restores the stream, if there is one.
    stream: the stream that the PEs pass on; ``digit`` is the loop over the PEs whose tokens pass
        by, once the relay iterates over them.
    """

    value: Local
    inserted: bool = False
    buffer: RelayBuffer | None = None
    stream: ScatteredStream | GatheredStream | None = None
    digit: str | None = None


Work = Evaluation | Reduction | Recurrences | LoadUnit | Relay | StoreUnit


def rewritten_work(work: Work, rule: Callable[[Expr], Expr]) -> Work:
    """The work with its values rewritten: the value, the initial value, those of members."""
    match work:
        case Evaluation() | LoadUnit():
            return replace(work, value=rule(work.value))
        case Reduction():
            return replace(work, value=rule(work.value), initial=rule(work.initial))
        case Recurrences():
            members = tuple(
                replace(
                    member,
                    value=rule(member.value),
                    initial=None if member.initial is None else rule(member.initial),
                )
                for member in work.members
            )
            return replace(work, members=members)
        case Relay() | StoreUnit():
            return work
