"""Between the arrays of users and the tensors in memory: what the host reorders.

Every consumer of graphs (interpreter, engines, host programs) means the same by a ``Layout``; those
in Python use these functions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2s.core.expr import evaluate
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Layout, Tensor, TensorRole


def pack(tensor: Tensor, array: Array) -> Array:
    """The user's array as it is in memory; the array itself where that is the same."""
    if tensor.padded is not None:
        behind = (full - given for full, given in zip(tensor.padded, tensor.shape, strict=True))
        array = np.pad(array, [(0, number) for number in behind])
    if tensor.layout is None:
        return array
    packed = array[_indices(tensor.layout)]
    return _contiguous(np.broadcast_to(packed, tensor.allocated))


def unpack(tensor: Tensor, memory: Array) -> Array:
    """The user's array of what is in memory; that itself where it is the same."""
    if tensor.open:
        return np.array(memory, tensor.type.numpy)
    array = memory
    if tensor.layout is not None:
        array = np.zeros(tensor.padded or tensor.shape, memory.dtype)
        array[_indices(tensor.layout)] = memory
    if tensor.padded is None:
        return array
    return _contiguous(array[tuple(slice(extent) for extent in tensor.shape)])


def _contiguous(array: Array) -> Array:
    """The array in one piece, of the same shape (numpy's own function makes rows of scalars)."""
    return np.ascontiguousarray(array).reshape(array.shape)


def outputs_of(graph: Graph, memory: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs by the names of the user, taken from the tensors in memory."""
    return {
        tensor.array: unpack(tensor, memory[tensor.name])
        for tensor in graph.tensors
        if tensor.role is TensorRole.OUTPUT
    }


def _indices(layout: Layout) -> tuple[Array, ...]:
    """The subscripts of the user's array for every point of the loops; they broadcast."""
    points = np.ogrid[tuple(slice(extent) for extent in layout.extents)]
    environment = dict(zip(layout.loops, points, strict=True))
    return tuple(np.asarray(evaluate(index, environment)) for index in layout.indices)
