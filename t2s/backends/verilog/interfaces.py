"""The interface of a node: names and types of the ports of its modules.

The module of one PE and that of the whole array use the same names; in the latter each port is an
unpacked array over the elements of a channel, or over the PEs.  Where a PE uses one element of a
channel only, that is a wire; a PE whose element moves while the design runs has a port for it.

A token is the bits of its value.  On a channel whose stream has nesting, the tag is above them, as
a signed number of ``TAG_BITS`` bits: 0 is a value, -1 is N, -2 is D, and 1, 2, ... are the stops.
Between machines on a chip a token has only the bits in which its values and tags differ, where
ranges of them are known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog.data_types import bits_of, signal_names
from t2s.backends.verilog.machine_ranges import (
    UNKNOWN,
    Elements,
    LoadAt,
    Ranges,
    StoreAt,
    Tag,
    Value,
)
from t2s.backends.verilog.stages import AT_ONCE, StagePlan
from t2s.backends.verilog.value_ranges import Range
from t2s.backends.verilog.verilog_ast import (
    WORD,
    Bits,
    ModulePort,
    input_port,
    output_port,
)
from t2s.core.expr import Parameter
from t2s.core.walk import walk
from t2s.graph.analysis import memory_bytes, most_bytes
from t2s.graph.body import Load, Receive, Send, Statement, Store
from t2s.graph.graph import Channel, Graph, MemorySpace, ScalarParameter, Tensor
from t2s.graph.nodes import Machine, Node, PEArray, Search

CLOCK, RESET, INTERVAL = "clock", "reset", "interval"
FIRES, FINISHED, FAULT = "fires", "finished", "fault"
READY, MOVED, GRANTED = "ready", "moved", "granted"
_PORTS = (CLOCK, RESET, INTERVAL, FIRES, FINISHED, FAULT, READY, MOVED, GRANTED)

TAG_BITS = 8
FAULT_TYPE = Bits(width=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBits:
    """The bits of the tokens of a channel: those of a value, and above them those of a tag."""

    value: Bits
    tag: Bits | None

    @property
    def type(self) -> Bits:
        """The type of a token."""
        return self.value if self.tag is None else Bits(width=self.value.total + self.tag.width)


def token_bits(graph: Graph, channel: Channel, ranges: Ranges) -> TokenBits:
    """The bits of the tokens of a channel; those at a PE have all bits of their type."""
    value = bits_of(channel.stream.element)
    tag = None if channel.stream.nesting == 0 else Bits(width=TAG_BITS, signed=True)
    ends = (graph.node(channel.source), graph.node(channel.sink))
    if all(isinstance(end, Machine) for end in ends):
        value = needed_bits(value, ranges.get(Value(channel.name)))
        if tag is not None and Tag(channel.name) in ranges:
            tag = ranges[Tag(channel.name)].bits
    return TokenBits(value=value, tag=tag)


def needed_bits(whole: Bits, range: Range | None) -> Bits:
    """Those of a type that a value in a range needs."""
    if range is None or whole.lanes > 1 or range.bits.width >= whole.width:
        return whole
    return range.bits


@dataclass(frozen=True, slots=True, kw_only=True)
class TakingPort:
    """The end of a channel at the node that receives from it.

    ``at`` is the port for the element, where that moves.
    """

    channel: Channel
    bits: TokenBits
    valid: str
    token: str
    pop: str
    at: str | None

    @property
    def type(self) -> Bits:
        """The type of a token."""
        return self.bits.type


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingPort:
    """The end of a channel at the node that sends to it.

    ``at`` is the port for the element, where that moves.  The value comes ``late`` cycles after the
    push.
    """

    channel: Channel
    bits: TokenBits
    space: str
    push: str
    value: str
    at: str | None
    late: int

    @property
    def type(self) -> Bits:
        """The type of a token."""
        return self.bits.type

    @property
    def keeps_values(self) -> bool:
        """Whether every token has a value, whatever its tag."""
        return self.channel.stream.values_under_tags


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPort:
    """The ports of a load statement: the address, and the data, which come ``stage`` cycles later.

    ``needed`` are the bits of the data that may differ.
    """

    statement: Load
    tensor: Tensor
    type: Bits
    needed: Bits
    address_type: Bits
    stage: int
    enable: str
    address: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePort:
    """The ports of a store statement: the address, and the data.

    With ``timed`` it takes the store latency of the device's memory.  The store happens ``stage``
    cycles after the firing; on a chip ``enable`` says so in that cycle, else in that of the firing.
    """

    statement: Store
    tensor: Tensor
    type: Bits
    address_type: Bits
    timed: bool
    stage: int
    enable: str
    address: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPort:
    """The ports of a search in memory: the value, the range of positions, and the result."""

    statement: Search
    tensor: Tensor
    type: Bits
    enable: str
    begin: str
    end: str
    value: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """All ports of a node, apart from clock and reset, and the identifiers in use.

    ``most_bytes`` is the most that one firing moves between the node and the device's memory.
    ``interval`` is the initiation interval, or ``None`` if it is an input.  ``plan`` are the stages
    of the datapath.  ``ranges`` are those of machines.
    """

    node: Node
    taking: tuple[TakingPort, ...]
    sending: tuple[SendingPort, ...]
    loads: tuple[LoadPort, ...]
    stores: tuple[StorePort, ...]
    searches: tuple[SearchPort, ...]
    most_bytes: int
    interval: int | None
    plan: StagePlan
    ranges: Ranges
    parameters: tuple[tuple[ScalarParameter, str], ...]
    identifiers: Identifiers

    @property
    def memory(self) -> bool:
        """Whether the node has to request memory before it fires."""
        return self.most_bytes > 0

    @property
    def moved_type(self) -> Bits:
        """The type of the bytes that a firing moves."""
        return Bits(width=max(1, self.most_bytes.bit_length()))

    @property
    def may_fail(self) -> bool:
        """Whether the node reports faults."""
        return isinstance(self.node, Machine)

    @property
    def straight(self) -> tuple[ModulePort, ...]:
        """The ports of one PE that are ports of the array as they are."""
        ports: list[ModulePort] = []
        for load in self.loads:
            ports += [
                output_port(load.enable),
                output_port(load.address, load.address_type),
                input_port(load.data, load.type),
            ]
        for store in self.stores:
            ports += [output_port(store.enable), output_port(store.address, store.address_type)]
            ports.append(output_port(store.data, store.type))
        for search in self.searches:
            ports += [
                output_port(search.enable),
                output_port(search.begin, WORD),
                output_port(search.end, WORD),
            ]
            ports += [output_port(search.value, search.type), input_port(search.found, WORD)]
        if self.memory:
            ports += [output_port(READY), output_port(MOVED, self.moved_type), input_port(GRANTED)]
        if self.may_fail:
            ports.append(output_port(FAULT, FAULT_TYPE))
        return (*ports, output_port(FIRES), output_port(FINISHED))


def interface_of(
    graph: Graph,
    node: Node,
    *,
    interval: int | None,
    plan: StagePlan = AT_ONCE,
    stores: Sequence[int] | None = None,
    moving: Collection[str] = (),
    whole: Node | None = None,
    ranges: Ranges = UNKNOWN,
) -> Interface:
    """The ports of a node.

    ``moving`` are the channels whose elements the PEs choose while the design runs.  ``whole`` is
    the node of which ``node`` is a class: its PEs request memory if any of the node's do, and
    ``stores`` says which stores of the node it has.
    """
    identifiers = signal_names(_PORTS)
    fresh = identifiers.fresh
    match node:
        case PEArray(body=body):
            receiving = [graph.channel(s.channel) for s in body if isinstance(s, Receive)]
            sending = [graph.channel(s.channel) for s in body if isinstance(s, Send)]
            statements: tuple[Statement, ...] = body
            moved = memory_bytes(whole if isinstance(whole, PEArray) else node)
        case Machine(heads=heads):
            receiving = [graph.channel(head.channel) for head in heads]
            sending = list(graph.outputs_of(node.name))
            statements, moved = tuple(node.statements()), most_bytes(graph, node)
    timed = isinstance(node, PEArray)
    storing = [s for s in statements if isinstance(s, Store)]
    numbers = range(len(storing)) if stores is None else stores
    stages = [plan.stores[number] if plan.stores else 0 for number in numbers]
    return Interface(
        node=node,
        taking=tuple(
            _taking(channel, token_bits(graph, channel, ranges), fresh, channel.name in moving)
            for channel in receiving
        ),
        sending=tuple(
            _sending(
                channel,
                token_bits(graph, channel, ranges),
                fresh,
                channel.name in moving,
                plan.late.get(channel.name, 0),
            )
            for channel in sending
        ),
        loads=tuple(
            _load(
                s,
                graph,
                fresh,
                timed,
                plan.loads[number] if plan.loads else plan.load_latency,
                ranges.get(LoadAt(node.name, number)),
                ranges,
            )
            for number, s in enumerate(s for s in statements if isinstance(s, Load))
        ),
        stores=tuple(
            _store(s, graph, fresh, timed, stage, ranges.get(StoreAt(node.name, number)))
            for number, (s, stage) in enumerate(zip(storing, stages, strict=True))
        ),
        searches=tuple(_search(s, graph, fresh) for s in statements if isinstance(s, Search)),
        most_bytes=moved,
        interval=interval,
        plan=plan,
        ranges=ranges,
        parameters=tuple((p, fresh(p.name)) for p in _parameters_of(graph, node)),
        identifiers=identifiers,
    )


Fresh = Callable[[str], str]


def _taking(channel: Channel, bits: TokenBits, fresh: Fresh, moves: bool) -> TakingPort:
    name = channel.name
    return TakingPort(
        channel=channel,
        bits=bits,
        valid=fresh(f"{name}_valid"),
        token=fresh(f"{name}_token"),
        pop=fresh(f"{name}_pop"),
        at=fresh(f"{name}_from") if moves else None,
    )


def _sending(
    channel: Channel, bits: TokenBits, fresh: Fresh, moves: bool, late: int
) -> SendingPort:
    name = channel.name
    return SendingPort(
        channel=channel,
        bits=bits,
        space=fresh(f"{name}_space"),
        push=fresh(f"{name}_push"),
        value=fresh(f"{name}_value"),
        at=fresh(f"{name}_to") if moves else None,
        late=late,
    )


def _load(
    statement: Load,
    graph: Graph,
    fresh: Fresh,
    static: bool,
    stage: int,
    at: Range | None,
    ranges: Ranges,
) -> LoadPort:
    name = statement.tensor
    tensor = graph.tensor(name)
    whole = bits_of(statement.type)
    return LoadPort(
        statement=statement,
        tensor=tensor,
        type=whole,
        needed=needed_bits(whole, ranges.get(Elements(name))),
        address_type=_address_type(tensor) if static else _address_within(at),
        stage=stage,
        enable=fresh(f"{name}_read"),
        address=fresh(f"{name}_read_address"),
        data=fresh(f"{name}_read_data"),
    )


def _address_type(tensor: Tensor) -> Bits:
    """The bits of the addresses of a tensor."""
    if tensor.open:
        return WORD
    return Bits(width=max(1, (prod(tensor.allocated) - 1).bit_length()))


def _address_within(range: Range | None) -> Bits:
    """The bits of the addresses of a machine, also of those outside of their tensor."""
    return WORD if range is None or range.low < 0 else needed_bits(WORD, range)


def _store(
    statement: Store, graph: Graph, fresh: Fresh, timed: bool, stage: int, at: Range | None
) -> StorePort:
    name = statement.tensor
    tensor = graph.tensor(name)
    return StorePort(
        statement=statement,
        tensor=tensor,
        type=bits_of(statement.value.type),
        address_type=_address_type(tensor) if timed else _address_within(at),
        stage=stage,
        timed=timed or tensor.place is MemorySpace.MEMORY,
        enable=fresh(f"{name}_write"),
        address=fresh(f"{name}_write_address"),
        data=fresh(f"{name}_write_data"),
    )


def _search(statement: Search, graph: Graph, fresh: Fresh) -> SearchPort:
    name = statement.tensor
    return SearchPort(
        statement=statement,
        tensor=graph.tensor(name),
        type=bits_of(statement.value.type),
        enable=fresh(f"{name}_search"),
        begin=fresh(f"{name}_search_begin"),
        end=fresh(f"{name}_search_end"),
        value=fresh(f"{name}_search_value"),
        found=fresh(f"{name}_search_found"),
    )


def _parameters_of(graph: Graph, node: Node) -> list[ScalarParameter]:
    """The parameters that a node reads, including those in the index maps of its channels."""
    if not graph.parameters:
        return []
    ends = (
        *(index for channel in graph.inputs_of(node.name) for index in channel.sink_index),
        *(index for channel in graph.outputs_of(node.name) for index in channel.source_index),
    )
    terms = (term for root in (node, *ends) for term in walk(root))
    used = {term.name for term in terms if isinstance(term, Parameter)}
    return [parameter for parameter in graph.parameters if parameter.name in used]


def control_ports(interface: Interface) -> list[ModulePort]:
    """Clock and reset, and the interval where it is an input."""
    ports = [input_port(CLOCK), input_port(RESET)]
    return [*ports, input_port(INTERVAL, WORD)] if interface.interval is None else ports


def ports_of_one(interface: Interface) -> tuple[ModulePort, ...]:
    """The ports of the module of one PE, or of one machine."""
    ports = control_ports(interface)
    ports += [input_port(name, bits_of(p.type)) for p, name in interface.parameters]
    for taking in interface.taking:
        ports += [input_port(taking.valid), input_port(taking.token, taking.type)]
        ports.append(output_port(taking.pop))
        ports += _element_port(taking)
    for sending in interface.sending:
        ports += [input_port(sending.space), output_port(sending.push)]
        ports.append(output_port(sending.value, sending.type))
        ports += _element_port(sending)
    return (*ports, *interface.straight)


def element_type(channel: Channel) -> Bits:
    """The bits of the number of an element of a channel."""
    return Bits(width=max(1, (channel.element_count - 1).bit_length()))


def _element_port(end: TakingPort | SendingPort) -> list[ModulePort]:
    return [] if end.at is None else [output_port(end.at, element_type(end.channel))]


def parameters_of_space(node: Node, space: Mapping[str, str]) -> tuple[tuple[str, int], ...]:
    """The parameters of a module for the position of its PE."""
    return tuple((space[d.name], d.minimum) for d in node.space if d.name in space)
