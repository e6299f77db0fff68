"""Registers that start at another value than zero."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.random_graphs import random_graph
from benchmarks.random_machines import random_machines
from benchmarks.referee import random_inputs
from t2s.core.expr import const
from t2s.core.types import BOOL, INT32, Float, Int, Type, UInt
from t2s.graph.body import Receive, RegisterRead, RegisterWrite, Send
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Register, Role
from t2s.graph.printer import print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.simulator.devices import DEVICES
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.run import simulate
from tests.backends.builders import channel, graph, load, local, node, store, tensor
from tests.graph.machines import copying
from tests.graph.refusal import refuse
from tests.hand_graphs import index, loop, space
from tests.sampling import sampled

X = np.array([5, -3, 7, 0, 9], np.int32)


def started(graph: Graph, initial: float | None = None) -> Graph:
    """The graph with registers that do not start at zero."""

    def start(type: Type) -> float:
        if initial is not None:
            return initial
        return True if type.is_bool else 2.5 if type.is_float else 3

    nodes = (
        replace(node, registers=tuple(replace(r, initial=start(r.type)) for r in node.registers))
        for node in graph.nodes
    )
    return replace(graph, nodes=tuple(nodes))


def alike(graph: Graph, inputs: dict[str, Any]) -> dict[str, Any]:
    """What all engines agree on."""
    expected = interpret_graph(graph, inputs)
    for engine in ("python", "native", "array"):
        if graph.machines and engine == "array":
            continue
        found = simulate(graph, inputs, engine=engine)
        assert found.outputs.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(found.outputs[name], array)
    return expected


def test_a_counter_that_starts_elsewhere() -> None:
    """``copying`` reads from element 3 on."""
    graph = copying()
    graph = replace(graph, nodes=(started(graph, 3).nodes[0], graph.nodes[1]))
    x = np.array([5, -3, 7, 4, 9, 0], np.int32)
    np.testing.assert_array_equal(alike(graph, {"x": x})["y"], [4, 9])
    again = simulate(graph, {"x": x})
    np.testing.assert_array_equal(again.outputs["y"], simulate(graph, {"x": x}).outputs["y"])


def delayed(type: Type, initial: float, *, file: tuple[int, ...] = (2,), pes: int = 2) -> Graph:
    """Each PE sends what was in its register file before, element by element."""
    t, p = index("t"), index("p")
    loops, array = (loop("t", 5),), (space("p", pes),)
    at = (t % const(file[0], INT32), *(const(0, INT32) for _ in file[1:]))
    body = (
        Receive(target="value", channel="x_in", type=type),
        RegisterRead(target="before", register="kept", indices=at, type=type),
        RegisterWrite(register="kept", indices=at, value=local("value", type)),
        Send(channel="out", value=local("before", type)),
    )
    kept = Register(name="kept", type=type, shape=file, distance=1, initial=initial)
    where, lanes = (p, t, const(0, INT32)), type.lanes
    return graph(
        "delayed",
        (
            load("x_load", "x", "x_in", loops, where, pes=array, element=type),
            node("array", Role.COMPUTE, loops, body, pes=array, registers=(kept,)),
            store("y_store", "y", "out", loops, where, pes=array, element=type),
        ),
        (
            channel("x_in", "x_load", "array", (pes,), (p,), element=type),
            channel("out", "array", "y_store", (pes,), (p,), element=type),
        ),
        (
            tensor("x", pes, 5, lanes, element=type.scalar),
            tensor("y", pes, 5, lanes, element=type.scalar, role="output"),
        ),
    )


TYPES: list[tuple[Type, float]] = [
    (INT32, -7),
    (BOOL, True),
    (UInt(8), 200),
    (Int(64), -(2**63)),
    (UInt(64), 2**64 - 1),
    (Float(32), 0.1),
    (Float(64), -0.0),
    (Float(64), math.nan),
    (Int(8).with_lanes(4), -3),
    (Float(32).with_lanes(3), -1.5),
]


def inputs_of(graph: Graph) -> dict[str, Any]:
    """Some numbers for x."""
    x = graph.tensor("x")
    return {"x": np.arange(1, np.prod(x.shape) + 1).reshape(x.shape).astype(x.type.numpy)}


def same_bits(left: Any, right: Any) -> None:
    """Arrays that are equal in their bits, NaN and signs of zeros included."""
    assert left.dtype == right.dtype
    assert left.tobytes() == right.tobytes()


@sampled(("type", "initial"), TYPES, quick=2, ids=str)
@pytest.mark.parametrize("file", [(2,), (3, 2)])
def test_all_types(type: Type, initial: float, file: tuple[int, ...]) -> None:
    graph = delayed(type, initial, file=file)
    inputs = inputs_of(graph)
    x, first = inputs["x"], np.array(initial, type.scalar.numpy)
    expected = np.concatenate([np.full_like(x[:, : file[0]], first), x[:, : 5 - file[0]]], axis=1)
    for _ in range(2):
        same_bits(interpret_graph(graph, inputs)["y"], expected)
        for engine in ("python", "native", "array"):
            same_bits(simulate(graph, inputs, engine=engine).outputs["y"], expected)


@sampled("seed", [1, 2, 5], quick=2)
def test_random_graphs(seed: int) -> None:
    graph = started(random_graph(seed))
    alike(graph, random_inputs(graph))


@sampled("seed", [1, 2, 3, 54], quick=2)
def test_random_machines(seed: int) -> None:
    """Deadlocks are results too."""
    graph, inputs = random_machines(seed)
    program = build_program(started(graph), DEVICES["ideal"], inputs)
    plain, native = (find_engine(engine).run(program, Limits()) for engine in ("python", "native"))
    assert (native.ending, native.cycles) == (plain.ending, plain.cycles)
    assert native.outputs.keys() == plain.outputs.keys()
    for name, array in plain.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array)


def test_text_and_files() -> None:
    for type, initial in TYPES:
        graph = delayed(type, initial)
        verify_graph(graph)
        assert f"register kept: {type}[2], distance 1, starts at {initial!r}" in print_graph(graph)
        assert repr(graph_from_json(graph_to_json(graph))) == repr(graph)
        assert print_graph(graph_from_json(graph_to_json(graph))) == print_graph(graph)
    plain = delayed(INT32, 0)
    assert '"initial"' not in graph_to_json(plain)
    assert "starts at" not in print_graph(plain)
    assert graph_from_json(graph_to_json(plain)) == plain


@pytest.mark.parametrize(
    ("type", "initial", "expected"),
    [
        (UInt(8), 256, "a value of uint8, 0 to 255"),
        (INT32, 1.5, "a value of int32, -2147483648 to 2147483647"),
        (BOOL, 2, "a value of bool"),
        (Float(32), True, "a value of float32"),
    ],
)
def test_a_start_that_is_no_value_of_the_type(type: Type, initial: float, expected: str) -> None:
    refuse(
        delayed(type, initial),
        "register 'kept' of node 'array': its start: a literal does not fit its type",
        f"  expected: {expected}",
        f"  given:    {initial!r}",
    )
