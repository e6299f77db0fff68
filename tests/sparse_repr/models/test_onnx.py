"""Models in ONNX, against ONNX's own reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy import special

from t2s import sparse
from t2s.errors import UserError

Shapes = Mapping[str, Sequence[int | str]]
node = helper.make_node


def model(
    nodes: Sequence[Any],
    inputs: Shapes,
    outputs: Sequence[str],
    weights: Mapping[str, Any] | None = None,
    *,
    opset: int = 20,
    sparse_weights: Sequence[Any] = (),
) -> onnx.ModelProto:
    def value(name: str, shape: Sequence[int | str] | None) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape)

    graph = helper.make_graph(
        nodes,
        "model",
        [value(name, shape) for name, shape in inputs.items()],
        [value(name, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (weights or {}).items()],
        sparse_initializer=list(sparse_weights),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def check(proto: onnx.ModelProto, inputs: Mapping[str, Any]) -> sparse.ImportedModel:
    imported = sparse.from_onnx(proto)
    expected = imported.expected(inputs)
    result = imported.simulate(inputs)
    for name, array in imported.outputs(result).items():
        assert array.shape == expected[name].shape, name
        np.testing.assert_allclose(array, expected[name], rtol=1e-6, atol=1e-7)
    return imported


def test_a_perceptron() -> None:
    proto = model(
        [
            node("Gemm", ["x", "W1", "b1"], ["h"], transB=1),
            node("Relu", ["h"], ["a"]),
            node("MatMul", ["a", "W2"], ["z"]),
            node("Add", ["z", "b2"], ["zb"]),
            node("Softmax", ["zb"], ["y"]),
        ],
        {"x": [3, 5]},
        ["y"],
        {"W1": normal(4, 5), "b1": normal(4), "W2": normal(4, 2), "b2": normal(2)},
    )
    imported = check(proto, {"x": normal(3, 5)})
    assert imported.text == (
        "h_product(i,j) = x(i,k)*W1(j,k)\n"
        "a(i,j) = relu(h_product(i,j) + b1(j))\n"
        "z(i,l) = a(i,j)*W2(j,l)\n"
        "y(i,l) = softmax(l; z(i,l) + b2(l))"
    )


def decoder(batch: int, length: int, width: int, heads: int, hidden: int) -> onnx.ModelProto:
    nodes = [node("LayerNormalization", ["x", "g1", "s1"], ["n"], epsilon=1e-5)]
    weights = {
        "g1": normal(width),
        "s1": normal(width),
        "g2": normal(width),
        "s2": normal(width),
        "heads": np.array([0, 0, heads, width // heads]),
        "joined": np.array([batch, length, -1]),
        "scale": np.array(2.0),
        "Wo": normal(width, width),
        "W1": normal(width, hidden),
        "W2": normal(hidden, width),
    }
    for each in "qkv":
        weights |= {f"W{each}": normal(width, width), f"b{each}": normal(width)}
        nodes += [
            node("MatMul", ["n", f"W{each}"], [f"{each}_product"]),
            node("Add", [f"{each}_product", f"b{each}"], [f"{each}_rows"]),
            node("Reshape", [f"{each}_rows", "heads"], [f"{each}_heads"]),
            node("Transpose", [f"{each}_heads"], [each], perm=[0, 2, 1, 3]),
        ]
    nodes += [
        node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["p"]),
        node("Div", ["p", "scale"], ["scaled"]),
        node("Softmax", ["scaled"], ["weights"], axis=-1),
        node("MatMul", ["weights", "v"], ["o"]),
        node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        node("Reshape", ["ot", "joined"], ["oj"]),
        node("MatMul", ["oj", "Wo"], ["op"]),
        node("Add", ["op", "x"], ["r"]),
        node("LayerNormalization", ["r", "g2", "s2"], ["n2"], epsilon=1e-5),
        node("MatMul", ["n2", "W1"], ["f1"]),
        node("Gelu", ["f1"], ["g"], approximate="tanh"),
        node("MatMul", ["g", "W2"], ["f2"]),
        node("Add", ["f2", "r"], ["y"]),
    ]
    return model(nodes, {"x": [batch, length, width]}, ["y"], weights)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_decoder_whose_heads_are_reshapes(batch: int) -> None:
    imported = check(decoder(batch, 5, 8, 2, 12), {"x": normal(batch, 5, 8)})
    assert imported.shapes["Wq"] == (8, 2, 4)
    assert imported.shapes["x"] == ((5, 8) if batch == 1 else (2, 5, 8))


OPERATIONS = {
    "max of three": ([node("Max", ["x", "x", "c"], ["y"])], {"c": normal(4)}),
    "powers": (
        [node("Pow", ["x", "two"], ["p"]), node("Pow", ["p", "half"], ["y"])],
        {"two": np.array(2.0), "half": np.array(0.5)},
    ),
    "clip": (
        [node("Clip", ["x", "low", "high"], ["y"])],
        {"low": np.array(-0.5), "high": np.array(0.5)},
    ),
    "means that stay": (
        [
            node("ReduceMean", ["x", "axes"], ["m"], keepdims=1),
            node("Sub", ["x", "m"], ["d"]),
            node("Mul", ["d", "d"], ["s"]),
            node("ReduceSum", ["s", "axes"], ["y"], keepdims=0),
        ],
        {"axes": np.array([1])},
    ),
    "sums that stay": ([node("ReduceSum", ["x", "axes"], ["y"])], {"axes": np.array([0, -1])}),
    "largest of all": ([node("ReduceMax", ["x"], ["y"], keepdims=0)], {}),
    "einsum of one array": ([node("Einsum", ["x", "x"], ["y"], equation="abc,abd->cd")], {}),
    "transposed": ([node("Transpose", ["x"], ["t"]), node("Relu", ["t"], ["y"])], {}),
    "flattened": (
        [node("Flatten", ["x"], ["f"], axis=1), node("MatMul", ["f", "w"], ["y"])],
        {"w": normal(12, 2)},
    ),
    "axes of extent 1": (
        [
            node("Unsqueeze", ["x", "at"], ["u"]),
            node("Add", ["u", "c"], ["a"]),
            node("Squeeze", ["a", "at"], ["y"]),
        ],
        {"at": np.array([1]), "c": normal(1, 3, 1)},
    ),
    "softmax and its logarithm": (
        [node("LogSoftmax", ["x"], ["l"], axis=1), node("Neg", ["l"], ["y"])],
        {},
    ),
    "reciprocals": ([node("Exp", ["x"], ["e"]), node("Reciprocal", ["e"], ["y"])], {}),
    "batches of vectors": ([node("MatMul", ["x", "v"], ["y"])], {"v": normal(4)}),
    "scaled product": (
        [
            node("Reshape", ["x", "flat"], ["m"]),
            node("Gemm", ["m", "w", "c"], ["y"], alpha=0.5, beta=2.0, transA=1),
        ],
        {"flat": np.array([6, 4]), "w": normal(6, 3), "c": normal(4, 1)},
    ),
    "constants that are computed": (
        [node("Transpose", ["w"], ["wt"]), node("MatMul", ["x", "wt"], ["y"])],
        {"w": normal(3, 4)},
    ),
    "the shape of an input": (
        [
            node("Shape", ["x"], ["s"]),
            node("Reshape", ["x", "s"], ["r"]),
            node("Abs", ["r"], ["y"]),
        ],
        {},
    ),
    "masks of a constant": (
        [
            node("Equal", ["c", "zero"], ["hidden"]),
            node("Where", ["hidden", "low", "x"], ["w"]),
            node("Softmax", ["w"], ["y"]),
        ],
        {"c": np.tri(3, 4), "zero": np.array(0.0), "low": np.array(-np.inf)},
    ),
    "a mask that is an input": (
        [
            node("Relu", ["x"], ["r"]),
            node("Equal", ["r", "zero"], ["below"]),
            node("Not", ["below"], ["above"]),
            node("Where", ["above", "x", "c"], ["y"]),
        ],
        {"zero": np.array(0.0), "c": normal(3, 1)},
    ),
    "outputs that are transposed and reshaped": (
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Transpose", ["h"], ["t"], perm=[1, 0, 2]),
            node("Reshape", ["t", "joined"], ["y"]),
        ],
        {"w": normal(4, 5), "joined": np.array([3, 10])},
    ),
    "error functions": (
        [node("Erf", ["x"], ["e"]), node("Gelu", ["x"], ["g"]), node("Add", ["e", "g"], ["y"])],
        {},
    ),
    "pieces of a product": (
        [
            node("MatMul", ["x", "w"], ["m"]),
            node("Add", ["m", "b"], ["a"]),
            node("Split", ["a"], ["q", "k", "v"], axis=-1, num_outputs=3),
            node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
            node("MatMul", ["q", "t"], ["s"]),
            node("Softmax", ["s"], ["p"]),
            node("MatMul", ["p", "v"], ["y"]),
        ],
        {"w": normal(4, 15), "b": normal(15)},
    ),
    "pieces along what a function is of": (
        [
            node("Softmax", ["x"], ["s"], axis=-1),
            node("Split", ["s", "sizes"], ["one", "other"], axis=2),
            node("Sub", ["one", "other"], ["y"]),
        ],
        {"sizes": np.array([2, 2])},
    ),
    "one coordinate, of what is read in whole too": (
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Gather", ["h", "last"], ["row"], axis=1),
            node("Unsqueeze", ["row", "at"], ["u"]),
            node("Mul", ["h", "u"], ["y"]),
        ],
        {"w": normal(4, 5), "last": np.array(-1), "at": np.array([1])},
    ),
    "one coordinate of one coordinate": (
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Gather", ["h", "first"], ["rows"], axis=0),
            node("Gather", ["rows", "second"], ["y"], axis=1),
        ],
        {"w": normal(4, 5), "first": np.array(1), "second": np.array(3)},
    ),
    "one coordinate of an axis that a reshape made": (
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("Reshape", ["h", "wide"], ["r"]),
            node("Gather", ["r", "third"], ["g"], axis=1),
            node("Reshape", ["g", "narrow"], ["y"]),
        ],
        {
            "w": normal(4, 6),
            "wide": np.array([2, 18]),
            "third": np.array(8),
            "narrow": np.array([2, 1]),
        },
    ),
    "one coordinate of an input": (
        [node("Gather", ["x", "one"], ["g"], axis=2), node("Relu", ["g"], ["y"])],
        {"one": np.array(1)},
    ),
    "outputs that are inputs": ([node("Identity", ["x"], ["y"])], {}),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str) -> None:
    nodes, weights = OPERATIONS[name]
    check(model(nodes, {"x": [2, 3, 4]}, ["y"], weights), {"x": normal(2, 3, 4)})


def test_inputs_and_weights_that_nothing_reads() -> None:
    proto = model(
        [node("Relu", ["x"], ["y"])],
        {"x": [2, 3], "z": [4]},
        ["y"],
        {"w": normal(5), "v": normal(2)},
    )
    imported = check(proto, {"x": normal(2, 3), "z": normal(4)})
    assert imported.shapes == {"x": (2, 3), "y": (2, 3)}
    assert not imported.weights


def test_names_that_texts_cannot_have() -> None:
    """Slashes, digits, functions, and two names that become one."""
    nodes = [
        node("Exp", ["0/x"], ["/layer/softmax"]),
        node("Abs", ["/layer/softmax"], ["softmax"]),
        node("Add", ["softmax", "/layer/softmax"], ["0_x"]),
    ]
    check(model(nodes, {"0/x": [3]}, ["0_x", "softmax"]), {"0/x": normal(3)})


def test_sparse_weights_are_compressed() -> None:
    dense = normal(5, 6) * (np.random.default_rng(3).random((5, 6)) < 0.3)
    values = numpy_helper.from_array(dense[dense != 0], "A")
    places = numpy_helper.from_array(np.argwhere(dense != 0), "A_places")
    weight = helper.make_sparse_tensor(values, places, dense.shape)
    proto = model(
        [node("MatMul", ["A", "x"], ["t"]), node("Relu", ["t"], ["y"])],
        {"x": [6, 3]},
        ["y"],
        sparse_weights=[weight],
    )
    imported = sparse.from_onnx(proto)
    inputs = {"x": normal(6, 3)}
    result = imported.simulate(inputs)
    np.testing.assert_allclose(imported.outputs(result)["y"], np.maximum(dense @ inputs["x"], 0))
    full = sparse.from_onnx(proto, formats={"A": "dd"})
    assert result.cycles < full.simulate(inputs).cycles


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model([node("Relu", ["x"], ["y"])], {"x": ["batch", 3]}, ["y"]), path)
    with pytest.raises(UserError, match=r"the shape of x is open: \(batch, 3\)"):
        sparse.from_onnx(path)
    imported = sparse.from_onnx(path, shapes={"x": (2, 3)})
    assert (
        imported.outputs(imported.simulate({"x": -np.ones((2, 3))}))["y"].tolist() == [[0] * 3] * 2
    )
    with pytest.raises(UserError, match="the shape of x is not that of the model"):
        sparse.from_onnx(path, shapes={"x": (2, 4)})
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="is not an ONNX file, or only a part of one"):
        sparse.from_onnx(path)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        sparse.from_onnx(tmp_path / "nothing.onnx")


def test_models_that_are_refused() -> None:
    x: Shapes = {"x": [4, 6]}
    table = [
        (
            model([node("Relu", ["x"], ["r"]), node("Gather", ["r", "r"], ["y"])], x, ["y"]),
            "Gather is not in index notation: an index that is not a constant",
            r"node 1 of the model, without a name: y = Gather\(r, r\)",
        ),
        (
            model([node("Floor", ["x"], ["y"])], x, ["y"]),
            "Floor is not an operation of index notation",
            "Relu|Selu",
        ),
        (
            model([node("Reshape", ["x", "s"], ["y"])], x, ["y"], {"s": np.array([6, 4])}),
            r"a reshape from \(4, 6\) to \(6, 4\), whose axes have no common factors",
            "Reshape",
        ),
        (
            model([node("Einsum", ["x"], ["y"], equation="...i->...")], x, ["y"]),
            r"the equation \.\.\.i->\.\.\. without all of its axes",
            "Einsum",
        ),
        (
            model([node("Cast", ["x"], ["y"], to=TensorProto.INT32)], x, ["y"]),
            "a program has one type",
            "Cast",
        ),
        (
            model([node("Relu", ["x"], ["y"])], x, ["y"], opset=11),
            "the model has opset 11",
            "opset 13",
        ),
    ]
    for proto, headline, more in table:
        with pytest.raises(UserError, match=headline) as caught:
            sparse.from_onnx(proto)
        assert caught.match(more)
        assert "test_onnx.py" in str(caught.value)
    with pytest.raises(UserError, match="this is not an ONNX model"):
        sparse.from_onnx(3)


ACTIVATIONS: dict[str, dict[str, float]] = {
    "Celu": {"alpha": 2.5},
    "Elu": {"alpha": 0.7},
    "HardSigmoid": {"alpha": 0.25},
    "HardSwish": {},
    "LeakyRelu": {"alpha": 1.5},
    "LogSoftmax": {"axis": 1},
    "Mish": {},
    "PRelu": {},
    "Selu": {},
    "Softplus": {},
    "Softsign": {},
}
SUMS = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")


def test_operations_that_are_formulas_of_others() -> None:
    x = 3 * normal(2, 3, 4)
    x[0, 1] = 30, -40, 2, 0
    slopes = {"slope": normal(4)}
    nodes = [
        node(name, ["x", "slope"] if name == "PRelu" else ["x"], [name], **attributes)
        for name, attributes in ACTIVATIONS.items()
    ]
    nodes += [
        node("Sum", ["x", "slope", "Elu"], ["Sum"]),
        node("Mean", ["x", "Elu", "slope"], ["Mean"]),
        node("RMSNormalization", ["x", "slope"], ["Norm"], axis=-1),
    ]
    outputs = [*ACTIVATIONS, "Sum", "Mean", "Norm"]
    check(model(nodes, {"x": [2, 3, 4]}, outputs, slopes, opset=23), {"x": x})


def test_reductions_that_are_formulas_of_others() -> None:
    x = np.abs(normal(2, 3, 4)) + 1
    names, nodes, axes = [], [], {"last": [2], "two": [0, -1]}
    for name in SUMS:
        for which in axes:
            for keeps in (0, 1):
                names.append(f"{name}_{which}_{keeps}")
                nodes.append(node(name, ["x", which], [names[-1]], keepdims=keeps))
    check(model(nodes, {"x": [2, 3, 4]}, names, axes), {"x": x})


def test_logarithms_of_sums_neither_overflow_nor_vanish() -> None:
    x = normal(3, 4)
    x[1] = 800, -900, 2, 0
    nodes = [
        node("LogSoftmax", ["x"], ["rows"]),
        node("ReduceLogSumExp", ["x", "last"], ["sums"], keepdims=0),
        node("Softplus", ["x"], ["each"]),
    ]
    proto = model(nodes, {"x": [3, 4]}, ["rows", "sums", "each"], {"last": [1]})
    imported = sparse.from_onnx(proto)
    outputs = imported.outputs(imported.simulate({"x": x}))
    np.testing.assert_allclose(outputs["rows"], special.log_softmax(x, axis=1), rtol=1e-12)
    np.testing.assert_allclose(outputs["sums"], special.logsumexp(x, axis=1), rtol=1e-12)
    np.testing.assert_allclose(outputs["each"], np.logaddexp(0, x), rtol=1e-12)


def test_choices_that_are_made_already() -> None:
    nodes = [
        node("Where", ["yes", "x", "w"], ["first"]),
        node("Where", ["no", "x", "w"], ["second"]),
        node("Where", ["no", "x", "two"], ["third"]),
    ]
    weights = {"yes": np.array([True]), "no": np.array(False), "w": normal(3, 1), "two": 2.0}
    check(model(nodes, {"x": [3, 4]}, ["first", "second", "third"], weights), {"x": normal(3, 4)})


def test_rows_of_one_value() -> None:
    nodes = [
        node("Softmax", ["x"], ["softmax"], axis=1),
        node("LogSoftmax", ["x"], ["logarithm"], axis=1),
        node("ReduceMax", ["x", "axes"], ["largest"], keepdims=0),
        node("ReduceLogSumExp", ["x", "axes"], ["sum"]),
        node("Transpose", ["x"], ["turned"], perm=[0, 2, 1]),
        node("LayerNormalization", ["turned", "gain", "shift"], ["norm"]),
    ]
    outputs = ["softmax", "logarithm", "largest", "sum", "norm"]
    weights = {"axes": [1], "gain": normal(1), "shift": normal(1)}
    check(model(nodes, {"x": [3, 1, 2]}, outputs, weights), {"x": normal(3, 1, 2)})


@pytest.mark.parametrize("fusion", ["layer", "all"])
def test_outputs_are_stored_however_the_program_is_fused(fusion: str) -> None:
    proto = model(
        [node("Relu", ["x"], ["a"]), node("MatMul", ["a", "W"], ["y"]), node("Abs", ["y"], ["z"])],
        {"x": [3, 5]},
        ["a", "y", "z"],
        {"W": normal(5, 4)},
    )
    imported, inputs = sparse.from_onnx(proto), {"x": normal(3, 5)}
    operands = imported.operands(inputs)
    expected = imported.expected(inputs)
    found = imported.program.search(operands, seconds=5, progress=False).program
    for program in (imported.program.fuse(fusion), found):
        outputs = imported.outputs(program.simulate(operands))
        for name in ("a", "y", "z"):
            np.testing.assert_allclose(outputs[name], expected[name], rtol=1e-12)


def test_inputs_and_formats_that_are_refused() -> None:
    imported = sparse.from_onnx(model([node("Relu", ["x"], ["y"])], {"x": [2, 3]}, ["y"]))
    for inputs, text in (
        ({}, "x is missing"),
        ({"x": normal(2, 3), "z": 1}, "the model has no input z"),
        ({"x": normal(3, 2)}, "x has another shape than in the model"),
    ):
        with pytest.raises(UserError, match=text):
            imported.simulate(inputs)
    proto = decoder(1, 3, 4, 2, 5)
    with pytest.raises(UserError, match="the format of Wq has 2 levels"):
        sparse.from_onnx(proto, formats={"Wq": "ds"})
    with pytest.raises(UserError, match="the program has no tensor Wz"):
        sparse.from_onnx(proto, formats={"Wz": "ds"})
    check_formats = sparse.from_onnx(proto, formats={"Wq": "dss"})
    inputs = {"x": normal(1, 3, 4)}
    np.testing.assert_allclose(
        check_formats.outputs(check_formats.simulate(inputs))["y"],
        check_formats.expected(inputs)["y"],
        rtol=1e-6,
    )
