"""Loop nests as counters, and everything that the backend refuses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.backends.base import Unsupported
from t2s.backends.verilog.data_types import unsupported_type
from t2s.backends.verilog.expressions import unsupported_term
from t2s.core.expr import Expr, Parameter, index_names
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
    by_lanes,
)
from t2s.graph.control.iterations import Iterations
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.nodes import (
    Machine,
    MemoryAdd,
    MemoryDrop,
    MemoryFirst,
    MemorySize,
    Node,
    Path,
    PEArray,
    Search,
    SortedMemory,
)
from t2s.graph.semantics import pe_points

MOST_ELEMENTS = 1 << 24
"""Most elements of a tensor: the testbench holds it in memory."""


def nests_of(graph: Graph) -> dict[str, CountedNest] | list[Unsupported]:
    """How the loops of each PE array are counted, or every reason to refuse the graph."""
    problems: list[Unsupported] = []
    nests: dict[str, CountedNest] = {}
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
        if tensor.place is MemorySpace.SHARED:
            why = "banks that machines share are not supported in SystemVerilog"
        elif why is None and prod(tensor.allocated) > MOST_ELEMENTS:
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
    """Reasons to refuse statements, expressions and types of a node."""
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
        case Machine() if term.interval > 1 or term.latency:
            return "it has an interval or a latency of its own, which SystemVerilog does not keep"
        case Expr(type=type):
            return unsupported_type(type) or unsupported_term(term)
        case Load(indices=indices) | Store(indices=indices) if by_lanes(indices):
            return "it gathers or scatters, which is not supported in SystemVerilog yet"
        case Receive(type=type) | Load(type=type) | RegisterRead(type=type):
            return unsupported_type(type)
        case Search(value=value) if not value.type.is_integer:
            return f"it searches among values of type {value.type}; only integers are searched"
        case SortedMemory(type=type):
            return unsupported_type(type)
        case Send() | Let() | Store() | RegisterWrite() | Search():
            return None
        case MemoryAdd() | MemoryDrop() | MemorySize() | MemoryFirst():
            return None
        case Statement():
            return f"{term.__class__.__name__} is not supported in SystemVerilog yet"
    return None


def _port_conflicts(path: Path) -> Iterator[str]:
    """Accesses of one firing whose order memories with a port for each statement do not keep."""
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


MOST_ITERATIONS = 1 << 22
"""The most outer iterations of a node, over all PEs, that are enumerated."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedNest:
    """How a nest is counted: ``search`` steps up and down it, or 0 for simple counters."""

    search: int


def nest_of(node: PEArray) -> CountedNest | str:
    """How to count a nest, or why that is not possible."""
    loops = {loop.name for loop in node.loops}
    inner = [bound for loop in node.loops for bound in (loop.minimum, loop.extent)]
    if not any(index_names(bound) & loops for bound in inner):
        return CountedNest(search=0)  # constant extents: if one is 0, there is no firing at all
    if any(isinstance(term, Parameter) for bound in inner for term in walk(bound)):
        return (
            "bounds of its loops depend on other loops and on parameters, so it is not known how "
            "many empty loops to skip in one cycle; make the parameters constants"
        )
    run = _longest_run_of_empty_loops(node)
    if run is None:
        return f"its loops are not a box, and have more than {MOST_ITERATIONS} outer iterations"
    return CountedNest(search=0 if run == 0 else (run + 2) * 2 * len(node.loops))


def _longest_run_of_empty_loops(node: PEArray) -> int | None:
    """The longest run of empty loops of any PE; ``None`` if unknown."""
    points = list(pe_points(node))
    columns = np.asarray(points, np.int32).reshape(len(points), len(node.space))
    iterations = Iterations(
        shape=(len(points),), names={d.name: columns[:, at] for at, d in enumerate(node.space)}
    )
    alive = np.ones(len(points), np.bool_)
    for loop in node.loops[:-1]:  # an empty loop is kept as one iteration that is not alive
        low, extents = iterations.bounds(loop)
        trips = np.where(alive, extents, 0)
        counted = np.maximum(trips, 1)
        if int(counted.sum()) > MOST_ITERATIONS:
            return None
        iterations, alive = (
            iterations.inside(loop.name, low, counted),
            np.repeat(alive & (trips > 0), counted),
        )
    _, extents = iterations.bounds(node.loops[-1])
    return _longest_false(alive & (extents > 0))


def _longest_false(flags: Array) -> int:
    edges = np.flatnonzero(np.concatenate([[True], flags, [True]]))
    return int(np.diff(edges).max(initial=1)) - 1
