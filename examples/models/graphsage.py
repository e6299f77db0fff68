"""GraphSAGE in two layers [Hamilton, Ying and Leskovec, algorithm 1]: a node and its neighbors.

Both paths of a layer read the features, and meet again in a sum.  Streamed, the path of the node
itself waits for that of its neighbors row by row.
"""

from __future__ import annotations

import numpy as np

from t2s import sparse

sage = sparse.program(
    """
    N1(i,j) = A(i,k) * X(k,j)
    P1(i,h) = N1(i,j) * Wn1(j,h)
    S1(i,h) = X(i,j) * Ws1(j,h)
    H(i,h) = relu(S1(i,h) + P1(i,h) + b1(h))
    N2(i,h) = A(i,k) * H(k,h)
    P2(i,c) = N2(i,h) * Wn2(h,c)
    S2(i,c) = H(i,h) * Ws2(h,c)
    Y(i,c) = relu(S2(i,c) + P2(i,c) + b2(c))
    """,
    formats={"A": "ds", "Wn1": "ds", "Ws1": "ds", "Wn2": "ds", "Ws2": "ds"},
)


def inputs(seed: int = 0) -> dict[str, object]:
    """A graph of 50 nodes, 6 of them alone; 12 features, 8 hidden channels, 3 results."""
    generator = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape) * (generator.random(shape) < 0.4)

    return {
        "A": sparse.random_graph(50, 160, seed=seed, isolated=6),
        "X": generator.standard_normal((50, 12)),
        "Wn1": weights(12, 8),
        "Ws1": weights(12, 8),
        "Wn2": weights(8, 3),
        "Ws2": weights(8, 3),
        "b1": generator.standard_normal(8),
        "b2": generator.standard_normal(3),
    }


def main() -> None:
    arrays = inputs()
    expected = sage.interpret(arrays)["Y"]
    for fusion in ("none", "layer", "all"):
        result = sage.fuse(fusion).simulate(arrays)
        np.testing.assert_allclose(result["Y"], expected, atol=1e-12)
        print(f"{fusion:6}{result.cycles:8,} cycles in {len(result.runs)} graphs")


if __name__ == "__main__":
    main()
