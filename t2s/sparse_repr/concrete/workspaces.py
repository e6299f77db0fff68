"""Parts of an expression that are assigned to a workspace before it: by ``precompute``, inner sums.

A sum over variables that only the part has goes with it where what is between the two is linear in
the part: factors can be taken out of a sum, and terms or divisors cannot.  Elsewhere the workspace
has these variables, and the sum stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.walk import Term, children, rebuild, walk
from t2s.sparse_repr.concrete.schedule import Precompute, Schedule
from t2s.sparse_repr.formats import Format, csf
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


def precompute(
    assignment: Assignment, schedule: Schedule
) -> tuple[tuple[Assignment, Precompute | None], ...]:
    """The assignments to workspaces, in order, with their directives, and what is left."""
    done: list[tuple[Assignment, Precompute | None]] = [(assignment, None)]
    for one in schedule.directives:
        if isinstance(one, Precompute):
            at = _place_of(one, [made for made, _ in done])
            source, directive = done[at]
            workspace, left = _take_out(source, one)
            done[at : at + 1] = [(workspace, one), (left, directive)]
            tensor = workspace.tensor(one.workspace)
            done = [(_declaring(made, tensor), given) for made, given in done]
    return tuple(done)


def _declaring(assignment: Assignment, tensor: TensorDeclaration) -> Assignment:
    if tensor in assignment.tensors:
        return assignment
    return replace(assignment, tensors=(*assignment.tensors, tensor))


def _place_of(one: Precompute, assignments: Sequence[Assignment]) -> int:
    """The assignment that has the part."""
    counts = [
        sum(term == one.value for term in walk(_gathered(made.value, one.value)))
        for made in assignments
    ]
    if sum(counts) != 1:
        text = print_expression(one.value)
        raise UserError(
            f"the expression has {text} {'twice' if sum(counts) else 'nowhere'}",
            location=one.location,
            expected="a part of the expression, or factors of one product, that is there once",
            given="; ".join(print_expression(made.value) for made in assignments),
        )
    if any(tensor.name == one.workspace for tensor in assignments[0].tensors):
        raise UserError(
            f"there is a tensor {one.workspace} already",
            location=one.location,
            expected="a new name for the workspace",
        )
    return counts.index(1)


def _factors(value: Expression) -> list[Expression]:
    match value:
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            return [*_factors(left), *_factors(right)]
    return [value]


def _gathered(value: Expression, part: Expression) -> Expression:
    """The expression with the factors of a part next to each other: ``C*D`` is one of ``B*C*D``."""
    wanted = _factors(part)

    def visit(term: Term) -> Term:
        if term == part or not isinstance(term, Combine) or term.operator is not Op.MULTIPLY:
            return rebuild(term, visit) if term != part else term
        if any(inner == part for inner in walk(term)):
            return rebuild(term, visit)
        rest = _factors(term)
        first = next((at for at, one in enumerate(rest) if one in wanted), 0)
        for one in wanted:
            if one not in rest:
                return rebuild(term, visit)
            rest.remove(one)
        rest.insert(min(first, len(rest)), part)
        made = rest[0]
        for one in rest[1:]:
            made = Combine(operator=Op.MULTIPLY, left=made, right=one)
        return made

    result: Expression = visit(value) if len(wanted) > 1 else value  # type: ignore[assignment]
    return result


def _take_out(assignment: Assignment, one: Precompute) -> tuple[Assignment, Assignment]:
    value = _gathered(assignment.value, one.value)
    outside = _variables_outside(value, one.value)
    needed = {*assignment.result.variables, *outside, *_sums_that_stay(value, one.value)}
    inside = variables_of(one.value)
    bound = {n for term in walk(one.value) if isinstance(term, Sum) for n in term.variables}
    free = tuple(v for v in all_variables(assignment) if v in inside and v not in bound)
    variables = tuple(v for v in free if v in needed)
    if one.over is not None:
        _check_over(one, variables, free)
        variables = one.over
        needed |= set(one.over)
    result = Access(tensor=one.workspace, variables=variables, location=one.location)
    format = csf(len(variables)) if one.format is None else one.format.off_chip
    _check_format(one, format, variables)
    declared = TensorDeclaration(name=one.workspace, format=format, location=one.location)
    left = _replaced(value, one.value, result, set(needed))
    tensors = (*assignment.tensors, declared)
    taken = tuple(name for name in free_variables(one.value) if name not in needed)
    part = one.value
    if taken and _joins_terms(part):  # else each of its terms would be summed on its own
        part = Sum(variables=taken, value=part)
    workspace = make_assignment(result, part, tensors, assignment.location)
    workspace = replace(workspace, semiring=assignment.semiring)
    return workspace, replace(assignment, value=left, tensors=tensors)


def _check_over(one: Precompute, needed: tuple[str, ...], inside: tuple[str, ...]) -> None:
    """The user's variables are all that the workspace needs, and none that the part has not."""
    assert one.over is not None
    fits = set(needed) <= set(one.over) <= set(inside) and len(set(one.over)) == len(one.over)
    if not fits:
        raise UserError(
            f"{one.workspace}({','.join(one.over)}) does not hold {print_expression(one.value)}",
            location=one.location,
            expected=f"the variables {', '.join(needed) or 'of a scalar'}, each once"
            + (f", and perhaps others of {', '.join(inside)}" if inside != needed else ""),
            given=", ".join(one.over) or "no variables",
        )


def _check_format(one: Precompute, format: Format, variables: tuple[str, ...]) -> None:
    if format.order != len(variables) or not format.plain:
        raise UserError(
            f"the format of {one.workspace} does not fit {one.workspace}({','.join(variables)})",
            location=one.location,
            expected=f"a format of {len(variables)} levels, one for each variable",
            given=str(format),
        )


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
            tensor=names.fresh("total"), variables=variables, location=assignment.location
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
