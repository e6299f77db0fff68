"""From the bodies of a graph's nodes to the flat control arrays of all PEs; early checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.expr import Expr, index_names
from t2s.core.ops import Array
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.control.domains import Domain, UndividedLoop, domains
from t2s.graph.control.firing_codes import (
    UNUSED,
    Feature,
    FiringCodes,
    FiringOrder,
    compressed,
    firing_codes,
    firings_per_code,
    listed,
)
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Machine, PEArray
from t2s.simulator.program.trace import LOADS, STORES, MachineRow, machine_rows

USES_BEGIN, RECEIVES_END, USES_END, MOVED_BYTES, ACCESS = range(5)
"""Columns of ``Control.rows``."""

MOST_SHARED_ROWS = 1 << 20
"""A domain is split by PE if its table would have more rows than this."""

FEW_CODES = 16
"""Domains with this few codes are not split, because that would not save rows."""

End = type[Receive] | type[Send]
SharedElement = tuple[int, str, int, int]


@dataclass(frozen=True, kw_only=True)
class Control:
    """The port usage of every firing of every PE.

    Firing ``n`` of PE ``p`` has code ``n`` of ``orders[order_of[p]]``, and row ``row_start[p]`` +
    code of ``rows`` describes it: it receives from the elements ``uses[USES_BEGIN:RECEIVES_END]``,
    sends to ``uses[RECEIVES_END:USES_END]``, both in body order, and moves ``MOVED_BYTES`` bytes.

    A machine has one row for each of its rules (``Machine.paths``), and its codes are computed with
    the values: until then it has 0 firings (see ``program.trace``).  Its receives are the heads
    that the firing needs, in the order in which it waits for them; it only takes those marked in
    ``taken``, and leaves the others in place.

    Attributes
    ----------
    firings, order_of, row_start: per PE.
    orders, rows, uses: see above.
    taken: for each of ``uses``, false if the token is required but stays in place.
    sender, receiver: the PE at each end of every channel element, -1 for none.
    fires: for each of ``rows``, false in empty slots of a schedule.
    empty: per PE, the empty slots of a complete run, which are among its ``firings``.
    sent, received: tokens through every channel element in a complete run, by its two ends.
    shared_element: an element that two PEs use from the same end, if there is one: the element,
        the direction, and the two PEs.  Such a program must not run.
    """

    firings: NDArray[np.int64]
    order_of: NDArray[np.int64]
    row_start: NDArray[np.int64]
    orders: tuple[FiringOrder, ...]
    rows: NDArray[np.int32]
    uses: NDArray[np.int32]
    taken: NDArray[np.bool_]
    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    fires: NDArray[np.bool_]
    empty: NDArray[np.int64]
    shared_element: SharedElement | None

    def empty_until(self, firings: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per PE, the empty slots among its first ``firings``."""
        slots = np.where(firings == self.firings, self.empty, 0)
        for pe in np.flatnonzero((firings < self.firings) & (self.empty > 0) & (firings > 0)):
            order = replace(self.orders[self.order_of[pe]], firings=int(firings[pe]))
            count = int(order.codes.max(initial=0)) + 1
            fires = self.fires[self.row_start[pe] : self.row_start[pe] + count]
            slots[pe] = firings_per_code(order, count)[~fires].sum()
        return np.asarray(slots, np.int64)

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """The codes of all orders, one after the other and one for each firing."""
        parts = [np.zeros(0, np.int32), *(order.expanded() for order in self.orders)]
        return np.concatenate(parts, dtype=np.int32)

    @cached_property
    def code_start(self) -> NDArray[np.int64]:
        """Per PE, where its codes start in ``codes``."""
        ends = np.cumsum([0, *(order.firings for order in self.orders)])
        return np.asarray(ends[self.order_of], np.int64)


class _RowBuilder:
    """Collects the domains of all nodes, in instance order."""

    def __init__(self, elements: int) -> None:
        self.firings: list[Array] = []
        self.order_of: list[Array] = []
        self.row_start: list[Array] = []
        self.orders: list[FiringOrder] = []
        self.rows: list[Array] = []
        self.uses: list[Array] = []
        self.taken: list[Array] = []
        self.fires: list[Array] = []
        self.empty: list[Array] = []
        self.ends = {side: np.full(elements, -1, np.int64) for side in (Receive, Send)}
        self.tokens = {side: np.zeros(elements, np.int64) for side in (Receive, Send)}
        self.shared: SharedElement | None = None
        self._pes = self._rows = self._uses = 0

    def add(self, domain: Domain, ports: _Ports, codes: FiringCodes) -> None:
        """Append the PEs of a domain."""
        pes, count = domain.pe_count, len(codes.counts)
        self.firings.append(np.full(pes, domain.firings))
        self.order_of.append(np.full(pes, len(self.orders)))
        self.row_start.append(self._rows + count * np.arange(pes))
        self.orders.append(codes.order)
        self._add_rows(ports, codes)
        for kind, part in ports.tables(codes):
            self._add_ends(kind, part, codes)
        self._pes += pes
        self._rows += pes * count

    def _add_rows(self, ports: _Ports, codes: FiringCodes) -> None:
        elements = codes.table[: ports.channel_count].transpose(1, 2, 0)
        used = elements != UNUSED
        receives = used[..., : ports.receive_count].sum(-1).reshape(-1)
        all_uses = used.sum(-1).reshape(-1)
        end = self._uses + np.cumsum(all_uses)
        begin = end - all_uses
        moved = codes.table[ports.channel_count : ports.channel_count + len(ports.stores)]
        fires = codes.table[-1] > 0 if ports.has_empty else np.ones(elements.shape[:2], np.bool_)
        self.fires.append(fires.reshape(-1))
        self.empty.append((~fires * codes.counts).sum(-1))
        bits = np.where(ports.stores, STORES, LOADS).reshape(-1, 1, 1)
        access = np.bitwise_or.reduce(np.where(moved > 0, bits, 0), 0).reshape(-1)
        columns = (begin, begin + receives, end, moved.sum(0).reshape(-1), access)
        self.rows.append(np.stack(columns, 1).astype(np.int32))
        self.uses.append(elements[used].astype(np.int32))
        self.taken.append(np.ones(int(all_uses.sum()), np.bool_))
        self._uses += int(all_uses.sum())

    def _add_ends(self, kind: End, part: Array, firing_codes_: FiringCodes) -> None:
        """Record which PE uses which elements from this side, and how often."""
        _, pes, codes = np.nonzero(part != UNUSED)
        elements = part[part != UNUSED]
        np.add.at(self.tokens[kind], elements, firing_codes_.counts[codes])
        self._claim(kind, elements, pes + self._pes)

    def add_machines(self, machines: Sequence[Sequence[MachineRow]]) -> None:
        """Append machines, each with the rows of its rules."""
        for rows in machines:
            self.firings.append(np.zeros(1, np.int64))
            self.order_of.append(np.full(1, len(self.orders)))
            self.orders.append(listed(np.zeros(0, np.int32)))
            self.fires.append(np.ones(len(rows), np.bool_))
            self.empty.append(np.zeros(1, np.int64))
            self.row_start.append(np.full(1, self._rows))
            for row in rows:
                uses = np.array([*row.needs, *row.puts], np.int64)
                begin, end = self._uses, self._uses + len(uses)
                columns = (begin, begin + len(row.needs), end, row.moved_bytes, row.access)
                self.rows.append(np.array([columns], np.int32))
                self.uses.append(uses)
                self.taken.append(np.array([*row.taken, *(True for _ in row.puts)], np.bool_))
                self._uses = end
                for kind, elements in ((Receive, row.needs), (Send, row.puts)):
                    instances = np.full(len(elements), self._pes)
                    self._claim(kind, np.array(elements, np.int64), instances)
            self._pes += 1
            self._rows += len(rows)

    def _claim(self, kind: End, elements: Array, instances: Array) -> None:
        """Record the PE at this side of channel elements."""
        ends = self.ends[kind]
        taken = np.where(ends[elements] == -1, instances, ends[elements])
        ends[elements] = instances
        clash = np.flatnonzero((taken != instances) | (ends[elements] != instances))
        if self.shared is None and clash.size:
            at = int(clash[0])
            element, first = int(elements[at]), int(instances[at])
            other = int(taken[at]) if taken[at] != instances[at] else int(ends[element])
            verb = "send to" if kind is Send else "receive from"
            self.shared = (element, verb, min(first, other), max(first, other))


@dataclass(frozen=True, kw_only=True)
class _Ports:
    """The features of a node over a domain: receives, sends, then memory statements.

    With ``has_empty``, the last feature tells whether an iteration is not an empty slot.
    """

    features: tuple[Feature, ...]
    receive_count: int
    channel_count: int
    stores: NDArray[np.bool_]
    has_empty: bool

    def tables(self, codes: FiringCodes) -> tuple[tuple[End, Array], tuple[End, Array]]:
        """The parts of a code table that hold received and sent elements."""
        receives = codes.table[: self.receive_count]
        sends = codes.table[self.receive_count : self.channel_count]
        return (Receive, receives), (Send, sends)


def flatten(
    graph: Graph, parameters: Mapping[str, Array], first_elements: Mapping[str, int]
) -> Control:
    """The control of all PEs, nodes in graph order and PEs in row-major order of space.

    ``first_elements`` gives the flat position of each channel's first element.  Raises
    ``UserError`` for addresses and channel elements out of range and for impossible trip counts.
    """
    builder = _RowBuilder(sum(channel.element_count for channel in graph.channels))
    for node in graph.nodes:
        if isinstance(node, Machine):
            builder.add_machines(machine_rows(graph, node, parameters, first_elements))
            continue
        try:
            parts = [
                (domain, _ports(graph, node, domain, first_elements))
                for domain in domains(node, parameters, divided=True)
            ]
        except UndividedLoop:
            parts = [
                (domain, _ports(graph, node, domain, first_elements))
                for domain in domains(node, parameters)
            ]
        for domain, ports in parts:
            _flatten_domain(graph, node, domain, ports, parameters, first_elements, builder)
    return Control(
        firings=_joined(builder.firings, np.int64),
        order_of=_joined(builder.order_of, np.int64),
        row_start=_joined(builder.row_start, np.int64),
        orders=tuple(builder.orders),
        rows=np.concatenate([np.zeros((0, 5), np.int32), *builder.rows]),
        uses=_joined(builder.uses, np.int32),
        taken=_joined(builder.taken, np.bool_),
        sender=builder.ends[Send],
        receiver=builder.ends[Receive],
        sent=builder.tokens[Send],
        received=builder.tokens[Receive],
        fires=_joined(builder.fires, np.bool_),
        empty=_joined(builder.empty, np.int64),
        shared_element=builder.shared,
    )


def _joined(parts: list[Array], dtype: type[np.generic]) -> Array:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)


def _flatten_domain(
    graph: Graph,
    node: PEArray,
    domain: Domain,
    ports: _Ports,
    parameters: Mapping[str, Array],
    first_elements: Mapping[str, int],
    builder: _RowBuilder,
) -> None:
    codes = firing_codes(domain, ports.features)
    most = MOST_SHARED_ROWS if len(codes.counts) > FEW_CODES else 16 * MOST_SHARED_ROWS
    if domain.pe_count > 1 and domain.pe_count * len(codes.counts) > most:
        divided = domain.long is not None
        for part in domains(node, parameters, separate=True, divided=divided):
            own = _ports(graph, node, part, first_elements)
            _flatten_domain(graph, node, part, own, parameters, first_elements, builder)
        return
    builder.add(domain, ports, codes)


def _ports(
    graph: Graph, node: PEArray, domain: Domain, first_elements: Mapping[str, int]
) -> _Ports:
    check_addresses(graph, node, domain)
    receives: list[Feature] = []
    sends: list[Feature] = []
    moves: list[Feature] = []
    stores: list[bool] = []

    def moved(statement: Load | Store, bytes: int) -> Feature:
        value = np.full((1,) * len(domain.shape), bytes)
        return Feature(factors=domain.factors(statement.condition), value=value, otherwise=0)

    for statement in node.body:
        match statement:
            case Receive(channel=name) | Send(channel=name):
                channel = graph.channel(name)
                feature = port_feature(node, domain, channel, statement, first_elements[name])
                (sends if isinstance(statement, Send) else receives).append(feature)
            case Load(type=type):
                moves.append(moved(statement, type.bytes))
                stores.append(False)
            case Store(value=value):
                moves.append(moved(statement, value.type.bytes))
                stores.append(True)
    slots = () if node.active is None else (_slots(node.active, domain),)
    return _Ports(
        features=(*receives, *sends, *moves, *slots),
        receive_count=len(receives),
        channel_count=len(receives) + len(sends),
        stores=np.asarray(stores, np.bool_),
        has_empty=node.active is not None,
    )


def _slots(active: Expr, domain: Domain) -> Feature:
    """1 for iterations, 0 for empty slots."""
    value = np.ones((1,) * len(domain.shape), np.int64)
    return Feature(factors=domain.factors(active), value=value, otherwise=0)


# Checks before cycle 0: memory addresses, channel elements, and the range of times.
#
# ``t2s.graph.arrays`` checks the inputs.  Times are 64-bit integers: a run that could exceed them
# is refused.


def check_addresses(graph: Graph, node: PEArray, domain: Domain) -> None:
    """Check that every element that a PE of the domain loads or stores is in its tensor."""
    for statement in node.body:
        match statement:
            case Load(tensor=name, indices=indices, type=type):
                _check_access(graph, node, domain, statement, name, indices, type.lanes)
            case Store(tensor=name, indices=indices, value=value):
                _check_access(graph, node, domain, statement, name, indices, value.type.lanes)


def _check_access(
    graph: Graph,
    node: PEArray,
    domain: Domain,
    statement: Load | Store,
    name: str,
    indices: tuple[Expr, ...],
    lanes: int,
) -> None:
    tensor = graph.tensor(name)
    for dimension, (index, extent) in enumerate(zip(indices, tensor.allocated, strict=True)):
        width = lanes if dimension == len(indices) - 1 else 1
        outside = _outside(domain, index, statement.condition, extent - width)
        if outside is None:
            continue
        verb = "loads" if isinstance(statement, Load) else "stores"
        raise UserError(
            f"{node.name!r} {verb} outside of {name!r}",
            location=node.location,
            expected=f"indices 0 to {extent - 1} in dimension {dimension} of {tensor.allocated}",
            given=f"indices {outside[0]} to {outside[1] + width - 1}",
            hint="guard the access with a condition, or give the tensor the shape it is used with",
            notes=[(tensor.location, f"{name!r} is declared here")],
        )


def _outside(
    domain: Domain, index: Expr, condition: Expr | None, last: int
) -> tuple[int, int] | None:
    """Smallest and largest active index if any is outside of 0 to ``last``, else ``None``.

    Raises ``UndividedLoop`` if that may only happen in nonexistent iterations of a divided loop.
    """
    bounds = domain.range_of(index)
    if bounds is not None and bounds[0] >= 0 and bounds[1] <= last:
        return None
    if domain.long is not None and domain.long.loop in index_names(index):
        raise UndividedLoop  # the address may belong to an iteration that does not exist
    values = domain.value(index)
    if values.size == 0 or (int(values.min()) >= 0 and int(values.max()) <= last):
        return None
    values, *factors = compressed(domain, (values, *domain.factors(condition)))
    active = np.ones((1,) * len(domain.shape), np.bool_)
    for factor in factors:
        active = active & factor
    both = np.broadcast_shapes(values.shape, active.shape)
    used = np.broadcast_to(values, both)[np.broadcast_to(active, both)]
    if used.size == 0 or (int(used.min()) >= 0 and int(used.max()) <= last):
        return None
    if domain.partial:
        raise UndividedLoop
    return int(used.min()), int(used.max())


def port_feature(
    node: PEArray,
    domain: Domain,
    channel: Channel,
    statement: Receive | Send,
    first_element: int,
) -> Feature:
    """The element of a channel that each firing uses, counted from ``first_element``.

    ``UNUSED`` where the statement's condition does not hold.  ``UserError`` if a firing uses an
    element outside of the channel's shape.
    """
    indices = channel.source_index if isinstance(statement, Send) else channel.sink_index
    flat: Array = np.zeros((1,) * len(domain.shape), np.int64)
    for dimension, (index, extent) in enumerate(zip(indices, channel.shape, strict=True)):
        outside = _outside(domain, index, statement.condition, extent - 1)
        if outside is not None:
            raise UserError(
                f"{node.name!r} uses elements outside of channel {channel.name!r}",
                location=channel.location or node.location,
                expected=f"indices 0 to {extent - 1} in dimension {dimension} of {channel.shape}",
                given=f"indices {outside[0]} to {outside[1]}",
                hint="give the channel one element for every pair of PEs that it connects",
            )
        flat = flat * extent + domain.value(index)
    factors = domain.factors(statement.condition)
    return Feature(factors=factors, value=flat + first_element, otherwise=UNUSED)


MOST_CYCLES = 1 << 62
"""The limit of cycles: differences and sums of two times fit into 64 bits."""


def exact_sum(values: NDArray[np.int64]) -> int:
    """The exact sum of integers, even beyond 64 bits."""
    if len(values) * int(np.abs(values).max(initial=0)) < MOST_CYCLES:
        return int(values.sum())
    return sum(int(value) for value in values)
