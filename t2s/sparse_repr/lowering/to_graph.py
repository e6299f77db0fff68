"""From a diagram to the graph: every block by its machine, for given extents and types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from t2s.core.expr import Const, Expr, ReduceLanes, apply
from t2s.core.ops import Op
from t2s.core.types import INT32, Type
from t2s.graph.graph import Graph, Region, RegionKind, Tensor, TensorRole
from t2s.graph.locations import located
from t2s.graph.verify import verify_graph
from t2s.sparse_repr.blocks.expressions import Formula, both, either, spread
from t2s.sparse_repr.blocks.reducers import EmptyFiber
from t2s.sparse_repr.concrete.ir import ConcreteProgram
from t2s.sparse_repr.levels import Compressed, Dense, words_of
from t2s.sparse_repr.lowering.arrays import ArrayNames, ArrayOf
from t2s.sparse_repr.lowering.balance import balanced
from t2s.sparse_repr.lowering.diagram import (
    AnyBlock,
    Compute,
    Count,
    Deal,
    Diagram,
    Drop,
    DropMissing,
    Empty,
    Fill,
    Flatten,
    Gather,
    Join,
    JoinKind,
    Load,
    Locate,
    LoopKind,
    Lost,
    Manner,
    Reduce,
    Regroup,
    Repeat,
    Root,
    Scan,
    ScanJoin,
    Scatter,
    Spread,
    Stream,
    SumLanes,
    WriteLevel,
    WriteValues,
)
from t2s.sparse_repr.lowering.level_writers import LevelPorts, write_level
from t2s.sparse_repr.lowering.scans import ArrayOfLevel, scan_rare
from t2s.sparse_repr.streams import UNBOUNDED, Streams
from t2s.sparse_repr.streams import Stream as Port

_REGIONS = {
    LoopKind.RANGE: RegionKind.RANGE,
    LoopKind.SCAN: RegionKind.SCAN,
    LoopKind.INTERSECT: RegionKind.INTERSECT,
    LoopKind.UNION: RegionKind.UNION,
}

_EMPTY = {
    Empty.ZERO: EmptyFiber.ZERO,
    Empty.DROP: EmptyFiber.DROP,
    Empty.MISSING: EmptyFiber.MISSING,
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
    streams = Streams(name, index=index, capacity=capacity, latency=latency)
    writer = _Writer(streams, program, diagram, extents, values)
    for block in diagram.blocks:
        writer.enter(block.variable)
        writer.write(block)
    graph = located(streams.unverified(), program.location)
    if balance and capacity < UNBOUNDED:
        graph = balanced(graph)
    verify_graph(graph)
    return StageGraph(graph=graph, reads=tuple(writer.reads), writes=tuple(writer.writes))


@dataclass(frozen=True, slots=True)
class _Constant(Formula):
    """A constant, whatever the operand is."""

    value: Const

    def __call__(self, *operands: Expr) -> Expr:
        return self.value


@dataclass(frozen=True, slots=True)
class _Address(Formula):
    """The first operand, a coordinate, times a stride; plus the second one, if there is one."""

    stride: int

    def __call__(self, *operands: Expr) -> Expr:
        at, *before = operands
        step = apply(Op.MULTIPLY, at, Const(value=self.stride, type=at.type))
        return step if not before else apply(Op.ADD, before[0], step)


@dataclass(frozen=True, slots=True)
class _Applied(Formula):
    """An operator on constants and on operands, where the constant is ``None``, in lanes."""

    operator: Op
    constants: tuple[Const | None, ...]
    lanes: int

    def __call__(self, *operands: Expr) -> Expr:
        rest = iter(operands)
        full = [next(rest) if one is None else one for one in self.constants]
        return apply(self.operator, *(spread(one, self.lanes) for one in full))


@dataclass(frozen=True, slots=True)
class _Lanes(Formula):
    """A value in so many lanes; with 1 the lanes of a vector combined by an operator."""

    operator: Op
    lanes: int

    def __call__(self, *operands: Expr) -> Expr:
        (value,) = operands
        if self.lanes > 1:
            return spread(value, self.lanes)
        return ReduceLanes(operator=self.operator, value=value, type=value.type.scalar)


@dataclass
class _Writer:
    """The ports that carry the streams of the diagram written so far."""

    streams: Streams
    program: ConcreteProgram
    diagram: Diagram
    extents: Mapping[str, int]
    values: Type
    ports: dict[Stream, Port] = field(default_factory=dict)
    tensors: dict[ArrayOf, Tensor] = field(default_factory=dict)
    reads: list[ArrayOf] = field(default_factory=list)
    writes: list[ArrayOf] = field(default_factory=list)

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

    def enter(self, loop: str) -> None:
        """What follows belongs to a loop, or to none."""
        self.streams.region = loop or None

    def write(self, block: AnyBlock) -> None:
        """Put a block into the graph."""
        match block:
            case Root(output=output):
                self.ports[output] = self.streams.root()
            case Scan():
                self._scan(block)
            case Count():
                size = self.extents[self.variables[block.variable]]
                port = self.ports[block.reference]
                made, _ = self.streams.scan_dense(port, size, name=f"count_{block.variable}")
                self.ports[block.coordinate] = made
            case Join():
                self._join(block)
            case ScanJoin():
                self._scan_join(block)
            case Repeat(input=input, by=by, output=output):
                what = input.about.split(" ")[0] or "value"
                name = f"repeat_{what}_{block.variable}"
                self.ports[output] = self.streams.repeat(self.ports[by], self.ports[input], name)
            case Locate():
                self._locate(block)
            case Load(tensor=tensor, reference=reference, output=output):
                array = self._tensor(tensor, None, "vals")
                port = self.ports[reference]
                made = self.streams.load(port, array, lanes=output.lanes, name=f"load_{tensor}")
                self.ports[output] = made
            case Fill(value=value, by=by, output=output):
                constant = self._constant(value)
                port = self.ports[by]
                made = self.streams.compute(_Constant(constant), port, name="constant")
                self.ports[output] = made
            case Compute():
                self._compute(block)
            case SumLanes() | Spread():
                self._lanes(block)
            case Reduce():
                self._reduce(block)
            case Drop(outer=outer, inner=inner):
                name = f"drop_{block.variable}"
                dropped = self.streams.drop(self.ports[outer], self.ports[inner], name=name)
                self.ports[block.outer_output], self.ports[block.inner_output] = dropped
            case DropMissing(coordinate=coordinate, value=value):
                name = f"drop_values_{block.variable}"
                pair = self.ports[coordinate], self.ports[value]
                kept = self.streams.drop_values(*pair, missing_only=True, name=name)
                self.ports[block.coordinate_output], self.ports[block.value_output] = kept
            case Deal():
                self._deal(block)
            case Gather(order=order, parts=parts, output=output):
                gathered = [self.ports[part] for part in parts]
                name = f"gather_{block.variable}"
                self.ports[output] = self.streams.serialize(
                    self.ports[order], gathered, run=block.run, name=name
                )
            case Flatten(outer=outer, inner=inner, extent=extent, beside=beside):
                high, low = self.ports[outer], self.ports[inner]
                others = [self.ports[stream] for stream in beside]
                name = f"flatten_{block.variable}"
                flat = self.streams.flatten(high, low, self.extents[extent], *others, name=name)
                self.ports.update(zip((block.coordinate, *block.outputs), flat, strict=True))
            case Regroup(input=input, like=like, output=output):
                items, lists = self.ports[input], self.ports[like]
                self.ports[output] = self.streams.regroup(items, lists, f"regroup_{block.variable}")
            case WriteLevel():
                self._write_level(block)
            case WriteValues(tensor=tensor, value=value):
                array = self._tensor(tensor, None, "vals", written=True)
                port = self.ports[value]
                zero = self._zero(port)
                self.streams.write_values(port, array, missing=zero, name=f"write_{tensor}")
            case Scatter(tensor=tensor, reference=reference, value=value):
                array = self._tensor(tensor, None, "vals", written=True)
                where = self.ports[reference]
                self.streams.store(where, self.ports[value], array, name=f"store_{tensor}")

    def _tensor(
        self,
        tensor: str,
        level: int | None,
        array: str,
        *,
        written: bool = False,
        words: bool = False,
    ) -> Tensor:
        found = self.names.of(tensor, level, array, words=words)
        if found not in self.tensors:
            role = TensorRole.OUTPUT if written else TensorRole.INPUT
            self.tensors[found] = self.streams.tensor(found.name, found.type, role=role)
            (self.writes if written else self.reads).append(found)
        return self.tensors[found]

    def _arrays(self, tensor: str, level: int, *, written: bool = False) -> ArrayOfLevel:
        return lambda of, words=False: self._tensor(tensor, level, of, written=written, words=words)

    def _deal(self, block: Deal) -> None:
        ports = [self.ports[stream] for stream in block.inputs]
        name = f"deal_{block.variable}"
        dealt = self.streams.parallelize(ports, len(block.lanes), run=block.run, name=name)
        for lane, own in zip(block.lanes, dealt, strict=True):
            self.ports.update(zip(lane, own, strict=True))

    def _scan(self, block: Scan) -> None:
        format = self.program.format_of(block.tensor)
        level = format.levels[block.level]
        name = f"scan_{block.tensor}_{block.variable}"
        port = self.ports[block.reference]
        match level:
            case _ if format.coordinate_list:
                made = self._scan_list(block, port, name)
            case Dense():
                size = self.extents[self.variables[block.variable]]
                made = self.streams.scan_dense(port, size, name=name)
            case Compressed():
                pos = self._tensor(block.tensor, block.level, "pos")
                crd = self._tensor(block.tensor, block.level, "crd")
                made = self.streams.scan_compressed(port, pos, crd, name=name)
            case _:
                size = self.extents[self.variables[block.variable]]
                array = self._arrays(block.tensor, block.level)
                made = scan_rare(self.streams, level, array, size, port, name)
        self.ports[block.coordinate], self.ports[block.child] = made

    def _write_level(self, block: WriteLevel) -> None:
        format = self.program.format_of(block.tensor)
        array = self._arrays(block.tensor, block.level, written=True)
        write_level(
            self.streams,
            format.levels[block.level],
            array,
            LevelPorts(
                coordinate=self.ports[block.coordinate],
                above=None if block.above is None else self.ports[block.above],
                size=self.extents[self.variables[block.variable]],
                empty_fibers=block.empty_fibers,
            ),
            f"write_{block.tensor}_{block.variable}",
        )

    def _scan_list(self, block: Scan, port: Port, name: str) -> tuple[Port, Port]:
        """The scanners of COO, which put each coordinate once."""
        pos = self._tensor(block.tensor, 0, "pos")
        above = [self._tensor(block.tensor, level, "crd") for level in range(block.level)]
        crd = self._tensor(block.tensor, block.level, "crd")
        if not above:
            return self.streams.scan_unique(port, pos, crd, name=name)
        return self.streams.scan_run(port, pos, above, crd, name=name)

    def _join(self, block: Join) -> None:
        sides = [
            [self.ports[s] for s in (side.coordinate, *side.references)] for side in block.sides
        ]
        narrow = block.kind is JoinKind.INTERSECT
        name = f"{block.kind.value}_{block.variable}"
        join = self.streams.intersect if narrow else self.streams.union
        coordinate, outs = join(*sides, name=name)
        self.ports[block.coordinate] = coordinate
        flat = [stream for side in outs for stream in side]
        self.ports.update(zip(block.outputs, flat, strict=True))

    def _scan_join(self, block: ScanJoin) -> None:
        narrow = block.kind is JoinKind.INTERSECT
        name = f"{block.kind.value}_{block.variable}"
        levels: list[tuple[str, tuple[Port, Tensor, Tensor]]] = []
        for side in block.sides:
            words = block.manner is Manner.WORDS
            first, second = ("bits", "pos") if words else ("pos", "crd")
            arrays = (
                self._tensor(side.tensor, side.level, first, words=words),
                self._tensor(side.tensor, side.level, second),
            )
            levels.append((side.tensor, (self.ports[side.reference], *arrays)))
        match block.manner:
            case Manner.SKIPPING:
                skipped = [level for _, level in levels]
                coordinate, references = self.streams.intersect_skipping(*skipped, name=name)
            case Manner.WORDS:
                size = words_of(self.extents[self.variables[block.variable]])
                scan = self.streams.scan_bitvector
                sides = [
                    scan(*level, size, name=f"scan_{tensor}_{block.variable}")
                    for tensor, level in levels
                ]
                join = self.streams.intersect_bits if narrow else self.streams.union_bits
                _, coordinate, references = join(*sides, name=name)
        self.ports[block.coordinate] = coordinate
        self.ports.update(zip(block.outputs, references, strict=True))

    def _locate(self, block: Locate) -> None:
        name = f"locate_{block.output.about.split(' ')[0]}_{block.variable}"
        coordinate = self.ports[block.coordinate]
        stride = prod(self.extents[v] for v in block.stride)
        scale = prod(self.extents[v] for v in block.scale)
        if block.reference is not None and stride == 1 and block.scale:
            fiber = self.ports[block.reference]
            located = self.streams.locate_dense(coordinate, fiber, scale, name=name)
            self.ports[block.output] = located[1]
            return

        others = [] if block.reference is None else [self.ports[block.reference]]
        self.ports[block.output] = self.streams.compute(
            _Address(stride), coordinate, *others, name=name
        )

    def _constant(self, value: float | int) -> Const:
        number = float(value) if self.values.is_float else int(value)
        return Const(value=number, type=self.values)

    def _compute(self, block: Compute) -> None:
        operands = [one for one in (block.left, block.right) if one is not None]
        ports = [self.ports[one] for one in operands if isinstance(one, Stream)]

        function = _Applied(
            block.operator,
            tuple(None if isinstance(one, Stream) else self._constant(one) for one in operands),
            block.output.lanes,
        )
        name = block.operator.name.lower()
        zero = self._constant(self.diagram.semiring.zero)
        missing = [self._zero(port) for port in ports]
        lost = None if block.lost is Lost.NEVER else either if block.lost is Lost.ANY else both
        instead = None if block.optional or lost is None else spread(zero, block.output.lanes)
        self.ports[block.output] = self.streams.compute(
            function, *ports, missing=missing, lost=lost, instead=instead, name=name
        )

    def _zero(self, port: Port) -> Expr:
        """The value of an empty token."""
        return spread(self._constant(self.diagram.semiring.zero), port.type.element.lanes)

    def _lanes(self, block: SumLanes | Spread) -> None:
        port, lanes = self.ports[block.input], block.output.lanes

        function = _Lanes(self.diagram.semiring.add, lanes)
        name = "spread" if lanes > 1 else "sum_lanes"
        missing = [self._zero(port)]
        self.ports[block.output] = self.streams.compute(function, port, missing=missing, name=name)

    def _reduce(self, block: Reduce) -> None:
        name = f"reduce_{block.variable}"
        value = self.ports[block.value]
        if block.coordinates:
            crds = [self.ports[coordinate] for coordinate in block.coordinates]
            outs, out = self.streams.reduce_points(
                crds, value, self.diagram.semiring.add, name=name
            )
            self.ports.update(zip(block.outputs, outs, strict=True))
            self.ports[block.output] = out
            return
        empty = _EMPTY[block.empty]
        outer = None if block.by is None else self.ports[block.by]
        self.ports[block.output] = self.streams.reduce(
            value,
            self.diagram.semiring.add,
            empty=empty,
            zero=self._zero(value),
            outer=outer,
            name=name,
        )
