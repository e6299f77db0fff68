"""The bodies of relays that keep values in a buffer, and of those whose PEs pass a stream on.

**Streams** are scattered among the PEs, or gathered from them.  ``digit`` is the PE whose token a
firing handles.  A PE sees its own tokens and those of the PEs behind it, counted from the end of
the array at which the stream enters or leaves.

**A buffer** is filled and read by one counter.  The loops of the feeder are flattened into one
counter ``step``.  It counts periods, one for each iteration of the loops down to the buffer's, and
the position in the period.  A double buffer reads in the period after the one that filled it, from
the other bank, so filling is placed at the end of its period: the first values leave after W
cycles, not after a whole period.

With scattered values all PEs count alike.  A PE receives at the positions of its own values and of
those for the PEs behind it, keeps the former and passes the latter on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from t2s.core.errors import InternalError, UnsupportedError
from t2s.core.expr import (
    Expr,
    Index,
    Insert,
    Local,
    Select,
    all_hold,
    apply,
    conjunction,
    const,
    digits,
    equals,
    simplify,
    substitute,
)
from t2s.core.names import NameSupply
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.graph.body import Receive, RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Channel
from t2s.graph.nodes import Loop as GraphLoop
from t2s.graph.nodes import Register
from t2s.spatial.analysis.capacity import DEFAULT_CAPACITY
from t2s.spatial.analysis.token_order import fill_loops, scattered, split_at, trips
from t2s.spatial.ir import (
    GatheredStream,
    KernelOperand,
    LoopExecution,
    PassedStream,
    RelayBuffer,
    ScatteredStream,
    SpatialKernel,
    SpatialLoop,
)
from t2s.spatial.lowering.body_builder import (
    BodyBuilder,
    broadcast,
    hop_channel,
    receive_from,
    send,
)

_COUNTER_LIMIT = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferPlan:
    """The counter of a buffered feeder, and its conditions.

    ``filling`` and ``reading`` are conditions over the counter ``loop``; addresses and banks are
    zero-based.  ``sending`` gives the feeder's own loops, by name, while it reads, and ``digit``
    the PE that the arriving value is for, if values are scattered.
    """

    loop: GraphLoop
    shape: tuple[int, ...]
    filling: Expr
    write_address: tuple[Expr, ...]
    reading: Expr
    read_address: tuple[Expr, ...]
    sending: Mapping[str, Expr]
    digit: Expr | None


def plan_buffer(
    producer: SpatialKernel, kernel: SpatialKernel, sent: Expr | None, active: Expr | None
) -> BufferPlan:
    """Plan the counter for the single, buffered operand of a kernel.

    ``sent`` is the condition for iterations of the producer, over its loops, and ``active`` that
    for iterations of the kernel (``None``: all).
    """
    buffer = kernel.buffer
    if buffer is None:
        raise InternalError(f"{kernel.name} has no buffer")
    outer, inner = split_at(kernel, buffer.loop)
    fill = fill_loops(producer, kernel, outer)
    stream = scattered(kernel)
    stored = [loop for loop in fill if stream is None or loop.definition != stream.definition]
    periods, writes, reads = trips(outer), trips(fill), trips(inner)
    _check_counter(kernel, buffer, (periods + 1) * (writes + reads))
    name = NameSupply([loop.name for loop in kernel.loops]).fresh("step")
    count = Index(name=name)
    length = max(writes, reads) if buffer.double else writes + reads
    first = length - writes if buffer.double else 0
    last = periods * length + reads if buffer.double else periods * length
    period = simplify(count // length)
    position = simplify(count % length)
    if buffer.double:
        filling = _both(period < periods, position >= first)
        reading = _both(period >= 1, position < reads)
        write_at, read_at = _ahead(position, writes, length), position
        banks: tuple[int, ...] = (2,)
        write_bank: tuple[Expr, ...] = (simplify(period % 2),)
        other = period + 1
        read_bank: tuple[Expr, ...] = (simplify(other % 2),)
    else:
        filling, reading = position < writes, position >= writes
        write_at, read_at = position, _ahead(position, reads, length)
        banks, write_bank, read_bank = (), (), ()
    served = _ahead(period, periods - 1, periods) if buffer.double else period
    places = [*_digits(served, outer), *_digits(read_at, inner)]
    own = dict(zip((loop.name for loop in (*outer, *inner)), places, strict=True))
    read_digits = {loop.definition: own[loop.name] for loop in inner}
    write_digits = dict(
        zip((loop.definition for loop in fill), _digits(write_at, fill), strict=True)
    )
    sending = {loop.name: simplify(own[loop.name] + loop.minimum) for loop in (*outer, *inner)}
    if sent is not None:
        loops = (*producer.kind(LoopExecution.SERIAL)[: len(outer)], *fill)
        at = (*_digits(period, outer), *_digits(write_at, fill))
        filled = {
            loop.name: simplify(place + loop.minimum) for loop, place in zip(loops, at, strict=True)
        }
        filling = _both(filling, substitute(sent, filled))
    if active is not None:
        reading = _both(reading, substitute(active, sending))
    return BufferPlan(
        loop=GraphLoop(name=name, minimum=const(first), extent=const(last - first)),
        shape=(*banks, *(loop.fixed[1] for loop in stored)),
        filling=filling,
        write_address=(*write_bank, *(write_digits[loop.definition] for loop in stored)),
        reading=reading,
        read_address=(*read_bank, *(read_digits[loop.definition] for loop in stored)),
        sending=sending,
        digit=None if stream is None else _counted(write_digits.get(stream.definition), stream),
    )


def buffered_body(builder: BodyBuilder, plan: BufferPlan) -> None:
    """Receive into the buffer where the plan fills, send from it where the plan reads."""
    kernel = builder.kernel
    operand = kernel.operands[0]
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    builder.locals.fresh(plan.loop.name)
    register = builder.locals.fresh(f"{operand.source}_buffer")
    memory = builder.locals.fresh(operand.source)
    builder.registers.append(
        Register(
            name=register, type=element, shape=plan.shape, distance=1, location=kernel.location
        )
    )
    stream = kernel.scattering
    if stream is not None and plan.digit is not None:
        arriving, own = receive_scattered(builder, stream, plan.digit, plan.filling)
    else:
        target = builder.locals.fresh(f"{operand.source}_arriving")
        arriving, own = Local(name=target, type=element), plan.filling
        builder.statements.append(
            Receive(target=target, channel=channel, type=element, condition=plan.filling)
        )
    builder.statements += [
        RegisterWrite(register=register, indices=plan.write_address, value=arriving, condition=own),
        RegisterRead(target=memory, register=register, indices=plan.read_address, type=element),
    ]
    send(builder, Local(name=memory, type=element), plan.reading)


def _check_counter(kernel: SpatialKernel, buffer: RelayBuffer, steps: int) -> None:
    if steps < _COUNTER_LIMIT:
        return
    raise UnsupportedError(
        f"{buffer.by.text} on {kernel.name}: {kernel.name} would count to {steps}",
        location=buffer.by.location,
        expected=f"fewer than {_COUNTER_LIMIT} steps, so that an int can count them",
        hint="use smaller arrays; the numbers of a steady state do not change",
    )


def _counted(position: Expr | None, loop: SpatialLoop) -> Expr:
    """The value of a loop at a position; a loop of one iteration is not counted."""
    return loop.minimum if position is None else simplify(position + loop.minimum)


def _digits(flat: Expr, loops: Sequence[SpatialLoop]) -> tuple[Expr, ...]:
    """The position of each loop, from 0, when ``flat`` counts their iterations."""
    return digits(flat, [loop.fixed[1] for loop in loops])


def _ahead(position: Expr, number: int, length: int) -> Expr:
    """The position ``number`` steps later, modulo the period: never negative."""
    if number == length:
        return position
    return simplify((position + number) % length)


def _both(left: Expr, right: Expr) -> Expr:
    both = conjunction(left, right)
    return both if both is not None else left


def receive_scattered(
    builder: BodyBuilder, stream: ScatteredStream, digit: Expr, when: Expr | None
) -> tuple[Local, Expr]:
    """Receive the next token and pass it on unless it is the PE's own.

    ``when`` says which firings have a token at the first PE (``None``: all of all PEs).  Returns
    the token and the condition that it is the PE's own.
    """
    operand = builder.kernel.operands[0]
    loop, own = _along(builder, stream)
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    first, inside = _ends(loop, own, stream)
    passes = Op.LESS if stream.reverse else Op.GREATER
    reached = None
    if when is not None:
        at_least = Op.LESS_EQUAL if stream.reverse else Op.GREATER_EQUAL
        reached = apply(at_least, digit, own)
    hop = _hop(builder, operand, loop, element, reverse=stream.reverse)
    entering = receive_from(
        builder, f"{operand.name}_entering", channel, element, conjunction(when, first)
    )
    passed = receive_from(
        builder, f"{operand.name}_passed", hop.name, element, conjunction(when, inside, reached)
    )
    token = builder.let(
        operand.name, Select(condition=first, if_true=entering, if_false=passed, type=element)
    )
    further = conjunction(when, apply(passes, digit, own))
    builder.statements.append(Send(channel=hop.name, value=token, condition=further))
    return token, all_hold(when, equals(digit, own))


def scattered_body(builder: BodyBuilder, stream: ScatteredStream) -> None:
    """Send the PE's own tokens to the consumer, in the order of the stream."""
    digit = _digit(builder)
    token, own = receive_scattered(builder, stream, digit, None)
    send(builder, token, own)


def gathered_body(builder: BodyBuilder, stream: GatheredStream) -> None:
    """Send the PE's own results and those of the PEs behind it, in the order of the stream."""
    operand = builder.kernel.operands[0]
    loop, own_position = _along(builder, stream)
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    if builder.kernel.digit is None:
        _lanes_body(builder, operand, stream)
        return
    digit = _digit(builder)
    own = equals(digit, own_position)
    behind = apply(Op.LESS if stream.reverse else Op.GREATER, digit, own_position)
    hop = _hop(builder, operand, loop, element, reverse=not stream.reverse)
    mine = receive_from(builder, f"{operand.name}_own", channel, element, own)
    passed = receive_from(builder, f"{operand.name}_passed", hop.name, element, behind)
    token = builder.let(
        operand.name, Select(condition=own, if_true=mine, if_false=passed, type=element)
    )
    _leave(builder, token, hop, *_ends(loop, own_position, stream))


def _lanes_body(builder: BodyBuilder, operand: KernelOperand, stream: GatheredStream) -> None:
    """Put the PE's own result into its lane of the vector from the PE behind it."""
    loop, own = _along(builder, stream)
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    lanes = loop.constant[1] if loop.constant is not None else 1
    mine = receive_from(builder, f"{operand.name}_own", channel, element, None)
    if lanes == 1:
        send(builder, mine, None)
        return
    vector = element.with_lanes(lanes)
    start = loop.minimum if stream.reverse else loop.last
    behind = apply(Op.GREATER if stream.reverse else Op.LESS, own, start)
    hop = _hop(builder, operand, loop, vector, reverse=not stream.reverse)
    passed = receive_from(builder, f"{operand.name}_passed", hop.name, vector, behind)
    nothing = broadcast(const(False if element.is_bool else 0, element), lanes)
    others = Select(condition=behind, if_true=passed, if_false=nothing, type=vector)
    lane = simplify(own - loop.minimum)
    token = builder.let(operand.name, Insert(vector=others, lane=lane, value=mine, type=vector))
    _leave(builder, token, hop, *_ends(loop, own, stream))


def _leave(builder: BodyBuilder, token: Local, hop: Channel, last: Expr, inside: Expr) -> None:
    """Send to the consumer from the PE where the stream leaves, from all others towards it."""
    builder.statements.append(Send(channel=hop.name, value=token, condition=inside))
    send(builder, token, last)


def _along(builder: BodyBuilder, stream: PassedStream) -> tuple[SpatialLoop, Index]:
    loop = builder.kernel.loop(stream.loop)
    if loop is None:
        raise InternalError(f"{builder.kernel.name} has lost {stream.loop}")
    return loop, Index(name=loop.name)


def _digit(builder: BodyBuilder) -> Index:
    if builder.kernel.digit is None:
        raise InternalError(f"{builder.kernel.name} does not follow a stream")
    return Index(name=builder.kernel.digit)


def _ends(loop: SpatialLoop, own: Expr, stream: PassedStream) -> tuple[Expr, Expr]:
    """The PE where the stream enters or leaves, and the others."""
    if stream.reverse:
        return equals(own, loop.last), own < loop.last
    return equals(own, loop.minimum), own > loop.minimum


def _hop(
    builder: BodyBuilder, operand: KernelOperand, loop: SpatialLoop, element: Type, *, reverse: bool
) -> Channel:
    return hop_channel(
        builder,
        f"{operand.source}_along_{loop.name}",
        element,
        loop,
        frozenset(),
        DEFAULT_CAPACITY,
        reverse=reverse,
    )
