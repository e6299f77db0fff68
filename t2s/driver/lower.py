"""From a Func to its graph and to numpy: the part of the driver that knows front ends only.

``lower`` freezes the program, applies the directives and returns the ``Graph``; ``resolve`` does it
for the inputs of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, overload

import numpy as np

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.integers import whole
from t2s.core.location import user_location
from t2s.driver.product import (
    Product,
    interpret_product,
    is_sparse,
    lower_product,
    parts_of,
    product_of,
    refuse_sparse,
    split_inputs,
)
from t2s.func.collect import needed_funcs, output_funcs, structural_parameters
from t2s.func.freeze import freeze
from t2s.func.interpret import interpret_program
from t2s.graph.graph import Graph
from t2s.spatial.ir import SpatialProgram
from t2s.spatial.pipeline import build_spatial
from t2s.spatial.printer import print_loop_nest as print_program
from t2s.spatial.schedule import ScheduledFunc
from t2s.spatial.to_graph import lower_to_graph

Array = np.ndarray[Any, Any]
Design = ScheduledFunc | Sequence[ScheduledFunc]


def lower(design: Design, **constants: Any) -> Graph:
    """The PE/channel graph of a Func, or of several outputs, with their directives.

    ``constants`` gives values to the integer ``Param`` objects that bounds use, by name, and to a
    ``Parameter`` its matrix, for which the graph is then made.  Raises ``UserError`` with the
    user's line for a directive that is not legal.
    """
    if is_sparse(design):
        assert isinstance(design, ScheduledFunc)
        return lower_product(design, split_inputs(design, constants)[0])[0]
    return lower_to_graph(_spatial(design, constants))


def structure(design: ScheduledFunc, **matrices: Any) -> dict[str, Array]:
    """The arrays that the graph of a sparse design takes for its matrix, by name.

    They may be used for many runs: ``t2s.simulate(graph, t2s.structure(y, A=matrix) | {"x": x})``.
    """
    if not is_sparse(design):
        refuse_dense(design, "has no structure")
    return lower_product(design, split_inputs(design, matrices)[0])[1]


def refuse_dense(design: object, reason: str) -> NoReturn:
    """Raise the error for a design that is no product of a sparse matrix."""
    raise UserError(
        f"{design!r} {reason}",
        location=user_location(),
        expected="a Func that reads the values of a t2s.Parameter",
        given=repr(design),
    )


def print_loop_nest(design: Design, **constants: int) -> str:
    """What the schedule means: all loop nests, with the reason of every loop."""
    return print_program(_spatial(design, constants))


def _spatial(design: Design, constants: Mapping[str, int]) -> SpatialProgram:
    refuse_sparse(design)
    constants = {n: v if (number := whole(v)) is None else number for n, v in constants.items()}
    program = freeze(design, constants)
    needed = needed_funcs(output_funcs(design))
    funcs = (other for other in needed if isinstance(other, ScheduledFunc))
    return build_spatial(program, {other.name: other for other in funcs}, constants)


@overload
def interpret(design: ScheduledFunc, inputs: Mapping[str, Any]) -> Array: ...


@overload
def interpret(design: Sequence[ScheduledFunc], inputs: Mapping[str, Any]) -> dict[str, Array]: ...


def interpret(design: Design, inputs: Mapping[str, Any]) -> Array | dict[str, Array]:
    """Compute a Func, or several, with numpy, ignoring directives: the oracle of every design.

    ``inputs`` holds the arrays and the scalars by name.  Returns the array of a Func, or a dict of
    the arrays by name for a tuple or list of Funcs.
    """
    inputs = named_inputs(inputs)
    if is_sparse(design):
        assert isinstance(design, ScheduledFunc)
        return interpret_product(design, inputs)
    refuse_sparse(design)
    outputs = output_funcs(design)
    constants = constants_of(outputs, inputs)
    given = {name: value for name, value in inputs.items() if name not in constants}
    results: dict[str, Array] = interpret_program(freeze(outputs, constants), given)
    if isinstance(design, ScheduledFunc):
        return results[design.name]
    return {output.name: results[output.name] for output in outputs}


def resolve(
    design: Graph | Design, inputs: Mapping[str, Any]
) -> tuple[Graph, dict[str, Any], dict[str, Any]]:
    """The graph, its arrays and its scalars; integers given to a Func become constants of it."""
    if not isinstance(design, Graph) and is_sparse(design):
        assert isinstance(design, ScheduledFunc)
        return resolve_product(design, inputs)[1:]
    inputs = named_inputs(inputs)
    constants = {} if isinstance(design, Graph) else constants_of(design, inputs)
    graph = design if isinstance(design, Graph) else lower(design, **constants)
    return graph, *split_scalars(graph, constants, inputs)


def resolve_product(
    design: ScheduledFunc, inputs: Mapping[str, Any]
) -> tuple[Product, Graph, dict[str, Any], dict[str, Any]]:
    """The same for a product of a sparse matrix, and what it is."""
    matrix, others = split_inputs(design, named_inputs(inputs))
    product = product_of(design, matrix)
    graph, arrays = parts_of(product)
    return product, graph, *split_scalars(graph, {}, {**arrays, **others})


def split_scalars(
    graph: Graph, constants: Mapping[str, int], inputs: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and scalars, without what has become a constant of the graph."""
    given = {name: value for name, value in inputs.items() if name not in constants}
    scalars = {parameter.name for parameter in graph.parameters}
    return (
        {name: value for name, value in given.items() if name not in scalars},
        {name: value for name, value in given.items() if name in scalars},
    )


def constants_of(design: object, inputs: Mapping[str, Any]) -> dict[str, int]:
    """The scalars that shapes depend on; all others are given at run time."""
    return {
        name: number
        for name in sorted(structural_parameters(output_funcs(design)))
        if (number := whole(inputs.get(name))) is not None
    }
