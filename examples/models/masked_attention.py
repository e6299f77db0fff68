"""An attention head with a mask of blocks: products of queries and keys only where it has them.

The mask drives the product, so scores that it lacks are never computed; its rows are those of the
softmax, too, which ``stored`` says.
"""

from __future__ import annotations

import numpy as np

from t2s import sparse

attention = sparse.program(
    """
    P(s,t) = M(s,t) * Q(s,d) * K(t,d)
    S(s,t) = stored(softmax(t; P(s,t)))
    O(s,d) = S(s,t) * V(t,d)
    """,
    formats={"M": "ds"},
)


def mask(length: int, block: int) -> np.ndarray:
    """The diagonal blocks, their neighbors, and the first block of rows and of columns."""
    at = np.arange(length) // block
    near = abs(at[:, None] - at[None, :]) <= 1
    return (near | (at[:, None] == 0) | (at[None, :] == 0)).astype(float)


def inputs(seed: int = 0) -> dict[str, object]:
    """Sequences of 32 elements in blocks of 4, heads of 8."""
    generator = np.random.default_rng(seed)
    arrays = {name: generator.standard_normal((32, 8)) for name in "QKV"}
    return {"M": mask(32, 4), **arrays}


def main() -> None:
    arrays = inputs()
    expected = attention.interpret(arrays)["O"]
    pattern = np.count_nonzero(arrays["M"])
    print(f"{pattern} of {32 * 32} scores")
    for fusion in ("none", "layer"):
        result = attention.fuse(fusion).simulate(arrays)
        np.testing.assert_allclose(result["O"], expected)
        print(f"{fusion:6}{result.cycles:8,} cycles in {len(result.runs)} graphs")


if __name__ == "__main__":
    main()
