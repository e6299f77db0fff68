"""What a diagram computes, on streams as nested lists: no tokens, no time.

This is the meaning that the machines of the blocks have to agree with.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.sparse_repr.blocks.lists import Lists, Nested
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.lowering.diagram import Diagram, DiagramWire
from t2s.sparse_repr.tensors.tensor import SparseTensor, as_stored, from_coordinates


def interpret_diagram(
    diagram: Diagram,
    tensors: Mapping[str, SparseTensor],
    extents: Mapping[str, int],
    shape: tuple[int, ...],
    format: Format,
    kind: np.dtype[Any],
) -> SparseTensor:
    """The tensor of that shape and format that a diagram writes.

    ``tensors`` are those that it reads, by name, ``extents`` those of all variables;
    ``kind`` is the type of the values.
    """
    run, fill = _Meaning(diagram, tensors, extents, kind), diagram.semiring.zero
    if run.stored is not None:
        count = prod(shape[mode] for mode in format.modes)
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
    first = min(run.levels)  # the levels above are dense, and all their coordinates are there
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
            given = (Lists(wire.depth, lists[wire], wire.lanes) for wire in wired.inputs)
            made = wired.block.meaning(self, *given)
            lists.update(zip(wired.outputs, made, strict=True))

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
        found = kind.unpack(stored.levels[level], np.array([at]), extent)
        return found.coordinates.tolist(), found.positions.tolist()

    def write_level(self, level: int, coordinates: Nested) -> None:
        self.levels[level] = coordinates

    def write_values(self, values: Nested) -> None:
        self.written = values

    def store(self, values: list[tuple[int, Any]]) -> None:
        self.stored = values


def _run_of(tensor: SparseTensor, level: int, at: int) -> tuple[list[int], list[int]]:
    """The fiber of a list of coordinates: what has the coordinates above of position ``at``."""
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
    """The numbers of the parts at a depth, as a stream of that depth plus one."""
    if depth == 0:
        return list(range(len(nested)))
    return [_counted(part, depth - 1) for part in nested]


def _pruned(nested: Nested, keep: int) -> Nested:
    """Without the empty lists inside, but for those at the outermost ``keep`` levels."""
    if not isinstance(nested, list):
        return nested
    parts = [_pruned(part, keep - 1) for part in nested]
    return parts if keep > 0 else [part for part in parts if part != []]


def _points_of(levels: list[Nested], point: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not levels:
        return [point]
    found = []
    for number, coordinate in enumerate(levels[0]):
        if len(levels) > 1 and len(levels[1]) != len(levels[0]):
            raise InternalError("a coordinate that is written has no fiber")
        inner = [level[number] for level in levels[1:]]
        found += _points_of(inner, (*point, coordinate))
    return found
