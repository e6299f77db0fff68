"""Short ways to write nodes, channels and tensors."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.expr import Expr, Local
from t2s.core.types import INT32, Type
from t2s.graph.body import Load, Receive, Send, Statement, Store
from t2s.graph.graph import (
    Channel,
    Graph,
    ScalarParameter,
    StreamKind,
    StreamType,
    Tensor,
    TensorRole,
)
from t2s.graph.nodes import Loop, PEArray, Register, Role, SpaceDimension


def local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


def node(
    name: str,
    role: Role,
    loops: Sequence[Loop],
    body: Sequence[Statement],
    *,
    pes: Sequence[SpaceDimension] = (),
    registers: Sequence[Register] = (),
) -> PEArray:
    return PEArray(
        name=name,
        role=role,
        space=tuple(pes),
        loops=tuple(loops),
        registers=tuple(registers),
        body=tuple(body),
    )


def channel(
    name: str,
    source: str,
    sink: str,
    shape: Sequence[int] = (),
    sent: Sequence[Expr] = (),
    received: Sequence[Expr] | None = None,
    *,
    element: Type = INT32,
    kind: StreamKind = StreamKind.VALUE,
    capacity: int = 1,
) -> Channel:
    return Channel(
        name=name,
        stream=StreamType(element=element, kind=kind),
        source=source,
        sink=sink,
        shape=tuple(shape),
        source_index=tuple(sent),
        sink_index=tuple(sent if received is None else received),
        capacity=capacity,
    )


def tensor(name: str, *shape: int, element: Type = INT32, role: str = "input") -> Tensor:
    return Tensor(name=name, type=element, shape=shape, role=TensorRole(role))


def load(
    name: str,
    tensor: str,
    to: str,
    loops: Sequence[Loop],
    indices: Sequence[Expr],
    *,
    pes: Sequence[SpaceDimension] = (),
    element: Type = INT32,
) -> PEArray:
    """Loads one element per firing and sends it on."""
    value = local("value", element)
    body = (
        Load(target="value", tensor=tensor, indices=tuple(indices), type=element),
        Send(channel=to, value=value),
    )
    return node(name, Role.LOAD, loops, body, pes=pes)


def store(
    name: str,
    tensor: str,
    source: str,
    loops: Sequence[Loop],
    indices: Sequence[Expr],
    *,
    pes: Sequence[SpaceDimension] = (),
    element: Type = INT32,
) -> PEArray:
    """Stores one token per firing."""
    body = (
        Receive(target="value", channel=source, type=element),
        Store(tensor=tensor, indices=tuple(indices), value=local("value", element)),
    )
    return node(name, Role.STORE, loops, body, pes=pes)


def graph(
    name: str,
    nodes: Sequence[PEArray],
    channels: Sequence[Channel],
    tensors: Sequence[Tensor],
    parameters: Sequence[ScalarParameter] = (),
) -> Graph:
    return Graph(
        name=name,
        nodes=tuple(nodes),
        channels=tuple(channels),
        tensors=tuple(tensors),
        parameters=tuple(parameters),
    )
