"""The models of the figure as programs, with inputs that have the counts of the data sets.

Features and biases are dense, weights compressed with four of ten elements, and adjacency matrices
compressed in both levels with values of 1, as FuseFlow describes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.fuseflow.published import GRAPHS
from t2s import sparse

HIDDEN = 16
DENSITY = 0.3984
"""Of weights: four of ten are drawn, and one in 255 of those is zero."""

_FORMATS = {"A": "ss", "W1": "ss", "W2": "ss", "V1": "ss", "V2": "ss"}

GCN = """
    T1(i,j) = A(i,k) * X(k,j)
    L1(i,h) = T1(i,j) * W1(j,h)
    B1(i,h) = L1(i,h) + b1(h)
    H(i,h) = relu(B1(i,h))
    T2(i,h) = A(i,k) * H(k,h)
    L2(i,c) = T2(i,h) * W2(h,c)
    B2(i,c) = L2(i,c) + b2(c)
    Z(i,c) = softmax(c; B2(i,c))
"""

GRAPHSAGE = """
    T1(i,j) = A(i,k) * X(k,j)
    N1(i,h) = T1(i,j) * W1(j,h)
    S1(i,h) = X(i,j) * V1(j,h)
    B1(i,h) = (S1(i,h) + c1(h)) + (N1(i,h) + b1(h))
    H(i,h) = relu(B1(i,h))
    T2(i,h) = A(i,k) * H(k,h)
    N2(i,c) = T2(i,h) * W2(h,c)
    S2(i,c) = H(i,h) * V2(h,c)
    B2(i,c) = (S2(i,c) + c2(c)) + (N2(i,c) + b2(c))
    Z(i,c) = relu(B2(i,c))
"""

TEXTS = {"GCN": GCN, "GraphSAGE": GRAPHSAGE}


def program(model: str) -> sparse.Program:
    """The program of a model."""
    text = TEXTS[model]
    formats = {name: one for name, one in _FORMATS.items() if f"{name}(" in text}
    return sparse.program(text, formats=formats)


def inputs(model: str, data: str) -> dict[str, Any]:
    """Random inputs of a model with the counts of a data set."""
    graph = GRAPHS[data]
    generator = np.random.default_rng(0)
    layers = ((graph.features, HIDDEN), (HIDDEN, graph.classes))
    arrays: dict[str, Any] = {
        "A": sparse.random_graph(graph.nodes, graph.entries, graph.walks),
        "X": generator.standard_normal((graph.nodes, graph.features), np.float32),
    }
    names = [("W", "b")] if model == "GCN" else [("W", "b"), ("V", "c")]
    for weights, bias in names:
        for number, shape in enumerate(layers, start=1):
            kept = generator.random(shape) < DENSITY
            values = generator.standard_normal(shape, np.float32)
            arrays[f"{weights}{number}"] = np.where(kept, values, np.float32(0))
            arrays[f"{bias}{number}"] = generator.standard_normal(shape[1], np.float32)
    return arrays
