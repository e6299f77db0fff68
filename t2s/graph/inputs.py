"""What a graph has to be given, and in which order: checked in one place for every consumer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor, TensorRole
from t2s.graph.kept import KeptFor


@dataclass(frozen=True, slots=True)
class _Specs:
    """What a graph is given, and what it computes."""

    inputs: tuple[ArraySpec, ...]
    parameters: tuple[ArraySpec, ...]
    computed: tuple[ArraySpec, ...]


_SPECS: KeptFor[None, _Specs] = KeptFor()


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


def input_specs(graph: Graph) -> tuple[ArraySpec, ...]:
    """What each input has to be; the host may put one into several tensors."""
    return _specs(graph).inputs


def parameter_specs(graph: Graph) -> tuple[ArraySpec, ...]:
    """What each parameter has to be."""
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
    """Names, shapes and types of what is given are those of a graph; nothing has to be given.

    For what needs no values, and would not notice a wrong name.  Raises ``UserError``.
    """
    specs = _specs(graph)
    both = (*specs.inputs, *specs.parameters)
    check_inputs(both, {**inputs, **parameters}, required=(), computed=specs.computed)


def check_parameters(
    graph: Graph, parameters: Mapping[str, Any], *, required: Collection[str]
) -> dict[str, Array]:
    """All parameters, where those that are not in ``required`` are zero if they are not given."""
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
