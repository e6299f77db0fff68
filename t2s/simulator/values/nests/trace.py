"""Trace values backwards through channels and register files to their load or computation.

Channels are in order and control is static, so token number ``n`` of an element was sent in the
``n``-th sending firing of its sender; ``digits`` determines that firing.  The sent value may itself
be received or read from a register file, and so on, up to an element of a tensor.  If the value is
computed, or has no simple form, the channel is **kept**: its sender runs and leaves all tokens in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from math import prod

import numpy as np

from t2s.core.expr import (
    Broadcast,
    Const,
    Expr,
    Insert,
    Local,
    Parameter,
    Read,
    Select,
    conjuncts,
    index_names,
)
from t2s.core.ops import Array
from t2s.core.walk import Term, distinct
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement
from t2s.graph.graph import Channel, Graph, TensorRole
from t2s.graph.nodes import PEArray
from t2s.graph.semantics import space_points
from t2s.simulator.values.layout import ALIGNMENT
from t2s.simulator.values.nests.digits import (
    LONGEST_TABLE,
    DigitFrame,
    NodeDigits,
    Numbers,
    Opaque,
    Product,
    normalized,
    picked,
    positions,
    size,
    spread,
)


class Again(Exception):
    """A channel turned out to be kept after values were traced through it."""


class Tracer:
    """Traces values through the PEs of a network.

    ``order`` lists the PEs, senders first.  ``kept`` has the channels whose tokens are in memory,
    and grows; tracing restarts, by ``Again``, if values were already traced through a new one.
    ``recorded`` has those of them that rings fill.
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
        """The memory reference of an expression in these iterations; ``Opaque`` if it has none."""
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
        """The tokens of a channel element, numbered in the mixed radix ``wanted``."""
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
        """Trace the tokens of an end, or keep its channel."""
        if end in self._streams or end[0] in self.kept:
            return
        try:
            passed = self._passed_stream(end)
        except Opaque:
            self.keep(end[0])
        if end[0] not in self.kept:
            self._streams[end] = passed

    def _ends_before(self, end: End) -> list[End]:
        """All upstream ends within a node, senders first, to bound the recursion."""
        channel = self.network.graph.channel(end[0])
        if channel.source != channel.sink or end in self._streams or end[0] in self._begun:
            return []
        self._begun.add(end[0])
        ends = [other for other in self.network.sender if other[0] == end[0]]
        return sorted(ends, key=lambda other: self._rank.get(self.network.sender[other], 0))

    def keep(self, channel: str) -> None:
        """Keep the tokens of a channel in memory."""
        self.kept.add(channel)
        if any(end[0] == channel for end in self._streams):
            raise Again

    def pitch(self, channel: str) -> int:
        """Scalars between rows of a kept channel.

        Rings have a power of two of tokens.  Other rows get an extra cache line, so that the rows
        of all PEs do not map to the same few cache sets.
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
        reference = self.resolve(pe, send.value, points)
        return tuple(len(values) for values in points), reference

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
        entries = tuple(picked(table, at) for table, at in zip(token.tables, chosen, strict=True))
        return replace(token, tables=entries)

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
                entries = picked(table, positions(pe.frame.all[digit], points[digit]))
                tables[digit] = tables[digit] + scale * entries
                low, high = low + int(entries.min()), high + int(entries.max())
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
        chosen_values = picked(np.asarray(holds), positions(pe.frame.all[digit], points[digit]))
        pieces: list[tuple[Numbers, Reference]] = []
        for chosen, side in ((chosen_values, select.if_true), (~chosen_values, select.if_false)):
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
    """Base and tables over all values of the digits, 0 where undefined."""
    base, tables = reference.base, {}
    for digit, (table, values) in enumerate(zip(reference.tables, points, strict=True)):
        at = normalized(0, {digit: table})
        base += at.base
        if at.tables:
            where = positions(everything[digit], values)
            tables[digit] = spread(at.tables[digit], where, len(everything[digit]))
    return base, tables


def _is_zero(expr: Term) -> bool:
    """Whether an expression is the constant zero (not minus zero)."""
    match expr:
        case Const(value=value):
            return not value and not str(value).startswith("-")
        case Broadcast(value=value):
            return _is_zero(value)
    return False


# Find the firing that wrote the register that a firing reads.
#
# The writer is the last one, in the order of the firings, among those that wrote the element.
# ``last_writer`` finds it digit by digit, from the outermost: while reader and writer agree, the
# next digit of the writer is the largest one not after the reader's; once a digit is smaller, the
# other digits are free, so each is the largest that wrote the element.


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A digit of the writer: at each value of the reader's ``digit``, its position among those of
    the writing firings; one position for all where ``digit`` is ``None``.
    """

    digit: int | None
    positions: Numbers


@dataclass(frozen=True, slots=True)
class _Element:
    """One index of a register file: a number, or a table over one digit."""

    digit: int | None
    values: Numbers


def last_writer(
    frame: DigitFrame,
    known: Mapping[str, Array],
    written: tuple[Sequence[Expr], Product],
    read: tuple[Sequence[Expr], Product],
    *,
    written_first: bool,
) -> tuple[Origin, ...]:
    """Every digit of the writer, for the firings ``read[1]``.

    ``written`` and ``read`` are indices of the register file and the firings that use them;
    ``written_first``: within a firing the write comes before the read.  Raises ``Opaque`` if a
    firing reads a register that was never written, or the writer has no such form.
    """
    pairs = [
        (_element(frame, known, w, written[1]), _element(frame, known, r, read[1]))
        for w, r in zip(written[0], read[0], strict=True)
    ]
    origins: list[Origin] = []
    same = True
    for number, values in enumerate(written[1]):
        mine = [pair for pair in pairs if pair[0].digit == number]
        reader = _reader(mine)
        keys, wanted = _keys(mine, len(values))
        if not same:
            limit = np.full(len(wanted), len(values) - 1)
            origins.append(Origin(digit=reader, positions=_last(keys, wanted, limit)))
            continue
        if reader is not None and reader != number:
            raise Opaque
        own = read[1][number]
        limit = np.searchsorted(values, own, side="right") - 1
        position = _last(keys, np.broadcast_to(wanted, own.shape), limit)
        equal = values[position] == own
        same = bool(equal.all())
        if equal.any() and not same:
            raise Opaque
        origins.append(Origin(digit=number, positions=position))
    for write, element in pairs:
        if write.digit is None and not (element.values == write.values).all():
            raise Opaque
    if same and not written_first:
        raise Opaque
    return tuple(origins)


def _element(
    frame: DigitFrame, known: Mapping[str, Array], index: Expr, points: Product
) -> _Element:
    total = frame.sum(index, known)
    if len(total.tables) > 1:
        raise Opaque
    for digit, table in total.tables.items():
        at = positions(frame.all[digit], points[digit])
        return _Element(digit, total.base + picked(table, at))
    return _Element(None, np.array([total.base]))


def _reader(pairs: Sequence[tuple[_Element, _Element]]) -> int | None:
    """The single digit of the reader that decides, or ``None``."""
    readers = {read.digit for _, read in pairs if read.digit is not None}
    if len(readers) > 1:
        raise Opaque
    return next(iter(readers), None)


def _keys(pairs: Sequence[tuple[_Element, _Element]], count: int) -> tuple[Numbers, Numbers]:
    """Keys of the writer's and the reader's digit values, equal if they address one element."""
    keys, wanted, bound = np.zeros(count, np.int64), np.zeros(1, np.int64), 1
    for write, read in pairs:
        low = min(int(write.values.min()), int(read.values.min()))
        span = max(int(write.values.max()), int(read.values.max())) - low + 1
        bound *= span
        keys, wanted = keys * span + (write.values - low), wanted * span + (read.values - low)
    if bound * count >= 1 << 62:
        raise Opaque
    return keys, wanted


def _last(keys: Numbers, wanted: Numbers, limit: Numbers) -> Numbers:
    """The last position up to the limit with the wanted key; ``Opaque`` if there is none."""
    count = len(keys)
    codes = np.sort(keys * count + np.arange(count))
    at = np.searchsorted(codes, wanted * count + limit, side="right") - 1
    if (limit < 0).any() or (at < 0).any() or (codes[at] // count != wanted).any():
        raise Opaque
    return codes[at] % count


# References: values that are elements of memory, as functions of the iteration.


def regroup(
    lengths: Sequence[int], tables: Sequence[Numbers], wanted: Sequence[int]
) -> tuple[int, tuple[Numbers, ...]]:
    """Rewrite a sum over one mixed radix as a base and tables over another one.

    Entry ``n`` in row-major order stays entry ``n``.  Raises ``Opaque`` if the numbers are not a
    sum of tables over the wanted digits, or if their count differs or is zero.
    """
    if prod(lengths) != prod(wanted) or not prod(lengths):
        raise Opaque
    base = sum(int(table[0]) for table in tables)
    tables = [table - table[0] for table in tables]
    result = [np.zeros(length, np.int64) for length in wanted]
    cuts = sorted(set(_cuts(lengths)) & set(_cuts(wanted)))
    for first, last in pairwise(cuts):
        source = [at for at, cut in enumerate(_starts(lengths)) if first <= cut < last]
        target = [at for at, cut in enumerate(_starts(wanted)) if first <= cut < last]
        source = [at for at in source if lengths[at] > 1]
        target = [at for at in target if wanted[at] > 1]
        if not any(tables[at].any() for at in source):
            continue
        if last // first > LONGEST_TABLE:
            raise Opaque
        flat = np.zeros(1, np.int64)
        for at in source:
            flat = np.add.outer(flat, tables[at]).reshape(-1)
        for at, table in zip(target, separated(flat, [wanted[at] for at in target]), strict=True):
            result[at] = table
    return base, tuple(result)


def separated(flat: Numbers, lengths: Sequence[int]) -> list[Numbers]:
    """Separate numbers over a mixed radix into a sum of tables, the first with the base."""
    box = flat.reshape(tuple(lengths))
    rank = len(lengths)
    tables, total = [], np.zeros((1,) * rank, np.int64)
    for axis in range(rank):
        at = tuple(slice(None) if axis == other else 0 for other in range(rank))
        table = box[at] - (box.flat[0] if axis else 0)
        tables.append(table)
        total = total + table.reshape(tuple(-1 if axis == other else 1 for other in range(rank)))
    if not np.array_equal(np.broadcast_to(total, box.shape), box):
        raise Opaque
    return tables


def _cuts(lengths: Sequence[int]) -> list[int]:
    """The number of entries of the digits from each position on, and 1 at the end."""
    return [prod(lengths[at:]) for at in range(len(lengths) + 1)]


def _starts(lengths: Sequence[int]) -> list[int]:
    """The stride of each digit."""
    return [prod(lengths[at + 1 :]) for at in range(len(lengths))]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSource:
    """The memory of an input tensor."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource:
    """The kept tokens of a channel in memory: a row for every element of the channel array."""

    channel: str


Source = TensorSource | StreamSource | None
"""``None``: nothing but zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A value in memory, for a product of iterations.

    In the iteration at these positions of the product, lane ``l`` is the scalar of ``source`` with
    the number ``base + tables[0][position 0] + ... + lanes[l]``, or zero where that is ``None``.
    """

    source: Source
    base: int
    tables: tuple[Numbers, ...]
    lanes: tuple[int | None, ...]


def zeros(lanes: int, points: Product) -> Reference:
    """The value zero."""
    tables = tuple(np.zeros(len(values), np.int64) for values in points)
    return Reference(source=None, base=0, tables=tables, lanes=(None,) * lanes)


def merged(pieces: Sequence[tuple[Numbers, Reference]], axis: int, points: Product) -> Reference:
    """Merge several references, each for some values of one digit.

    Raises ``Opaque`` if they differ in more than the table of that digit.
    """
    first = pieces[0][1]
    table = np.zeros(len(points[axis]), np.int64)
    for values, piece in pieces:
        if piece.source != first.source or piece.lanes != first.lanes:
            raise Opaque
        for at, (left, right) in enumerate(zip(piece.tables, first.tables, strict=True)):
            if at != axis and not np.array_equal(left, right):
                raise Opaque
        table[np.searchsorted(points[axis], values)] = piece.base + piece.tables[axis]
    tables = (*first.tables[:axis], table, *first.tables[axis + 1 :])
    return Reference(source=first.source, base=0, tables=tables, lanes=first.lanes)


def inserted(vector: Reference, lane: int, value: Reference) -> Reference:
    """The vector with a scalar in one lane; ``Opaque`` if their strides differ."""
    if not 0 <= lane < len(vector.lanes):
        return vector
    shift = _distance(vector, value)
    offset = None if value.lanes[0] is None else shift + value.lanes[0]
    base = vector if vector.source is not None else value
    lanes = (*vector.lanes[:lane], offset, *vector.lanes[lane + 1 :])
    return Reference(source=base.source, base=vector.base, tables=base.tables, lanes=lanes)


def _distance(vector: Reference, value: Reference) -> int:
    """The constant distance of the origin of ``value`` from that of ``vector``."""
    shift = value.base - vector.base
    if vector.source is None or value.source is None:
        return shift
    if vector.source != value.source:
        raise Opaque
    for left, right in zip(vector.tables, value.tables, strict=True):
        differences = right - left
        if not (differences == differences[0]).all():
            raise Opaque
        shift += int(differences[0])
    return shift


# The network: the PEs of a graph and their connections, before any value is traced.

Place = tuple[str, int]
"""A PE: its node, and its number in the node's space domain, row-major."""

End = tuple[str, int]
"""An element of a channel array: the channel, and the number of the element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedPE:
    """A PE: its digits, and its place and the parameters by name."""

    node: PEArray
    number: int
    frame: DigitFrame
    known: Mapping[str, Array]

    def points(self, condition: Expr | None) -> Product:
        """The iterations in which a condition holds."""
        return self.frame.points(condition, self.known)


@dataclass(slots=True, kw_only=True)
class TracedNetwork:
    """The PEs of all nodes whose control ``digits`` can analyze.

    Attributes
    ----------
    pes: the PEs by place.
    opaque: the other nodes.
    sender: the place that sends to an element of a channel.
    counts: tokens that a PE receives, by place and channel end.
    """

    graph: Graph
    pes: dict[Place, TracedPE] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    sender: dict[End, Place] = field(default_factory=dict)
    sent: dict[End, int] = field(default_factory=dict)
    receiver: dict[End, Place] = field(default_factory=dict)
    received: dict[End, int] = field(default_factory=dict)

    def of_node(self, node: str) -> Iterator[TracedPE]:
        """The PEs of a node, in row-major order."""
        declaration = self.graph.node(node)
        for number in range(declaration.place_count):
            if (node, number) in self.pes:
                yield self.pes[(node, number)]

    def end(self, pe: TracedPE, channel: Channel, indices: tuple[Expr, ...]) -> End:
        """The element that a PE uses in all its firings."""
        flat = 0
        for index, extent in zip(indices, channel.shape, strict=True):
            at = pe.frame.sum(index, pe.known)
            if at.tables or not 0 <= at.base < extent:
                raise Opaque
            flat = flat * extent + at.base
        return channel.name, flat

    def order(self, without: set[str]) -> tuple[list[Place], set[str]]:
        """The PEs, senders first, and the nodes with PEs on a cycle."""
        sorter: TopologicalSorter[Place] = TopologicalSorter()
        for place in self.pes:
            if place[0] not in without:
                sorter.add(place)
        for end, place in self.receiver.items():
            source = self.sender.get(end)
            if source is None or source[0] in without or place[0] in without:
                continue
            if source == place:
                return [], {place[0]}
            sorter.add(place, source)
        try:
            return list(sorter.static_order()), set()
        except CycleError as error:
            return [], {place[0] for place in error.args[1]}

    def short_of_tokens(self, without: set[str]) -> set[str]:
        """Nodes that take more tokens than are sent to them."""
        return {
            place[0]
            for end, place in self.receiver.items()
            if place[0] not in without
            and self.graph.channel(end[0]).source not in without
            and self.received[end] > self.sent.get(end, 0)
        }


def network_of(graph: Graph, parameters: Mapping[str, Array]) -> TracedNetwork:
    """Analyze the control of every PE."""
    network = TracedNetwork(graph=graph)
    nested = {c.name: (c.source, c.sink) for c in graph.channels if c.stream.nesting}
    streaming = {name for ends in nested.values() for name in ends}
    for node in graph.nodes:
        if not isinstance(node, PEArray) or node.name in streaming:
            network.opaque.add(node.name)
            continue
        try:
            _add(network, node, NodeDigits(graph, node, parameters), parameters)
        except Opaque:
            network.opaque.add(node.name)
            network.pes = {place: pe for place, pe in network.pes.items() if place[0] != node.name}
    return network


def _add(
    network: TracedNetwork, node: PEArray, digits: NodeDigits, parameters: Mapping[str, Array]
) -> None:
    accesses = [statement for statement in node.body if isinstance(statement, Receive | Send)]
    possible = [_places(node, access.condition, parameters) for access in accesses]
    for number, point in enumerate(space_points(node)):
        if not node.has_pe(point):
            continue
        frame, known = digits.frame(point)
        pe = TracedPE(node=node, number=number, frame=frame, known=known)
        network.pes[(node.name, number)] = pe
        for statement, places in zip(accesses, possible, strict=True):
            if places is not None and number not in places:
                continue
            count = size(pe.points(statement.condition))
            if not count:
                continue
            channel = network.graph.channel(statement.channel)
            if isinstance(statement, Receive):
                ends, counts, indices = network.receiver, network.received, channel.sink_index
            else:
                ends, counts, indices = network.sender, network.sent, channel.source_index
            end = network.end(pe, channel, indices)
            if end in ends:
                raise Opaque
            ends[end] = (node.name, number)
            counts[end] = count


def _places(
    node: PEArray, condition: Expr | None, parameters: Mapping[str, Array]
) -> frozenset[int] | None:
    """The PEs that satisfy the place-only factors of a condition.

    ``None`` if there are no such factors.  Most channels of a large array reach only a few PEs, so
    all PEs are tested at once.
    """
    space = {dimension.name for dimension in node.space}
    factors = [
        factor
        for factor in conjuncts(condition)
        if factor.type.lanes == 1
        and (names := index_names(factor))
        and names <= space
        and not any(
            isinstance(term, Local | Read)
            or (isinstance(term, Parameter) and term.name not in parameters)
            for term in distinct(factor)
        )
    ]
    if not factors:
        return None
    possible = np.logical_and.reduce([node.where(factor, parameters) for factor in factors])
    return frozenset(np.flatnonzero(possible).tolist())


def longest(network: TracedNetwork, channel: str) -> int:
    """The largest number of tokens sent to or taken from any element of a channel."""
    elements = range(prod(network.graph.channel(channel).shape))
    lengths = (
        max(network.sent.get((channel, at), 0), network.received.get((channel, at), 0))
        for at in elements
    )
    return max(lengths, default=0)
