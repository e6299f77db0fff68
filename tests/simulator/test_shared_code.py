"""Machines that are alike share one function of native code."""

from __future__ import annotations

from collections import Counter

import numpy as np

from t2s import sparse
from t2s.graph.machine_shapes import shapes_of
from t2s.simulator.values.emit_frame import renamed
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import layout_of


def _lanes(lanes: int) -> tuple[sparse.Kernel, dict[str, np.ndarray]]:
    assignment = sparse.parse("X(i,j) = B(i,k) * C(k,j)", {"B": "ss", "C": "ss", "X": "ss"})
    generator = np.random.default_rng(3)
    inputs = {name: (generator.random((9, 9)) < 0.4) * 1.0 for name in "BC"}
    return sparse.compile(assignment, f"reorder(i,k,j), parallelize(i,{lanes})"), inputs


def test_copies_of_a_loop_share_their_functions() -> None:
    shapes = []
    for lanes in (3, 6):
        kernel, inputs = _lanes(lanes)
        (graph,) = kernel.graphs(inputs)
        found = shapes_of(graph)
        counts = Counter(shape.number for shape in found.values())
        assert sum(count for count in counts.values() if count > 1) > 10 * lanes
        shapes.append(counts)
        functions = emit_program(graph, layout_of(graph)).text.count("\ndefine ")
        assert functions <= len(counts) + len(graph.nodes) - len(found) + 1
    assert abs(len(shapes[0]) - len(shapes[1])) < 3


def test_engines_agree_where_functions_are_shared() -> None:
    kernel, inputs = _lanes(3)
    results = [kernel.simulate(inputs, engine=engine) for engine in ("native", "python")]
    for result in results:
        assert np.array_equal(result.output, inputs["B"] @ inputs["C"])
    assert results[0].cycles == results[1].cycles


def test_messages_have_the_names_of_each_machine() -> None:
    messages = ["scan leaves the bounds of scan_1", "a scan"]
    names = {"scan": "scan_1", "scan_1": "x"}
    assert renamed(messages, names) == ["scan_1 leaves the bounds of x", "a scan_1"]
