"""Functions on the host: the outer ends of chains, which order an array for the device's memory.

Before -> after::

    isolate_producer_chain(A, S, L)    C: ... A[i, k] ...  ->  S, on the host: for i: for k: put
    with S on the host                                            A[i, k] into memory, in this order
                                                               L: for i: for k: load what is next
    isolate_consumer_chain(U, D)       C: ... store C[i, j] -> U: receive, store what is next
    with D on the host                                         D, on the host: for i: for j: put
                                                                  what is next in memory to C[i, j]

A serializer that drops reuse loops (``remove``) puts every element once for each iteration that is
left; the loader then reads the array in memory again in each iteration of the dropped loops.
"""

from __future__ import annotations

from t2s.core.errors import UnsupportedError, UserError
from t2s.core.expr import Read, reads
from t2s.core.isl import is_affine
from t2s.core.printer import show
from t2s.spatial.analysis.occurrences import Occurrence
from t2s.spatial.directive import Directive, IsolateConsumer, IsolateProducer
from t2s.spatial.ir import KernelOperand, LoadUnit, SpatialKernel, SpatialProgram, StoreUnit


def check_serializer(
    program: SpatialProgram,
    kernel: SpatialKernel,
    occurrence: Occurrence,
    directive: IsolateProducer,
) -> None:
    """A host function can give ``occurrence`` to the chain of ``directive``."""
    serializer, *chain = directive.producers
    subject, value = f"{directive.text} on {kernel.name}", occurrence.value
    if not chain and not isinstance(kernel.work, LoadUnit):
        raise UserError(
            f"{subject}: nothing on the device loads what {serializer} puts into memory",
            location=directive.location,
            expected=f"a chain: isolate_producer_chain({directive.operand}, {serializer}, loader)",
        )
    inputs = {array.name for array in program.temporal.inputs}
    if not isinstance(value, Read) or value.source not in inputs:
        raise UnsupportedError(
            f"{subject}: {directive.operand} is computed by the device, and {serializer} is on the "
            "host",
            location=directive.location,
            expected="an element of an input",
            given=show(value),
            hint="only inputs are in the host's memory when the design starts",
        )
    if kernel.condition is not None or occurrence.condition is not None:
        raise UnsupportedError(
            f"{subject}: {show(value)} is not needed in every iteration",
            location=directive.location,
            expected="an operand without a condition",
            hint="the host puts a value into memory for every iteration: move the access out of "
            "the select, or load it on the device",
        )
    odd = next((index for index in value.indices if not is_affine(index)), None)
    if odd is not None:
        raise UnsupportedError(
            f"{subject}: the subscript {show(odd)} is not affine",
            location=directive.location,
            expected="sums of loops with constant factors, // and % by constants",
            given=show(value),
        )


def check_deserializer(
    program: SpatialProgram,
    name: str,
    kernel: SpatialKernel,
    function: str,
    directive: IsolateConsumer,
) -> None:
    """A host function can take the results of ``function`` from the chain of ``directive``.

    ``name`` is the kernel, or the member of a system, that the user applied the directive to.
    """
    *chain, deserializer = directive.consumers
    subject = f"{directive.text} on {name}"
    if not chain and not isinstance(kernel.work, StoreUnit):
        raise UserError(
            f"{subject}: nothing on the device stores what {deserializer} takes from memory",
            location=directive.location,
            expected=f"a chain: isolate_consumer_chain(unloader, {deserializer})",
        )
    output = function in program.temporal.outputs
    readers = _readers(program, function) if output else []
    if readers or not output:
        raise UnsupportedError(
            f"{subject}: {function} is read by the device, and {deserializer} is on the host",
            location=directive.location,
            expected="an output that no other function reads"
            if readers
            else f"an output: {', '.join(program.temporal.outputs)}",
            given=f"read by {', '.join(readers)}" if readers else None,
            hint="the host takes results from memory when the design has ended",
        )


def _readers(program: SpatialProgram, function: str) -> list[str]:
    """The other functions that read a function's array."""
    readers = {
        kernel.function
        for kernel in program.kernels
        for value in (kernel.value, *(member.value for member in kernel.members))
        if any(read.source == function for read in reads(value))
    }
    return sorted(readers - {function})


def check_directive_on_host(kernel: SpatialKernel, directive: Directive) -> None:
    """Refuse directives that a function on the host cannot have."""
    if not kernel.on_host or directive.may_be_on_host:
        return
    chain = isinstance(directive, IsolateProducer | IsolateConsumer)
    raise UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} runs on the host",
        location=directive.location,
        expected="the function at the outer end of its chain" if chain else "remove(loop, ...)",
        notes=((kernel.location, f"{kernel.name} was isolated here"),),
        hint="isolate from the functions on the device"
        if chain
        else "give the directive to a function on the device",
    )


def check_operand_on_device(
    program: SpatialProgram, kernel: SpatialKernel, operand: KernelOperand, directive: Directive
) -> None:
    """Refuse to pass on or buffer an operand on the host, where it comes from memory."""
    producer = program.kernel(operand.producer)
    if not producer.on_host:
        return
    raise UserError(
        f"{directive.text} on {kernel.name}: {kernel.name} loads from memory what {producer.name} "
        "puts there",
        location=directive.location,
        expected=f"a function behind {kernel.name} in the chain",
        hint=f"isolate one more function: a feeder that takes the values from {kernel.name}",
    )
