"""Tensors in shared banks: how graphs show them, and what verification refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.printer import graph_to_dot, print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import GraphError, verify_graph
from t2s.simulator.memory.places import bases_in_banks
from t2s.simulator.memory.spec import Banked
from tests.graph.gathers import Gathering
from tests.graph.machines import copying
from tests.graph.refusal import refuse
from tests.hand_graphs import systolic_gemm


def with_x(graph: Graph, **changes: object) -> Graph:
    """The graph with another ``x``."""
    tensors = tuple(replace(t, **changes) if t.name == "x" else t for t in graph.tensors)  # type: ignore[arg-type]
    return replace(graph, tensors=tensors)


BANKED = with_x(Gathering().graph, place=MemorySpace.SHARED)
SWIZZLED = with_x(BANKED, swizzled=True)


def test_text_and_picture() -> None:
    verify_graph(BANKED)
    assert "input x: int32[64] in shared banks\n" in print_graph(BANKED)
    assert "input x: int32[64] in shared banks, swizzled\n" in print_graph(SWIZZLED)
    assert "shared banks x" in graph_to_dot(BANKED)
    assert "shared banks" not in graph_to_dot(Gathering().graph)


def test_json_says_of_swizzled_tensors_alone_that_they_are() -> None:
    for graph in (BANKED, SWIZZLED):
        assert graph_from_json(graph_to_json(graph)) == graph
    assert '"MemorySpace.SHARED"' in graph_to_json(BANKED)
    assert "swizzled" not in graph_to_json(BANKED)
    assert json.loads(graph_to_json(SWIZZLED))["graph"]["tensors"][2]["swizzled"] is True


def test_open_tensors_have_addresses_of_their_own() -> None:
    graph = with_x(copying(), place=MemorySpace.SHARED)
    verify_graph(graph)
    other = replace(graph.tensors[0], name="other", shape=(5,), open=False)
    both = replace(graph, tensors=(*graph.tensors, other))
    assert bases_in_banks(both, Banked()) == {"x": 0, "other": 1 << 24}


def test_swizzled_and_not_shared() -> None:
    refuse(
        with_x(Gathering().graph, swizzled=True),
        "tensor 'x': it is swizzled, but not in shared banks",
        "  expected: MemorySpace.SHARED, or a tensor that is not swizzled",
        "  given:    MemorySpace.MEMORY",
    )


@pytest.mark.parametrize(
    ("name", "text"), [("streamed", "streamed"), ("in_parts", "stored in parts")]
)
def test_tensors_whose_bursts_controllers_know(name: str, text: str) -> None:
    said = with_x(Gathering().graph, **{name: True})
    verify_graph(said)
    assert f"input x: int32[64] {text}\n" in print_graph(said)
    assert graph_from_json(graph_to_json(said)) == said
    assert name not in graph_to_json(Gathering().graph)
    refuse(
        with_x(BANKED, **{name: True}),
        f"tensor 'x': it is {text}, but not in the device's memory",
        f"  expected: MemorySpace.MEMORY, or a tensor that is not {text}",
        "  given:    MemorySpace.SHARED",
    )


def test_pe_arrays_use_no_banks() -> None:
    graph = systolic_gemm(2, 2, 2)
    shared = replace(graph.tensors[0], place=MemorySpace.SHARED)
    with pytest.raises(GraphError) as caught:
        verify_graph(replace(graph, tensors=(shared, *graph.tensors[1:])))
    lines = str(caught.value).splitlines()
    assert "uses it" in lines[0]
    expected = "  expected: machines alone to use open tensors, those on the chip and shared ones"
    assert expected in lines
    assert f"  given:    {shared.shape_text}" in lines
