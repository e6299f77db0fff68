"""Looking things up in a graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from t2s.graph.nodes import SpaceDimension
from tests.graph.changes import pipeline, with_channel, with_node
from tests.hand_graphs import systolic_gemm


def test_lookup_by_name() -> None:
    graph = pipeline()
    assert graph.node("sum") is graph.nodes[1]
    assert graph.channel("to_sum") is graph.channels[0]
    assert graph.tensor("Y") is graph.tensors[1]
    for look_up in (graph.node, graph.channel, graph.tensor):
        with pytest.raises(KeyError):
            look_up("nothing")


def test_a_changed_graph_looks_up_its_own_parts() -> None:
    graph = pipeline()
    assert graph.channel("to_sum").capacity == 2  # fills the cache of the first graph
    assert with_channel(graph, "to_sum", capacity=9).channel("to_sum").capacity == 9


def test_channels_of_a_node_in_graph_order() -> None:
    graph = systolic_gemm(2, 2, 2)
    assert [c.name for c in graph.inputs_of("C")] == ["A_in", "B_in", "A_pass", "B_pass"]
    assert [c.name for c in graph.outputs_of("C")] == ["A_pass", "B_pass", "C_out"]
    assert graph.outputs_of("C_store") == ()


def test_counts() -> None:
    space = (
        SpaceDimension(name="ii", minimum=2, extent=3),
        SpaceDimension(name="jj", minimum=0, extent=4),
    )
    graph = with_node(pipeline(), "sum", space=space)
    assert [node.pe_count for node in graph.nodes] == [1, 12, 1]
    assert graph.channel("to_sum").element_count == 1
    assert replace(graph.channel("to_sum"), shape=(3, 4)).element_count == 12


def test_graphs_compare_by_structure() -> None:
    assert pipeline() == pipeline()
    assert hash(pipeline()) == hash(pipeline())
    assert with_channel(pipeline(), "to_sum", capacity=3) != pipeline()
