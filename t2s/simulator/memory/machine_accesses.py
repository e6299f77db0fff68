"""What machines load from and store to a device's memory: what each rule does, and where.

Which elements the firings of a machine touch follows from values, and values do not depend on
time.  So they are found before the times: ``with_addresses`` adds a channel to a graph for the
first access of a machine's rules, one for the second, and so on, into which every firing puts the
address of that access; any engine of values then gives the addresses as the tokens of these
channels.

What a firing is to memory (see ``machine_port`` for the requests that follow from it):

* An access has a *level*: 0 if its address is known when the firing begins, 1 if it needs what an
  access of level 0 loads, and so on.
* An access *decides* if what the machine is afterwards (its registers, its sorted memories, its
  mode) depends on what is loaded: the next firing waits until that is here.
* A rule *runs on* if it needs no token and none of its accesses decides: what it does follows from
  registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from t2s.core.expr import Cast, Expr, Index, Local, apply, const
from t2s.core.ops import Op
from t2s.core.types import Kind, Type
from t2s.core.walk import walk
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Role, Statement, Store
from t2s.graph.graph import Channel, Graph, Place, StreamType, Tensor
from t2s.graph.kept import KeptFor
from t2s.graph.machine import (
    Choice,
    Head,
    Machine,
    MemoryAdd,
    Mode,
    Path,
    Put,
    Rule,
    Search,
)

_ADDRESS = Type(Kind.INT, 64)
_ROOM = 64
"""Tokens that a channel of addresses begins with; it grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAccess:
    """One access of a rule: ``bytes`` of a tensor; see above for the others."""

    tensor: str
    store: bool
    bytes: int
    level: int
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleAccesses:
    """The accesses of a rule, in the order of its statements, and whether it runs on."""

    accesses: tuple[RuleAccess, ...]
    runs_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedGraph:
    """A graph whose machines say where they access memory.

    ``channels`` are those of the addresses, by machine: bytes from the start of the tensor, int64,
    a token for the first access of every firing that has one, for the second one, and so on.  They
    are the last channels of the graph; nothing takes their tokens.
    """

    graph: Graph
    channels: Mapping[str, tuple[str, ...]]


def accesses_of_rules(graph: Graph, node: Machine) -> tuple[RuleAccesses, ...]:
    """What each rule of a machine does with memory, by its code."""
    return tuple(_RuleReader(graph).read(path) for path in node.paths())


def ports_of(graph: Graph, node: Machine) -> tuple[tuple[str, bool], ...]:
    """The tensors that a machine loads (False) and stores (True), by their first access."""
    found = dict.fromkeys(
        (access.tensor, access.store)
        for rule in accesses_of_rules(graph, node)
        for access in rule.accesses
    )
    return tuple(found)


class _RuleReader:
    """Follows what is loaded through the statements of a rule.

    ``loads`` are the accesses, by number, that a local depends on.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
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
        """What the machine is afterwards depends on these."""
        self._deciding |= self._of(*(expr for expr in exprs if expr is not None))

    def _follow(self, statement: Statement) -> None:
        match statement:
            case Let(target=target, value=value):
                self._loads[target] = self._of(value)
            case Load(target=target, tensor=tensor, indices=indices, type=type):
                self._loads[target] = self._access(tensor, False, type.bytes, self._of(*indices))
            case Search(target=target, tensor=tensor, begin=begin, end=end, value=value):
                before = self._of(begin, end, value)
                self._loads[target] = self._access(tensor, False, value.type.bytes, before)
            case Store(tensor=tensor, indices=indices, value=value):
                self._access(tensor, True, value.type.bytes, self._of(*indices))
            case RegisterRead(target=target, indices=indices):
                self._loads[target] = self._of(*indices)
            case RegisterWrite(indices=indices, value=value):
                self._decide(*indices, value)
            case MemoryAdd(keys=keys, value=value):
                self._decide(*keys, value)

    def _access(
        self, tensor: str, store: bool, bytes: int, before: frozenset[int]
    ) -> frozenset[int]:
        """Note an access, whose address depends on others; what depends on it."""
        if self._graph.tensor(tensor).place is not Place.MEMORY:
            return before
        levels = (self._accesses[number].level + 1 for number in before)
        access = RuleAccess(
            tensor=tensor, store=store, bytes=bytes, level=max(levels, default=0), decides=False
        )
        self._accesses.append(access)
        return before | {len(self._accesses) - 1}


_ADDRESSED: KeptFor[None, AddressedGraph] = KeptFor()


def with_addresses(graph: Graph) -> AddressedGraph:
    """The graph with channels for the addresses of its machines' accesses."""
    return _ADDRESSED.get(graph, None, lambda: _with_addresses(graph))


def _with_addresses(graph: Graph) -> AddressedGraph:
    taken = {node.name for node in graph.nodes} | {channel.name for channel in graph.channels}
    nodes, channels = list(graph.nodes), list(graph.channels)
    names: dict[str, tuple[str, ...]] = {}
    for position, node in enumerate(graph.nodes):
        if not isinstance(node, Machine):
            continue
        count = max((len(rule.accesses) for rule in accesses_of_rules(graph, node)), default=0)
        if not count:
            continue
        sink = _fresh(f"{node.name}_addresses", taken)
        names[node.name] = tuple(_fresh(f"{sink}_{number}", taken) for number in range(count))
        nodes[position] = _putting(graph, node, names[node.name])
        nodes.append(_sink(node, sink, names[node.name]))
        channels += [_channel(node, sink, name) for name in names[node.name]]
    return AddressedGraph(
        graph=replace(graph, nodes=tuple(nodes), channels=tuple(channels)), channels=names
    )


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _channel(node: Machine, sink: str, name: str) -> Channel:
    index = tuple(Index(name=dimension.name) for dimension in node.space)
    offsets = tuple(
        apply(Op.SUBTRACT, at, const(dimension.minimum)) if dimension.minimum else at
        for at, dimension in zip(index, node.space, strict=True)
    )
    return Channel(
        name=name,
        stream=StreamType(element=_ADDRESS),
        source=node.name,
        sink=sink,
        shape=tuple(dimension.extent for dimension in node.space),
        source_index=offsets,
        sink_index=offsets,
        capacity=_ROOM,
    )


def _sink(node: Machine, name: str, channels: tuple[str, ...]) -> Machine:
    """A machine that ends at once, without taking anything."""
    end = Choice(inside=Rule(name="end"))
    return Machine(
        name=name,
        role=Role.RELAY,
        space=node.space,
        heads=tuple(Head(channel=channel, value=f"{channel}_value") for channel in channels),
        modes=(Mode(name="end", needs=(), choices=(end,)),),
    )


def _putting(graph: Graph, node: Machine, channels: tuple[str, ...]) -> Machine:
    """The machine, whose rules put the addresses of their accesses."""

    def rewritten(choice: Choice, before: tuple[Statement, ...]) -> Choice:
        before += choice.body
        match choice.inside:
            case Rule(body=body, puts=puts) as rule:
                addresses = [
                    address
                    for statement in (*before, *body)
                    if (address := _address(graph, statement)) is not None
                ]
                more = tuple(
                    Put(channel=channel, value=address)
                    for channel, address in zip(channels, addresses, strict=False)
                )
                return replace(choice, inside=replace(rule, puts=(*puts, *more)))
            case inner:
                return replace(choice, inside=tuple(rewritten(c, before) for c in inner))

    modes = tuple(
        replace(mode, choices=tuple(rewritten(choice, ()) for choice in mode.choices))
        for mode in node.modes
    )
    return replace(node, modes=modes)


def _address(graph: Graph, statement: Statement) -> Expr | None:
    """The byte of the tensor at which an access begins, if the statement is one."""
    match statement:
        case Load(tensor=name, indices=indices) | Store(tensor=name, indices=indices):
            tensor = graph.tensor(name)
        case Search(target=target, tensor=name, begin=begin):
            tensor, indices = graph.tensor(name), (Local(name=target, type=begin.type),)
        case _:
            return None
    return _offset(tensor, indices) if tensor.place is Place.MEMORY else None


def _offset(tensor: Tensor, indices: tuple[Expr, ...]) -> Expr:
    bytes = tensor.type.bytes
    address: Expr = const(0, _ADDRESS)
    for dimension, index in enumerate(indices):
        stride = bytes * prod(tensor.allocated[dimension + 1 :])
        wide = Cast(value=index, type=_ADDRESS)
        address = apply(Op.ADD, address, apply(Op.MULTIPLY, wide, const(stride, _ADDRESS)))
    return address
