"""Types and shapes, wherever a graph has them; raises ``GraphError``."""

from __future__ import annotations

from t2s.core.expr import Expr
from t2s.core.types import MOST_LANES, Kind, Type
from t2s.graph.verify_expr import ExprScope, Subject, spell, verify_expr


def verify_extents(subject: Subject, shape: tuple[int, ...], what: str = "the shape") -> None:
    if any(extent < 1 for extent in shape):
        raise subject.error(
            f"{what} has an extent below 1", expected="extents of at least 1", given=str(shape)
        )


def verify_strong(subject: Subject, type: Type) -> None:
    if type.weak:
        raise subject.error(
            "the type is weak",
            expected="a type with a fixed width",
            given=spell(type),
            hint=f"Type.strengthened() gives {type}",
        )
    if type.lanes > MOST_LANES:
        raise subject.error(
            "the vector is too long",
            expected=f"at most {MOST_LANES} lanes",
            given=f"{type.lanes} lanes",
        )


def verify_scalar_type(subject: Subject, type: Type) -> None:
    verify_strong(subject, type)
    if type.lanes != 1:
        raise subject.error(
            "the type is a vector",
            expected=f"the type of one element, {type.scalar}",
            given=str(type),
            hint="vectors are loaded and stored as several contiguous elements",
        )


def verify_lanes(
    indices: tuple[Expr, ...], rank: int, type: Type, scope: ExprScope, what: str
) -> None:
    """Check the last index of an access whose value has a type; raises ``GraphError``."""
    index = indices[-1]
    verify_expr(index, scope, f"the last index of {what}")
    if len(indices) != rank:
        raise scope.subject.error(
            f"{what} has the wrong number of indices", expected=str(rank), given=str(len(indices))
        )
    if index.type.kind is not Kind.INT:
        raise scope.subject.error(
            f"the last index of {what} is a vector of the wrong type",
            expected="signed integers, of which -1 names no element",
            given=str(index.type),
            hint="insert a Cast",
        )
    if index.type.lanes != type.lanes:
        raise scope.subject.error(
            f"the last index of {what} has other lanes than the value",
            expected=f"{type.lanes} lanes, one for each lane of {type}",
            given=str(index.type),
            hint="an index of one lane accesses contiguous elements",
        )


def refuse_lanes(indices: tuple[Expr, ...], scope: ExprScope, what: str) -> None:
    """Refuse an access by a vector where the node is not a machine; raises ``GraphError``."""
    if indices and indices[-1].type.lanes > 1:
        raise scope.subject.error(
            f"{what} gathers or scatters: its last index is a vector",
            expected="a scalar integer; only machines access memory by a vector of indices",
            given=f"an index of type {indices[-1].type}",
            hint="make the node a machine, or access contiguous elements",
        )
