"""One attention head, ``O = softmax(Q Kᵀ / √d) V``, with the scores kept on the chip.

Six functions, and what they exchange is the whole question.  As written, each stores its results in
memory, and the next one waits until all of them are there.  With ``stream`` they are one pipeline:
blocks of eight queries are scored, their largest score is found, and exponentials and sums follow a
block behind.  Only S has to wait for that, in a FIFO of one block of scores: t2s finds its depth.

Run it with ``python examples/attention/attention.py``.
"""

from dataclasses import dataclass

import numpy as np

import t2s
from t2s import Float, Func, ImageParam, RDom

LOWEST = -3.0e38
"""Less than every score: where the search for the largest one starts."""
STEPS = (
    "the definition: each function in memory",
    "a PE for each column of O, dot products of vectors",
    "streams: nothing between the functions in memory",
    "buffers: Q, K and V are loaded once",
)


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """``queries`` vectors of ``width`` numbers, ``block`` of them at a time; as many keys."""

    queries: int
    width: int
    block: int


TINY = Sizes(queries=16, width=8, block=8)
SMALL = Sizes(queries=64, width=32, block=8)


def design(n: Sizes, step: int = len(STEPS) - 1) -> Func:
    """O after ``step`` steps."""
    Q, K, V = (ImageParam(Float(32), 2, name=name) for name in "QKV")
    S, largest, E, total, weighted, O = t2s.funcs("S largest E total weighted O")  # noqa: E741
    i, j, c = t2s.variables("i j c")
    k = RDom(0, n.width, name="k")
    # each sum over the keys has a loop of its own
    jl, jt = (RDom(0, n.queries, name=name) for name in ("jl", "jt"))
    S[i, j] = 0.0
    S[i, j] += Q[i, k] * K[j, k]
    largest[i] = LOWEST
    largest[i] = t2s.max(largest[i], S[i, jl])
    # the largest exponent is 0, so that none of them overflows
    E[i, j] = t2s.exp((S[i, j] - largest[i]) * n.width**-0.5)
    total[i] = 0.0
    total[i] += E[i, jt]
    weighted[i, c] = 0.0
    weighted[i, c] += E[i, jt] * V[jt, c]
    O[i, c] = weighted[i, c] / total[i]
    O.bound(i, 0, n.queries).bound(c, 0, n.width)
    if step == 0:
        return O

    # All functions take blocks of queries in the same order.  Inside of a block the queries ii are
    # innermost, so that a sum is added to only every block-th cycle.
    ii, once = t2s.variables("ii once")
    nests = {S: (k, ii, j), largest: (ii, jl), total: (ii, jt), weighted: (c, ii, jt), O: (c, ii)}
    for func, inner in nests.items():
        # a loop of one iteration around all of them: K and V are buffered for the whole of it
        func.split(i, once, i, n.queries).split(i, i, ii, n.block).reorder(*inner, i, once)
    S.vload(Q, K)
    weighted.unroll(c)
    O.unroll(c)
    if step == 1:
        return O

    # one unit computes each exponential, for its sum and for all columns
    exponent, scaler, largest_feeder = t2s.funcs("exponent scaler largest_feeder")
    weighted.isolate_producer(E, exponent).forward(exponent, c)
    total.isolate_producer(E, exponent)
    exponent.isolate_producer(largest, largest_feeder)
    largest_feeder.remove(jt)
    exponent.buffer(largest_feeder, i)
    O.isolate_producer(total, scaler).forward(scaler, c)
    largest.stream(S)
    exponent.stream(S)
    largest_feeder.stream(largest)
    O.stream(weighted)
    scaler.stream(total)
    if step == 2:
        return O

    Q_loader, Q_feeder, K_loader, K_feeder, V_loader, V_feeder = t2s.funcs(
        "Q_loader Q_feeder K_loader K_feeder V_loader V_feeder"
    )
    S.isolate_producer_chain(Q, Q_loader, Q_feeder).isolate_producer_chain(K, K_loader, K_feeder)
    weighted.isolate_producer_chain(V, V_loader, V_feeder)
    Q_loader.remove(j)
    Q_feeder.buffer(Q_loader, i)
    K_loader.remove(ii, i)
    K_feeder.buffer(K_loader, once)
    V_loader.remove(ii, i)
    V_feeder.buffer(V_loader, once)
    return O


def matrices(n: Sizes) -> dict[str, np.ndarray]:
    """Random queries, keys and values."""
    generator = np.random.default_rng(0)
    shape = n.queries, n.width
    return {name: generator.standard_normal(shape, np.float32) for name in "QKV"}


def expected(inputs: dict[str, np.ndarray]) -> np.ndarray:
    """The same head with numpy."""
    scores = inputs["Q"] @ inputs["K"].T * np.float32(inputs["Q"].shape[1] ** -0.5)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ inputs["V"] / weights.sum(axis=1, keepdims=True)


O = design(SMALL)  # noqa: E741


def main() -> None:
    inputs = matrices(SMALL)
    print(f"{'step':<53}{'cycles':>11}{'utilization':>13}")
    for step, title in enumerate(STEPS):
        graph = design(SMALL, step).lower()
        result = t2s.simulate(graph, inputs, device="arria10")
        np.testing.assert_allclose(result.outputs["O"], expected(inputs), atol=1e-5)
        print(f"{step} {title:<51}{result.cycles:>11,}{result.utilization:>13.1%}")
    scores = graph.channel("S_to_exponent").capacity
    print(f"\nS waits for the largest of its row in a FIFO of {scores} scores")


if __name__ == "__main__":
    main()
