"""Many lanes: switches become trees, so graphs and their code grow with the lanes and no faster."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import sparse
from t2s.graph.graph import Graph
from t2s.simulator.values.emit_node import emit_program
from t2s.simulator.values.layout import layout_of

DESIGNS = (
    ("y(i) = A(i,j)*x(j)", "parallelize(i,{lanes})"),
    ("X(i,j) = A(i,k)*B(k,j)", "reorder(i,k,j), parallelize(i,{lanes})"),
    ("X(i,j) = A(i,k)*B(k,j)", "reorder(i,k,j), parallelize(k,{lanes})"),
    ("X(i,j) = A(i,j)*B(i,j)", "parallelize(i,{lanes})"),
    ("X(i,j) = A(i,j)+B(i,j)", "fuse(i,j,f), parallelize(f,{lanes})"),
)
FORMATS = {"A": "ss", "B": "ss", "X": "ss", "x": "d", "y": "d"}


def kernel_of(text: str, schedule: str, lanes: int) -> sparse.Kernel:
    formats = {name: letters for name, letters in FORMATS.items() if f"{name}(" in text}
    return sparse.compile(sparse.parse(text, formats), schedule.format(lanes=lanes))


def inputs_of(text: str, size: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(size)
    found = {}
    for name in "ABx":
        if f"{name}(" in text:
            array = generator.integers(1, 5, (size,) * len(FORMATS[name])) * 1.0
            found[name] = array * (generator.random(array.shape) < 0.3)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [9, 17])
@pytest.mark.parametrize(("text", "schedule"), DESIGNS)
def test_trees_of_switches_keep_the_order(text: str, schedule: str, lanes: int) -> None:
    """Groups of one size and of two, lists that end anywhere, and channels of few tokens."""
    kernel = kernel_of(text, schedule, lanes)
    for size in (3, 21):
        inputs = inputs_of(text, size)
        expected = kernel.interpret(inputs)
        result = kernel.simulate(inputs, engine="python", capacity=2 * lanes)
        assert np.array_equal(result.output, expected)


@pytest.mark.slow
def test_trees_of_trees() -> None:
    text, schedule = DESIGNS[0]
    kernel, inputs = kernel_of(text, schedule, 70), inputs_of(text, 75)
    results = [kernel.simulate(inputs, engine=engine) for engine in ("python", "native")]
    assert np.array_equal(results[0].output, inputs["A"] @ inputs["x"])
    assert np.array_equal(results[1].output, results[0].output)
    assert results[0].cycles == results[1].cycles


def grown(graph: Graph) -> tuple[int, int]:
    """Rules with what they take and put, and the text of the native code."""
    parts = sum(
        1 + len(path.needs) + len(path.rule.takes) + len(path.rule.puts)
        for node in graph.machines
        for path in node.paths()
    )
    return parts, len(emit_program(graph, layout_of(graph)).text)


@pytest.mark.parametrize(("text", "schedule"), DESIGNS[:2])
def test_code_grows_with_the_lanes_at_most(text: str, schedule: str) -> None:
    """One switch of 64 lanes had 4,000 heads to take: its code took a minute and a half."""
    inputs = inputs_of(text, 20)
    small, large = (grown(kernel_of(text, schedule, lanes).graphs(inputs)[0]) for lanes in (16, 32))
    assert large[0] <= 2.2 * small[0]
    assert large[1] <= 1.5 * small[1]
