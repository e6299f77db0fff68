"""Programs on tensors of blocks for tests: masked attention, and random ones with their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s import sparse

Array = np.ndarray[Any, Any]

ATTENTION = """
P(q,k) = M(q,k) * Q(q,d) * K(k,d)
S(q,k) = stored(softmax(k; P(q,k)))
O(q,d) = S(q,k) * V(k,d)
"""


def attention_inputs(n: int, d: int, b: int, seed: int) -> dict[str, Array]:
    """Queries, keys and values, and a mask of whole blocks, the diagonal ones among them."""
    random = np.random.default_rng(seed)
    count = -(-n // b)
    grid = (random.random((count, count)) < 0.3) | np.eye(count, dtype=bool)
    mask = np.kron(grid, np.ones((b, b)))[:n, :n]
    return {"M": mask, **{name: random.normal(size=(n, d)) for name in "QKV"}}


def attended(M: Array, Q: Array, K: Array, V: Array) -> Array:
    """Masked attention by numpy."""
    scores = np.where(M != 0, M * (Q @ K.T), -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights: Array = powers / powers.sum(axis=1, keepdims=True)
    return weights @ V


@dataclass(frozen=True)
class Case:
    """A program in blocks, its inputs, and what its statements assign."""

    in_blocks: Any
    inputs: dict[str, Array]
    expected: dict[str, Array]

    @property
    def last(self) -> str:
        return list(self.expected)[-1]


def random_case(seed: int) -> Case:
    """Two or three statements over matrices, with blocks of random sizes, some ragged or empty."""
    random = np.random.default_rng(seed)
    extent = {name: int(random.integers(1, 14)) for name in "ijkl"}
    size = {name: int(random.choice([1, 2, 4, 16])) for name in "ijkl"}

    def format_of(variables: str, levels: tuple[str, ...]) -> str:
        sizes = ",".join(str(size[name]) for name in variables)
        return f"{random.choice(levels)}[{sizes}]"

    def matrix(variables: str, share: float) -> Array:
        shape = tuple(extent[name] for name in variables)
        values = random.normal(size=shape) * (random.random(shape) < share)
        if random.random() < 0.3:
            values[: shape[0] // 2] = 0
        return values

    share = float(random.choice([0.0, 0.1, 0.4, 1.0]))
    inputs = {
        "A": matrix("ij", share),
        "B": matrix("jk", 1.0),
        "D": matrix("ik", 0.3),
        "b": matrix("k", 1.0),
        "W": matrix("kl", 0.7),
    }
    formats = {
        "A": format_of("ij", ("ds", "ss", "dd")),
        "B": format_of("jk", ("dd",)),
        "D": format_of("ik", ("ds", "ss")),
        "W": format_of("kl", ("ds", "dd")),
    }
    A, B, D, b, W = (inputs[name] for name in "ABDbW")
    first, value = [
        ("T(i,k) = A(i,j)*B(j,k)", A @ B),
        ("T(i,k) = A(i,j)*B(j,k) + D(i,k)", A @ B + D),
        ("T(i,k) = D(i,k)*A(i,j)*B(j,k)", D * (A @ B)),
        ("T(i,k) = relu(D(i,k)) - D(i,k)/2", np.maximum(D, 0) - D / 2),
    ][int(random.integers(4))]
    second, result = [
        ("R(i,l) = T(i,k)*W(k,l)", value @ W),
        ("R(i,l) = relu(sum(k, T(i,k)*W(k,l)))", np.maximum(value @ W, 0)),
        ("R(i,k) = relu(T(i,k) + b(k))", np.maximum(value + b, 0)),
        ("R(k) = T(i,k)*T(i,k)", (value * value).sum(0)),
        ("R(i,k) = exp(T(i,k))", np.exp(value)),
    ][int(random.integers(5))]
    text = f"{first}\n{second}"
    used = [name for name in inputs if f"{name}(" in text]
    stored = {name: format for name, format in formats.items() if name in used}
    divided = {"b": f"d[{size['k']}]"} if "b" in used else {}
    return Case(
        in_blocks=sparse.program(text, formats={**stored, **divided}),
        inputs={name: inputs[name] for name in used},
        expected={"T": value, "R": result},
    )
