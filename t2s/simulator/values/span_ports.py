"""Ports of channels that carry spans: how machines take and put many tokens at once.

An entry of the ring of such a channel is a span, ``count`` tokens of one tag.  In a linear channel
their values are ``first``, ``first + step``, ...; in an array channel they lie in memory,
``stride`` bytes apart, from ``where`` on: an address, or a position in the data ring of the
channel.  A span is shortened in place as its tokens are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2s.core.types import INT32
from t2s.graph.graph import Channel
from t2s.llvm.expressions import load_value, offset_by, store_value, zero
from t2s.llvm.ir import I1, I32, I64, POINTER, Value, integer
from t2s.simulator.values.emit_frame import NodeContext, smaller
from t2s.simulator.values.layout import (
    ABSOLUTE,
    COUNT,
    FIRST,
    STEP,
    STRIDE,
    TAG,
    WHERE,
    Section,
    span_bytes,
)
from t2s.simulator.values.spans import Carried


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where values lie: ``stride`` bytes apart from an address."""

    address: Value
    stride: Value


class SpanPort:
    """One side of a channel that carries spans; it does what a ``StreamPort`` does, and more."""

    def __init__(self, context: NodeContext, channel: Channel, *, receives: bool) -> None:
        """At the entry of the function."""
        self.channel = channel
        self.form = context.layout.spans.carried[channel.name]
        self._context = context
        self._receives = receives
        self._type = channel.stream.element
        self._stride = span_bytes(self.form)
        builder, layout, name = context.builder, context.layout, channel.name
        self._rings = context.pointer(layout.ring(name))
        self._capacity = builder.load(context.address(layout.ring(name), 1), I64)
        self._mask = builder.sub(self._capacity, integer(1))
        self._counter: Value = builder.alloca(I64)
        self._moved: Value = builder.alloca(I64)
        self._end: Value = builder.alloca(I64)
        self._data: Value
        self._data_bytes: Value
        if self.form is Carried.ARRAY:
            self._data = context.pointer(layout.data(name))
            self._data_bytes = builder.load(context.address(layout.data(name), 1), I64)
        self._element: Value
        self._limit: Value
        self._data_limit: Value
        self._first: Value

    # -- once per visit of a place ------------------------------------------------------------

    def begin_visit(self) -> None:
        """Find the element, read its counters, and compute where its rings start."""
        context, builder = self._context, self._context.builder
        self._element = context.element_of(self.channel, receives=self._receives)
        own, other = (builder.load(self._at(s), I64) for s in self._ends(*self._of_spans))
        builder.store(own, self._counter)
        builder.store(integer(0), self._moved)
        self._limit = other if self._receives else builder.add(other, self._capacity)
        first = builder.mul(self._element, self._capacity, "nsw")
        self._first = offset_by(builder, self._rings, context.scaled(first, self._stride))
        if self.form is Carried.LINEAR:
            return
        own, other = (builder.load(self._at(s), I64) for s in self._ends(*self._of_data))
        builder.store(own, self._end)
        if not self._receives:
            self._data_limit = builder.add(other, self._data_bytes)
        start = builder.mul(self._element, self._data_bytes, "nsw")
        self._data_start = builder.offset(self._data, start)

    def room(self) -> Value:
        """The number of spans that there is space for, each with a value in the data ring."""
        builder = self._context.builder
        spans = builder.sub(self._limit, self._load(self._counter))
        if self.form is Carried.LINEAR:
            return spans
        free = builder.sub(self._data_limit, self._load(self._end))
        return smaller(builder, spans, builder.udiv(free, integer(self._type.bytes)))

    def end_visit(self) -> None:
        """Write the counters back."""
        builder = self._context.builder
        own, _ = self._ends(*self._of_spans)
        builder.store(self._load(self._counter), self._at(own))
        tokens, _ = self._ends(*self._of_tokens)
        total = builder.add(builder.load(self._at(tokens), I64), self._load(self._moved))
        builder.store(total, self._at(tokens))
        if self.form is Carried.ARRAY:
            data, _ = self._ends(*self._of_data)
            builder.store(self._load(self._end), self._at(data))

    # -- once per firing ----------------------------------------------------------------------

    @property
    def keeps_values(self) -> bool:
        """Whether a token has a value regardless of its tag."""
        return self.channel.stream.values_under_tags

    def exhausted(self) -> Value:
        """Whether spans have run out."""
        return self._context.builder.icmp_signed("==", self._load(self._counter), self._limit)

    def head(self) -> tuple[Value, Value]:
        """The value and the tag of the next token, which stays in the ring."""
        builder, tag = self._context.builder, self._word(self._slot(), TAG)
        if self.form is Carried.LINEAR:
            return self._word(self._slot(), FIRST), tag
        return load_value(builder, self.places().address, self._type, self._type.bytes), tag

    def take(self, moves: Value | None = None) -> None:
        """Remove the next token if ``moves`` holds."""
        builder = self._context.builder
        count = integer(1) if moves is None else builder.zext(moves, I64)
        self.take_many(count, moves)

    def put(self, value: Value | None, tag: Value | None, moves: Value | None = None) -> None:
        """Append a token if ``moves`` holds; there must be space for one in any case."""
        builder, type = self._context.builder, self._type
        value = zero(type) if value is None else value
        tag = integer(0, I32) if tag is None else tag
        if self.form is Carried.LINEAR:
            self._put(tag, integer(1), {FIRST: value, STEP: integer(0, I32)}, moves)
            return
        store_value(builder, value, self.free().address, type, type.bytes)
        self._put(tag, integer(1), self._in_ring(integer(type.bytes, I32)), moves)
        self._fill(integer(1) if moves is None else builder.zext(moves, I64))

    # -- once per burst -----------------------------------------------------------------------

    def left(self) -> Value:
        """The number of tokens in the next span."""
        return self._context.builder.zext(self._word(self._slot(), COUNT), I64)

    def line(self) -> tuple[Value, Value]:
        """The first value of the next span of a linear channel, and the step."""
        return self._word(self._slot(), FIRST), self._word(self._slot(), STEP)

    def places(self) -> Places:
        """Where the values of the next span of an array channel lie."""
        builder, slot = self._context.builder, self._slot()
        where = builder.load(offset_by(builder, slot, WHERE), I64, 8)
        absolute = builder.icmp_signed("!=", self._word(slot, ABSOLUTE), integer(0, I32))
        inside = builder.and_(where, builder.sub(self._data_bytes, integer(1)))
        start = builder.ptrtoint(self._data_start, I64)
        address = builder.select(absolute, where, builder.add(start, inside))
        stride = builder.sext(self._word(slot, STRIDE), I64)
        return Places(address=builder.inttoptr(address, POINTER), stride=stride)

    def take_many(self, count: Value, moves: Value | None = None) -> None:
        """Remove so many tokens, at most those of the next span."""
        builder, slot = self._context.builder, self._slot()
        narrow = builder.trunc(count, I32)
        rest = builder.sub(self._word(slot, COUNT), narrow)
        self._set(slot, COUNT, rest)
        whole = builder.icmp_signed("==", rest, integer(0, I32))
        if moves is not None:
            whole = builder.and_(whole, moves)
        if self.form is Carried.LINEAR:
            step = builder.mul(narrow, self._word(slot, STEP))
            self._set(slot, FIRST, builder.add(self._word(slot, FIRST), step))
        else:
            self._pass_data(slot, count, whole)
        self._advance(self._counter, builder.zext(whole, I64))
        self._advance(self._moved, count)

    def free(self) -> Places:
        """Where the next values of an array channel go."""
        builder = self._context.builder
        end = self._load(self._end)
        inside = builder.and_(end, builder.sub(self._data_bytes, integer(1)))
        where = builder.offset(self._data_start, inside)
        return Places(address=where, stride=integer(self._type.bytes))

    def straight(self) -> Value:
        """How many values fit side by side."""
        builder, end = self._context.builder, self._load(self._end)
        inside = builder.and_(end, builder.sub(self._data_bytes, integer(1)))
        until = builder.sub(self._data_bytes, inside)
        bytes = smaller(builder, until, builder.sub(self._data_limit, end))
        return builder.udiv(bytes, integer(self._type.bytes))

    def put_line(self, tag: Value, count: Value, first: Value, step: Value) -> None:
        """Append a span to a linear channel."""
        self._put(tag, count, {FIRST: first, STEP: step}, None)

    def put_equal(self, tag: Value, count: Value, value: Value) -> None:
        """Append a span of one value to an array channel."""
        store_value(self._context.builder, value, self.free().address, self._type, self._type.bytes)
        self._put(tag, count, self._in_ring(integer(0, I32)), None)
        self._fill(integer(1))

    def put_written(self, tag: Value, count: Value) -> None:
        """Append a span of the values that were written to ``free``."""
        self._put(tag, count, self._in_ring(integer(self._type.bytes, I32)), None)
        self._fill(count)

    def put_places(self, tag: Value, count: Value, places: Places) -> None:
        """Append a span of values in memory that stays as it is."""
        builder = self._context.builder
        fields = {
            WHERE: builder.ptrtoint(places.address, I64),
            STRIDE: builder.trunc(places.stride, I32),
            ABSOLUTE: integer(1, I32),
        }
        self._put(tag, count, fields, None)

    # -- inside -------------------------------------------------------------------------------

    def _in_ring(self, stride: Value) -> dict[int, Value]:
        return {WHERE: self._load(self._end), STRIDE: stride, ABSOLUTE: integer(0, I32)}

    def _put(self, tag: Value, count: Value, fields: dict[int, Value], moves: Value | None) -> None:
        builder, slot = self._context.builder, self._slot()
        self._set(slot, TAG, tag)
        self._set(slot, COUNT, builder.trunc(count, I32))
        for place, value in fields.items():
            self._set(slot, place, value)
        one = integer(1) if moves is None else builder.zext(moves, I64)
        self._advance(self._counter, one)
        self._advance(self._moved, count if moves is None else one)

    def _fill(self, values: Value) -> None:
        self._advance(self._end, self._context.scaled(values, self._type.bytes))

    def _pass_data(self, slot: Value, count: Value, whole: Value) -> None:
        """Go on to the next values of a span; after its last token, their places are free."""
        builder = self._context.builder
        stride = builder.sext(self._word(slot, STRIDE), I64)
        where = builder.load(offset_by(builder, slot, WHERE), I64, 8)
        where = builder.add(where, builder.mul(count, stride))
        builder.store(where, offset_by(builder, slot, WHERE), 8)
        inside = builder.icmp_signed("==", self._word(slot, ABSOLUTE), integer(0, I32))
        equal = builder.icmp_signed("==", stride, integer(0))
        end = builder.add(where, builder.select(equal, integer(self._type.bytes), integer(0)))
        freed = builder.select(whole, inside, integer(0, I1))
        builder.store(builder.select(freed, end, self._load(self._end)), self._end)

    def _word(self, slot: Value, place: int) -> Value:
        builder = self._context.builder
        return load_value(builder, offset_by(builder, slot, place), INT32, INT32.bytes)

    def _set(self, slot: Value, place: int, value: Value) -> None:
        builder = self._context.builder
        builder.store(value, offset_by(builder, slot, place), 8 if place == WHERE else 4)

    def _advance(self, counter: Value, by: Value) -> None:
        builder = self._context.builder
        builder.store(builder.add(self._load(counter), by), counter)

    def _load(self, slot: Value) -> Value:
        return self._context.builder.load(slot, I64)

    def _slot(self) -> Value:
        context, builder = self._context, self._context.builder
        position = builder.and_(self._load(self._counter), self._mask)
        return offset_by(builder, self._first, context.scaled(position, self._stride))

    def _at(self, section: Section) -> Value:
        return self._context.address(section, self._element)

    def _ends(self, received: Section, sent: Section) -> tuple[Section, Section]:
        """What this side advances, and the other one."""
        return (received, sent) if self._receives else (sent, received)

    @property
    def _of_spans(self) -> tuple[Section, Section]:
        layout, name = self._context.layout, self.channel.name
        return layout.ring_heads(name), layout.ring_tails(name)

    @property
    def _of_tokens(self) -> tuple[Section, Section]:
        layout, name = self._context.layout, self.channel.name
        return layout.heads(name), layout.tails(name)

    @property
    def _of_data(self) -> tuple[Section, Section]:
        layout, name = self._context.layout, self.channel.name
        return layout.data_heads(name), layout.data_tails(name)
