"""What scatters or gathers iterates like the stream that it passes on, token by token.

Before -> after, for PEs along ``ii`` behind ``for k: for ii: send``::

    parallel ii: for k             ->   parallel ii: for k: for ii_digit from ii to the last

The nest is that of the neighbor that has the whole stream: the producer of what is scattered, the
consumer of what is gathered.  In it the loop over the PEs (the *digit*) counts only those whose
tokens pass by: the PE's own and those of the PEs behind it.  A buffered feeder keeps its nest: its
counter fills the buffer in the order of the stream (``lowering/body_relay.py``).
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.errors import InternalError, UnsupportedError, UserError
from t2s.core.expr import Expr, Index, apply, const, simplify, substitute
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.spatial.analysis.buffering import check_buffer
from t2s.spatial.analysis.lookup import same_loop
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop, shifted
from t2s.spatial.work import PassedStream, Relay


def follow_streams(program: SpatialProgram) -> SpatialProgram:
    """Rewrite the nests of all kernels that scatter or gather."""
    for kernel in program.kernels:  # producers first: a stream may be scattered further
        if kernel.scattering is not None:
            operand = kernel.operands[0]
            producer = program.kernel(operand.producer)
            check_buffer(producer, kernel, operand)
            followed = _following(kernel, producer, kernel.scattering)
            if kernel.buffer is None:
                program = program.with_kernel(followed)
    for kernel in reversed(program.kernels):
        if kernel.gathering is not None:
            consumer = _consumer(program, kernel)
            followed = _following(kernel, consumer, kernel.gathering)
            program = program.with_kernel(followed)
    return program


def _consumer(program: SpatialProgram, kernel: SpatialKernel) -> SpatialKernel:
    for other in program.kernels:
        if any(operand.producer == kernel.name for operand in other.operands):
            return other
    raise InternalError(f"nothing takes the results of {kernel.name}")


def _following(
    kernel: SpatialKernel, partner: SpatialKernel, passed: PassedStream
) -> SpatialKernel:
    """The kernel with the loops in time of the partner, which has the whole stream."""
    own = kernel.loop(passed.loop)
    if own is None or not isinstance(kernel.work, Relay):
        raise InternalError(f"{kernel.name} has lost {passed.loop}")
    fixed = [loop for loop in kernel.loops if loop.kind is not LoopExecution.SERIAL]
    stream = same_loop(partner.loops, own)
    names = NameSupply(loop.name for loop in fixed)
    values: dict[str, Expr] = {}
    loops: list[SpatialLoop] = []
    digit: str | None = None
    for loop in partner.loops:
        others = [other for other in fixed if other is not own]
        same = own if loop is stream else same_loop(others, loop)
        _check_in_time(kernel, partner, loop, same, passed)
        if same is not None and (same is not own or loop.kind is LoopExecution.VECTOR):
            values[loop.name] = Index(name=same.name)
            continue
        bounded = _bounded(loop, own, passed) if same is own else loop
        wanted = f"{own.name}_digit" if same is own else loop.name
        renamed = names.fresh(wanted)
        if same is own:
            digit = renamed
        loops.append(
            replace(
                bounded,
                name=renamed,
                minimum=substitute(bounded.minimum, values) if same is not own else bounded.minimum,
                extent=substitute(bounded.extent, values) if same is not own else bounded.extent,
            )
        )
        values[loop.name] = Index(name=renamed)
    return replace(
        kernel,
        loops=(
            *kernel.kind(LoopExecution.UNROLLED),
            *loops,
            *kernel.kind(LoopExecution.VECTOR),
        ),
        variables=_variables(kernel, partner, values),
        work=replace(kernel.work, digit=digit),
        reshaped=partner.reshaped,
    )


def _variables(
    kernel: SpatialKernel, partner: SpatialKernel, values: dict[str, Expr]
) -> tuple[tuple[str, Expr], ...]:
    """Those of the partner, over the loops of the kernel.

    A variable that only the kernel has is pinned: the step of a recurrence that gives the result.
    """
    theirs = dict(partner.variables)
    names = {dimension.name for dimension in kernel.domain}
    pinned = ((name, expr) for name, expr in kernel.variables if name not in theirs)
    followed = ((n, substitute(expr, values)) for n, expr in partner.variables if n in names)
    return (*followed, *pinned)


def _bounded(loop: SpatialLoop, own: SpatialLoop, passed: PassedStream) -> SpatialLoop:
    """The loop over the PEs, less those whose tokens do not pass by."""
    first, extent = own.fixed
    here = Index(name=own.name)
    reason = f"the PEs whose values pass by, by {passed.by.text}"
    if passed.reverse:
        extents = shifted(here, 1 - first)
        return replace(loop, minimum=const(first), extent=extents, reason=reason)
    behind = simplify(apply(Op.SUBTRACT, const(first + extent), here))
    return replace(loop, minimum=here, extent=behind, reason=reason)


def _check_in_time(
    kernel: SpatialKernel,
    partner: SpatialKernel,
    loop: SpatialLoop,
    same: SpatialLoop | None,
    passed: PassedStream,
) -> None:
    """The stream is one for all PEs along its loop, and one for each PE along the others."""
    if loop.kind is not LoopExecution.UNROLLED:
        return
    if same is not None and same.name == passed.loop:
        raise UserError(
            f"{passed.by.text} on {kernel.name}: {partner.name} is unrolled along {loop.name}",
            location=passed.by.location,
            expected=f"one stream, with {loop.name} in time in {partner.name}",
            given=f"{loop.name} in {partner.name}: {loop.reason}",
            hint=f"do not unroll {loop.name} in {partner.name}",
        )
    if same is None:
        raise UnsupportedError(
            f"{passed.by.text} on {kernel.name}: {partner.name} is unrolled along {loop.name} and "
            f"{kernel.name} is not",
            location=passed.by.location,
            expected=f"{kernel.name} unrolled along {loop.name} as well",
            given=f"{loop.name} in {partner.name}: {loop.reason}",
            hint=f"write {kernel.name}.unroll({loop.name})",
        )
