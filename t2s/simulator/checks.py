"""What is checked before cycle 0: inputs, parameters, memory addresses and channel elements.

Every failure is a ``UserError`` that names the tensor, parameter or channel, shows the user's
line, and says what was expected, what was given and what to try.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import Expr
from t2s.core.location import user_location
from t2s.core.ops import Array
from t2s.core.types import Kind, Type
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.graph import Channel, Graph, ScalarParameter, Tensor, TensorRole
from t2s.graph.nodes import PEArray
from t2s.simulator.control import UNUSED, Feature
from t2s.simulator.domain import Domain


def checked_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs of a graph, complete, of the right shapes and types, in row-major order."""
    wanted = {tensor.name: tensor for tensor in graph.tensors if tensor.role is TensorRole.INPUT}
    for name in inputs:
        if name not in wanted:
            raise _unknown_input(graph, name, tuple(wanted))
    for tensor in wanted.values():
        if tensor.name not in inputs:
            raise UserError(
                f"input {tensor.name!r} is missing",
                location=tensor.location,
                expected=f"an array of {tensor.type.numpy} and shape {tensor.shape}",
                given=f"inputs {_names(inputs)}",
                hint=f'pass {{"{tensor.name}": ...}} in the inputs',
            )
    return {name: _checked_input(tensor, inputs[name]) for name, tensor in wanted.items()}


def _unknown_input(graph: Graph, name: str, wanted: tuple[str, ...]) -> UserError:
    other = next((tensor for tensor in graph.tensors if tensor.name == name), None)
    return UserError(
        f"{name!r} is not an input of {graph.name!r}",
        location=other.location if other is not None else user_location(),
        expected=f"inputs {_names(wanted)}",
        given=f"{name!r}, which is an {other.role.value}" if other is not None else repr(name),
        hint="outputs are allocated by the simulator" if other is not None else None,
    )


def _checked_input(tensor: Tensor, given: Array) -> Array:
    dtype = tensor.type.numpy
    if not isinstance(given, np.ndarray):
        raise UserError(
            f"input {tensor.name!r} is not a numpy array",
            location=tensor.location,
            expected=f"an array of {dtype} and shape {tensor.shape}",
            given=type(given).__name__,
            hint=f"np.asarray(a, {_spelled(tensor.type)})",
        )
    if given.dtype != dtype:
        raise UserError(
            f"input {tensor.name!r} has the wrong element type",
            location=tensor.location,
            expected=str(dtype),
            given=str(given.dtype),
            hint=f"a.astype({_spelled(tensor.type)})",
        )
    if given.shape != tensor.shape:
        raise UserError(
            f"input {tensor.name!r} has the wrong shape",
            location=tensor.location,
            expected=str(tensor.shape),
            given=str(given.shape),
            hint=_shape_hint(tensor.shape, given.shape),
        )
    return np.asarray(given, order="C")


def _shape_hint(expected: tuple[int, ...], given: tuple[int, ...]) -> str:
    if given == expected[::-1]:
        return "a.T has that shape: are the dimensions in the order of the declaration?"
    if np.prod(given) == np.prod(expected):
        return f"a.reshape{expected} has that shape, if the elements are in that order"
    return "the shape follows from the bounds of the design; pad or cut the array to it"


def _spelled(type: Type) -> str:
    if type.kind is Kind.BFLOAT:
        return "ml_dtypes.bfloat16"
    return "np.bool_" if type.is_bool else f"np.{type.numpy}"


def _names(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names) or "none"


def checked_parameters(
    graph: Graph, parameters: Mapping[str, object], *, required: frozenset[str]
) -> dict[str, Array]:
    """The scalar parameters as numpy scalars of their types.

    Those in ``required`` must be given, the others are zero if they are not.
    """
    wanted = {parameter.name: parameter for parameter in graph.parameters}
    for name in parameters:
        if name not in wanted:
            raise UserError(
                f"{name!r} is not a parameter of {graph.name!r}",
                location=user_location(),
                expected=f"parameters {_names(wanted)}",
                given=repr(name),
            )
    for parameter in wanted.values():
        if parameter.name in required and parameter.name not in parameters:
            raise UserError(
                f"parameter {parameter.name!r} is missing",
                location=parameter.location,
                expected=f"a value of type {parameter.type}",
                given=f"parameters {_names(parameters)}",
                hint=f'parameters={{"{parameter.name}": ...}}',
            )
    return {
        name: _checked_scalar(parameter, parameters.get(name, 0))
        for name, parameter in wanted.items()
    }


def _checked_scalar(parameter: ScalarParameter, given: object) -> Array:
    value = np.asarray(given)
    dtype = parameter.type.numpy
    fits = value.shape == () and value.dtype.kind in "biufV" + dtype.kind
    if fits and not parameter.type.is_float:
        with np.errstate(all="ignore"):
            fits = value.dtype.kind != "V" and bool(value.astype(dtype) == value)
        fits = fits and (value.dtype.kind != "f" or bool(np.isfinite(value)))
    if fits and parameter.type.is_float and value.dtype.kind != "V":
        with np.errstate(all="ignore"):
            fits = not np.isfinite(value) or bool(np.isfinite(value.astype(dtype)))
    if not fits:
        raise UserError(
            f"parameter {parameter.name!r} has the wrong value",
            location=parameter.location,
            expected=f"a number that {parameter.type} can hold",
            given=repr(given),
            hint=f"{_spelled(parameter.type)}(...)",
        )
    return value.astype(dtype)[()]


def check_addresses(graph: Graph, node: PEArray, domain: Domain) -> None:
    """Every element that a PE of the domain loads or stores lies in its tensor."""
    for statement in node.body:
        match statement:
            case Load(tensor=name, indices=indices, type=type):
                _check_access(graph, node, domain, statement, name, indices, type.lanes)
            case Store(tensor=name, indices=indices, value=value):
                _check_access(graph, node, domain, statement, name, indices, value.type.lanes)


def _check_access(
    graph: Graph,
    node: PEArray,
    domain: Domain,
    statement: Load | Store,
    name: str,
    indices: tuple[Expr, ...],
    lanes: int,
) -> None:
    tensor = graph.tensor(name)
    active = domain.condition(statement.condition)
    for dimension, (index, extent) in enumerate(zip(indices, tensor.shape, strict=True)):
        width = lanes if dimension == len(indices) - 1 else 1
        found = _range(domain.value(index), active, extent - width)
        if found is None:
            continue
        verb = "loads" if isinstance(statement, Load) else "stores"
        raise UserError(
            f"{node.name!r} {verb} outside of {name!r}",
            location=node.location,
            expected=f"indices 0 to {extent - 1} in dimension {dimension} of {tensor.shape}",
            given=f"indices {found[0]} to {found[1] + width - 1}",
            hint="guard the access with a condition, or give the tensor the shape it is used with",
            notes=[(tensor.location, f"{name!r} is declared here")],
        )


def _range(index: Array, active: Array, last: int) -> tuple[int, int] | None:
    """Smallest and largest active index if one is outside of 0 to ``last``."""
    if index.size == 0 or (int(index.min()) >= 0 and int(index.max()) <= last):
        return None
    both = np.broadcast_shapes(index.shape, active.shape)
    used = np.broadcast_to(index, both)[np.broadcast_to(active, both)]
    if used.size == 0 or (int(used.min()) >= 0 and int(used.max()) <= last):
        return None
    return int(used.min()), int(used.max())


def port_feature(
    node: PEArray,
    domain: Domain,
    channel: Channel,
    statement: Receive | Send,
    first_element: int,
) -> Feature:
    """The element of a channel that each firing uses, counted from ``first_element``.

    ``UNUSED`` where the statement's condition does not hold.  ``UserError`` if a firing uses an
    element outside of the channel's shape.
    """
    indices = channel.source_index if isinstance(statement, Send) else channel.sink_index
    active = domain.condition(statement.condition)
    flat: Array = np.zeros((1,) * len(domain.shape), np.int64)
    for dimension, (index, extent) in enumerate(zip(indices, channel.shape, strict=True)):
        value = domain.value(index)
        found = _range(value, active, extent - 1)
        if found is not None:
            raise UserError(
                f"{node.name!r} uses elements outside of channel {channel.name!r}",
                location=channel.location or node.location,
                expected=f"indices 0 to {extent - 1} in dimension {dimension} of {channel.shape}",
                given=f"indices {found[0]} to {found[1]}",
                hint="give the channel one element for every pair of PEs that it connects",
            )
        flat = flat * extent + value
    return Feature(active=active, value=flat + first_element, otherwise=UNUSED)
