"""What kernels hand one another and to memory: operands, members, results, and their padding.

A ``Kernel`` (``spatial/ir.py``) is a nest of loops that takes operands and gives results; what is
here says what those are, over the domain's variables, and does not know any loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.spatial.directives import Buffer, Directive, Gather, Scatter


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(Term):
    """The variable ``sender`` of a streamed function is ``reader + offset`` where it is read."""

    sender: str
    reader: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand(Term):
    """A value that a kernel receives, once per iteration.

    Attributes
    ----------
    name: the local that stands for it in the kernel's value.
    access: its subscripts over the domain's variables (``None`` for a result on its way out).
    source: the input or Func it came from; for an expression, the function that computes it.
    computed: the expression that it stands for, if that is no single element.
    taken_by: the directive that takes what the producer sends anyway; the producer's loops do not
        follow the kernel's then.
    renames: for a streamed function, the variables of its definition where it is read.
    producer: the kernel that sends it.
    condition: static path condition over the domain's variables (``None``: always).
    at_start: needed only at the first step of the reduction (part of the initial value), so the
        producer has no reduction loops.
    pinned: loops of either end along which there is a token at one iteration only.
    forwards: unrolled loops along which PEs pass the value on, outermost hop first, and in
        ``hop_capacities`` the depth of the channels along each (``None``: not the user's choice).
    removed, removed_by: loops that the producer does not have any more, and why.
    buffer: the buffer that restores the stream, if there is one.
    scatter, gather: PEs pass these values on as one stream, on their way in or out.
    """

    name: str
    source: str
    producer: str
    type: Type
    access: tuple[Expr, ...] | None
    condition: Expr | None
    at_start: bool
    pinned: tuple[str, ...] = ()
    forwards: tuple[str, ...] = ()
    hop_capacities: tuple[int | None, ...] = ()
    removed: tuple[str, ...] = ()
    removed_by: Directive | None = None
    buffer: Buffer | None = None
    scatter: Scatter | None = None
    gather: Gather | None = None
    computed: Expr | None = None
    taken_by: Directive | None = None
    renames: tuple[Rename, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Padding(Term):
    """A variable that runs past its domain: ``padded`` values for ``extent`` that count.

    ``limit`` is the first value outside of the domain; ``directive`` pads.
    """

    variable: str
    limit: int
    extent: int
    padded: int
    directive: Directive

    def __str__(self) -> str:
        return f"{self.variable}: {self.extent} padded to {self.padded}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTarget(Term):
    """Where a kernel stores what it receives: ``tensor[indices]`` over the domain's variables."""

    tensor: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Term):
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
