"""A diagram: the blocks of a stage and the wires between them, before extents are known.

The blocks are those of the Sparse Abstract Machine [SAM, sec. 3], classes of
``sparse_repr/blocks``.  A stream of depth d is a list of lists, d deep, of tokens: coordinates,
references or values; depth 0 is a single token.  A reference may be empty (N).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.location import SourceLocation
from t2s.core.svg import PALETTE, ChartArrow, ChartBox, SvgPicture, layered_chart
from t2s.core.walk import Term
from t2s.graph.graph import Region
from t2s.sparse_repr.blocks.draft import BlockKind
from t2s.sparse_repr.blocks.lists import DiagramBlock, Lists, Nested
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.semiring import PLUS_TIMES, Semiring
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, from_coordinates


class TokenKind(Enum):
    """The kind of the tokens of a stream."""

    COORDINATE = "coordinate"
    REFERENCE = "reference"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramWire(Term):
    """A stream: its number in the diagram, the kind of its tokens, and its depth.

    Values of several ``lanes`` are vectors, or blocks: arrays over the parts of variables inside of
    a block, the ``axes``, in row-major order.
    """

    number: int
    kind: TokenKind
    depth: int
    lanes: int = 1
    axes: tuple[str, ...] = field(default=(), compare=False)
    about: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wired(Term):
    """A block and its wires.

    ``loop`` is the innermost loop around the block; ``""`` outside loops.  It adds as its own
    ``semiring`` does, or as that of the diagram.
    """

    block: DiagramBlock
    inputs: tuple[DiagramWire, ...]
    outputs: tuple[DiagramWire, ...]
    loop: str = ""
    semiring: Semiring | None = None
    location: SourceLocation | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram(Term):
    """The blocks of a stage, sources first, with its loops, its result and its semiring.

    A loop is a region of the graph, whose index is its variable.  Reducers and sums of lanes use
    the addition of the semiring, and an empty reference is its zero.
    """

    blocks: tuple[Wired, ...]
    loops: tuple[Region, ...]
    result: str
    semiring: Semiring = PLUS_TIMES


PUBLISHED_KINDS = tuple(
    kind.value
    for kind in (
        BlockKind.SCAN,
        BlockKind.REPEAT,
        BlockKind.INTERSECT,
        BlockKind.UNION,
        BlockKind.COMPUTE,
        BlockKind.REDUCE,
        BlockKind.DROP,
        BlockKind.WRITE,
        BlockKind.ARRAY,
    )
)
"""The columns of [SAM, Table 1]."""

KINDS = (*PUBLISHED_KINDS, "locate", "parallelizer", "serializer", "flatten", "regroup")
"""All kinds of blocks.  A join of several inputs is one block."""


def block_counts(diagrams: Iterable[Diagram]) -> Mapping[str, int]:
    """The number of blocks of every kind in ``KINDS``; roots are not counted."""
    wired = (block for diagram in diagrams for block in diagram.blocks)
    counts = Counter(kind for entry in wired for kind in entry.block.counted)
    return {kind: counts[kind] for kind in KINDS}


_MEMORY = (BlockKind.SCAN, BlockKind.ARRAY, BlockKind.LOCATE)


def diagram_picture(diagram: Diagram) -> SvgPicture | None:
    """The blocks in layers, with their wires; ``None`` if there are too many to draw."""
    senders = {
        wire.number: str(number)
        for number, wired in enumerate(diagram.blocks)
        for wire in wired.outputs
    }
    boxes, arrows = [], []
    for number, wired in enumerate(diagram.blocks):
        kind = wired.block.kind
        color = PALETTE[2 if kind in _MEMORY else 1 if kind is BlockKind.WRITE else 0]
        below = f"in loop {wired.loop}" if wired.loop else ""
        text = repr(wired.block)
        title = kind.value
        boxes.append(
            ChartBox(name=str(number), title=title, below=below, said=text[:300], color=color)
        )
        arrows += [
            ChartArrow(
                source=senders[wire.number],
                sink=str(number),
                said=f"{wire.kind.value} {wire.about}".strip(),
            )
            for wire in wired.inputs
            if wire.number in senders
        ]
    return layered_chart(f"the blocks that write {diagram.result}", boxes, arrows)


# The meaning of a diagram, on streams as nested lists, without timing.
#
# The machines of the blocks have to agree with it.


def interpret_diagram(
    diagram: Diagram,
    tensors: Mapping[str, SparseTensor],
    extents: Mapping[str, int],
    shape: tuple[int, ...],
    format: Format,
    kind: np.dtype[Any],
) -> SparseTensor:
    """Evaluate a diagram; returns its result as a tensor of the given shape and format.

    ``tensors`` are its inputs by name, ``extents`` those of all variables; ``kind`` is the type of
    the values.
    """
    run, fill = _Meaning(diagram, tensors, extents, kind), diagram.semiring.zero
    if run.stored is not None:
        count = prod(format.in_grid(shape)) * format.lanes
        values = np.full(count, fill, kind)
        for at, value in run.stored:
            lanes = np.size(value)
            values[at * lanes : (at + 1) * lanes] = value
        return as_stored(shape, format, ({},) * len(format.levels), values, fill=fill)
    tokens = _flat(run.written)
    data = np.array(tokens, kind).reshape(-1)
    if not run.levels:
        return as_stored(shape, format, ({},) * len(format.levels), data, fill=fill)
    if format.coordinate_list:
        columns = [_flat(run.levels[level]) for level in sorted(run.levels)]
        table = np.array(columns, np.int64).reshape(len(columns), len(data)).T
        return from_coordinates(table[:, np.argsort(format.modes)], data, shape, format, fill=fill)
    if format.block:
        return _of_blocks(run, data, shape, format)
    first = min(run.levels)  # the levels above are dense, so all of their coordinates exist
    levels = [_counted(run.levels[first], depth) for depth in range(first)]
    levels += [_pruned(run.levels[n], first) for n in sorted(run.levels)]
    points = _points_of(levels, ())
    lanes = np.size(tokens[0]) if tokens else 1
    if lanes > 1:
        points = [(*point, lane) for point in points for lane in range(lanes)]
    if len(points) != len(data):
        raise InternalError("coordinates and values that are written do not agree")
    table = np.array(points, np.int64).reshape(len(points), len(shape))
    table = table[:, np.argsort(format.modes)]
    return from_coordinates(table, data, shape, format, fill=fill)


def _of_blocks(
    run: _Meaning, data: np.ndarray[Any, Any], shape: tuple[int, ...], format: Format
) -> SparseTensor:
    """The tensor of the blocks that were written."""
    first = min(run.levels)
    levels = [_counted(run.levels[first], depth) for depth in range(first)]
    levels += [_pruned(run.levels[n], first) for n in sorted(run.levels)]
    blocks = np.array(_points_of(levels, ()), np.int64).reshape(-1, len(shape))
    if len(blocks) * format.lanes != len(data):
        raise InternalError("coordinates and values that are written do not agree")
    within = np.stack(np.unravel_index(np.arange(format.lanes), format.block), axis=1)
    corners = blocks[:, np.argsort(format.modes)] * np.array(format.block)
    table = (corners[:, None] + within).reshape(-1, len(shape))
    inside = (table < np.array(shape)).all(axis=1)
    fill = run.semiring.zero
    return from_coordinates(table[inside], data[inside], shape, format, fill=fill)


class _Meaning:
    """The lists of the wires, and the results, for tensors and extents (see ``Known``)."""

    def __init__(
        self,
        diagram: Diagram,
        tensors: Mapping[str, SparseTensor],
        extents: Mapping[str, int],
        kind: np.dtype[Any],
    ) -> None:
        self.semiring = diagram.semiring
        self.levels: dict[int, Nested] = {}
        self.written: Nested = None
        self.stored: list[tuple[int, Any]] | None = None
        self._kind, self._tensors, self._extents, self._loop = kind, tensors, extents, ""
        self._variables = {loop.name: loop.index for loop in diagram.loops}
        lists: dict[DiagramWire, Nested] = {}
        for wired in diagram.blocks:
            self._loop = wired.loop
            self.semiring = wired.semiring or diagram.semiring
            inputs = (Lists(wire.depth, lists[wire], wire.lanes) for wire in wired.inputs)
            outputs = wired.block.meaning(self, *inputs)
            lists.update(zip(wired.outputs, outputs, strict=True))

    def extent(self, variable: str) -> int:
        return self._extents[variable or self._variables[self._loop]]

    def constant(self, value: float | int) -> Any:
        return np.asarray(value, self._kind)[()]

    def zero(self, lanes: int) -> Any:
        zero = self.constant(self.semiring.zero)
        return zero if lanes == 1 else np.full(lanes, zero)

    def values(self, tensor: str) -> np.ndarray[Any, Any]:
        return self._tensors[tensor].values

    def fiber(self, tensor: str, level: int, at: int | None) -> tuple[list[int], list[int]]:
        stored = self._tensors[tensor]
        if at is None:
            return [], []
        if stored.format.coordinate_list:
            return _run_of(stored, level, at)
        kind, extent = stored.format.levels[level], stored.extents[level]
        fiber = kind.unpack(stored.levels[level], np.array([at]), extent)
        return fiber.coordinates.tolist(), fiber.positions.tolist()

    def write_level(self, level: int, coordinates: Nested) -> None:
        self.levels[level] = coordinates

    def write_values(self, values: Nested) -> None:
        self.written = values

    def store(self, values: list[tuple[int, Any]]) -> None:
        self.stored = values


def _run_of(tensor: SparseTensor, level: int, at: int) -> tuple[list[int], list[int]]:
    """The fiber of a coordinate list: the run with the same outer coordinates as position
    ``at``.
    """
    same = np.ones(len(tensor.values), bool)
    for arrays in tensor.levels[:level]:
        same &= arrays["crd"] == arrays["crd"][at]
    coordinates, first = np.unique(tensor.levels[level]["crd"][same], return_index=True)
    return coordinates.tolist(), np.flatnonzero(same)[first].tolist()


def _flat(nested: Nested) -> list[Any]:
    """All tokens, in order."""
    if not isinstance(nested, list):
        return [nested]
    return [token for part in nested for token in _flat(part)]


def _counted(nested: Nested, depth: int) -> Nested:
    """Number the parts at a depth, as a stream of that depth plus one."""
    if depth == 0:
        return list(range(len(nested)))
    return [_counted(part, depth - 1) for part in nested]


def _pruned(nested: Nested, keep: int) -> Nested:
    """Remove inner empty lists, except at the outermost ``keep`` levels."""
    if not isinstance(nested, list):
        return nested
    parts = [_pruned(part, keep - 1) for part in nested]
    return parts if keep > 0 else [part for part in parts if part != []]


def _points_of(levels: list[Nested], point: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not levels:
        return [point]
    points = []
    for number, coordinate in enumerate(levels[0]):
        if len(levels) > 1 and len(levels[1]) != len(levels[0]):
            raise InternalError("a coordinate that is written has no fiber")
        inner = [level[number] for level in levels[1:]]
        points += _points_of(inner, (*point, coordinate))
    return points
