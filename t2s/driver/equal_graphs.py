"""Graphs of a program that are equal: the times of one are those of all, values are each its own.

The decoders of a transformer, say, are the same graphs of other weights.  Two runs take the same
cycles if the graphs are equal but for names, and so are the arrays that decide what their machines
do (``graph/deciding.py``).  Then compiled loops compute what the second one stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from t2s.sparse_repr.binding import Binding, typed
from t2s.sparse_repr.concrete.fusion import StatementGroup
from t2s.sparse_repr.concrete.nameless import NamelessGroup, without_names
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.lowering.to_graph import StageGraph, array_in
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, with_fill

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.simulator.report.result import SimResult

ENGINE = "native"
"""The engine whose runs are used again: the other one is there to check each of them."""


@dataclass(frozen=True, kw_only=True)
class PlannedGroup:
    """A group of a program for inputs of some shapes.

    ``kind`` is the same number for groups that are equal but for names, and ``None`` for one whose
    schedule does not tell; ``tensors`` are its tensors, in the same order for all of a kind, and
    ``reads`` those that others store.
    """

    group: StatementGroup
    kind: int | None
    tensors: tuple[str, ...]
    reads: tuple[str, ...]

    @property
    def name(self) -> str:
        """The tensor that it stores."""
        return self.group.last.name


def planned_groups(groups: Sequence[StatementGroup]) -> tuple[PlannedGroup, ...]:
    """Groups, with numbers for those that are equal but for names."""
    kinds: dict[NamelessGroup, int] = {}
    planned = []
    for group in groups:
        nameless = without_names(group)
        names = dict.fromkeys(name for one in group.statements for name in one.reads)
        planned.append(
            PlannedGroup(
                group=group,
                kind=None if nameless is None else kinds.setdefault(nameless, len(kinds)),
                tensors=() if nameless is None else nameless.tensors,
                reads=tuple(name for name in names if group.way_of(name) is None),
            )
        )
    return tuple(planned)


@dataclass(frozen=True, kw_only=True)
class KnownRun:
    """A kernel that ran, with what it read: ``given`` as it took it, ``read`` as it was stored."""

    planned: PlannedGroup
    design: AssignmentDesign
    given: Mapping[str, SparseTensor]
    read: Mapping[str, SparseTensor]
    result: SparseResult

    @property
    def group(self) -> StatementGroup:
        """The statements."""
        return self.planned.group

    @cached_property
    def bound(self) -> BoundKernel:
        """The kernel, its inputs as it reads them, and its graphs."""
        return self.design.bound(self.given)

    @cached_property
    def repeats(self) -> bool:
        """Whether others of the same statements may have its times, and the pattern it stored.

        Integers may overflow, which each run has to say.
        """
        same = all(
            self.bound.binding.given[name].format == value.format
            for name, value in self.read.items()
        )
        return same and self.bound.binding.type.is_float

    @cached_property
    def decided_by_values(self) -> frozenset[str]:
        """The tensors whose values decide about times and patterns, and not their patterns alone.

        That is so where values come to conditions of machines, where a tensor with a dense last
        level is converted to a sparse format, which leaves its zeros out, and where the kernel is
        chosen by them.
        """
        compiled, binding = self.bound.compiled, self.bound.binding
        every = frozenset(self.read)
        if self.design.adapts and self.design.compiled.is_chosen_by_values:
            return every
        views = {view.name: view for view in compiled.program.views}
        found: set[str] = set()
        for view in views.values():
            if _is_full(view.format) or view.name == compiled.program.written:
                continue
            if view.source not in binding.given:
                return every
            source = binding.given[view.source]
            has_zeros = any(level.full for level in source.format.elements.levels[-1:])
            if (
                has_zeros
                and view.name in binding.tensors
                and binding.tensors[view.name].values is not source.values
            ):
                found.add(view.source)
        if compiled.program.written in views and not _is_full(self.result.tensor.format):
            written = views[compiled.program.written].format.elements
            if any(level.full for level in written.levels[-1:]):
                return every
        for graph, stage in zip(self.bound.graphs, self.result.stages, strict=True):
            deciding = graph.deciding(_timed(stage))
            for port in graph.reads:
                if port.level is None and port.name in deciding:
                    source_name = views[port.tensor].source if port.tensor in views else port.tensor
                    if source_name not in binding.given:  # what a stage before stored
                        return every
                    found.add(source_name)
        return frozenset(found)

    def deciding(self, planned: PlannedGroup) -> tuple[str, ...]:
        """The tensors of an equal group whose values decide."""
        pairs = zip(self.planned.reads, planned.reads, strict=True)
        return tuple(mine for one, mine in pairs if one in self.decided_by_values)

    def has_patterns_of(self, read: Sequence[SparseTensor]) -> bool:
        """Whether tensors are stored as those that it read are."""
        return all(map(_are_stored_alike, self.read.values(), read))

    def has_values_of(self, planned: PlannedGroup, known: Mapping[str, SparseTensor]) -> bool:
        """Whether those tensors that decide by their values have these."""
        pairs = zip(self.planned.reads, planned.reads, strict=True)
        return all(
            np.array_equal(self.read[one].values, known[mine].values)
            for one, mine in pairs
            if one in self.decided_by_values
        )

    def pattern(self) -> SparseTensor:
        """What an equal group stores, with NaN for its values, which nobody has computed."""
        stored = self.result.tensor
        unknown = np.broadcast_to(np.asarray(np.nan, stored.dtype), stored.values.shape)
        return as_stored(stored.shape, stored.format, stored.levels, unknown, fill=stored.fill)

    def result_for(self, planned: PlannedGroup, tensor: SparseTensor) -> SparseResult:
        """The result of an equal group: these times, and another tensor."""
        names = dict(zip(self.planned.tensors, planned.tensors, strict=True))
        sources = tuple(
            {array: names.get(name, name) for array, name in stage.items()}
            for stage in self.result.sources
        )
        return SparseResult(tensor=tensor, stages=self.result.stages, sources=sources)

    def values_for(
        self, planned: PlannedGroup, known: Mapping[str, SparseTensor]
    ) -> SparseTensor | None:
        """What an equal group stores, by compiled loops; ``None`` if they store other elements."""
        type = self.bound.binding.type
        read = {
            one: typed(known[mine], type, mine).with_padding()
            for one, mine in zip(self.planned.reads, planned.reads, strict=True)
        }
        return _stored(self, read)


@dataclass(slots=True)
class EqualGraphs:
    """The kernels that ran in a program."""

    by_size: dict[object, list[KnownRun]] = field(default_factory=dict)
    by_kind: dict[int, list[KnownRun]] = field(default_factory=dict)

    def add(self, known: KnownRun) -> None:
        """Remember the run of a group of statements."""
        from t2s.simulator.report.result import SimResult

        stages = known.result.stages
        if all(isinstance(one, SimResult) and one.engine == ENGINE for one in stages):
            self.by_size.setdefault(_sizes(known.given), []).append(known)
            if known.planned.kind is not None:
                self.by_kind.setdefault(known.planned.kind, []).append(known)

    def alike(
        self, planned: PlannedGroup, patterns: Mapping[str, SparseTensor]
    ) -> Iterator[KnownRun]:
        """The runs of the same statements of tensors with these patterns.

        They have the times of a group if also the values that decide are equal.
        """
        if planned.kind is not None:
            read = [patterns[name] for name in planned.reads]
            for known in self.by_kind.get(planned.kind, ()):
                if known.repeats and known.has_patterns_of(read):
                    yield known

    def result_of(
        self, design: AssignmentDesign, given: Mapping[str, SparseTensor]
    ) -> SparseResult | None:
        """The result of a kernel whose graphs ran before; ``None`` if they have to run."""
        candidates = self.by_size.get(_sizes(given))
        if not candidates:
            return None
        bound = design.bound(given)
        if bound.binding.type == BOOL:
            return None
        for known in candidates:
            if _are_equal(known, bound):
                tensor = _stored(known, _in_place_of(known, bound))
                if tensor is None:
                    return None
                warn_of_narrow_sums(bound.compiled.assignment, bound.binding, tensor)
                return _as_run_before(known, bound, tensor)
        return None


def _is_full(format: Format) -> bool:
    return all(level.full for level in format.levels)


def _are_stored_alike(one: SparseTensor, other: SparseTensor) -> bool:
    """Whether two tensors have the same elements, in the same type and format."""
    if one is other:
        return True
    return (
        one.shape == other.shape
        and one.dtype == other.dtype
        and one.fill == other.fill
        and one.format == other.format
        and all(map(_are_same, one.levels, other.levels))
    )


def _sizes(given: Mapping[str, SparseTensor]) -> object:
    """What has to be equal for graphs to be, and takes no time to compare."""
    return tuple((value.shape, str(value.format)) for value in given.values())


def _are_equal(known: KnownRun, bound: BoundKernel) -> bool:
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


def _stored(known: KnownRun, read: Mapping[str, SparseTensor]) -> SparseTensor | None:
    """What the statements store of other tensors, by loops; ``None`` if those store other elements.

    The tensors have the names of those that the kernel read.
    """
    pattern = known.result.tensor
    try:
        value = _by_loops(known, read)
    except (UnsupportedError, UserError):  # no loops for a format, or no memory for a workspace
        return None
    same = value.format == pattern.format and len(value.levels) == len(pattern.levels)
    if not same or not all(map(_are_same, value.levels, pattern.levels)):
        return None
    return as_stored(pattern.shape, pattern.format, pattern.levels, value.values, fill=pattern.fill)


def _are_same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(np.asarray(one[name]), np.asarray(other[name])) for name in one
    )


def _by_loops(known: KnownRun, read: Mapping[str, SparseTensor]) -> SparseTensor:
    """The result of the statements of a kernel, of other tensors."""
    with preparation():
        from t2s.loops.running import run_assignment
    alone = len(known.group.statements) == 1
    values = dict(read)
    for statement in known.group.statements:
        assignment = known.bound.compiled.assignment if alone else statement.assignment
        zero = assignment.semiring.zero
        operands = {name: with_fill(values[name], zero) for name in statement.reads}
        extents = extents_of(assignment, {name: value.shape for name, value in operands.items()})
        type = known.bound.binding.type
        values[statement.name] = run_assignment(assignment, operands, extents, type)
    return values[known.group.last.name]


def _in_place_of(known: KnownRun, bound: BoundKernel) -> dict[str, SparseTensor]:
    """The tensors that a kernel reads, by the names of those that the equal one read."""
    given = bound.binding.given
    found: dict[str, SparseTensor] = {}
    for mine, theirs in zip(bound.graphs, known.bound.graphs, strict=True):
        own, others = bound.sources(mine), known.bound.sources(theirs)
        for port, same in zip(mine.reads, theirs.reads, strict=True):
            if own[port.name] in given:
                found[others[same.name]] = given[own[port.name]]
    return found


def _as_run_before(known: KnownRun, bound: BoundKernel, tensor: SparseTensor) -> SparseResult:
    """The result of a run that is known, with another tensor, and the tensors that it reads."""
    sources = []
    for mine, theirs in zip(bound.graphs, known.bound.graphs, strict=True):
        own = bound.sources(mine)
        pairs = zip(theirs.graph.tensors, mine.graph.tensors, strict=True)
        sources.append({one.name: own[other.name] for one, other in pairs if other.name in own})
    return SparseResult(tensor=tensor, stages=known.result.stages, sources=tuple(sources))
