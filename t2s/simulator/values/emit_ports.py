"""Ports: how a node's code receives from and sends to the rings of a channel.

A ring belongs to one element of a channel array.  Its *own* counter is the one this side advances
(tokens received, or tokens sent); the *limit* is how far it may go.  Both sides of all channels
run in one thread, and limits only grow, so a limit that was read early is merely cautious: a PE
that sends to itself sees its own tokens when it is visited next.

A **batched** port uses one element in all firings of a PE, and either in every firing or in none.
How many firings it allows is known when the PE is visited: the loop over the firings checks
nothing and walks straight through the ring.  Other ports check in every firing; a **fixed** one
keeps to one element, so its counter stays in a register.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.expr import Expr
from t2s.core.types import INT32, Type
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Channel
from t2s.simulator.emit.llvm import I32, I64, Value, integer
from t2s.simulator.emit.representation import (
    load_value,
    offset_by,
    store_value,
    token_alignment,
    zero,
)
from t2s.simulator.values.emit_frame import NodeContext
from t2s.simulator.values.layout import token_layout

UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticPort:
    """One side of a channel: the only ``Receive`` or ``Send`` of a body that uses it."""

    channel: Channel
    receives: bool
    condition: Expr | None
    fixed: bool
    batched: bool

    @property
    def index(self) -> tuple[Expr, ...]:
        return self.channel.sink_index if self.receives else self.channel.source_index

    @property
    def element(self) -> Type:
        return self.channel.stream.element


def port_of(context: NodeContext, statement: Receive | Send) -> StaticPort:
    """The port that a statement of the node uses."""
    channel = context.graph.channel(statement.channel)
    receives = isinstance(statement, Receive)
    fixed = context.is_invariant(*(channel.sink_index if receives else channel.source_index))
    return StaticPort(
        channel=channel,
        receives=receives,
        condition=statement.condition,
        fixed=fixed,
        batched=fixed and context.is_invariant(statement.condition),
    )


class PortEmitter:
    """Emits the code of one port of one node; the methods are called in the order below."""

    def __init__(self, context: NodeContext, port: StaticPort) -> None:
        """At the entry of the function: load the ring table."""
        self.port = port
        self._context = context
        builder, layout, name = context.builder, context.layout, port.channel.name
        self._rings = context.pointer(layout.ring(name))
        self._capacity = builder.load(context.address(layout.ring(name), 1), I64)
        self._mask = builder.sub(self._capacity, integer(1))
        heads, tails = layout.heads(name), layout.tails(name)
        self._own, self._other = (heads, tails) if port.receives else (tails, heads)
        self._counter: Value
        if port.fixed:
            self._counter = builder.alloca(I64)
        self._limit: Value
        self._valid: Value
        self._slot: Value
        self.element: Value
        self.condition: Value | None = None
        """When the statement takes effect; ``None``: in every firing."""

    # -- once per visit of a PE ---------------------------------------------------------------

    def begin_visit(self) -> None:
        """Read the counters of a fixed element; evaluate a condition that does not change."""
        port, context = self.port, self._context
        if port.condition is not None and context.is_invariant(port.condition):
            self.condition = context.expressions.emit(port.condition)
        if port.fixed:
            own = self._open()
            context.builder.store(own, self._counter)
            if port.batched:
                self._slot = self._address(own)

    def allowance(self) -> tuple[Value, Value]:
        """Of a batched port: firings until tokens or space run out, and until the ring wraps."""
        builder = self._context.builder
        own = builder.load(self._counter, I64)
        available = builder.sub(self._limit, own)
        straight = builder.sub(self._capacity, builder.and_(own, self._mask))
        return self._if_used(available, UNLIMITED), self._if_used(straight, UNLIMITED)

    def misuse(self) -> Value:
        """Of a batched port: a fault's number if it uses an element that is not there, or 0."""
        context, builder = self._context, self._context.builder
        number = builder.select(self._valid, integer(0), context.fault(self._missing()))
        return self._if_used(number, 0)

    def end_visit(self, firings: Value) -> None:
        """Write the counter of a fixed element back, after this number of firings."""
        context, builder = self._context, self._context.builder
        if not self.port.fixed:
            return
        own = builder.load(self._counter, I64)
        if self.port.batched:
            own = builder.add(own, self._if_used(firings, 0))
        builder.store(own, context.address(self._own, self.element))

    # -- once per firing ----------------------------------------------------------------------

    def begin_firing(self) -> Value | None:
        """Whether this firing has to wait for the port; ``None`` if it is batched."""
        port, context, builder = self.port, self._context, self._context.builder
        if port.batched:
            return None
        if port.condition is not None and not context.is_invariant(port.condition):
            self.condition = context.expressions.emit(port.condition)
        if port.fixed:
            own = builder.load(self._counter, I64)
        else:
            own = self._open()
            self._counter = context.address(self._own, self.element)
        exhausted = builder.icmp_signed("==", own, self._limit)
        if self.condition is None:
            context.require(self._valid, self._missing())
            return exhausted
        unused = builder.not_(self.condition)
        context.require(builder.or_(unused, self._valid), self._missing())
        return builder.and_(self.condition, exhausted)

    def next_slot(self, firing: Value) -> Value:
        """The address of the token of the ``firing``-th firing of this visit."""
        context, builder = self._context, self._context.builder
        if self.port.batched:
            distance = context.scaled(firing, self.port.element.bytes)
            return offset_by(builder, self._slot, distance)
        own = builder.load(self._counter, I64)
        builder.store(builder.add(own, integer(1)), self._counter)
        return self._address(own)

    def _open(self) -> Value:
        """Find the element and its limit; returns its own counter.

        An index out of range is no mistake where the condition does not hold: element 0 stands in.
        """
        context, builder = self._context, self._context.builder
        flat, self._valid = context.locate(self.port.index, self.port.channel.shape)
        self.element = builder.select(self._valid, flat, integer(0))
        own = builder.load(context.address(self._own, self.element), I64)
        other = builder.load(context.address(self._other, self.element), I64)
        self._limit = other if self.port.receives else builder.add(other, self._capacity)
        return own

    def _address(self, counter: Value) -> Value:
        """Where the ring of the element holds token number ``counter``."""
        context, builder = self._context, self._context.builder
        first = builder.mul(self.element, self._capacity, "nsw")
        token = builder.add(first, builder.and_(counter, self._mask))
        return offset_by(builder, self._rings, context.scaled(token, self.port.element.bytes))

    def _if_used(self, value: Value, otherwise: int) -> Value:
        """``value`` where the condition of a batched port holds."""
        if self.condition is None:
            return value
        return self._context.builder.select(self.condition, value, integer(otherwise))

    def _missing(self) -> str:
        verb = "receives from" if self.port.receives else "sends to"
        return f"{self._context.node.name} {verb} no element of {self.port.channel.name}"


class StreamPort:
    """One side of a channel at a machine; the methods are called in the order below.

    It depends on space indices only, so it keeps to one ring during a visit of a place, and its
    counter stays in a register.  Tokens of nested streams have a tag (``layout.token_layout``).
    """

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

    @property
    def keeps_values(self) -> bool:
        """Whether a token has a value whatever its tag is."""
        return self.channel.stream.values_under_tags

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
