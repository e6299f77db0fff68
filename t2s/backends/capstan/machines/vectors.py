"""Vectorized expressions: one lane for each iteration of a firing."""

from __future__ import annotations

from collections.abc import Callable

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Apply,
    Cast,
    Expr,
    LaneNumbers,
    Local,
    ReduceLanes,
    Select,
    apply,
    select,
    spread,
)
from t2s.core.types import INT32, Type
from t2s.core.walk import children, walk
from t2s.patterns.ir import NOWHERE


def in_lanes(expr: Expr, lanes: int, type_of: Callable[[str], Type]) -> Expr:
    """The vectorized expression; ``type_of`` tells which locals are vectors."""
    names = {term.name for term in walk(expr) if isinstance(term, Local)}
    if not any(type_of(name).lanes > 1 for name in names):
        return spread(expr, lanes)
    wide = expr.type.with_lanes(lanes)
    match expr:
        case Local(name=name):
            return Local(name=name, type=wide)
        case Apply(operator=operator, operands=operands):
            return apply(operator, *(in_lanes(operand, lanes, type_of) for operand in operands))
        case Select(condition=condition, if_true=if_true, if_false=if_false):
            return Select(
                condition=in_lanes(condition, lanes, type_of),
                if_true=in_lanes(if_true, lanes, type_of),
                if_false=in_lanes(if_false, lanes, type_of),
                type=wide,
            )
        case Cast(value=value):
            return Cast(value=in_lanes(value, lanes, type_of), type=wide)
    raise InternalError(f"{type(expr).__name__} has no lanes")


def stages(expr: Expr) -> int:
    """The length of the longest chain of operations, each a pipeline stage; selects and copies are
    free.
    """
    inside = max((stages(child) for child in children(expr) if isinstance(child, Expr)), default=0)
    match expr:
        case Apply():
            return inside + 1
        case ReduceLanes(value=value):
            return inside + (value.type.lanes - 1).bit_length()
    return inside


def is_there(binder: Expr) -> Expr:
    """Whether an iteration is active, by lane."""
    return binder >= 0


def addresses(valid: Expr, index: Expr) -> Expr:
    """The index, -1 in idle lanes."""
    return select(valid, index, NOWHERE)


def counted_from(first: Expr, lanes: int) -> Expr:
    """``first``, ``first + 1``, ... by lane."""
    if lanes == 1:
        return first
    return spread(first, lanes) + LaneNumbers(type=INT32.with_lanes(lanes))
