"""The module of the whole design: its nodes, and a FIFO for every element of every channel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from t2s.backends.base import ChannelTimes, DeviceTimes
from t2s.backends.text.expressions import (
    Name,
    number,
)
from t2s.backends.text.identifiers import Identifiers
from t2s.backends.verilog import interfaces as port
from t2s.backends.verilog import verilog_ast as ast
from t2s.backends.verilog.data_types import bits_of, signal_names
from t2s.backends.verilog.interfaces import FAULT_TYPE, Interface, interface_of, token_bits
from t2s.backends.verilog.limits import Bounds
from t2s.backends.verilog.machine_ranges import UNKNOWN, Ranges
from t2s.backends.verilog.machine_stages import machine_plan
from t2s.backends.verilog.stages import AT_ONCE, StagePlan, plan_of
from t2s.backends.verilog.storage import Counts, most_tokens, tokens_sent
from t2s.backends.verilog.technology import GENERIC, Technology
from t2s.graph.graph import Channel, Graph
from t2s.graph.nodes import Machine, Node, PEArray

Fresh = Callable[[str], str]

MOST_TOKENS = 1 << 16
"""Room of an emitted FIFO at most, in tokens; one that takes more than that fails."""

LIBRARY = (
    *("fifo", "adjustable_fifo", "delay", "reduction", "multiply", "multiply_wide"),
    *("accumulate", "CCU2C", "MULT18X18D"),
    *("operators", "floats", "stalls", "testbench", "top", "chip", "ecp5_primitives"),
    *("float_parts", "float_add", "float_multiply", "float_round", "leading_zeros"),
    *("optional_register", "pipeline_registers"),
    *("banks", "input_bank", "output_bank", "wishbone", "slave"),
    *("image", "judge", "last_cycle", "later_cycle", "self_test", "serial", "board"),
)
"""Modules and packages that are the same in every design."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessNames:
    """A load or store statement at the top: names of its signals."""

    enable: str
    address: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchNames:
    """A search at the top: names of its signals."""

    enable: str
    begin: str
    end: str
    value: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNames:
    """A node at the top: names of its signals."""

    module: str
    node: str
    interval: str
    fires: str
    finished: str
    ready: str
    moved: str
    granted: str
    fault: str
    loads: tuple[AccessNames, ...]
    stores: tuple[AccessNames, ...]
    searches: tuple[SearchNames, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelNames:
    """A channel at the top: names of its signals."""

    fifos: str
    latency: str
    capacity: str
    held: str
    push: str
    value: str
    space: str
    pop: str
    valid: str
    token: str


@dataclass(frozen=True, kw_only=True)
class Top:
    """All names that the modules around the nodes need.

    ``constants`` are the times of the device for which the design is built; ``None`` makes them
    inputs.  ``ranges`` are those of its machines.  ``chip`` is the module that starts the design,
    with ports ``start`` and ``done``.  ``sent`` has the most tokens that each element of a channel
    gets, if times are constants.
    """

    graph: Graph
    constants: DeviceTimes | None
    ranges: Ranges
    module: str
    chip: str
    start: str
    done: str
    nodes: tuple[tuple[Interface, NodeNames], ...]
    channels: tuple[tuple[Channel, ChannelNames], ...]
    parameters: tuple[str, ...]
    identifiers: Identifiers
    sent: Mapping[str, Counts | None] = field(default_factory=dict)

    def capacity(self, channel: str) -> int:
        """The tokens that an element of a channel has to hold, with constant times."""
        assert self.constants is not None
        capacity, most = self.constants.channels[channel].capacity, most_tokens(self.sent[channel])
        return capacity if most is None else max(1, min(capacity, most))

    @cached_property
    def never_full(self) -> frozenset[str]:
        """The channels that have room for all tokens that they ever get."""
        if self.constants is None:
            return frozenset()
        times = self.constants.channels
        most = {name: most_tokens(sent) for name, sent in self.sent.items()}
        return frozenset(n for n, m in most.items() if m is not None and m <= times[n].capacity)

    @property
    def ports(self) -> tuple[ast.ModulePort, ...]:
        """The ports of the design; those of memory and of firings have one element per PE."""
        ports = [ast.input_port(port.CLOCK), ast.input_port(port.RESET)]
        for parameter, text in zip(self.graph.parameters, self.parameters, strict=True):
            ports.append(ast.input_port(text, bits_of(parameter.type)))
        for channel, names in self.channels if self.constants is None else ():
            ports += [
                ast.input_port(names.latency, ast.WORD),
                ast.input_port(names.capacity, ast.WORD),
            ]
            ports.append(ast.output_port(names.held, ast.WORD, channel.element_count))
        for interface, node in self.nodes:
            ports += _node_ports(interface, node)
        return tuple(ports)


def _node_ports(interface: Interface, names: NodeNames) -> list[ast.ModulePort]:
    places = interface.node.place_count
    ports = [] if interface.interval else [ast.input_port(names.interval, ast.WORD)]
    ports.append(ast.output_port(names.fires, ast.BIT, places))
    ports.append(ast.output_port(names.finished, ast.BIT, places))
    if interface.memory:
        ports += [
            ast.output_port(names.ready, ast.BIT, places),
            ast.output_port(names.moved, interface.moved_type, places),
        ]
        ports.append(ast.input_port(names.granted, ast.BIT, places))
    for load, access in zip(interface.loads, names.loads, strict=True):
        ports += _access(access, load.address_type, places)
        ports.append(ast.input_port(access.data, load.type, places))
    for store, access in zip(interface.stores, names.stores, strict=True):
        ports += _access(access, store.address_type, places)
        ports.append(ast.output_port(access.data, store.type, places))
    for search, signals in zip(interface.searches, names.searches, strict=True):
        ports += [
            ast.output_port(signals.enable, ast.BIT, places),
            ast.output_port(signals.begin, ast.WORD, places),
        ]
        ports += [
            ast.output_port(signals.end, ast.WORD, places),
            ast.output_port(signals.value, search.type, places),
        ]
        ports.append(ast.input_port(signals.found, ast.WORD, places))
    if interface.may_fail:
        ports.append(ast.output_port(names.fault, FAULT_TYPE, places))
    return ports


def _access(access: AccessNames, address: ast.Bits, places: int) -> list[ast.ModulePort]:
    return [
        ast.output_port(access.enable, ast.BIT, places),
        ast.output_port(access.address, address, places),
    ]


def top_of(
    graph: Graph,
    constants: DeviceTimes | None = None,
    technology: Technology = GENERIC,
    ranges: Ranges = UNKNOWN,
) -> Top:
    """The names of a design, with ``constants`` or with inputs in their place."""
    modules = signal_names(LIBRARY)
    intervals = {} if constants is None else constants.intervals
    interfaces = tuple(
        interface_of(
            graph,
            node,
            interval=intervals.get(node.name),
            plan=AT_ONCE if constants is None else _plan_of(graph, node, constants, technology),
            ranges=ranges,
        )
        for node in graph.nodes
    )
    nodes = {node.name: modules.fresh(node.name) for node in graph.nodes}
    module = modules.fresh(f"{graph.name}_top")
    chip = modules.fresh(f"{graph.name}_chip")
    identifiers = signal_names((*LIBRARY, module, chip, *nodes.values(), port.CLOCK, port.RESET))
    fresh = identifiers.fresh
    return Top(
        graph=graph,
        constants=constants,
        ranges=ranges,
        module=module,
        chip=chip,
        start=fresh("start"),
        done=fresh("done"),
        parameters=tuple(fresh(parameter.name) for parameter in graph.parameters),
        channels=tuple((channel, _channel_names(channel, fresh)) for channel in graph.channels),
        nodes=tuple(
            (interface, _node_names(interface, nodes[interface.node.name], fresh))
            for interface in interfaces
        ),
        identifiers=identifiers,
        sent={} if constants is None else {c.name: tokens_sent(graph, c) for c in graph.channels},
    )


def _plan_of(graph: Graph, node: Node, times: DeviceTimes, technology: Technology) -> StagePlan:
    match node:
        case Machine():
            return machine_plan(node, times, technology)
        case PEArray():
            return plan_of(graph, node, times, technology)


def _channel_names(channel: Channel, fresh: Fresh) -> ChannelNames:
    name = channel.name
    return ChannelNames(
        fifos=fresh(f"{name}_fifos"),
        latency=fresh(f"{name}_latency"),
        capacity=fresh(f"{name}_capacity"),
        held=fresh(f"{name}_held"),
        push=fresh(f"{name}_push"),
        value=fresh(f"{name}_value"),
        space=fresh(f"{name}_space"),
        pop=fresh(f"{name}_pop"),
        valid=fresh(f"{name}_valid"),
        token=fresh(f"{name}_token"),
    )


def _node_names(interface: Interface, module: str, fresh: Fresh) -> NodeNames:
    name = interface.node.name

    def access(item: port.LoadPort | port.StorePort) -> AccessNames:
        return AccessNames(
            enable=fresh(f"{name}_{item.enable}"),
            address=fresh(f"{name}_{item.address}"),
            data=fresh(f"{name}_{item.data}"),
        )

    return NodeNames(
        module=module,
        node=fresh(f"{name}_node"),
        interval=fresh(f"{name}_interval"),
        fires=fresh(f"{name}_fires"),
        finished=fresh(f"{name}_finished"),
        ready=fresh(f"{name}_ready"),
        moved=fresh(f"{name}_moved"),
        granted=fresh(f"{name}_granted"),
        fault=fresh(f"{name}_fault"),
        loads=tuple(access(load) for load in interface.loads),
        stores=tuple(access(store) for store in interface.stores),
        searches=tuple(
            SearchNames(
                enable=fresh(f"{name}_{search.enable}"),
                begin=fresh(f"{name}_{search.begin}"),
                end=fresh(f"{name}_{search.end}"),
                value=fresh(f"{name}_{search.value}"),
                found=fresh(f"{name}_{search.found}"),
            )
            for search in interface.searches
        ),
    )


def top_module(top: Top, bounds: Bounds) -> ast.HardwareModule:
    """The module of the design; ``bounds`` sizes the FIFOs."""
    items: list[ast.Item] = []
    for channel, names in top.channels:
        items += _fifos(channel, names, bounds.channels[channel.name], top)
    channels = {channel.name: names for channel, names in top.channels}
    parameters = dict(zip((p.name for p in top.graph.parameters), top.parameters, strict=True))
    items += [_node(interface, node, channels, parameters) for interface, node in top.nodes]
    return ast.HardwareModule(
        name=top.module,
        about=(
            f"The design {top.graph.name}.",
            "",
            "Latencies, capacities and intervals are in cycles and tokens.",
            "A node fires when memory grants the access for which it is ready.",
        ),
        ports=top.ports,
        items=tuple(items),
    )


def _fifos(channel: Channel, names: ChannelNames, bound: ChannelTimes, top: Top) -> list[ast.Item]:
    constants = top.constants
    type, count = token_bits(top.graph, channel, top.ranges).type, channel.element_count
    wires: list[tuple[str, ast.Bits]] = [
        (names.push, ast.BIT),
        (names.value, type),
        (names.space, ast.BIT),
    ]
    wires += [(names.pop, ast.BIT), (names.valid, ast.BIT), (names.token, type)]
    at = Name(name="at")
    connections = [
        (port.CLOCK, Name(name=port.CLOCK)),
        (port.RESET, Name(name=port.RESET)),
        ("push", ast.element(names.push, at)),
        ("value", ast.element(names.value, at)),
        ("space", ast.element(names.space, at)),
        ("pop", ast.element(names.pop, at)),
        ("valid", ast.element(names.valid, at)),
        ("token", ast.element(names.token, at)),
    ]
    if constants is None:
        connections += [
            ("latency", Name(name=names.latency)),
            ("capacity", Name(name=names.capacity)),
            ("held", ast.element(names.held, at)),
        ]
        sizes = {
            "STORAGE": min(bound.capacity, MOST_TOKENS),
            "PIPELINE": max(1, bound.latency - 1),
        }
    else:
        times = constants.channels[channel.name]
        late = next(
            interface.plan.late.get(channel.name, 0)
            for interface, _ in top.nodes
            if interface.node.name == channel.source
        )
        sizes = {"LATENCY": times.latency, "CAPACITY": top.capacity(channel.name), "LATE": late}
        sizes |= {"FILLS": 0} if channel.name in top.never_full else {}
    instance = ast.Instance(
        module="adjustable_fifo" if constants is None else "fifo",
        name="one",
        parameters=(
            ("WIDTH", number(type.total)),
            *((name, number(size)) for name, size in sizes.items()),
        ),
        connections=tuple(connections),
    )
    label = names.fifos
    return [
        *(ast.variable(text, wire, count) for text, wire in wires),
        ast.Generate(variable="at", count=count, label=label, items=(instance,)),
    ]


def _node(
    interface: Interface,
    names: NodeNames,
    channels: dict[str, ChannelNames],
    parameters: dict[str, str],
) -> ast.Instance:
    pairs = [(port.CLOCK, port.CLOCK), (port.RESET, port.RESET)]
    if interface.interval is None:
        pairs.append((port.INTERVAL, names.interval))
    pairs += [(text, parameters[parameter.name]) for parameter, text in interface.parameters]
    for taking in interface.taking:
        ends = channels[taking.channel.name]
        pairs += [(taking.valid, ends.valid), (taking.token, ends.token), (taking.pop, ends.pop)]
    for sending in interface.sending:
        ends = channels[sending.channel.name]
        pairs += [(sending.space, ends.space), (sending.push, ends.push)]
        pairs.append((sending.value, ends.value))
    items: tuple[port.LoadPort | port.StorePort, ...] = (*interface.loads, *interface.stores)
    for item, access in zip(items, (*names.loads, *names.stores), strict=True):
        pairs += [(item.enable, access.enable), (item.address, access.address)]
        pairs.append((item.data, access.data))
    for search, signals in zip(interface.searches, names.searches, strict=True):
        pairs += [(search.enable, signals.enable), (search.begin, signals.begin)]
        pairs += [(search.end, signals.end), (search.value, signals.value)]
        pairs.append((search.found, signals.found))
    if interface.memory:
        pairs += [(port.READY, names.ready), (port.MOVED, names.moved)]
        pairs.append((port.GRANTED, names.granted))
    if interface.may_fail:
        pairs.append((port.FAULT, names.fault))
    pairs += [(port.FIRES, names.fires), (port.FINISHED, names.finished)]
    return ast.Instance(
        module=names.module,
        name=names.node,
        connections=tuple((inside, Name(name=outside)) for inside, outside in pairs),
    )
