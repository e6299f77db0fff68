"""What a graph has to be given, checked in one place for every consumer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from t2s.core.arrays import ArraySpec, check_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.graph.graph import Graph, Tensor, TensorRole


def input_specs(graph: Graph) -> tuple[ArraySpec, ...]:
    """What each input has to be; the host may put one into several tensors."""
    inputs = {t.array: _spec(t) for t in graph.tensors if t.role is TensorRole.INPUT}
    return tuple(inputs.values())


def parameter_specs(graph: Graph) -> tuple[ArraySpec, ...]:
    """What each parameter has to be."""
    return tuple(
        ArraySpec(name=p.name, type=p.type, shape=(), location=p.location) for p in graph.parameters
    )


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
    arrays, scalars = input_specs(graph), parameter_specs(graph)
    values = check_inputs((*arrays, *scalars), {**inputs, **parameters}, computed=_computed(graph))
    return (
        {spec.name: values[spec.name] for spec in arrays},
        {spec.name: values[spec.name] for spec in scalars},
    )


def check_parameters(
    graph: Graph, parameters: Mapping[str, Any], *, required: Collection[str]
) -> dict[str, Array]:
    """All parameters, where those that are not in ``required`` are zero if they are not given."""
    specs = parameter_specs(graph)
    zeros = {spec.name: spec.type.numpy.type(0) for spec in specs}
    return {**zeros, **check_inputs(specs, parameters, required=required)}


def _computed(graph: Graph) -> tuple[ArraySpec, ...]:
    return tuple(_spec(t) for t in graph.tensors if t.role is not TensorRole.INPUT)


def _spec(tensor: Tensor) -> ArraySpec:
    return ArraySpec(
        name=tensor.array,
        type=tensor.type.scalar,
        shape=(None,) if tensor.open else tensor.shape,
        location=tensor.location,
    )
