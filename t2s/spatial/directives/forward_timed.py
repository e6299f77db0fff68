"""``forward`` in an array with a schedule: operands move along the array by the schedule.

An operand such as ``x[i + q]`` is the same for all iterations along some direction.  Where the
array has a neighbour in that direction that used the value at least one cycle before, it comes from
there; only the other iterations take it from the producer.  The direction is found by trying the
neighbours along the loop, nearest in time first; isl proves that the value is the same everywhere.

Before -> after, for ``{p: i, t: 2*i + q}`` and the operand ``w[q]``, which is the same for p - 1 at
t - 2::

    forward(w_loader, p)    every PE receives w from w_loader   ->   PE 0 receives w, and every PE
                                                                     passes it on, 2 cycles later
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.affine import tidy
from t2s.core.errors import InternalError, UserError
from t2s.core.expr import (
    Const,
    Expr,
    Index,
    Local,
    Read,
    Select,
    apply,
    conjunction,
    const,
    substitute,
)
from t2s.core.isl import LoopDomain
from t2s.core.isl_maps import condition, translated
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.spatial.analysis.pins import pin
from t2s.spatial.directive import Forward
from t2s.spatial.ir import Kernel, Loop, LoopKind, SpatialProgram
from t2s.spatial.operands import Operand
from t2s.spatial.work import Member, Recurrences

MOST_CYCLES = 64
"""Longest time between two neighbours that use the same value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reuse:
    """The same value is used ``cycles`` before by the PE that is ``hop`` before."""

    hop: int
    cycles: int


def forward_timed(
    program: SpatialProgram, kernel: Kernel, operand: Operand, loop: Loop, directive: Forward
) -> SpatialProgram:
    """Make the operand a member that moves along ``loop``."""
    reuse = _find_reuse(kernel, operand, loop)
    if reuse is None:
        raise _refusal(kernel, operand, loop, directive)
    moved = {loop.name: reuse.hop, kernel.timed or "": reuse.cycles}
    stepped = [x for x in kernel.loops if x.kind is not LoopKind.VECTOR]
    domain = _needed(kernel, operand)
    before = translated(domain.points, [moved.get(x.name, 0) for x in stepped])
    has_neighbour = condition(domain, before.intersect(domain.points))
    passed = None if has_neighbour is None else tidy(kernel.over_domain(has_neighbour))
    entry = apply(Op.NOT, passed) if passed is not None else None
    member = _member(kernel, operand, moved, passed)
    changed = replace(operand, condition=conjunction(operand.condition, entry))
    program = _narrow_producers(program, kernel, changed)
    pinned = pin(kernel, changed.condition)
    changed = replace(changed, pinned=(*changed.pinned, *pinned.values))
    kernel = _reading(kernel.with_operand(operand, changed), operand, member)
    return program.with_kernel(kernel)


def _needed(kernel: Kernel, operand: Operand) -> LoopDomain:
    domain = kernel.domain_of_iterations
    if operand.condition is None:
        return domain
    return domain.restricted(kernel.place(operand.condition))


def _find_reuse(kernel: Kernel, operand: Operand, loop: Loop) -> _Reuse | None:
    domain = _needed(kernel, operand)
    placed = [kernel.place(index) for index in operand.access]
    for cycles in range(1, MOST_CYCLES + 1):
        for hop in (1, -1):
            back = _back({loop.name: hop, kernel.timed or "": cycles})
            differences = (apply(Op.SUBTRACT, e, substitute(e, back)) for e in placed)
            if all(_is_zero(domain, tidy(difference)) for difference in differences):
                return _Reuse(hop=hop, cycles=cycles)
    return None


def _back(moved: dict[str, int]) -> dict[str, Expr]:
    """The loops that a value moves along, before it has moved."""
    return {
        name: tidy(apply(Op.SUBTRACT, Index(name=name), const(by))) for name, by in moved.items()
    }


def _is_zero(domain: LoopDomain, difference: Expr) -> bool:
    if isinstance(difference, Const):
        return difference.value == 0
    return domain.range_of(difference) == (0, 0)


def _member(kernel: Kernel, operand: Operand, moved: dict[str, int], passed: Expr | None) -> Member:
    """``X(v) = X(v - d)`` where there is a neighbour, else the operand."""
    back = _back(moved)
    arguments = tuple(dimension.name for dimension in kernel.domain)
    variables = dict(kernel.variables)
    source = tuple(
        tidy(kernel.over_domain(substitute(variables[name], back))) for name in arguments
    )
    taken = [member.name for member in kernel.members] + [operand.source]
    name = NameSupply(taken).fresh(f"{operand.source}_moving")
    entering = Local(name=operand.name, type=operand.type)
    neighbour = Read(source=name, indices=source, type=operand.type, location=kernel.location)
    value: Expr = neighbour
    if passed is not None:
        value = Select(condition=passed, if_true=neighbour, if_false=entering, type=operand.type)
    return Member(
        name=name,
        type=operand.type,
        arguments=arguments,
        value=value,
        lanes=kernel.vector_loop is not None,
        location=kernel.location,
    )


def _reading(kernel: Kernel, operand: Operand, member: Member) -> Kernel:
    """The kernel with the moving value in place of the operand."""
    arguments = tuple(Index(name=name) for name in member.arguments)
    moving = Read(source=member.name, indices=arguments, type=member.type, location=kernel.location)

    def rule(node: Term) -> Term | None:
        return moving if isinstance(node, Local) and node.name == operand.name else None

    changed = kernel.rewritten(lambda expr: rewrite(expr, rule))
    if not isinstance(changed.work, Recurrences):
        raise InternalError(f"{kernel.name} has no members")
    return replace(changed, work=replace(changed.work, members=(member, *changed.work.members)))


def _narrow_producers(program: SpatialProgram, kernel: Kernel, operand: Operand) -> SpatialProgram:
    """All kernels that send or pass on the operand do so for the entering values only."""
    pending = [operand.producer]
    while pending:
        producer = program.kernel(pending.pop())
        pending += [upstream.producer for upstream in producer.operands]
        pinned = pin(producer, operand.condition)
        narrowed = pinned.kernel
        if not pinned.complete:
            both = conjunction(narrowed.condition, operand.condition)
            narrowed = replace(narrowed, condition=both)
        program = program.with_kernel(narrowed)
    return program


def _refusal(kernel: Kernel, operand: Operand, loop: Loop, directive: Forward) -> UserError:
    placed = ", ".join(show(kernel.place(index)) for index in operand.access)
    return UserError(
        f"{directive.text} on {kernel.name}: no neighbour along {loop.name} has used the value of "
        f"{operand.source} before",
        location=directive.location,
        expected=f"a PE next to it along {loop.name} that needs the same value 1 to {MOST_CYCLES} "
        "cycles earlier",
        given=f"{operand.source}[{placed}]",
        hint="a value that all PEs need at the same time comes from the producer; choose a "
        "schedule in which it moves",
    )
