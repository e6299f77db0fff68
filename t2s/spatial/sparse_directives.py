"""Directives on products of sparse matrices, as values."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.reduction.carry import Target
from t2s.reduction.circuits import Structure
from t2s.spatial.directive import Directive


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseDirective(Directive):
    """Base of the directives that need a matrix in a representation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadStructure(SparseDirective):
    """The function loads these parts of the structure, by the names of their Vars."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferAll(SparseDirective):
    """The function keeps all of ``operand`` on the chip; in ``banks``, or a copy for each use."""

    operand: str
    banks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousReduction(SparseDirective):
    """In an iteration of ``loop``, results are finished one after the other."""

    loop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctReduction(SparseDirective):
    """Different iterations of ``loop`` have different results."""

    loop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolateReduction(SparseDirective):
    """Local sums move into ``function``; what is left sums those."""

    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CombineReduction(SparseDirective):
    """The reductions of all iterations of ``loop`` become one."""

    loop: str
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionCircuit(SparseDirective):
    """The function is a circuit of this structure."""

    structure: Structure
    levels: int
