"""What a graph has to be given, checked in one place for every consumer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

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
