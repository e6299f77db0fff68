"""The rules of bodies: registers, memory, conditions and locals; the whole text of each error."""

from __future__ import annotations

import pytest

from t2s.core.expr import (
    Local,
    const,
)
from t2s.core.types import INT32, WEAK_INT, Float, UInt
from t2s.graph.body import Let, Load, RegisterRead, RegisterWrite, Store
from t2s.graph.nodes import Role
from t2s.graph.verify import GraphError, verify_graph
from tests.graph.changes import (
    at,
    local,
    pipeline,
    with_body,
    with_node,
    with_register,
    with_statement,
    with_tensor,
)
from tests.graph.refusal import CAST, SCOPE, STATIC, refuse
from tests.hand_graphs import index

F32 = Float(32)
V4 = INT32.with_lanes(4)


class TestRegisters:
    def test_distance(self) -> None:
        refuse(
            with_register(pipeline(), distance=0),
            "register 'sofar' of node 'sum': the distance is below 1",
            "  --> design.py:2",
            "  expected: at least one firing between a write and the next read",
            "  given:    0",
        )

    def test_extent(self) -> None:
        refuse(
            with_register(pipeline(), shape=(0,), location=at(44)),
            "register 'sofar' of node 'sum': the shape has an extent below 1",
            "  --> design.py:44",
            "  expected: extents of at least 1",
            "  given:    (0,)",
        )

    def test_weak(self) -> None:
        refuse(
            with_register(pipeline(), type=WEAK_INT),
            "register 'sofar' of node 'sum': the type is weak",
            "  --> design.py:2",
            "  expected: a type with a fixed width",
            "  given:    weak int32",
            "  hint:     Type.strengthened() gives int32",
        )

    def test_unknown(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 3, register="other"),
            "node 'sum': RegisterWrite of 'other': unknown register",
            "  --> design.py:2",
            "  expected: one of sofar",
            "  given:    'other'",
        )

    def test_rank(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 1, indices=(const(0), index("i"))),
            "node 'sum': RegisterRead of 'sofar' has the wrong number of indices",
            "  --> design.py:2",
            "  expected: 1, one per dimension",
            "  given:    2: [0, i]",
        )

    def test_type_read(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 1, type=F32),
            "node 'sum': RegisterRead of 'sofar' has the wrong type",
            "  --> design.py:2",
            "  expected: int32",
            "  given:    float32",
            CAST,
        )

    def test_type_written(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 3, value=const(1.0, F32)),
            "node 'sum': RegisterWrite of 'sofar' has the wrong type",
            "  --> design.py:2",
            "  expected: int32",
            "  given:    float32",
            CAST,
        )

    def test_index_that_depends_on_data(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 3, indices=(local("x"),)),
            "node 'sum': index 0 of RegisterWrite of 'sofar': the expression is not static",
            "  --> design.py:2",
            "  expected: loop and space indices, parameters and literals only",
            "  given:    the local 'x'",
            STATIC,
        )

    def test_the_condition_of_a_write_may_depend_on_data(self) -> None:
        condition = local("x") < 0
        verify_graph(with_statement(pipeline(), "sum", 3, condition=condition))


class TestMemory:
    def test_a_compute_node_does_not_load(self) -> None:
        load = Load(target="y", tensor="X", indices=(index("i"),), type=INT32)
        refuse(
            with_body(pipeline(), "sum", load),
            "node 'sum': a node of role compute has the wrong number of Load statements",
            "  --> design.py:2",
            "  expected: none",
            "  given:    1",
            "  hint:     give every Load a load node of its own",
        )

    def test_a_load_node_does_not_store(self) -> None:
        store = Store(tensor="Y", indices=(index("i"),), value=local("value"))
        refuse(
            with_body(pipeline(), "load_X", store),
            "node 'load_X': a node of role load has the wrong number of Store statements",
            "  --> design.py:1",
            "  expected: none",
            "  given:    1",
            "  hint:     give every Store a store node of its own",
        )

    def test_a_load_node_loads_once(self) -> None:
        load = Load(target="y", tensor="X", indices=(index("i"),), type=INT32)
        refuse(
            with_body(pipeline(), "load_X", load),
            "node 'load_X': a node of role load has the wrong number of Load statements",
            "  --> design.py:1",
            "  expected: exactly 1",
            "  given:    2",
            "  hint:     give every Load a load node of its own",
        )

    def test_a_store_node_stores(self) -> None:
        refuse(
            with_node(pipeline(), "sum", role=Role.STORE),
            "node 'sum': a node of role store has the wrong number of Store statements",
            "  --> design.py:2",
            "  expected: exactly 1",
            "  given:    0",
            "  hint:     give every Store a store node of its own",
        )

    def test_unknown_tensor(self) -> None:
        refuse(
            with_statement(pipeline(), "load_X", 0, tensor="Z"),
            "node 'load_X': Load of tensor 'Z': unknown tensor",
            "  --> design.py:1",
            "  expected: one of X, Y",
            "  given:    'Z'",
        )

    def test_rank(self) -> None:
        refuse(
            with_statement(pipeline(), "store_Y", 1, indices=()),
            "node 'store_Y': Store to tensor 'Y' has the wrong number of indices",
            "  --> design.py:3",
            "  expected: 1, one per dimension",
            "  given:    0: []",
        )

    def test_element_type(self) -> None:
        refuse(
            with_tensor(pipeline(), "X", type=UInt(32)),
            "node 'load_X': Load of tensor 'X' has the wrong type",
            "  --> design.py:1",
            "  expected: uint32",
            "  given:    int32",
            CAST,
        )

    def test_more_lanes_than_the_last_dimension(self) -> None:
        refuse(
            with_statement(pipeline(), "load_X", 0, type=INT32.with_lanes(9)),
            "node 'load_X': Load of tensor 'X': 9 lanes do not fit into the last dimension",
            "  --> design.py:1",
            "  expected: a last dimension of at least 9",
            "  given:    shape (8,)",
            "  hint:     choose a shorter vector, or pad the tensor",
        )

    def test_lanes_of_a_scalar_in_memory(self) -> None:
        graph = with_tensor(pipeline(), "X", shape=())
        verify_graph(with_statement(graph, "load_X", 0, indices=()))
        refuse(
            with_statement(graph, "load_X", 0, indices=(), type=V4),
            "node 'load_X': Load of tensor 'X': 4 lanes do not fit into the last dimension",
            "  --> design.py:1",
            "  expected: a last dimension of at least 4",
            "  given:    shape ()",
            "  hint:     choose a shorter vector, or pad the tensor",
        )

    def test_an_input_is_not_stored_to(self) -> None:
        refuse(
            with_statement(pipeline(), "store_Y", 1, tensor="X"),
            "node 'store_Y': Store to tensor 'X': an input is not written",
            "  --> design.py:3",
            "  expected: a tensor of role output or intermediate",
            "  given:    role input",
            "  note:     tensor 'X' is made here",
            "  --> design.py:6",
        )

    def test_index_that_depends_on_data(self) -> None:
        refuse(
            with_statement(pipeline(), "store_Y", 1, indices=(local("value"),)),
            "node 'store_Y': index 0 of Store to tensor 'Y': the expression is not static",
            "  --> design.py:3",
            "  expected: loop and space indices, parameters and literals only",
            "  given:    the local 'value'",
            STATIC,
        )


class TestConditions:
    @pytest.mark.parametrize(
        ("node", "position", "what"),
        [
            ("load_X", 0, "Load of tensor 'X'"),
            ("load_X", 1, "Send to channel 'to_sum'"),
            ("sum", 0, "Receive from channel 'to_sum'"),
            ("store_Y", 1, "Store to tensor 'Y'"),
        ],
    )
    def test_static(self, node: str, position: int, what: str) -> None:
        graph = pipeline()
        line = graph.node(node).location
        refuse(
            with_statement(graph, node, position, condition=local("value") < 1),
            f"node {node!r}: the condition of {what}: the expression is not static (in value < 1)",
            f"  --> {line}",
            "  expected: loop and space indices, parameters and literals only",
            "  given:    the local 'value'",
            STATIC,
        )

    @pytest.mark.parametrize(
        ("node", "position", "what"),
        [
            ("load_X", 0, "Load of tensor 'X'"),
            ("load_X", 1, "Send to channel 'to_sum'"),
            ("sum", 0, "Receive from channel 'to_sum'"),
            ("sum", 3, "RegisterWrite of 'sofar'"),
            ("store_Y", 1, "Store to tensor 'Y'"),
        ],
    )
    def test_truth_value(self, node: str, position: int, what: str) -> None:
        graph = pipeline()
        refuse(
            with_statement(graph, node, position, condition=index("i")),
            f"node {node!r}: the condition of {what} is not a truth value",
            f"  --> {graph.node(node).location}",
            "  expected: an expression of type bool",
            "  given:    i of type int32",
        )


class TestLocals:
    def test_used_before_it_is_bound(self) -> None:
        refuse(
            with_body(pipeline(), "sum", Let(target="late", value=const(1)), skip=1),
            "node 'sum': the value of Let of 'total': the local 'previous' is not in scope"
            " (in previous + x)",
            "  --> design.py:2",
            "  expected: one of x",
            "  given:    'previous'",
            SCOPE,
        )

    def test_of_the_wrong_type(self) -> None:
        refuse(
            with_statement(pipeline(), "sum", 4, value=Local(name="total", type=F32)),
            "node 'sum': the value of Send to channel 'from_sum': the local 'total' has the"
            " wrong type",
            "  --> design.py:2",
            "  expected: int32",
            "  given:    float32",
        )


def test_every_statement_of_a_node_is_checked() -> None:
    """A rule broken in the last statement is found, whatever stands before it."""
    graph = with_body(
        pipeline(),
        "sum",
        RegisterRead(target="again", register="sofar", indices=(const(0),), type=INT32),
        RegisterWrite(register="sofar", indices=(const(0),), value=local("never")),
    )
    with pytest.raises(GraphError, match="the local 'never' is not in scope"):
        verify_graph(graph)
