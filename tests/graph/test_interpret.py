"""The untimed interpreter against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from t2s.core.errors import UserError
from t2s.core.expr import Parameter, conjunction, equals, reduce_lanes
from t2s.core.ops import Op, apply_operator
from t2s.core.types import INT32, BFloat, Float, Int, Type
from t2s.graph.graph import Graph
from t2s.graph.interpret import allocate, interpret_graph
from tests.graph.changes import local, pipeline, with_statement, with_tensor, with_value
from tests.hand_graphs import index, systolic_gemm


def _inputs(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        name: (
            generator.standard_normal(graph.tensor(name).shape)
            if graph.tensor(name).type.is_float
            else generator.integers(-1000, 1000, graph.tensor(name).shape)
        ).astype(graph.tensor(name).type.numpy)
        for name in ("A", "B")
    }


@pytest.mark.parametrize("element", [INT32, Int(16)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 5), (2, 4, 7)])
def test_integer_gemm(element: Type, shape: tuple[int, int, int]) -> None:
    graph = systolic_gemm(*shape, element=element)
    inputs = _inputs(graph)
    expected = inputs["A"] @ inputs["B"].T  # wraps around in the element's type
    result = interpret_graph(graph, inputs)["C"]
    assert result.dtype == element.numpy
    np.testing.assert_array_equal(result, expected)


def _rounded_gemm(a: np.ndarray, b: np.ndarray, lanes: int, element: Type) -> np.ndarray:
    """The sum in the array's own order: a tree within a vector, vectors one after another."""
    total = np.zeros((len(a), len(b)), element.numpy)
    for k in range(0, a.shape[1], lanes):
        product = apply_operator(
            Op.MULTIPLY, element, (a[:, None, k : k + lanes], b[None, :, k : k + lanes])
        )
        total = apply_operator(Op.ADD, element, (total, reduce_lanes(Op.ADD, element, product)))
    return total


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
@pytest.mark.parametrize("element", [Float(32), Float(64), BFloat(), INT32])
def test_tiled_vector_gemm_rounds_as_the_array_does(lanes: int, element: Type) -> None:
    graph = systolic_gemm(
        2, 3, 4, tile_rows=2, tile_columns=3, lanes=lanes, element=element, capacity=1
    )
    inputs = _inputs(graph, seed=lanes)
    result = interpret_graph(graph, inputs)["C"]
    expected = _rounded_gemm(inputs["A"], inputs["B"], lanes, element)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_float_gemm_is_close_to_numpy() -> None:
    graph = systolic_gemm(3, 3, 16, tile_rows=2, tile_columns=2, element=Float(32))
    inputs = _inputs(graph)
    exact = inputs["A"].astype(np.float64) @ inputs["B"].T.astype(np.float64)
    np.testing.assert_allclose(interpret_graph(graph, inputs)["C"], exact, rtol=1e-4, atol=1e-5)


def test_a_scan_and_the_inputs_stay_as_they_were() -> None:
    x = np.arange(8, dtype=np.int32)
    outputs = interpret_graph(pipeline(), {"X": x}, {"n": np.int32(0)})
    np.testing.assert_array_equal(outputs["Y"], np.cumsum(np.arange(8)))
    assert set(outputs) == {"Y"}
    np.testing.assert_array_equal(x, np.arange(8))


def test_parameters_are_values_of_the_run() -> None:
    shifted = with_value(pipeline(), local("x") + Parameter(name="n", type=INT32))
    x = np.arange(8, dtype=np.int32)
    outputs = interpret_graph(shifted, {"X": x}, {"n": np.int32(10)})
    np.testing.assert_array_equal(outputs["Y"], x + 10)


def test_outputs_start_at_zero() -> None:
    memory = allocate(pipeline(), {"X": np.ones(8, np.int32)})
    assert memory["Y"].tolist() == [0] * 8
    assert memory["Y"].dtype == np.int32


def test_padding_is_zero_in_memory_and_not_part_of_outputs() -> None:
    graph = with_tensor(with_tensor(pipeline(), "X", padded=(10,)), "Y", padded=(11,))
    x = np.arange(8, dtype=np.int32)
    memory = allocate(graph, {"X": x})
    assert memory["X"].tolist() == [*range(8), 0, 0]
    assert memory["Y"].shape == (11,)
    scalars = {"n": np.int32(0)}
    outputs = interpret_graph(graph, {"X": x}, scalars)
    np.testing.assert_array_equal(outputs["Y"], interpret_graph(pipeline(), {"X": x}, scalars)["Y"])


def test_tokens_that_never_come() -> None:
    odd = equals(index("i"), Parameter(name="n", type=INT32))
    starving = with_statement(pipeline(), "load_X", 1, condition=conjunction(odd))
    with pytest.raises(UserError) as caught:
        interpret_graph(starving, {"X": np.zeros(8, np.int32)}, {"n": np.int32(3)})
    message = str(caught.value)
    assert message.startswith("deadlock: nothing can fire, and not finished are 'store_Y', 'sum'\n")
    assert "hint:     t2s.simulate says who waits for whom" in message
