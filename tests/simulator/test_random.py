"""Random graphs: both engines give the same values, cycles, counters, deadlocks and reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from t2s.core.expr import Expr, const, equals
from t2s.core.ops import Op
from t2s.core.types import INT32
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Send, Statement, Store
from t2s.graph.graph import Channel, Graph, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import PEArray, Register, Role
from t2s.simulator.devices import Device, TypeFamily
from t2s.simulator.random_stalls import RandomStalls
from tests.simulator.designs import (
    IDEAL,
    ZERO,
    N,
    channel,
    design,
    local,
    node,
    receive,
    run,
    send,
    tensor,
)

DRAW = st.DataObject


def every(period: int, phase: int) -> Expr | None:
    """The condition that holds in one of ``period`` firings."""
    if period == 1:
        return None
    return equals(N % period, phase)


def device_of(data: DRAW) -> Device:
    """Slow adders, slow memory, little bandwidth, narrow ports: each or none of them."""
    bandwidth = data.draw(st.sampled_from([None, 1, 3, 7, 8]), "bytes per two cycles")
    return replace(
        IDEAL,
        operator_latencies={(Op.ADD, TypeFamily.INTEGER): data.draw(st.integers(0, 5), "adder")},
        load_latency=data.draw(st.integers(0, 4), "load latency"),
        store_latency=data.draw(st.integers(0, 3), "store latency"),
        bytes_per_cycle_per_unit=data.draw(st.sampled_from([None, 2, 4]), "port"),
        memory_bytes_per_second=bandwidth and bandwidth * IDEAL.clock_hz // 2,
    )


def channel_of(data: DRAW, name: str, source: str, sink: str) -> Channel:
    return channel(
        name,
        source,
        sink,
        capacity=data.draw(st.integers(1, 4), f"capacity of {name}"),
        latency=data.draw(st.integers(1, 4), f"latency of {name}"),
    )


def middle_node(
    data: DRAW,
    name: str,
    trips: int,
    incoming: list[str],
    outgoing: list[str],
    periods: dict[str, int],
) -> PEArray:
    """Uses each channel once per period of firings, and possibly accumulates in a register."""
    body: list[Statement] = []
    total: Expr = const(1)
    for channel_name in incoming:
        period = periods[channel_name]
        condition = every(period, data.draw(st.integers(0, period - 1), "phase"))
        if channel_name == "back":
            condition = N > ZERO
        body.append(receive(channel_name, condition))
        total = total + local(channel_name)
    registers: tuple[Register, ...] = ()
    if data.draw(st.booleans(), f"{name} accumulates"):
        distance = data.draw(st.integers(1, 3), "distance")
        registers = (Register(name="r", type=INT32, shape=(distance,), distance=distance),)
        where = (N % distance,)
        body.append(RegisterRead(target="old", register="r", indices=where, type=INT32))
        total = total + local("old")
    body.append(Let(target="total", value=total))
    if registers:
        body.append(RegisterWrite(register="r", indices=where, value=local("total")))
    for channel_name in outgoing:
        period = periods[channel_name]
        condition = every(period, data.draw(st.integers(0, period - 1), "phase"))
        if channel_name == "back":
            condition = N < trips - 1
        body.append(send(channel_name, local("total"), condition))
    return node(name, trips, *body, registers=registers)


def random_graph(data: DRAW) -> Graph:
    """Load units, a random acyclic network, store units, and now and then a channel back."""
    count = data.draw(st.integers(1, 9), "firings")
    middle = data.draw(st.integers(1, 4), "nodes")
    loads = data.draw(st.integers(1, 2), "load units")
    names = [f"load{n}" for n in range(loads)] + [f"node{n}" for n in range(middle)]
    channels: list[Channel] = []
    for at in range(loads, len(names)):
        sources = data.draw(
            st.lists(st.integers(0, at - 1), min_size=1, max_size=3, unique=True), "sources"
        )
        for source in sources:
            channels.append(channel_of(data, f"c{len(channels)}", names[source], names[at]))
    if data.draw(st.booleans(), "a channel back"):
        back = channel_of(data, "back", names[-1], names[loads])
        channels.append(back)
    periods = {
        item.name: data.draw(st.sampled_from([1, 1, 1, 2, 3]), f"period of {item.name}")
        if item.source not in names[:loads]
        else 1
        for item in channels
    }
    open_ends = [name for name in names if all(name != c.source for c in channels)]
    nodes: list[PEArray] = []
    tensors = []
    for at, name in enumerate(names):
        trips = data.draw(st.sampled_from([count] * 9 + [count + 1]), f"trips of {name}")
        if name in open_ends:
            channels.append(channel_of(data, f"to_{name}", name, f"store_{name}"))
            periods[f"to_{name}"] = data.draw(st.integers(1, 2), f"period to store_{name}")
        outgoing = [c.name for c in channels if c.source == name]
        if at < loads:
            load = Load(target="value", tensor=f"X{at}", indices=(N,), type=INT32)
            periods |= dict.fromkeys(outgoing, 1)
            sends = [send(c, local("value")) for c in outgoing]
            nodes.append(node(name, trips, load, *sends, role=Role.LOAD))
            tensors.append(tensor(f"X{at}", TensorRole.INPUT, trips))
        else:
            incoming = [c.name for c in channels if c.sink == name]
            nodes.append(middle_node(data, name, trips, incoming, outgoing, periods))
    for name in open_ends:
        trips = sent_by(nodes, f"to_{name}") + data.draw(st.sampled_from([0] * 15 + [1]), "more")
        body = (
            receive(f"to_{name}"),
            Store(tensor=f"Y_{name}", indices=(N,), value=local(f"to_{name}")),
        )
        nodes.append(node(f"store_{name}", trips, *body, role=Role.STORE))
        tensors.append(tensor(f"Y_{name}", TensorRole.OUTPUT, max(1, trips)))
    return design(tuple(nodes), tuple(channels), *tensors)


def sent_by(nodes: list[PEArray], name: str) -> int:
    """Tokens that a node of the list sends to a channel."""
    for item in nodes:
        for statement in item.body:
            if isinstance(statement, Send) and statement.channel == name:
                trips = item.loops[0].extent.value  # type: ignore[attr-defined]
                condition = statement.condition
                if condition is None:
                    return int(trips)
                period = condition.operands[0].operands[1].value  # type: ignore[attr-defined]
                phase = condition.operands[1].value  # type: ignore[attr-defined]
                return len(range(phase, trips, period))
    raise KeyError(name)


def agree(data: DRAW, engine: str) -> None:
    """A random graph, device, limit and stalls: the engine against the plain one."""
    graph = random_graph(data)
    device = device_of(data)
    limit = data.draw(st.sampled_from([None, None, 5, 17]), "limit")
    one_in = data.draw(st.sampled_from([None, None, 2, 5]), "stalls, one in")
    stalls = one_in and RandomStalls(seed=data.draw(st.integers(0, 9), "seed"), one_in=one_in)
    inputs = {
        item.name: np.arange(item.shape[0], dtype=np.int32)
        for item in graph.tensors
        if item.role is TensorRole.INPUT
    }
    plain, native = (
        run(graph, name, device=device, inputs=inputs, max_cycles=limit, stalls=stalls)
        for name in ("python", engine)
    )
    assert plain.ending == native.ending
    assert plain.cycles == native.cycles
    assert plain.nodes == native.nodes
    assert plain.deadlock == native.deadlock
    assert plain.tokens_left == native.tokens_left
    for row in native.stalls:
        assert row.pe_cycles == row.pe_count * native.cycles
    assert plain.outputs.keys() == native.outputs.keys()
    if plain.finished:
        expected = interpret_graph(graph, inputs)
        for name, values in expected.items():
            np.testing.assert_array_equal(plain.outputs[name], values)
            np.testing.assert_array_equal(native.outputs[name], values)


@pytest.mark.slow
@settings(
    max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(st.data())
def test_the_table_kernel_agrees_on_random_graphs(data: DRAW) -> None:
    agree(data, "table")


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # a shrunk example takes minutes of compiling
)
@given(st.data())
def test_the_array_kernel_agrees_on_random_graphs(data: DRAW) -> None:
    agree(data, "array")
