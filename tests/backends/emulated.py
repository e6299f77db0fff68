"""What backends compute, against the meaning of the graph, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from t2s.core.types import Float, Int, Type, UInt
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.interpret import interpret_graph

Array = Any

Gemm = tuple[tuple[int, int, int], tuple[int, int], int, Type]
GEMMS: dict[str, Gemm] = {
    "one PE": ((1, 1, 5), (1, 1), 1, Int(32)),
    "tiles of one": ((3, 2, 4), (1, 1), 1, Int(32)),
    "vectors of 4": ((2, 3, 3), (2, 2), 4, Int(32)),
    "vectors of 16": ((2, 2, 3), (3, 1), 16, Int(32)),
    "vectors of 3": ((2, 2, 2), (1, 2), 3, Int(8)),
    "vectors of 5": ((2, 2, 2), (2, 1), 5, UInt(16)),
    "floats": ((2, 3, 4), (2, 2), 4, Float(32)),
    "floats in a row": ((3, 3, 2), (1, 5), 16, Float(32)),
    "doubles": ((1, 2, 3), (2, 2), 10, Float(64)),
    "40 x 26 PEs": ((1, 1, 2), (40, 26), 1, Float(32)),
    "vectors of 128": ((1, 1, 2), (1, 1), 128, Float(32)),
}
"""Shape, tile, lanes and type of products on arrays of PEs."""


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for tensor in graph.tensors:
        if tensor.role is TensorRole.INPUT:
            values = random.standard_normal(tensor.shape) * 30
            inputs[tensor.name] = values.astype(tensor.type.numpy)
    return inputs


def check_emulated(
    emulate: Callable[..., dict[str, Array]],
    graph: Graph,
    parameters: Mapping[str, Array] | None = None,
    **options: Any,
) -> None:
    """The outputs of an emulation with random inputs, and their types."""
    inputs = random_inputs(graph)
    expected = interpret_graph(graph, inputs, parameters)
    outputs = emulate(graph, inputs, parameters, **options)
    assert outputs.keys() == expected.keys()
    for name, value in expected.items():
        assert outputs[name].dtype == value.dtype
        np.testing.assert_array_equal(outputs[name], value)
