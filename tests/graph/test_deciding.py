"""Which arrays decide what the machines of a graph do."""

from __future__ import annotations

import numpy as np
import pytest

from t2s import sparse
from t2s.graph.deciding import deciding_arrays
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.nameless import nameless_text
from t2s.simulator.run import simulate
from tests.graph.machines import copying
from tests.hand_graphs import systolic_gemm
from tests.models import MODELS


def graphs_of(text: str, formats: dict[str, str], inputs: dict[str, np.ndarray]) -> list[Graph]:
    return [g for graphs in sparse.program(text, formats).graphs(inputs).values() for g in graphs]


def test_values_that_end_a_stream_decide() -> None:
    """A machine that copies up to the first zero."""
    graph = copying()
    assert deciding_arrays(graph) == {"x"}
    cycles = {simulate(graph, {"x": np.array(x, np.int32)}).cycles for x in ([1, 2, 0], [1, 0, 2])}
    assert len(cycles) == 2


def test_positions_decide_and_values_pass_through() -> None:
    inputs = {"A": np.eye(3), "X": np.ones((3, 2))}
    (graph,) = graphs_of("T(i,j) = A(i,k)*X(k,j)", {"A": "ds"}, inputs)
    assert deciding_arrays(graph) == {"A_pos1"}
    # a memory whose times depend on addresses sees which rows are read
    assert deciding_arrays(graph, addresses=True) == {"A_pos1", "A_crd1"}
    assert deciding_arrays(graph, ["T_vals"]) == {"A_pos1", "A_crd1", "A_vals", "X_vals"}


def test_both_sides_of_an_intersection_decide() -> None:
    inputs = {"b": np.array([1, 0, 2.0]), "c": np.array([0, 3, 4.0])}
    (graph,) = graphs_of("y(i) = b(i)*c(i)", {"b": "s", "c": "s", "y": "s"}, inputs)
    both = {f"{name}_{array}0" for name in "bc" for array in ("crd", "pos")}
    assert deciding_arrays(graph) == both == deciding_arrays(graph, ["y_crd0", "y_pos0"])


def test_all_inputs_of_arrays_of_pes_decide() -> None:
    graph = systolic_gemm(2, 2, 4)
    inputs = {tensor.name for tensor in graph.tensors if tensor.role is TensorRole.INPUT}
    assert inputs
    assert deciding_arrays(graph) == inputs


@pytest.mark.parametrize("name", ["gcn", "decoder", "sage"])
def test_other_elements_of_other_arrays_take_the_same_cycles(name: str) -> None:
    generator = np.random.default_rng(0)
    model = MODELS[name]()
    design = sparse.program(model.text, model.formats).design()
    seen = 0
    run = design.interpreted(model.inputs)
    for group in design.groups(run.sized):
        kernel, given = run.kernel(group)
        bound = kernel.bound(given)
        graph = bound.graphs[0]
        arrays = kernel.begin(given).first.arrays
        others = {
            array: generator.permutation(value) if array not in graph.deciding(False) else value
            for array, value in arrays.items()
        }
        runs = [simulate(graph.graph, one) for one in (arrays, others)]
        assert runs[0].nodes == runs[1].nodes
        outputs = [t.name for t in graph.graph.tensors if t.role is TensorRole.OUTPUT]
        for array in outputs:
            if not array.endswith("vals"):
                assert np.array_equal(*(one.outputs[array] for one in runs)), array
        seen += any(not np.array_equal(arrays[array], others[array]) for array in arrays)
    assert seen > 5


def test_texts_without_names() -> None:
    """Names of tensors make no difference; other extents, formats and operators do."""

    def text(
        notation: str, formats: str = "ds", shape: tuple[int, int] = (3, 2), name: str = "A"
    ) -> str:
        arrays = {name: np.ones(shape)}
        (graph,) = graphs_of(notation, {name: formats}, arrays)
        return nameless_text(graph)

    usual = text("y(i) = A(i,j)*2")
    assert text("result(row) = scan(row,j)*2", name="scan") == usual
    assert text("y(i) = A(i,j)*2", shape=(3, 4)) == usual  # its rows say how long they are
    assert text("y(i) = A(i,j)*2", shape=(4, 2)) != usual
    assert text("y(i) = A(i,j)*3") != usual
    assert text("y(i) = A(i,j)*2", formats="ss") != usual
