"""Graphs of a program that are equal: the times of one are those of all, values are each its own.

The decoders of a transformer, say, are the same graphs of other weights.  Two runs take the same
cycles if the graphs are equal but for names, and so are the arrays that decide what their machines
do (``graph/deciding.py``).  Then compiled loops compute what the second one stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.preparation import preparation
from t2s.core.types import BOOL
from t2s.driver.assignment_design import (
    AssignmentDesign,
    BoundKernel,
    SparseResult,
    warn_of_narrow_sums,
)
from t2s.graph.graph import MemorySpace
from t2s.sparse_repr.binding import Binding
from t2s.sparse_repr.concrete.fusion import StatementGroup
from t2s.sparse_repr.lowering.to_graph import StageGraph, array_in
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, with_fill

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.simulator.report.result import SimResult

ENGINE = "native"
"""The engine whose runs are used again: the other one is there to check each of them."""


@dataclass(frozen=True)
class _Known:
    """A kernel that ran, and its result."""

    group: StatementGroup
    design: AssignmentDesign
    given: Mapping[str, SparseTensor]
    result: SparseResult

    @cached_property
    def bound(self) -> BoundKernel:
        return self.design.bound(self.given)


@dataclass(slots=True)
class EqualGraphs:
    """The kernels that ran in a program."""

    known: dict[object, list[_Known]] = field(default_factory=dict)

    def add(
        self,
        group: StatementGroup,
        design: AssignmentDesign,
        given: Mapping[str, SparseTensor],
        result: SparseResult,
    ) -> None:
        """Remember the run of a group of statements."""
        from t2s.simulator.report.result import SimResult

        if all(isinstance(one, SimResult) and one.engine == ENGINE for one in result.stages):
            self.known.setdefault(_sizes(given), []).append(_Known(group, design, given, result))

    def result_of(
        self, design: AssignmentDesign, given: Mapping[str, SparseTensor]
    ) -> SparseResult | None:
        """The result of a kernel whose graphs ran before; ``None`` if they have to run."""
        candidates = self.known.get(_sizes(given))
        if not candidates:
            return None
        bound = design.bound(given)
        if bound.binding.type == BOOL:
            return None
        for known in candidates:
            if _are_equal(known, bound):
                tensor = _stored(known, bound)
                return None if tensor is None else _as_run_before(known, bound, tensor)
        return None


def _sizes(given: Mapping[str, SparseTensor]) -> object:
    """What has to be equal for graphs to be, and takes no time to compare."""
    return tuple((value.shape, str(value.format)) for value in given.values())


def _are_equal(known: _Known, bound: BoundKernel) -> bool:
    """Whether the graphs of a kernel do in each cycle what those of one that ran did."""
    mine, theirs = bound.graphs, known.bound.graphs
    if len(mine) != len(theirs) or bound.binding.type != known.bound.binding.type:
        return False
    if any(one.nameless != other.nameless for one, other in zip(mine, theirs, strict=True)):
        return False
    return all(
        _decide_alike(one, bound.binding, other, known.bound.binding, addresses=_timed(stage))
        for one, other, stage in zip(mine, theirs, known.result.stages, strict=True)
    )


def _timed(stage: SimResult | HardwareResult) -> bool:
    """Whether times depend on addresses."""
    from t2s.simulator.report.result import SimResult

    assert isinstance(stage, SimResult)
    tensors = stage.program.graph.tensors
    shared = any(tensor.place is MemorySpace.SHARED for tensor in tensors)
    return shared or stage.device.memory is not None


def _decide_alike(
    graph: StageGraph, binding: Binding, other: StageGraph, others: Binding, *, addresses: bool
) -> bool:
    """Whether the arrays that decide about two equal graphs, and their patterns, are equal."""
    deciding = other.deciding(addresses)
    for port, same in zip(graph.reads, other.reads, strict=True):
        if same.name not in deciding:
            continue
        if port.tensor not in binding.tensors:  # what a stage before stored
            if port.level is None:
                return False
            continue
        one = array_in(binding.tensors[port.tensor], port)
        if not np.array_equal(one, array_in(others.tensors[same.tensor], same)):
            return False
    return True


def _stored(known: _Known, bound: BoundKernel) -> SparseTensor | None:
    """The result of a kernel by compiled loops; ``None`` if they store other elements."""
    pattern = known.result.tensor
    try:
        value = _by_loops(known, bound)
    except (UnsupportedError, UserError):  # no loops for a format, or no memory for a workspace
        return None
    same = value.format == pattern.format and len(value.levels) == len(pattern.levels)
    if not same or not all(map(_are_same, value.levels, pattern.levels)):
        return None
    warn_of_narrow_sums(bound.compiled.assignment, bound.binding, value)
    return as_stored(pattern.shape, pattern.format, pattern.levels, value.values, fill=pattern.fill)


def _are_same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(np.asarray(one[name]), np.asarray(other[name])) for name in one
    )


def _by_loops(known: _Known, bound: BoundKernel) -> SparseTensor:
    """The result of a kernel: the statements of the equal one, of the tensors of this one."""
    with preparation():
        from t2s.loops.running import run_assignment
    alone = len(known.group.statements) == 1
    values = _in_place_of(known, bound)
    for statement in known.group.statements:
        assignment = known.bound.compiled.assignment if alone else statement.assignment
        zero = assignment.semiring.zero
        read = {name: with_fill(values[name], zero) for name in statement.reads}
        extents = extents_of(assignment, {name: value.shape for name, value in read.items()})
        values[statement.name] = run_assignment(assignment, read, extents, bound.binding.type)
    return values[known.group.last.name]


def _in_place_of(known: _Known, bound: BoundKernel) -> dict[str, SparseTensor]:
    """The tensors that a kernel reads, by the names of those that the equal one read."""
    given = bound.binding.given
    found: dict[str, SparseTensor] = {}
    for mine, theirs in zip(bound.graphs, known.bound.graphs, strict=True):
        own, others = bound.sources(mine), known.bound.sources(theirs)
        for port, same in zip(mine.reads, theirs.reads, strict=True):
            if own[port.name] in given:
                found[others[same.name]] = given[own[port.name]]
    return found


def _as_run_before(known: _Known, bound: BoundKernel, tensor: SparseTensor) -> SparseResult:
    """The result of a run that is known, with another tensor, and the tensors that it reads."""
    sources = []
    for mine, theirs in zip(bound.graphs, known.bound.graphs, strict=True):
        own = bound.sources(mine)
        pairs = zip(theirs.graph.tensors, mine.graph.tensors, strict=True)
        sources.append({one.name: own[other.name] for one, other in pairs if other.name in own})
    return SparseResult(tensor=tensor, stages=known.result.stages, sources=tuple(sources))
