"""Proof that every channel delivers tokens in the order in which they are consumed.

Buffers may reorder: those are checked in ``passes/buffer.py``.  Streams that are scattered or
gathered have one order by construction (``passes/follow.py``).

A producer and a consumer may iterate differently, as long as every element of the channel array
carries its tokens in one order on both sides.  Where their nests are the same that is evident;
otherwise isl compares the two orders.
"""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.core.expr import Expr, equals
from t2s.core.isl import LoopDomain
from t2s.spatial.directives import Directive
from t2s.spatial.ir import Kernel, Loop, LoopKind, Operand, SpatialProgram


def stream_loops(producer: Kernel, consumer: Kernel, operand: Operand) -> tuple[Loop, ...]:
    """The consumer's loops (without lanes) that the tokens of an operand are indexed by."""
    return tuple(
        loop
        for loop in consumer.loops
        if loop.kind is not LoopKind.VECTOR
        and loop.name not in operand.forwards
        and loop.name not in operand.removed
        and not (operand.at_start and loop.reduction)
    )


def axes(producer: Kernel, consumer: Kernel, operand: Operand) -> tuple[Loop, ...]:
    """The dimensions of the channel array: loops that are space on either side."""
    result: list[Loop] = []
    gathered, scattered = producer.gathering, operand.scatter
    candidates = [
        *(
            loop
            for loop in stream_loops(producer, consumer, operand)
            if scattered is None or loop.name != scattered.loop
        ),
        *(
            loop
            for loop in producer.loops
            if not (loop.reduction and _drains(producer, operand))
            and (gathered is None or loop.name != gathered.loop)
        ),
    ]
    for loop in candidates:
        known = any(other.definition == loop.definition for other in result)
        if loop.kind is LoopKind.UNROLLED and not known:
            result.append(loop)
    return tuple(result)


def _drains(producer: Kernel, operand: Operand) -> bool:
    """Whether the operand is the final value of a reducing producer."""
    return producer.initial is not None and operand.access is None


def check_streams(program: SpatialProgram) -> None:
    """Raise ``UserError`` for a channel whose two ends disagree about the order of tokens."""
    for consumer in program.kernels:
        for operand in consumer.operands:
            producer = program.kernel(operand.producer)
            followed = operand.scatter is not None or producer.gathering is not None
            if operand.buffer is None and not followed:
                _check(producer, consumer, operand)


def _check(producer: Kernel, consumer: Kernel, operand: Operand) -> None:
    receiving = stream_loops(producer, consumer, operand)
    sending = tuple(
        loop
        for loop in producer.loops
        if loop.kind is not LoopKind.VECTOR and not (loop.reduction and _drains(producer, operand))
    )
    if [loop.definition for loop in receiving] == [loop.definition for loop in sending]:
        return
    elements = [loop.definition for loop in axes(producer, consumer, operand)]
    send_order = [loop.definition for loop in sending if loop.kind is LoopKind.SERIAL]
    receive_order = [loop.definition for loop in receiving if loop.kind is LoopKind.SERIAL]
    domain = LoopDomain(
        [dimension.interval for dimension in consumer.domain], _fixed(consumer, operand)
    )
    clash = domain.reverses([*elements, *send_order], [*elements, *receive_order])
    if clash is None:
        return
    point = ", ".join(f"{name}={value}" for name, value in clash.items())
    culprit, other = _culprit(producer, consumer), consumer
    if culprit is None:
        subject, location = "", consumer.location
    else:
        other = producer if culprit is consumer.reshaped else consumer
        reshaped = consumer if other is producer else producer
        own = reshaped.digit is None  # else it has the loops of what it takes from or sends to
        subject = f"{culprit.text} on {reshaped.name}: " if own else f"{culprit.text}: "
        location = culprit.location
    raise UserError(
        f"{subject}{producer.name} sends its values in another order than {consumer.name} takes "
        "them",
        location=location,
        expected=f"the order of {consumer.name}: {_order(receiving)}",
        given=f"the order of {producer.name}: {_order(sending)}; the value for {point} comes "
        "too early",
        hint=f"order the loops before isolating, or reorder {other.name} in the same way",
    )


def _culprit(producer: Kernel, consumer: Kernel) -> Directive | None:
    """The directive that made the two nests differ: only one of the kernels has it."""
    found = [k.reshaped for k in (producer, consumer) if producer.reshaped != consumer.reshaped]
    return next((directive for directive in found if directive is not None), None)


def _order(loops: tuple[Loop, ...]) -> str:
    return ", ".join(loop.name for loop in loops if loop.kind is LoopKind.SERIAL) or "one value"


def _fixed(consumer: Kernel, operand: Operand) -> list[Expr]:
    """One representative iteration for everything the tokens are not indexed by."""
    dropped = [
        loop
        for loop in consumer.loops
        if loop.kind is LoopKind.VECTOR
        or loop.name in operand.forwards
        or loop.name in operand.removed
        or (operand.at_start and loop.reduction)
    ]
    return [equals(loop.definition, loop.minimum) for loop in dropped]
