"""The untimed meaning of nodes: firings, channel elements, one firing of a body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.expr import Local, Parameter, const, equals
from t2s.core.types import BOOL, INT32, Float
from t2s.graph.body import Load, Receive, RegisterRead, RegisterWrite, Send, Store
from t2s.graph.nodes import PEArray, Register, Role, SpaceDimension
from t2s.graph.semantics import (
    PortUse,
    element_of,
    fire,
    holds,
    iterations,
    new_registers,
    port_uses,
    space_points,
    window,
    zero_of,
)
from tests.graph.changes import pipeline, with_loops, with_node, with_statement
from tests.hand_graphs import index, loop, systolic_gemm


def _node(*loops: object, space: tuple[SpaceDimension, ...] = ()) -> PEArray:
    graph = with_node(pipeline(), "sum", space=space, loops=loops)
    return graph.node("sum")


def _indices(
    node: PEArray, point: tuple[int, ...] = (), **parameters: int
) -> list[tuple[int, ...]]:
    names = [item.name for item in node.loops]
    scalars = {name: np.int32(value) for name, value in parameters.items()}
    return [tuple(int(env[name]) for name in names) for env in iterations(node, point, scalars)]


def test_space_points_are_row_major_and_start_at_the_minimum() -> None:
    space = (
        SpaceDimension(name="ii", minimum=0, extent=2),
        SpaceDimension(name="jj", minimum=3, extent=2),
    )
    assert list(space_points(_node(space=space))) == [(0, 3), (0, 4), (1, 3), (1, 4)]
    assert list(space_points(_node())) == [()]


def test_rectangular_loops() -> None:
    assert _indices(_node(loop("i", 2), loop("j", 2, minimum=5))) == [
        (0, 5),
        (0, 6),
        (1, 5),
        (1, 6),
    ]


def test_no_loops_is_one_firing() -> None:
    assert _indices(_node()) == [()]


def test_triangular_loops() -> None:
    lower = replace(loop("j", 1), extent=index("i") + 1)
    assert _indices(_node(loop("i", 3), lower)) == [(i, j) for i in range(3) for j in range(i + 1)]
    remaining = 3 - index("i")
    upper = replace(loop("j", 1), minimum=index("i"), extent=remaining)
    assert _indices(_node(loop("i", 3), upper)) == [(i, j) for i in range(3) for j in range(i, 3)]


def test_an_extent_of_zero_or_below_is_no_iteration() -> None:
    shrinking = replace(loop("j", 1), extent=1 - index("i"))
    assert _indices(_node(loop("i", 4), shrinking)) == [(0, 0)]


def test_bounds_may_use_space_and_parameters() -> None:
    space = (SpaceDimension(name="ii", minimum=0, extent=3),)
    bounded = replace(loop("i", 1), minimum=index("ii"), extent=Parameter(name="n", type=INT32))
    assert _indices(_node(bounded, space=space), (2,), n=2) == [(2,), (3,)]


def test_holds() -> None:
    environment = {"i": np.int32(0)}
    assert holds(None, environment)
    assert holds(equals(index("i"), 0), environment)
    assert not holds(equals(index("i"), 1), environment)


def test_port_uses_of_the_corners_of_an_array() -> None:
    graph = systolic_gemm(2, 2, 3)
    array = graph.node("C")
    corner = next(iterations(array, (0, 0), {}))
    receives, sends = port_uses(graph, array, corner)
    assert receives == (PortUse("A_in", (0,)), PortUse("B_in", (0,)))
    # a PE sends to the element that its neighbor's own index names
    assert sends == (PortUse("A_pass", (0, 1)), PortUse("B_pass", (1, 0)))
    *_, last = iterations(array, (1, 1), {})
    receives, sends = port_uses(graph, array, last)
    assert receives == (PortUse("A_pass", (1, 1)), PortUse("B_pass", (1, 1)))
    assert sends == (PortUse("C_out", (1, 1)),)


def test_fire_a_body_with_a_register() -> None:
    node = pipeline().node("sum")
    registers = new_registers(node)
    sent = [
        fire(node, {"i": np.int32(i)}, {"to_sum": np.int32(value)}, registers, {})["from_sum"]
        for i, value in enumerate([3, 4, -9])
    ]
    assert [int(value) for value in sent] == [3, 7, -2]
    assert registers["sofar"].tolist() == [-2]


def test_registers_start_at_zero_with_lanes_last() -> None:
    graph = pipeline()
    register = replace(graph.node("sum").registers[0], shape=(2, 3), type=Float(32).with_lanes(4))
    state = new_registers(replace(graph.node("sum"), registers=(register,)))["sofar"]
    assert state.shape == (2, 3, 4)
    assert state.dtype == np.float32
    assert not state.any()


def test_a_register_value_that_was_read_does_not_change_with_a_later_write() -> None:
    vector = INT32.with_lanes(2)
    value = Local(name="value", type=vector)
    node = PEArray(
        name="delay",
        role=Role.RELAY,
        space=(),
        loops=(),
        registers=(Register(name="r", type=vector, shape=(1,), distance=1),),
        body=(
            Receive(target="value", channel="in", type=vector),
            RegisterRead(target="previous", register="r", indices=(const(0),), type=vector),
            RegisterWrite(register="r", indices=(const(0),), value=value),
            Send(channel="out", value=Local(name="previous", type=vector)),
        ),
    )
    registers = {"r": np.array([[5, 6]], np.int32)}
    sent = fire(node, {}, {"in": np.array([7, 8], np.int32)}, registers, {})
    assert sent["out"].tolist() == [5, 6]
    assert registers["r"].tolist() == [[7, 8]]


def test_a_receive_whose_condition_fails_gives_zero() -> None:
    never = index("i") < 0
    node = with_statement(pipeline(), "sum", 0, condition=never).node("sum")
    sent = fire(node, {"i": np.int32(0)}, {}, {"sofar": np.array([5], np.int32)}, {})
    assert int(sent["from_sum"]) == 5


def test_load_and_store_move_contiguous_lanes_under_their_condition() -> None:
    vector = INT32.with_lanes(2)
    even = equals(index("i") % 2, 0)
    where = (index("i"), const(2))
    load = Load(target="v", tensor="X", indices=where, type=vector, condition=even)
    store = Store(tensor="Y", indices=where, value=Local(name="v", type=vector), condition=even)
    node = PEArray(
        name="copy", role=Role.RELAY, space=(), loops=(loop("i", 3),), body=(load, store)
    )
    memory = {
        "X": np.arange(12, dtype=np.int32).reshape(3, 4),
        "Y": np.full((3, 4), -1, np.int32),
    }
    for environment in iterations(node, (), {}):
        fire(node, environment, {}, {}, memory)
    assert memory["Y"].tolist() == [[-1, -1, 2, 3], [-1, -1, -1, -1], [-1, -1, 10, 11]]


def test_a_loaded_vector_is_a_copy() -> None:
    node = pipeline().node("load_X")
    memory = {"X": np.arange(8, dtype=np.int32)}
    sent = fire(node, {"i": np.int32(3)}, {}, {}, memory)
    memory["X"][3] = 99
    assert int(sent["to_sum"]) == 3


@pytest.mark.parametrize(
    ("type", "shape"), [(INT32, ()), (Float(32).with_lanes(4), (4,)), (BOOL, ())]
)
def test_zero_of(type: object, shape: tuple[int, ...]) -> None:
    zero = zero_of(type)
    assert np.shape(zero) == shape
    assert not np.any(zero)


def test_elements_and_windows() -> None:
    environment = {"i": np.int32(3)}
    assert element_of((index("i"), index("i") + 2), environment) == (3, 5)
    assert element_of((), environment) == ()
    assert window((3, 5), 1) == (3, 5)
    assert window((3, 4), 4) == (3, slice(4, 8))


def test_port_uses_are_in_body_order_and_only_where_conditions_hold() -> None:
    graph = with_loops(pipeline(), "sum", loop("i", 2))
    first = equals(index("i"), 0)
    graph = with_statement(graph, "sum", 0, condition=first)
    node = graph.node("sum")
    assert isinstance(node.body[0], Receive)
    uses = [port_uses(graph, node, environment) for environment in iterations(node, (), {})]
    assert [len(receives) for receives, _ in uses] == [1, 0]
    assert [len(sends) for _, sends in uses] == [1, 1]
