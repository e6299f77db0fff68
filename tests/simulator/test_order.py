"""The order in which nodes and channels are written down, and so visited, means nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from t2s.graph.graph import Graph, TensorRole
from t2s.simulator.report.result import SimResult
from tests.simulator.designs import run
from tests.simulator.test_random import device_of, random_graph


def shuffled(data: st.DataObject, graph: Graph) -> Graph:
    return replace(
        graph,
        nodes=tuple(data.draw(st.permutations(graph.nodes), "nodes")),
        channels=tuple(data.draw(st.permutations(graph.channels), "channels")),
    )


def described(result: SimResult) -> object:
    """Everything that has a name, by name."""
    return (
        result.ending,
        result.cycles,
        dict(sorted(result.nodes.items())),
        sorted(map(str, result.tokens_left)),
        result.deadlock is None,
    )


@pytest.mark.slow
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)
@given(st.data())
def test_any_order_of_nodes_and_channels(data: st.DataObject) -> None:
    """Nobody shares memory here: accesses at one time are served in the order of the nodes."""
    graph = random_graph(data)
    device = replace(device_of(data), memory_bytes_per_second=None)
    inputs = {
        item.name: np.arange(item.shape[0], dtype=np.int32)
        for item in graph.tensors
        if item.role is TensorRole.INPUT
    }
    engine = data.draw(st.sampled_from(["python", *["table"] * 5, "array"]), "engine")
    expected = run(graph, "python", device=device, inputs=inputs)
    found = run(shuffled(data, graph), engine, device=device, inputs=inputs)
    assert described(found) == described(expected)
    assert found.outputs.keys() == expected.outputs.keys()
    for name, values in expected.outputs.items():
        np.testing.assert_array_equal(found.outputs[name], values)
