"""The format of an intermediate for which nobody says one.

It has the pattern of an operand if it is zero wherever that stores nothing, as a product with a
mask is, perhaps repeated along further variables; all elements are stored otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from t2s.core.walk import Term, rewrite
from t2s.sparse_repr.formats import Format, Part, dense
from t2s.sparse_repr.levels import Dense
from t2s.sparse_repr.notation.ir import Access, Expression, TensorDeclaration, accesses
from t2s.sparse_repr.notation.support import Rest, elsewhere

_MARK = "*"
"""A variable that no user can name."""


def usual_format(
    result: Access, value: Expression, known: Mapping[str, TensorDeclaration]
) -> tuple[Format, str]:
    """The format of a result, and the tensor whose pattern it has; "" if it is stored densely."""
    masks = [
        access
        for access in dict.fromkeys(accesses(value))
        if set(access.variables) <= set(result.variables)
        and len(set(access.variables)) == len(access.variables)
        and is_sparse(known[access.tensor].format)
        and known[access.tensor].format.grid.plain
    ]
    masks.sort(key=lambda access: -len(access.variables))
    for mask in masks:
        same = [other for other in masks if set(other.variables) == set(mask.variables)]
        if _is_zero_without(value, same):
            return _like(result, mask, known[mask.tensor].format.grid), mask.tensor
    return dense(len(result.variables)), ""


def _like(result: Access, mask: Access, format: Format) -> Format:
    """The format of a mask for a result that may have more variables, along which it is repeated.

    Those are dense levels around the levels of the mask if they come first in the result, and
    inside of them otherwise.
    """
    more = [name for name in result.variables if name not in mask.variables]
    levels = [mask.variables[part.mode] for part in format.parts]
    outside = set(result.variables[: len(more)]) == set(more)
    names = [*more, *levels] if outside else [*levels, *more]
    around, inside = (len(more), 0) if outside else (0, len(more))
    parts = tuple(Part(mode=result.variables.index(name)) for name in names)
    every = ((Dense(),) * around, format.levels, (Dense(),) * inside)
    return replace(format, levels=tuple(level for group in every for level in group), parts=parts)


def is_sparse(format: Format) -> bool:
    """Whether a format may leave out elements."""
    return not all(level.full for level in format.levels)


def _is_zero_without(value: Expression, masks: list[Access]) -> bool:
    """Whether an expression is zero where the masks store nothing, whatever the others are."""

    def mark(term: Term) -> Term | None:
        if isinstance(term, Access) and term in masks:
            return replace(term, variables=(*term.variables, _MARK))
        return None

    return elsewhere(rewrite(value, mark), _MARK) is Rest.ZERO
