"""The host's side of a graph: checked inputs, and the layout of arrays as tensors in memory.

Every consumer of graphs (interpreter, engines, host programs) interprets a ``Layout`` in the same
way; those in Python use these functions.  The host locates every element that it moves, and fills
every output once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.errors import UserError
from t2s.core.expr import const, evaluate
from t2s.core.isl import Interval, LoopDomain, is_affine
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.printer import show
from t2s.graph.cache import GraphCache
from t2s.graph.graph import Graph, Layout, Tensor, TensorRole
from t2s.graph.verify_expr import ExprScope, Subject, verify_indices


def pack(tensor: Tensor, array: Array) -> Array:
    """The user's array in its layout in memory; the array itself if both are the same."""
    if tensor.padded is not None:
        behind = (full - extent for full, extent in zip(tensor.padded, tensor.shape, strict=True))
        array = np.pad(array, [(0, number) for number in behind])
    if tensor.layout is None:
        return array
    packed = array[_indices(tensor.layout)]
    return _contiguous(np.broadcast_to(packed, tensor.allocated))


def unpack(tensor: Tensor, memory: Array) -> Array:
    """The user's array from its layout in memory; the same array if both are the same."""
    if tensor.open:
        return np.asarray(memory, tensor.type.numpy)
    array = memory
    if tensor.layout is not None:
        array = np.zeros(tensor.padded or tensor.shape, memory.dtype)
        array[_indices(tensor.layout)] = memory if tensor.layout.indices else memory.reshape(())
    if tensor.padded is None:
        return array
    return _contiguous(array[tuple(slice(extent) for extent in tensor.shape)])


def strides_of(shape: tuple[int, ...], unit: int = 1) -> tuple[int, ...]:
    """How far apart neighbors along each dimension are, in row-major order of ``unit`` each."""
    return tuple(unit * prod(shape[at + 1 :]) for at in range(len(shape)))


def _contiguous(array: Array) -> Array:
    """The array in one piece, of the same shape (numpy's own function makes rows of scalars)."""
    return np.ascontiguousarray(array).reshape(array.shape)


def outputs_of(graph: Graph, memory: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs under the user's names, from the tensors in memory."""
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
                f"the layout does not place every element of {layout.array} exactly once",
                expected="a one-to-one map of the tensor onto the array",
                given=problem,
            )


def _intervals(names: tuple[str, ...] | list[str], extents: tuple[int, ...]) -> list[Interval]:
    return [
        Interval(name=name, minimum=const(0), extent=const(extent))
        for name, extent in zip(names, extents, strict=True)
    ]


def verify_arrays(graph: Graph) -> None:
    """Raise ``GraphError`` for tensors that disagree about the user's array that they represent."""
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


# The inputs and parameters of a graph, in order: checked in one place for every consumer.


@dataclass(frozen=True, slots=True)
class _Specs:
    """The specifications of a graph's inputs and parameters, and the tensors that it computes."""

    inputs: tuple[ArraySpec, ...]
    parameters: tuple[ArraySpec, ...]
    computed: tuple[ArraySpec, ...]


_SPECS: GraphCache[None, _Specs] = GraphCache()


def _specs(graph: Graph) -> _Specs:
    return _SPECS.get(graph, None, lambda: _specs_of(graph))


def _specs_of(graph: Graph) -> _Specs:
    inputs = {t.array: _spec(t) for t in graph.tensors if t.role is TensorRole.INPUT}
    return _Specs(
        tuple(inputs.values()),
        tuple(
            ArraySpec(name=p.name, type=p.type, shape=(), location=p.location)
            for p in graph.parameters
        ),
        tuple(_spec(t) for t in graph.tensors if t.role is not TensorRole.INPUT),
    )


def parameter_specs(graph: Graph) -> tuple[ArraySpec, ...]:
    """The specification of each parameter."""
    return _specs(graph).parameters


def check_graph_inputs(
    graph: Graph, inputs: Mapping[str, Any], parameters: Mapping[str, Any]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The inputs and the parameters of a graph, complete, of the user's shapes and types.

    Names are those of one scope, so errors list both kinds together.  Raises ``UserError``.
    """
    for name in inputs:
        if name in parameters:
            raise UserError(
                f"{name} is given twice",
                location=user_location(),
                expected="every name once, in the inputs or in the parameters",
                given=f"inputs {', '.join(inputs)} and parameters {', '.join(parameters)}",
            )
    specs = _specs(graph)
    values = check_inputs(
        (*specs.inputs, *specs.parameters), {**inputs, **parameters}, computed=specs.computed
    )
    return (
        {spec.name: values[spec.name] for spec in specs.inputs},
        {spec.name: values[spec.name] for spec in specs.parameters},
    )


def check_given(graph: Graph, inputs: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
    """Check names, shapes and types of the arrays that are given; any may be missing.

    For callers that need no values, and would not notice a wrong name.  Raises ``UserError``.
    """
    specs = _specs(graph)
    both = (*specs.inputs, *specs.parameters)
    check_inputs(both, {**inputs, **parameters}, required=(), computed=specs.computed)


def check_parameters(
    graph: Graph, parameters: Mapping[str, Any], *, required: Collection[str]
) -> dict[str, Array]:
    """All parameters; those not in ``required`` default to zero."""
    specs = parameter_specs(graph)
    zeros = {spec.name: spec.type.numpy.type(0) for spec in specs}
    return {**zeros, **check_inputs(specs, parameters, required=required)}


def _spec(tensor: Tensor) -> ArraySpec:
    return ArraySpec(
        name=tensor.array,
        type=tensor.type.scalar,
        shape=(None,) if tensor.open else tensor.shape,
        location=tensor.location,
        origin=tensor.origin,
    )


def check_ascending(graph: Graph, inputs: Mapping[str, Array]) -> None:
    """``UserError`` if the coordinates of a fiber do not increase."""
    for tensor in graph.tensors:
        if tensor.ascending is not None:
            _check(tensor, inputs[tensor.name], graph.tensor(tensor.ascending), inputs)


def _check(tensor: Tensor, given: Array, positions: Tensor, inputs: Mapping[str, Array]) -> None:
    falls = np.flatnonzero(given[1:] <= given[:-1]) + 1
    if not falls.size:
        return
    starts = inputs[positions.name]
    inside = falls[~np.isin(falls, starts)]
    inside = inside[(inside > starts[0]) & (inside < starts[-1])] if starts.size else inside[:0]
    if not inside.size:
        return
    at = int(inside[0])
    fiber = int(np.searchsorted(starts, at, side="right")) - 1
    raise UserError(
        f"the coordinates {tensor.name!r} are not in order",
        location=tensor.location,
        expected="coordinates that increase inside of each fiber",
        given=f"{given[at]} behind {given[at - 1]}, at position {at} in fiber {fiber} of "
        f"{positions.name!r}",
        hint="sort the coordinates, and add up entries that occur twice",
    )
