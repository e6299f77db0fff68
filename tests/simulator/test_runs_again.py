"""Runs of one graph, one after another, share its memory and know nothing of each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks.stream_designs import compressed, elementwise, outer_product, row_product
from t2s.core.ops import Array, Op
from t2s.graph.graph import Graph
from t2s.simulator.run import simulate
from t2s.simulator.values import machine_values
from t2s.simulator.values.machine_values import StreamValues, stream_values
from tests.sampling import sampled

Inputs = Mapping[str, Array]


def same(found: StreamValues, expected: StreamValues) -> None:
    assert found.outputs is not None
    assert expected.outputs is not None
    for name, array in expected.outputs.items():
        assert found.outputs[name].tobytes() == array.tobytes()
    for key, trace in expected.traces.items():
        assert found.traces[key].codes.expanded.tobytes() == trace.codes.expanded.tobytes()
    assert found.sent.tolist() == expected.sent.tolist()
    assert found.received.tolist() == expected.received.tolist()


def sparse(rows: int, columns: int, density: float, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 9, (rows, columns))
    return np.where(generator.random(values.shape) < density, values, 0)


def factors(size: int, density: float, seed: int, modes: str) -> Inputs:
    b, c = sparse(size, size, density, seed), sparse(size, size, density, seed + 1)
    return {**compressed("B", modes[:2], b), **compressed("C", modes[2:], c)}


@sampled(
    ("make", "modes"),
    [
        (lambda: elementwise(Op.ADD, 2), "ijij"),
        (lambda: row_product(4), "ikkj"),
        (lambda: outer_product(4), "kikj"),
    ],
    quick=2,
    ids=["elementwise", "row product", "outer product"],
)
def test_large_and_small_runs_in_turn(
    make: Callable[[], Graph], modes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memories that a large run let grow serve a small one; what was returned never changes."""
    graph = make()
    runs = [factors(size, 0.3, size, modes) for size in (9, 200, 1, 40, 200, 2)]
    found = [stream_values(graph, inputs, {}) for inputs in runs]
    monkeypatch.setattr(machine_values, "_MOST_KEPT_BYTES", -1)
    for inputs, values in zip(runs, found, strict=True):
        same(values, stream_values(graph, inputs, {}))


def test_after_a_run_that_was_cut_short() -> None:
    graph, inputs = row_product(4), factors(30, 0.3, 1, "ikkj")
    expected = simulate(graph, inputs)
    short = simulate(graph, inputs, max_cycles=50)
    assert not short.finished
    again = simulate(graph, inputs)
    assert again.cycles == expected.cycles
    assert again.outputs["X_vals"].tolist() == expected.outputs["X_vals"].tolist()
    assert again.nodes == expected.nodes


def test_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = outer_product(4)
    runs = [factors(60, 0.2, seed, "kikj") for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda inputs: stream_values(graph, inputs, {}), runs * 3))
    monkeypatch.setattr(machine_values, "_MOST_KEPT_BYTES", -1)
    for inputs, values in zip(runs * 3, found, strict=True):
        same(values, stream_values(graph, inputs, {}))
