"""What a diagram computes, on streams as nested lists: no tokens, no time.

This is the meaning that the machines of the blocks have to agree with.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from t2s.core.errors import InternalError
from t2s.sparse_repr.formats import Format
from t2s.sparse_repr.lowering.block_meaning import Run
from t2s.sparse_repr.lowering.diagram import Diagram
from t2s.sparse_repr.lowering.nested import counted, flatten, points_of, pruned
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
    run, fill = Run(diagram, tensors, extents, kind), diagram.semiring.zero
    if run.scattered is not None:
        count = prod(shape[mode] for mode in format.modes)
        values = np.full(count, fill, kind)
        for at, value in run.scattered:
            lanes = np.size(value)
            values[at * lanes : (at + 1) * lanes] = value
        return as_stored(shape, format, ({},) * len(format.levels), values, fill=fill)
    tokens = flatten(run.values)
    data = np.array(tokens, kind).reshape(-1)
    if not run.levels:
        return as_stored(shape, format, ({},) * len(format.levels), data, fill=fill)
    if format.coordinate_list:
        columns = [flatten(run.levels[level]) for level in sorted(run.levels)]
        table = np.array(columns, np.int64).reshape(len(columns), len(data)).T
        return from_coordinates(table[:, np.argsort(format.modes)], data, shape, format, fill=fill)
    first = min(run.levels)  # the levels above are dense, and all their coordinates are there
    levels = [counted(run.levels[first], depth) for depth in range(first)]
    levels += [pruned(run.levels[n], first) for n in sorted(run.levels)]
    points = points_of(levels, ())
    lanes = np.size(tokens[0]) if tokens else 1
    if lanes > 1:
        points = [(*point, lane) for point in points for lane in range(lanes)]
    if len(points) != len(data):
        raise InternalError("coordinates and values that are written do not agree")
    table = np.array(points, np.int64).reshape(len(points), len(shape))
    table = table[:, np.argsort(format.modes)]
    return from_coordinates(table, data, shape, format, fill=fill)
