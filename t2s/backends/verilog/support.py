"""What a graph may not contain for the backend to emit it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from t2s.backends.base import Unsupported
from t2s.backends.verilog.data_types import unsupported_type
from t2s.backends.verilog.expressions import unsupported_term
from t2s.backends.verilog.nests import Nest, nest_of
from t2s.core.expr import Expr
from t2s.core.walk import Term, walk
from t2s.graph.body import (
    Let,
    Load,
    Receive,
    RegisterRead,
    RegisterWrite,
    Send,
    Statement,
    Store,
)
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray

MOST_ELEMENTS = 1 << 24
"""Most elements of a tensor: the testbench holds it in memory."""


def nests_of(graph: Graph) -> dict[str, Nest] | list[Unsupported]:
    """How the loops of each node are counted, or everything that stands in the way."""
    problems: list[Unsupported] = []
    nests: dict[str, Nest] = {}
    for node in graph.nodes:
        nest = nest_of(node) if isinstance(node, PEArray) else _ANOTHER_KIND
        if isinstance(nest, str) or not isinstance(node, PEArray):
            problems.append(
                Unsupported(subject=f"node {node.name!r}", why=str(nest), location=node.location)
            )
        else:
            nests[node.name] = nest
            problems += _body(graph, node)
    return [*problems, *_memory(graph)] or nests


_ANOTHER_KIND = "only arrays of PEs with loops are written as SystemVerilog yet"


def _memory(graph: Graph) -> Iterator[Unsupported]:
    """Tensors and parameters that the testbench cannot hold."""
    for tensor in graph.tensors:
        why = unsupported_type(tensor.type)
        if why is None and prod(tensor.allocated) > MOST_ELEMENTS:
            why = f"it has more than {MOST_ELEMENTS} elements, which the testbench would hold"
        if why is not None:
            subject = f"tensor {tensor.name!r}"
            yield Unsupported(subject=subject, why=why, location=tensor.location)
    for parameter in graph.parameters:
        why = unsupported_type(parameter.type)
        if why is not None:
            subject = f"parameter {parameter.name!r}"
            yield Unsupported(subject=subject, why=why, location=parameter.location)


def _body(graph: Graph, node: PEArray) -> Iterator[Unsupported]:
    """The first statement, expression or type of a node that has no spelling."""
    for why in _reasons(graph, node):
        yield Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)
        return


def _reasons(graph: Graph, node: PEArray) -> Iterator[str]:
    ends = (
        *(index for channel in graph.inputs_of(node.name) for index in channel.sink_index),
        *(index for channel in graph.outputs_of(node.name) for index in channel.source_index),
    )
    for root in (*node.body, *node.loops, *node.registers, *ends):
        for term in walk(root):
            why = _reason(term)
            if why is not None:
                yield why


def _reason(term: Term) -> str | None:
    match term:
        case Expr(type=type):
            return unsupported_type(type) or unsupported_term(term)
        case Receive(type=type) | Load(type=type) | RegisterRead(type=type):
            return unsupported_type(type)
        case Send() | Let() | Store() | RegisterWrite():
            return None
        case Statement():
            return f"{term.__class__.__name__} is not written as SystemVerilog yet"
    return None
