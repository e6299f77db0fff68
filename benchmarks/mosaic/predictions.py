"""Predicted beside measured times of single calls and of loops, on this machine, after calibration.

Products of matrices, of matrices and vectors, and loops over compressed rows, of several sizes.
Predictions are to be within a factor of 2.  ``python -m benchmarks.mosaic.predictions``, alone on
the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from t2s import external, sparse
from t2s.driver.plan_inputs import bind_plan, facts_of_binding
from t2s.plan.cost import predict

FACTOR = 2.0
RUNS = 7
LOOPS = "assume(1 == 1)"
# a name, a statement, its formats, a schedule, and extents of all variables
CASES = [
    ("sgemm", "A(i,k) = B(i,j)*C(j,k)", {}, "map(B(i,j)*C(j,k),blas.sgemm)", (64, 250, 1000, 2000)),
    ("sgemv", "A(i) = B(i,j)*C(j)", {}, "map(B(i,j)*C(j),blas.sgemv)", (250, 1000, 2500, 4750)),
    ("loops of SpMV", "A(i) = B(i,j)*C(j)", {"B": "ds"}, LOOPS, (1000, 2500, 4750)),
]
DENSITY = 0.01


def _inputs(size: int, order: int, *, stored: bool) -> dict[str, Any]:
    generator = np.random.default_rng(size)
    matrix = np.asarray(generator.random((size, size)), np.float32)
    if stored:
        matrix *= generator.random((size, size)) < DENSITY
    other = np.ones((size,) * order, np.float32)
    return {"B": sparse.tensor(matrix).convert("ds") if stored else matrix, "C": other}


def rows(machine: external.HostMachine) -> Iterator[tuple[str, int, float, float]]:
    """A name, a size, and seconds: predicted, and the least of some runs."""
    for name, text, formats, said, sizes in CASES:
        assignment = sparse.parse(text, formats)
        plan = sparse.compile(assignment, said)
        for size in sizes:
            given = _inputs(size, 2 if "C(j,k)" in text else 1, stored=bool(formats))
            known = facts_of_binding(bind_plan(assignment, given), assignment)
            predicted = predict(plan.program, known, machine).seconds
            measured = min(plan.run(given).seconds for _ in range(RUNS))
            yield name, size, predicted, measured


def main() -> None:
    machine = external.calibrate()
    print(f"{'':16} {'size':>6} {'predicted':>12} {'measured':>12} {'factor':>7} of {FACTOR:g}")
    for name, size, predicted, measured in rows(machine):
        factor = max(predicted / measured, measured / predicted)
        times = f"{1e3 * predicted:9.4g} ms {1e3 * measured:9.4g} ms"
        print(f"{name:16} {size:6} {times} {factor:7.2f}   {'' if factor <= FACTOR else 'beyond'}")


if __name__ == "__main__":
    main()
