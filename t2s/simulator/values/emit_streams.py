"""Ports of machines: how their code looks at the heads of channels, takes them and puts tokens.

The index maps of a machine's channels depend on its space indices only, so a port keeps to one
ring during a visit of a place, and its counters stay in registers.  See ``emit_ports`` for how
counters and limits work; tokens of nested streams have a tag (``layout.token_layout``).
"""

from __future__ import annotations

from t2s.core.types import INT32
from t2s.graph.graph import Channel
from t2s.simulator.emit.llvm import I32, I64, Value, integer
from t2s.simulator.emit.representation import (
    load_value,
    offset_by,
    store_value,
    token_alignment,
    zero,
)
from t2s.simulator.values.emit_context import NodeContext
from t2s.simulator.values.layout import token_layout


class StreamPort:
    """One side of a channel at a machine; the methods are called in the order below."""

    def __init__(self, context: NodeContext, channel: Channel, *, receives: bool) -> None:
        """At the entry of the function."""
        self.channel = channel
        self._context = context
        self._receives = receives
        self._token = token_layout(channel)
        builder, layout, name = context.builder, context.layout, channel.name
        self._rings = context.pointer(layout.ring(name))
        self._capacity = builder.load(context.address(layout.ring(name), 1), I64)
        self._mask = builder.sub(self._capacity, integer(1))
        heads, tails = layout.heads(name), layout.tails(name)
        self._own, self._other = (heads, tails) if receives else (tails, heads)
        self._counter: Value = builder.alloca(I64)
        self._element: Value
        self._limit: Value
        self._first: Value

    # -- once per visit of a place ------------------------------------------------------------

    def begin_visit(self) -> None:
        """Find the element, read its counters, and compute where its ring starts."""
        context, builder = self._context, self._context.builder
        index = self.channel.sink_index if self._receives else self.channel.source_index
        self._element, valid = context.locate(index, self.channel.shape)
        verb = "receives from" if self._receives else "sends to"
        context.require(valid, f"{context.node.name} {verb} no element of {self.channel.name}")
        own = builder.load(context.address(self._own, self._element), I64)
        other = builder.load(context.address(self._other, self._element), I64)
        builder.store(own, self._counter)
        self._limit = other if self._receives else builder.add(other, self._capacity)
        first = builder.mul(self._element, self._capacity, "nsw")
        self._first = offset_by(builder, self._rings, context.scaled(first, self._token.stride))

    def allowance(self) -> Value:
        """How many tokens there are, or how much space, at the start of the visit."""
        return self._context.builder.sub(self._limit, self._own_counter())

    def end_visit(self) -> None:
        """Write the counter back."""
        context = self._context
        context.builder.store(self._own_counter(), context.address(self._own, self._element))

    # -- once per firing ----------------------------------------------------------------------

    def exhausted(self) -> Value:
        """Whether there is no token left (no space left)."""
        return self._context.builder.icmp_signed("==", self._own_counter(), self._limit)

    def head(self) -> tuple[Value, Value]:
        """The value and the tag of the next token; it stays where it is."""
        builder, element = self._context.builder, self.channel.stream.element
        slot = self._slot()
        value = load_value(
            builder, offset_by(builder, slot, self._token.value), element, self._alignment
        )
        if self.channel.stream.nesting == 0:
            return value, integer(0, I32)
        return value, load_value(builder, slot, INT32, INT32.bytes)

    def take(self, moves: Value | None = None) -> None:
        """Go on to the token after it, if ``moves`` holds."""
        builder = self._context.builder
        step = integer(1) if moves is None else builder.zext(moves, I64)
        builder.store(builder.add(self._own_counter(), step), self._counter)

    def put(self, value: Value | None, tag: Value | None, moves: Value | None = None) -> None:
        """Append a token, if ``moves`` holds; there has to be space for one in any case."""
        builder, element = self._context.builder, self.channel.stream.element
        slot = self._slot()
        if self.channel.stream.nesting:
            store_value(builder, integer(0, I32) if tag is None else tag, slot, INT32, INT32.bytes)
        store_value(
            builder,
            zero(element) if value is None else value,
            offset_by(builder, slot, self._token.value),
            element,
            self._alignment,
        )
        self.take(moves)

    @property
    def _alignment(self) -> int:
        element = self.channel.stream.element
        return element.scalar.bytes if self.channel.stream.nesting else token_alignment(element)

    def _own_counter(self) -> Value:
        return self._context.builder.load(self._counter, I64)

    def _slot(self) -> Value:
        context, builder = self._context, self._context.builder
        position = builder.and_(self._own_counter(), self._mask)
        return offset_by(builder, self._first, context.scaled(position, self._token.stride))
