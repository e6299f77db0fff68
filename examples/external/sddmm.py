"""A sampled product on three machines: a systolic array, a library, and loops on this CPU.

A(i,j) = B(i,j) * C(i,k) * D(k,j) with B sparse (SDDMM; [Mosaic, Figs. 16 and 19]).  The array
computes all of C times D and streams on its device sample it, exact to the cycle; BLAS computes the
same product here, and loops sample it; loops alone compute only what B has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.gemm.chains import TINY, gemm
from t2s import Float, Var, external, sparse

i, j, k = Var("i"), Var("j"), Var("k")
A, B = sparse.Tensor("A", sparse.csr), sparse.Tensor("B", sparse.csr)
C, D = sparse.Tensor("C", sparse.dense(2)), sparse.Tensor("D", sparse.dense(2))
A[i, j] = B[i, j] * C[i, k] * D[k, j]

LINK = external.HostLink(name="5 GB/s", latency=10e-6, bytes_per_second=5e9)
N = 64
"""The extents that the array is made for."""


def schedules() -> dict[str, sparse.Schedule]:
    """What each machine does."""
    array = external.from_design(gemm(TINY), device="arria10", link=LINK)
    return {
        "systolic array, streams": sparse.Schedule()
        .map(C[i, k] * D[k, j], array)
        .streams("arria10"),
        "BLAS, loops": sparse.Schedule().map(C[i, k] * D[k, j], external.blas.sgemm),
        "loops alone": sparse.Schedule().assume("1 == 1"),
    }


def inputs(density: float = 0.1, n: int = N) -> dict[str, Any]:
    """B with so much of it stored, C and D of small integers."""
    generator = np.random.default_rng(1)
    sampled = generator.integers(1, 4, (n, n)) * (generator.random((n, n)) < density)
    return {
        "B": sampled,
        "C": generator.integers(-3, 4, (n, n)),
        "D": generator.integers(-3, 4, (n, n)),
    }


def results(given: dict[str, Any]) -> dict[str, external.PlanResult]:
    """What each machine takes; the second run of each, for the first one compiles loops."""
    plans = {name: sparse.compile(A, schedule) for name, schedule in schedules().items()}
    for plan in plans.values():
        plan.run(given, type=Float(32))
    return {name: plan.run(given, type=Float(32)) for name, plan in plans.items()}


def main() -> None:
    given = inputs()
    expected = given["B"] * (given["C"] @ given["D"])
    for name, result in results(given).items():
        right = "right" if np.array_equal(result.output, expected) else "WRONG"
        print(f"{name}: {result.times}, {result.cycles} cycles, {right}")


if __name__ == "__main__":
    main()
