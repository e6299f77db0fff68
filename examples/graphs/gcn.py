"""A graph convolutional network: two layers as one statement, and what the order of sums costs.

A layer is ``max(A X W, 0)``: each node adds up what its neighbors have (A is sparse), W mixes their
features, and what is negative becomes zero.  A sum inside of another one says which product comes
first.  In ``A (X W)`` only the features that are set are multiplied by W; in ``(A X) W`` a node has
those of all its neighbors by then, which are many more.

Run it with ``python examples/graphs/gcn.py``.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse as scipy_sparse

from t2s import sparse

FORMATS = {"A": "ds", "X": "ds"}
"""A and X by rows; W and V are dense."""
WEIGHTS_FIRST = "H(i,k) = max(sum(j, A(i,j) * sum(f, X(j,f) * W(f,k))), 0)"
NEIGHBORS_FIRST = "H(i,k) = max(sum(f, sum(j, A(i,j) * X(j,f)) * W(f,k)), 0)"
NETWORK = (
    "O(i,c) = sum(j, A(i,j) * sum(k, max(sum(l, A(j,l) * sum(f, X(l,f) * W(f,k))), 0) * V(k,c)))"
)


def network(
    nodes: int = 40, features: int = 24, hidden: int = 6, classes: int = 3
) -> dict[str, np.ndarray | scipy_sparse.csr_array]:
    """A graph in which few nodes have many neighbors, features of which few are set, weights."""
    generator = np.random.default_rng(0)
    popular = 1 / np.arange(1, nodes + 1)
    friends = generator.random((nodes, nodes)) < np.outer(popular, popular) * 4
    linked = (friends | friends.T | np.eye(nodes, dtype=bool)).astype(float)
    degree = linked.sum(axis=1)
    return {
        "A": scipy_sparse.csr_array(linked / np.sqrt(np.outer(degree, degree))),
        "X": scipy_sparse.random_array((nodes, features), density=0.3, rng=generator).tocsr(),
        "W": generator.standard_normal((features, hidden)),
        "V": generator.standard_normal((hidden, classes)),
    }


def kernel(text: str, schedule: str = "") -> sparse.Kernel:
    """A statement in these formats."""
    return sparse.compile(sparse.parse(text, FORMATS), sparse.schedule(schedule))


def design() -> sparse.Kernel:
    """What ``t2s run`` runs."""
    return kernel(WEIGHTS_FIRST)


def main() -> None:
    inputs = network()
    A, X, W, V = (inputs[name] for name in "AXWV")
    layer = np.maximum(A @ (X @ W), 0)
    for title, text, schedule, expected in (
        ("one layer, A (X W)", WEIGHTS_FIRST, "", layer),
        ("one layer, (A X) W", NEIGHBORS_FIRST, "", layer),
        ("A (X W) on four copies", WEIGHTS_FIRST, "parallelize(i, 4), parallelize(j, 4)", layer),
        ("both layers", NETWORK, "", A @ (layer @ V)),
    ):
        compiled = kernel(text, schedule)
        given = {name: inputs[name] for name in "AXWV" if f"{name}(" in text}
        result = compiled.simulate(given)
        np.testing.assert_allclose(result.output, expected, atol=1e-12)
        stages = " + ".join(f"{stage.cycles:,}" for stage in result.stages)
        print(f"{title:<24}{result.cycles:>7,} cycles = {stages}")
    print(f"\n{design()}")


if __name__ == "__main__":
    main()
