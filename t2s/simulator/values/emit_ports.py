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
from t2s.core.types import Type
from t2s.graph.body import Receive, Send
from t2s.graph.graph import Channel
from t2s.simulator.emit.llvm import I64, Value, integer
from t2s.simulator.emit.representation import offset_by
from t2s.simulator.values.emit_context import NodeContext

UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
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


def port_of(context: NodeContext, statement: Receive | Send) -> Port:
    """The port that a statement of the node uses."""
    channel = context.graph.channel(statement.channel)
    receives = isinstance(statement, Receive)
    fixed = context.is_invariant(*(channel.sink_index if receives else channel.source_index))
    return Port(
        channel=channel,
        receives=receives,
        condition=statement.condition,
        fixed=fixed,
        batched=fixed and context.is_invariant(statement.condition),
    )


class PortEmitter:
    """Emits the code of one port of one node; the methods are called in the order below."""

    def __init__(self, context: NodeContext, port: Port) -> None:
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
