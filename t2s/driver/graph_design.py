"""A user's ``Graph`` as a design: written by hand, read from a file, or lowered before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from t2s.core.arrays import named_inputs
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.design import Array, Design, Stage, Stages
from t2s.graph.arrays import check_graph_inputs
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.printer import print_graph
from t2s.graph.verify import verify_graph


@dataclass(frozen=True)
class GraphDesign(Design):
    """A graph, verified before anything else happens to it."""

    graph: Graph

    @property
    def name(self) -> str:
        return self.graph.name

    def lower(self, given: Mapping[str, Any]) -> Graph:
        self._refuse_constants(given)
        verify_graph(self.graph)
        return self.graph

    def loops(self, given: Mapping[str, Any]) -> str:
        return print_graph(self.lower(given))

    def structure(self, given: Mapping[str, Any]) -> dict[str, Array]:
        return {}

    def interpret(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        graph = self.lower({})
        arrays, scalars = split_scalars(graph, named_inputs(inputs))
        return interpret_graph(graph, *check_graph_inputs(graph, arrays, scalars))

    def stages(self, inputs: Mapping[str, Any] | None) -> Stages:
        arrays, scalars = split_scalars(self.graph, named_inputs({} if inputs is None else inputs))
        return (yield Stage(graph=self.graph, arrays=arrays, scalars=scalars))

    def _refuse_constants(self, given: Mapping[str, Any]) -> None:
        for name in given:
            raise UserError(
                f"{self.graph.name!r} is a graph already, and takes no constants",
                location=user_location(),
                expected="no constants: a graph is for one size",
                given=name,
                hint="lower the Func with it",
            )


def split_scalars(graph: Graph, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the inputs into arrays and scalars."""
    scalars = {parameter.name for parameter in graph.parameters}
    return (
        {name: value for name, value in inputs.items() if name not in scalars},
        {name: value for name, value in inputs.items() if name in scalars},
    )
