"""The type of a graph of several statements: one for all, in which each has the values of its own.

A statement alone is computed in numpy's type for what it reads, and a graph in that for all that
it reads.  In a graph of floats, bools would be counted where their sum is true or false, and
integers would not wrap around.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from t2s.core.errors import UserError
from t2s.core.ops import Op
from t2s.core.types import BOOL, Float, Int, Type
from t2s.core.walk import Term
from t2s.sparse_repr.concrete.fusion import ScheduledAssignment, StatementGroup
from t2s.sparse_repr.functions import Function
from t2s.sparse_repr.notation.ir import EXTREMES, Assignment, Combine, Negative, Sum, Unary
from t2s.sparse_repr.notation.types import value_type
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring

Kinds = Mapping[str, np.dtype[Any]]
"""Types of values, by tensor."""

_ROUNDED: Mapping[Type, Type] = MappingProxyType({Float(32): Float(64), Int(64): Float(64)})
"""Types of statements, each with one of a graph that only rounds their values in another way."""


def shared_type(group: StatementGroup, whole: Assignment, stored: Kinds) -> Type:
    """The type that a graph of several statements computes in.

    ``whole`` is what the graph computes, and ``stored`` has the types of the tensors that it reads.

    Raises ``UserError`` if a statement could have other values in it than alone.
    """
    shared = value_type(whole, [stored[access.tensor] for access in whole.reads])
    kinds = dict(stored)
    for statement in group.statements[:-1]:
        own = kinds[statement.name] = _kind_alone(statement, kinds)
        extreme = statement.assignment.semiring != PLUS_TIMES
        if extreme and not shared.is_float:
            raise _of_integers(statement, group, own)
        if own != shared.numpy and not _has_its_values(statement, own, shared):
            raise _of_other_type(statement, group, own, shared)
    own = _kind_alone(group.last, kinds)
    if own.kind != "f" and group.last.assignment.semiring != PLUS_TIMES:
        raise _of_integers(group.last, group, own)
    return shared


def _kind_alone(statement: ScheduledAssignment, kinds: Kinds) -> np.dtype[Any]:
    """The type of a statement in a graph of its own."""
    read = [kinds[access.tensor] for access in statement.assignment.reads]
    common = np.result_type(*read) if read else np.dtype(np.float64)
    if statement.assignment.semiring != PLUS_TIMES and common.kind != "f":
        return np.dtype(np.int64) if common.kind == "b" else common
    return value_type(statement.assignment, read).numpy


def _has_its_values(statement: ScheduledAssignment, own: np.dtype[Any], shared: Type) -> bool:
    """Whether a statement of a type has its values in that of the graph too."""
    if any(kind.numpy == own and other == shared for kind, other in _ROUNDED.items()):
        return True
    assignment = statement.assignment
    if not assignment.reads:  # a constant, whose readers have its type alone
        return False
    return not any(_depends_on_type(term, assignment.semiring, own) for term in assignment.terms)


def _depends_on_type(term: Term, semiring: Semiring, own: np.dtype[Any]) -> bool:
    """Whether a term of a type may be another value in a wider one."""
    match term:
        case Sum():
            return semiring.add not in EXTREMES
        case Combine(operator=operator):
            kept = (*EXTREMES, Op.MULTIPLY) if own == BOOL.numpy else EXTREMES
            return semiring.operator(operator) not in kept
        case Unary(function=function):
            return function is not Function.RELU
    return isinstance(term, Negative)


def _of_integers(
    extreme: ScheduledAssignment, group: StatementGroup, own: np.dtype[Any]
) -> UserError:
    return UserError(
        f"{extreme.name} is of integers, and its graph passes results on",
        location=extreme.assignment.location,
        expected="floating-point numbers, of which a row without elements has an extreme one too",
        given=f"{own}, and {_passed(group)} in the graph of {group.last.name}",
        hint=_hint([extreme.name, *extreme.reads], group),
    )


def _of_other_type(
    statement: ScheduledAssignment, group: StatementGroup, own: np.dtype[Any], shared: Type
) -> UserError:
    return UserError(
        f"{statement.name} is of {own}, and the graph that passes it on computes in {shared}",
        location=statement.assignment.location,
        expected="one type for all statements of a graph, as their values may be others in another",
        given=f"{_passed(group)} in the graph of {group.last.name}",
        hint=_hint([statement.name], group),
    )


def _passed(group: StatementGroup) -> str:
    return ", ".join(passing.tensor for passing in group.passed)


def _hint(names: Sequence[str], group: StatementGroup) -> str:
    """To store those of some tensors that the graph passes on, or a type for all statements."""
    stored = ", ".join(f'"{name}"' for name in names if group.way_of(name) is not None)
    return f"store({stored}), or type=Float(64)"
