"""Look up loops of a kernel, what varies along them, its conditions, and the form of its update."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Expr,
    Local,
    Read,
    conjunction,
    conjuncts,
    const,
    index_names,
    is_associative,
)
from t2s.core.intervals import linear_form
from t2s.core.isl import LoopDomain, is_affine
from t2s.core.isl_maps import Equality, condition, equalities, project
from t2s.core.location import SourceLocation
from t2s.core.ops import OPERATORS, Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite, walk
from t2s.spatial.directive import Directive
from t2s.spatial.ir import LoopExecution, SpatialKernel, SpatialLoop, SpatialProgram

_DONE = {
    LoopExecution.UNROLLED: "is unrolled",
    LoopExecution.VECTOR: "has become the lanes of vectors",
}


def find_loop(kernel: SpatialKernel, name: str, directive: Directive) -> SpatialLoop:
    """The loop of that name in the kernel, or a ``UserError`` that lists its loops."""
    loop = kernel.loop(name)
    if loop is None:
        loops = ", ".join(loop.name for loop in kernel.loops)
        raise UserError(
            f"{directive.text} on {kernel.name}: {kernel.name} has no loop {name}",
            location=directive.location,
            expected=f"one of its loops, outermost first: {loops}",
            given=name,
            hint="loops appear by split, tile and fuse, and in an isolated Func only if the "
            "function had them when it was isolated",
        )
    return loop


def find_serial(kernel: SpatialKernel, name: str, directive: Directive) -> SpatialLoop:
    """Like ``find_loop``, for a loop that has to be serial still."""
    loop = find_loop(kernel, name, directive)
    if loop.kind is not LoopExecution.SERIAL:
        raise UserError(
            f"{directive.text} on {kernel.name}: loop {name} {_DONE[loop.kind]} already",
            location=directive.location,
            expected="a loop that still runs in time",
            given=f"{name}: {loop.reason}",
            hint="transform loops before unroll and vload",
        )
    check_not_time(kernel, loop, directive)
    return loop


def check_not_time(kernel: SpatialKernel, loop: SpatialLoop, directive: Directive) -> None:
    """Refuse a directive on the time loop of a schedule."""
    if kernel.timed == loop.name:
        raise UserError(
            f"{directive.text} on {kernel.name}: {loop.name} is the time of a schedule",
            location=directive.location,
            expected="another loop",
            given=f"{loop.name}: {loop.reason}",
            hint="transform loops before space_time_transform",
        )


def constant_bounds(
    kernel: SpatialKernel, loop: SpatialLoop, directive: Directive
) -> tuple[int, int]:
    """(minimum, extent) of a loop that has to have constant bounds."""
    if loop.constant is None:
        depends = ", ".join(sorted(index_names(loop.minimum) | index_names(loop.extent)))
        raise UserError(
            f"{directive.text} on {kernel.name}: loop {loop.name} has no constant bounds",
            location=directive.location,
            expected="a loop whose minimum and extent are numbers",
            given=f"bounds of {loop.name} depend on {depends}",
            hint="hardware has a fixed size; apply the directive to a loop of fixed bounds",
        )
    return loop.constant


def same_loop(loops: Iterable[SpatialLoop], wanted: SpatialLoop) -> SpatialLoop | None:
    """The loop that iterates over the same thing: it has the same definition.

    Loops of one iteration may have equal definitions; of these the one of the same name.
    """
    alike = [loop for loop in loops if loop.definition == wanted.definition]
    return next((loop for loop in alike if loop.name == wanted.name), alike[0] if alike else None)


def counterpart(
    partner: SpatialKernel, kernel: SpatialKernel, loop: SpatialLoop, directive: Directive
) -> SpatialLoop:
    """The loop of ``partner``, which sends to or takes from ``kernel``, that iterates alike.

    Loops are the same if they have the same definition.  Raises ``UserError`` if there is none.
    """
    match = same_loop(partner.loops, loop)
    if match is None:
        raise UserError(
            f"{directive.text} on {kernel.name}: {partner.name} has no loop like {loop.name}",
            location=directive.location,
            expected=f"{partner.name} with the loops of {kernel.name}: {_loop_names(kernel)}",
            given=f"{partner.name} with {_loop_names(partner)}",
            notes=((partner.location, f"{partner.name} was isolated here"),),
            hint=f"split and fuse the loops of {kernel.name} before isolating from it, or those of "
            f"{partner.name} in the same way",
        )
    return match


def _loop_names(kernel: SpatialKernel) -> str:
    return ", ".join(loop.name for loop in kernel.loops)


def check_names_free(program: SpatialProgram, name: str, directive: Directive) -> None:
    """Check that no new loop or function has the name of an input, a Param or a function."""
    temporal = program.temporal
    taken: dict[str, tuple[str, SourceLocation]] = {
        **{kernel.name: ("Func", kernel.location) for kernel in program.kernels},
        **{function.name: ("Func", function.location) for function in temporal.functions},
        **{array.name: ("ImageParam", array.location) for array in temporal.inputs},
        **{scalar.name: ("Param", scalar.location) for scalar in temporal.parameters},
    }
    for what, names in (("Var", directive.new_loops), ("Func", directive.new_functions)):
        for new in names:
            if new in taken:
                kind, location = taken[new]
                raise UserError(
                    f"{directive.text} on {name}: two different objects of the design are named "
                    f"{new}",
                    location=directive.location,
                    expected=f"a {what} with a name of its own",
                    given=f"{what} {new}",
                    notes=((location, f"{kind} {new} comes from here"),),
                    hint=f"give the {what} another name",
                )


def check_new_names(
    kernel: SpatialKernel, new: tuple[str, ...], replaced: tuple[str, ...], directive: Directive
) -> None:
    """Check that new loop names do not collide with the remaining loops."""
    staying = {loop.name for loop in kernel.loops} - set(replaced)
    for name in new:
        if name in staying:
            raise UserError(
                f"{directive.text} on {kernel.name}: there is already a loop {name}",
                location=directive.location,
                expected="a new Var for each new loop",
                given=name,
            )


def consumers(program: SpatialProgram, name: str) -> Iterator[SpatialKernel]:
    for kernel in program.kernels:
        if any(operand.producer == name for operand in kernel.operands):
            yield kernel
            yield from consumers(program, kernel.name)


def varies(kernel: SpatialKernel, indices: tuple[Expr, ...], loop: str) -> bool:
    """Whether subscripts over the domain take different values along a loop of the kernel."""
    placed = [kernel.place(index) for index in indices]
    forms = [linear_form(index) for index in placed]
    factors = [0 if form is None else form[0].get(loop, 0) for form in forms]
    if None not in forms and not any(factors):
        return False
    extents = {
        other.name: 0 if other.constant is None else other.constant[1] for other in kernel.loops
    }
    if any(factors) and all(extents.values()) and extents.get(loop, 0) > 1:
        return True  # all iterations of a box exist
    return LoopDomain([other.interval for other in kernel.loops]).varies_along(placed, loop)


def loops_without(
    kernel: SpatialKernel, access: Iterable[Expr], execution: LoopExecution
) -> list[str]:
    """The loops of this execution kind along which an access stays the same."""
    loops, indices = kernel.kind(execution), tuple(access)
    return [loop.name for loop in loops if not varies(kernel, indices, loop.name)]


def check_in_all_iterations(
    kernel: SpatialKernel, loop: SpatialLoop, directive: Directive, expected: str
) -> None:
    """Check that the set of iterations, padded ones included, does not depend on a loop."""
    if kernel.active is not None and loop.name in index_names(kernel.active):
        raise UserError(
            f"{directive.text} on {kernel.name}: which iterations there are depends on {loop.name}",
            location=directive.location,
            expected=expected,
            given=f"only the iterations with {show(kernel.active)}",
            hint="split by factors that divide, so that nothing is padded, or transform other "
            "loops",
        )


# Conditions: which of them hardware can decide, and the loops that they pin.
#
# The static part of a path condition decides whether a value moves; the rest only selects.  A loop
# is *pinned* if a condition holds at only one of its iterations.  A value that is needed where ``k
# == 0`` is not sent for every ``k``, and the results of ``k == j`` come from the diagonal, so the
# kernel at the other end of such a stream has no loop ``k``.


def is_static(expr: Expr) -> bool:
    """Whether the expression depends on indices and parameters only, not on data."""
    return not any(isinstance(node, Read | Local) for node in walk(expr))


def static_conjuncts(condition: Expr | None) -> tuple[Expr, ...]:
    """The parts of a path condition that hardware control can decide."""
    return tuple(part for part in conjuncts(condition) if is_static(part))


def placed_condition(kernel: SpatialKernel, expr: Expr) -> Expr:
    """Rewrite a condition over the domain's variables as one over the loops.

    After a schedule the variables are quotients and remainders of time, and isl often finds a
    shorter form.
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
    return sides[0] if sides[0] == sides[1] else sides[0] | sides[1]


_NESTED = (LoopExecution.UNROLLED, LoopExecution.SERIAL)  # outermost first


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A kernel without the loops that a condition pins.

    ``values`` gives the pinned loops over the others.  With ``complete``, the iterations of
    ``kernel`` are exactly those where the condition holds; otherwise it still has to be checked.
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
    """The loop, with constant bounds, shrunk to the iterations that are reached."""
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
    """Whether an equation defines a loop as an integer expression of loops outside of it."""
    others = [other for other, factor in row.factors.items() if factor and other != name]
    return abs(row.factor(name)) == 1 and all(other in outer for other in others)


# Recognizing the form of an update: ``previous (op) term``.

PREVIOUS = "<previous>"  # not an identifier, so it cannot collide with a user's name


def mentions_previous(expr: Expr) -> bool:
    """Whether the value depends on the previous step of the reduction."""
    return any(isinstance(node, Local) and node.name == PREVIOUS for node in walk(expr))


def readable_update(function: str, value: Expr) -> Expr:
    """The value with the partial result under the name of its function."""

    def rule(node: Term) -> Term | None:
        if isinstance(node, Local) and node.name == PREVIOUS:
            return Local(name=function, type=node.type)
        return None

    return rewrite(value, rule)


def reduction_term(value: Expr) -> tuple[Op, Expr] | None:
    """``(op, term)`` if the value is ``previous op term`` (or ``term op previous``).

    The operator is associative and the term free of ``previous``; ``None`` for any other form.
    """
    match value:
        case Apply(operator=operator, operands=(left, right)) if is_associative(operator):
            if _is_previous(left) and not mentions_previous(right):
                return operator, right
            if (
                OPERATORS[operator].commutative
                and _is_previous(right)
                and not mentions_previous(left)
            ):
                return operator, left
    return None


def reduction_operator(value: Expr) -> Op | None:
    """The associative operator of a reduction, or ``None``."""
    term = reduction_term(value)
    return term[0] if term is not None else None


def _is_previous(expr: Expr) -> bool:
    return isinstance(expr, Local) and expr.name == PREVIOUS
