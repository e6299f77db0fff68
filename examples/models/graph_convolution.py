"""A graph convolutional network of two layers [Kipf and Welling, equation 9], fused in three ways.

Each statement is a graph by itself, or passes its result on.  In a layer nothing is computed twice:
its cycles are those of the busiest statement, not their sum.  The second layer gathers rows of the
first one's result; in one graph with it, they are computed again for every edge.
"""

from __future__ import annotations

import numpy as np

from t2s import sparse

gcn = sparse.program(
    """
    T1(i,j) = A(i,k) * X(k,j)         # the features of the neighbors
    L1(i,h) = T1(i,j) * W1(j,h)
    H(i,h) = relu(L1(i,h) + b1(h))
    T2(i,h) = A(i,k) * H(k,h)
    L2(i,c) = T2(i,h) * W2(h,c)
    Z(i,c) = softmax(c; L2(i,c) + b2(c))
    """,
    formats={"A": "ds", "W1": "ds", "W2": "ds"},
)


def inputs(seed: int = 0) -> dict[str, object]:
    """A graph of 60 nodes and 240 entries, 20 features, 8 hidden channels, 4 classes."""
    generator = np.random.default_rng(seed)
    first = generator.standard_normal((20, 8)) * (generator.random((20, 8)) < 0.4)
    second = generator.standard_normal((8, 4)) * (generator.random((8, 4)) < 0.4)
    return {
        "A": sparse.random_graph(60, 240, seed=seed),
        "X": generator.standard_normal((60, 20)),
        "W1": first,
        "W2": second,
        "b1": generator.standard_normal(8),
        "b2": generator.standard_normal(4),
    }


def main() -> None:
    arrays = inputs()
    expected = gcn.interpret(arrays)["Z"]
    for fusion in ("none", "layer", "all"):
        result = gcn.fuse(fusion).simulate(arrays)
        np.testing.assert_allclose(result["Z"], expected)
        print(f"{fusion:6}{result.cycles:8,} cycles in {len(result.runs)} graphs")


if __name__ == "__main__":
    main()
