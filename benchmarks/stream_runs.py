"""Times by runs of firings beside those of single ones: ``python -m benchmarks.stream_runs``.

Products with long rows, and ones with short rows, where runs are no gain: whole runs, values and
times apart, in processor milliseconds, the least of some runs, each beside the kernel that steps
through the cycles or runs ahead, in turn.  ``--agree 5000`` draws so many random runs of streams
instead, with random latencies, intervals and lengths of rings, and compares cycles, first and last
firings and all counters of all nodes; and values and firings with those of machines without bursts.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse
from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.random_streams import differing, differing_values, random_runs
from t2s import sparse
from t2s.simulator.native_engine import retime
from t2s.simulator.report.result import SimResult
from t2s.simulator.times import machine_times

ROUNDS, RUNS = 3, 2
DRAWN = 5
"""One in so many random runs is of an expression of the hunt, or of a random graph of machines."""

REPEATING = 2
"""One in so many others is of matrices with rows that come again."""

Inputs = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Product:
    """A product of matrices, with its inputs."""

    name: str
    kernel: sparse.Kernel
    inputs: Inputs

    def run(self) -> SimResult:
        """Values and times."""
        (run,) = self.kernel.simulate(self.inputs).stages
        return run


def products(quick: bool) -> Iterator[Product]:
    """Gathered rows, a sparse second factor, a sampled product, and one that is sparse all over."""
    generator = np.random.default_rng(0)

    def random(rows: int, columns: int, density: float, seed: int) -> Any:
        return scipy.sparse.random(rows, columns, density, format="csr", random_state=seed)

    graph, share = random(2708, 2708, 10556 / 2708**2, 1), 10 if quick else 1
    for features in (16, 300, 1433):
        inputs = {"A": graph, "X": generator.random((2708, features))}
        yield _product(f"A X, {features}", "Y(i,j) = A(i,k)*X(k,j)", {"A": "ds"}, inputs)
    inputs = {"X": generator.random((2708 // share, 1433)), "W": random(1433, 16, 0.4, 2)}
    yield _product("X W", "Y(i,j) = X(i,k)*W(k,j)", {"W": "ds"}, inputs)
    inputs = {"B": random(1024, 1024, 0.15, 1)}
    inputs |= {name: generator.random((1024, 64)) for name in "DE"}
    text, formats = "Y(i,j) = B(i,j)*D(i,k)*E(j,k)", {"B": "ds", "Y": "ds"}
    yield _product("SDDMM", text, formats, inputs, "locate(D,i), locate(E,j)")
    inputs = {"A": random(1000, 1000, 0.02, 3), "B": random(1000, 1000, 0.02, 4)}
    formats = {"A": "ds", "B": "ds", "Y": "ds"}
    yield _product("SpGEMM", "Y(i,j) = A(i,k)*B(k,j)", formats, inputs)


def _product(
    name: str, text: str, formats: dict[str, str], inputs: Inputs, schedule: str = "reorder(i,k,j)"
) -> Product:
    return Product(name, sparse.compile(sparse.parse(text, formats), schedule), inputs)


def least(run: Callable[[], object]) -> float:
    """Milliseconds of processor time of the fastest run."""
    times: list[float] = []
    for _ in range(RUNS):
        start = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - start))
    return min(times)


def speed(quick: bool) -> Table:
    """What the products take."""
    table = Table(title="processor milliseconds")
    table.add_column("product")
    columns = ("cycles", "by", "whole", "times", "by", "whole", "times", "whole x", "times x")
    for column in columns:
        table.add_column(column, justify="right")
    for product in track(list(products(quick)), "products", console=Console(stderr=True)):
        found, before = _both(product)
        ratios = [f"{old / new:.1f}" for old, new in zip(before[2:], found[2:], strict=True)]
        cells = [*_cells(found), *_cells(before)[1:], *ratios]
        table.add_row(product.name, *cells)
    return table


Measured = tuple[int, str, float, float]
"""Cycles, the kernel of the times, and milliseconds of a whole run and of the times."""


def _both(product: Product) -> tuple[Measured, Measured]:
    """With runs and without, in turn: other work slows the machine down for seconds at a time."""
    rounds: list[tuple[Measured, Measured]] = []
    for _ in range(ROUNDS):
        found = _measured(product)
        with patch.object(machine_times, "_by_runs", lambda *arguments: None):
            rounds.append((found, _measured(product)))
    found, before = zip(*rounds, strict=True)
    return _best(found), _best(before)


def _best(rounds: tuple[Measured, ...]) -> Measured:
    cycles, kernel, _, _ = rounds[0]
    return cycles, kernel, min(whole for *_, whole, _ in rounds), min(t for *_, t in rounds)


def _measured(product: Product) -> Measured:
    run = product.run()
    trace = run.machine_trace
    assert trace is not None
    return run.cycles, run.kernel, least(product.run), least(lambda: retime(run.program, trace))


def _cells(found: Measured) -> list[str]:
    cycles, kernel, whole, times = found
    return [f"{cycles:,}", kernel, f"{whole:.1f}", f"{times:.1f}"]


def agree(count: int) -> bool:
    """Compare so many random runs; say which differ."""
    compared, wrong = 0, 0
    seed = 0
    warnings.simplefilter("ignore")
    while compared < count:
        drawn = seed % DRAWN == 0
        repeating = not drawn and seed % REPEATING == 0
        for run in random_runs(seed, drawn=drawn, repeating=repeating):
            difference = differing(run, seed)
            compared += difference is not None
            if difference:
                wrong += 1
                print(f"random_runs({seed}, {drawn=}, {repeating=}): {difference}")
        if not repeating and (difference := differing_values(seed, drawn=drawn)):
            wrong += 1
            print(f"differing_values({seed}, {drawn=}): {difference}")
        seed += 1
    print(f"{compared} runs compared, {wrong} differ")
    return not wrong


if __name__ == "__main__":
    if "--agree" in sys.argv:
        sys.exit(not agree(int(sys.argv[sys.argv.index("--agree") + 1])))
    Console(width=None if sys.stdout.isatty() else 150).print(speed("--quick" in sys.argv))
