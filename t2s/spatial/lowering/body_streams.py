"""Streams that PEs pass on: the values that are scattered among them, or gathered from them.

``digit`` is the PE whose token a firing handles.  A PE sees its own tokens and those of the PEs
behind it, seen from the end of the array that the stream enters or leaves at.
"""

from __future__ import annotations

from t2s.core.errors import InternalError
from t2s.core.expr import (
    Expr,
    Index,
    Insert,
    Local,
    Select,
    apply,
    conjunction,
    const,
    equals,
    simplify,
)
from t2s.core.ops import Op
from t2s.core.types import Type
from t2s.graph.body import Send
from t2s.graph.graph import Channel
from t2s.spatial.directive import DEFAULT_CAPACITY
from t2s.spatial.ir import Loop
from t2s.spatial.lowering.body_builder import Builder, broadcast, hop_channel, receive_from, send
from t2s.spatial.operands import Operand
from t2s.spatial.work import GatheredStream, PassedStream, ScatteredStream


def receive_scattered(
    builder: Builder, stream: ScatteredStream, digit: Expr, when: Expr | None
) -> tuple[Local, Expr]:
    """Receive the next token and pass it on unless it is the PE's own.

    ``when`` says which firings have a token at the first PE (``None``: all of all PEs).  Returns
    the token and the condition that it is the PE's own.
    """
    operand = builder.kernel.operands[0]
    loop, here = _along(builder, stream)
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    first, inside = _ends(loop, here, stream)
    passes = Op.LESS if stream.reverse else Op.GREATER
    reached = None
    if when is not None:
        at_least = Op.LESS_EQUAL if stream.reverse else Op.GREATER_EQUAL
        reached = apply(at_least, digit, here)
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
    further = conjunction(when, apply(passes, digit, here))
    builder.statements.append(Send(channel=hop.name, value=token, condition=further))
    return token, conjunction(when, equals(digit, here)) or equals(digit, here)


def scattered_body(builder: Builder, stream: ScatteredStream) -> None:
    """Send the PE's own tokens to the consumer, in the order of the stream."""
    digit = _digit(builder)
    token, own = receive_scattered(builder, stream, digit, None)
    send(builder, token, own)


def gathered_body(builder: Builder, stream: GatheredStream) -> None:
    """Send the PE's own results and those of the PEs behind it, in the order of the stream."""
    operand = builder.kernel.operands[0]
    loop, here = _along(builder, stream)
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    if builder.kernel.digit is None:
        _lanes_body(builder, operand, stream)
        return
    digit = _digit(builder)
    own = equals(digit, here)
    behind = apply(Op.LESS if stream.reverse else Op.GREATER, digit, here)
    hop = _hop(builder, operand, loop, element, reverse=not stream.reverse)
    mine = receive_from(builder, f"{operand.name}_own", channel, element, own)
    passed = receive_from(builder, f"{operand.name}_passed", hop.name, element, behind)
    token = builder.let(
        operand.name, Select(condition=own, if_true=mine, if_false=passed, type=element)
    )
    _leave(builder, token, hop, *_ends(loop, here, stream))


def _lanes_body(builder: Builder, operand: Operand, stream: GatheredStream) -> None:
    """Put the PE's own result into its lane of the vector that comes from the PE behind it."""
    loop, here = _along(builder, stream)
    channel = builder.links.incoming[operand.name]
    element = builder.links.types[channel].element
    lanes = loop.constant[1] if loop.constant is not None else 1
    mine = receive_from(builder, f"{operand.name}_own", channel, element, None)
    if lanes == 1:
        send(builder, mine, None)
        return
    vector = element.with_lanes(lanes)
    start = loop.minimum if stream.reverse else loop.last
    behind = apply(Op.GREATER if stream.reverse else Op.LESS, here, start)
    hop = _hop(builder, operand, loop, vector, reverse=not stream.reverse)
    passed = receive_from(builder, f"{operand.name}_passed", hop.name, vector, behind)
    nothing = broadcast(const(False if element.is_bool else 0, element), lanes)
    others = Select(condition=behind, if_true=passed, if_false=nothing, type=vector)
    lane = simplify(apply(Op.SUBTRACT, here, loop.minimum))
    token = builder.let(operand.name, Insert(vector=others, lane=lane, value=mine, type=vector))
    _leave(builder, token, hop, *_ends(loop, here, stream))


def _leave(builder: Builder, token: Local, hop: Channel, last: Expr, inside: Expr) -> None:
    """To the consumer from the PE where the stream leaves, from the others towards it."""
    builder.statements.append(Send(channel=hop.name, value=token, condition=inside))
    send(builder, token, last)


def _along(builder: Builder, stream: PassedStream) -> tuple[Loop, Index]:
    loop = builder.kernel.loop(stream.loop)
    if loop is None:
        raise InternalError(f"{builder.kernel.name} has lost {stream.loop}")
    return loop, Index(name=loop.name)


def _digit(builder: Builder) -> Index:
    if builder.kernel.digit is None:
        raise InternalError(f"{builder.kernel.name} does not follow a stream")
    return Index(name=builder.kernel.digit)


def _ends(loop: Loop, here: Expr, stream: PassedStream) -> tuple[Expr, Expr]:
    """The PE where the stream enters or leaves, and the others."""
    if stream.reverse:
        return equals(here, loop.last), apply(Op.LESS, here, loop.last)
    return equals(here, loop.minimum), apply(Op.GREATER, here, loop.minimum)


def _hop(
    builder: Builder, operand: Operand, loop: Loop, element: Type, *, reverse: bool
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
