"""Models as programs, their values by numpy, and graphs and inputs as real data have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A program as text, its formats and inputs, and the values of tensors by numpy."""

    text: str
    formats: dict[str, str]
    inputs: dict[str, Array]
    expected: dict[str, Array] = field(repr=False)


def adjacency(generator: np.random.Generator, nodes: int, entries: int) -> Array:
    """A directed graph: some nodes are alone, some have edges to themselves."""
    array = np.zeros((nodes, nodes))
    if entries:
        places = generator.choice(nodes * nodes, min(entries, nodes * nodes), replace=False)
        array.reshape(-1)[places] = generator.random(len(places)) + 0.1
    if nodes > 3:
        array[nodes // 2], array[:, nodes // 3] = 0, 0
    return array


def softmax(x: Array) -> Array:
    """Over the last axis; a row of minus infinities is zero."""
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - x.max(-1, keepdims=True))
    return np.nan_to_num(powers / powers.sum(-1, keepdims=True))


def layernorm(x: Array) -> Array:
    """Over the last axis."""
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def gelu(x: Array) -> Array:
    """By the hyperbolic tangent."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _weights(generator: np.random.Generator, *shape: int, density: float = 1.0) -> Array:
    return generator.normal(size=shape) * (generator.random(shape) < density)


def gcn(nodes: int, entries: int, features: int = 5, hidden: int = 4, classes: int = 3) -> Model:
    """A graph convolutional network of two layers (Kipf and Welling 2017, eq. 9)."""
    generator = np.random.default_rng(nodes)
    a, x = adjacency(generator, nodes, entries), _weights(generator, nodes, features)
    w1, b1 = _weights(generator, features, hidden, density=0.4), _weights(generator, hidden)
    w2, b2 = _weights(generator, hidden, classes, density=0.6), _weights(generator, classes)
    h = np.maximum(a @ x @ w1 + b1, 0)
    text = """
        T(i,j) = A(i,k) * X(k,j)
        H(i,h) = relu(sum(j, T(i,j) * W1(j,h)) + b1(h))
        U(i,h) = A(i,k) * H(k,h)
        Z(i,c) = softmax(c; U(i,h) * W2(h,c) + b2(c))
    """
    return Model(
        text=text,
        formats={"A": "ds", "W1": "ds", "W2": "ds"},
        inputs={"A": a, "X": x, "W1": w1, "b1": b1, "W2": w2, "b2": b2},
        expected={"T": a @ x, "H": h, "Z": softmax(a @ h @ w2 + b2)},
    )


def sage() -> Model:
    """GraphSAGE of two layers, whose nodes also have a path of their own."""
    generator = np.random.default_rng(11)
    a, x = adjacency(generator, 8, 20), _weights(generator, 8, 5, density=0.5)
    text, inputs, h = "", {"A": a, "X0": x}, x
    for layer, (rows, columns) in enumerate(((5, 4), (4, 3)), start=1):
        before, after = f"X{layer - 1}", f"X{layer}"
        text += f"""
            N{layer}(i,j) = A(i,k) * {before}(k,j)
            S{layer}(i,h) = {before}(i,j) * W{layer}(j,h)
            {after}(i,h) = relu(S{layer}(i,h) + sum(j, N{layer}(i,j) * V{layer}(j,h)) + b{layer}(h))
        """
        own, other = _weights(generator, rows, columns), _weights(generator, rows, columns)
        bias = _weights(generator, columns)
        inputs |= {f"W{layer}": own, f"V{layer}": other, f"b{layer}": bias}
        h = np.maximum(h @ own + a @ h @ other + bias, 0)
    return Model(text=text, formats={"A": "ss", "X0": "ds"}, inputs=inputs, expected={"X2": h})


def autoencoder(batch: int) -> Model:
    """A sparse autoencoder: two layers whose weights are mostly zero."""
    generator = np.random.default_rng(batch)
    x = _weights(generator, batch, 12)
    encoder, decoder = (_weights(generator, *shape, density=0.2) for shape in ((12, 5), (5, 12)))
    b1, b2 = _weights(generator, 5), _weights(generator, 12)
    h = np.maximum(x @ encoder + b1, 0)
    text = """
        h(b,j) = relu(sum(i, x(b,i) * E(i,j)) + bE(j))
        y(b,i) = h(b,j) * D(j,i) + bD(i)
    """
    return Model(
        text=text,
        formats={"E": "ds", "D": "ds"},
        inputs={"x": x, "E": encoder, "bE": b1, "D": decoder, "bD": b2},
        expected={"h": h, "y": h @ decoder + b2},
    )


def perceptron() -> Model:
    """Three layers without anything sparse, and a softmax."""
    generator = np.random.default_rng(5)
    x, layers = _weights(generator, 3, 6), [(6, 4), (4, 4), (4, 2)]
    weights = [_weights(generator, *shape) for shape in layers]
    text = """
        H1(b,j) = tanh(sum(i, X(b,i) * W1(i,j)))
        H2(b,k) = gelu(sum(j, H1(b,j) * W2(j,k)))
        Y(b,c) = softmax(c; H2(b,k) * W3(k,c))
    """
    h1 = np.tanh(x @ weights[0])
    y = softmax(gelu(h1 @ weights[1]) @ weights[2])
    inputs = {"X": x} | {f"W{n}": w for n, w in enumerate(weights, start=1)}
    return Model(text=text, formats={}, inputs=inputs, expected={"H1": h1, "Y": y})


def decoder(sequence: int = 12, width: int = 8, heads: int = 2, block: int = 4) -> Model:
    """A decoder of a transformer, whose attention has a mask of blocks."""
    generator = np.random.default_rng(block)
    x, size, inner = _weights(generator, sequence, width), width // heads, 3 * width
    place = np.arange(sequence) // block
    near = abs(place[:, None] - place[None, :]) <= 1
    mask = (near | (place[None, :] == 0) | (place[:, None] == 0)).astype(float)
    shapes = dict.fromkeys(("WQ", "WK", "WV"), (width, heads, size))
    shapes |= {"WO": (heads, size, width), "W1": (width, inner), "W2": (inner, width)}
    shapes |= {"bO": (width,), "b1": (inner,), "b2": (width,)}
    given = {name: _weights(generator, *shape) for name, shape in shapes.items()}
    text = f"""
        N(s,e) = layernorm(e; X(s,e))
        Q(h,s,d) = N(s,e) * WQ(e,h,d)
        K(h,s,d) = N(s,e) * WK(e,h,d)
        V(h,s,d) = N(s,e) * WV(e,h,d)
        P(h,s,t) = M(s,t) * Q(h,s,d) * K(h,t,d) / {float(np.sqrt(size))!r}
        S(h,s,t) = stored(softmax(t; P(h,s,t)))
        O(s,h,d) = S(h,s,t) * V(h,t,d)
        R(s,e) = O(s,h,d) * WO(h,d,e) + bO(e) + X(s,e)
        N2(s,e) = layernorm(e; R(s,e))
        F(s,f) = gelu(sum(e, N2(s,e) * W1(e,f)) + b1(f))
        Y(s,e) = F(s,f) * W2(f,e) + b2(e) + R(s,e)
    """
    q, k, v = (np.einsum("se,ehd->hsd", layernorm(x), given[name]) for name in ("WQ", "WK", "WV"))
    scores = np.where(mask > 0, np.einsum("hsd,htd->hst", q, k) / np.sqrt(size), -np.inf)
    o = np.einsum("hst,htd->shd", softmax(scores), v)
    r = np.einsum("shd,hde->se", o, given["WO"]) + given["bO"] + x
    y = gelu(layernorm(r) @ given["W1"] + given["b1"]) @ given["W2"] + given["b2"] + r
    return Model(
        text=text,
        formats={"M": "ds"},
        inputs={"X": x, "M": mask, **given},
        expected={"S": softmax(scores), "O": o, "R": r, "Y": y},
    )


MODELS: dict[str, Callable[[], Model]] = {
    "gcn": lambda: gcn(9, 24),
    "gcn of one node": lambda: gcn(1, 1, hidden=1, classes=1),
    "gcn without edges": lambda: gcn(4, 0),
    "sage": sage,
    "autoencoder of one": lambda: autoencoder(1),
    "autoencoder": lambda: autoencoder(4),
    "perceptron": perceptron,
    "decoder": decoder,
}
