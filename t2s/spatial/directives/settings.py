"""Directives that change no loops: ``reassociate``, ``depth``, and those of sparse products."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.spatial.directive import Directive, SparseDirective
from t2s.spatial.ir import SpatialKernel, SpatialProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassociate(Directive):
    """The user allows rounding reductions to be computed in another order."""

    may_be_on_host = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth(Directive):
    """The channel that carries the function's results holds ``capacity`` tokens."""

    capacity: int


def reassociate(program: SpatialProgram, name: str, directive: Reassociate) -> SpatialProgram:
    """A no-op: the first kernel of a Func has it already (``kernels.py``)."""
    return program


def depth(kernel: SpatialKernel, directive: Depth) -> SpatialKernel:
    """Note the capacity of the channel that carries the results of a kernel."""
    return replace(kernel, capacity=directive.capacity)


def refuse_sparse_directive(
    program: SpatialProgram, name: str, directive: SparseDirective
) -> SpatialProgram:
    """Refuse directives on sparse products in a dense program."""
    raise UserError(
        f"{directive.text} on {name}: {name} reads no sparse matrix",
        location=directive.location,
        expected="a definition with A.values[...] of a t2s.representation.MatrixParam",
        given="a dense program",
    )
