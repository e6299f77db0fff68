"""Sums inside of other terms: each becomes an assignment to a workspace before it.

``y(i) = max(sum(k, A(i,k)), 0)`` is ``total(i) = sum(k, A(i,k)); y(i) = max(total(i), 0)``.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.names import NameSupply
from t2s.core.walk import Term, rebuild
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
    is_finite,
)


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
            finite=is_finite(inner),
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
