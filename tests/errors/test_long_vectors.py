"""Vectors that no compiler of machine code or hardware survives are refused, with the limit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import t2s
from t2s import Func, ImageParam, Int, RDom
from t2s.errors import UserError
from t2s.graph.verify import GraphError, verify_graph


def product(lanes: int) -> Func:
    A, k, y = ImageParam(Int(32), 1, name="A"), RDom(0, 2 * lanes, name="k"), Func("y")
    i, kk = t2s.variables("i kk")
    y[i] = 0
    y[i] += A[k] * A[k]
    return y.bound(i, 0, 2).split(k, k, kk, lanes).vload(A)


@pytest.mark.parametrize("lanes", [4097, 1 << 20])
def test_too_many_lanes(lanes: int) -> None:
    with pytest.raises(UserError, match=f"kk would be a vector of {lanes} lanes") as refused:
        t2s.lower(product(lanes))
    assert refused.value.expected == "at most 4096 lanes"
    assert refused.value.location is not None
    assert "/tests/" in refused.value.location.file


@pytest.mark.slow
def test_as_many_lanes_as_there_may_be() -> None:
    result = t2s.simulate(product(4096), {"A": np.ones(8192, np.int32)}, progress=False)
    assert result.outputs["y"].tolist() == [8192, 8192]


def test_graphs_with_too_many_lanes() -> None:
    graph = t2s.lower(product(4))
    long = Int(32).with_lanes(1 << 20)
    channels = tuple(
        replace(channel, stream=replace(channel.stream, element=long))
        if channel.stream.element.lanes > 1
        else channel
        for channel in graph.channels
    )
    with pytest.raises(GraphError, match="the vector is too long"):
        verify_graph(replace(graph, channels=channels))
