"""How many tokens the channels between kernels have room for.

Enough for one token in every cycle; and where one end serves the elements of a channel array in
turn, or sends many tokens in a row, as many as keep PEs from waiting for one another.
"""

from __future__ import annotations

from math import prod

from t2s.core.expr import Expr, index_names
from t2s.spatial.directives import DEFAULT_CAPACITY
from t2s.spatial.ir import Kernel, LoopKind, SpatialProgram
from t2s.spatial.operands import Operand
from t2s.spatial.passes.streams import drains


def channel_capacity(
    program: SpatialProgram,
    producer: Kernel,
    consumer: Kernel,
    operand: Operand,
    source: tuple[Expr, ...],
    sink: tuple[Expr, ...],
    least: int,
) -> int:
    """Room for what one end sends or takes in a row while the other end needs all elements.

    An end that serves the elements of a channel array one after the other, with several tokens for
    each, would otherwise wait for PEs that wait for each other.  What is gathered needs room for
    the results that come in a row while the others have their turn, what comes in one stream for
    all PEs for as many tokens as the last PE starts later than the first.  ``source`` and ``sink``
    are the elements that the two ends use; ``least`` is what other parts of the design ask for.
    """
    if producer.capacity is not None:
        return producer.capacity
    pinned = frozenset(operand.pinned)
    sent = _burst(producer, source, pinned, once=drains(producer))
    taken = _burst(consumer, sink, pinned, once=operand.at_start)
    waiting = 1 if operand.gather is None else _backlog(producer, consumer)
    late = _lag(consumer) if _shares_stream(program, producer, consumer) else 0
    burst = max(sent, taken, waiting)
    return max(DEFAULT_CAPACITY, least, burst + 1 if burst > 1 else 1) + late


def _burst(kernel: Kernel, element: tuple[Expr, ...], pinned: frozenset[str], *, once: bool) -> int:
    """Most tokens for one element until a kernel, serving all in turn, has come round to it again.

    The loops that choose the element are those its position depends on.  Inside of the outermost
    of them, every other loop repeats the element.  ``once``: reductions make one token only, as
    ``pinned`` loops do.
    """
    chosen = frozenset[str]().union(*(index_names(position) for position in element))
    chosen |= frozenset([kernel.digit] if kernel.digit is not None else [])
    serial = kernel.kind(LoopKind.SERIAL)
    outermost = next((at for at, loop in enumerate(serial) if loop.name in chosen), len(serial))
    repeating = [
        loop
        for loop in serial[outermost + 1 :]
        if loop.name not in chosen and loop.name not in pinned and not (once and loop.reduction)
    ]
    return prod(kernel.longest(loop) for loop in repeating)


def _backlog(producer: Kernel, consumer: Kernel) -> int:
    """Most results that a reduction sends before those sent in a row have been gathered.

    Of ``count`` PEs that are gathered each sends one token in ``count`` firings.  Loops that make
    results faster than that let all of them wait.
    """
    stream = None if consumer.gathering is None else consumer.loop(consumer.gathering.loop)
    serial = producer.kind(LoopKind.SERIAL)
    reductions = [at for at, loop in enumerate(serial) if loop.reduction]
    if producer.initial is None or stream is None or not reductions:
        return 1
    count = 1 if consumer.digit is None else consumer.longest(stream)
    firings, results, waiting = 1, 1, 1
    for loop in reversed(serial[reductions[0] :]):
        extent = producer.longest(loop)
        if not loop.reduction:
            waiting *= extent if results * count > firings else 1
            results *= extent
        firings *= extent
    return waiting


def _shares_stream(program: SpatialProgram, producer: Kernel, consumer: Kernel) -> bool:
    """Whether PEs of a reduction get this operand from one stream, here or further upstream."""
    late = [x.definition for x in consumer.kind(LoopKind.UNROLLED) if x.reduction]
    pending = [producer] if consumer.initial is not None and late else []
    while pending:
        kernel = pending.pop()
        if any(loop.definition in late for loop in kernel.kind(LoopKind.SERIAL)):
            return True
        pending += [program.sender(o) for o in kernel.operands if o.taken_by is None]
    return False


def _lag(kernel: Kernel) -> int:
    """Firings by which the last PE of a reduction in space starts after the first.

    A partial result moves on to the next PE after the last step of the reduction loops in time
    inside of the loop in space.
    """
    total, steps = 0, 0
    inside = 1
    for loop in reversed(kernel.loops):
        if loop.kind is LoopKind.SERIAL:
            extent = kernel.longest(loop)
            steps += (extent - 1) * inside if loop.reduction else 0
            inside *= extent
        elif loop.kind is LoopKind.UNROLLED and loop.reduction:
            total += (kernel.longest(loop) - 1) * (steps + total)
    return total
