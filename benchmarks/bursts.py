"""Values of machines with the bursts that are chosen, and without: ``python -m benchmarks.bursts``.

After a trial of single firings a run chooses whether machines go on in bursts, by how long their
rules repeat.  Families of designs over the length of a row say whether the choice is right: for
each design the processor milliseconds of its values as chosen and with no bursts at all, both by
optimized code, in turn, the least of some runs.  A design has a process of its own, since memory
that others left behind is faster than new one.  The result is 1 if a design is slower as chosen.
Names select designs that begin so.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.random_streams import fastest_code
from t2s import sparse
from t2s.driver.design import Stage
from t2s.simulator.values import machine_values
from t2s.simulator.values.machine_values import stream_values

ROUNDS = 6
MOST = 1.15
"""Times as long as without bursts a design may take as chosen."""

NOTICED = 0.5
"""Milliseconds by which it is slower then; less is the noise of short runs."""

LENGTHS = (24, 48, 64, 100, 200, 400, 700)


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel and its inputs; the name ends with the length of a row."""

    name: str
    text: str
    inputs: dict[str, Any]
    compressed: str = ""
    schedule: str = ""

    @property
    def stage(self) -> Stage:
        """Its graph with the arrays that this reads."""
        formats = dict.fromkeys(self.compressed, "ds")
        kernel = sparse.compile(sparse.parse(self.text, formats), self.schedule)
        stage: Stage = next(kernel.design().stages(self.inputs))
        return stage


def cases() -> Iterator[Case]:
    """Products along rows, sampled and inner ones, elementwise ones, and layers of a network."""
    generator = np.random.default_rng(0)
    gathered = "Y(i,j) = A(i,k)*X(k,j)"
    graph = _rows(2708, 2708, 4, 1)
    for length in (12, 16, 20, 24, 32, 48, 64, 96, 128):
        dense = generator.random((2708, length))
        yield Case(f"A X {length}", gathered, {"A": graph, "X": dense}, "A", "reorder(i,k,j)")
    for length in (16, 32, 64, 200):
        factors = {"A": generator.random((300, 300)), "X": generator.random((300, length))}
        yield Case(f"dense A X {length}", gathered, factors, "", "reorder(i,k,j)")
    sampled, located = "Y(i,j) = B(i,j)*D(i,k)*E(j,k)", "locate(D,i), locate(E,j)"
    for length in (12, 16, 24, 32, 48, 64):
        factors = {name: generator.random((512, length)) for name in "DE"}
        sample = {"B": _rows(512, 512, 60, 1)}
        yield Case(f"SDDMM {length}", sampled, sample | factors, "BY", located)
    for length in (24, 32, *LENGTHS[1:]):
        pair = {"A": _rows(500, 1000, 10, 1), "B": _rows(1000, 1500, length, 2)}
        text = "Y(i,j) = A(i,k)*B(k,j)"
        yield Case(f"SpGEMM {length}", text, pair, "ABY", "reorder(i,k,j)")
    for length in LENGTHS:
        given = {"A": _rows(2000, 3000, length, 1), "x": generator.random(3000)}
        yield Case(f"inner {length}", "y(i) = A(i,k)*x(k)", given, "A", "locate(x,k)")
        two = {"A": _rows(1000, 2 * length, length, 1), "B": _rows(1000, 2 * length, length, 2)}
        yield Case(f"A*B {length}", "Y(i,j) = A(i,j)*B(i,j)", two, "ABY")
        two = {name: generator.random((1000, length)) for name in "XZ"}
        yield Case(f"X+Z {length}", "Y(i,j) = X(i,j)+Z(i,j)", two)
        one = {"A": _rows(2000, 2 * length, length, 1)}
        yield Case(f"relu {length}", "Y(i,j) = relu(A(i,j))", one, "AY")
    for length in (40, 100):
        layer = {"X": generator.random((3000, length)), "b": generator.random(length)}
        yield Case(f"layer {length}", "Y(i,j) = relu(X(i,j)+b(j))", layer)


def _rows(count: int, columns: int, entries: int, seed: int) -> Any:
    """A matrix with about so many entries in each row."""
    generator = np.random.default_rng(seed)
    rows = [np.unique(generator.integers(0, columns, entries)) for _ in range(count)]
    starts = np.cumsum([0, *map(len, rows)])
    values = generator.random(starts[-1])
    return scipy.sparse.csr_matrix((values, np.concatenate(rows), starts), (count, columns))


def measured(case: Case) -> tuple[float, float]:
    """Milliseconds of values as chosen, and without bursts."""
    warnings.simplefilter("ignore")
    stage, chosen, without = case.stage, list[float](), list[float]()
    with fastest_code():
        for _ in range(1 + ROUNDS):
            chosen.append(_milliseconds(stage))
            with patch.object(machine_values, "_SHARE", 0):
                without.append(_milliseconds(stage))
    return min(chosen[1:]), min(without[1:])


def _milliseconds(stage: Stage) -> float:
    start = time.process_time()
    stream_values(stage.graph, stage.arrays, stage.scalars)
    return 1e3 * (time.process_time() - start)


def main(names: list[str]) -> int:
    """Print what each design takes; 1 if one is slower as chosen."""
    slower = 0
    wanted = [case for case in cases() if case.name.startswith(tuple(names) or "")]
    with ProcessPoolExecutor(max_workers=1, max_tasks_per_child=1) as processes:
        for case, (chosen, without) in zip(wanted, processes.map(measured, wanted), strict=True):
            wrong = chosen > MOST * without and chosen > without + NOTICED
            slower += wrong
            shown = f"{chosen:8.1f} chosen {without:8.1f} without {chosen / without:6.2f} x"
            print(f"{case.name:16}{shown}{' SLOWER' if wrong else ''}", flush=True)
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
