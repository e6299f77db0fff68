"""``scatter``: the PEs of a feeder take their operand from one stream, from PE to PE.

Before -> after, for a feeder with PEs along ``ii``::

    A_feeder.scatter(A_loader, ii)
        A_loader: for ii: for k: send A[ii, k] to A_feeder[ii]        (ii unrolled, or in turn)
    ->  A_loader: for k: for ii: send A[ii, k] to A_feeder[0]
        A_feeder[ii]: for k: for d from ii: receive from A_feeder[ii-1] (the first: from A_loader)
                                            d == ii: send to C[ii], else: pass on to A_feeder[ii+1]

The loop runs in time, innermost, in all that feeds the operand (T2S-Tensor §III.B, data
scattering).  Those nests may be reordered afterwards; ``passes/follow.py`` makes the feeder iterate
like its producer.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import UserError
from t2s.core.expr import Local, index_names
from t2s.core.names import NameSupply
from t2s.core.printer import show
from t2s.graph.nodes import Role
from t2s.spatial.directives import Gather, Scatter
from t2s.spatial.ir import Kernel, Loop, LoopKind, SpatialProgram
from t2s.spatial.operands import Operand
from t2s.spatial.passes.host import check_operand_on_device
from t2s.spatial.passes.isolate import varies
from t2s.spatial.passes.lookup import (
    check_in_all_iterations,
    constant_bounds,
    counterpart,
    find_loop,
)


def scatter(program: SpatialProgram, name: str, directive: Scatter) -> SpatialProgram:
    """Record the stream on the operand, and run the loop in time in all that feeds it."""
    kernel = program.kernel(name)
    operand = _find(kernel, directive)
    check_operand_on_device(program, kernel, operand, directive)
    loop = unrolled_loop(kernel, directive)
    if operand.scatter is not None and operand.scatter.loop != loop.name:
        program, distributor = _with_distributor(program, kernel, operand, directive)
        return scatter(program, distributor, replace(directive, operand=operand.source))
    if operand.scatter is not None:
        raise one_stream(kernel, operand.scatter, directive)
    _, extent = constant_bounds(kernel, loop, directive)
    if extent > 1 and not varies(kernel, operand.access or (), loop.name):
        placed = ", ".join(show(kernel.place(index)) for index in operand.access or ())
        raise UserError(
            f"{directive.text} on {name}: {operand.source} does not depend on {loop.name}",
            location=directive.location,
            expected=f"a loop along which every PE needs values of its own of {operand.source}",
            given=f"{operand.source}[{placed}]",
            hint=f"pass the same values to all PEs: forward({name}, {loop.name}) on the "
            "function that computes",
        )
    if operand.condition is not None:
        raise UserError(
            f"{directive.text} on {name}: {operand.source} is not needed in every iteration",
            location=directive.location,
            expected="an operand without a condition",
            given=f"{operand.source} if {show(kernel.place(operand.condition))}",
            hint="load it unconditionally: move the access out of the select",
        )
    check_same_nest(kernel, loop, directive)
    program = program.with_kernel(kernel.with_operand(operand, replace(operand, scatter=directive)))
    pending = [operand.producer]
    while pending:
        producer = program.kernel(pending.pop())
        pending += [upstream.producer for upstream in producer.operands]
        own = counterpart(producer, kernel, loop, directive)
        check_same_nest(producer, own, directive)
        program = program.with_kernel(
            producer.with_innermost(own.name, f"one stream for {name} by {directive.text}")
        )
    return program


def _with_distributor(
    program: SpatialProgram, kernel: Kernel, operand: Operand, directive: Scatter
) -> tuple[SpatialProgram, str]:
    """A relay in front of a kernel that scatters along another loop, made if there is none."""
    producer = program.kernel(operand.producer)
    if producer.inserted:
        return program, producer.name
    names = NameSupply(other.name for other in program.kernels)
    arriving = replace(
        operand, name=operand.source, scatter=None, buffer=None, removed=(), removed_by=None
    )
    distributor = replace(
        producer,
        name=names.fresh(f"{kernel.name}_distributor"),
        role=Role.RELAY,
        operands=(arriving,),
        value=Local(name=operand.source, type=operand.type),
        capacity=None,
        inserted=True,
        location=directive.location,
    )
    fed = kernel.with_operand(operand, replace(operand, producer=distributor.name))
    return program.with_kernel(fed).with_before(kernel.name, distributor), distributor.name


def _find(kernel: Kernel, directive: Scatter) -> Operand:
    """The one operand of a kernel that only passes it on."""
    if kernel.role is not Role.RELAY or len(kernel.operands) != 1:
        raise UserError(
            f"{directive.text} on {kernel.name}: {directive.operand} does not feed {kernel.name}",
            location=directive.location,
            expected="a function with a loader, or a feeder between the two",
            hint=f"isolate it first, as in {kernel.name}.isolate_producer(A, A_loader)",
        )
    operand = kernel.operands[0]
    if operand.access is None or directive.operand not in (operand.producer, operand.source):
        given = directive.operand
        if operand.access is None:
            given = f"{kernel.name}, which takes the results of {operand.producer}"
        raise UserError(
            f"{directive.text} on {kernel.name}: {directive.operand} does not feed {kernel.name}",
            location=directive.location,
            expected=f"scatter({operand.producer}, ...)"
            if operand.access is not None
            else "a Func that was isolated as a producer",
            given=given,
        )
    return operand


def unrolled_loop(kernel: Kernel, directive: Scatter | Gather) -> Loop:
    """The loop of a scatter or gather: space, with constant bounds."""
    loop = find_loop(kernel, directive.loop, directive)
    if loop.kind is not LoopKind.UNROLLED:
        raise UserError(
            f"{directive.text} on {kernel.name}: loop {loop.name} is not unrolled",
            location=directive.location,
            expected="an unrolled loop: the stream goes from PE to PE",
            given=f"{loop.name} in {kernel.name}: {loop.reason}",
            hint=f"write unroll({loop.name}) first",
        )
    return loop


def one_stream(kernel: Kernel, before: Scatter | Gather, directive: Scatter | Gather) -> UserError:
    """The error for a second scatter, or a second gather, along one loop."""
    what, verb = ("scatters", "scatter") if isinstance(before, Scatter) else ("gathers", "gather")
    return UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} already {what} along {before.loop}",
        location=directive.location,
        expected=f"one {verb} along each loop",
        notes=((before.location, f"{before.text} was written here"),),
    )


def check_same_nest(kernel: Kernel, loop: Loop, directive: Scatter | Gather) -> None:
    """Neither bounds of other loops nor the iterations there are depend on the stream's loop."""
    check_in_all_iterations(
        kernel, loop, directive, f"the same iterations in all PEs along {loop.name}"
    )
    for other in kernel.loops:
        if loop.name in index_names(other.minimum) | index_names(other.extent):
            raise UserError(
                f"{directive.text} on {kernel.name}: the bounds of {other.name} depend on "
                f"{loop.name}",
                location=directive.location,
                expected=f"the same loops in all PEs along {loop.name}",
                given=f"{other.name} from {show(other.minimum)} to {show(other.last)}",
                hint="give the loop the same bounds everywhere, and guard the value with select",
            )
