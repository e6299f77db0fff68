"""Conditions: which of them hardware can decide, and the loops that they pin.

The static part of a path condition decides whether a value moves, the rest only selects.  A loop is
*pinned* where a condition holds at one of its iterations only:
A value that is needed where ``k == 0`` is not sent for every ``k``, and the results of ``k == j``
come from the diagonal: the kernel at the other end of such a stream has no loop ``k``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2s.core.expr import Expr, Local, Read, apply, conjunction, conjuncts, const, index_names
from t2s.core.isl import is_affine
from t2s.core.isl_maps import Equality, condition, equalities, project
from t2s.core.ops import Op
from t2s.core.walk import walk
from t2s.spatial.ir import SpatialKernel
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop


def is_static(expr: Expr) -> bool:
    """Whether the expression depends on indices and parameters only, not on data."""
    return not any(isinstance(node, Read | Local) for node in walk(expr))


def static_conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """The parts of a path condition that hardware control can decide."""
    return tuple(part for part in conjuncts(condition) if is_static(part))


def placed_condition(kernel: SpatialKernel, expr: Expr) -> Expr:
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


_NESTED = (LoopExecution.UNROLLED, LoopExecution.SERIAL)  # outermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A kernel without the loops that a condition pins.

    ``values`` gives the pinned loops over the others.  ``complete`` says that the iterations of
    ``kernel`` are just those where the condition holds; otherwise it still has to be checked.
    """

    kernel: SpatialKernel
    values: Mapping[str, Expr]
    complete: bool


def pin(kernel: SpatialKernel, where: Expr | None) -> Pinned:
    """Drop the loops of a kernel that a condition over its domain's variables pins."""
    unchanged = Pinned(kernel=kernel, values={}, complete=where is None)
    if where is None:
        return unchanged
    placed = kernel.first_lane(kernel.place(where))
    if not is_affine(placed):
        return unchanged
    held = kernel.domain_of_iterations.restricted(placed)
    if held.is_empty():
        return unchanged
    values = _solved(kernel, equalities(held))
    left = kernel.pinned(values)
    stepped = [loop for loop in left.loops if loop.kind is not LoopExecution.VECTOR]
    reached = project(held, [loop.name for loop in stepped])
    loops = tuple(_tightened(loop, stepped, reached) for loop in left.loops)
    left = replace(left, loops=loops, active=None)
    active = condition(left.domain_of_iterations, reached)
    return Pinned(kernel=replace(left, active=active), values=values, complete=True)


def _tightened(loop: SpatialLoop, stepped: Sequence[SpatialLoop], reached: Any) -> SpatialLoop:
    """A loop of constant bounds over just what is reached."""
    if loop not in stepped or loop.constant is None:
        return loop
    at = list(stepped).index(loop)
    low = int(reached.dim_min_val(at).to_python())
    high = int(reached.dim_max_val(at).to_python())
    return replace(loop, minimum=const(low), extent=const(high - low + 1))


def _solved(kernel: SpatialKernel, rows: Sequence[Equality]) -> dict[str, Expr]:
    """Solve equations for loops over those outside of them, the innermost loops first.

    Space is outside of time: a PE is fixed, and the time in it is not.
    """
    outer = [loop.name for kind in _NESTED for loop in kernel.kind(kind)]
    solved: dict[str, Equality] = {}
    left = list(rows)
    while outer:
        name = outer.pop()
        row = next((row for row in left if _gives(row, name, outer)), None)
        if row is None:
            continue
        left = [other.without(name, row) for other in left if other is not row]
        solved = {known: other.without(name, row) for known, other in solved.items()}
        solved[name] = row
    return {name: row.solved_for(name) for name, row in solved.items()}


def _gives(row: Equality, name: str, outer: Sequence[str]) -> bool:
    """Whether an equation gives a loop as an integer expression of loops outside of it."""
    others = [other for other, factor in row.factors.items() if factor and other != name]
    return abs(row.factor(name)) == 1 and all(other in outer for other in others)
