"""A small correct graph, ``pipeline``, and ways to change one thing in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from t2s.core.expr import Expr, Local, apply, const
from t2s.core.location import SourceLocation
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import (
    Channel,
    Graph,
    Region,
    RegionKind,
    ScalarParameter,
    StreamType,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import Loop, PEArray, Register, Role
from tests.hand_graphs import index, loop


def at(line: int) -> SourceLocation:
    """A line of a file that does not exist, so that messages show no source text."""
    return SourceLocation("design.py", line)


def local(name: str) -> Local:
    return Local(name=name, type=INT32)


def pipeline() -> Graph:
    """Y[i] = X[0] + ... + X[i], through a load unit, an accumulator and a store unit."""
    loops = (loop("i", 8),)
    load = PEArray(
        name="load_X",
        role=Role.LOAD,
        space=(),
        loops=loops,
        body=(
            Load(target="value", tensor="X", indices=(index("i"),), type=INT32),
            Send(channel="to_sum", value=local("value")),
        ),
        location=at(1),
    )
    total = PEArray(
        name="sum",
        role=Role.COMPUTE,
        space=(),
        loops=loops,
        registers=(Register(name="sofar", type=INT32, shape=(1,), distance=1),),
        body=(
            Receive(target="x", channel="to_sum", type=INT32),
            RegisterRead(target="previous", register="sofar", indices=(const(0),), type=INT32),
            Let(target="total", value=local("previous") + local("x")),
            RegisterWrite(register="sofar", indices=(const(0),), value=local("total")),
            Send(channel="from_sum", value=local("total")),
        ),
        region="outer",
        location=at(2),
    )
    store = PEArray(
        name="store_Y",
        role=Role.STORE,
        space=(),
        loops=loops,
        body=(
            Receive(target="value", channel="from_sum", type=INT32),
            Store(tensor="Y", indices=(index("i"),), value=local("value")),
        ),
        location=at(3),
    )
    stream = StreamType(element=INT32)
    return Graph(
        name="prefix_sum",
        nodes=(load, total, store),
        channels=(
            Channel(name="to_sum", stream=stream, source="load_X", sink="sum", location=at(4)),
            Channel(name="from_sum", stream=stream, source="sum", sink="store_Y", location=at(5)),
        ),
        tensors=(
            Tensor(name="X", type=INT32, shape=(8,), role=TensorRole.INPUT, location=at(6)),
            Tensor(name="Y", type=INT32, shape=(8,), role=TensorRole.OUTPUT, location=at(7)),
        ),
        parameters=(ScalarParameter(name="n", type=INT32, location=at(8)),),
        regions=(Region(name="outer", index="i", kind=RegionKind.RANGE, parent=None),),
        location=at(9),
    )


def with_node(graph: Graph, name: str, /, **fields: Any) -> Graph:
    """The graph with fields of one node replaced."""
    return replace(
        graph,
        nodes=tuple(replace(n, **fields) if n.name == name else n for n in graph.nodes),
    )


def with_channel(graph: Graph, name: str, /, **fields: Any) -> Graph:
    """The graph with fields of one channel replaced."""
    return replace(
        graph,
        channels=tuple(replace(c, **fields) if c.name == name else c for c in graph.channels),
    )


def with_tensor(graph: Graph, name: str, /, **fields: Any) -> Graph:
    """The graph with fields of one tensor replaced."""
    return replace(
        graph,
        tensors=tuple(replace(t, **fields) if t.name == name else t for t in graph.tensors),
    )


def with_register(graph: Graph, /, **fields: Any) -> Graph:
    """The graph with fields of the only register of ``sum`` replaced."""
    return with_node(graph, "sum", registers=(replace(graph.node("sum").registers[0], **fields),))


def with_statement(graph: Graph, node: str, position: int, /, **fields: Any) -> Graph:
    """The graph with fields of one statement of a node replaced."""
    body = list(graph.node(node).body)
    body[position] = replace(body[position], **fields)
    return with_node(graph, node, body=tuple(body))


def with_body(graph: Graph, node: str, *more: Statement, skip: int | None = None) -> Graph:
    """The graph with statements added at the end of a body, and the one at ``skip`` left out."""
    body = [s for position, s in enumerate(graph.node(node).body) if position != skip]
    return with_node(graph, node, body=(*body, *more))


def with_value(graph: Graph, value: Expr) -> Graph:
    """The graph with another value for the local ``total`` of ``sum``."""
    return with_statement(graph, "sum", 2, value=value)


def with_loops(graph: Graph, node: str, *loops: Loop) -> Graph:
    return with_node(graph, node, loops=loops)


def less(left: Expr, right: Expr) -> Expr:
    return apply(Op.LESS, left, right)
