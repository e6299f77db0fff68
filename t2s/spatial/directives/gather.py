"""``gather``: the PEs of a drainer send their results as one stream, from PE to PE.

Before -> after, for PEs along ``ii``::

    drainer.gather(C, ii)
        drainer[ii]: for jj: receive from C[ii], send to the unloader
        unloader: for jj: for ii: receive from drainer[ii]              (ii unrolled, or in turn)
    ->  drainer[ii]: for jj: for d from ii: d == ii: receive from C[ii], else: from drainer[ii+1]
                                            send to drainer[ii-1]      (the first: to the unloader)
        unloader: for jj: for ii: receive from drainer[0]

The loop runs in time, innermost, in all that takes the results (data gathering, T2S-Tensor §III.B).
Where it becomes the lanes of a ``vstore``, every PE puts its own value into its lane of a vector
that goes from PE to PE, see ``vectors.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.expr import Local
from t2s.core.names import NameSupply
from t2s.spatial.analysis.lookup import consumers, counterpart
from t2s.spatial.directive import Directive
from t2s.spatial.directives.scatter import check_same_nest, one_stream, unrolled_loop
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.work import GatheredStream, Relay


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
    """A relay behind a kernel that gathers along another loop already, made if there is none."""
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
    """What a consumer in the middle of a chain does with the results that it takes."""
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
