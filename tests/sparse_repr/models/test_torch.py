"""Models of PyTorch: a graph like those of ``torch.export``, and real exports with torch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from t2s import sparse
from t2s.core.location import SourceLocation
from t2s.errors import UserError
from t2s.sparse_repr.models.torch_reader import statements_of_torch

HERE = SourceLocation("model.py", 1)


class Weights:
    """What is used of a ``torch.Tensor``."""

    def __init__(self, array: np.ndarray[Any, Any], layout: str = "torch.strided") -> None:
        self.array = array
        self.layout = layout

    def detach(self) -> Weights:
        return self

    cpu = to_dense = detach

    def numpy(self) -> np.ndarray[Any, Any]:
        return self.array


class Target:
    """An operator, which prints as torch's do."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"aten.{self.name}.default"


def graph(operations: list[tuple[str, str, tuple[Any, ...], tuple[int, ...]]]) -> Any:
    """An exported program: inputs x and the parameter w, then operations by name."""
    nodes = {
        "x": SimpleNamespace(op="placeholder", name="x", meta={"val": np.zeros((4, 6))}),
        "w": SimpleNamespace(op="placeholder", name="w"),
    }
    for name, operator, arguments, shape in operations:
        nodes[name] = SimpleNamespace(
            op="call_function",
            name=name,
            target=Target(operator),
            args=tuple(nodes[each] if isinstance(each, str) else each for each in arguments),
            kwargs={},
            users=(),
            meta={"val": np.zeros(shape)},
        )
    output = SimpleNamespace(op="output", name="output", args=((nodes[operations[-1][0]],),))
    specs = [
        SimpleNamespace(arg=SimpleNamespace(name="x"), target=None),
        SimpleNamespace(arg=SimpleNamespace(name="w"), target="layer.weight"),
    ]
    return SimpleNamespace(
        graph_module=SimpleNamespace(graph=SimpleNamespace(nodes=[*nodes.values(), output])),
        state_dict={"layer.weight": Weights(np.arange(18.0).reshape(3, 6), "torch.sparse_csr")},
        constants={},
        graph_signature=SimpleNamespace(input_specs=specs),
    )


def test_a_graph_of_operators() -> None:
    read = statements_of_torch(
        graph(
            [
                ("linear", "linear", ("x", "w"), (4, 3)),
                ("heads", "view", ("linear", [4, 3, 1]), (4, 3, 1)),
                ("y", "relu", ("heads",), (4, 3, 1)),
            ]
        ),
        HERE,
    )
    assert read.text == "linear(i,j) = x(i,k)*layer_weight(j,k)\ny(i,j) = relu(linear(i,j))"
    assert read.inputs == {"x": ("x", (4, 6))}
    assert read.outputs == {"y": ("y", (4, 3, 1))}
    assert read.sparse == {"layer_weight"}


def test_masks_and_outputs_in_another_order() -> None:
    read = statements_of_torch(
        graph(
            [
                ("mask", "eq", ("x", 0), (4, 6)),
                ("filled", "masked_fill", ("x", "mask", -1.5), (4, 6)),
                ("y", "t", ("filled",), (6, 4)),
            ]
        ),
        HERE,
    )
    assert read.text == ("filled(i,j) = where(x(i,j), x(i,j), (-1.5))\ny(j,i) = filled(i,j)")
    assert read.outputs == {"y": ("y", (6, 4))}


def test_operators_that_are_refused() -> None:
    with pytest.raises(UserError, match="sort is not an operation of index notation") as caught:
        statements_of_torch(graph([("y", "sort", ("x", 0), (6,))]), HERE)
    assert caught.match(r"in the order of the model: x, w, y \(this one\), output")
    with pytest.raises(UserError, match="a comparison with something else than zero"):
        statements_of_torch(graph([("y", "eq", ("x", 2), (4, 6))]), HERE)
    with pytest.raises(UserError, match="a part of an axis that is not one coordinate"):
        statements_of_torch(graph([("y", "slice", ("x", 1, 0, 2), (4, 2))]), HERE)


def test_pieces_are_cut_up_to_the_weights() -> None:
    """What nothing reads in whole has a statement for each of its parts that is read."""
    operations: list[tuple[str, str, tuple[Any, ...], tuple[int, ...]]] = [
        ("packed", "linear", ("x", "w"), (4, 3)),
        ("parts", "unflatten", ("packed", 1, [3, 1]), (4, 3, 1)),
        ("one", "select", ("parts", 1, 0), (4, 1)),
        ("other", "select", ("parts", 1, -1), (4, 1)),
        ("y", "mul", ("one", "other"), (4, 1)),
    ]
    read = statements_of_torch(graph(operations), HERE)
    assert read.text == (
        "packed_2(i) = x(i,k)*layer_weight_2(k)\n"
        "packed_0(i) = x(i,k)*layer_weight_0(k)\n"
        "y(i) = packed_0(i)*packed_2(i)"
    )
    np.testing.assert_array_equal(read.weights["layer_weight_2"], np.arange(12.0, 18))
    assert read.sparse >= {"layer_weight_0", "layer_weight_2"}


def test_one_coordinate_of_an_input() -> None:
    read = statements_of_torch(graph([("y", "select", ("x", 0, 2), (6,))]), HERE)
    assert read.text == "x_2(j) = x(i,j)*only_x_2(i)"
    np.testing.assert_array_equal(read.weights["only_x_2"], [0, 0, 1, 0])
    assert read.outputs == {"y": ("x_2", (6,))}


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match="models of PyTorch need the package torch"):
        sparse.from_torch(None, ())


def test_exports() -> None:
    torch = pytest.importorskip("torch")
    nn = torch.nn

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int = 8, heads: int = 2) -> None:
            super().__init__()
            self.heads = heads
            self.norm = nn.LayerNorm(width)
            self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
            self.more = nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 12), nn.SiLU(), nn.Linear(12, width)
            )

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape

            def split(rows: Any) -> Any:
                return rows.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

            n = self.norm(x)
            o = nn.functional.scaled_dot_product_attention(
                split(self.q(n)), split(self.k(n)), split(self.v(n))
            )
            x = x + self.o(o.transpose(1, 2).reshape(batch, length, width))
            return x + self.more(x)

    class Graph(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(5, 4), nn.Linear(4, 3)
            edges = (torch.rand(6, 6) < 0.3).double()
            edges[2] = 0
            self.register_buffer("A", edges)

        def forward(self, x: Any) -> Any:
            h = torch.relu(self.one(self.A @ x))
            h = nn.functional.dropout(h, training=self.training)
            return torch.log_softmax(torch.mm(self.A, self.two(h)), -1)

    class Masked(nn.Module):  # type: ignore[misc, name-defined]
        """One head, of which the output is transposed."""

        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind = kind
            self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))
            mask = torch.tril(torch.ones(5, 5, dtype=torch.bool))
            mask[4, 1] = False
            self.register_buffer("mask", mask)

        def forward(self, x: Any) -> Any:
            q, k, v = (part(x).view(5, 2, 3).transpose(0, 1) for part in (self.q, self.k, self.v))
            attend, low = nn.functional.scaled_dot_product_attention, float("-inf")
            scores = q @ k.transpose(1, 2)
            match self.kind:
                case "causal":
                    return attend(q, k, v, is_causal=True).transpose(0, 1)
                case "boolean":
                    return attend(q, k, v, attn_mask=self.mask).transpose(0, 1)
                case "where":
                    scores = torch.where(self.mask, scores, low)
                case "fill":
                    scores = scores.masked_fill(self.mask == 0, low)
                case "not":
                    scores = scores.masked_fill(~self.mask, -1e9)
            return (scores.softmax(-1) @ v).transpose(0, 1).reshape(5, 6)

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        """As PyTorch has it: queries, keys and values in one product."""

        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x, need_weights=False)[0]

    class FirstToken(nn.Module):  # type: ignore[misc, name-defined]
        """Packed products as models of GPT have them, and a class from the first row."""

        def __init__(self) -> None:
            super().__init__()
            self.packed, self.last = nn.Linear(6, 18), nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            q, k, v = self.packed(x).split(6, dim=-1)
            o = nn.functional.scaled_dot_product_attention(q, k, v)
            return self.last(o[:, 0])

    def layer() -> Any:
        return nn.TransformerEncoderLayer(8, 2, 12, activation="gelu", batch_first=True)

    torch.manual_seed(0)
    packed = [(Attention(), (2, 5, 8)), (FirstToken(), (2, 5, 6)), (layer(), (2, 5, 8))]
    masked = [(Masked(kind), (5, 6)) for kind in ("causal", "boolean", "where", "fill", "not")]
    decoders = [(Decoder(), (1, 6, 8)), (Decoder(), (3, 6, 8))]
    for module, shape in (*packed, *masked, *decoders, (Graph(), (6, 5))):
        argument = torch.randn(shape, dtype=torch.float64)
        imported = sparse.from_torch(module.double(), (argument,))
        (name,) = imported.inputs
        inputs = {name: argument.numpy()}
        found = imported.outputs(imported.simulate(inputs))
        for name, expected in imported.expected(inputs).items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-8)
