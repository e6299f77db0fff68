"""Datapath latencies and recurrences, with the numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from t2s.core.expr import Apply, Broadcast, Expr, Local, ReduceLanes, Select, apply, const
from t2s.core.ops import Op
from t2s.core.types import BOOL, INT32, Float
from t2s.graph.analysis import datapath_latencies, memory_bytes, recurrences
from t2s.graph.body import Let, Receive, RegisterRead, RegisterWrite, Send
from t2s.graph.nodes import PEArray, Register, Role
from tests.graph.changes import local, pipeline, with_node, with_value
from tests.hand_graphs import loop, systolic_gemm


def latency_of(expr: Expr) -> int:
    """Multiplications take 3 cycles, additions 4, a choice 1, a tree of adders 20."""
    match expr:
        case Apply(operator=Op.MULTIPLY):
            return 3
        case Apply(operator=Op.ADD):
            return 4
        case Apply():
            return 1
        case Select():
            return 1
        case ReduceLanes():
            return 20
    raise AssertionError(f"{expr!r} is not an operator")


def _node(*body: object, registers: tuple[Register, ...] = ()) -> PEArray:
    return PEArray(
        name="pe",
        role=Role.COMPUTE,
        space=(),
        loops=(loop("i", 4),),
        registers=registers,
        body=body,
    )


def _register(name: str = "r", distance: int = 1) -> Register:
    return Register(name=name, type=INT32, shape=(), distance=distance)


def test_latencies_of_the_systolic_array() -> None:
    # A_pass and B_pass: one select.  C_out: select a or b (1), a * b (3), the sum (4).
    latencies = datapath_latencies(systolic_gemm(2, 2, 4).node("C"), latency_of, 100)
    assert latencies == {"A_pass": 1, "B_pass": 1, "C_out": 1 + 3 + 4}


def test_latencies_of_the_systolic_array_with_vectors() -> None:
    # C_out: select (1), a * b (3), the tree of adders (20), the sum (4).
    array = systolic_gemm(2, 2, 4, lanes=8, element=Float(32)).node("C")
    assert datapath_latencies(array, latency_of, 100)["C_out"] == 1 + 3 + 20 + 4


def test_recurrence_of_the_systolic_array() -> None:
    # previous -> select (1) -> sum (4); the product is not on the cycle.
    array = systolic_gemm(2, 2, 4, tile_rows=2, tile_columns=1).node("C")
    (recurrence,) = recurrences(array, latency_of)
    assert recurrence.register.name == "accumulator"
    assert recurrence.latency == 5
    assert recurrence.register.distance == 2
    assert recurrence.initiation_interval == 3  # ceil(5 / 2)


def test_a_large_distance_hides_the_recurrence() -> None:
    array = systolic_gemm(2, 2, 4, tile_rows=8, tile_columns=8).node("C")
    (recurrence,) = recurrences(array, latency_of)
    assert recurrence.initiation_interval == 1


def test_the_load_latency_counts_for_a_loaded_value_only() -> None:
    load = pipeline().node("load_X")
    assert datapath_latencies(load, latency_of, 250) == {"to_sum": 250}
    scaled = with_node(
        pipeline(),
        "load_X",
        body=(load.body[0], Send(channel="to_sum", value=local("value") * 3)),
    )
    assert datapath_latencies(scaled.node("load_X"), latency_of, 250) == {"to_sum": 253}


def test_static_values_and_broadcasts_cost_nothing() -> None:
    wide = Broadcast(value=local("x"), type=INT32.with_lanes(4))
    node = _node(
        Receive(target="x", channel="in", type=INT32),
        Send(channel="static", value=const(1) + const(2)),
        Send(channel="wide", value=wide),
        Send(channel="plain", value=local("x")),
    )
    assert datapath_latencies(node, latency_of, 0) == {"static": 0, "wide": 0, "plain": 0}


def test_the_longest_path_counts() -> None:
    # x -> *3 -> +4 = 7 beside x -> select 1
    node = _node(
        Receive(target="x", channel="in", type=INT32),
        Let(target="p", value=local("x") * local("x") + local("x")),
        Send(channel="out", value=apply(Op.MAXIMUM, local("p"), local("x"))),
    )
    assert datapath_latencies(node, latency_of, 0) == {"out": 3 + 4 + 1}


def test_a_register_that_is_only_written_or_only_read_is_no_recurrence() -> None:
    written = _node(
        Receive(target="x", channel="in", type=INT32),
        RegisterWrite(register="r", indices=(), value=local("x") * local("x")),
        registers=(_register(),),
    )
    (recurrence,) = recurrences(written, latency_of)
    assert (recurrence.latency, recurrence.initiation_interval) == (0, 1)
    read = _node(
        RegisterRead(target="x", register="r", indices=(), type=INT32),
        Send(channel="out", value=local("x") * local("x")),
        registers=(_register(),),
    )
    (recurrence,) = recurrences(read, latency_of)
    assert (recurrence.latency, recurrence.initiation_interval) == (0, 1)


def test_each_register_has_its_own_recurrence() -> None:
    # r: r * x (3) at distance 1; s: s + r' (4) at distance 2, where r' does not come from s
    node = _node(
        Receive(target="x", channel="in", type=INT32),
        RegisterRead(target="r0", register="r", indices=(), type=INT32),
        RegisterRead(target="s0", register="s", indices=(), type=INT32),
        Let(target="r1", value=local("r0") * local("x")),
        RegisterWrite(register="r", indices=(), value=local("r1")),
        RegisterWrite(register="s", indices=(), value=local("s0") + local("r1")),
        registers=(_register("r"), _register("s", distance=2)),
    )
    first, second = recurrences(node, latency_of)
    assert (first.latency, first.initiation_interval) == (3, 3)
    assert (second.latency, second.initiation_interval) == (4, 2)


def test_a_circle_through_two_registers_is_a_recurrence() -> None:
    # r' = s * x (3), s' = r + x (4): the circle takes 3 + 4 cycles and spans 1 + 2 firings
    node = _node(
        Receive(target="x", channel="in", type=INT32),
        RegisterRead(target="r0", register="r", indices=(), type=INT32),
        RegisterRead(target="s0", register="s", indices=(), type=INT32),
        RegisterWrite(register="r", indices=(), value=local("s0") * local("x")),
        RegisterWrite(register="s", indices=(), value=local("r0") + local("x")),
        registers=(_register("r"), _register("s", distance=2)),
    )
    first, second, circle = recurrences(node, latency_of)
    assert (first.latency, second.latency) == (0, 0)
    assert [register.name for register in circle.registers] == ["r", "s"]
    assert (circle.latency, circle.distance, circle.initiation_interval) == (7, 3, 3)


def test_what_is_sent_behind_a_store_leaves_when_the_store_is_complete() -> None:
    store = pipeline().node("store_Y")
    done = Send(channel="done", value=const(True, BOOL))
    behind = replace(store, body=(*store.body, done))
    before = replace(store, body=(done, *store.body))
    assert datapath_latencies(behind, latency_of, 100, 40)["done"] == 40
    assert datapath_latencies(before, latency_of, 100, 40)["done"] == 0


def test_a_value_without_operators_has_a_recurrence_of_latency_zero() -> None:
    (recurrence,) = recurrences(
        with_value(pipeline(), Local(name="previous", type=INT32)).node("sum"), latency_of
    )
    assert (recurrence.latency, recurrence.initiation_interval) == (0, 1)


def test_memory_bytes() -> None:
    graph = systolic_gemm(2, 2, 4, lanes=8, element=Float(32))
    assert memory_bytes(graph.node("A_load")) == 32
    assert memory_bytes(graph.node("C_store")) == 4
    assert memory_bytes(graph.node("C")) == 0
