"""Groups of statements without their names: those that differ in nothing else are equal.

The decoders of a transformer, say, are the same statements of other tensors.  Names carry no
meaning, so the kernels of equal groups are equal but for names too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t2s.core.walk import Term, rewrite
from t2s.sparse_repr.concrete.fusion import ScheduledAssignment, StatementGroup
from t2s.sparse_repr.concrete.pattern_directives import LoopDirective
from t2s.sparse_repr.concrete.schedule import (
    DropZeros,
    OrderLoops,
    Parallelize,
    Schedule,
    Transpose,
)
from t2s.sparse_repr.notation.ir import (
    Access,
    Assignment,
    Extent,
    Number,
    OfRow,
    Sum,
    TensorDeclaration,
    all_variables,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamelessGroup:
    """A group whose tensors and variables have numbers in place of names; equal to those alike.

    ``constants`` tell 1 from 1.0, and ``tensors`` are the names of the tensors, in the order of
    their numbers.
    """

    group: StatementGroup
    constants: tuple[str, ...]
    tensors: tuple[str, ...] = field(compare=False)


def without_names(group: StatementGroup) -> NamelessGroup | None:
    """The group with numbers, in order of first occurrence; ``None`` for some schedules.

    A variable has its number in its own statement.
    """
    tensors: dict[str, str] = {}
    for statement in group.statements:
        assignment = statement.assignment
        names = (assignment.result.tensor, *statement.reads, *(t.name for t in assignment.tensors))
        for name in names:
            tensors.setdefault(name, f"#{len(tensors)}")
    statements = []
    for statement in group.statements:
        variables = {
            name: f"%{number}" for number, name in enumerate(all_variables(statement.assignment))
        }
        directives = [
            _directive(directive, tensors, variables) for directive in statement.schedule.directives
        ]
        known = tuple(directive for directive in directives if directive is not None)
        if len(known) < len(directives):
            return None
        statements.append(
            ScheduledAssignment(
                assignment=_assignment(statement.assignment, tensors, variables),
                schedule=Schedule(directives=known),
            )
        )
    passed = tuple(replace(one, tensor=tensors[one.tensor]) for one in group.passed)
    numbered = StatementGroup(statements=tuple(statements), passed=passed)
    constants = tuple(
        repr(term.value)
        for statement in group.statements
        for term in statement.assignment.terms
        if isinstance(term, Number)
    )
    return NamelessGroup(group=numbered, constants=constants, tensors=tuple(tensors))


def _directive(
    directive: LoopDirective, tensors: Mapping[str, str], variables: Mapping[str, str]
) -> LoopDirective | None:
    """A directive with numbers; ``None`` for those that introduce names of their own."""
    match directive:
        case OrderLoops(variables=names) if set(names) <= variables.keys():
            return replace(directive, variables=tuple(variables[name] for name in names))
        case Parallelize(variable=name) if name in variables:
            return replace(directive, variable=variables[name])
        case Transpose(tensors=names) | DropZeros(tensors=names) if set(names) <= tensors.keys():
            return replace(directive, tensors=tuple(tensors[name] for name in names))
    return None


def _assignment(
    assignment: Assignment, tensors: Mapping[str, str], variables: Mapping[str, str]
) -> Assignment:
    def numbered(term: Term) -> Term | None:
        match term:
            case Access(tensor=tensor, variables=names):
                own = tuple(variables[name] for name in names)
                return replace(term, tensor=tensors[tensor], variables=own)
            case Sum(variables=names) | OfRow(variables=names):
                return replace(term, variables=tuple(variables.get(name, name) for name in names))
            case Extent(variable=name):
                return replace(term, variable=variables.get(name, name))
            case TensorDeclaration(name=name):
                return replace(term, name=tensors[name])
        return None

    return rewrite(assignment, numbered)
