"""Following values backwards: from a receive to the load, or the computation, that made the token.

Channels are in order and control is static, so token number ``n`` of an element is what its sender
sent in the ``n``-th of the firings in which it sends; ``digits`` says which firing that is.  What
is sent may have been received or read from a register file itself, and so on, to an element of a
tensor.  Where the value is computed, or has no simple form, the channel is **kept**: its sender
runs and leaves all tokens in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from t2s.core.expr import Broadcast, Const, Expr, Insert, Local, Select
from t2s.core.walk import Term
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.graph import TensorRole
from t2s.graph.nodes import PEArray
from t2s.simulator.values.layout import ALIGNMENT
from t2s.simulator.values.nests.digits import (
    Numbers,
    Opaque,
    Product,
    normalized,
    picked,
    positions,
    size,
    spread,
)
from t2s.simulator.values.nests.network import End, Place, TracedNetwork, TracedPE, longest
from t2s.simulator.values.nests.references import (
    Reference,
    StreamSource,
    TensorSource,
    inserted,
    merged,
    regroup,
    zeros,
)
from t2s.simulator.values.nests.registers import last_writer


class Again(Exception):
    """A channel turned out to be kept after values were followed through it."""


class Tracer:
    """Follows values through the PEs of a network.

    ``order`` lists the PEs, senders first.  ``kept`` are the channels whose tokens are in memory,
    and grows; tracing starts anew, with ``Again``, if a channel was taken for one that is not.
    ``recorded`` are those of them that rings fill.
    """

    def __init__(
        self, network: TracedNetwork, order: Sequence[Place], kept: set[str], recorded: set[str]
    ) -> None:
        self.network = network
        self.kept = kept
        self._recorded = recorded
        self._pitches: dict[str, int] = {}
        self._rank = {place: rank for rank, place in enumerate(order)}
        self._begun: set[str] = set()
        self._streams: dict[End, tuple[tuple[int, ...], Reference]] = {}
        self._bound: dict[str, dict[str, Statement]] = {}

    def resolve(self, pe: TracedPE, expr: Expr, points: Product) -> Reference:
        """What an expression is in these iterations; ``Opaque`` if it is not in memory."""
        match expr:
            case Local(name=name):
                return self.local(pe, name, points)
            case Select():
                return self._select(pe, expr, points)
            case Insert(vector=vector, lane=lane, value=value):
                digit, number = pe.frame.single(lane, pe.known)
                if digit is not None:
                    raise Opaque
                base = self.resolve(pe, vector, points)
                return inserted(base, int(number), self.resolve(pe, value, points))
            case Const() | Broadcast(value=Const()) if _is_zero(expr):
                return zeros(expr.type.lanes, points)
        raise Opaque

    def tokens(self, end: End, wanted: tuple[int, ...]) -> Reference:
        """The tokens of an element of a channel, numbered in the mixed radix ``wanted``."""
        if end[0] not in self.kept:
            for earlier in self._ends_before(end):
                self._follow(earlier)
            self._follow(end)
        if end[0] not in self.kept:
            lengths, token = self._streams[end]
            if lengths == wanted:
                return token
            try:
                more, tables = regroup(lengths, token.tables, wanted)
            except Opaque:
                self.keep(end[0])
            else:
                return replace(token, base=token.base + more, tables=tables)
        return self._kept_tokens(end, wanted)

    def _follow(self, end: End) -> None:
        """Find the tokens of an end, or keep its channel."""
        if end in self._streams or end[0] in self.kept:
            return
        try:
            found = self._passed_stream(end)
        except Opaque:
            self.keep(end[0])
        if end[0] not in self.kept:
            self._streams[end] = found

    def _ends_before(self, end: End) -> list[End]:
        """From PE to PE along a node: all ends, senders first, so that none waits for many."""
        channel = self.network.graph.channel(end[0])
        if channel.source != channel.sink or end in self._streams or end[0] in self._begun:
            return []
        self._begun.add(end[0])
        ends = [other for other in self.network.sender if other[0] == end[0]]
        return sorted(ends, key=lambda other: self._rank.get(self.network.sender[other], 0))

    def keep(self, channel: str) -> None:
        """Let the tokens of a channel stay in memory."""
        self.kept.add(channel)
        if any(end[0] == channel for end in self._streams):
            raise Again

    def pitch(self, channel: str) -> int:
        """Scalars from one row of a kept channel to the next.

        Rings have a power of two of tokens.  Elsewhere rows are a cache line apart, so that those
        of all PEs do not share the same few lines of the cache.
        """
        if channel not in self._pitches:
            element = self.network.graph.channel(channel).stream.element
            count = max(1, longest(self.network, channel))
            if channel in self._recorded:
                pitch = (1 << (count - 1).bit_length()) * element.lanes
            else:
                line = ALIGNMENT // element.scalar.bytes
                pitch = (-(-count * element.lanes // line) + 1) * line
            self._pitches[channel] = pitch
        return self._pitches[channel]

    def _kept_tokens(self, end: End, wanted: tuple[int, ...]) -> Reference:
        lanes = self.network.graph.channel(end[0]).stream.element.lanes
        count = self.network.received[end]
        if self.network.sent.get(end, count) < count or prod(wanted) != count:
            raise Opaque
        steps = (lanes * prod(wanted[at + 1 :]) for at in range(len(wanted)))
        return Reference(
            source=StreamSource(channel=end[0]),
            base=end[1] * self.pitch(end[0]),
            tables=tuple(np.arange(n) * step for n, step in zip(wanted, steps, strict=True)),
            lanes=tuple(range(lanes)),
        )

    def _passed_stream(self, end: End) -> tuple[tuple[int, ...], Reference]:
        if end not in self.network.sender:
            raise Opaque
        pe = self.network.pes[self.network.sender[end]]
        send = next(s for s in pe.node.body if isinstance(s, Send) and s.channel == end[0])
        points = pe.points(send.condition)
        found = self.resolve(pe, send.value, points)
        return tuple(len(values) for values in points), found

    def local(self, pe: TracedPE, name: str, points: Product) -> Reference:
        match self._binding(pe.node, name):
            case Let(value=value):
                return self.resolve(pe, value, points)
            case Receive() as receive:
                return self._received(pe, receive, points)
            case Load() as load:
                return self._loaded(pe, load, points)
            case RegisterRead() as read:
                return self._read(pe, read, points)
        raise Opaque

    def _received(self, pe: TracedPE, receive: Receive, points: Product) -> Reference:
        arriving = pe.points(receive.condition)
        channel = self.network.graph.channel(receive.channel)
        if not size(arriving):
            return zeros(receive.type.lanes, points)
        chosen = [positions(within, of) for within, of in zip(arriving, points, strict=True)]
        end = self.network.end(pe, channel, channel.sink_index)
        token = self.tokens(end, tuple(len(values) for values in arriving))
        if all(at is None for at in chosen):
            return token
        here = tuple(picked(table, at) for table, at in zip(token.tables, chosen, strict=True))
        return replace(token, tables=here)

    def _loaded(self, pe: TracedPE, load: Load, points: Product) -> Reference:
        tensor = self.network.graph.tensor(load.tensor)
        if tensor.role is not TensorRole.INPUT:
            raise Opaque
        for within, of in zip(pe.points(load.condition), points, strict=True):
            positions(within, of)
        base, tables = 0, {number: np.zeros(len(v), np.int64) for number, v in enumerate(points)}
        for at, index in enumerate(load.indices):
            scale = prod(tensor.allocated[at + 1 :])
            total = pe.frame.sum(index, pe.known)
            low = high = total.base
            base += scale * total.base
            for digit, table in total.tables.items():
                here = picked(table, positions(pe.frame.all[digit], points[digit]))
                tables[digit] = tables[digit] + scale * here
                low, high = low + int(here.min()), high + int(here.max())
            wide = load.type.lanes if at == len(load.indices) - 1 else 1
            if low < 0 or high + wide > tensor.allocated[at]:
                raise Opaque
        return Reference(
            source=TensorSource(tensor=load.tensor),
            base=base,
            tables=tuple(tables.values()),
            lanes=tuple(range(load.type.lanes)),
        )

    def _read(self, pe: TracedPE, read: RegisterRead, points: Product) -> Reference:
        body = pe.node.body
        writes = [s for s in body if isinstance(s, RegisterWrite) and s.register == read.register]
        if len(writes) != 1:
            raise Opaque
        write = writes[0]
        writing = pe.points(write.condition)
        origins = last_writer(
            pe.frame,
            pe.known,
            (write.indices, writing),
            (read.indices, points),
            written_first=body.index(write) < body.index(read),
        )
        value = self.resolve(pe, write.value, writing)
        base, tables = value.base, [np.zeros(len(values), np.int64) for values in points]
        for origin, table in zip(origins, value.tables, strict=True):
            if origin.digit is None:
                base += int(table[origin.positions[0]])
            else:
                tables[origin.digit] = tables[origin.digit] + table[origin.positions]
        return Reference(source=value.source, base=base, tables=tuple(tables), lanes=value.lanes)

    def _select(self, pe: TracedPE, select: Select, points: Product) -> Reference:
        digit, holds = pe.frame.single(select.condition, pe.known)
        if digit is None:
            return self.resolve(pe, select.if_true if holds else select.if_false, points)
        here = picked(np.asarray(holds), positions(pe.frame.all[digit], points[digit]))
        pieces: list[tuple[Numbers, Reference]] = []
        for chosen, side in ((here, select.if_true), (~here, select.if_false)):
            if chosen.any():
                values = points[digit][chosen]
                part = (*points[:digit], values, *points[digit + 1 :])
                pieces.append((values, self.resolve(pe, side, part)))
        return merged(pieces, digit, points)

    def _binding(self, node: PEArray, name: str) -> Statement | None:
        if node.name not in self._bound:
            self._bound[node.name] = bindings(node)
        return self._bound[node.name].get(name)


def bindings(node: PEArray) -> dict[str, Statement]:
    """The statement that binds each local of a body."""
    binding = Receive | Let | Load | RegisterRead
    return {s.target: s for s in node.body if isinstance(s, binding)}


def full(
    reference: Reference, points: Product, everything: Product
) -> tuple[int, dict[int, Numbers]]:
    """Base and tables over all values of the digits; 0 stands where nothing is defined."""
    base, tables = reference.base, {}
    for digit, (table, values) in enumerate(zip(reference.tables, points, strict=True)):
        at = normalized(0, {digit: table})
        base += at.base
        if at.tables:
            where = positions(everything[digit], values)
            tables[digit] = spread(at.tables[digit], where, len(everything[digit]))
    return base, tables


def _is_zero(expr: Term) -> bool:
    """Whether this is the number zero, not minus zero."""
    match expr:
        case Const(value=value):
            return not value and not str(value).startswith("-")
        case Broadcast(value=value):
            return _is_zero(value)
    return False
