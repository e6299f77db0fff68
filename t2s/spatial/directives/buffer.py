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
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2s.core.errors import UserError
from t2s.spatial.analysis.lookup import constant_bounds, find_serial
from t2s.spatial.directive import Directive
from t2s.spatial.directives.feeder import with_feeder
from t2s.spatial.directives.host import check_operand_on_device
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.loop_nest import LoopExecution
from t2s.spatial.work import Relay, RelayBuffer


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
    kept = RelayBuffer(loop=directive.loop, double=directive.double, by=directive)
    return program.with_kernel(replace(kernel, work=replace(kernel.work, buffer=kept)))
