"""Seconds to simulate large kernels: ``python -m benchmarks.stardust.simulation_speed [--quick]``.

Each runs twice with HBM2E on the native engine: the first run compiles what the second one has.
The limits are for a machine with two cores; memory is the most that the process had so far.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.stardust.data import RANDOM_TENSORS, TENSORS, uniform
from benchmarks.stardust.runtimes import HBM, QUICK, TIMED


@dataclass(frozen=True, kw_only=True)
class LargeRun:
    """A kernel on large data, and the seconds that it may take once it is compiled."""

    kernel: str
    data: str
    make: Callable[[float], Any]
    limit: float


LARGE = (
    LargeRun(
        kernel="SpMV",
        data="5000 x 5000, 10 M entries",
        make=lambda part: uniform(part, (5000, 5000), 0.4),
        limit=5,
    ),
    LargeRun(kernel="Plus2", data=str(RANDOM_TENSORS[-1]), make=RANDOM_TENSORS[-1].make, limit=10),
    LargeRun(kernel="TTM", data=str(TENSORS[0]), make=TENSORS[0].make, limit=60),
)


def taken(run: LargeRun, part: float) -> tuple[float, float, int]:
    """Seconds of the first run and of the second one, and the cycles."""
    timed = next(kernel for kernel in TIMED if kernel.name == run.kernel)
    data = run.make(part)
    inputs, kernel = timed.operands(data), timed.published.kernel()
    seconds, cycles = list[float](), 0
    for _ in range(2):
        start = time.perf_counter()
        cycles = kernel.simulate(inputs, memory=HBM).cycles
        seconds.append(time.perf_counter() - start)
    return seconds[0], seconds[1], cycles


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--only", nargs="*", default=(), help="names of kernels")
    options = parser.parse_args(arguments)
    headers = "kernel", "data", "cycles", "first run", "second run", "limit", "memory"
    table = Table(*headers, title="Simulating large kernels on Capstan")
    for run in LARGE:
        if options.only and run.kernel not in options.only:
            continue
        first, second, cycles = taken(run, QUICK if options.quick else 1.0)
        gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        table.add_row(
            run.kernel,
            run.data,
            f"{cycles:,}",
            f"{first:.1f} s",
            f"{second:.1f} s",
            f"{run.limit:.0f} s",
            f"{gigabytes:.1f} GB",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
