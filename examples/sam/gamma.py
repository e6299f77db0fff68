"""Gamma: rows of the result as sums of scaled rows [SAM, sec. 6.5].

Gamma multiplies sparse matrices row by row: the entries of a row of B choose rows of C, and a
merger of many ways adds these up.  That is the graph of the paper's Fig. 4 with a parallelizer
behind the intersection, and a vector reducer that joins the threads again.  Here the schedule says
so: ``parallelize(k, threads)`` deals the coordinates of k to copies of what is inside of their
loop (the scanners of the rows of C, the arrays, the multipliers), and a serializer in front of the
reducer joins the copies in the order in which k was dealt out.

Threads hide how long it takes to find the rows of C, but the reducer takes one product per cycle
whatever their number; Gamma's merger too puts one element per cycle.  What makes it fast are
several such PEs, each with rows of its own: ``parallelize(i, pes)``.
"""

from __future__ import annotations

import numpy as np

from t2s import Var, sparse


def gamma(threads: int = 4, pes: int = 1) -> sparse.Kernel:
    """X = B C by rows, on ``pes`` PEs with ``threads`` scanners of rows of C each."""
    i, j, k = Var("i"), Var("j"), Var("k")
    B, C, X = (sparse.Tensor(name, sparse.dcsr) for name in "BCX")
    X[i, j] = B[i, k] * C[k, j]
    schedule = sparse.Schedule().reorder(i, k, j)
    if pes > 1:
        schedule = schedule.parallelize(i, pes)
    return sparse.compile(X, schedule.parallelize(k, threads) if threads > 1 else schedule)


def operands(size: int = 40, density: float = 0.1) -> dict[str, np.ndarray]:
    """Square matrices of small integers."""
    generator = np.random.default_rng(3)
    shape = size, size
    return {
        name: generator.integers(1, 9, shape) * (generator.random(shape) < density) * 1.0
        for name in "BC"
    }


def design() -> sparse.Kernel:
    """What ``t2s run`` runs."""
    return gamma()


def main() -> None:
    given = operands()
    for pes, threads in ((1, 1), (1, 4), (4, 1)):
        result = gamma(threads, pes).simulate(given)
        np.testing.assert_array_equal(result.output, given["B"] @ given["C"])
        print(f"{pes} PEs with {threads} threads: {result.cycles} cycles")


if __name__ == "__main__":
    main()
