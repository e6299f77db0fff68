"""Gathers and scatters of machines: by hand, and both engines on random ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from t2s.core.expr import LaneNumbers, Local
from t2s.core.types import INT32, Float, UInt
from t2s.graph.body import Load, by_lanes
from t2s.graph.graph import Graph
from t2s.graph.interpret import interpret_graph
from t2s.graph.printer import print_graph
from t2s.graph.semantics import ProtocolError
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.graph.verify_expr import GraphError
from t2s.simulator.devices import DEVICES
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import NativeEngine
from t2s.simulator.program.build import build_program
from t2s.simulator.reference_engine import PythonEngine
from t2s.simulator.run import simulate
from tests.graph.changes import pipeline, with_statement
from tests.graph.gathers import Gathering, gatherings
from tests.simulator.test_streams import agree, run

ENGINES = ("python", "native")


def outputs(gathering: Gathering, engine: str, **inputs: list[Any]) -> dict[str, list[Any]]:
    types = {tensor.name: tensor.type.numpy for tensor in gathering.graph.tensors}
    arrays = {name: np.array(array, types[name]) for name, array in inputs.items()}
    result = simulate(gathering.graph, arrays, engine=engine)
    return {name: array.tolist() for name, array in result.outputs.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_by_hand(engine: str) -> None:
    """A hole gives 0 and stores nothing; of two lanes that store one element the last wins."""
    found = outputs(
        Gathering(width=6), engine,
        take=[5, -1, 0, 2], to=[1, 3, 1, -1], x=[10, 11, 12, 13, 14, 15],
    )  # fmt: skip
    assert found == {"z": [15, 0, 10, 12], "y": [0, 10, 0, 0, 0, 0]}


@pytest.mark.parametrize("engine", ENGINES)
def test_an_open_tensor_grows_to_the_last_lane(engine: str) -> None:
    found = outputs(
        Gathering(open=True), engine, take=[1, 1, -1, 0], to=[2, -1, -1, 5], x=[7, 8]
    )  # fmt: skip
    assert found == {"z": [8, 8, 0, 7], "y": [0, 0, 8, 0, 0, 7]}
    found = outputs(Gathering(open=True), engine, take=[1, 1, -1, 0], to=[-1] * 4, x=[7, 8])
    assert found == {"z": [8, 8, 0, 7], "y": []}


@pytest.mark.parametrize("engine", ENGINES)
def test_where_all_lanes_are_holes_no_row_is_touched(engine: str) -> None:
    gathering = Gathering(rank=2, width=2, height=2)
    x = [[1, 2], [3, 4]]
    found = outputs(gathering, engine, take=[-1] * 4, to=[-1] * 4, x=x, rows=[9])
    assert found == {"z": [0] * 4, "y": [[0, 0], [0, 0]]}
    found = outputs(gathering, engine, take=[1, 0, -1, 1], to=[-1, 1, 0, -1], x=x, rows=[1])
    assert found == {"z": [4, 3, 0, 4], "y": [[0, 0], [0, 3]]}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_lane_outside_is_refused(engine: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        outputs(Gathering(width=6), engine, take=[5, -1, 6, 2], to=[0] * 4, x=[0] * 6)
    text = str(caught.value)
    assert "'gather' loads outside of 'x'" in text
    assert "an index from 0 to 5 in dimension 0, or lanes of -1, which touch nothing" in text
    assert "6 for lane 2 in mode 'run'" in text
    with pytest.raises(ProtocolError, match="'gather' stores outside of 'y'"):
        outputs(Gathering(width=6), engine, take=[0] * 4, to=[0, -2, 0, 0], x=[0] * 6)
    with pytest.raises(ProtocolError, match=r"index from 0 to 2 in dimension 0.*\n.*3 for lane 1"):
        outputs(
            Gathering(width=6, rank=2), engine,
            take=[-1, 0, 0, 0], to=[0] * 4, x=[[0] * 6] * 3, rows=[3],
        )  # fmt: skip


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    gathering=gatherings(),
    holes=st.sampled_from((0.0, 0.3, 0.9)),
    wrong=st.sampled_from((0.0, 0.0, 0.02)),
    device=st.sampled_from(("ideal", "arria10")),
    seed=st.integers(0, 99),
)
def test_random(gathering: Gathering, holes: float, wrong: float, device: str, seed: int) -> None:
    graph, inputs = gathering.graph, gathering.inputs(seed, holes=holes, wrong=wrong)
    program, limits = build_program(graph, DEVICES[device], inputs), Limits()
    python, native = run(PythonEngine(), program, limits), run(NativeEngine(), program, limits)
    if isinstance(python, str) or isinstance(native, str):
        event("refused")
        assert native == python
        return
    agree(python, native)
    plain = interpret_graph(graph, inputs)
    for name, array in python.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array, strict=True)
        np.testing.assert_array_equal(plain[name], array)


def test_text_and_json() -> None:
    graph = Gathering(rank=2).graph
    verify_graph(graph)
    assert graph_from_json(graph_to_json(graph)) == graph
    text = print_graph(graph)
    assert "found: int32x4 = load(x[row, taken])" in text
    assert "store(y[row, place], found)" in text


def changed(**fields: Any) -> Graph:
    """The graph with another gather."""
    graph = Gathering().graph
    node = graph.machines[0]
    more = node.modes[0].choices[0]
    body = tuple(
        replace(step, **fields) if isinstance(step, Load) and by_lanes(step.indices) else step
        for step in more.inside.body  # type: ignore[union-attr]
    )
    inside = replace(more.inside, body=body)  # type: ignore[type-var]
    mode = replace(node.modes[0], choices=(replace(more, inside=inside), node.modes[0].choices[1]))
    return replace(graph, nodes=(replace(node, modes=(mode,)), graph.nodes[1]))


def refused(graph: Graph, *parts: str) -> None:
    """The graph is refused, with a text that has these parts."""
    with pytest.raises(GraphError) as caught:
        verify_graph(graph)
    for part in parts:
        assert part in str(caught.value)


def test_the_index_has_the_lanes_of_the_value() -> None:
    refused(
        changed(type=INT32.with_lanes(2)),
        "has other lanes than the value",
        "2 lanes, one for each lane of int32x2",
        "int32x4",
    )


def test_the_index_is_signed() -> None:
    graph = Gathering(index=UInt(32)).graph
    refused(graph, "vector of the wrong type", "-1 names no element", "uint32x4")
    refused(Gathering(index=Float(32)).graph, "vector of the wrong type")


def test_there_are_as_many_indices_as_dimensions() -> None:
    taken = Local(name="taken", type=INT32.with_lanes(4))
    refused(changed(indices=(Local(name="at", type=INT32), taken)), "wrong number of indices")


def test_pe_arrays_do_not_gather() -> None:
    refused(
        with_statement(pipeline(), "load_X", 0, indices=(LaneNumbers(type=INT32.with_lanes(2)),)),
        "gathers or scatters: its last index is a vector",
        "only machines access memory by a vector of indices",
        "an index of type int32x2",
    )
