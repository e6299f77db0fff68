"""Feeders that nobody isolated: ``buffer`` and ``scatter`` on a function that computes.

Before -> after, for a function that takes A and B from loaders::

    C.buffer(A_loader, k).buffer(B_loader, k)
        A_loader -> C <- B_loader   ->   A_loader -> C_A_feeder -> C <- C_B_feeder <- B_loader

The feeder has the loops of the function, less those along which values are forwarded or which the
operand does not need, and the buffer or the stream is in the feeder.  That is the same as isolating
a chain with a feeder in it; a function may have one for each of its operands.
"""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import Local
from t2s.core.names import NameSupply
from t2s.spatial.directive import Buffer, Scatter
from t2s.spatial.directives.isolate import inherited, varies
from t2s.spatial.ir import Kernel, SpatialProgram
from t2s.spatial.operands import Operand
from t2s.spatial.work import Calculation, Relay


def with_feeder(
    program: SpatialProgram, name: str, directive: Buffer | Scatter
) -> tuple[SpatialProgram, str]:
    """The program and the kernel in which the directive is carried out.

    That is a feeder for the operand if the named function computes with it, else the function.
    """
    kernel = program.kernel(name)
    if not isinstance(kernel.work, Calculation):
        return program, name
    for operand in kernel.operands:
        producer = program.kernel(operand.producer)
        made = isinstance(producer.work, Relay) and producer.work.inserted
        if made and directive.operand in (
            operand.source,
            producer.operands[0].producer,
        ):
            return program, producer.name
    for operand in kernel.operands:
        fed = not operand.is_result and operand.taken is None
        if fed and directive.operand in (operand.source, operand.producer):
            return _inserted(program, kernel, operand, directive)
    return program, name


def _inserted(
    program: SpatialProgram, kernel: Kernel, operand: Operand, directive: Buffer | Scatter
) -> tuple[SpatialProgram, str]:
    names = NameSupply(other.name for other in program.kernels)
    feeder = _feeder(kernel, operand, names.fresh(f"{kernel.name}_{operand.source}_feeder"))
    feeder = replace(feeder, location=directive.location)
    taken = replace(operand, producer=feeder.name, removal=None)
    program = program.with_kernel(kernel.with_operand(operand, taken))
    return program.with_before(kernel.name, feeder), feeder.name


def _feeder(kernel: Kernel, operand: Operand, name: str) -> Kernel:
    dropped = {loop.name for loop in kernel.loops if operand.at_start and loop.reduction}
    dropped |= {*operand.forwards, *operand.pinned}
    vector = kernel.vector_loop
    if vector is not None and not varies(kernel, operand.access, vector.name):
        dropped.add(vector.name)
    domain = tuple(d for d in kernel.domain if not (operand.at_start and d.reduction))
    narrowed = kernel.without(frozenset(dropped))
    known = {dimension.name for dimension in domain}
    arriving = replace(operand, name=operand.source, at_start=False, pinned=(), hops=())
    return replace(
        narrowed,
        name=name,
        domain=domain,
        loops=inherited(kernel.name, narrowed.loops),
        variables=tuple((v, expr) for v, expr in narrowed.variables if v in known),
        operands=(arriving,),
        work=Relay(value=Local(name=operand.source, type=operand.type), inserted=True),
        condition=operand.condition,
        capacity=None,
    )
