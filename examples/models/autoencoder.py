"""A sparse autoencoder: two layers with compressed weights; a batch of dense inputs."""

from __future__ import annotations

import numpy as np

from t2s import sparse

autoencoder = sparse.program(
    """
    E(b,h) = X(b,i) * We(i,h)
    H(b,h) = relu(E(b,h) + be(h))
    D(b,i) = H(b,h) * Wd(h,i)
    Y(b,i) = sigmoid(D(b,i) + bd(i))
    """,
    formats={"We": "ds", "Wd": "ds"},
)


def inputs(seed: int = 0) -> dict[str, object]:
    """4 inputs of 48 values, 12 hidden ones, a tenth of the weights."""
    generator = np.random.default_rng(seed)

    def weights(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape) * (generator.random(shape) < 0.1)

    return {
        "X": generator.random((4, 48)),
        "We": weights(48, 12),
        "be": generator.standard_normal(12),
        "Wd": weights(12, 48),
        "bd": generator.standard_normal(48),
    }


def main() -> None:
    arrays = inputs()
    expected = autoencoder.interpret(arrays)["Y"]
    for fusion in ("none", "layer"):
        result = autoencoder.fuse(fusion).simulate(arrays)
        np.testing.assert_allclose(result["Y"], expected)
        print(f"{fusion:6}{result.cycles:8,} cycles in {len(result.runs)} graphs")


if __name__ == "__main__":
    main()
