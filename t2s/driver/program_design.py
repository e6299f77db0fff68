"""Programs of statements as designs: their graphs run one after the other.

A statement reads inputs and the results of statements before it, which are stored in between.
``ProgramDesign.parts`` says which statements form one graph.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from t2s.driver.program_result import ProgramResult, StatementRun
from t2s.graph.graph import Graph
from t2s.sparse_repr.binding import check_names, stored_places
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
from t2s.sparse_repr.streams import UNBOUNDED
from t2s.sparse_repr.tensors.interchange import filled_tensor, tensor
from t2s.sparse_repr.tensors.tensor import (
    SparseTensor,
    as_stored,
    check_tensor,
    from_coordinates,
    from_dense,
)


@dataclass(frozen=True, slots=True)
class Part:
    """Statements that form one graph, or the graphs of one kernel."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class ProgramDesign(Design):
    """A program, the type that it computes in, and what the channels of its graphs are.

    ``schedules`` are those of statements, by the tensor that they assign.  Kernels are compiled
    once for each assignment, with the extents that it needs as numbers.
    """

    program: StatementProgram
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    type: Type | None = None
    channels: Channels = field(default_factory=Channels)
    kernels: dict[Assignment, Compiled] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.program.statements[-1].name

    @property
    def parts(self) -> tuple[Part, ...]:
        """Which statements form one graph: each of them one of its own."""
        return tuple(Part((statement,)) for statement in self.program.statements)

    @property
    def stage_count(self) -> int:
        return sum(len(self.kernel(one).diagrams) for one in self._without_extents())

    def _without_extents(self) -> tuple[Assignment, ...]:
        """The assignments for inputs of any size, with extents as scalars."""
        return tuple(
            with_named_extents(statement.assignment) for statement in self.program.statements
        )

    def compiled(self, name: str) -> Compiled:
        """The kernel of the statement that assigns a tensor, for inputs of any size."""
        return self.kernel(with_named_extents(self.program.statement(name).assignment))

    def lower(self, given: Mapping[str, Any]) -> Graph:
        return self.only_stage(given, "lower").graph

    def loops(self, given: Mapping[str, Any]) -> str:
        """Every statement, and the loops of its kernel."""
        kernels = map(self.kernel, self._without_extents())
        return "\n".join(
            f"{described(statement)}\n{print_program(kernel.program)}"
            for statement, kernel in zip(self.program.statements, kernels, strict=True)
        )

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return dict(self.only_stage(given, "structure").arrays)

    def in_memory(self, graph: Graph) -> Graph:
        return given_in_memory(graph)

    def with_small_joins(self) -> ProgramDesign:
        return replace(self, channels=replace(self.channels, joins_of_two=True))

    def outputs_of(self, result: ProgramResult) -> dict[str, Array]:
        return {name: value.to_dense() for name, value in result.tensors.items()}

    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        """The stages of all statements, each with the results of those before it."""
        run = _Run(self, inputs)
        for number in range(len(run.sized)):
            design, given = run.kernel(number)
            result: SparseResult = yield from design.stages(given)
            run.finish(number, result.tensor, result)
        return run.result()

    def interpret(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The values of all tensors that statements assign, by numpy."""
        run = _Run(self, inputs)
        for number in range(len(run.sized)):
            run.finish(number, run.interpreted(number))
        return {name: value.to_dense() for name, value in run.results.items()}

    def graphs(self, inputs: Mapping[str, Any]) -> dict[str, tuple[Graph, ...]]:
        """The graphs of every statement; numpy computes what they depend on."""
        run = _Run(self, inputs)
        found: dict[str, tuple[Graph, ...]] = {}
        for number, statement in enumerate(self.program.statements):
            design, given = run.kernel(number)
            found[statement.name] = design.graphs(given)
            run.finish(number, run.interpreted(number))
        return found

    def kernel(self, assignment: Assignment) -> Compiled:
        """The compiled assignment; each is compiled once."""
        if assignment not in self.kernels:
            schedule = self.schedules.get(assignment.result.tensor)
            compiled = Compiled(assignment, schedule, assignment.semiring)
            if assignment.result.tensor in self.program.seen:
                _check_pattern(compiled)
            self.kernels[assignment] = compiled
        return self.kernels[assignment]


class CompiledProgram:
    """Statements that read each other's results, with the kernels that were compiled for them.

    Attributes
    ----------
    program: the statements that kernels compute, in the order in which they run.
    schedules: those of statements, by the tensor that they assign.
    """

    def __init__(
        self, program: StatementProgram, schedules: Mapping[str, Schedule] | None = None
    ) -> None:
        self.program = program
        self.schedules: Mapping[str, Schedule] = MappingProxyType(dict(schedules or {}))
        self._kernels: dict[Assignment, Compiled] = {}

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
        return ProgramDesign(self.program, self.schedules, type, channels, self._kernels)


class _Run:
    """A run of a program: the tensors that are known so far."""

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
        shapes = {name: value.shape for name, value in stored.items()}
        self.sized = sized_assignments(program, shapes)
        self.known: dict[str, SparseTensor] = {}
        for declared in program.inputs:
            value, is_tensor = stored[declared.name], isinstance(given[declared.name], SparseTensor)
            if is_tensor:
                check_tensor(value, increasing=not value.format.coordinate_list)
            value = filled_tensor(value, 0, as_array=not is_tensor)
            self.known[declared.name] = value.convert(declared.format)
        self.results: dict[str, SparseTensor] = {}
        self.runs: list[StatementRun] = []

    def kernel(self, number: int) -> tuple[AssignmentDesign, dict[str, SparseTensor]]:
        """The kernel of a statement, and the tensors that it reads."""
        statement, assignment = self.program.statements[number], self.sized[number]
        given = {name: self.known[name] for name in statement.reads}
        if assignment.semiring != PLUS_TIMES:
            kind = self._kind_of(given)
            semiring = _of_type(assignment.semiring, kind)
            assignment = replace(assignment, semiring=semiring)
            if kind.kind != "f":
                _check_rows(assignment, given)
            given = {name: _filled(value, semiring.zero) for name, value in given.items()}
        compiled = self.design.kernel(assignment)
        adapts = statement.name not in self.program.seen  # other temporaries store other zeros
        return (
            AssignmentDesign(compiled, self.design.type, self.design.channels, adapts=adapts),
            given,
        )

    def _kind_of(self, given: Mapping[str, SparseTensor]) -> np.dtype[Any]:
        if self.design.type is not None:
            return self.design.type.numpy
        return np.result_type(*(value.dtype for value in given.values()))

    def interpreted(self, number: int) -> SparseTensor:
        """The result of a statement by numpy, with what is stored of it."""
        design, given = self.kernel(number)
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

    def finish(self, number: int, value: SparseTensor, run: SparseResult | None = None) -> None:
        """Store the result of a statement; elements that it does not store are zero from now on."""
        statement = self.program.statements[number]
        self.known[statement.name] = self.results[statement.name] = _filled(value, 0)
        if run is not None:
            self.runs.append(StatementRun(statement=statement, result=run))

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


def _filled(value: SparseTensor, zero: float | int) -> SparseTensor:
    """The same entries, with another value of what is not stored."""
    values = value.values.astype(np.int64) if value.dtype.kind == "b" and zero else value.values
    return as_stored(value.shape, value.format, value.levels, values, fill=zero)


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
