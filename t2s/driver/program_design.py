"""Programs of statements as designs: their graphs run one after the other.

A statement reads inputs and the results of statements before it, which are stored in between, or
passed on inside of a graph.  ``ProgramDesign.groups`` says which statements form one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.names import counted
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.driver.assignment_design import (
    AssignmentDesign,
    Channels,
    Compiled,
    SparseResult,
    given_in_memory,
)
from t2s.driver.design import Array, Design, Stages
from t2s.driver.equal_graphs import EqualGraphs, KnownRun, PlannedGroup, planned_groups
from t2s.driver.program_result import ProgramResult, StatementRun
from t2s.driver.program_types import shared_type
from t2s.graph.graph import UNBOUNDED, Graph
from t2s.sparse_repr.binding import check_names, stored_places
from t2s.sparse_repr.concrete.fusion import (
    PassOn,
    ScheduledAssignment,
    StatementGroup,
    Way,
    groups_of,
)
from t2s.sparse_repr.concrete.ir import print_program
from t2s.sparse_repr.concrete.schedule import Schedule
from t2s.sparse_repr.notation.evaluate import evaluate_where
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Sum,
    accesses,
    print_assignment,
    print_expression,
)
from t2s.sparse_repr.notation.program import (
    Statement,
    StatementProgram,
    described,
    print_statement,
)
from t2s.sparse_repr.notation.program_extents import sized_assignments, with_named_extents
from t2s.sparse_repr.notation.usual_format import is_sparse
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.interchange import filled_tensor, tensor
from t2s.sparse_repr.tensors.tensor import (
    SparseTensor,
    check_tensor,
    from_coordinates,
    from_dense,
    with_fill,
)

MOST_PLANS = 8
"""Shapes of inputs for which the statements of a program are kept."""

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
Sizes = dict[Shapes, tuple[Assignment, ...]]
Plans = dict[
    tuple[Shapes, tuple[PassOn, ...], tuple[tuple[str, Schedule], ...]], tuple[PlannedGroup, ...]
]


@dataclass(frozen=True)
class ProgramDesign(Design):
    """A program, the type that it computes in, and what the channels of its graphs are.

    ``schedules`` are those of statements, by the tensor that they assign, and ``passed`` the
    results that are not stored.  Kernels are compiled once for each group of statements, with the
    extents that it needs as numbers.  If nobody asks for ``values``, those on which no times depend
    are not computed.
    """

    program: StatementProgram
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    passed: tuple[PassOn, ...] = ()
    type: Type | None = None
    channels: Channels = field(default_factory=Channels)
    values: bool = True
    kernels: dict[StatementGroup, Compiled] = field(default_factory=dict, repr=False, compare=False)
    plans: Plans = field(default_factory=dict, repr=False, compare=False)
    sizes: Sizes = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.program.statements[-1].name

    def groups(self, assignments: Sequence[Assignment]) -> tuple[StatementGroup, ...]:
        """Which statements form one graph, or the graphs of one kernel; of their assignments."""
        statements = [
            ScheduledAssignment(
                assignment=assignment,
                schedule=self.schedules.get(assignment.result.tensor, Schedule()),
            )
            for assignment in assignments
        ]
        return groups_of(statements, self.passed)

    def sized(self, shapes: Shapes) -> tuple[Assignment, ...]:
        """The assignments for inputs of these shapes."""
        if shapes not in self.sizes:
            while len(self.sizes) >= MOST_PLANS:
                del self.sizes[next(iter(self.sizes))]
            self.sizes[shapes] = sized_assignments(self.program, dict(shapes))
        return self.sizes[shapes]

    @property
    def groups_of_any_size(self) -> tuple[StatementGroup, ...]:
        """The groups for inputs of any size, with extents as scalars."""
        return self.groups(
            [with_named_extents(statement.assignment) for statement in self.program.statements]
        )

    @property
    def stage_count(self) -> int:
        return sum(len(self.kernel(group).diagrams) for group in self.groups_of_any_size)

    def compiled(self, name: str) -> Compiled:
        """The kernel of the graph that computes a tensor, for inputs of any size."""
        homes = (
            group
            for group in self.groups_of_any_size
            if name in (statement.name for statement in group.statements)
        )
        return self.kernel(next(homes))

    def lower(self, given: Mapping[str, Any]) -> Graph:
        return self.only_stage(given, "lower").graph

    def loops(self, given: Mapping[str, Any]) -> str:
        """The statements of every graph, and its loops."""
        by_name = {statement.name: statement for statement in self.program.statements}
        texts = []
        for group in self.groups_of_any_size:
            lines = [_described(by_name[one.name], group) for one in group.statements]
            texts.append("\n".join([*lines, print_program(self.kernel(group).program)]))
        return "\n".join(texts)

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return dict(self.only_stage(given, "structure").arrays)

    def in_memory(self, graph: Graph) -> Graph:
        return given_in_memory(graph)

    def with_small_joins(self) -> ProgramDesign:
        return replace(self, channels=replace(self.channels, joins_of_two=True))

    def outputs_of(self, result: ProgramResult) -> dict[str, Array]:
        return {name: value.to_dense() for name, value in result.tensors.items()}

    def without_values(self) -> ProgramDesign:
        return replace(self, values=False)

    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        """The stages of all graphs, each with the results of those before it."""
        run, equal = ProgramRun(self, inputs), EqualGraphs()
        for planned in self._planned(run):
            try:
                yield from self._run(planned, run, equal)
            except (UserError, KeyboardInterrupt) as error:
                raise self._cut_short(error, planned.group, run) from None
        return run.result()

    def _planned(self, run: ProgramRun) -> tuple[PlannedGroup, ...]:
        key = run.shapes, self.passed, tuple(self.schedules.items())
        if key not in self.plans:
            while len(self.plans) >= MOST_PLANS:
                del self.plans[next(iter(self.plans))]
            self.plans[key] = planned_groups(self.groups(run.sized))
        return self.plans[key]

    def _run(self, planned: PlannedGroup, run: ProgramRun, equal: EqualGraphs) -> Stages:
        """The stages of a group; none if those of an equal one tell its times."""
        for known in equal.alike(planned, run.patterns):
            yield from self._compute(run, known.deciding(planned))
            if known.has_values_of(planned, run.known):
                run.postpone(planned, known)
                if self.values:
                    yield from self._compute(run, [planned.name])
                return
        yield from self._compute(run, planned.reads)
        design, given = run.kernel(planned.group)
        result = equal.result_of(design, given)
        if result is None:
            result = yield from design.stages(given, run.cycles)
            read = {name: run.known[name] for name in planned.reads}
            equal.add(
                KnownRun(planned=planned, design=design, given=given, read=read, result=result)
            )
        run.finish(planned.group, result.tensor, result)

    def _compute(self, run: ProgramRun, names: Sequence[str]) -> Stages:
        """Compute values that were postponed, and those that they depend on."""
        for planned, known in run.postponed_for(names):
            tensor = known.values_for(planned, run.known)
            if tensor is None:  # loops store other elements, so its own graphs have to run
                design, given = run.kernel(planned.group)
                tensor = (yield from design.stages(given)).tensor
            run.compute(planned, tensor)

    def _cut_short(
        self, error: BaseException, group: StatementGroup, run: ProgramRun
    ) -> BaseException:
        """The error of a graph, with what is known of the program if the run was cut short."""
        from t2s.driver.program_cut_short import ProgramInterrupted, ProgramLimitError
        from t2s.simulator.report.errors import CycleLimitError

        match error:
            case KeyboardInterrupt():
                return ProgramInterrupted(self.name, group.last.name, run.result(), error)
            case CycleLimitError(result=result):
                limit = run.cycles + result.cycles
                return ProgramLimitError(self.name, group.last.name, run.result(), limit)
        return error

    def limit_error(self, result: ProgramResult, max_cycles: int) -> UserError | None:
        """Graphs that are equal to others are not run, so that no limit ends them."""
        if result.cycles <= max_cycles:
            return None
        from t2s.driver.program_cut_short import ProgramLimitError

        done, used = 0, 0
        while used + result.runs[done].cycles <= max_cycles:
            used += result.runs[done].cycles
            done += 1
        at, before = result.runs[done], replace(result, runs=result.runs[:done])
        return ProgramLimitError(self.name, at.name, before, max_cycles)

    def interpret(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The values of all tensors that statements assign, by numpy, one after the other."""
        run = replace(self, passed=()).interpreted(inputs)
        return {name: value.to_dense() for name, value in run.results.items()}

    def started(self, inputs: Mapping[str, Any]) -> ProgramRun:
        """A run before its first graph."""
        return ProgramRun(self, inputs)

    def interpreted(self, inputs: Mapping[str, Any]) -> ProgramRun:
        """A run by numpy, statement by statement."""
        run = self.started(inputs)
        for group in self.groups(run.sized):
            run.finish(group, run.interpreted(group))
        return run

    def graphs(self, inputs: Mapping[str, Any]) -> dict[str, tuple[Graph, ...]]:
        """The graphs by what they store; numpy computes what they depend on."""
        run = replace(self, passed=()).interpreted(inputs)
        found: dict[str, tuple[Graph, ...]] = {}
        for group in self.groups(run.sized):
            design, given = run.kernel(group)
            found[group.last.name] = design.graphs(given)
        return found

    def kernel(self, group: StatementGroup) -> Compiled:
        """The kernel of a group; each is compiled once."""
        if group not in self.kernels:
            compiled = Compiled.of_group(group)
            if group.last.name in self.program.seen:
                _check_pattern(compiled)
            self.kernels[group] = compiled
        return self.kernels[group]


def _described(statement: Statement, group: StatementGroup) -> str:
    passing = group.way_of(statement.name)
    if passing is None:
        return described(statement)
    how = {Way.STREAM: "streamed", Way.RECOMPUTE: "recomputed"}[passing.way]
    return f"{print_statement(statement)}  # {how}"


class CompiledProgram:
    """Statements that read each other's results, with the kernels that were compiled for them.

    Attributes
    ----------
    program: the statements that kernels compute, in the order in which they run.
    schedules: those of statements, by the tensor that they assign.
    said, chosen: the ways of results that the user says, and those that ``fuse`` chose.
    """

    def __init__(
        self,
        program: StatementProgram,
        schedules: Mapping[str, Schedule] | None = None,
        said: Sequence[PassOn] = (),
        chosen: Sequence[PassOn] = (),
    ) -> None:
        self.program = program
        self.schedules: Mapping[str, Schedule] = MappingProxyType(dict(schedules or {}))
        self.said, self.chosen = tuple(said), tuple(chosen)
        self._kernels: dict[StatementGroup, Compiled] = {}
        self._plans: Plans = {}
        self._sizes: Sizes = {}

    def design(
        self,
        *,
        type: Type | None = None,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        balance: bool = True,
    ) -> ProgramDesign:
        """The program with a computation type and kind of channels, for all verbs of ``t2s``."""
        channels = Channels(capacity, latency, balance)
        return ProgramDesign(
            self.program,
            self.schedules,
            (*self.said, *self.chosen),
            type,
            channels,
            kernels=self._kernels,
            plans=self._plans,
            sizes=self._sizes,
        )


@dataclass(frozen=True, slots=True)
class _Postponed:
    """A group whose values are not computed yet, the run that has its times, and its number."""

    planned: PlannedGroup
    known: KnownRun
    number: int


class ProgramRun:
    """A run of a program: the tensors that are known so far.

    ``patterns`` has also those whose values are postponed, with NaN in their place.
    """

    def __init__(self, design: ProgramDesign, inputs: Mapping[str, Any] | None) -> None:
        program = design.program
        if inputs is None:
            raise UserError(
                f"what {design.name} does in a cycle depends on its inputs",
                location=user_location(),
                expected=f"the tensors {', '.join(t.name for t in program.inputs)}",
                given="no inputs",
                hint='pass them by name, as in t2s.simulate(program, {"A": matrix, ...})',
            )
        given = named_inputs(inputs)
        _check_inputs(program, given)
        self.design, self.program = design, program
        stored = {t.name: tensor(given[t.name]) for t in program.inputs}
        self.shapes = tuple((name, value.shape) for name, value in stored.items())
        self.sized = design.sized(self.shapes)
        self.known: dict[str, SparseTensor] = {}
        for declared in program.inputs:
            value, is_tensor = stored[declared.name], isinstance(given[declared.name], SparseTensor)
            if is_tensor:
                check_tensor(value, increasing=not value.format.coordinate_list)
            value = filled_tensor(value, 0, as_array=not is_tensor)
            self.known[declared.name] = value.convert(declared.format)
        self.results: dict[str, SparseTensor] = {}
        self.runs: list[StatementRun] = []
        self.patterns = dict(self.known)
        self._postponed: dict[str, _Postponed] = {}

    def kernel(self, group: StatementGroup) -> tuple[AssignmentDesign, dict[str, SparseTensor]]:
        """The kernel of a group, and the tensors that it reads."""
        names = dict.fromkeys(name for one in group.statements for name in one.reads)
        given = {name: self.known[name] for name in names if group.way_of(name) is None}
        kind = self._kind_of(given) if given else np.dtype(np.float64)
        type = self.type_of(group)
        alone = len(group.statements) == 1
        if alone and group.last.assignment.semiring != PLUS_TIMES and kind.kind != "f":
            group = group.over(_of_type(group.last.assignment.semiring, kind))
            _check_rows(group.last.assignment, given)
        zero = group.last.assignment.semiring.zero
        if zero:
            given = {name: with_fill(value, zero) for name, value in given.items()}
        compiled = self.design.kernel(group)
        adapts = group.last.name not in self.program.seen  # other temporaries store other zeros
        return AssignmentDesign(compiled, type, self.design.channels, adapts=adapts), given

    def type_of(self, group: StatementGroup) -> Type | None:
        """The type of a graph; ``None`` if it follows from what its only statement reads.

        Raises ``UserError`` for statements to which one graph could give other values.
        """
        if len(group.statements) == 1 or self.design.type is not None:
            return self.design.type
        whole = self.design.kernel(group).assignment
        stored = {access.tensor: self.known[access.tensor].dtype for access in whole.reads}
        return shared_type(group, whole, stored)

    def _kind_of(self, given: Mapping[str, SparseTensor]) -> np.dtype[Any]:
        if self.design.type is not None:
            return self.design.type.numpy
        return np.result_type(*(value.dtype for value in given.values()))

    def interpreted(self, group: StatementGroup) -> SparseTensor:
        """The result of a group by numpy, with what is stored of it."""
        design, given = self.kernel(group)
        compiled = design.compiled
        assignment, values = compiled.assignment, compiled.interpret(given, type=design.type)
        format = assignment.tensor(assignment.result.tensor).format
        zero = assignment.semiring.zero
        if not is_sparse(format):
            return from_dense(values, format, fill=zero)
        binding = compiled.bind(given, design.type)
        dense = {name: value.to_dense() for name, value in binding.given.items()}
        places = stored_places(compiled.program, binding)
        _, there = evaluate_where(assignment, dense, binding.type.numpy, places)
        return from_coordinates(np.argwhere(there), values[there], values.shape, format, fill=zero)

    def finish(
        self, group: StatementGroup, value: SparseTensor, run: SparseResult | None = None
    ) -> None:
        """Store the result of a group; elements that it does not store are zero from now on."""
        name = group.last.name
        self.known[name] = self.results[name] = self.patterns[name] = with_fill(value, 0)
        if run is not None:
            statement = self.program.statement(name)
            self.runs.append(StatementRun(statement=statement, passed=group.passed, result=run))

    def postpone(self, planned: PlannedGroup, known: KnownRun) -> None:
        """End the run of a group that is equal to a known one, but for the values it stores."""
        pattern = known.pattern()
        self.patterns[planned.name] = with_fill(pattern, 0)
        self._postponed[planned.name] = _Postponed(planned, known, len(self.runs))
        statement = self.program.statement(planned.name)
        result = known.result_for(planned, pattern)
        passed = planned.group.passed
        self.runs.append(StatementRun(statement=statement, passed=passed, result=result))

    def postponed_for(self, names: Sequence[str]) -> list[tuple[PlannedGroup, KnownRun]]:
        """The groups that compute what is postponed of some tensors, in order."""
        found: dict[str, _Postponed] = {}
        left = [name for name in names if name in self._postponed]
        while left:
            name = left.pop()
            one = found[name] = self._postponed[name]
            left += [
                other
                for other in one.planned.reads
                if other in self._postponed and other not in found
            ]
        ordered = sorted(found.values(), key=lambda one: one.number)
        return [(one.planned, one.known) for one in ordered]

    def compute(self, planned: PlannedGroup, value: SparseTensor) -> None:
        """Store values that were postponed."""
        name = planned.name
        number = self._postponed.pop(name).number
        run = self.runs[number]
        self.runs[number] = replace(run, result=replace(run.result, tensor=value))
        self.known[name] = self.results[name] = self.patterns[name] = with_fill(value, 0)

    @property
    def cycles(self) -> int:
        """Cycles of the graphs that ended."""
        return sum(run.cycles for run in self.runs)

    def result(self) -> ProgramResult:
        return ProgramResult(tensors=self.results, runs=tuple(self.runs))


def _check_pattern(compiled: Compiled) -> None:
    """Refuse a result whose stored elements depend on how the compiler stores a part of it."""
    assignment = compiled.assignment
    sparse = {tensor.name for tensor in assignment.tensors if is_sparse(tensor.format)}
    for workspace in compiled.program.workspaces:
        read = {access.tensor for access in accesses(workspace.value)}
        if any(level.full for level in workspace.format.levels[-1:]) and read & sparse:
            part = print_expression(workspace.value)
            name = assignment.result.tensor
            raise UserError(
                f"which elements {name} stores depends on how its part {part} is stored",
                location=assignment.location,
                expected=f"a part of {name} that is a tensor of the program, since stored(...) "
                "looks at what is stored",
                given=print_assignment(assignment),
                hint=f"assign {part} to a tensor in a statement before, and read that in {name}",
            )


def _check_inputs(program: StatementProgram, given: Mapping[str, Any]) -> None:
    computed = {statement.name: statement for statement in program.statements}
    needed = tuple(declared.name for declared in program.inputs)
    for name in given:
        if name in computed:
            raise UserError(
                f"{name} is an input, and a statement assigns it",
                location=user_location(),
                expected=f"the inputs {', '.join(needed) or 'of none'}",
                given=name,
                notes=[
                    (
                        computed[name].assignment.location,
                        f"{name} is assigned by {print_statement(computed[name])}",
                    )
                ],
            )
    check_names(needed, given)


def _of_type(semiring: Semiring, kind: np.dtype[Any]) -> Semiring:
    """The semiring of maxima or minima with the least, or largest, number of a type as its zero."""
    if kind.kind == "f":
        return semiring
    limits = np.iinfo(np.int64 if kind.kind == "b" else kind)
    zero = int(limits.min if semiring.zero == -inf else limits.max)
    return replace(semiring, zero=zero)


def _check_rows(assignment: Assignment, given: Mapping[str, SparseTensor]) -> None:
    """Raise ``UserError`` if integers have no largest one, because a row stores none."""
    match assignment.value:
        case Sum(variables=along, value=Access(tensor=name, variables=variables)):
            pass
        case _:
            return
    operand = given[name]
    rows = [mode for mode, variable in enumerate(variables) if variable not in along]
    shape = tuple(operand.shape[mode] for mode in rows)
    table = operand.coordinates()[0][:, rows]
    stores = np.zeros(shape, np.bool_)
    stores[tuple(table.T)] = True
    if not stores.all():
        first = np.argwhere(~stores)[0] if shape else ()
        place = ", ".join(f"{variables[m]} = {c}" for m, c in zip(rows, first, strict=True))
        what = "smallest" if assignment.semiring.add is Op.MINIMUM else "largest"
        raise UserError(
            f"{name} has no {what} integer{f' at {place}' if place else ''}, where it stores none",
            location=assignment.location,
            expected="a stored element in every row, or floating-point numbers, whose "
            f"{what} one of none is infinite",
            given=f"{counted(int(stores.size - stores.sum()), 'row')} without one",
            hint="type=Float(64) computes in floating point",
        )
