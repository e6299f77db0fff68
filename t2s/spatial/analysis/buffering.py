"""What fills a buffer and what is read from it, and proof that it restores its stream."""

from __future__ import annotations

from math import prod

from t2s.core.errors import UserError, warn
from t2s.spatial.ir import SpatialKernel, SpatialProgram
from t2s.spatial.loop_nest import LoopExecution, SpatialLoop
from t2s.spatial.operands import KernelOperand, Removal
from t2s.spatial.work import RelayBuffer


def split_at(
    kernel: SpatialKernel, name: str
) -> tuple[tuple[SpatialLoop, ...], tuple[SpatialLoop, ...]]:
    """The serial loops down to and with the named one, and those inside of it."""
    serial = kernel.kind(LoopExecution.SERIAL)
    position = [loop.name for loop in serial].index(name) + 1
    return serial[:position], serial[position:]


def fill_loops(
    producer: SpatialKernel, consumer: SpatialKernel, outer: tuple[SpatialLoop, ...]
) -> tuple[SpatialLoop, ...]:
    """The producer's loops over the values that arrive for one iteration of the buffer's loop.

    One PE of the consumer keeps all of them, or its share of what is scattered.
    """
    known = [loop.definition for loop in outer]
    digit = scattered(consumer)
    known += [
        loop.definition for loop in consumer.kind(LoopExecution.UNROLLED) if loop is not digit
    ]
    return tuple(
        loop for loop in producer.kind(LoopExecution.SERIAL) if loop.definition not in known
    )


def scattered(kernel: SpatialKernel) -> SpatialLoop | None:
    """The loop along which the kernel scatters what it receives, if it does."""
    stream = kernel.scattering
    return None if stream is None else kernel.loop(stream.loop)


def trips(loops: tuple[SpatialLoop, ...]) -> int:
    """Iterations of loops with constant bounds."""
    return prod(loop.constant[1] for loop in loops if loop.constant is not None)


def check_buffers(program: SpatialProgram) -> None:
    """Every removed loop has a buffer that replaces it, and every buffer restores its stream."""
    for kernel in program.kernels:
        for operand in kernel.operands:
            producer = program.sender(operand)
            check_buffer(producer, kernel, operand)
            if kernel.buffer is not None and kernel.buffer.double:
                _warn_if_slow(producer, kernel, kernel.buffer)


def _warn_if_slow(producer: SpatialKernel, kernel: SpatialKernel, buffer: RelayBuffer) -> None:
    """Filling takes longer than sending: possible only for what is scattered."""
    outer, inner = split_at(kernel, buffer.loop)
    writes, reads = trips(fill_loops(producer, kernel, outer)), trips(inner)
    if writes <= reads:
        return
    warn(
        f"{buffer.by.text} on {kernel.name}: filling the buffer takes longer than sending from it",
        location=buffer.by.location,
        expected=f"at most {reads} values for all PEs in each iteration of {buffer.loop}, since "
        f"each PE sends {reads}",
        given=f"{writes} values from {producer.name}: {kernel.name} stalls for "
        f"{writes - reads} of {writes} cycles",
        hint=f"remove more loops from {producer.name}, buffer at a loop further out, or reuse each "
        "value more often",
    )


def check_buffer(producer: SpatialKernel, kernel: SpatialKernel, operand: KernelOperand) -> None:
    """What was removed from the producer of one operand is restored by its buffer."""
    if kernel.buffer is not None:
        _check_still_there(kernel, kernel.buffer)
    if operand.removal is not None and not producer.on_host:
        _check_removed(producer, kernel, operand.removal)
    if kernel.buffer is not None:
        _check_restored(producer, kernel, kernel.buffer)


def _check_still_there(kernel: SpatialKernel, buffer: RelayBuffer) -> None:
    """Later directives must have left the buffer's loop in time."""
    loop = kernel.loop(buffer.loop)
    if loop is not None and loop.kind is LoopExecution.SERIAL:
        return
    raise UserError(
        f"{buffer.by.text} on {kernel.name}: loop {buffer.loop} does not run in time any more",
        location=buffer.by.location,
        expected="a loop that stays as it is after buffer",
        given=loop.reason if loop is not None else f"{kernel.name} lost the loop",
        hint="transform, unroll and forward first, then buffer",
    )


def _check_removed(producer: SpatialKernel, consumer: SpatialKernel, removal: Removal) -> None:
    directive, buffer = removal.by, consumer.buffer
    still = [name for name in removal.loops if consumer.loop(name) is not None]
    if not still:
        return
    if buffer is None:
        raise UserError(
            f"{directive.text} on {producer.name}: {consumer.name} still needs every value "
            f"along {', '.join(still)}",
            location=directive.location,
            expected=f"a buffer in {consumer.name}",
            hint=f"write {consumer.name}.buffer({producer.name}, loop) with a loop outside of "
            f"{', '.join(still)}",
        )
    for loop in consumer.kind(LoopExecution.UNROLLED):
        if loop.name in still:
            raise UserError(
                f"{directive.text} on {producer.name}: {consumer.name} has a PE for each "
                f"{loop.name}",
                location=directive.location,
                expected=f"one PE of {consumer.name} for each stream of {producer.name}",
                given=f"{loop.name} in {consumer.name}: {loop.reason}",
                hint=f"keep {loop.name} in time in {consumer.name}, or do not remove it",
            )
    outer, _ = split_at(consumer, buffer.loop)
    for loop in outer:
        if loop.name in still:
            raise UserError(
                f"{buffer.by.text} on {consumer.name}: {loop.name} was removed from "
                f"{producer.name} and is not inside of {buffer.loop}",
                location=buffer.by.location,
                expected=f"a loop outside of {loop.name}",
                notes=((directive.location, f"{loop.name} was removed here"),),
                hint=f"loops of {consumer.name}, outermost first: "
                + ", ".join(other.name for other in consumer.kind(LoopExecution.SERIAL)),
            )


def _check_restored(producer: SpatialKernel, consumer: SpatialKernel, buffer: RelayBuffer) -> None:
    outer, inner = split_at(consumer, buffer.loop)
    fill = fill_loops(producer, consumer, outer)
    first = producer.kind(LoopExecution.SERIAL)[: len(outer)]
    same_outer = [loop.definition for loop in first] == [loop.definition for loop in outer]
    digit = scattered(consumer)
    reads = [loop.definition for loop in (*inner, *([] if digit is None else [digit]))]
    if not same_outer or any(loop.definition not in reads for loop in fill):
        raise UserError(
            f"{buffer.by.text} on {consumer.name}: {producer.name} does not fill the buffer once "
            f"for each iteration of {buffer.loop}",
            location=buffer.by.location,
            expected="the loops of " + _names(consumer) + ", less those that were removed",
            given="the loops of " + _names(producer),
            notes=((producer.location, f"{producer.name} was made here"),),
        )


def _names(kernel: SpatialKernel) -> str:
    loops = ", ".join(loop.name for loop in kernel.kind(LoopExecution.SERIAL))
    return f"{kernel.name} ({loops or 'none'})"
