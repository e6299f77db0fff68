"""Every design has to compute what its definition says, in the interpreter and in both engines."""

from __future__ import annotations

from typing import Any

import numpy as np

import t2s
from t2s import Func
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import PEArray
from t2s.graph.printer import show_statement
from tests.spatial.programs import random_inputs


def agree(func: Func, seed: int = 1, *, real: bool = False, **constants: int) -> Graph:
    """The graph, which gives the oracle's values bit for bit; small integers as inputs."""
    graph = t2s.lower(func, constants)
    inputs = random_inputs(graph, seed, real=real)
    expected = t2s.interpret(func, inputs | constants)
    for name, result in results(graph, inputs).items():
        np.testing.assert_array_equal(result, expected, err_msg=name)
    return graph


def results(graph: Graph, inputs: dict[str, Any]) -> dict[str, Any]:
    """The output by interpreter and by both engines, which also have to agree on the cycles."""
    scalars = {parameter.name for parameter in graph.parameters}
    arrays = {name: value for name, value in inputs.items() if name not in scalars}
    given = {name: value for name, value in inputs.items() if name in scalars}
    python = t2s.simulate(graph, inputs, engine="python", progress=False)
    native = t2s.simulate(graph, inputs, engine="native", progress=False)
    assert python.cycles == native.cycles
    return {
        "interpret_graph": interpret_graph(graph, arrays, given)[graph.name],
        "python": python.outputs[graph.name],
        "native": native.outputs[graph.name],
    }


def body(graph: Graph, node: str) -> list[str]:
    """The statements of a node, one line each."""
    return [show_statement(statement) for statement in graph.node(node).body]


def space(node: PEArray) -> dict[str, int]:
    """The extents of the space dimensions of a node."""
    return {dimension.name: dimension.extent for dimension in node.space}


def nest(func: Func, kernel: str | None = None) -> list[str]:
    """The loops of one kernel as they are printed, without reasons: ``["parallel i in 0..3"]``."""
    kernels = t2s.print_loop_nest(func).split("\n\n")
    wanted = next(k for k in kernels if k.startswith(f"{kernel or func.name}:"))
    words = ("for ", "parallel ", "vector ")
    lines = (line.split("#")[0].strip().rstrip(":") for line in wanted.splitlines()[1:])
    return [line for line in lines if line.startswith(words)]
