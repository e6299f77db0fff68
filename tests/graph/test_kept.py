"""What is prepared for a graph is used again, and goes with the graph."""

from __future__ import annotations

import gc
from dataclasses import replace

from t2s.graph.cache import GraphCache
from t2s.simulator.program.build import build_program
from tests.hand_graphs import systolic_gemm


def test_control_is_computed_once_for_a_graph() -> None:
    graph = systolic_gemm(2, 2, 4)
    first, second = (build_program(graph, device, None) for device in ("ideal", "arria10"))
    assert first.control is second.control
    assert first.channels != second.channels


def test_another_graph_gets_its_own() -> None:
    graph = systolic_gemm(2, 2, 4)
    other = replace(graph, name="other")
    kept: GraphCache[int, str] = GraphCache()
    assert kept.get(graph, 0, lambda: "one") == "one"
    assert kept.get(other, 0, lambda: "two") == "two"
    assert kept.get(graph, 0, lambda: "three") == "one"
    assert kept.get(graph, 1, lambda: "four") == "four"


def test_few_results_are_kept() -> None:
    graph = systolic_gemm(2, 2, 4)
    kept: GraphCache[int, int] = GraphCache()
    made = [kept.get(graph, key, lambda key=key: key) for key in (0, 1, 2, 3, 4, 0)]  # type: ignore[misc]
    assert made == [0, 1, 2, 3, 4, 0]
    assert kept.get(graph, 4, lambda: -1) == 4
    assert kept.get(graph, 1, lambda: -1) == -1


def test_nothing_is_left_of_a_graph_that_is_gone() -> None:
    graph = systolic_gemm(2, 2, 4)
    kept: GraphCache[int, int] = GraphCache()
    kept.get(graph, 0, lambda: 1)
    assert len(kept) == 1
    del graph
    gc.collect()
    assert len(kept) == 0
