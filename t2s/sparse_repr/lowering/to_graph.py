"""From a diagram to the graph: every block by its machines, for given extents and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter

from t2s.core.expr import Const, Expr
from t2s.core.types import INT32, Type
from t2s.graph.graph import (
    Channel,
    Graph,
    StreamKind,
    Tensor,
    TensorRole,
    located,
)
from t2s.graph.verify import verify_graph
from t2s.sparse_repr.blocks.connections import UNBOUNDED, Connections, Stream
from t2s.sparse_repr.blocks.expressions import spread
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.levels import GraphLevel
from t2s.sparse_repr.lowering.construct import ArrayNames, ArrayOf
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, Wired
from t2s.sparse_repr.semiring import Semiring

LOOK_AHEAD = 1
"""Cycles for which a block may hold a token until it has seen the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGraph:
    """The graph of a stage, and what its tensors are: ``reads`` to fill, ``writes`` to take."""

    graph: Graph
    reads: tuple[ArrayOf, ...]
    writes: tuple[ArrayOf, ...]


def diagram_to_graph(
    diagram: Diagram,
    program: ConcreteProgram,
    extents: Mapping[str, int],
    values: Type,
    *,
    name: str,
    capacity: int = UNBOUNDED,
    latency: int = 1,
    balance: bool = True,
    index: Type = INT32,
) -> StageGraph:
    """The graph of a stage for variables of these extents and values of this type.

    Coordinates and references are of the type ``index``.
    ``capacity`` and ``latency`` are those of all channels; with ``balance``, those that join ways
    of different length hold more.
    """
    streams = Connections(name, index=index, capacity=capacity, latency=latency)
    writer = _StageWriter(streams, program, diagram, extents, values)
    for wired in diagram.blocks:
        writer.write(wired)
    graph = located(streams.unverified(), program.location)
    if balance and capacity < UNBOUNDED:
        graph = balanced(graph)
    verify_graph(graph)
    return StageGraph(graph=graph, reads=tuple(writer.reads), writes=tuple(writer.writes))


def balanced(graph: Graph) -> Graph:
    """The same graph; a channel on a short way holds more, by the cycles of the longest beside it.

    A stream often reaches a block on two ways, as the coordinates that a reducer takes beside the
    values that were computed at them.  The tokens of the short way wait until those of the long way
    arrive: its channel has to hold one for every cycle that the long way takes more, or the long
    way is never full.  (The channels of [SAM] have no bounds.)

    The graph has no cycles, other than from a node to itself and through the wishes of an
    intersecter that skips.
    """
    channels = [
        channel
        for channel in graph.channels
        if channel.source != channel.sink and channel.stream.kind is not StreamKind.CONTROL
    ]
    into: dict[str, list[Channel]] = {node.name: [] for node in graph.nodes}
    for channel in channels:
        into[channel.sink].append(channel)
    start = dict.fromkeys(into, 0)
    sources = {name: {channel.source for channel in found} for name, found in into.items()}
    for name in TopologicalSorter(sources).static_order():
        start[name] = max(
            (start[one.source] + one.latency + LOOK_AHEAD for one in into[name]), default=0
        )
    waits = {
        one.name: start[one.sink] - start[one.source] - one.latency - LOOK_AHEAD for one in channels
    }
    return replace(
        graph,
        channels=tuple(
            replace(one, capacity=one.capacity + waits.get(one.name, 0)) for one in graph.channels
        ),
    )


@dataclass
class _StageWriter:
    """The streams of the wires so far, and where the next block is put (see ``Placing``)."""

    streams: Connections
    program: ConcreteProgram
    diagram: Diagram
    extents: Mapping[str, int]
    values: Type
    ports: dict[DiagramWire, Stream] = field(default_factory=dict)
    tensors: dict[ArrayOf, Tensor] = field(default_factory=dict)
    reads: list[ArrayOf] = field(default_factory=list)
    writes: list[ArrayOf] = field(default_factory=list)
    loop: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        self.names = ArrayNames(self.values, self.streams.index)
        self.variables = {loop.name: loop.index for loop in self.diagram.loops}
        for loop in self.diagram.loops:
            self.streams.add_region(loop)

    @property
    def semiring(self) -> Semiring:
        return self.diagram.semiring

    def write(self, wired: Wired) -> None:
        """Put a block into the graph."""
        self.streams.region = wired.loop or None
        self.loop = wired.loop
        self.about = wired.outputs[0].about.split(" ")[0] if wired.outputs else ""
        made = wired.block.place(self, *(self.ports[wire] for wire in wired.inputs))
        self.ports.update(zip(wired.outputs, made, strict=True))

    def extent(self, variable: str) -> int:
        """The extent of a variable; of that of the block's loop for ``""``."""
        return self.extents[variable or self.variables[self.loop]]

    def constant(self, value: float | int) -> Const:
        """A number of the type of the values."""
        number = float(value) if self.values.is_float else int(value)
        return Const(value=number, type=self.values)

    def zero(self, lanes: int) -> Expr:
        """The value of an empty token."""
        return spread(self.constant(self.semiring.zero), lanes)

    def values_of(self, tensor: str, *, written: bool = False) -> Tensor:
        """The array of the values of a tensor."""
        return self._array(tensor, None, "vals", written=written)

    def level(self, tensor: str, level: int, *, written: bool = False) -> GraphLevel:
        """A level of a tensor."""

        def array(number: int, of: str, words: bool) -> Tensor:
            return self._array(tensor, number, of, written=written, words=words)

        format = self.program.format_of(tensor)
        return GraphLevel(
            kind=format.levels[level],
            to=self.streams,
            number=level,
            extent=self.extent(""),
            listed=format.coordinate_list,
            arrays=array,
        )

    def _array(
        self, tensor: str, level: int | None, array: str, *, written: bool, words: bool = False
    ) -> Tensor:
        found = self.names.of(tensor, level, array, words=words)
        if found not in self.tensors:
            role = TensorRole.OUTPUT if written else TensorRole.INPUT
            self.tensors[found] = self.streams.tensor(found.name, found.type, role=role)
            (self.writes if written else self.reads).append(found)
        return self.tensors[found]
