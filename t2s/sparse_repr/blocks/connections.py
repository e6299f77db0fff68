"""Blocks connected by streams, and the graph that they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import NameSupply
from t2s.core.types import INT32, Type
from t2s.graph.body import Load
from t2s.graph.build import with_channels
from t2s.graph.graph import (
    UNBOUNDED,
    Channel,
    Graph,
    MemorySpace,
    Region,
    ScalarParameter,
    StreamType,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import Node, Role
from t2s.graph.verify import verify_graph
from t2s.graph.verify_machine import accesses_of
from t2s.sparse_repr.blocks.draft import Block, BlockKind, StreamBlock
from t2s.sparse_repr.blocks.expressions import Formula


@dataclass(frozen=True, eq=False, slots=True)
class Stream:
    """The output of a port of a block.

    Channels with bounds hold ``kept`` tokens of it more than others.
    """

    owner: Connections = field(repr=False)
    node: str
    port: str
    type: StreamType
    location: SourceLocation | None = field(repr=False)
    kept: int = 0

    @property
    def nesting(self) -> int:
        """How deep its lists are nested."""
        return self.type.nesting


@dataclass(frozen=True, slots=True)
class _Placed:
    """A block of the graph, and the streams that go into its ports."""

    block: Block
    inputs: dict[str, Stream]
    region: str | None
    capacities: dict[str, int] = field(default_factory=dict)


class Connections:
    """A graph under construction: its blocks, tensors and regions so far."""

    def __init__(
        self,
        name: str,
        *,
        index: Type = INT32,
        capacity: int = UNBOUNDED,
        latency: int = 1,
        parameters: Sequence[ScalarParameter] = (),
    ) -> None:
        """An empty graph.

        Parameters
        ----------
        name: of the graph.
        index: the type of references; coordinates have the type of the array they come from.
        capacity, latency: of all channels, in tokens and cycles.
        parameters: scalars that expressions of ``compute`` may use.
        """
        self.name = name
        self.index = index
        self.region: str | None = None
        self._capacity = capacity
        self._latency = latency
        self._parameters = tuple(parameters)
        self._location = user_location()
        self._names = NameSupply()
        self._blocks: dict[str, _Placed] = {}
        self._tensors: dict[str, Tensor] = {}
        self._stored: dict[str, tuple[Tensor, Tensor]] = {}
        self._regions: list[Region] = []
        self._dense: list[Embedded] = []
        self._counts: Counter[BlockKind] = Counter()
        self._drafts: dict[Hashable, Block] = {}

    @property
    def counts(self) -> Mapping[BlockKind, int]:
        """The number of blocks of each kind; a composite block counts once."""
        return dict(self._counts)

    def tensor(
        self,
        name: str,
        type: Type,
        shape: tuple[int, ...] | None = None,
        *,
        role: TensorRole = TensorRole.INPUT,
        place: MemorySpace = MemorySpace.CHIP,
    ) -> Tensor:
        """Declare a tensor; without a shape it is open: of one dimension and of any length."""
        if name in self._tensors:
            raise UserError(
                f"the tensor {name!r} is declared twice",
                location=user_location(),
                expected="a name of its own for each tensor",
                given=repr(name),
                notes=[(self._tensors[name].location, f"the first {name!r} is declared here")],
            )
        tensor = Tensor(
            name=name,
            type=type,
            shape=(0,) if shape is None else shape,
            role=role,
            open=shape is None,
            place=place,
            location=user_location(),
        )
        self._tensors[name] = tensor
        return tensor

    def output(self, name: str, type: Type, shape: tuple[int, ...] | None = None) -> Tensor:
        """Declare an output on the chip."""
        return self.tensor(name, type, shape, role=TensorRole.OUTPUT)

    def count(self, kind: BlockKind) -> None:
        """Count a composite block, whose parts are placed without being counted."""
        self._counts[kind] += 1

    def add_region(self, region: Region) -> None:
        """Declare a region, and put the blocks that follow into it (see ``region``)."""
        self._regions.append(region)
        self.region = region.name

    def drafted(self, block: StreamBlock, inputs: Sequence[StreamType]) -> Block:
        """The machine of a block for inputs of these types; the same one for equal blocks.

        Machines that differ only in their channels then share all of their expressions.
        """
        location = user_location()
        key = _key(block), tuple(inputs), location
        if key not in self._drafts:
            self._drafts[key] = block.block(inputs, location)
        return self._drafts[key]

    def put(
        self,
        block: StreamBlock,
        name: str,
        *inputs: Stream,
        later: Sequence[str] = (),
        count: bool = True,
    ) -> tuple[Stream, ...]:
        """Put a block into the graph; its output streams for its inputs, in the order of its ports.

        See ``place`` for ``later``.
        """
        drafted = self.drafted(block, [stream.type for stream in inputs])
        named = {port.port: stream for port, stream in zip(drafted.inputs, inputs, strict=False)}
        return self.place(drafted, name, named, later=later, count=count)

    def place(
        self,
        block: Block,
        name: str,
        inputs: Mapping[str, Stream],
        *,
        later: Sequence[str] = (),
        count: bool = True,
    ) -> tuple[Stream, ...]:
        """Put any machine into the graph; its output streams, in the order of its ports.

        Ports in ``later`` are left open, for ``connect``.  Raises ``UserError`` if another port is
        left open, or a stream does not fit its port.
        """
        fresh = self._names.fresh(name)
        for port in block.inputs:
            if port.port not in later:
                self._check_operand(fresh, port.port, port.stream, inputs.get(port.port))
        for tensor in block.tensors:
            self._tensors.setdefault(tensor.name, tensor)
        self._blocks[fresh] = _Placed(block, dict(inputs), self.region)
        self._counts[block.kind] += count
        location = block.machine.location
        return tuple(Stream(self, fresh, o.port, o.stream, location) for o in block.outputs)

    def pair(self, block: StreamBlock, name: str, *inputs: Stream) -> tuple[Stream, Stream]:
        """Put a block with two outputs."""
        first, second = self.put(block, name, *inputs)
        return first, second

    def comes_from(self, stream: Stream, positions: Tensor, coordinates: Tensor) -> None:
        """Record that a stream carries the coordinates that are stored between positions."""
        self._stored[stream.node] = positions, coordinates

    def require_order(self, stream: Stream) -> None:
        """Make runs check that the coordinates of a stream increase, if they are inputs."""
        positions, coordinates = self._stored.get(stream.node, (None, None))
        if positions is None or coordinates is None:
            return
        known = self._tensors[coordinates.name]
        inputs = positions.role is coordinates.role is TensorRole.INPUT
        if inputs and known.ascending is None:
            self._tensors[coordinates.name] = replace(known, ascending=positions.name)

    def connect(self, stream: Stream, node: str, port: str, capacity: int = 1) -> None:
        """Connect a port that was left open, which closes a cycle in the graph.

        Its channel holds at least ``capacity`` tokens.
        """
        placed = self._blocks.get(node)
        ports = {} if placed is None else {item.port: item.stream for item in placed.block.inputs}
        if placed is None or port not in ports:
            raise UserError(
                f"block {node!r} has no port {port!r}",
                location=user_location(),
                expected=f"a port of {node!r}: {', '.join(ports)}" if ports else "a block placed",
            )
        expected = ports[port]
        self._check_operand(node, port, expected, stream)
        placed.inputs[port] = stream
        placed.capacities[port] = capacity

    def embed(self, dense: Graph, feeding: Mapping[str, Stream]) -> None:
        """Put a dense design into the graph, with streams in place of some of its load units.

        ``feeding`` maps the name of a load unit to the dense stream (``values_only``) that replaces
        it; tensors that only these units loaded disappear.  Nodes, tensors, parameters and regions
        keep their names.  Raises ``UserError`` if a unit cannot be replaced.
        """
        for stream in feeding.values():
            if stream.owner is not self:
                raise UserError(
                    f"a stream of {stream.owner.name!r} cannot feed a design in {self.name!r}",
                    location=user_location(),
                    expected=f"streams of {self.name!r}",
                    given=f"{stream.port!r} of {stream.node!r} in {stream.owner.name!r}",
                )
        embedded = embedded_design(dense, {name: s.type for name, s in feeding.items()})
        for node in embedded.nodes:
            if self._names.fresh(node.name) != node.name:
                raise taken("node", node.name, node.location)
        for tensor in embedded.tensors:
            if tensor.name in self._tensors:
                raise taken("tensor", tensor.name, tensor.location)
            self._tensors[tensor.name] = tensor
        self._parameters += embedded.parameters
        self._regions += embedded.regions
        self._dense.append(replace(embedded, feeding=dict(feeding)))

    def _check_operand(
        self, block: str, port: str, expected: StreamType, stream: Stream | None
    ) -> None:
        if stream is not None and stream.owner is self and stream.type == expected:
            return
        text = "nothing" if stream is None else f"a stream of {stream.type.element}"
        if stream is not None and stream.owner is not self:
            text = f"a stream of {stream.owner.name!r}"
        elif stream is not None:
            text += f", nested {stream.nesting} deep, from {stream.node!r}"
        raise UserError(
            f"the input {port!r} of {block!r} cannot take that stream",
            location=user_location(),
            expected=f"a stream of {expected.element}, nested {expected.nesting} deep, of"
            f" {self.name!r}",
            given=text,
        )

    def graph(self) -> Graph:
        """The graph, verified.  Raises ``GraphError`` if it breaks a rule."""
        graph = self.unverified()
        verify_graph(graph)
        return graph

    def _capacity_of(self, placed: _Placed, port: str, stream: Stream) -> int:
        capacity = max(self._capacity, placed.capacities.get(port, 1))
        return capacity + stream.kept if capacity < UNBOUNDED else capacity

    def unverified(self) -> Graph:
        """The graph, for callers that transform it before it is verified."""
        dense = [channel for design in self._dense for channel in design.channels]
        fed = [channel for design in self._dense for channel, _ in design.fed]
        names = NameSupply(channel.name for channel in (*dense, *fed))
        channels: list[Channel] = dense
        into: dict[str, dict[str, str]] = {name: {} for name in self._blocks}
        out_of: dict[str, dict[str, list[str]]] = {name: {} for name in self._blocks}
        for sink, placed in self._blocks.items():
            for port, stream in placed.inputs.items():
                name = names.fresh(f"{stream.node}_{stream.port}_to_{sink}_{port}")
                into[sink][port] = name
                out_of[stream.node].setdefault(stream.port, []).append(name)
                channels.append(
                    Channel(
                        name=name,
                        stream=stream.type,
                        source=stream.node,
                        sink=sink,
                        capacity=self._capacity_of(placed, port, stream),
                        latency=self._latency,
                        location=placed.block.machine.location,
                    )
                )
        for design in self._dense:
            for channel, unit in design.fed:
                stream = design.feeding[unit]
                out_of[stream.node].setdefault(stream.port, []).append(channel.name)
                channels.append(replace(channel, source=stream.node))
        nodes: list[Node] = [
            replace(
                with_channels(placed.block.machine, out_of[name], into[name]),
                name=name,
                region=placed.region,
            )
            for name, placed in self._blocks.items()
        ]
        return Graph(
            name=self.name,
            nodes=(*nodes, *(node for design in self._dense for node in design.nodes)),
            channels=tuple(channels),
            tensors=tuple(self._tensors.values()),
            parameters=self._parameters,
            regions=tuple(self._regions),
            location=self._location,
        )


def _key(argument: Any) -> Hashable:
    """A key that identifies the parameters of a block; it also tells 0.0 from -0.0."""
    match argument:
        case tuple():
            return tuple(map(_key, argument))
        case float() | Expr() | Formula():
            return repr(argument)
        case StreamBlock():
            names = (field.name for field in fields(cast(Any, argument)))
            return type(argument), *(_key(getattr(argument, name)) for name in names)
        case _:
            return cast(Hashable, argument)


# Dense designs inside graphs of streams: streams replace load units.


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """A dense design without some of its load units.

    ``fed`` are the channels that the removed units sent to, each with the name of its unit;
    ``feeding`` are the streams that replace the units.
    """

    nodes: tuple[Node, ...]
    channels: tuple[Channel, ...]
    fed: tuple[tuple[Channel, str], ...]
    tensors: tuple[Tensor, ...]
    parameters: tuple[ScalarParameter, ...]
    regions: tuple[Region, ...]
    feeding: Mapping[str, Any] = field(default_factory=dict)


def embedded_design(dense: Graph, feeding: Mapping[str, StreamType]) -> Embedded:
    """Take the load units named in ``feeding`` out of a design.

    Raises ``UserError`` for a node that is not a load unit, for one with several PEs, and for a
    stream whose type differs from that of the unit's channels.
    """
    for name, stream in feeding.items():
        _check_unit(dense, name, stream)
    nodes = tuple(node for node in dense.nodes if node.name not in feeding)
    used = {tensor for node in nodes for tensor in accesses_of(node)}
    tensors = tuple(
        tensor
        for tensor in dense.tensors
        if tensor.name in used or tensor.role is not TensorRole.INPUT
    )
    return Embedded(
        nodes=nodes,
        channels=tuple(channel for channel in dense.channels if channel.source not in feeding),
        fed=tuple((c, c.source) for c in dense.channels if c.source in feeding),
        tensors=tensors,
        parameters=dense.parameters,
        regions=dense.regions,
    )


def _check_unit(dense: Graph, name: str, stream: StreamType) -> None:
    units = {
        node.name: node
        for node in dense.pe_arrays
        if node.role is Role.LOAD and any(isinstance(s, Load) for s in node.body)
    }
    if name not in units:
        raise UserError(
            f"{dense.name!r} has no load unit {name!r}",
            location=user_location(),
            expected=f"one of {', '.join(sorted(units)) or 'none: it has no load units'}",
            given=repr(name),
        )
    unit = units[name]
    notes = [(unit.location, f"{name!r} is made here")]
    if unit.space or dense.inputs_of(name):
        raise UserError(
            f"the load unit {name!r} of {dense.name!r} cannot be replaced by a stream",
            location=user_location(),
            expected="a single unit that waits for nothing",
            given=f"{unit.place_count} units" if unit.space else "a unit that waits for tokens",
            notes=notes,
            hint="let one unit load, and the PEs pass the values on (forward, scatter)",
        )
    for channel in dense.outputs_of(name):
        if channel.shape or channel.stream != stream:
            raise UserError(
                f"the stream for {name!r} does not fit the channel {channel.name!r}",
                location=user_location(),
                expected=f"{channel.stream.element} values, nested {channel.stream.nesting} deep,"
                f" for a channel of shape {channel.shape}",
                given=f"{stream.element} values, nested {stream.nesting} deep",
                notes=notes,
                hint="values_only makes a dense stream; compute casts",
            )


def taken(kind: str, name: str, location: SourceLocation | None) -> UserError:
    """The error for a name that is used twice."""
    return UserError(
        f"the {kind} name {name!r} is taken",
        location=user_location(),
        expected=f"a name of its own for each {kind}",
        given=repr(name),
        notes=[(location, f"the {kind} of the dense design is made here")],
    )
