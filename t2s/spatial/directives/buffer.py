"""``buffer``: a feeder keeps one iteration of a loop on chip and sends from there.

Before -> after, for a feeder whose producer has removed ``j``::

    A_feeder.buffer(A_loader, k)
        for k: for i: for j: receive, send   ->   for k: fill a buffer (i), and meanwhile
                                                         for i: for j: send from the other one

The buffer is filled once for each iteration of the loop, in the order of the producer, and read in
the order of the consumer.  A double buffer fills one half while the other is read: with W arriving
values and R reads in each iteration it sends in every cycle, after W cycles at the start.  A single
buffer fills and then sends, in W + R cycles.  Every value that is written is read at least once, so
R >= W and the filling of a double buffer is hidden, unless the values are scattered: then those of
all PEs arrive at the first one, and where W > R the feeder waits W - R cycles, with a warning.

**Implicit feeders**: ``buffer`` and ``scatter`` on a function that computes create a feeder; here
for a function that takes A and B from loaders::

    C.buffer(A_loader, k).buffer(B_loader, k)
        A_loader -> C <- B_loader   ->   A_loader -> C_A_feeder -> C <- C_B_feeder <- B_loader

The feeder has the loops of the function except those along which values are forwarded or do not
vary, and holds the buffer or the stream.  The result is the same as that of isolating a chain with
a feeder in it; a function may have one for each of its operands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.core.expr import Local
from t2s.core.names import NameSupply
from t2s.spatial.analysis.lookup import constant_bounds, find_serial, varies
from t2s.spatial.directive import Directive
from t2s.spatial.directives.host import check_operand_on_device
from t2s.spatial.directives.isolate import inherited
from t2s.spatial.ir import (
    Calculation,
    KernelOperand,
    LoopExecution,
    Relay,
    RelayBuffer,
    SpatialKernel,
    SpatialProgram,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer(Directive):
    """A feeder keeps what ``operand`` sends during one iteration of ``loop`` on chip."""

    operand: str
    loop: str
    double: bool


def buffer(program: SpatialProgram, name: str, directive: Buffer) -> SpatialProgram:
    """Record the buffer on the kernel; it is checked when the design is complete."""
    program, name = with_feeder(program, name, directive.operand, directive)
    kernel = program.kernel(name)
    if not isinstance(kernel.work, Relay):
        raise UserError(
            f"{directive.text} on {name}: {directive.operand} does not feed {name}",
            location=directive.location,
            expected="a function with a loader, or a feeder between the two",
            hint=f"isolate it first, as in {kernel.name}.isolate_producer(A, A_loader)",
        )
    operand = kernel.operands[0]
    if directive.operand not in (operand.producer, operand.source) or operand.is_result:
        raise UserError(
            f"{directive.text} on {name}: {directive.operand} does not feed {name}",
            location=directive.location,
            expected=f"buffer({operand.producer}, ...)",
            given=directive.operand,
        )
    check_operand_on_device(program, kernel, operand, directive)
    if operand.condition is not None:
        raise UserError(
            f"{directive.text} on {name}: {operand.source} is not needed in every iteration",
            location=directive.location,
            expected="an operand without a condition",
            hint="load it unconditionally: move the access out of the select",
        )
    find_serial(kernel, directive.loop, directive)
    for other in kernel.kind(LoopExecution.SERIAL):
        constant_bounds(kernel, other, directive)
    memory = RelayBuffer(loop=directive.loop, double=directive.double, by=directive)
    return program.with_kernel(replace(kernel, work=replace(kernel.work, buffer=memory)))


def with_feeder(
    program: SpatialProgram, name: str, wanted: str, directive: Directive
) -> tuple[SpatialProgram, str]:
    """The program, and the kernel that a directive about the operand ``wanted`` applies to.

    If the named function computes with the operand that is a feeder, else the function itself.
    """
    kernel = program.kernel(name)
    if not isinstance(kernel.work, Calculation):
        return program, name
    for operand in kernel.operands:
        producer = program.kernel(operand.producer)
        inserted = isinstance(producer.work, Relay) and producer.work.inserted
        if inserted and wanted in (
            operand.source,
            producer.operands[0].producer,
        ):
            return program, producer.name
    for operand in kernel.operands:
        fed = not operand.is_result and operand.taken is None
        if fed and wanted in (operand.source, operand.producer):
            return _inserted(program, kernel, operand, directive)
    return program, name


def _inserted(
    program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand, directive: Directive
) -> tuple[SpatialProgram, str]:
    names = NameSupply(other.name for other in program.kernels)
    feeder = _feeder(kernel, operand, names.fresh(f"{kernel.name}_{operand.source}_feeder"))
    feeder = replace(feeder, location=directive.location)
    taken = replace(operand, producer=feeder.name, removal=None)
    program = program.with_kernel(kernel.with_operand(operand, taken))
    return program.with_before(kernel.name, feeder), feeder.name


def _feeder(kernel: SpatialKernel, operand: KernelOperand, name: str) -> SpatialKernel:
    dropped = {loop.name for loop in kernel.loops if operand.at_start and loop.reduction}
    dropped |= {*operand.forwards, *operand.pinned}
    vector = kernel.vector_loop
    if vector is not None and not varies(kernel, operand.access, vector.name):
        dropped.add(vector.name)
    domain = tuple(d for d in kernel.domain if not (operand.at_start and d.reduction))
    narrowed = kernel.without(frozenset(dropped))
    known = {dimension.name for dimension in domain}
    arriving = replace(
        operand, name=operand.source, at_start=False, pinned=(), hops=(), neighbors=()
    )
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
