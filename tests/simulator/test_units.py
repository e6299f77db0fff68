"""Machines with an interval and a latency of their own, as a matrix unit is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.errors import UserError
from t2s.graph.graph import Graph, MemorySpace
from t2s.graph.interpret import interpret_graph
from t2s.graph.nodes import Machine
from t2s.graph.printer import print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import verify_graph
from t2s.simulator.report.result import SimResult
from t2s.simulator.run import simulate
from tests.graph.machines import copying

VALUES = np.array([5, -3, 7, 2, 9, 0], np.int32)
"""Up to the first 0, which ends the stream: five tokens and the end."""

FIRINGS = 7
"""Of the source: a value each, the stop, and the end."""


def slow(interval: int, latency: int) -> Graph:
    """The source of a stream as a unit of an interval and a latency."""
    graph = copying(place=MemorySpace.CHIP)
    source, sink = graph.nodes
    assert isinstance(source, Machine)
    return replace(graph, nodes=(replace(source, interval=interval, latency=latency), sink))


def timed(graph: Graph, **options: object) -> SimResult:
    return simulate(graph, {"x": VALUES}, device="ideal", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["native", "python"])
def test_firings_are_an_interval_apart_and_tokens_late(engine: str) -> None:
    usual = timed(copying(place=MemorySpace.CHIP), engine=engine)
    run = timed(slow(4, 9), engine=engine)
    np.testing.assert_array_equal(run.outputs["y"], usual.outputs["y"])
    first, last = run.nodes["source"].first_firing, run.nodes["source"].last_firing
    assert first is not None
    assert last == first + 4 * (FIRINGS - 1)
    assert run.cycles == usual.cycles + 3 * (FIRINGS - 1) + 9
    assert run.nodes["source"].waiting == 3 * (FIRINGS - 1)
    assert str(run.nodes["source"].interval) == "II 4: the unit takes a firing every 4 cycles"


def test_all_ways_of_times_agree() -> None:
    graph = slow(4, 9)
    native, limited = timed(graph), timed(graph, max_cycles=1000)
    plain = timed(graph, engine="python")
    assert limited.kernel == "run-ahead"
    assert native.cycles == limited.cycles == plain.cycles
    assert native.nodes == limited.nodes == plain.nodes


def test_texts_and_files() -> None:
    graph = slow(4, 9)
    assert graph_from_json(graph_to_json(graph)) == graph
    assert '"interval": 4' in graph_to_json(graph)
    assert '"interval"' not in graph_to_json(copying())
    assert "machine of interval 4 and of latency 9 source" in print_graph(graph)
    assert interpret_graph(graph, {"x": VALUES})["y"].tolist() == [5, -3, 7, 2, 9]


@pytest.mark.parametrize(
    ("interval", "latency", "text"),
    [
        (0, 0, "its interval is not a number of cycles"),
        (1, -1, "its latency is not a number of cycles"),
    ],
)
def test_refused(interval: int, latency: int, text: str) -> None:
    with pytest.raises(UserError, match=text):
        verify_graph(slow(interval, latency))
