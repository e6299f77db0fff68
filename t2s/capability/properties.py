"""Properties of tensors: declared by users, asked for by functions, carried to results by rules.

They are checked on the values when a plan runs, unless the user vouches for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.sparse_repr.notation.ir import (
    ADDITIVE,
    Access,
    Combine,
    Expression,
    Negative,
    Number,
    Sum,
)
from t2s.sparse_repr.notation.tags import SYMMETRIC

Array = np.ndarray[Any, Any]


def symmetric_in(value: Expression, declared: Mapping[str, tuple[str, ...]]) -> set[frozenset[str]]:
    """The pairs of variables that may be exchanged in an expression without changing it.

    Sums, differences and scaled values of symmetric matrices at the same variables are symmetric,
    and so is a transposed one.
    """
    match value:
        case Access(tensor=name, variables=variables):
            good = SYMMETRIC in declared.get(name, ()) and len(set(variables)) == 2
            return {frozenset(variables)} if good else set()
        case Negative(value=inner) | Sum(value=inner):
            return symmetric_in(inner, declared)
        case Combine(operator=operator, left=left, right=right) if operator in ADDITIVE:
            return symmetric_in(left, declared) & symmetric_in(right, declared)
        case Combine(operator=Op.MULTIPLY, left=left, right=right):
            if _is_scalar(left):
                return symmetric_in(right, declared)
            if _is_scalar(right):
                return symmetric_in(left, declared)
    return set()


def _is_scalar(value: Expression) -> bool:
    return isinstance(value, Number) or (isinstance(value, Access) and not value.variables)


def check_property(
    name: str, property: str, values: Array, location: SourceLocation | None
) -> None:
    """Raise ``UserError`` with the first pair of indices at which a tensor is not what is said."""
    if property != SYMMETRIC:
        raise UserError(f"there is no property {property!r}", location=location, expected=SYMMETRIC)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise UserError(
            f"{name} is not symmetric, which it is declared to be",
            location=location,
            expected="a square matrix",
            given=f"shape {' x '.join(map(str, values.shape)) or 'of a scalar'}",
        )
    with np.errstate(all="ignore"):
        wrong = np.argwhere((values != values.T) & ((values == values) | (values.T == values.T)))
    if len(wrong):
        row, column = map(int, wrong[0])
        raise UserError(
            f"{name} is not symmetric, which it is declared to be",
            location=location,
            expected=f"{name}[{row}, {column}] equal to {name}[{column}, {row}]",
            given=f"{values[row, column]} and {values[column, row]}",
        )
