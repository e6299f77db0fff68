"""Path conditions: the static part decides whether a value moves, the rest only selects."""

from __future__ import annotations

from t2s.core.expr import Expr, Local, Read, apply, conjunction, conjuncts
from t2s.core.ops import Op
from t2s.core.walk import walk


def is_static(expr: Expr) -> bool:
    """Whether the expression depends on indices and parameters only, not on data."""
    return not any(isinstance(node, Read | Local) for node in walk(expr))


def static_conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """The parts of a path condition that hardware control can decide."""
    return tuple(part for part in conjuncts(condition) if is_static(part))


def any_of(left: Expr | None, right: Expr | None) -> Expr | None:
    """A static condition that holds where ``left`` or ``right`` does (``None``: always)."""
    sides = [conjunction(*static_conjuncts(side)) for side in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0] if sides[0] == sides[1] else apply(Op.OR, sides[0], sides[1])
