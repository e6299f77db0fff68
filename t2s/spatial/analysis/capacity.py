"""How many tokens channels have room for, unless the user says so.

Enough for one token in every cycle; and where one end serves the elements of a channel array in
turn, or sends many tokens in a row, as many as keep PEs from waiting for one another.

**Operands along a reduction in space never block.**  PE p hands its sum of element m to PE p + 1 in
its firing s(m), and PE p + 1 takes it in its firing r(m) <= s(m): in between lie the other steps of
the reduction loops in time inside of the loop in space.  An operand that PEs pass on is sent in
firing n of PE p and taken in firing n of PE p + 1.  So with a channel of c tokens

* (p + 1, n) comes after (p, n), and (p + 1, r(m)) after (p, s(m)),
* (p, n) comes after (p + 1, n - c): there is no room before.

Let g(n) be the largest of n and all s(m) with r(m) <= n, and L the largest of all s(m) - r(m),
which ``_lags`` gives: g never decreases, and n <= g(n) <= n + L.  Take the firings of the first PE
in their order, and insert, PE by PE, firing n of PE p + 1 right behind firing g(n) of PE p.  Then
the first two rules hold, and the third one if g(n - c) < n, which c = L + 1 grants: there is an
order that meets all rules, so that nothing blocks, whatever the hops of the sums hold (sums are
sent in the order in which they are taken).  Further dimensions of space change nothing: a firing of
PE p stands for those of all PEs beside it, which take the same operands in the same firings.  With
a reduction in space inside of another one, a firing of the outer chain stands for the inner chain,
whose last PE is at most the inner chain's own lag behind its first, so that this is added to L.  A
reduction loop in time around the chain, whose sums go back to the first PE, cuts the order into
pieces, one for each iteration, of which each is as above.  A channel takes one cycle, so that two
tokens more than L, or as many as the default, keep every PE busy in every cycle.
"""

from __future__ import annotations

from math import prod

from t2s.core.errors import UserError
from t2s.core.expr import Expr, index_names
from t2s.spatial.analysis.depths import LARGEST
from t2s.spatial.analysis.token_order import drains
from t2s.spatial.directive import DEFAULT_CAPACITY, SKEW
from t2s.spatial.ir import Kernel, LoopKind, SpatialProgram
from t2s.spatial.operands import Operand


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
    waiting = 1 if consumer.gathering is None else _backlog(producer, consumer)
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
        pending += [program.sender(o) for o in kernel.operands if o.taken is None]
    return False


def hop_capacity(kernel: Kernel, operand: Operand, position: int) -> int:
    """Room in the channels from PE to PE along a loop of ``operand.forwards``, as asked or needed.

    In a recurrence the operand waits for values that take longer than it does.
    """
    asked = operand.hops[position].capacity
    if asked is not None:
        return asked
    if kernel.members:
        return DEFAULT_CAPACITY + SKEW
    name = operand.hops[position].loop
    lag = _lags(kernel).get(name, 0)
    if lag + DEFAULT_CAPACITY > LARGEST:
        raise UserError(
            f"forward({operand.producer}, {name}) on {kernel.name}: PEs along {name} start {lag} "
            "firings one after the other",
            location=kernel.location,
            expected=f"at most {LARGEST} values in a channel",
            given=f"the loops of the reduction inside of {name}, in the order "
            f"{', '.join(loop.name for loop in kernel.loops)}",
            hint="put loops of the reduction outside, or ask for the room: "
            f"forward(..., {name}, depth={lag + DEFAULT_CAPACITY})",
        )
    return DEFAULT_CAPACITY + lag


def _lags(kernel: Kernel) -> dict[str, int]:
    """Firings by which a PE of a reduction starts after the one before, by loop in space.

    A partial result moves on to the next PE after the last step of the reduction loops in time
    inside of the loop in space, and after the last PE of those in space.
    """
    if kernel.initial is None:
        return {}
    lags: dict[str, int] = {}
    total, steps = 0, 0
    inside = 1
    for loop in reversed(kernel.loops):
        if loop.kind is LoopKind.SERIAL:
            extent = kernel.longest(loop)
            steps += (extent - 1) * inside if loop.reduction else 0
            inside *= extent
        elif loop.kind is LoopKind.UNROLLED and loop.reduction:
            lags[loop.name] = steps + total
            total += (kernel.longest(loop) - 1) * (steps + total)
    return lags


def _lag(kernel: Kernel) -> int:
    """Firings by which the last PE of a reduction in space starts after the first."""
    lags = _lags(kernel)
    return sum(
        (kernel.longest(loop) - 1) * lags[loop.name] for loop in kernel.loops if loop.name in lags
    )
