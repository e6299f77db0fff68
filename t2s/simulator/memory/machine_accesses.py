"""The memory accesses of machines, by rule, and their vectors of addresses.

A memory here is a *place* of tensors whose access times depend on addresses: the device's memory if
it is a DRAM, and the shared banks on the chip if it has any.

The elements that a machine touches follow from values, and values do not depend on time.  So they
are computed before the times: ``with_addresses`` adds a channel to a graph for the first access of
a machine's rules, one for the second, and so on, into which every firing puts the address of that
access; any engine for values then yields the addresses as the tokens of these channels.  A gather
or scatter by a vector of indices puts a vector of addresses, into channels for that number of
lanes.

Properties of accesses (see ``requests`` for the lines that follow from them):

* An access has a *level*: 0 if its address is known when the firing begins, 1 if it needs what an
  access of level 0 loads, and so on.
* An access *decides* if the next state of the machine (registers, sorted memories, mode) depends on
  the loaded value: the next firing waits for it.
* A rule *runs on* if it needs no token and none of its accesses decides, so that its addresses
  follow from registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import Broadcast, Cast, Expr, Index, Local, Select, const, equals
from t2s.core.ops import Array
from t2s.core.types import INT32, Kind, Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Role, Statement, Store, by_lanes
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Channel, Graph, MemorySpace, StreamType, Tensor
from t2s.graph.nodes import Choice, Head, Machine, MemoryAdd, Mode, Path, Put, Rule, Search
from t2s.graph.semantics import HOLE

_ADDRESS, _WORD = Type(Kind.INT, 64), INT32
"""Types of byte offsets in a tensor, and of words in shared banks."""
_ROOM = 64
"""Tokens that a channel of addresses begins with; it grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAccess:
    """One access of a rule: ``bytes`` of a tensor at each of ``lanes`` addresses.

    ``channel`` is the number of the machine's channel that has the addresses; see above for the
    others.  Accesses to different places have different channels.
    """

    tensor: str
    store: bool
    bytes: int
    level: int
    decides: bool
    lanes: int = 1
    channel: int = 0
    place: MemorySpace = MemorySpace.MEMORY


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAccesses:
    """The accesses of a rule, in the order of its statements, and whether it runs on."""

    accesses: tuple[RuleAccess, ...]
    runs_on: bool

    def at(self, place: MemorySpace) -> RuleAccesses:
        """Only the accesses to ``place``."""
        return replace(self, accesses=tuple(a for a in self.accesses if a.place is place))


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedGraph:
    """A graph whose machines emit the addresses of their memory accesses.

    ``channels`` are those of the addresses, by machine: bytes from the start of the tensor, int64
    (elements of tensors in shared banks, int32), a token for the first access of every firing that
    has one, for the second one, and so on; then in the same way for accesses by vectors, whose
    tokens are vectors in which -1 stands for a lane that touches nothing.  They are the last
    channels of the graph; nothing takes their tokens.
    ``rules`` are those of the same machines, by code.
    """

    graph: Graph
    channels: Mapping[str, tuple[str, ...]]
    rules: Mapping[str, tuple[RuleAccesses, ...]]


DEVICE_MEMORY = frozenset({MemorySpace.MEMORY})


def accesses_of_rules(
    graph: Graph, node: Machine, places: frozenset[MemorySpace] = DEVICE_MEMORY
) -> tuple[RuleAccesses, ...]:
    """The accesses of each rule of a machine to tensors in these places, by its code."""
    return _numbered([_RuleReader(graph, places).read(path) for path in node.paths()])


def _numbered(rules: Sequence[RuleAccesses]) -> tuple[RuleAccesses, ...]:
    """Number the channels of the accesses, separately for each place and number of lanes."""
    counts = [Counter(map(_kind, rule.accesses)) for rule in rules]
    first, end = dict[tuple[str, int], int](), 0
    for kind in sorted({kind for count in counts for kind in count}):
        first[kind], end = end, end + max(count[kind] for count in counts)
    numbered: list[RuleAccesses] = []
    for rule in rules:
        after, accesses = dict(first), list[RuleAccess]()
        for access in rule.accesses:
            accesses.append(replace(access, channel=after[_kind(access)]))
            after[_kind(access)] += 1
        numbered.append(replace(rule, accesses=tuple(accesses)))
    return tuple(numbered)


def _kind(access: RuleAccess) -> tuple[str, int]:
    return access.place.value, access.lanes


def types_of_channels(rules: Sequence[RuleAccesses]) -> tuple[Type, ...]:
    """The types of the addresses in each channel of a machine."""
    types = {
        access.channel: _address_type(access.place).with_lanes(access.lanes)
        for rule in rules
        for access in rule.accesses
    }
    return tuple(types[channel] for channel in range(len(types)))


def _address_type(place: MemorySpace) -> Type:
    return _WORD if place is MemorySpace.SHARED else _ADDRESS


def ports_of(rules: Sequence[RuleAccesses]) -> tuple[tuple[str, bool], ...]:
    """The tensors that rules load (False) and store (True), by their first access."""
    ports = dict.fromkeys(
        (access.tensor, access.store) for rule in rules for access in rule.accesses
    )
    return tuple(ports)


def levels_of(rules: Sequence[RuleAccesses]) -> int:
    """The length of the longest chain of dependent loads of a firing."""
    return max((a.level for rule in rules for a in rule.accesses), default=0) + 1


class _RuleReader:
    """Follows loaded values through the statements of a rule.

    ``loads`` are the accesses, by number, that a local depends on.
    """

    def __init__(self, graph: Graph, places: frozenset[MemorySpace]) -> None:
        self._graph, self._places = graph, places
        self._loads: dict[str, frozenset[int]] = {}
        self._accesses: list[RuleAccess] = []
        self._deciding: frozenset[int] = frozenset()

    def read(self, path: Path) -> RuleAccesses:
        for choice in path.choices:
            self._decide(choice.when)
            for statement in choice.body:
                self._follow(statement)
        for statement in path.rule.body:
            self._follow(statement)
        accesses = tuple(
            replace(access, decides=number in self._deciding)
            for number, access in enumerate(self._accesses)
        )
        return RuleAccesses(accesses=accesses, runs_on=not path.needs and not self._deciding)

    def _of(self, *exprs: Expr) -> frozenset[int]:
        """The accesses that expressions depend on."""
        names = (t.name for expr in exprs for t in walk(expr) if isinstance(t, Local))
        return frozenset().union(*(self._loads.get(name, frozenset()) for name in names))

    def _decide(self, *exprs: Expr | None) -> None:
        """Note that the next state of the machine depends on these accesses."""
        self._deciding |= self._of(*(expr for expr in exprs if expr is not None))

    def _follow(self, statement: Statement) -> None:
        match statement:
            case Let(target=target, value=value):
                self._loads[target] = self._of(value)
            case Load(target=target, tensor=tensor, indices=indices, type=type):
                before, lanes = self._of(*indices), _lanes(indices)
                self._loads[target] = self._access(
                    tensor, False, type.bytes // lanes, before, lanes
                )
            case Search(target=target, tensor=tensor, begin=begin, end=end, value=value):
                before = self._of(begin, end, value)
                self._loads[target] = self._access(tensor, False, value.type.bytes, before)
            case Store(tensor=tensor, indices=indices, value=value):
                lanes = _lanes(indices)
                self._access(tensor, True, value.type.bytes // lanes, self._of(*indices), lanes)
            case RegisterRead(target=target, indices=indices):
                self._loads[target] = self._of(*indices)
            case RegisterWrite(indices=indices, value=value):
                self._decide(*indices, value)
            case MemoryAdd(keys=keys, value=value):
                self._decide(*keys, value)

    def _access(
        self, tensor: str, store: bool, bytes: int, before: frozenset[int], lanes: int = 1
    ) -> frozenset[int]:
        """Note an access, and the accesses that its address depends on."""
        place = self._graph.tensor(tensor).place
        if place not in self._places:
            return before
        levels = (self._accesses[number].level + 1 for number in before)
        access = RuleAccess(
            tensor=tensor,
            store=store,
            bytes=bytes,
            level=max(levels, default=0),
            decides=False,
            lanes=lanes,
            place=place,
        )
        self._accesses.append(access)
        return before | {len(self._accesses) - 1}


def _lanes(indices: tuple[Expr, ...]) -> int:
    """The number of addresses of an access."""
    return indices[-1].type.lanes if indices else 1


_ADDRESSED: GraphCache[frozenset[MemorySpace], AddressedGraph] = GraphCache()


def with_addresses(graph: Graph, places: frozenset[MemorySpace] = DEVICE_MEMORY) -> AddressedGraph:
    """The graph with channels for the addresses of its machines' accesses to these places."""
    return _ADDRESSED.get(graph, places, lambda: _with_addresses(graph, places))


def _with_addresses(graph: Graph, places: frozenset[MemorySpace]) -> AddressedGraph:
    taken = {node.name for node in graph.nodes} | {channel.name for channel in graph.channels}
    nodes, channels = list(graph.nodes), list(graph.channels)
    names: dict[str, tuple[str, ...]] = {}
    accesses: dict[str, tuple[RuleAccesses, ...]] = {}
    for position, node in enumerate(graph.nodes):
        if not isinstance(node, Machine):
            continue
        rules = accesses_of_rules(graph, node, places)
        types = types_of_channels(rules)
        if not types:
            continue
        accesses[node.name] = rules
        sink = _fresh(f"{node.name}_addresses", taken)
        names[node.name] = tuple(_fresh(f"{sink}_{number}", taken) for number in range(len(types)))
        nodes[position] = _putting(graph, node, rules, names[node.name], places)
        nodes.append(_sink(node, sink, names[node.name]))
        channels += [
            _channel(node, sink, name, type)
            for name, type in zip(names[node.name], types, strict=True)
        ]
    return AddressedGraph(
        graph=replace(graph, nodes=tuple(nodes), channels=tuple(channels)),
        channels=names,
        rules=accesses,
    )


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _channel(node: Machine, sink: str, name: str, type: Type) -> Channel:
    index = tuple(Index(name=dimension.name) for dimension in node.space)
    offsets = tuple(
        at - dimension.minimum if dimension.minimum else at
        for at, dimension in zip(index, node.space, strict=True)
    )
    return Channel(
        name=name,
        stream=StreamType(element=type),
        source=node.name,
        sink=sink,
        shape=tuple(dimension.extent for dimension in node.space),
        source_index=offsets,
        sink_index=offsets,
        capacity=_ROOM,
    )


def _sink(node: Machine, name: str, channels: tuple[str, ...]) -> Machine:
    """A machine that ends at once without taking a token."""
    end = Choice(inside=Rule(name="end"))
    return Machine(
        name=name,
        role=Role.RELAY,
        space=node.space,
        heads=tuple(Head(channel=channel, value=f"{channel}_value") for channel in channels),
        modes=(Mode(name="end", needs=(), choices=(end,)),),
    )


def _putting(
    graph: Graph,
    node: Machine,
    rules: Sequence[RuleAccesses],
    channels: tuple[str, ...],
    places: frozenset[MemorySpace],
) -> Machine:
    """The machine with rules that put the addresses of their accesses."""
    accesses = {
        path.rule.name: rule.accesses for path, rule in zip(node.paths(), rules, strict=True)
    }

    def rewritten(choice: Choice, before: tuple[Statement, ...]) -> Choice:
        before += choice.body
        match choice.inside:
            case Rule(body=body, puts=puts) as rule:
                addresses = [
                    address
                    for statement in (*before, *body)
                    if (address := _address(graph, statement, places)) is not None
                ]
                more = tuple(
                    Put(channel=channels[access.channel], value=address)
                    for access, address in zip(accesses[rule.name], addresses, strict=True)
                )
                return replace(choice, inside=replace(rule, puts=(*puts, *more)))
            case inner:
                return replace(choice, inside=tuple(rewritten(c, before) for c in inner))

    modes = tuple(
        replace(mode, choices=tuple(rewritten(choice, ()) for choice in mode.choices))
        for mode in node.modes
    )
    return replace(node, modes=modes)


def _address(graph: Graph, statement: Statement, places: frozenset[MemorySpace]) -> Expr | None:
    """The offset in the tensor at which an access begins; ``None`` if the statement is not one."""
    match statement:
        case Load(tensor=name, indices=indices) | Store(tensor=name, indices=indices):
            tensor = graph.tensor(name)
        case Search(target=target, tensor=name, begin=begin):
            tensor, indices = graph.tensor(name), (Local(name=target, type=begin.type),)
        case _:
            return None
    return _offset(tensor, indices) if tensor.place in places else None


def _offset(tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
    type = _address_type(tensor.place)
    bytes = 1 if tensor.place is MemorySpace.SHARED else tensor.type.bytes
    address: Expr = const(0, type)
    for dimension, index in enumerate(indices[:-1] if by_lanes(indices) else indices):
        stride = bytes * prod(tensor.allocated[dimension + 1 :])
        wide = Cast(value=index, type=type)
        address = address + wide * const(stride, type)
    return _offsets(address, indices[-1], bytes) if by_lanes(indices) else address


def _offsets(row: Expr, index: Expr, bytes: int) -> Expr:
    """The offsets of the elements that a vector selects in a row; -1 for idle lanes."""
    type = row.type.with_lanes(index.type.lanes)
    wide = Cast(value=index, type=type)
    hole, stride = (Broadcast(value=const(n, row.type), type=type) for n in (HOLE, bytes))
    place = Broadcast(value=row, type=type) + wide * stride
    return Select(condition=equals(wide, hole), if_true=hole, if_false=place, type=type)


# Vectors of addresses in compact form: most lanes of most vectors are idle.

_BLOCK = 1 << 10
"""Vectors between two entries of ``LaneAddresses.before``."""

_FEW_LANES = 2
"""With fewer than one address per this many lanes, picking them one by one is faster."""


@dataclass(frozen=True, slots=True, eq=False)
class LaneRows:
    """Some vectors: masks of their lanes, and the addresses."""

    chosen: NDArray[np.uint8]
    addresses: Array

    def counts(self) -> NDArray[np.int64]:
        """The number of addresses of each vector."""
        return np.asarray(np.bitwise_count(self.chosen).sum(axis=1, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class LaneAddresses:
    """Addresses of vectors: a sequence of rows of ``lanes``, with -1 for idle lanes.

    Attributes
    ----------
    lanes: lanes of each vector.
    chosen: the lanes that have addresses, as a row of bits for each vector, eight to a byte.
    addresses: their addresses, vector by vector.
    before: the number of addresses before each ``_BLOCK``-th vector.
    """

    lanes: int
    chosen: NDArray[np.uint8]
    addresses: Array
    before: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, rows: slice) -> Array:
        """A range of the vectors."""
        begin, end, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("vectors of addresses are read one after the other")
        first = begin // _BLOCK
        at = int(self.before[first]) + _bits(self.chosen[first * _BLOCK : begin])
        mask = np.unpackbits(self.chosen[begin:end], axis=1, count=self.lanes).view(np.bool_)
        vectors = np.full(mask.shape, HOLE, self.addresses.dtype)
        vectors[mask] = self.addresses[at : at + np.count_nonzero(mask)]
        return vectors

    def first(self, vectors: int) -> LaneRows:
        """The first ``count`` vectors."""
        chosen = self.chosen[:vectors]
        return LaneRows(chosen=chosen, addresses=self.addresses[: _bits(chosen)])


Addresses = Array | LaneAddresses
"""The tokens of a channel of addresses: one for each access, or vectors of them."""


def lane_rows(rows: Array) -> LaneRows:
    """An array with a row for each vector."""
    mask = rows != HOLE
    lanes, chosen = mask.shape[1], mask.reshape(-1)
    whole = mask if lanes % 8 else chosen
    bits = np.packbits(whole, axis=-1).reshape(len(rows), -(-lanes // 8))
    sparse = np.count_nonzero(chosen) * _FEW_LANES < len(chosen)
    picked = rows.reshape(-1)[np.flatnonzero(chosen) if sparse else chosen]
    return LaneRows(chosen=bits, addresses=narrowed(picked))


def lane_addresses(lanes: int, parts: Sequence[LaneRows]) -> LaneAddresses:
    """All vectors of some parts, in order."""
    nothing = np.zeros((0, -(-lanes // 8)), np.uint8)
    bits = np.concatenate([nothing, *(part.chosen for part in parts)])
    counts = [_bits(bits[at : at + _BLOCK]) for at in range(0, len(bits), _BLOCK)]
    return LaneAddresses(
        lanes=lanes,
        chosen=bits,
        addresses=np.concatenate([np.zeros(0, np.int32), *(part.addresses for part in parts)]),
        before=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)]),
    )


def narrowed(addresses: Array) -> Array:
    """The numbers in 32 bits if all of them fit."""
    fits = not len(addresses) or int(addresses.max()) <= np.iinfo(np.int32).max
    return addresses.astype(np.int32 if fits else np.int64)


def _bits(rows: NDArray[np.uint8]) -> int:
    return int(np.bitwise_count(rows).sum(dtype=np.int64))
