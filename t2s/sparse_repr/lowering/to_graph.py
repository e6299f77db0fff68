"""From a diagram to the graph: the machines of every block, for given extents and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from graphlib import TopologicalSorter
from math import prod

import numpy as np

from t2s.core.expr import Const, Expr, spread
from t2s.core.names import NameSupply
from t2s.core.types import INT32, Type, UInt
from t2s.core.walk import Term, walk
from t2s.graph.deciding import deciding_arrays
from t2s.graph.graph import UNBOUNDED, Channel, Graph, StreamKind, Tensor, TensorRole, located
from t2s.graph.nameless import nameless_text
from t2s.graph.verify import verify_graph
from t2s.sparse_repr.blocks.alu import StoreValues
from t2s.sparse_repr.blocks.connections import Connections, Stream
from t2s.sparse_repr.blocks.locators import LocateAddress
from t2s.sparse_repr.blocks.repeats import Repeat
from t2s.sparse_repr.blocks.scanners import WriteLevel
from t2s.sparse_repr.blocks.writers import WriteValues
from t2s.sparse_repr.concrete.ir import ConcreteProgram, Where
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.levels import Array, Arrays, GraphLevel, PackingError
from t2s.sparse_repr.lowering.compute import Computed
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire, TokenKind, Wired
from t2s.sparse_repr.lowering.fiber_buffers import held_fibers
from t2s.sparse_repr.lowering.scope import Blocks, LoopLevel, NestScope
from t2s.sparse_repr.notation.ir import Access
from t2s.sparse_repr.semiring import Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, level_extents, misfit

LOOK_AHEAD = 1
"""Cycles for which a block may hold a token until it has received the next one."""


@dataclass(frozen=True, kw_only=True)
class StageGraph:
    """The graph of a stage, with its tensors: ``reads`` are inputs, ``writes`` results."""

    graph: Graph
    reads: tuple[ArrayOf, ...]
    writes: tuple[ArrayOf, ...]

    @cached_property
    def nameless(self) -> str:
        """What the graph shares with those that are equal but for names."""
        return nameless_text(self.graph)

    def deciding(self, addresses: bool) -> frozenset[str]:
        """The arrays on which its times depend, with or without addresses, and what it stores."""
        return self._deciding_with_addresses if addresses else self._deciding

    @cached_property
    def _deciding(self) -> frozenset[str]:
        return deciding_arrays(self.graph, self._pattern)

    @cached_property
    def _deciding_with_addresses(self) -> frozenset[str]:
        return deciding_arrays(self.graph, self._pattern, addresses=True)

    @property
    def _pattern(self) -> tuple[str, ...]:
        return tuple(port.name for port in self.writes if port.level is not None)


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

    Coordinates and references are of the type ``index``.  ``capacity`` and ``latency`` are those of
    all channels; ``balance`` deepens channels on the shorter of several reconvergent paths.
    """
    streams = Connections(name, index=index, capacity=capacity, latency=latency)
    writer = _StageWriter(streams, program, diagram, extents, values)
    held = held_fibers(diagram) if capacity < UNBOUNDED and _has_temporaries(program) else {}
    for number, wired in enumerate(diagram.blocks):
        levels = (held.get((number, at), ()) for at in range(len(wired.inputs)))
        writer.write(wired, [_tokens(variables, extents) for variables in levels])
    graph = located(streams.unverified(), program.location)
    if balance and capacity < UNBOUNDED:
        graph = balanced(graph)
    verify_graph(graph)
    return StageGraph(graph=graph, reads=tuple(writer.reads), writes=tuple(writer.writes))


def _has_temporaries(program: ConcreteProgram) -> bool:
    """Whether a tensor inside of a stage may be read twice: those in memory have many scanners."""
    return any(isinstance(term, Where) for stage in program.stages for term in walk(stage))


def _tokens(variables: Sequence[str], extents: Mapping[str, int]) -> int:
    """The tokens of a whole fiber with levels over variables; none without levels."""
    return prod(extents[name] + 1 for name in variables) if variables else 0


def balanced(graph: Graph) -> Graph:
    """Deepen channels on short reconvergent paths by the latency of the longest path beside them.

    A stream often reaches a block on two paths, for example the coordinates that a reducer takes
    with the values that were computed from them.  Tokens of the short path wait for those of the
    long one, so its channel has to hold one for every cycle of the difference, or the long path
    never fills.  (The channels of [SAM] are unbounded.)

    The graph must be acyclic, except for self-loops and the skip requests of intersecters.
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
    sources = {
        name: {channel.source for channel in sources_in} for name, sources_in in into.items()
    }
    for name in TopologicalSorter(sources).static_order():
        start[name] = max(
            (start[incoming.source] + incoming.latency + LOOK_AHEAD for incoming in into[name]),
            default=0,
        )
    waits = {
        incoming.name: start[incoming.sink] - start[incoming.source] - incoming.latency - LOOK_AHEAD
        for incoming in channels
    }
    return replace(
        graph,
        channels=tuple(
            replace(incoming, capacity=incoming.capacity + waits.get(incoming.name, 0))
            for incoming in graph.channels
        ),
    )


@dataclass
class _StageWriter:
    """Writes the blocks of a stage; the context of the next block is that of ``Placing``."""

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
    own: Semiring | None = None

    def __post_init__(self) -> None:
        self.names = ArrayNames(self.values, self.streams.index)
        self.variables = {loop.name: loop.index for loop in self.diagram.loops}
        for loop in self.diagram.loops:
            self.streams.add_region(loop)

    @property
    def semiring(self) -> Semiring:
        return self.own or self.diagram.semiring

    def write(self, wired: Wired, kept: Sequence[int]) -> None:
        """Put a block into the graph; its inputs keep so many tokens."""
        self.streams.region = wired.loop or None
        self.loop, self.own = wired.loop, wired.semiring
        self.about = wired.outputs[0].about.split(" ")[0] if wired.outputs else ""
        inputs = [
            replace(self.ports[wire], kept=tokens)
            for wire, tokens in zip(wired.inputs, kept, strict=True)
        ]
        outputs = wired.block.place(self, *inputs)
        self.ports.update(zip(wired.outputs, outputs, strict=True))

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
        name = self.names.of(tensor, level, array, words=words)
        if name not in self.tensors:
            role = TensorRole.OUTPUT if written else TensorRole.INPUT
            self.tensors[name] = self.streams.tensor(name.name, name.type, role=role)
            (self.writes if written else self.reads).append(name)
        return self.tensors[name]


# Construction: the writers of the result, and the arrays of a stage's graph.


def construct(scope: NestScope, result: Access, computed: Computed) -> None:
    """Write what a stage computes, in the format in which the program stores it."""
    format = scope.program.format_of(result.tensor)
    levels = _looped(program_levels(result, scope.program), computed)
    loops = computed.loops
    region = loops[-1].region if loops else ""
    if not all(level.full for level in format.levels):
        for number, loop in enumerate(loops):
            if format.levels[number].full:  # the loop visits every coordinate
                continue
            written = loop.coordinate
            if format.coordinate_list:
                written = _for_each_entry(scope.blocks, loops[number:])
            block = WriteLevel(
                tensor=result.tensor,
                level=number,
                empty_fibers=number > 0 and format.levels[number - 1].full,
            )
            above = [loops[number - 1].coordinate] if number else []
            scope.blocks.add(block, [written, *above], [], loop.region, result.location)
    elif levels != computed.variables or not all(loop.covered for loop in loops):
        address = _address(scope.blocks, scope.program, result, computed)
        store = StoreValues(tensor=result.tensor)
        scope.blocks.add(store, [address, computed.value], [], region, result.location)
        return
    write = WriteValues(tensor=result.tensor)
    scope.blocks.add(write, [computed.value], [], region, result.location)


def _for_each_entry(blocks: Blocks, loops: Sequence[LoopLevel]) -> DiagramWire:
    """Repeat the coordinates of the first loop for every coordinate of the innermost one."""
    stream = loops[0].coordinate
    for loop in loops[1:]:
        repeated = blocks.like(stream, loop.coordinate.depth)
        blocks.add(Repeat(), [loop.coordinate, stream], [repeated], loop.region)
        stream = repeated
    return stream


def program_levels(result: Access, program: ConcreteProgram) -> tuple[str, ...]:
    """The variable of every level of a result."""
    return tuple(result.variables[mode] for mode in program.format_of(result.tensor).modes)


def _looped(levels: tuple[str, ...], computed: Computed) -> tuple[str, ...]:
    """The levels without the innermost one, over the lanes of vectors."""
    in_lanes = computed.value.lanes > 1 and not computed.value.axes
    return levels[:-1] if in_lanes else levels


def _address(
    blocks: Blocks, program: ConcreteProgram, result: Access, computed: Computed
) -> DiagramWire:
    """The address of every value in a dense tensor, from the coordinates of its loops."""
    levels = _looped(program_levels(result, program), computed)
    in_order = levels == computed.variables
    address: DiagramWire | None = None
    for loop in computed.loops:
        before, coordinate, variable = address, loop.coordinate, loop.variable
        if before is not None:
            before = blocks.like(before, before.depth + 1)
            assert address is not None
            blocks.add(Repeat(), [coordinate, address], [before], loop.region)
        inner = levels[levels.index(variable) + 1 :]
        if before is None and (in_order or not inner):
            address = coordinate
            continue
        address = blocks.stream(TokenKind.REFERENCE, coordinate.depth, result.tensor)
        block = LocateAddress(
            scale=(variable,) if in_order else (), stride=() if in_order else inner
        )
        operands = [coordinate] if before is None else [coordinate, before]
        blocks.add(block, operands, [address], loop.region)
    if address is None:
        raise ValueError("a scalar has no address")
    return address


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayOf(Term):
    """An array of a tensor: ``array`` of a level, or the values where ``level`` is ``None``."""

    name: str
    tensor: str
    level: int | None
    array: str
    type: Type


class ArrayNames:
    """The graph's names of the arrays that a stage uses."""

    def __init__(self, values: Type, index: Type, taken: tuple[str, ...] = ()) -> None:
        self.values = values
        self.index = index
        self.found: dict[tuple[str, int | None, str], ArrayOf] = {}
        self._names = NameSupply(taken)

    def of(self, tensor: str, level: int | None, array: str, *, words: bool = False) -> ArrayOf:
        """The name of an array, equal on every call.  ``words``: it holds words of bits."""
        key = tensor, level, array
        if key not in self.found:
            suffix = array if level is None else f"{array}{level}"
            self.found[key] = ArrayOf(
                name=self._names.fresh(f"{tensor}_{suffix}"),
                tensor=tensor,
                level=level,
                array=array,
                type=self.values if level is None else UInt(64) if words else self.index,
            )
        return self.found[key]


def array_in(tensor: SparseTensor, array: ArrayOf) -> Array:
    """The array of a tensor as the graph takes it; without a copy where the type is right."""
    stored = tensor.values if array.level is None else tensor.levels[array.level][array.array]
    return np.ascontiguousarray(np.asarray(stored).reshape(-1).astype(array.type.numpy, copy=False))


def tensor_of(
    arrays: dict[tuple[int | None, str], Array],
    shape: tuple[int, ...],
    format: Format,
    fill: float | int = 0,
) -> SparseTensor:
    """The tensor that a stage wrote; arrays that are too short are padded with ``fill``."""
    levels: list[Arrays] = []
    count = 1
    extents = level_extents(shape, format)
    for number, (level, extent) in enumerate(zip(format.levels, extents, strict=True)):
        stored = {
            array: stored_array for (at, array), stored_array in arrays.items() if at == number
        }
        try:
            level_arrays = level.written(stored, count, extent)
        except PackingError as error:
            raise misfit(format, level, error) from None
        levels.append(level_arrays)
        count = level.positions(level_arrays, count, extent)
    values = arrays[None, "vals"]
    count *= format.lanes
    if len(values) < count:
        values = np.concatenate([values, np.full(count - len(values), fill, values.dtype)])
    return as_stored(shape, format, levels, values, fill=fill)
