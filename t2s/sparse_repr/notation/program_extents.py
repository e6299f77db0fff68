"""The shapes of all tensors of a program, from those of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.walk import Term, rewrite
from t2s.sparse_repr.formats import dense
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Extent,
    Number,
    TensorDeclaration,
)
from t2s.sparse_repr.notation.legality import extents_of
from t2s.sparse_repr.notation.program import Statement, StatementProgram, print_statement

Shape = tuple[int, ...]


def sized_assignments(
    program: StatementProgram, inputs: Mapping[str, Shape]
) -> tuple[Assignment, ...]:
    """The assignments of all statements, with the shapes of their results, and extents as numbers.

    A variable that a statement has on its left only goes as far as statements after it read.
    Raises ``UserError``, with the lines of both, for tensors that disagree.
    """
    needed = _extents_of_readers(program, inputs)
    shapes = dict(inputs)
    sized = []
    for statement in program.statements:
        assignment = statement.assignment
        result = assignment.result
        declared = assignment.tensor(result.tensor)
        on_the_right = {name for access in assignment.reads for name in access.variables}
        only_left = [name for name in result.variables if name not in on_the_right]
        if only_left and declared.shape is None:
            modes = [(result.tensor, mode) for mode in range(len(result.variables))]
            if all(mode in needed for mode in modes):
                shape = tuple(needed[mode] for mode in modes)
                assignment = _declaring(assignment, result.tensor, shape)
        try:
            extents = extents_of(assignment, _read(statement, shapes))
        except UserError as error:
            raise _with_lines(error, program, statement) from None
        shape = tuple(extents[name] for name in result.variables)
        shapes[result.tensor] = shape

        def numbered(term: Term, extents: Mapping[str, int] = extents) -> Term | None:
            return Number(value=extents[term.variable]) if isinstance(term, Extent) else None

        value = rewrite(assignment.value, numbered)
        same = value is assignment.value
        sized.append(assignment if same else replace(assignment, value=value))
    return tuple(sized)


def with_named_extents(assignment: Assignment) -> Assignment:
    """The assignment with every extent as a scalar tensor, for inputs of unknown sizes."""
    extents = [term for term in assignment.terms if isinstance(term, Extent)]
    if not extents:
        return assignment
    names = NameSupply(tensor.name for tensor in assignment.tensors)
    scalars = {one: names.fresh(f"extent_{one.variable}") for one in dict.fromkeys(extents)}

    def named(term: Term) -> Term | None:
        return Access(tensor=scalars[term]) if isinstance(term, Extent) else None

    declared = (TensorDeclaration(name=name, format=dense(0)) for name in scalars.values())
    return replace(
        assignment,
        value=rewrite(assignment.value, named),
        tensors=(*assignment.tensors, *declared),
    )


def _read(statement: Statement, shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    return {name: shapes[name] for name in statement.reads if name in shapes}


def _declaring(assignment: Assignment, name: str, shape: Shape) -> Assignment:
    tensors = tuple(
        replace(tensor, shape=shape) if tensor.name == name else tensor
        for tensor in assignment.tensors
    )
    return replace(assignment, tensors=tensors)


def _extents_of_readers(
    program: StatementProgram, inputs: Mapping[str, Shape]
) -> dict[tuple[str, int], int]:
    """What is known of the modes of tensors, from the inputs on through all statements."""
    known = {
        (name, mode): extent for name, shape in inputs.items() for mode, extent in enumerate(shape)
    }
    for statement in program.statements:
        for tensor in statement.assignment.tensors:
            for mode, extent in enumerate(tensor.shape or ()):
                known.setdefault((tensor.name, mode), extent)
    count = -1
    while count < len(known):
        count = len(known)
        for statement in program.statements:
            assignment = statement.assignment
            variables: dict[str, int] = {}
            every = (assignment.result, *assignment.reads)
            for access in every:
                for mode, name in enumerate(access.variables):
                    if (access.tensor, mode) in known:
                        variables.setdefault(name, known[access.tensor, mode])
            for access in every:
                for mode, name in enumerate(access.variables):
                    if name in variables:
                        known.setdefault((access.tensor, mode), variables[name])
    return known


def _with_lines(error: UserError, program: StatementProgram, statement: Statement) -> UserError:
    """The error with the statements whose results the statement reads."""
    computed = {other.name: other for other in program.statements}
    notes = [
        (
            computed[name].assignment.location,
            f"{name} is assigned by {print_statement(computed[name])}",
        )
        for name in statement.reads
        if name in computed
    ]
    return UserError(
        error.message,
        location=error.location,
        expected=error.expected,
        given=error.given,
        hint=error.hint,
        notes=[*error.notes, *notes],
    )
