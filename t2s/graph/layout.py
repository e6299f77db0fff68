"""Between the arrays of users and the tensors in memory: what the host reorders, and its rules.

Every consumer of graphs (interpreter, engines, host programs) means the same by a ``Layout``; those
in Python use these functions.  The host finds every element that it moves, and fills every output
once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2s.core.expr import const, evaluate
from t2s.core.isl import Interval, LoopDomain, is_affine
from t2s.core.ops import Array
from t2s.core.printer import show
from t2s.graph.graph import Graph, Layout, Tensor, TensorRole
from t2s.graph.verify_expr import ExprScope, Subject, verify_indices


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
        array[_indices(tensor.layout)] = memory if tensor.layout.indices else memory.reshape(())
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
    """The subscripts of the user's array for every point of the loops."""
    points = np.ogrid[tuple(slice(extent) for extent in layout.extents)]
    environment = dict(zip(layout.loops, points, strict=True))
    return tuple(
        np.broadcast_to(evaluate(index, environment), layout.extents) for index in layout.indices
    )


def verify_layout(subject: Subject, tensor: Tensor) -> None:
    """Raise ``GraphError`` if the layout of a tensor, where it has one, breaks a rule."""
    layout = tensor.layout
    if layout is None:
        return
    if tensor.role is TensorRole.INTERMEDIATE:
        raise subject.error(
            "the layout is that of an intermediate tensor",
            expected="layouts of inputs and outputs, which the host moves",
            given=f"the role {tensor.role.value}",
        )
    proper = len(layout.loops) == len(layout.extents) == len(set(layout.loops))
    if not proper or any(extent < 1 for extent in layout.extents):
        raise subject.error(
            "the loops of the layout are wrong",
            expected="loops of different names, each with an extent of at least 1",
            given=f"loops {', '.join(layout.loops)} of extents {layout.extents}",
        )
    scope = ExprScope(subject=subject, indices=frozenset(layout.loops), parameters={})
    verify_indices(layout.indices, len(tensor.shape), scope, "the layout")
    _verify_elements(subject, tensor, layout)


def _verify_elements(subject: Subject, tensor: Tensor, layout: Layout) -> None:
    odd = next((index for index in layout.indices if not is_affine(index)), None)
    if odd is not None:
        raise subject.error(
            "the layout is not affine",
            expected="sums of loops with constant factors, // and % by constants",
            given=show(odd),
        )
    domain = LoopDomain(_intervals(layout.loops, layout.extents))
    shape = tensor.padded or tensor.shape
    for position, (index, extent) in enumerate(zip(layout.indices, shape, strict=True)):
        low, high = domain.range_of(index) or (0, 0)
        if low < 0 or high >= extent:
            raise subject.error(
                f"the layout leaves dimension {position} of {layout.array}",
                expected=f"indices 0 to {extent - 1}",
                given=f"{show(index)}, from {low} to {high}",
            )
    if tensor.role is TensorRole.OUTPUT:
        names = [f"dimension {position}" for position in range(len(shape))]
        whole = LoopDomain(_intervals(tuple(names), shape))
        problem = domain.covers_exactly(layout.indices, whole, names=names)
        if problem is not None:
            raise subject.error(
                f"the layout does not give every element of {layout.array} once",
                expected="a one-to-one map of the tensor onto the array",
                given=problem,
            )


def _intervals(names: tuple[str, ...] | list[str], extents: tuple[int, ...]) -> list[Interval]:
    return [
        Interval(name=name, minimum=const(0), extent=const(extent))
        for name, extent in zip(names, extents, strict=True)
    ]


def verify_arrays(graph: Graph) -> None:
    """Raise ``GraphError`` for tensors that do not agree about the user's array they stand for."""
    first: dict[str, Tensor] = {}
    for tensor in graph.tensors:
        known = first.setdefault(tensor.array, tensor)
        same = (known.shape, known.type, known.role) == (tensor.shape, tensor.type, tensor.role)
        if known is not tensor and not (same and tensor.role is TensorRole.INPUT):
            raise Subject.of("tensor", tensor).error(
                f"the array {tensor.array} is that of the tensor {known.name!r} too",
                expected="several tensors of one array only for an input, of one shape and type",
                given=f"{known.role.value} {known.type}{list(known.shape)} and "
                f"{tensor.role.value} {tensor.type}{list(tensor.shape)}",
            )
