"""Graphs of machines: the native engine against the plain one, in values, cycles and stalls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from t2s.graph.graph import Graph, TensorRole
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.engine import Limits
from t2s.simulator.engine_native import NativeEngine
from t2s.simulator.engine_python import PythonEngine
from t2s.simulator.program import SimProgram, build_program
from t2s.simulator.result import SimResult
from tests.simulator.stream_graphs import stream_graphs

ARRIA = DEVICES["arria10"]
UNSHARED = replace(ARRIA, memory_bytes_per_second=None)


def agree(one: SimResult, other: SimResult) -> None:
    """Everything but the engine and the outputs is the same."""
    assert one.ending is other.ending
    assert one.cycles == other.cycles
    assert one.nodes == other.nodes
    assert one.tokens_left == other.tokens_left
    assert one.deadlock == other.deadlock


def program_of(graph: Graph, device: Device, seed: int) -> SimProgram:
    generator = np.random.default_rng(seed)
    inputs = {
        tensor.name: generator.integers(0, 7, 12, np.int32)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }
    return build_program(graph, device, inputs)


@settings(max_examples=60, deadline=None)
@given(
    graph=stream_graphs(),
    device=st.sampled_from((DEVICES["ideal"], ARRIA, UNSHARED)),
    seed=st.integers(0, 3),
    limit=st.one_of(st.none(), st.integers(1, 60)),
)
def test_random_graphs(graph: Graph, device: Device, seed: int, limit: int | None) -> None:
    program = program_of(graph, device, seed)
    limits = Limits(max_cycles=limit)
    python, native = PythonEngine().run(program, limits), NativeEngine().run(program, limits)
    agree(python, native)
    assert native.outputs.keys() == python.outputs.keys()
    for name, array in python.outputs.items():
        np.testing.assert_array_equal(native.outputs[name], array, strict=True)
