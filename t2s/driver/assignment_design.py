"""Assignments of index notation as designs: compiled, run, and checked for overflowing sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import BOOL, Float, Int, Kind, Type, UInt, value_range
from t2s.core.validate import as_int
from t2s.core.walk import walk
from t2s.driver.design import Array, Design, Stage, StageResult, Stages
from t2s.driver.page_writer import write_stages
from t2s.driver.plan_inputs import run_loops
from t2s.driver.words import Words, total_words, words_of
from t2s.func.overflow import NarrowSum, range_of
from t2s.graph.cache import GraphCache
from t2s.graph.graph import LARGEST, UNBOUNDED, Graph, MemorySpace, TensorRole
from t2s.sparse_repr.adaptation import (
    looked_up_rows,
    looks_up_more,
    stored_temporaries,
    sums_apart,
)
from t2s.sparse_repr.binding import (
    Binding,
    add_stage_views,
    as_bools,
    bind,
    final_result,
    read_places,
    stage_shape,
    stored_places,
    workspace_places,
)
from t2s.sparse_repr.concrete.build import build_program
from t2s.sparse_repr.concrete.fused import fuse
from t2s.sparse_repr.concrete.fusion import StatementGroup
from t2s.sparse_repr.concrete.interpret import interpret_program
from t2s.sparse_repr.concrete.ir import (
    UNKNOWN_SIZES,
    Adaptation,
    ConcreteProgram,
    print_program,
    result_of,
)
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.concrete.workspaces import take_out_sums
from t2s.sparse_repr.levels.level import COORDINATES
from t2s.sparse_repr.lowering.binarize_joins import with_joins_of_two
from t2s.sparse_repr.lowering.diagram import Diagram, interpret_diagram
from t2s.sparse_repr.lowering.lower import check_skips, lower_stage
from t2s.sparse_repr.lowering.to_graph import StageGraph, array_in, diagram_to_graph, tensor_of
from t2s.sparse_repr.notation.evaluate import evaluate, evaluate_where
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Choice,
    Combine,
    Expression,
    Negative,
    Number,
    Over,
    Sum,
    TensorDeclaration,
    Unary,
    all_variables,
    print_assignment,
    print_expression,
)
from t2s.sparse_repr.notation.legality import with_semiring
from t2s.sparse_repr.notation.symbols import Tensor
from t2s.sparse_repr.semiring import OR_AND, PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, level_extents

if TYPE_CHECKING:
    from t2s.backends.verilog.verilator import HardwareResult
    from t2s.simulator.report.result import SimResult


BYTE = UInt(8)

MOST_GRAPHS = 64
"""Graphs that a kernel keeps, of all of its stages and of inputs of several sizes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SparseResult(NotebookDisplay):
    """The result of a run: the tensor, and the simulation of every stage.

    ``sources`` maps the arrays of each stage's graph to the tensors that they belong to.
    """

    tensor: SparseTensor
    stages: tuple[SimResult | HardwareResult, ...]
    sources: tuple[Mapping[str, str], ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"<SparseResult {self.tensor!r}, {self.cycles} cycles>"

    @property
    def cycles(self) -> int:
        """Cycles of all stages, one after the other."""
        return sum(stage.cycles for stage in self.stages)

    @property
    def output(self) -> Array:
        """The result as a dense array."""
        return self.tensor.to_dense()

    @property
    def words(self) -> dict[str, Words]:
        """The words that all stages load and store, by tensor; workspaces are tensors too.

        Raises ``UserError`` for a run that did not record what its blocks did.
        """
        return total_words(map(self.words_of_stage, range(len(self.stages))))

    def words_of_stage(self, number: int) -> dict[str, Words]:
        """The words that a stage loads and stores, by tensor."""
        return words_of(self.stages[number], self.sources[number])

    def _card(self) -> NotebookCard:
        """The result, and every stage with its cycles."""
        stages = [
            stage._card()
            if isinstance(stage, NotebookDisplay)
            else Preformatted(title="", text=str(stage))
            for stage in self.stages
        ]
        summary = (("cycles", f"{self.cycles:,} of {len(self.stages)} stages"),)
        return NotebookCard(title="Result", summary=summary, parts=(*stages, self.tensor._card()))

    def report(
        self,
        path: str | Path,
        *,
        windows: Sequence[tuple[int, int]] = (),
        depths: Any = None,
    ) -> Path:
        """Write a page with all stages, one after the other; see ``SimResult.report``.

        Raises ``UserError`` for stages that ran as hardware, which counts no stalls.
        """
        return write_stages(self, self.stages, path, windows, depths)

    def __str__(self) -> str:
        parts = [str(stage) for stage in self.stages]
        if len(parts) > 1:
            parts = [f"stage {n} of {len(parts)}\n{text}" for n, text in enumerate(parts, 1)]
            parts.append(f"{self.cycles} cycles in all\n")
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class Channels:
    """The kind of a graph's channels; see ``t2s.sparse.simulate``.  Raises ``UserError``.

    ``joins_of_two`` replaces larger joins by chains of binary ones.
    """

    capacity: int = UNBOUNDED
    latency: int = 1
    balance: bool = True
    joins_of_two: bool = False

    def __post_init__(self) -> None:
        for name in ("capacity", "latency"):
            value = getattr(self, name)
            number = as_int(value)
            if number is None or not 1 <= number <= LARGEST:
                raise UserError(
                    f"the {name} of channels is positive, and fits 64 bits",
                    location=user_location(),
                    expected=f"an integer from 1 to {LARGEST}",
                    given=repr(value),
                )
            object.__setattr__(self, name, number)


class Compiled:
    """An assignment with its loops and blocks; ``graphs`` and ``run`` need inputs.

    Attributes
    ----------
    assignment: the index notation; of a ``group`` of statements, its result from its inputs.
    program: the concrete index notation: loops, views, stages.
    diagrams: the blocks of every stage.
    """

    def __init__(
        self,
        assignment: Assignment,
        schedule: Schedule | None = None,
        semiring: Semiring = PLUS_TIMES,
        *,
        adapted: Adaptation = UNKNOWN_SIZES,
        group: StatementGroup | None = None,
    ) -> None:
        if group is not None and semiring != group.last.assignment.semiring:
            group = group.over(semiring)
        self._schedule, self._group = schedule, group
        self.program: ConcreteProgram
        if group is None:
            self.assignment = with_semiring(assignment, semiring)
            self.program = build_program(self.assignment, schedule, adapted=adapted)
        else:
            fused = fuse(group, adapted.looked_up)
            self.assignment, self.program = fused.assignment, fused.program
        self.diagrams: tuple[Diagram, ...] = tuple(
            lower_stage(self.program, stage) for stage in self.program.stages
        )
        check_skips(schedule or Schedule(), self.diagrams)
        self._graphs: dict[tuple[object, ...], StageGraph] = {}
        self._fitting: set[Type] = set()
        self._chosen = adapted
        self._variants: dict[Adaptation, Compiled] = {adapted: self}

    @staticmethod
    def of_group(group: StatementGroup) -> Compiled:
        """The kernel of a graph of statements."""
        last = group.last
        alone = len(group.statements) == 1
        semiring = last.assignment.semiring
        return Compiled(last.assignment, last.schedule, semiring, group=None if alone else group)

    def for_inputs(self, inputs: Mapping[str, Any], type: Type | None = None) -> Compiled:
        """The kernel that ``simulate`` runs for inputs of these sizes; ``print`` shows its loops.

        Temporaries that fit may become dense, those with many empty rows sparser, a sum may be
        split into two stages, and rows of inputs may be looked up.
        """
        return self.adapted(self.bind(inputs, type))

    def adapted(self, binding: Binding) -> Compiled:
        """The kernel for inputs of these sizes: this one if they change nothing."""
        if self._chosen != UNKNOWN_SIZES or binding.type == BOOL:
            return self
        if self.program.row_scans:
            return self._variant(looked_up_rows(self.program, binding))
        usual = self._variant(stored_temporaries(self.program, binding, UNKNOWN_SIZES))
        apart = sums_apart(self.program, binding)
        if apart == UNKNOWN_SIZES:
            return usual
        variant = self._variant(apart).program
        chosen = self._variant(stored_temporaries(variant, binding, apart))
        return chosen if looks_up_more(chosen.program, usual.program) else usual

    @property
    def is_chosen_by_values(self) -> bool:
        """Whether values of the inputs say which kernel is run, and not their patterns alone."""
        temporaries = any(o.roomy or o.padded or o.rows for o in self.program.workspaces)
        return temporaries or bool(self.program.rescans)

    def _variant(self, adapted: Adaptation) -> Compiled:
        if adapted not in self._variants:
            ring = self.assignment.semiring
            variant = Compiled(
                self.assignment, self._schedule, ring, adapted=adapted, group=self._group
            )
            self._variants[adapted] = variant
        return self._variants[adapted]

    @cached_property
    def of_bools(self) -> Compiled:
        """The kernel for bools, stored as bytes 0 and 1: a sum is an or, a product an and."""
        return Compiled(self.assignment, self._schedule, OR_AND, group=self._group)

    def __repr__(self) -> str:
        return f"<Kernel {print_assignment(self.assignment)}>"

    def __str__(self) -> str:
        return print_program(self.program)

    def bind(self, inputs: Mapping[str, Any], type: Type | None = None) -> Binding:
        """Convert inputs to the form that stages read; see ``simulate`` for the accepted kinds."""
        return bind(self.assignment, self.program, inputs, type, self._fitting)

    def stage(self, number: int, binding: Binding, channels: Channels) -> StageGraph:
        """The graph of a stage, cached: inputs of equal shapes share it."""
        key = number, tuple(sorted(binding.extents.items())), binding.type, binding.index, channels
        if key not in self._graphs:
            if len(self._graphs) == MOST_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
            diagram = self.diagrams[number]
            void = frozenset(name for name, extent in binding.extents.items() if not extent)
            if void:
                diagram = lower_stage(self.program, self.program.stages[number], void)
            if channels.joins_of_two:
                diagram = with_joins_of_two(diagram)
            self._graphs[key] = diagram_to_graph(
                diagram,
                self.program,
                self.program.grid(binding.extents),
                binding.type,
                name=diagram.result,
                capacity=channels.capacity,
                latency=channels.latency,
                balance=channels.balance,
                index=binding.index,
            )
        return self._graphs[key]

    def interpret(
        self, inputs: Mapping[str, Any], *, level: str = "notation", type: Type | None = None
    ) -> Array:
        """Compute without time: the notation by numpy, the ``"loops"``, or the ``"blocks"``.

        Loops are interpreted, so use them for small inputs.
        """
        binding = self.bind(inputs, type)
        chosen = self.adapted(binding)
        if chosen is not self:
            return chosen.interpret(inputs, level=level, type=type)
        if binding.type == BOOL:
            result = self.of_bools.interpret(inputs, level=level, type=BYTE)
            return result.astype(BOOL.numpy)
        kind = binding.type.numpy
        dense = {name: value.to_dense() for name, value in binding.given.items()}
        match level:
            case "notation":
                result = self._evaluate(binding, dense)
            case "loops":
                result = interpret_program(
                    self.program,
                    dense,
                    binding.extents,
                    kind,
                    read_places(self.program, binding),
                    partial(workspace_places, self.program),
                )
            case "blocks":
                result = self._interpret_blocks(binding)
            case _:
                raise UserError(
                    f"there is no level {level!r}",
                    location=user_location(),
                    expected="notation, loops or blocks",
                )
        warn_of_narrow_sums(self.assignment, binding, result)
        return result

    def _evaluate(self, binding: Binding, arrays: dict[str, Array]) -> Array:
        """The notation by numpy: as a whole, or workspace by workspace.

        The latter if the result may differ for infinities: with a dense workspace, or one for a
        part that the user takes out of its sum.
        """
        kind, program = binding.type.numpy, self.program
        stored = stored_places(program, binding)
        if self._group is not None:
            return _one_by_one(self._group, arrays, kind, stored)
        formats = [workspace.format for workspace in program.workspaces]
        as_written = all(format.order and not format.levels[-1].full for format in formats)
        names = set[str]().union(*map(program.workspace_names, program.workspaces))
        as_written = as_written and not names & set(program.without_zeros)
        if as_written and not any(workspace.apart for workspace in program.workspaces):
            return evaluate(self.assignment, arrays, kind, stored)
        tensors = [
            *self.assignment.tensors,
            *(TensorDeclaration(name=o.result.tensor, format=o.format) for o in program.workspaces),
        ]
        for temporary in program.workspaces:
            part = replace(
                self.assignment,
                result=temporary.result,
                value=temporary.value,
                tensors=tuple(tensors),
            )
            array, stored_at = evaluate_where(part, arrays, kind, stored)
            arrays[temporary.result.tensor] = array
            stored |= workspace_places(program, temporary, array, stored_at)
        assert program.value is not None
        rest = replace(self.assignment, value=program.value, tensors=tuple(tensors))
        return evaluate(rest, arrays, kind, stored)

    def _interpret_blocks(self, binding: Binding) -> Array:
        void = frozenset(name for name, extent in binding.extents.items() if not extent)
        written: SparseTensor | None = None
        for number, stage in enumerate(self.program.stages):
            diagram = lower_stage(self.program, stage, void) if void else self.diagrams[number]
            name = result_of(stage).tensor
            written = interpret_diagram(
                diagram,
                binding.tensors,
                self.program.grid(binding.extents),
                stage_shape(self.program, binding, number),
                self.program.format_of(name),
                binding.type.numpy,
            )
            add_stage_views(self.program, binding, written, name)
        assert written is not None
        return final_result(self.assignment, self.program, binding, written).to_dense()


def _one_by_one(
    group: StatementGroup, arrays: dict[str, Array], kind: np.dtype[Any], stored: dict[str, Array]
) -> Array:
    """The statements of a group by numpy, each over its own semiring."""
    for statement in group.statements:
        assignment = statement.assignment
        zero = np.asarray(assignment.semiring.zero).astype(kind)
        read = {
            name: np.where(stored[name], arrays[name], zero) if name in stored else arrays[name]
            for name in statement.reads
        }
        arrays[statement.name], there = evaluate_where(assignment, read, kind, stored)
        format = assignment.tensor(statement.name).format
        if not all(level.full for level in format.levels):
            stored[statement.name] = there
    return arrays[group.last.name]


@dataclass(frozen=True, kw_only=True)
class BoundKernel:
    """A kernel for some inputs, the inputs as it reads them, and the graph of every stage."""

    compiled: Compiled
    binding: Binding
    graphs: tuple[StageGraph, ...]

    def sources(self, graph: StageGraph) -> dict[str, str]:
        """The tensors of a graph's arrays, for views those that they are of."""
        views = {view.name: view.source for view in self.compiled.program.views}
        return {
            port.name: views.get(port.tensor, port.tensor) for port in (*graph.reads, *graph.writes)
        }


@dataclass(frozen=True)
class AssignmentDesign(Design):
    """A compiled assignment, the type that it computes in, and what its channels are."""

    compiled: Compiled
    type: Type | None = None
    channels: Channels = field(default_factory=Channels)
    adapts: bool = True

    @property
    def name(self) -> str:
        return self.compiled.assignment.result.tensor

    @property
    def stage_count(self) -> int:
        return len(self.compiled.diagrams)

    def graphs(self, inputs: Mapping[str, Any]) -> tuple[Graph, ...]:
        """The graph of every stage for inputs of these shapes."""
        bound = self.bound(inputs)
        if bound.binding.type == BOOL:
            return self._of_bools.graphs(inputs)
        return tuple(graph.graph for graph in bound.graphs)

    def stage_count_for(self, inputs: Mapping[str, Any] | None) -> int:
        return self.stage_count if inputs is None else len(self._bound(inputs)[0].diagrams)

    def only_stage(self, inputs: Mapping[str, Any] | None, verb: str) -> Stage:
        return super(AssignmentDesign, replace(self, adapts=False)).only_stage(inputs, verb)

    def _bound(self, inputs: Mapping[str, Any]) -> tuple[Compiled, Binding]:
        """The kernel for these inputs, and the inputs in the form that it reads."""
        binding = self.compiled.bind(inputs, self.type)
        chosen = self.compiled.adapted(binding) if self.adapts else self.compiled
        return chosen, binding if chosen is self.compiled else chosen.bind(inputs, self.type)

    def bound(self, inputs: Mapping[str, Any]) -> BoundKernel:
        """The kernel for these inputs, with its graphs; of bools there are none."""
        compiled, binding = self._bound(inputs)
        numbers = range(0 if binding.type == BOOL else len(compiled.diagrams))
        graphs = tuple(compiled.stage(number, binding, self.channels) for number in numbers)
        return BoundKernel(compiled=compiled, binding=binding, graphs=graphs)

    def in_memory(self, graph: Graph) -> Graph:
        return given_in_memory(graph)

    def with_small_joins(self) -> AssignmentDesign:
        return replace(self, channels=replace(self.channels, joins_of_two=True))

    def lower(self, given: Mapping[str, Any]) -> Graph:
        return self.only_stage(given, "lower").graph

    def loops(self, given: Mapping[str, Any]) -> str:
        return print_program(self.compiled.program)

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return dict(self.only_stage(given, "structure").arrays)

    def interpret(self, inputs: Mapping[str, Any]) -> Array:
        return self.compiled.interpret(inputs, type=self.type)

    def outputs_of(self, result: SparseResult) -> dict[str, Array]:
        return {self.name: result.output}

    def stages(self, inputs: Mapping[str, Any] | None, before: int = 0) -> Stages:
        """The stages in order; each reads the results of those before it.

        ``before`` are the cycles of graphs that ran before these.
        """
        if inputs is None:
            raise UserError(
                f"what {self.name} does in a cycle depends on its inputs",
                location=user_location(),
                expected="the tensors that it reads",
                given="no inputs",
                hint=f'pass them by name, as in t2s.simulate({self.name}, {{"A": matrix, ...}})',
            )
        bound = self.bound(inputs)
        compiled, binding, graphs = bound.compiled, bound.binding, bound.graphs
        if binding.type == BOOL:
            made_of_bytes = yield from self._of_bools.stages(inputs, before)
            return replace(made_of_bytes, tensor=as_bools(made_of_bytes.tensor))
        results: list[Any] = []
        written: SparseTensor | None = None
        for number, graph in enumerate(graphs):
            arrays = {
                port.name: array_in(binding.tensors[port.tensor], port) for port in graph.reads
            }
            result: StageResult = yield Stage(
                graph=graph.graph,
                arrays=arrays,
                scalars={},
                before=before,
                extents=_extents(graph, binding),
                ends=True,  # loops over what tensors store
            )
            results.append(result)
            before += _cycles_of(result)
            outputs = _ended(result).outputs
            stored = {(port.level, port.array): outputs[port.name] for port in graph.writes}
            name = result_of(compiled.program.stages[number]).tensor
            shape = stage_shape(compiled.program, binding, number)
            zero = compiled.program.semiring.zero
            written = tensor_of(stored, shape, compiled.program.format_of(name), zero)
            add_stage_views(compiled.program, binding, written, name)
        assert written is not None
        final = final_result(compiled.assignment, compiled.program, binding, written)
        warn_of_narrow_sums(compiled.assignment, binding, final)
        sources = tuple(map(bound.sources, graphs))
        return SparseResult(tensor=final, stages=tuple(results), sources=sources)

    @property
    def _of_bools(self) -> AssignmentDesign:
        return replace(self, compiled=self.compiled.of_bools, type=BYTE)


def _extents(graph: StageGraph, binding: Binding) -> dict[str, int]:
    """The extents of the levels whose coordinates a stage reads, by the names of their arrays."""
    found: dict[str, int] = {}
    for port in graph.reads:
        if port.level is not None and port.array == COORDINATES:
            tensor = binding.tensors[port.tensor]
            found[port.name] = level_extents(tensor.shape, tensor.format)[port.level]
    return found


def _cycles_of(result: Any) -> int:
    """The cycles of a stage; an emulation has none."""
    return int(getattr(result, "cycles", 0) or 0)


def _ended(result: Any) -> StageResult:
    """The result of a stage that ran to completion; raises otherwise."""
    from t2s.simulator.report.errors import require_complete
    from t2s.simulator.report.result import SimResult

    return require_complete(result) if isinstance(result, SimResult) else result


_IN_MEMORY: GraphCache[None, Graph] = GraphCache()


def given_in_memory(graph: Graph) -> Graph:
    """The graph with all inputs and outputs in the device's memory, cached."""

    def moved() -> Graph:
        tensors = tuple(
            tensor
            if tensor.role is TensorRole.INTERMEDIATE or tensor.place is MemorySpace.SHARED
            else replace(tensor, place=MemorySpace.MEMORY)
            for tensor in graph.tensors
        )
        return replace(graph, tensors=tensors)

    return _IN_MEMORY.get(graph, None, moved)


def assignment_design(design: object) -> AssignmentDesign | None:
    """The design of a kernel, an assignment or an assigned tensor; ``None`` for anything else."""
    match design:
        case Compiled():
            return AssignmentDesign(design)
        case Tensor() | Assignment():
            return AssignmentDesign(Compiled(assignment_of(design)))
    return None


def assignment_of(design: Tensor | Assignment) -> Assignment:
    """The assignment to a result tensor.  Raises ``UserError`` if nothing is assigned to it."""
    if isinstance(design, Assignment):
        return design
    if design.definition is None:
        raise UserError(
            f"nothing is assigned to {design.name}",
            location=design.location,
            expected=f"an assignment such as {design.name}[i, j] = B[i, k] * C[k, j]",
        )
    return design.definition


# Sums of index notation that overflow the type in which the statement is computed.
#
# The rules and the warning are those of Funcs (``func/overflow.py``): only signed sums count.  If
# the ranges of the operands allow an overflow, compiled loops compute the statement again in a wide
# type.

Interval = tuple[int, int]


def warn_of_narrow_sums(
    assignment: Assignment, binding: Binding, result: SparseTensor | Array
) -> None:
    """Warn, at the line of a statement, of each of its sums that overflows the type of a run.

    A sum inside another one counts only if the ``result`` is wrong because of it.
    """
    if binding.type.kind is not Kind.INT or assignment.semiring != PLUS_TIMES:
        return
    kinds = set(map(type, assignment.terms))
    if Sum not in kinds or Over in kinds:
        return
    names = NameSupply([*all_variables(assignment), *(t.name for t in assignment.tensors)])
    parts = take_out_sums(assignment, names)
    most = _largest(parts, binding)
    low, high = value_range(binding.type)
    if most <= high:
        return
    wide = Int(64) if most < 1 << 63 else Float(64)
    values: dict[str, Any] = {}
    for name, operand in binding.given.items():
        stored = operand.values.astype(wide.numpy)
        values[name] = as_stored(
            operand.shape, operand.format, operand.levels, stored, fill=operand.fill
        )
    location = assignment.location or user_location()
    narrow_sums: list[NarrowSum] = []
    for part in parts:
        value = values[part.result.tensor] = run_loops(part, values, binding.extents, wide)
        numbers = value.values if isinstance(value, SparseTensor) else value
        slack = 0 if wide == Int(64) else most >> 50
        if not numbers.size or low - slack <= numbers.min() <= numbers.max() <= high + slack:
            continue
        final = part is parts[-1]
        if final and narrow_sums and not any(isinstance(term, Sum) for term in walk(part.value)):
            continue  # its operands are reported already
        narrow_sums.append(
            NarrowSum(
                name=part.result.tensor if final else print_expression(part.value),
                type=binding.type,
                least=int(numbers.min()),
                most=int(numbers.max()),
                location=location,
                declared=False,
            )
        )
    if narrow_sums and not _same(values[assignment.result.tensor], result):
        for narrow in narrow_sums:
            narrow.warn()


def _same(wide: SparseTensor | Array, narrow: SparseTensor | Array) -> bool:
    """Whether two results have equal values; explicit zeros do not matter."""
    entries = []
    for result in (wide, narrow):
        if isinstance(result, SparseTensor):
            table, values = result.coordinates()
        else:
            table, values = np.argwhere(result != 0), result[result != 0]
        order = np.lexsort(table.T[::-1]) if table.shape[1] else np.arange(len(values))
        nonzero = order[values[order] != 0]
        entries.append((table[nonzero], values[nonzero]))
    return all(np.array_equal(*pair) for pair in zip(*entries, strict=True))


def _largest(parts: tuple[Assignment, ...], binding: Binding) -> int:
    """A bound on the magnitude of all partial sums of a statement."""
    ranges = {name: range_of(operand.values) for name, operand in binding.given.items()}
    sizes = {name: len(operand.values) for name, operand in binding.given.items()}
    most = 0

    def visit(value: Expression) -> Interval:
        nonlocal most
        match value:
            case Access(tensor=tensor):
                range_ = ranges[tensor]
            case Number(value=number):
                range_ = min(0, int(number)), max(0, int(number))
            case Unary(value=inner):  # relu or abs, of integers
                low, high = visit(inner)
                range_ = 0, max(-low, high)
            case Negative(value=inner):
                low, high = visit(inner)
                range_ = -high, -low
            case Sum(variables=variables, value=inner):
                count = prod(binding.extents[name] for name in variables)
                for access in _factors(inner):
                    if set(variables) <= set(access.variables) and access.tensor in sizes:
                        count = min(count, sizes[access.tensor])
                low, high = visit(inner)
                range_ = min(0, low * count), max(0, high * count)
            case Choice(condition=condition, value=inner, otherwise=other):
                visit(condition)
                (a, b), (c, d) = visit(inner), visit(other)
                range_ = min(a, c), max(b, d)
            case Combine(operator=operator, left=left, right=right):
                (a, b), (c, d) = visit(left), visit(right)
                corners = a * c, a * d, b * c, b * d
                match operator:
                    case Op.ADD:
                        range_ = a + c, b + d
                    case Op.SUBTRACT:
                        range_ = a - d, b - c
                    case Op.MULTIPLY:
                        range_ = min(corners), max(corners)
                    case _:
                        range_ = min(a, c), max(b, d)
        most = max(most, -range_[0], range_[1])
        return range_

    for part in parts:
        ranges[part.result.tensor] = visit(part.value)
    return most


def _factors(value: Expression) -> tuple[Access, ...]:
    """The tensors that a product is of."""
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return (*_factors(left), *_factors(right))
        case Access():
            return (value,)
    return ()
