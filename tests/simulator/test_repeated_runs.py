"""Repeated runs of one graph: what follows from the graph and the device alone is made once."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import sparse
from t2s.report import resources
from t2s.simulator.program import build
from tests.report.test_machine_resources import copying


def _count(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[object]:
    calls: list[object] = []
    original = getattr(module, name)

    def counted(*arguments: object) -> object:
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_intervals_and_channels_are_analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = sparse.compile(sparse.parse("y(i) = A(i,j)*x(j)", {"A": "ds"}))
    inputs = {"A": np.eye(3), "x": np.ones(3)}
    intervals = _count(monkeypatch, build, "_interval")
    channels = _count(monkeypatch, build, "_channels")
    first = kernel.simulate(inputs, engine="python", device="arria10")
    counts = len(intervals), len(channels)
    assert min(counts) > 0
    for factor in (1.0, 2.0):
        again = kernel.simulate(
            {"A": factor * np.eye(3), "x": np.ones(3)}, engine="python", device="arria10"
        )
        assert again.cycles == first.cycles
        assert again.output.tolist() == [factor] * 3
    assert (len(intervals), len(channels)) == counts
    other = kernel.simulate(inputs, engine="python", device="ideal")
    assert other.cycles < first.cycles
    assert len(channels) == 2 * counts[1]


def test_blocks_are_counted_once_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = copying()
    counted = _count(monkeypatch, resources, "_node_resources")
    first = resources.estimate_resources(graph, "arria10")
    count = len(counted)
    assert count > 0
    assert resources.estimate_resources(graph, "arria10") is first
    assert len(counted) == count
    resources.estimate_resources(graph, "stratix10")
    assert len(counted) == 2 * count
