"""Parts of an expression that are assigned to a workspace before it: by ``precompute``, inner sums.

A sum over variables that only the part has goes with it where what is between the two is linear in
the part: factors can be taken out of a sum, and terms or divisors cannot.  Elsewhere the workspace
has these variables, and the sum stays.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import Term, children, rebuild, walk
from t2s.sparse_repr.concrete.schedule import Precompute, Schedule
from t2s.sparse_repr.formats import csf
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Assignment,
    Combine,
    Expression,
    Negative,
    Sum,
    TensorDeclaration,
    all_variables,
    free_variables,
    print_expression,
    variables_of,
)
from t2s.sparse_repr.notation.legality import make_assignment


def precompute(assignment: Assignment, schedule: Schedule) -> tuple[Assignment, ...]:
    """The assignments to workspaces, in order, and what is left of the assignment."""
    before: list[Assignment] = []
    for one in schedule.directives:
        if isinstance(one, Precompute):
            workspace, assignment = _take_out(assignment, one)
            before.append(workspace)
    return (*before, assignment)


def _take_out(assignment: Assignment, one: Precompute) -> tuple[Assignment, Assignment]:
    found = sum(term == one.value for term in walk(assignment.value))
    text = print_expression(one.value)
    if found != 1:
        raise UserError(
            f"the expression has {text} {'twice' if found else 'nowhere'}",
            location=one.location,
            expected="a part of the expression that is there once, as it is written there",
            given=print_expression(assignment.value),
        )
    if any(tensor.name == one.workspace for tensor in assignment.tensors):
        raise UserError(
            f"there is a tensor {one.workspace} already",
            location=one.location,
            expected="a new name for the workspace",
        )
    outside = _variables_outside(assignment.value, one.value)
    needed = {*assignment.result.variables, *outside, *_sums_that_stay(assignment.value, one.value)}
    inside = variables_of(one.value)
    variables = tuple(v for v in all_variables(assignment) if v in needed and v in inside)
    result = Access(tensor=one.workspace, variables=variables, location=one.location)
    declared = TensorDeclaration(
        name=one.workspace, format=csf(len(variables)), location=one.location
    )
    value = _replaced(assignment.value, one.value, result, set(needed))
    tensors = (*assignment.tensors, declared)
    taken = tuple(name for name in free_variables(one.value) if name not in needed)
    part = one.value
    if taken and _joins_terms(part):  # else each of its terms would be summed on its own
        part = Sum(variables=taken, value=part)
    workspace = make_assignment(result, part, tensors, assignment.location)
    return workspace, replace(assignment, value=value, tensors=tensors)


def _joins_terms(value: Expression) -> bool:
    """Whether additions at the top of an expression join terms."""
    match value:
        case Combine(operator=operator):
            return operator in ADDITIVE
        case Negative(value=inner):
            return _joins_terms(inner)
        case _:
            return False


def _variables_outside(value: Expression, part: Expression) -> set[str]:
    """The variables of accesses outside of a part."""
    found: set[str] = set()

    def visit(term: Term) -> None:
        if term == part:
            return
        if isinstance(term, Access):
            found.update(term.variables)
        for child in children(term):
            visit(child)

    visit(value)
    return found


def _sums_that_stay(value: Expression, part: Expression) -> set[str]:
    """The variables of sums around a part that is not a factor of what is summed up."""
    found: set[str] = set()

    def visit(term: Term, around: tuple[str, ...]) -> None:
        """``around`` are the variables of sums with nothing but factors in between."""
        match term:
            case _ if term == part:
                found.difference_update(around)
            case Sum(variables=variables, value=inner):
                found.update(variables)
                visit(inner, (*around, *variables))
            case Negative() | Combine(operator=Op.MULTIPLY):
                for child in children(term):
                    visit(child, around)
            case _:
                for child in children(term):
                    visit(child, ())

    visit(value, ())
    return found


def _replaced(value: Expression, part: Expression, access: Access, needed: set[str]) -> Expression:
    """The expression with the part replaced; sums over variables only in the part go with it."""

    def visit(term: Term) -> Term:
        if term == part:
            return access
        new = rebuild(term, visit)
        if isinstance(new, Sum) and new is not term:
            left = tuple(name for name in new.variables if name in needed)
            return replace(new, variables=left) if left else new.value
        return new

    result: Expression = visit(value)  # type: ignore[assignment]
    return result


def take_out_sums(assignment: Assignment, names: NameSupply) -> tuple[Assignment, ...]:
    """The assignments to workspaces, inner ones first, and what is left of the assignment.

    Sums that are terms of the expression stay where they are.
    """
    before: list[Assignment] = []
    order = all_variables(assignment)
    tensors = list(assignment.tensors)

    def workspace(term: Sum) -> Access:
        inner = replace(term, value=factor_or_sum(term.value))
        free = set(free_variables(inner))
        variables = tuple(name for name in order if name in free)
        result = Access(
            tensor=names.fresh("total"),
            variables=variables,
            location=assignment.location,
        )
        tensors.append(
            TensorDeclaration(
                name=result.tensor, format=csf(len(variables)), location=assignment.location
            )
        )
        before.append(replace(assignment, result=result, value=inner, tensors=tuple(tensors)))
        return result

    def factor(term: Expression) -> Expression:
        made: Expression = rebuild(term, visit)
        return made

    def visit(term: Term) -> Term:
        return workspace(term) if isinstance(term, Sum) else rebuild(term, visit)

    def terms(value: Expression) -> Expression:
        match value:
            case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
                return replace(value, left=terms(left), right=terms(right))
            case Negative(value=inner):
                return Negative(value=terms(inner))
            case Sum(value=inner):
                return replace(value, value=factor_or_sum(inner))
            case _:
                return factor(value)

    def factor_or_sum(value: Expression) -> Expression:
        return workspace(value) if isinstance(value, Sum) else factor(value)

    value = terms(assignment.value)
    return (*before, replace(assignment, value=value, tensors=tuple(tensors)))
