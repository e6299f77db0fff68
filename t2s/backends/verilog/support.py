"""What a graph may not contain for the backend to emit it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from t2s.backends.base import Unsupported
from t2s.backends.verilog.data_types import unsupported_type
from t2s.backends.verilog.nests import Nest, nest_of
from t2s.core.expr import Expr
from t2s.core.types import Type
from t2s.core.walk import walk
from t2s.graph.body import Load, Receive, RegisterRead, Statement
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray

MOST_ELEMENTS = 1 << 24
"""Most elements of a tensor: the testbench holds it in memory."""


def nests_of(graph: Graph) -> dict[str, Nest] | list[Unsupported]:
    """How the loops of each node are counted, or everything that stands in the way."""
    problems: list[Unsupported] = []
    nests: dict[str, Nest] = {}
    for node in graph.nodes:
        nest = nest_of(node)
        if isinstance(nest, str):
            problems.append(
                Unsupported(subject=f"node {node.name!r}", why=nest, location=node.location)
            )
        else:
            nests[node.name] = nest
        problems += _types(node)
    for tensor in graph.tensors:
        why = unsupported_type(tensor.type)
        if why is None and prod(tensor.allocated) > MOST_ELEMENTS:
            why = f"it has more than {MOST_ELEMENTS} elements, which the testbench would hold"
        if why is not None:
            subject = f"tensor {tensor.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=tensor.location))
    for parameter in graph.parameters:
        why = unsupported_type(parameter.type)
        if why is not None:
            subject = f"parameter {parameter.name!r}"
            problems.append(Unsupported(subject=subject, why=why, location=parameter.location))
    return problems or nests


def _types(node: PEArray) -> Iterator[Unsupported]:
    """The first type of a node that has no operators."""
    for type in (type for statement in node.body for type in _types_of(statement)):
        why = unsupported_type(type)
        if why is not None:
            yield Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
            return


def _types_of(statement: Statement) -> Iterator[Type]:
    match statement:
        case Receive(type=type) | Load(type=type) | RegisterRead(type=type):
            yield type
    yield from (term.type for term in walk(statement) if isinstance(term, Expr))
