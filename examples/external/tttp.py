"""A sampled product of four matrices: loops over what is stored, or outer products of BLAS first.

A(i,j,k,l) = B(i,j,k,l) * C(i,m) * D(j,m) * E(k,m) * F(l,m) with B sparse (TTTP; [Mosaic],
table 2).  With m fixed, C times D is an outer product; its results, one for each m, are what
loops read then.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t2s import external, sparse

STATEMENT = "A(i,j,k,l) = B(i,j,k,l) * C(i,m) * D(j,m) * E(k,m) * F(l,m)"
FORMATS = {"A": "ssss", "B": "ssss"}
SCHEDULES = {
    "loops alone": "assume(1 == 1)",
    "outer products, loops": "fix(m), map(C(i,m)*D(j,m),blas.dger)",
}


def inputs(extent: int = 24, rank: int = 8, density: float = 0.01) -> dict[str, Any]:
    """A tensor with entries here and there, and matrices of small integers."""
    generator = np.random.default_rng(1)
    shape = (extent,) * 4
    found: dict[str, Any] = {
        name: generator.integers(-3, 4, (extent, rank)) * 1.0 for name in "CDEF"
    }
    found["B"] = generator.integers(1, 4, shape) * (generator.random(shape) < density) * 1.0
    return found


def results(given: dict[str, Any]) -> dict[str, external.PlanResult]:
    """Each plan's second run, for the first one compiles loops."""
    assignment = sparse.parse(STATEMENT, FORMATS)
    plans = {name: sparse.compile(assignment, text) for name, text in SCHEDULES.items()}
    for plan in plans.values():
        plan.run(given)
    return {name: plan.run(given) for name, plan in plans.items()}


def main() -> None:
    given = inputs()
    matrices = (given[name] for name in "CDEF")
    expected = given["B"] * np.einsum("im,jm,km,lm->ijkl", *matrices)
    for name, result in results(given).items():
        right = "right" if np.array_equal(result.output, expected) else "WRONG"
        print(f"{name}: {result.times}, {right}")


if __name__ == "__main__":
    main()
