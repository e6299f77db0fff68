"""Predicted and measured times of four plans of a sampled product, over density and layout.

``A(i,j) = B(i,j)*C(i,k)*D(k,j)`` with B by rows: our loops, our loops behind a transposition of D,
a dense product that is sampled, and a dot product for each element.  The last one is measured on
some rows, and multiplied.  ``python -m benchmarks.mosaic.ranking [n]``, alone on the machine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from t2s import external, sparse
from t2s.driver.plan_inputs import bind_plan, facts_of_binding
from t2s.plan.cost import PlanFacts, predict

STATEMENT = sparse.parse("A(i,j) = B(i,j)*C(i,k)*D(k,j)", {"A": "ds", "B": "ds"})
PLANS = {
    "loops": "assume(1 == 1)",
    "transposed": "store(D,1,0)",
    "sgemm": "map(C(i,k)*D(k,j),blas.sgemm)",
    "sdot": "fix(i,j), map(C(i,k)*D(k,j),blas.sdot)",
}
DENSITIES = (0.0001, 0.001, 0.01, 0.1, 0.3)
ROWS = 4
RUNS = 3
ALIKE = 1.5
"""Times within this factor of one another are in no order."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A density and a layout: seconds of each plan, predicted and measured."""

    density: float
    layout: str
    predicted: dict[str, float]
    measured: dict[str, float]

    @property
    def ordered(self) -> bool:
        """Whether the predicted order is the measured one, up to a factor of ``ALIKE``."""
        order = sorted(self.predicted, key=self.predicted.__getitem__)
        return all(
            self.measured[one] <= ALIKE * self.measured[other]
            for at, one in enumerate(order)
            for other in order[at + 1 :]
        )

    @property
    def loss(self) -> float:
        """How much longer the plan takes that would be chosen than the best one."""
        chosen = min(self.predicted, key=self.predicted.__getitem__)
        return self.measured[chosen] / min(self.measured.values())


def inputs(n: int, density: float, layout: str) -> dict[str, Any]:
    """B of random places, C by rows, D by rows or by columns."""
    generator = np.random.default_rng(n)
    stored = np.asarray(generator.random((n, n)) < density, np.float32)
    found = {"C": np.ones((n, n), np.float32), "D": np.ones((n, n), np.float32)}
    if layout == "columns":
        found["D"] = np.asfortranarray(found["D"])
    return {"B": sparse.tensor(stored).convert("ds"), **found}


def facts(given: dict[str, Any]) -> PlanFacts:
    """What a prediction knows of inputs."""
    return facts_of_binding(bind_plan(STATEMENT, given), STATEMENT)


def row(n: int, density: float, layout: str, machine: external.HostMachine) -> Row:
    """One row of the table."""
    given = inputs(n, density, layout)
    known = facts(given)
    predicted, measured = {}, {}
    for name, text in PLANS.items():
        plan = sparse.compile(STATEMENT, text)
        predicted[name] = predict(plan.program, known, machine).seconds
        if name == "sdot":
            few = {
                **given,
                "B": sparse.tensor(given["B"].to_dense()[:ROWS]),
                "C": given["C"][:ROWS],
            }
            measured[name] = plan.run(few).seconds * n / ROWS
        else:
            measured[name] = min(plan.run(given).seconds for _ in range(RUNS))
    return Row(density=density, layout=layout, predicted=predicted, measured=measured)


def main() -> None:
    n = int(sys.argv[1]) if sys.argv[1:] else 2000
    machine = external.calibrate()
    print(f"n = {n}, milliseconds: predicted / measured")
    print(f"{'density':>8} {'D by':>8}", *(f"{name:>21}" for name in PLANS), "  order   loss")
    for density in DENSITIES:
        for layout in ("rows", "columns"):
            made = row(n, density, layout, machine)
            cells = [
                f"{1e3 * made.predicted[name]:10.4g} /{1e3 * made.measured[name]:9.4g}"
                for name in PLANS
            ]
            verdict = "right" if made.ordered else "wrong"
            print(
                f"{density:8.2%} {layout:>8}", *cells, f"  {verdict}  {made.loss:5.2f}", flush=True
            )


if __name__ == "__main__":
    main()
