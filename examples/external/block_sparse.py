"""A block-sparse matrix times a dense one: loops over its blocks, or BLAS for each pair of blocks.

A(i,k,m,n) = B(i,k,j,l) * C(j,l,m,n): blocks of B at (i,j) are stored or not, and dense inside (k,l)
[Mosaic, Figs. 17 and 20].  With i, j and m fixed, a product of blocks is one of BLAS, which
sees all blocks; loops walk those that are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s import external, sparse

STATEMENT = "A(i,k,m,n) = B(i,k,j,l) * C(j,l,m,n)"
FORMATS = {"B": "dsdd:0,2,1,3"}


SCHEDULES = {
    "loops alone": "assume(1 == 1)",
    "BLAS": "fix(i,j,m), map(B(i,k,j,l)*C(j,l,m,n),blas.dgemm,densify)",
}


def inputs(blocks: int = 12, size: int = 8, density: float = 0.2) -> dict[str, Any]:
    """Square blocks of small integers, so many of them stored."""
    generator = np.random.default_rng(1)
    there = generator.random((blocks, 1, blocks, 1)) < density
    return {
        "B": generator.integers(1, 4, (blocks, size, blocks, size)) * there * 1.0,
        "C": generator.integers(-3, 4, (blocks, size, blocks, size)) * 1.0,
    }


def results(given: dict[str, Any]) -> dict[str, external.PlanResult]:
    """Each plan's second run, for the first one compiles loops."""
    assignment = sparse.parse(STATEMENT, FORMATS)
    plans = {name: sparse.compile(assignment, text) for name, text in SCHEDULES.items()}
    for plan in plans.values():
        plan.run(given)
    return {name: plan.run(given) for name, plan in plans.items()}


def main() -> None:
    given = inputs()
    expected = np.einsum("ikjl,jlmn->ikmn", given["B"], given["C"])
    for name, result in results(given).items():
        right = "right" if np.array_equal(result.output, expected) else "WRONG"
        calls = sum(step.calls for step in result.steps)
        print(f"{name}: {result.times}, {calls} calls, {right}")


if __name__ == "__main__":
    main()
