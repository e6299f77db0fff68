"""``remove``: a producer drops loops along which it would send the same values again.

Before -> after, for a loader of ``A[i, k]`` inside of ``for i: for k: for j``::

    A_loader.remove(j)     for i: for k: for j: send A[i, k]   ->   for i: for k: send A[i, k]

The stream becomes shorter than the consumer expects, so the consumer has to keep the values for the
dropped iterations in a ``buffer`` (T2S-Tensor §IV.A, loop removal and data buffering).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.expr import index_names
from t2s.core.printer import show
from t2s.spatial.analysis.lookup import (
    find_loop,
    find_serial,
    loops_without,
    varies,
)
from t2s.spatial.directive import Directive
from t2s.spatial.directives.forward import drop_upstream
from t2s.spatial.ir import KernelOperand, LoopExecution, Removal, SpatialKernel, SpatialProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove(Directive):
    """A producer drops loops along which it would send the same values again."""

    may_be_on_host = True

    loops: tuple[str, ...]


def remove(program: SpatialProgram, name: str, directive: Remove) -> SpatialProgram:
    """Drop reuse loops from a producer and from everything that feeds it."""
    kernel = program.kernel(name)
    consumer, operand = fed_by(program, kernel, directive)
    for loop in directive.loops:
        find = find_loop if kernel.on_host else find_serial
        reused = find(kernel, loop, directive)
        if varies(kernel, operand.access, loop):
            legal = loops_without(kernel, operand.access, LoopExecution.SERIAL)
            raise UserError(
                f"{directive.text} on {name}: {operand.source} depends on {loop}",
                location=directive.location,
                expected=f"a reuse loop, along which {operand.source} is the same",
                given=kernel.text_of(operand),
                hint=f"reuse loops of {name}: {', '.join(legal) or 'none'}",
            )
        _check_counts(kernel, loop, directive)
        program = drop_upstream(program, kernel, name, reused, directive)
    removal = Removal(loops=(*operand.removed, *directive.loops), by=directive)
    changed = replace(operand, removal=removal)
    return program.with_kernel(consumer.with_operand(operand, changed))


def _check_counts(kernel: SpatialKernel, name: str, directive: Remove) -> None:
    """Check that no remaining loop has bounds that depend on the dropped one."""
    for other in kernel.loops:
        if name in index_names(other.minimum) | index_names(other.extent):
            raise UserError(
                f"{directive.text} on {kernel.name}: how many values {kernel.name} sends depends "
                f"on {name}",
                location=directive.location,
                expected=f"the same loops in every iteration of {name}",
                given=f"{other.name} from {show(other.minimum)} to {show(other.last)}",
            )


def fed_by(
    program: SpatialProgram, kernel: SpatialKernel, directive: Directive
) -> tuple[SpatialKernel, KernelOperand]:
    """The kernel that receives what a producer sends, and the operand it is there."""
    for consumer in program.kernels:
        for operand in consumer.operands:
            if operand.producer == kernel.name and not operand.is_result:
                return consumer, operand
    raise UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} is not an isolated producer",
        location=directive.location,
        expected="a Func that was isolated with isolate_producer or isolate_producer_chain",
        hint="only what loads or passes on an operand can skip iterations",
    )
