"""How the operand of a chain reaches the PEs, and which loops its memories make unnecessary.

Before -> after, for a chain with the stages ``A_loader`` and ``A_feeder`` that ends at C, which is
unrolled along ``ii`` and ``jj``, for the operand ``A[ii, k]``::

    Distribute         C.forward(A_feeder, jj), A_feeder.scatter(A_loader, ii)
    RemoveReuse(k)     A_loader.remove(every loop inside of k along which A_feeder's operand stays)

isl decides which loops these are.  The passes of ``Forward``, ``Scatter`` and ``Remove`` then carry
them out, with their proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import index_names
from t2s.spatial.analysis.lookup import varies
from t2s.spatial.analysis.token_order import split_at
from t2s.spatial.directive import Directive
from t2s.spatial.directives.forward import Forward, forward
from t2s.spatial.directives.remove import Remove, fed_by, remove
from t2s.spatial.directives.scatter import Scatter, scatter
from t2s.spatial.ir import (
    KernelOperand,
    LoopExecution,
    Relay,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribute(Directive):
    """Bring the last stage's values to all PEs; becomes ``Forward`` and ``Scatter``.

    ``operand`` is that stage, ``scattering`` are the stages that may take one stream.
    """

    operand: str
    scattering: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveReuse(Directive):
    """Drop all loops of a producer inside ``scope`` along which it would send the same values.

    ``None``: all such loops that it has.  Becomes ``Remove``.
    """

    may_be_on_host = True

    scope: str | None


def distribute(program: SpatialProgram, name: str, directive: Distribute) -> SpatialProgram:
    """Forward along PEs that need the same values, scatter along those that need different ones."""
    kernel = program.kernel(name)
    operand = next(o for o in kernel.operands if o.producer == directive.operand)
    along = [loop for loop in kernel.kind(LoopExecution.UNROLLED) if _needed_along(operand, loop)]
    if kernel.timed is not None and along:
        raise UnsupportedError(
            f"{directive.text}: {name} has a schedule",
            location=directive.location,
            expected="PEs that all use a value at the same time",
            given=f"{operand.source} moves through {name} by the schedule",
            hint="isolate with isolate_producer_chain, and say with forward which values move",
        )
    own = [loop for loop in along if _depends(kernel, operand, loop)]
    for loop in along:
        if loop not in own:
            program = forward(
                program,
                name,
                Forward(
                    operand=directive.operand,
                    loop=loop.name,
                    capacity=None,
                    location=directive.location,
                    text=f"forward({directive.operand}, {loop.name})",
                ),
            )
    if not own or not directive.scattering:
        return program
    _check_one_stream(kernel, operand, own, directive)
    feeder, loop = directive.scattering[0], own[0]
    producer = program.kernel(feeder).operands[0].producer
    return scatter(
        program,
        feeder,
        Scatter(
            operand=producer,
            loop=loop.name,
            reverse=False,
            location=directive.location,
            text=f"scatter({producer}, {loop.name})",
        ),
    )


def remove_reuse(program: SpatialProgram, name: str, directive: RemoveReuse) -> SpatialProgram:
    """Drop the loops along which a producer sends the same values again."""
    kernel = program.kernel(name)
    consumer, operand = fed_by(program, kernel, directive)
    candidates = kernel.loops
    if directive.scope is not None:
        outer, inner = split_at(consumer, directive.scope)
        _check_nested(program, kernel, consumer, [loop.name for loop in outer], directive)
        inside = {loop.name for loop in inner}
        candidates = tuple(x for x in kernel.kind(LoopExecution.SERIAL) if x.name in inside)
    reuse = tuple(loop.name for loop in candidates if not _depends(kernel, operand, loop))
    if not reuse:
        return program
    names = ", ".join(reuse)
    removal = Remove(loops=reuse, location=directive.location, text=f"remove({names})")
    return remove(program, name, removal)


def _check_nested(
    program: SpatialProgram,
    producer: SpatialKernel,
    consumer: SpatialKernel,
    around: list[str],
    directive: RemoveReuse,
) -> None:
    """Check that a memory keeps values for a part of the time that the memories before it do."""
    stage: SpatialKernel | None = producer
    while stage is not None and stage.operands:
        operand = stage.operands[0]
        buffer = stage.buffer
        if buffer is not None and buffer.loop not in around:
            raise UserError(
                f"{directive.text}: the scope {directive.scope} of {consumer.name} is outside of "
                f"the scope {buffer.loop} of {stage.name}",
                location=directive.location,
                expected=f"{directive.scope} inside of {buffer.loop}: {stage.name} comes "
                "first, so it keeps its values longer",
                given="loops, outermost first: "
                + ", ".join(loop.name for loop in consumer.kind(LoopExecution.SERIAL)),
                hint="exchange the two scopes, or reorder the loops",
            )
        stage = program.find(operand.producer) if isinstance(stage.work, Relay) else None


def _needed_along(operand: KernelOperand, loop: SpatialLoop) -> bool:
    """Whether PEs along the loop take the operand without passing it on yet."""
    elsewhere = loop.name in operand.pinned or loop.name in operand.forwards
    return not elsewhere and not (operand.at_start and loop.reduction)


def _depends(kernel: SpatialKernel, operand: KernelOperand, loop: SpatialLoop) -> bool:
    """Whether the operand changes along a loop, or would if the loop had several iterations."""
    access = operand.access
    if loop.constant is not None and loop.constant[1] == 1:
        return any(loop.name in index_names(kernel.place(index)) for index in access)
    return varies(kernel, access, loop.name)


def _check_one_stream(
    kernel: SpatialKernel, operand: KernelOperand, loops: list[SpatialLoop], directive: Distribute
) -> None:
    """Check that a stage has at most one stream along one loop."""
    stages, names = directive.scattering, [loop.name for loop in loops]
    if len(names) > 1:
        raise UnsupportedError(
            f"{directive.text}: {kernel.text_of(operand)} depends on {len(names)} unrolled loops",
            location=directive.location,
            expected="one loop along which the PEs take their values from one stream",
            given=", ".join(names),
            hint="write scatter=False in the sram stage: its PEs then take values side by side",
        )
    if len(stages) > 1:
        raise UserError(
            f"{directive.text}: {len(stages)} sram stages could scatter {operand.source} along "
            f"{names[0]}",
            location=directive.location,
            expected="one of them",
            given=", ".join(stages),
            hint=f"write scatter=False in all but one; before the one that scatters, {names[0]} "
            "runs in time",
        )
