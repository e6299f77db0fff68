"""``scatter``: the PEs of a feeder take their operand from one stream; ``gather``, the inverse.

Before -> after, for a feeder with PEs along ``ii``::

    A_feeder.scatter(A_loader, ii)
        A_loader: for ii: for k: send A[ii, k] to A_feeder[ii]        (ii unrolled, or in turn)
    ->  A_loader: for k: for ii: send A[ii, k] to A_feeder[0]
        A_feeder[ii]: for k: for d from ii: receive from A_feeder[ii-1] (the first: from A_loader)
                                            d == ii: send to C[ii], else: pass on to A_feeder[ii+1]

The loop runs in time, innermost, in all that feeds the operand (T2S-Tensor §III.B, data
scattering).  Those nests may be reordered afterwards; ``pipeline.py`` makes the feeder iterate
like its producer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.expr import Local, index_names
from t2s.core.names import NameSupply
from t2s.core.printer import show
from t2s.spatial.analysis.lookup import (
    check_in_all_iterations,
    constant_bounds,
    consumers,
    counterpart,
    find_loop,
    varies,
)
from t2s.spatial.directive import Directive
from t2s.spatial.directives.buffer import with_feeder
from t2s.spatial.directives.host import check_operand_on_device
from t2s.spatial.ir import (
    GatheredStream,
    KernelOperand,
    LoopExecution,
    PassedStream,
    Relay,
    ScatteredStream,
    SpatialKernel,
    SpatialLoop,
    SpatialProgram,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter(Directive):
    """The PEs along ``loop`` take ``operand`` from one stream, from PE to PE.

    The stream enters at the first PE, or with ``reverse`` at the last one.
    """

    operand: str
    loop: str
    reverse: bool


def scatter(program: SpatialProgram, name: str, directive: Scatter) -> SpatialProgram:
    """Record the stream on the kernel, and run the loop in time in all that feeds it."""
    program, name = with_feeder(program, name, directive.operand, directive)
    kernel = program.kernel(name)
    relay, operand = _find(kernel, directive)
    check_operand_on_device(program, kernel, operand, directive)
    loop = unrolled_loop(kernel, directive.loop, directive)
    if kernel.scattering is not None and kernel.scattering.loop != loop.name:
        program, distributor = _with_distributor(program, kernel, operand, directive)
        return scatter(program, distributor, replace(directive, operand=operand.source))
    if kernel.scattering is not None:
        raise one_stream(kernel, kernel.scattering, directive)
    _, extent = constant_bounds(kernel, loop, directive)
    if extent > 1 and not varies(kernel, operand.access, loop.name):
        placed = ", ".join(show(kernel.place(index)) for index in operand.access)
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
    stream = ScatteredStream(loop=loop.name, reverse=directive.reverse, by=directive)
    program = program.with_kernel(replace(kernel, work=replace(relay, stream=stream)))
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
    program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand, directive: Scatter
) -> tuple[SpatialProgram, str]:
    """The relay in front of a kernel that scatters along another loop, inserted if missing."""
    producer = program.kernel(operand.producer)
    if isinstance(producer.work, Relay) and producer.work.inserted:
        return program, producer.name
    names = NameSupply(other.name for other in program.kernels)
    arriving = replace(operand, name=operand.source, removal=None)
    distributor = replace(
        producer,
        name=names.fresh(f"{kernel.name}_distributor"),
        operands=(arriving,),
        work=Relay(value=Local(name=operand.source, type=operand.type), inserted=True),
        capacity=None,
        location=directive.location,
    )
    fed = kernel.with_operand(operand, replace(operand, producer=distributor.name))
    return program.with_kernel(fed).with_before(kernel.name, distributor), distributor.name


def _find(kernel: SpatialKernel, directive: Scatter) -> tuple[Relay, KernelOperand]:
    """The work and the operand of a kernel that only passes its operand on."""
    if not isinstance(kernel.work, Relay):
        raise UserError(
            f"{directive.text} on {kernel.name}: {directive.operand} does not feed {kernel.name}",
            location=directive.location,
            expected="a function with a loader, or a feeder between the two",
            hint=f"isolate it first, as in {kernel.name}.isolate_producer(A, A_loader)",
        )
    operand = kernel.operands[0]
    if operand.is_result or directive.operand not in (operand.producer, operand.source):
        operand_text = directive.operand
        if operand.is_result:
            operand_text = f"{kernel.name}, which takes the results of {operand.producer}"
        raise UserError(
            f"{directive.text} on {kernel.name}: {directive.operand} does not feed {kernel.name}",
            location=directive.location,
            expected=f"scatter({operand.producer}, ...)"
            if not operand.is_result
            else "a Func that was isolated as a producer",
            given=operand_text,
        )
    return kernel.work, operand


def unrolled_loop(kernel: SpatialKernel, name: str, directive: Directive) -> SpatialLoop:
    """The loop of a scatter or gather: space, with constant bounds."""
    loop = find_loop(kernel, name, directive)
    if loop.kind is not LoopExecution.UNROLLED:
        raise UserError(
            f"{directive.text} on {kernel.name}: loop {loop.name} is not unrolled",
            location=directive.location,
            expected="an unrolled loop: the stream goes from PE to PE",
            given=f"{loop.name} in {kernel.name}: {loop.reason}",
            hint=f"write unroll({loop.name}) first",
        )
    return loop


def one_stream(kernel: SpatialKernel, before: PassedStream, directive: Directive) -> UserError:
    """The error for a second scatter, or a second gather, along one loop."""
    scattered = isinstance(before, ScatteredStream)
    what, verb = ("scatters", "scatter") if scattered else ("gathers", "gather")
    return UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} already {what} along {before.loop}",
        location=directive.location,
        expected=f"one {verb} along each loop",
        notes=((before.by.location, f"{before.by.text} was written here"),),
    )


def check_same_nest(kernel: SpatialKernel, loop: SpatialLoop, directive: Directive) -> None:
    """Check that neither other bounds nor the set of iterations depend on the stream's loop."""
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


# ``gather``: the PEs of a drainer send their results as one stream, from PE to PE.
#
# Before -> after, for PEs along ``ii``::
#
# drainer.gather(C, ii) drainer[ii]: for jj: receive from C[ii], send to the unloader unloader: for
# jj: for ii: receive from drainer[ii]              (ii unrolled, or in turn) ->  drainer[ii]: for
# jj: for d from ii: d == ii: receive from C[ii], else: from drainer[ii+1] send to drainer[ii-1]
# (the first: to the unloader) unloader: for jj: for ii: receive from drainer[0]
#
# The loop runs in time, innermost, in all that takes the results (data gathering, T2S-Tensor
# §III.B). Where it becomes the lanes of a ``vstore``, every PE puts its own value into its lane of
# a vector that goes from PE to PE, see ``vectors.py``.


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather(Directive):
    """The PEs along ``loop`` send the results of ``function`` as one stream, from PE to PE.

    The stream leaves at the first PE, or with ``reverse`` at the last one.
    """

    function: str
    loop: str
    reverse: bool


def gather(program: SpatialProgram, name: str, directive: Gather) -> SpatialProgram:
    """Record the stream on the kernel, and run the loop in time in all that takes the results."""
    kernel = program.kernel(name)
    relay = _relay(program, kernel, directive)
    loop = unrolled_loop(kernel, directive.loop, directive)
    if kernel.gathering is not None and kernel.gathering.loop != loop.name:
        program, collector = _with_collector(program, kernel, directive)
        return gather(program, collector, replace(directive, function=name))
    if kernel.gathering is not None:
        raise one_stream(kernel, kernel.gathering, directive)
    check_same_nest(kernel, loop, directive)
    stream = GatheredStream(loop=loop.name, reverse=directive.reverse, by=directive)
    program = program.with_kernel(replace(kernel, work=replace(relay, stream=stream)))
    for follower in tuple(consumers(program, name)):
        own = counterpart(follower, kernel, loop, directive)
        check_same_nest(follower, own, directive)
        program = program.with_kernel(
            follower.with_innermost(own.name, f"one stream from {name} by {directive.text}")
        )
    return program


def _with_collector(
    program: SpatialProgram, kernel: SpatialKernel, directive: Gather
) -> tuple[SpatialProgram, str]:
    """The relay behind a kernel that already gathers along another loop, inserted if missing."""
    follower = next(iter(consumers(program, kernel.name)))
    if isinstance(follower.work, Relay) and follower.work.inserted:
        return program, follower.name
    operand = next(o for o in follower.operands if o.producer == kernel.name)
    names = NameSupply(other.name for other in program.kernels)
    collector = replace(
        follower,
        name=names.fresh(f"{kernel.name}_collector"),
        work=Relay(value=Local(name=operand.name, type=operand.type), inserted=True),
        capacity=None,
        location=directive.location,
    )
    behind = follower.with_operand(operand, replace(operand, producer=collector.name))
    return program.with_kernel(behind).with_before(follower.name, collector), collector.name


def _relay(program: SpatialProgram, kernel: SpatialKernel, directive: Gather) -> Relay:
    """The work of a consumer in the middle of a chain."""
    operand = next((o for o in kernel.operands if o.is_result), None)
    if operand is None:
        raise UserError(
            f"{directive.text} on {kernel.name}: {kernel.name} takes no results",
            location=directive.location,
            expected="a Func that was isolated with isolate_consumer_chain",
            hint=f"isolate a chain, {kernel.function}.isolate_consumer_chain(drainer, unloader), "
            "and gather in the drainer",
        )
    if directive.function not in (operand.producer, operand.source):
        raise UserError(
            f"{directive.text} on {kernel.name}: {directive.function} does not feed {kernel.name}",
            location=directive.location,
            expected=f"gather({operand.producer}, ...)",
            given=directive.function,
        )
    following = next(consumers(program, kernel.name), None)
    if not isinstance(kernel.work, Relay) or (following is not None and following.on_host):
        raise UserError(
            f"{directive.text} on {kernel.name}: {kernel.name} is the last consumer of "
            f"{kernel.function} on the device",
            location=directive.location,
            expected="a consumer that sends the stream on to another one",
            hint=f"isolate a chain, isolate_consumer_chain(drainer, {kernel.name}), and gather in "
            "the drainer",
        )
    return kernel.work
