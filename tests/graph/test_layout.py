"""Layouts of tensors: what they mean, their text, and the rules they obey."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from t2s.core.expr import Expr, Index, Parameter, Read, const
from t2s.core.types import INT32
from t2s.graph.arrays import outputs_of, pack, unpack
from t2s.graph.graph import Graph, Layout, Tensor, TensorRole
from t2s.graph.interpret import interpret_graph
from t2s.graph.printer import print_graph
from t2s.graph.serialize import graph_from_json, graph_to_json
from t2s.graph.verify import GraphError, verify_graph
from tests.graph.changes import pipeline, with_tensor

X = np.arange(8, dtype=np.int32)


def affine(*terms: tuple[str, int]) -> Expr:
    """The sum of indices times factors."""
    total: Expr = const(0)
    for name, factor in terms:
        total = total + Index(name=name) * factor
    return total


REVERSED = Layout(
    array="x",
    loops=("a",),
    extents=(8,),
    indices=(7 - Index(name="a"),),
)


def ordered() -> Graph:
    """The pipeline with its input in reverse order in memory."""
    return with_tensor(pipeline(), "X", layout=REVERSED)


def test_an_input_in_another_order() -> None:
    plain = interpret_graph(pipeline(), {"X": X[::-1]}, {"n": np.int32(3)})
    reverse = interpret_graph(ordered(), {"x": X}, {"n": np.int32(3)})
    assert plain.keys() == reverse.keys()
    for name in plain:
        np.testing.assert_array_equal(plain[name], reverse[name])


def test_elements_that_are_there_several_times() -> None:
    layout = Layout(array="x", loops=("r", "a"), extents=(3, 8), indices=(Index(name="a"),))
    tensor = replace(pipeline().tensor("X"), layout=layout)
    np.testing.assert_array_equal(pack(tensor, X), np.tile(X, (3, 1)))


def test_a_matrix_in_tiles() -> None:
    layout = Layout(
        array="M",
        loops=("i", "j", "ii", "jj"),
        extents=(2, 3, 2, 2),
        indices=(affine(("i", 2), ("ii", 1)), affine(("j", 2), ("jj", 1))),
    )
    tensor = Tensor(name="tiles", type=INT32, shape=(4, 6), role=TensorRole.OUTPUT, layout=layout)
    array = np.arange(24, dtype=np.int32).reshape(4, 6)
    memory = pack(tensor, array)
    np.testing.assert_array_equal(memory[1, 2], array[2:4, 4:6])
    np.testing.assert_array_equal(unpack(tensor, memory), array)
    graph = replace(pipeline(), tensors=(tensor,))
    assert outputs_of(graph, {"tiles": memory}).keys() == {"M"}


def test_text_and_json() -> None:
    graph = ordered()
    line = "input X: int32[8], by the host x[7 - a] for a: 8, of x[8]"
    assert line in print_graph(graph)
    assert graph_from_json(graph_to_json(graph)) == graph


def test_a_proper_layout() -> None:
    verify_graph(ordered())


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"extents": (0,)}, "the loops of the layout are wrong"),
        ({"loops": ("a", "b")}, "the loops of the layout are wrong"),
        ({"loops": ("a", "a"), "extents": (2, 4)}, "the loops of the layout are wrong"),
        ({"indices": ()}, "the layout has the wrong number of indices"),
        ({"indices": (Index(name="z"),)}, "z"),
        ({"indices": (Parameter(name="n", type=INT32),)}, "n"),
        ({"indices": (affine(("a", 2)),)}, "the layout leaves dimension 0 of x"),
        (
            {"indices": (Index(name="a") * Index(name="a"),)},
            "the layout is not affine",
        ),
    ],
)
def test_rules(changes: dict[str, object], text: str) -> None:
    graph = with_tensor(pipeline(), "X", layout=replace(REVERSED, **changes))
    with pytest.raises(GraphError, match=text):
        verify_graph(graph)


def test_reads_are_no_subscripts() -> None:
    read = Read(source="x", indices=(), type=INT32)
    with pytest.raises(GraphError):
        verify_graph(with_tensor(pipeline(), "X", layout=replace(REVERSED, indices=(read,))))


def test_an_output_that_is_not_filled() -> None:
    half = replace(REVERSED, array="y", indices=(const(0),))
    with pytest.raises(GraphError, match="does not place every element of y") as caught:
        verify_graph(with_tensor(pipeline(), "Y", layout=half))
    assert caught.value.given is not None
    assert "never computed" in caught.value.given


def test_an_intermediate_tensor() -> None:
    with pytest.raises(GraphError, match="the layout is that of an intermediate tensor"):
        verify_graph(with_tensor(pipeline(), "X", layout=REVERSED, role=TensorRole.INTERMEDIATE))


def test_two_tensors_of_one_array() -> None:
    graph = ordered()
    again = replace(graph.tensor("X"), name="X_again")
    verify_graph(replace(graph, tensors=(*graph.tensors, again)))
    other = replace(again, shape=(9,))
    with pytest.raises(GraphError, match="the array x is that of the tensor 'X' too"):
        verify_graph(replace(graph, tensors=(*graph.tensors, other)))
