"""``forward``: an operand enters at the boundary PEs and is passed from PE to PE.

Before -> after, for PEs ``jj`` of C that all need ``A[i, k]``::

    forward(A_feeder, jj)    A_feeder: for jj: send to C[jj]   ->   A_feeder: send to C[0]
                                                                    C[jj]: receive from C[jj-1]

The loop disappears from all producers of the operand (dependence localisation, T2S-Tensor §IV.A).
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.expr import index_names
from t2s.core.printer import show
from t2s.spatial.analysis.lookup import counterpart, find_loop
from t2s.spatial.directive import Directive, Forward
from t2s.spatial.directives.forward_timed import forward_timed
from t2s.spatial.directives.host import check_operand_on_device
from t2s.spatial.directives.isolate import varies
from t2s.spatial.ir import Kernel, Loop, LoopKind, SpatialProgram
from t2s.spatial.operands import ForwardHop, Operand


def forward(program: SpatialProgram, name: str, directive: Forward) -> SpatialProgram:
    """Record the hop on the operand and drop the loop from its producers."""
    kernel = program.kernel(name)
    operand = _find(kernel, directive)
    check_operand_on_device(program, kernel, operand, directive)
    loop = find_loop(kernel, directive.loop, directive)
    if loop.kind is not LoopKind.UNROLLED:
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
    program: SpatialProgram, kernel: Kernel, name: str, loop: Loop, directive: Directive
) -> SpatialProgram:
    """Drop a loop of ``kernel`` from a producer and from everything that feeds that."""
    producer = program.kernel(name)
    dropped = counterpart(producer, kernel, loop, directive)
    program = program.with_kernel(producer.without(frozenset({dropped.name})))
    for operand in producer.operands:
        if dropped.name not in operand.removed and operand.taken is None:
            program = drop_upstream(program, kernel, operand.producer, loop, directive)
    return program


def _find(kernel: Kernel, directive: Forward) -> Operand:
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


def _check_counts(kernel: Kernel, operand: Operand, directive: Forward) -> None:
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


def _check_invariant(kernel: Kernel, operand: Operand, directive: Forward) -> None:
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
    legal = [
        other.name
        for other in kernel.kind(LoopKind.UNROLLED)
        if not varies(kernel, operand.access, other.name)
    ]
    raise UserError(
        f"{directive.text} on {kernel.name}: {operand.source} depends on {loop}",
        location=directive.location,
        expected=f"a loop along which {operand.source} is the same for all PEs",
        given=kernel.text_of(operand),
        hint=f"it can be passed along {', '.join(legal)}"
        if legal
        else "no unrolled loop leaves it unchanged",
    )
