"""A decoder of a transformer as PyTorch or ONNX have it: attention in heads, then two layers.

Heads are an index variable of weights, where a framework reshapes; ``sparse.from_onnx`` and
``sparse.from_torch`` write such a program for a model.
"""

from __future__ import annotations

import numpy as np

from t2s import sparse

decoder = sparse.program(
    """
    N(s,e) = layernorm(e; X(s,e))
    Q(h,s,d) = N(s,e) * WQ(e,h,d)
    K(h,s,d) = N(s,e) * WK(e,h,d)
    V(h,s,d) = N(s,e) * WV(e,h,d)
    P(h,s,t) = M(s,t) * Q(h,s,d) * K(h,t,d)
    S(h,s,t) = stored(softmax(t; P(h,s,t)))
    O(s,h,d) = S(h,s,t) * V(h,t,d)
    R(s,e) = O(s,h,d) * WO(h,d,e) + X(s,e)
    N2(s,e) = layernorm(e; R(s,e))
    F1(s,f) = N2(s,e) * W1(e,f)
    F(s,f) = gelu(F1(s,f) + b1(f))
    Y(s,e) = F(s,f) * W2(f,e) + R(s,e)
    """,
    formats={"M": "ds"},
)


def inputs(seed: int = 0) -> dict[str, object]:
    """16 elements of width 8, two heads, a causal mask."""
    generator = np.random.default_rng(seed)
    shapes = dict.fromkeys(("WQ", "WK", "WV"), (8, 2, 4))
    shapes |= {"WO": (2, 4, 8), "W1": (8, 24), "b1": (24,), "W2": (24, 8), "X": (16, 8)}
    arrays = {name: generator.standard_normal(shape) for name, shape in shapes.items()}
    return {"M": np.tril(np.ones((16, 16))), **arrays}


def main() -> None:
    arrays = inputs()
    expected = decoder.interpret(arrays)["Y"]
    for fusion in ("none", "layer"):
        result = decoder.fuse(fusion).simulate(arrays)
        np.testing.assert_allclose(result["Y"], expected)
        print(f"{fusion:6}{result.cycles:8,} cycles in {len(result.runs)} graphs")
    worst = max(result.runs, key=lambda run: run.cycles)
    print(f"{worst.name} takes {worst.cycles:,} of them")


if __name__ == "__main__":
    main()
