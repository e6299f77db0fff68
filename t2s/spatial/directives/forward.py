"""``forward``: an operand enters at the boundary PEs and is passed from PE to PE.

Before -> after, for PEs ``jj`` of C that all need ``A[i, k]``::

    forward(A_feeder, jj)    A_feeder: for jj: send to C[jj]   ->   A_feeder: send to C[0]
                                                                    C[jj]: receive from C[jj-1]

The loop disappears from all producers of the operand (dependence localization, T2S-Tensor §IV.A).

**In an array with a schedule** operands move along the array by it.

An operand such as ``x[i + q]`` is the same for all iterations along some direction.  Where the
array has a neighbor in that direction that used the value at least one cycle before, it comes from
there; only the other iterations take it from the producer.  The direction is found by trying the
neighbors along the loop, nearest in time first; isl proves that the value is the same everywhere.

Before -> after, for ``{p: i, t: 2*i + q}`` and the operand ``w[q]``, which is the same for p - 1 at
t - 2::

    forward(w_loader, p)    every PE receives w from w_loader   ->   PE 0 receives w, and every PE
                                                                     passes it on, 2 cycles later
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from t2s.core.affine import tidy
from t2s.core.errors import InternalError, UserError
from t2s.core.expr import (
    Const,
    Expr,
    Index,
    Local,
    Read,
    Select,
    conjunction,
    equals,
    index_names,
    substitute,
)
from t2s.core.isl import LoopDomain
from t2s.core.isl_maps import condition, project, translated
from t2s.core.names import NameSupply
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.spatial.analysis.lookup import (
    counterpart,
    find_loop,
    loops_without,
    pin,
    varies,
)
from t2s.spatial.directive import Directive
from t2s.spatial.directives.host import check_operand_on_device
from t2s.spatial.ir import (
    ForwardHop,
    KernelOperand,
    LoopExecution,
    Member,
    NeighborHop,
    Recurrences,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward(Directive):
    """``operand`` enters at the boundary PEs of ``loop`` and is passed on from PE to PE.

    ``capacity`` is the depth of the channels between the PEs (``None``: the compiler's).
    """

    operand: str
    loop: str
    capacity: int | None


def forward(program: SpatialProgram, name: str, directive: Forward) -> SpatialProgram:
    """Record the hop on the operand and drop the loop from its producers."""
    kernel = program.kernel(name)
    operand = _find(kernel, directive)
    check_operand_on_device(program, kernel, operand, directive)
    loop = find_loop(kernel, directive.loop, directive)
    if loop.kind is not LoopExecution.UNROLLED:
        raise UserError(
            f"{directive.text} on {name}: loop {loop.name} is not unrolled",
            location=directive.location,
            expected="an unrolled loop: values are passed between PEs",
            given=f"{loop.name} runs in time",
            hint=f"write unroll({loop.name}) first",
        )
    if loop.name in (*operand.forwards, *(hop.loop for hop in operand.neighbors)):
        raise UserError(
            f"{directive.text} on {name}: {operand.source} is already passed along {loop.name}",
            location=directive.location,
            expected="one forward of an operand along each loop",
        )
    if kernel.timed is not None:
        return forward_timed(program, kernel, operand, loop, directive)
    _check_start(kernel, operand, directive)
    _check_invariant(kernel, operand, directive)
    if operand.neighbors or not _takes_the_same(kernel, loop):
        return _to_neighbors(program, kernel, operand, loop, directive)
    hop = ForwardHop(loop=loop.name, capacity=directive.capacity)
    passed = replace(operand, hops=(*operand.hops, hop))
    program = program.with_kernel(kernel.with_operand(operand, passed))
    if operand.taken is not None:
        return program
    return drop_upstream(program, kernel, operand.producer, loop, directive)


def drop_upstream(
    program: SpatialProgram,
    kernel: SpatialKernel,
    name: str,
    loop: SpatialLoop,
    directive: Directive,
) -> SpatialProgram:
    """Drop a loop of ``kernel`` from a producer and from everything that feeds that."""
    producer = program.kernel(name)
    dropped = counterpart(producer, kernel, loop, directive)
    program = program.with_kernel(_without(producer, dropped))
    for operand in producer.operands:
        if dropped.name not in operand.removed and operand.taken is None:
            program = drop_upstream(program, kernel, operand.producer, loop, directive)
    return program


def _without(kernel: SpatialKernel, loop: SpatialLoop) -> SpatialKernel:
    """The kernel without a loop, active wherever some iteration of the loop was."""
    narrowed = kernel.without(frozenset({loop.name}))
    if kernel.active is None:
        return narrowed
    nest = replace(narrowed, active=None).domain_of_iterations
    held = project(kernel.domain_of_iterations, [each.name for each in nest.intervals])
    return replace(narrowed, active=condition(nest, held))


def _find(kernel: SpatialKernel, directive: Forward) -> KernelOperand:
    wanted = directive.operand
    matches = [o for o in kernel.operands if wanted in (o.producer, o.source)]
    if len(matches) == 1:
        return matches[0]
    choices = ", ".join(sorted({operand.producer for operand in kernel.operands})) or "nothing yet"
    if not matches:
        raise UserError(
            f"{directive.text} on {kernel.name}: {wanted} does not feed {kernel.name}",
            location=directive.location,
            expected=f"a producer of {kernel.name}: {choices}",
            given=wanted,
            hint=f"isolate the operand first, as in {kernel.name}.isolate_producer(A, A_feeder)",
        )
    raise UserError(
        f"{directive.text} on {kernel.name}: {wanted} feeds {kernel.name} {len(matches)} times",
        location=directive.location,
        expected=f"one producer: {choices}",
    )


def _check_start(kernel: SpatialKernel, operand: KernelOperand, directive: Forward) -> None:
    """Refuse to forward a value needed only at the start of a reduction: it goes to a single PE."""
    loop = directive.loop
    if operand.at_start and loop in {reduction.name for reduction in kernel.reduction_loops}:
        raise UserError(
            f"{directive.text} on {kernel.name}: {operand.source} is needed at the start of the "
            f"reduction only, which {loop} is a part of",
            location=directive.location,
            expected="a loop that is not a reduction",
            given=f"{operand.source} goes to the first PE along {loop} and ends there",
            hint="it needs no forwarding along that loop",
        )


def _takes_the_same(kernel: SpatialKernel, loop: SpatialLoop) -> bool:
    """Whether the PEs exist all along a loop and have the same iterations."""
    bounds = [bound for other in kernel.loops for bound in (other.minimum, other.extent)]
    if kernel.active is None:
        return not any(loop.name in index_names(bound) for bound in bounds)
    domain = kernel.domain_of_iterations
    by = [int(other is loop) for other in kernel.loops if other.kind is not LoopExecution.VECTOR]
    index, last = Index(name=loop.name), loop.last - 1
    before = domain.restricted(index <= last)
    after = domain.restricted(index > loop.minimum)
    return bool(translated(before.points, by).is_equal(after.points))


def _to_neighbors(
    program: SpatialProgram,
    kernel: SpatialKernel,
    operand: KernelOperand,
    loop: SpatialLoop,
    directive: Forward,
) -> SpatialProgram:
    """Pass values on to the neighbors that need them; other PEs get them from the producer.

    Both neighbors have the same loops in time, so tokens never overtake one another.  They travel
    in the direction with fewer entry PEs.
    """
    _check_neighbors(kernel, operand, loop, directive)
    starting = list(kernel.reduction_loops) if operand.at_start else []
    starting += [x for x in kernel.loops if x.name in operand.forwards]
    domain = _needed(kernel, operand)
    domain = domain.restricted(*(equals(Index(name=x.name), x.minimum) for x in starting))
    _, step = min(
        ((_entering_pes(kernel, domain, loop, step), step) for step in (1, -1)),
        key=lambda found: found[0],
    )
    arriving, leaving = (_neighbors(kernel, domain, loop, by) for by in (step, -step))
    arrives, leaves = condition(domain, arriving), condition(domain, leaving)
    if arriving.is_empty():
        return program
    if arrives is None or leaves is None:
        raise InternalError(f"{operand.source} enters nowhere along {loop.name}")
    hop = NeighborHop(
        loop=loop.name,
        step=step,
        needed=operand.condition,
        arrives=tidy(kernel.over_domain(arrives)),
        leaves=tidy(kernel.over_domain(leaves)),
        capacity=directive.capacity,
    )
    changed = replace(operand, neighbors=(*operand.neighbors, hop))
    program, changed = _entering(program, kernel, changed, hop.arrives)
    return program.with_kernel(kernel.with_operand(operand, changed))


def _entering(
    program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand, passed: Expr | None
) -> tuple[SpatialProgram, KernelOperand]:
    """The operand restricted to the iterations in which it still comes from its producers.

    Neighbors pass it on where ``passed`` holds.
    """
    entry = None if passed is None else ~passed
    operand = replace(operand, condition=conjunction(operand.condition, entry))
    program = _narrow_producers(program, kernel, operand)
    pinned = pin(kernel, operand.condition)
    return program, replace(operand, pinned=(*operand.pinned, *pinned.values))


def _neighbors(kernel: SpatialKernel, domain: LoopDomain, loop: SpatialLoop, step: int) -> Any:
    """The iterations (an isl set) whose neighbor, ``step`` before along a loop, exists."""
    stepped = [other for other in kernel.loops if other.kind is not LoopExecution.VECTOR]
    by = [step if other is loop else 0 for other in stepped]
    return translated(domain.points, by).intersect(domain.points)


def _entering_pes(kernel: SpatialKernel, domain: LoopDomain, loop: SpatialLoop, step: int) -> int:
    """The number of PEs at which values enter that go from PE to PE by ``step``."""
    entering = domain.points.subtract(_neighbors(kernel, domain, loop, step))
    place = [Index(name=other.name) for other in kernel.kind(LoopExecution.UNROLLED)]
    places = domain.image(place).intersect_domain(entering).range()
    return int(places.count_val().to_python())


def _check_neighbors(
    kernel: SpatialKernel, operand: KernelOperand, loop: SpatialLoop, directive: Forward
) -> None:
    """Check that all PEs need a value in the same iteration, and only from the producer."""
    late = [x.name for x in kernel.reduction_loops if loop.name in index_names(x.minimum)]
    if operand.taken is None and not (operand.at_start and late):
        return
    text = kernel.text_of(operand)
    raise UserError(
        f"{directive.text} on {kernel.name}: the PEs along {loop.name} need {text} in different "
        "iterations",
        location=directive.location,
        expected=f"a value that all PEs along {loop.name} take in the same iterations of their "
        "loops",
        given=f"{text}, in the first iteration of {', '.join(late)}"
        if operand.taken is None
        else f"{text}, of which {operand.producer} sends all to every PE",
        hint=f"leave out this forward: {operand.producer} then sends {text} to each PE along "
        f"{loop.name}",
    )


def _check_invariant(kernel: SpatialKernel, operand: KernelOperand, directive: Forward) -> None:
    loop = directive.loop
    condition = None if operand.condition is None else kernel.place(operand.condition)
    if condition is not None and loop in index_names(condition) and not operand.neighbors:
        raise UserError(
            f"{directive.text} on {kernel.name}: whether {operand.source} is needed depends on "
            f"{loop}",
            location=directive.location,
            expected=f"a condition that is the same for all PEs along {loop}",
            given=show(condition),
        )
    if not varies(kernel, operand.access, loop):
        return
    legal = loops_without(kernel, operand.access, LoopExecution.UNROLLED)
    raise UserError(
        f"{directive.text} on {kernel.name}: {operand.source} depends on {loop}",
        location=directive.location,
        expected=f"a loop along which {operand.source} is the same for all PEs",
        given=kernel.text_of(operand),
        hint=f"it can be passed along {', '.join(legal)}"
        if legal
        else "no unrolled loop leaves it unchanged",
    )


MOST_CYCLES = 64
"""Longest time between two neighbors that use the same value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reuse:
    """The PE ``hop`` before uses the same value ``cycles`` earlier."""

    hop: int
    cycles: int


def forward_timed(
    program: SpatialProgram,
    kernel: SpatialKernel,
    operand: KernelOperand,
    loop: SpatialLoop,
    directive: Forward,
) -> SpatialProgram:
    """Make the operand a member that moves along ``loop``, unless that has a single PE."""
    if loop.constant is not None and loop.constant[1] == 1:
        return program
    reuse = _find_reuse(kernel, operand, loop)
    if reuse is None:
        raise _refusal(kernel, operand, loop, directive)
    moved = {loop.name: reuse.hop, kernel.timed or "": reuse.cycles}
    stepped = [x for x in kernel.loops if x.kind is not LoopExecution.VECTOR]
    domain = _needed(kernel, operand)
    before = translated(domain.points, [moved.get(x.name, 0) for x in stepped])
    has_neighbor = condition(domain, before.intersect(domain.points))
    passed = None if has_neighbor is None else tidy(kernel.over_domain(has_neighbor))
    member = _member(kernel, operand, moved, passed)
    program, changed = _entering(program, kernel, operand, passed)
    kernel = _reading(kernel.with_operand(operand, changed), operand, member)
    return program.with_kernel(kernel)


def _needed(kernel: SpatialKernel, operand: KernelOperand) -> LoopDomain:
    domain = kernel.domain_of_iterations
    if operand.condition is None:
        return domain
    return domain.restricted(kernel.place(operand.condition))


def _find_reuse(kernel: SpatialKernel, operand: KernelOperand, loop: SpatialLoop) -> _Reuse | None:
    domain = _needed(kernel, operand)
    placed = [kernel.place(index) for index in operand.access]
    for cycles in range(1, MOST_CYCLES + 1):
        for hop in (1, -1):
            back = _back({loop.name: hop, kernel.timed or "": cycles})
            differences = (e - substitute(e, back) for e in placed)
            if all(_is_zero(domain, tidy(difference)) for difference in differences):
                return _Reuse(hop=hop, cycles=cycles)
    return None


def _back(moved: dict[str, int]) -> dict[str, Expr]:
    """The loops that a value moves along, at its previous position."""
    return {name: tidy(Index(name=name) - by) for name, by in moved.items()}


def _is_zero(domain: LoopDomain, difference: Expr) -> bool:
    if isinstance(difference, Const):
        return difference.value == 0
    return domain.range_of(difference) == (0, 0)


def _member(
    kernel: SpatialKernel, operand: KernelOperand, moved: dict[str, int], passed: Expr | None
) -> Member:
    """``X(v) = X(v - d)`` where there is a neighbor, else the operand."""
    back = _back(moved)
    arguments = tuple(dimension.name for dimension in kernel.domain)
    variables = dict(kernel.variables)
    source = tuple(
        tidy(kernel.over_domain(substitute(variables[name], back))) for name in arguments
    )
    taken = [member.name for member in kernel.members] + [operand.source]
    name = NameSupply(taken).fresh(f"{operand.source}_moving")
    entering = Local(name=operand.name, type=operand.type)
    neighbor = Read(source=name, indices=source, type=operand.type, location=kernel.location)
    value: Expr = neighbor
    if passed is not None:
        value = Select(condition=passed, if_true=neighbor, if_false=entering, type=operand.type)
    return Member(
        name=name,
        type=operand.type,
        arguments=arguments,
        value=value,
        lanes=kernel.vector_loop is not None,
        location=kernel.location,
    )


def _reading(kernel: SpatialKernel, operand: KernelOperand, member: Member) -> SpatialKernel:
    """The kernel with the moving value in place of the operand."""
    arguments = tuple(Index(name=name) for name in member.arguments)
    moving = Read(source=member.name, indices=arguments, type=member.type, location=kernel.location)

    def rule(node: Term) -> Term | None:
        return moving if isinstance(node, Local) and node.name == operand.name else None

    changed = kernel.rewritten(lambda expr: rewrite(expr, rule))
    if not isinstance(changed.work, Recurrences):
        raise InternalError(f"{kernel.name} has no members")
    return replace(changed, work=replace(changed.work, members=(member, *changed.work.members)))


def _narrow_producers(
    program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand
) -> SpatialProgram:
    """Restrict all kernels that send or pass on the operand to the entering values."""
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


def _refusal(
    kernel: SpatialKernel, operand: KernelOperand, loop: SpatialLoop, directive: Forward
) -> UserError:
    placed = ", ".join(show(kernel.place(index)) for index in operand.access)
    return UserError(
        f"{directive.text} on {kernel.name}: no neighbor along {loop.name} has used the value of "
        f"{operand.source} before",
        location=directive.location,
        expected=f"a PE next to it along {loop.name} that needs the same value 1 to {MOST_CYCLES} "
        "cycles earlier",
        given=f"{operand.source}[{placed}]",
        hint="a value that all PEs need at the same time comes from the producer; choose a "
        "schedule in which it moves",
    )
