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
from t2s.graph.machine import (
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Path,
    Search,
    SortedMemory,
)
from t2s.graph.nodes import Node, PEArray

MOST_ELEMENTS = 1 << 24
"""Most elements of a tensor: the testbench holds it in memory."""


def nests_of(graph: Graph) -> dict[str, Nest] | list[Unsupported]:
    """How the loops of each PE array are counted, or everything that stands in the way."""
    problems: list[Unsupported] = []
    nests: dict[str, Nest] = {}
    for node in graph.nodes:
        if isinstance(node, PEArray):
            nest = nest_of(node)
            if isinstance(nest, str):
                problems.append(_problem(node, nest))
                continue
            nests[node.name] = nest
        problems += (_problem(node, why) for why in _first(_reasons(graph, node)))
    return [*problems, *_memory(graph)] or nests


def _problem(node: Node, why: str) -> Unsupported:
    return Unsupported(subject=f"node {node.name!r}", why=why, location=node.location)


def _first(reasons: Iterator[str]) -> Iterator[str]:
    for reason in reasons:
        yield reason
        return


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


def _reasons(graph: Graph, node: Node) -> Iterator[str]:
    """Statements, expressions and types of a node that have no spelling."""
    inputs, outputs = graph.inputs_of(node.name), graph.outputs_of(node.name)
    ends: list[Term] = [index for channel in inputs for index in channel.sink_index]
    ends += [index for channel in outputs for index in channel.source_index]
    for root in (node, *ends):
        for term in walk(root):
            why = _reason(term)
            if why is not None:
                yield why
    for channel in (*inputs, *outputs):
        why = unsupported_type(channel.stream.element)
        if why is not None:
            yield why
    if isinstance(node, Machine):
        for path in node.paths():
            yield from _port_conflicts(path)


def _reason(term: Term) -> str | None:
    match term:
        case Expr(type=type):
            return unsupported_type(type) or unsupported_term(term)
        case Receive(type=type) | Load(type=type) | RegisterRead(type=type):
            return unsupported_type(type)
        case Search(value=value) if not value.type.is_integer:
            return f"it searches among values of type {value.type}; only integers are searched"
        case SortedMemory(name=name, type=type):
            if type.lanes > 1:
                return f"the values of its sorted memory {name!r} are vectors"
            return unsupported_type(type)
        case Send() | Let() | Store() | RegisterWrite() | Search():
            return None
        case MemoryAdd() | MemoryDrop() | MemorySize() | MemoryFirst():
            return None
        case Statement():
            return f"{term.__class__.__name__} is not written as SystemVerilog yet"
    return None


def _port_conflicts(path: Path) -> Iterator[str]:
    """What one firing does in an order that memories with a port for each statement do not have."""
    stored: set[str] = set()
    changed: set[str] = set()
    rule = path.rule.name
    for statement in path.statements:
        match statement:
            case Store(tensor=tensor):
                stored.add(tensor)
            case Load(tensor=tensor) | Search(tensor=tensor) if tensor in stored:
                yield f"its rule {rule!r} reads {tensor!r} after it has stored into it"
            case MemoryAdd(memory=memory) | MemoryDrop(memory=memory):
                if memory in changed:
                    yield f"its rule {rule!r} changes the sorted memory {memory!r} twice"
                changed.add(memory)
            case MemorySize(memory=memory) | MemoryFirst(memory=memory) if memory in changed:
                yield f"its rule {rule!r} looks into {memory!r} after it has changed it"
