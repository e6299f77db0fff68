"""Operands: what a kernel receives, what it stands for, and how it comes.

Expressions are over the domain's variables of the kernel that receives.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.core.walk import Term
from t2s.spatial.directive import Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedElement(Term):
    """The element ``source[access]`` of an input or a Func."""

    source: str
    access: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedValue(Term):
    """An expression that the function ``source`` computes; ``access`` is what it depends on."""

    source: str
    value: Expr
    access: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalValue(Term):
    """A result of the Func ``source``, on its way out."""

    source: str

    @property
    def access(self) -> tuple[Expr, ...]:
        return ()


Content = LoadedElement | ComputedValue | FinalValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardHop(Term):
    """PEs pass a value on along an unrolled loop.

    ``capacity``: depth of the channels between them (``None``: not the user's choice).
    """

    loop: str
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborHop(Term):
    """PEs pass a value on along an unrolled loop to whichever neighbors need it.

    It enters wherever no neighbor has it: at the edge of a triangle, for example.

    Attributes
    ----------
    loop: the loop; ``step`` is 1 where values go to the next PE, -1 for the one before.
    needed: where a PE gets the value from its neighbor or from elsewhere.
    arrives: where, of these, it gets it from its neighbor.
    leaves: where, of these, a neighbor gets it from it.
    capacity: depth of the channels between them (``None``: not the user's choice).
    """

    loop: str
    step: int
    needed: Expr | None
    arrives: Expr
    leaves: Expr
    capacity: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal(Term):
    """Loops that the producer does not have any more, and the directive that took the last one."""

    loops: tuple[str, ...]
    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename(Term):
    """The variable ``sender`` of a streamed function is ``reader + offset`` where it is read."""

    sender: str
    reader: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProducer(Term):
    """Taken from a producer that was isolated from another function, whose loops it keeps."""

    by: Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedResults(Term):
    """The results of a function, taken as it sends them; ``renames`` are for its variables."""

    by: Directive
    renames: tuple[Rename, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelOperand(Term):
    """A value that a kernel receives, once per iteration.

    Attributes
    ----------
    name: the local that stands for it in the kernel's value.
    content: what it stands for.
    producer: the kernel that sends it.
    condition: static path condition over the domain's variables (``None``: always).
    at_start: needed only at the first step of the reduction (part of the initial value), so the
        producer has no reduction loops.
    pinned: loops of either end along which there is a token at one iteration only.
    hops: where PEs pass the value on, outermost hop first.
    neighbors: the same where a PE takes other values than its neighbor; ``condition`` is where the
        value enters then.
    removal: loops that the producer has lost, which a buffer makes up for.
    taken: where the kernel takes what the producer sends anyway; the producer's loops do not follow
        the kernel's then.
    """

    name: str
    content: Content
    producer: str
    type: Type
    condition: Expr | None
    at_start: bool = False
    pinned: tuple[str, ...] = ()
    hops: tuple[ForwardHop, ...] = ()
    neighbors: tuple[NeighborHop, ...] = ()
    removal: Removal | None = None
    taken: SharedProducer | StreamedResults | None = None

    @property
    def source(self) -> str:
        """The input or Func that it comes from; for an expression, the function that computes."""
        return self.content.source

    @property
    def access(self) -> tuple[Expr, ...]:
        """What it depends on: its subscripts; nothing for a result on its way out."""
        return self.content.access

    @property
    def is_result(self) -> bool:
        """Whether it is a result on its way out."""
        return isinstance(self.content, FinalValue)

    @property
    def forwards(self) -> tuple[str, ...]:
        """The unrolled loops along which PEs pass the value on."""
        return tuple(hop.loop for hop in self.hops)

    @property
    def removed(self) -> tuple[str, ...]:
        """The loops that the producer has lost."""
        return () if self.removal is None else self.removal.loops

    @property
    def renames(self) -> tuple[Rename, ...]:
        """For a streamed function, the variables of its definition where it is read."""
        return self.taken.renames if isinstance(self.taken, StreamedResults) else ()
