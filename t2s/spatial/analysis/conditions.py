"""Path conditions: the static part decides whether a value moves, the rest only selects."""

from __future__ import annotations

from t2s.core.expr import Expr, Local, Read, apply, conjunction, conjuncts, index_names
from t2s.core.isl import is_affine
from t2s.core.isl_maps import condition
from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.spatial.ir import Kernel


def is_static(expr: Expr) -> bool:
    """Whether the expression depends on indices and parameters only, not on data."""
    return not any(isinstance(node, Read | Local) for node in walk(expr))


def static_conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """The parts of a path condition that hardware control can decide."""
    return tuple(part for part in conjuncts(condition) if is_static(part))


def placed_condition(kernel: Kernel, expr: Expr) -> Expr:
    """A condition over the domain's variables as one over the loops.

    Behind a schedule the variables are quotients and remainders of time; isl often knows a shorter
    way to say it.
    """
    placed = kernel.place(expr)
    vector = kernel.vector_loop
    lanes = vector is not None and vector.name in index_names(placed)
    if not kernel.members or lanes or not is_static(placed) or not is_affine(placed):
        return placed
    domain = kernel.domain_of_iterations
    other = condition(domain, domain.restricted(placed).points)
    if other is None:
        return placed
    return min(placed, other, key=lambda expr: sum(1 for _ in walk(expr)))


def any_of(left: Expr | None, right: Expr | None) -> Expr | None:
    """A static condition that holds where ``left`` or ``right`` does (``None``: always)."""
    sides = [conjunction(*static_conjuncts(side)) for side in (left, right)]
    if sides[0] is None or sides[1] is None:
        return None
    return sides[0] if sides[0] == sides[1] else apply(Op.OR, sides[0], sides[1])
