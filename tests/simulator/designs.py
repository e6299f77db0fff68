"""Small graphs whose cycles can be counted by hand, and ways to run them in both engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from t2s.core.expr import Expr, Index, Local, Select, const, equals
from t2s.core.location import SourceLocation
from t2s.core.types import INT32, Type
from t2s.graph.body import Let, Load, Receive, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Channel, Graph, StreamType, Tensor, TensorRole
from t2s.graph.nodes import Loop, PEArray, Register, Role, SpaceDimension
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.random_stalls import RandomStalls
from t2s.simulator.report.result import SimResult

ENGINES = ("python", "table", "array")
IDEAL = DEVICES["ideal"]
N = Index(name="n")
ZERO = const(0)


def line(number: int) -> SourceLocation:
    """A line of an imaginary user's file."""
    return SourceLocation("design.py", number)


def local(name: str, type: Type = INT32) -> Local:
    return Local(name=name, type=type)


def loops(count: int, name: str = "n") -> tuple[Loop, ...]:
    return (Loop(name=name, minimum=ZERO, extent=const(count)),)


def node(
    name: str,
    count: int,
    *body: Statement,
    role: Role = Role.COMPUTE,
    space: tuple[SpaceDimension, ...] = (),
    registers: tuple[Register, ...] = (),
    at: int | None = None,
) -> PEArray:
    return PEArray(
        name=name,
        role=role,
        space=space,
        loops=loops(count),
        registers=registers,
        body=body,
        location=line(at) if at is not None else None,
    )


def receive(channel: str, condition: Expr | None = None, type: Type = INT32) -> Receive:
    """Receive into a local of the channel's name."""
    return Receive(target=channel, channel=channel, type=type, condition=condition)


def send(channel: str, value: Expr = ZERO, condition: Expr | None = None) -> Send:
    return Send(channel=channel, value=value, condition=condition)


def load_unit(count: int, channel: str, *, lanes: int = 1, at: int | None = None) -> PEArray:
    """Loads ``X[lanes * n]`` and sends it."""
    type = INT32.with_lanes(lanes)
    load = Load(target="value", tensor="X", indices=(N * lanes,), type=type)
    body = (load, send(channel, local("value", type)))
    return node("load", count, *body, role=Role.LOAD, at=at)


def store_unit(count: int, channel: str, type: Type = INT32, *, at: int | None = None) -> PEArray:
    """Receives and stores ``Y[n]``."""
    store = Store(tensor="Y", indices=(N,), value=local(channel, type))
    body = (receive(channel, type=type), store)
    return node("store", count, *body, role=Role.STORE, at=at)


def relay(name: str, count: int, source: str, sink: str, role: Role = Role.COMPUTE) -> PEArray:
    return node(name, count, receive(source), send(sink, local(source)), role=role)


def channel(
    name: str,
    source: str,
    sink: str,
    *,
    capacity: int = 2,
    latency: int = 1,
    element: Type = INT32,
    at: int | None = None,
) -> Channel:
    return Channel(
        name=name,
        stream=StreamType(element=element),
        source=source,
        sink=sink,
        capacity=capacity,
        latency=latency,
        location=line(at) if at is not None else None,
    )


def tensor(name: str, role: TensorRole, *shape: int, type: Type = INT32, at: int = 1) -> Tensor:
    return Tensor(name=name, type=type, shape=shape, role=role, location=line(at))


def design(
    nodes: tuple[PEArray, ...], channels: tuple[Channel, ...], *tensors: Tensor, **more: Any
) -> Graph:
    return Graph(name="design", nodes=nodes, channels=channels, tensors=tensors, **more)


def x(count: int) -> Tensor:
    return tensor("X", TensorRole.INPUT, count)


def y(count: int, type: Type = INT32) -> Tensor:
    return tensor("Y", TensorRole.OUTPUT, count, type=type)


def chain(count: int, *, capacity: int = 2, latencies: tuple[int, int] = (1, 1)) -> Graph:
    """load -> A -> compute -> B -> store."""
    nodes = (load_unit(count, "A"), relay("compute", count, "A", "B"), store_unit(count, "B"))
    channels = (
        channel("A", "load", "compute", capacity=capacity, latency=latencies[0]),
        channel("B", "compute", "store", capacity=capacity, latency=latencies[1]),
    )
    return design(nodes, channels, x(count), y(count))


def fork_join(count: int, *, short: int) -> Graph:
    """load -> fork, fork -> join by a short channel and through a relay, join -> store."""
    fork = node(
        "fork", count, receive("A"), send("short", local("A")), send("long", local("A")), at=2
    )
    join = node(
        "join",
        count,
        receive("short"),
        receive("late"),
        send("B", local("short") + local("late")),
        at=3,
    )
    nodes = (
        load_unit(count, "A"),
        fork,
        relay("delay", count, "long", "late", Role.RELAY),
        join,
        store_unit(count, "B"),
    )
    channels = (
        channel("A", "load", "fork"),
        channel("short", "fork", "join", capacity=short),
        channel("long", "fork", "delay"),
        channel("late", "delay", "join"),
        channel("B", "join", "store"),
    )
    return design(nodes, channels, x(count), y(count))


def holding_fork_join(count: int, *, short: int, long: int = 2) -> Graph:
    """As ``fork_join``, but the relay takes all its tokens before it passes the first one on."""
    total, held = local("total"), local("held")
    taking = N < count
    hold = replace(
        node(
            "hold",
            2 * count,
            receive("long", taking),
            RegisterRead(target="held", register="sum", indices=(), type=INT32),
            Let(target="total", value=held + local("long")),
            RegisterWrite(register="sum", indices=(), value=total),
            send("late", total, N >= count),
            registers=(Register(name="sum", type=INT32, shape=(), distance=1),),
            at=5,
        )
    )
    graph = fork_join(count, short=short)
    nodes = tuple(hold if item.name == "delay" else item for item in graph.nodes)
    ends = {"long": {"sink": "hold", "capacity": long}, "late": {"source": "hold"}}
    channels = tuple(
        replace(item, **ends.get(item.name, {}), location=line(7)) for item in graph.channels
    )
    return replace(graph, nodes=nodes, channels=channels)


def accumulation(count: int, element: Type, *, capacity: int = 2) -> Graph:
    """load -> A -> sum of all (distance 1), sent at the end -> B -> store."""
    zero = const(0.0 if element.is_float else 0, element)
    load = Load(target="value", tensor="X", indices=(N,), type=element)
    loading = node("load", count, load, send("A", local("value", element)), role=Role.LOAD)
    before = Select(
        condition=equals(N, ZERO), if_true=zero, if_false=local("old", element), type=element
    )
    summing = node(
        "sum",
        count,
        receive("A", type=element),
        RegisterRead(target="old", register="total", indices=(), type=element),
        Let(target="new", value=before + local("A", element)),
        RegisterWrite(register="total", indices=(), value=local("new", element)),
        send("B", local("new", element), equals(N, count - 1)),
        registers=(Register(name="total", type=element, shape=(), distance=1, location=line(9)),),
    )
    return design(
        (loading, summing, store_unit(1, "B", element)),
        (
            channel("A", "load", "sum", capacity=capacity, element=element),
            channel("B", "sum", "store", element=element),
        ),
        tensor("X", TensorRole.INPUT, count, type=element),
        y(1, element),
    )


def feedback(count: int, *, capacity: int, latency: int, distance: int = 1) -> Graph:
    """load -> A -> prefix sum through a channel of the node to itself -> B -> store.

    Each sum is that of ``distance`` firings before, and the new element.
    """
    more = N < count - distance
    total = local("total")
    body = (
        receive("A"),
        receive("state", N >= distance),
        Let(target="total", value=local("A") + local("state")),
        send("state", total, more),
        send("B", total),
    )
    return design(
        (load_unit(count, "A"), node("scan", count, *body, at=4), store_unit(count, "B")),
        (
            channel("A", "load", "scan", capacity=count),
            channel("state", "scan", "scan", capacity=capacity, latency=latency, at=6),
            channel("B", "scan", "store"),
        ),
        x(count),
        y(count),
    )


def wide_load(count: int, lanes: int) -> Graph:
    """load of vectors -> A -> sum of all lanes, sent at the end -> B -> store of one number."""
    vector = INT32.with_lanes(lanes)
    nodes = (
        load_unit(count, "A", lanes=lanes),
        node(
            "drop",
            count,
            receive("A", type=vector),
            send("B", const(7), equals(N, count - 1)),
        ),
        store_unit(1, "B"),
    )
    channels = (
        channel("A", "load", "drop", element=vector),
        channel("B", "drop", "store"),
    )
    return design(nodes, channels, x(count * lanes), y(1))


def two_loaders(count: int) -> Graph:
    """Two load units whose tokens a node takes in pairs and drops: only they use memory."""
    loaders = tuple(
        replace(load_unit(count, sink), name=name) for name, sink in (("left", "A"), ("right", "B"))
    )
    drop = node("drop", count, receive("A"), receive("B"))
    channels = (
        channel("A", "left", "drop", capacity=8),
        channel("B", "right", "drop", capacity=8),
    )
    return design((*loaders, drop), channels, x(count))


def run(
    graph: Graph,
    engine: str,
    *,
    device: str | Device = "ideal",
    inputs: Mapping[str, Any] | None = None,
    max_cycles: int | None = None,
    stalls: RandomStalls | None = None,
) -> SimResult:
    """Run without raising for deadlocks."""
    program = build_program(graph, device, inputs, stalls=stalls)
    return find_engine(engine).run(program, Limits(max_cycles=max_cycles))
