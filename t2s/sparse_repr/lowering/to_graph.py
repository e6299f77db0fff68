"""From a diagram to the graph: every block by its machines, for given extents and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from t2s.core.expr import Const, Expr
from t2s.core.types import INT32, Type
from t2s.graph.graph import Graph, Region, RegionKind, Tensor, TensorRole, located
from t2s.graph.verify import verify_graph
from t2s.sparse_repr.blocks.connections import UNBOUNDED, Connections, Stream
from t2s.sparse_repr.blocks.expressions import spread
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.levels import GraphLevel
from t2s.sparse_repr.lowering.arrays import ArrayNames, ArrayOf
from t2s.sparse_repr.lowering.balance import balanced
from t2s.sparse_repr.lowering.diagram import Diagram, LoopKind, Wire, Wired
from t2s.sparse_repr.semiring import Semiring

_REGIONS = {
    LoopKind.RANGE: RegionKind.RANGE,
    LoopKind.SCAN: RegionKind.SCAN,
    LoopKind.INTERSECT: RegionKind.INTERSECT,
    LoopKind.UNION: RegionKind.UNION,
}


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
    writer = _Writer(streams, program, diagram, extents, values)
    for wired in diagram.blocks:
        writer.write(wired)
    graph = located(streams.unverified(), program.location)
    if balance and capacity < UNBOUNDED:
        graph = balanced(graph)
    verify_graph(graph)
    return StageGraph(graph=graph, reads=tuple(writer.reads), writes=tuple(writer.writes))


@dataclass
class _Writer:
    """The streams of the wires so far, and where the next block is put (see ``Placing``)."""

    streams: Connections
    program: ConcreteProgram
    diagram: Diagram
    extents: Mapping[str, int]
    values: Type
    ports: dict[Wire, Stream] = field(default_factory=dict)
    tensors: dict[ArrayOf, Tensor] = field(default_factory=dict)
    reads: list[ArrayOf] = field(default_factory=list)
    writes: list[ArrayOf] = field(default_factory=list)
    loop: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        self.names = ArrayNames(self.values, self.streams.index)
        self.variables = {loop.name: loop.variable for loop in self.diagram.loops}
        for loop in self.diagram.loops:
            self.streams.add_region(
                Region(
                    name=loop.name,
                    index=loop.variable,
                    kind=_REGIONS[loop.kind],
                    parent=loop.parent,
                )
            )

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
