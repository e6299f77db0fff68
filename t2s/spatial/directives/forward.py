"""``forward``: an operand enters at the boundary PEs and is passed from PE to PE.

Before -> after, for PEs ``jj`` of C that all need ``A[i, k]``::

    forward(A_feeder, jj)    A_feeder: for jj: send to C[jj]   ->   A_feeder: send to C[0]
                                                                    C[jj]: receive from C[jj-1]

The loop disappears from all producers of the operand (dependence localisation, T2S-Tensor §IV.A).

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
    index_names,
    substitute,
)
from t2s.core.isl import LoopDomain
from t2s.core.isl_maps import condition, translated
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite
from t2s.spatial.analysis.conditions import pin
from t2s.spatial.analysis.lookup import (
    counterpart,
    find_loop,
    loops_without,
    varies,
)
from t2s.spatial.directive import Directive
from t2s.spatial.directives.host import check_operand_on_device
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop
from t2s.spatial.operands import ForwardHop, KernelOperand
from t2s.spatial.work import Member, Recurrences


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
    if loop.name in operand.forwards:
        raise UserError(
            f"{directive.text} on {name}: {operand.source} is already passed along {loop.name}",
            location=directive.location,
            expected="one forward of an operand along each loop",
        )
    if kernel.timed is not None:
        return forward_timed(program, kernel, operand, loop, directive)
    _check_counts(kernel, operand, directive)
    _check_invariant(kernel, operand, directive)
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
    program = program.with_kernel(producer.without(frozenset({dropped.name})))
    for operand in producer.operands:
        if dropped.name not in operand.removed and operand.taken is None:
            program = drop_upstream(program, kernel, operand.producer, loop, directive)
    return program


def _find(kernel: SpatialKernel, directive: Forward) -> KernelOperand:
    wanted = directive.operand
    found = [o for o in kernel.operands if wanted in (o.producer, o.source)]
    if len(found) == 1:
        return found[0]
    choices = ", ".join(sorted({operand.producer for operand in kernel.operands})) or "nothing yet"
    if not found:
        raise UserError(
            f"{directive.text} on {kernel.name}: {wanted} does not feed {kernel.name}",
            location=directive.location,
            expected=f"a producer of {kernel.name}: {choices}",
            given=wanted,
            hint=f"isolate the operand first, as in {kernel.name}.isolate_producer(A, A_feeder)",
        )
    raise UserError(
        f"{directive.text} on {kernel.name}: {wanted} feeds {kernel.name} {len(found)} times",
        location=directive.location,
        expected=f"one producer: {choices}",
    )


def _check_counts(kernel: SpatialKernel, operand: KernelOperand, directive: Forward) -> None:
    """Every PE along the loop takes the same number of values."""
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
    for other in kernel.loops:
        if loop in index_names(other.minimum) | index_names(other.extent):
            raise UserError(
                f"{directive.text} on {kernel.name}: how many values of {operand.source} a PE "
                f"takes depends on {loop}",
                location=directive.location,
                expected=f"the same loops in all PEs along {loop}",
                given=f"{other.name} from {show(other.minimum)} to {show(other.last)}",
                hint="give the loop the same bounds everywhere, and guard the value with select",
            )


def _check_invariant(kernel: SpatialKernel, operand: KernelOperand, directive: Forward) -> None:
    loop = directive.loop
    condition = None if operand.condition is None else kernel.place(operand.condition)
    if condition is not None and loop in index_names(condition):
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
    """The same value is used ``cycles`` before by the PE that is ``hop`` before."""

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
    entry = apply(Op.NOT, passed) if passed is not None else None
    member = _member(kernel, operand, moved, passed)
    changed = replace(operand, condition=conjunction(operand.condition, entry))
    program = _narrow_producers(program, kernel, changed)
    pinned = pin(kernel, changed.condition)
    changed = replace(changed, pinned=(*changed.pinned, *pinned.values))
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
