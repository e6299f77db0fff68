"""The frozen temporal program: functions, their definitions and the inputs they read.

All bounds are numbers or affine in the indices of outer dimensions; parameters that were used in
bounds have been replaced by their values.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.isl import Interval
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.core.walk import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension(Term):
    """One dimension of a definition's domain: ``extent`` values from ``minimum``."""

    name: str
    minimum: Expr
    extent: Expr
    reduction: bool

    @property
    def interval(self) -> Interval:
        return Interval(name=self.name, minimum=self.minimum, extent=self.extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Term):
    """``function[target] = value`` for every point of ``domain``, in lexicographic order.

    The domain lists the pure dimensions first, then the reduction dimensions, outermost first.
    """

    function: str
    target: tuple[Expr, ...]
    value: Expr
    domain: tuple[Dimension, ...]
    location: SourceLocation

    @property
    def reductions(self) -> tuple[Dimension, ...]:
        return tuple(dimension for dimension in self.domain if dimension.reduction)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Term):
    """A Func: its initial definition and its updates, over the box given by ``bounds``.

    ``bounds`` holds (minimum, extent) of each argument; element ``[minimum, ...]`` of the function
    is element 0 of the array that holds it.  Where the bounds of an argument depend on others it is
    the hull of ``initial.domain``, and elements outside of that domain are 0.
    """

    name: str
    type: Type
    arguments: tuple[str, ...]
    bounds: tuple[tuple[int, int], ...]
    initial: Definition
    updates: tuple[Definition, ...]
    location: SourceLocation

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The initial definition, then the updates in order."""
        return (self.initial, *self.updates)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent for _, extent in self.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputArray(Term):
    """An input; ``shape`` is declared or inferred from the accesses."""

    name: str
    type: Type
    shape: tuple[int, ...]
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class InputScalar(Term):
    """A scalar given at run time."""

    name: str
    type: Type
    location: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class System(Term):
    """Funcs that are computed together: uniform recurrence equations over one loop nest.

    One iteration of the nest computes one element of every member.  A member reads members at
    constant distances, ``M[i - 1, j - 1]``: of an iteration that comes earlier in lexicographic
    order, or of a member that comes earlier in ``members``.  All these reads are proved to hit
    iterations in ``domain``.  Everything else that members read is complete before the system
    starts.

    Attributes
    ----------
    members: names of the Funcs, in an order in which each comes after those it reads in the same
        iteration.
    domain: the loops, outermost first; bounds are affine in outer ones.
    lanes: the dimension that only some of the members have, innermost, with constant bounds; the
        others have one value for all of its points.  Reads among members stay in their lane.  A
        member without it may reduce over it (one update, one reduction dimension of the same range,
        which is the last subscript of what it reads).  ``None`` if all members have the same
        dimensions.
    """

    members: tuple[str, ...]
    domain: tuple[Dimension, ...]
    lanes: Dimension | None


@dataclass(frozen=True, kw_only=True)
class TemporalProgram(Term):
    """A whole program: functions in an order in which each comes after those it reads.

    The members of a system stand next to each other, in the order of the system.
    """

    outputs: tuple[str, ...]
    functions: tuple[Function, ...]
    systems: tuple[System, ...] = ()
    inputs: tuple[InputArray, ...]
    parameters: tuple[InputScalar, ...]

    @property
    def output(self) -> str:
        """The first output, which gives the design its name."""
        return self.outputs[0]

    def system_of(self, name: str) -> System | None:
        """The system that a function belongs to, or ``None``."""
        return next((system for system in self.systems if name in system.members), None)

    def function(self, name: str) -> Function:
        """The function of that name; ``KeyError`` if there is none."""
        return {function.name: function for function in self.functions}[name]
