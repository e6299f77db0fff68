"""What every block of a diagram does, on streams as nested lists: no tokens, no time.

A stream of depth d is a list of lists, d deep; an empty reference is ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.core.ops import OPERATORS, Op
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
    Lost,
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
from t2s.sparse_repr.lowering.nested import (
    Nested,
    each,
    tree,
)
from t2s.sparse_repr.tensors.tensor import SparseTensor


class Run:
    """The streams of a diagram, for tensors and the extents of variables by name."""

    def __init__(
        self,
        diagram: Diagram,
        tensors: Mapping[str, SparseTensor],
        extents: Mapping[str, int],
        kind: np.dtype[Any],
    ) -> None:
        self.kind = kind
        self.tensors = tensors
        self.semiring = diagram.semiring
        self.extents = extents
        self.variables = {loop.name: loop.variable for loop in diagram.loops}
        self.streams: dict[Stream, Nested] = {}
        self.levels: dict[int, Nested] = {}
        self.values: Nested = None
        self.scattered: list[tuple[int, float]] | None = None
        for block in diagram.blocks:
            self._run(block)

    def _run(self, block: AnyBlock) -> None:
        streams = self.streams
        match block:
            case Root(output=output):
                streams[output] = 0
            case Scan():
                self._scan(block)
            case Count(reference=reference, coordinate=coordinate, variable=variable):
                extent = self.extents[self.variables[variable]]
                counted = each(lambda _: list(range(extent)), reference.depth, streams[reference])
                streams[coordinate] = counted
            case Join():
                self._join(block)
            case ScanJoin():
                self._scan_join(block)
            case Repeat(input=input, by=by, output=output):
                streams[output] = each(
                    lambda token, fiber: [token] * len(fiber),
                    input.depth,
                    streams[input],
                    streams[by],
                )
            case Locate():
                self._locate(block)
            case Load(tensor=tensor, reference=reference, output=output):
                values = self.tensors[tensor].values
                if output.lanes > 1:
                    values = values.reshape(-1, output.lanes)
                streams[output] = each(
                    lambda at: None if at is None else values[at],
                    reference.depth,
                    streams[reference],
                )
            case Fill(value=value, by=by, output=output):
                constant = self._constant(value)
                streams[output] = each(lambda _: constant, by.depth, streams[by])
            case Compute():
                self._compute(block)
            case SumLanes(input=input, output=output):
                add = OPERATORS[self.semiring.add].evaluate
                streams[output] = each(
                    lambda one: reduce(add, self._given(one, input)), input.depth, streams[input]
                )
            case Spread(input=input, output=output):
                lanes = output.lanes
                streams[output] = each(
                    lambda one: np.full(lanes, self._given(one, input)), input.depth, streams[input]
                )
            case Reduce():
                self._reduce(block)
            case Drop():
                self._drop(block)
            case DropMissing():
                self._drop_missing(block)
            case Deal() | Gather():
                self._lanes(block)
            case Flatten() | Regroup():
                self._fused(block)
            case WriteLevel(level=level, coordinate=coordinate):
                self.levels[level] = streams[coordinate]
            case WriteValues(value=made):
                self.values = each(lambda one: self._given(one, made), made.depth, streams[made])
            case Scatter(reference=reference, value=value):
                found: list[tuple[int, float]] = []
                each(
                    lambda at, one: found.append((at, one)),
                    value.depth,
                    streams[reference],
                    streams[value],
                )
                self.scattered = found

    def _lanes(self, block: Deal | Gather) -> None:
        streams, run = self.streams, block.run
        match block:
            case Deal(inputs=inputs, lanes=lanes):
                for number, lane in enumerate(lanes):
                    for stream, part in zip(inputs, lane, strict=True):
                        streams[part] = each(
                            lambda items, n=number: [
                                item for at, item in enumerate(items) if at // run % len(lanes) == n
                            ],
                            stream.depth - 1,
                            streams[stream],
                        )
            case Gather(order=order, parts=parts, output=output):
                streams[output] = each(
                    lambda items, *rows: [
                        rows[n // run % len(rows)][n // (run * len(rows)) * run + n % run]
                        for n in range(len(items))
                    ],
                    order.depth - 1,
                    streams[order],
                    *(streams[part] for part in parts),
                )

    def _fused(self, block: Flatten | Regroup) -> None:
        streams = self.streams
        match block:
            case Flatten(outer=outer, inner=inner, beside=beside):
                extent = self.extents[block.extent]
                streams[block.coordinate] = each(
                    lambda high, low: [
                        a * extent + b for a, row in zip(high, low, strict=True) for b in row
                    ],
                    outer.depth - 1,
                    streams[outer],
                    streams[inner],
                )
                for stream, output in zip(beside, block.outputs, strict=True):
                    streams[output] = each(
                        lambda rows: [item for row in rows for item in row],
                        outer.depth - 1,
                        streams[stream],
                    )
            case Regroup(input=input, like=like, output=output):

                def lists(items: list[Any], rows: list[list[Any]]) -> list[list[Any]]:
                    rest = iter(items)
                    return [[next(rest) for _ in row] for row in rows]

                streams[output] = each(lists, like.depth - 2, streams[input], streams[like])

    def _zero(self, lanes: int) -> Any:
        """What an empty reference stands for."""
        zero = self._constant(self.semiring.zero)
        return zero if lanes == 1 else np.full(lanes, zero)

    def _given(self, value: Any, stream: Stream) -> Any:
        """A value of a stream, zero for an empty one."""
        return self._zero(stream.lanes) if value is None else value

    def _constant(self, value: float | int) -> Any:
        return np.asarray(value, self.kind)[()]

    def _scan(self, block: Scan) -> None:
        reference = self.streams[block.reference]
        scanned = self._fibers(block.tensor, block.level, block.reference.depth, reference)
        self.streams[block.coordinate], self.streams[block.child] = scanned

    def _fibers(
        self, name: str, number: int, depth: int, reference: Nested
    ) -> tuple[Nested, Nested]:
        """The coordinates and the positions of a level below references."""
        tensor = self.tensors[name]
        level = tensor.format.levels[number]
        arrays, extent = tensor.levels[number], tensor.extents[number]

        def fiber(at: int | None) -> Any:
            if at is None:
                return [], []
            if tensor.format.coordinate_list:
                return _run_of(tensor, number, at)
            found = level.unpack(arrays, np.array([at]), extent)
            return found.coordinates.tolist(), found.positions.tolist()

        found = each(fiber, depth, reference)
        return each(lambda pair: pair[0], depth, found), each(lambda pair: pair[1], depth, found)

    def _scan_join(self, block: ScanJoin) -> None:
        """The same as scanners and a joiner, in whatever manner they work."""
        flat: list[Nested] = []
        for side in block.sides:
            reference = self.streams[side.reference]
            flat += self._fibers(side.tensor, side.level, side.reference.depth, reference)
        self._joined(block, [1] * len(block.sides), flat)

    def _join(self, block: Join) -> None:
        flat = [s for side in block.sides for s in (side.coordinate, *side.references)]
        counts = [len(side.references) for side in block.sides]
        self._joined(block, counts, [self.streams[s] for s in flat])

    def _joined(self, block: Join | ScanJoin, counts: list[int], flat: list[Nested]) -> None:
        """Join sides of coordinates and so many references each."""
        streams = self.streams

        def join(*fibers: list[Any]) -> tuple[list[Any], ...]:
            tables = []
            rest = list(fibers)
            for count in counts:
                crd, *references = (rest.pop(0) for _ in range(1 + count))
                if crd != sorted(set(crd)):
                    raise InternalError("the coordinates of a fiber do not increase")
                rows = zip(*references, strict=True) if references else [()] * len(crd)
                tables.append((dict(zip(crd, rows, strict=True)), len(references)))
            sets = [set(table) for table, _ in tables]
            both = block.kind is JoinKind.INTERSECT
            chosen = sorted(set.intersection(*sets) if both else set.union(*sets))
            columns: list[list[Any]] = [chosen]
            for table, count in tables:
                columns += (
                    [table[at][number] if at in table else None for at in chosen]
                    for number in range(count)
                )
            return tuple(columns)

        depth = block.coordinate.depth - 1
        joined = each(join, depth, *flat)
        for number, output in enumerate((block.coordinate, *block.outputs)):
            streams[output] = each(lambda row, n=number: row[n], depth, joined)

    def _locate(self, block: Locate) -> None:
        scale = prod(self.extents[name] for name in block.scale)
        stride = prod(self.extents[name] for name in block.stride)
        coordinate = self.streams[block.coordinate]
        if block.reference is None:
            result = each(lambda at: at * stride, block.coordinate.depth, coordinate)
        else:
            result = each(
                lambda above, at: None if above is None else above * scale + at * stride,
                block.coordinate.depth,
                self.streams[block.reference],
                coordinate,
            )
        self.streams[block.output] = result

    def _compute(self, block: Compute) -> None:
        operators: dict[Op, Callable[..., Any]] = {
            Op.ADD: lambda a, b: a + b,
            Op.SUBTRACT: lambda a, b: a - b,
            Op.MULTIPLY: lambda a, b: a * b,
            Op.DIVIDE: lambda a, b: np.divide(a, b),
            Op.NEGATE: lambda a: -a,
            Op.MINIMUM: OPERATORS[Op.MINIMUM].evaluate,
            Op.MAXIMUM: OPERATORS[Op.MAXIMUM].evaluate,
        }
        operands = [one for one in (block.left, block.right) if one is not None]
        given = [self.streams[one] for one in operands if isinstance(one, Stream)]

        def apply(*tokens: Any) -> Any:
            empty = [token is None for token in tokens]
            if {Lost.NEVER: False, Lost.ANY: any(empty), Lost.ALL: all(empty)}[block.lost]:
                return None if block.optional else self._zero(block.output.lanes)
            rest = list(tokens)
            full = [
                rest.pop(0) if isinstance(one, Stream) else self._constant(one) for one in operands
            ]
            with np.errstate(all="ignore"):
                zero = self._zero(block.output.lanes)
                return operators[block.operator](*(zero if a is None else a for a in full))

        self.streams[block.output] = each(apply, block.output.depth, *given)

    def _reduce(self, block: Reduce) -> None:
        depth = block.output.depth - len(block.outputs)
        keys = len(block.coordinates)

        def entries(
            level: int, point: tuple[int, ...], parts: tuple[Any, ...]
        ) -> Iterator[tuple[tuple[int, ...], Any]]:
            if level == keys:
                yield point, parts[-1]
                return
            for number, coordinate in enumerate(parts[level]):
                inner = tuple(part[number] if n > level else part for n, part in enumerate(parts))
                yield from entries(level + 1, (*point, coordinate), inner)

        nothing = self._zero(block.value.lanes)
        add = OPERATORS[self.semiring.add].evaluate

        def combined(*parts: Any) -> Any:
            total: dict[tuple[int, ...], Any] = {}
            for row in zip(*parts, strict=True):
                for point, value in entries(0, (), row):
                    total[point] = add(
                        total.get(point, nothing), nothing if value is None else value
                    )
            return total

        streams = (*(self.streams[c] for c in block.coordinates), self.streams[block.value])
        with np.errstate(all="ignore"):
            totals = each(combined, depth, *streams)
        if not keys:
            self.streams[block.output] = self._scalars(totals, depth, block.empty, nothing)
            return
        for number, output in enumerate((*block.outputs, block.output)):
            self.streams[output] = each(lambda total, n=number: tree(total, n, keys), depth, totals)

    def _scalars(self, totals: Nested, depth: int, empty: Empty, nothing: Any) -> Nested:
        if empty is Empty.MISSING:
            return each(lambda total: total.get(()), depth, totals)
        if depth == 0 or empty is Empty.ZERO:
            return each(lambda total: total.get((), nothing), depth, totals)
        return each(lambda row: [t[()] for t in row if t], depth - 1, totals)

    def _drop(self, block: Drop) -> None:
        depth = block.outer.depth - 1

        def kept(outer: list[Any], inner: list[Any]) -> Any:
            pairs = [(a, b) for a, b in zip(outer, inner, strict=True) if b]
            return [a for a, _ in pairs], [b for _, b in pairs]

        rows = each(kept, depth, self.streams[block.outer], self.streams[block.inner])
        self.streams[block.outer_output] = each(lambda row: row[0], depth, rows)
        self.streams[block.inner_output] = each(lambda row: row[1], depth, rows)

    def _drop_missing(self, block: DropMissing) -> None:
        depth = block.value.depth - 1

        def kept(coordinates: list[Any], values: list[Any]) -> Any:
            pairs = [p for p in zip(coordinates, values, strict=True) if p[1] is not None]
            return [a for a, _ in pairs], [b for _, b in pairs]

        rows = each(kept, depth, self.streams[block.coordinate], self.streams[block.value])
        self.streams[block.coordinate_output] = each(lambda row: row[0], depth, rows)
        self.streams[block.value_output] = each(lambda row: row[1], depth, rows)


def _run_of(tensor: SparseTensor, level: int, at: int) -> tuple[list[int], list[int]]:
    """The fiber of a list of coordinates: what has the coordinates above of position ``at``."""
    same = np.ones(len(tensor.values), bool)
    for arrays in tensor.levels[:level]:
        same &= arrays["crd"] == arrays["crd"][at]
    coordinates, first = np.unique(tensor.levels[level]["crd"][same], return_index=True)
    return coordinates.tolist(), np.flatnonzero(same)[first].tolist()
