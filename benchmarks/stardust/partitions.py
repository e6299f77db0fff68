"""Cycles over partitions: ``python -m benchmarks.stardust.partitions [--quick]``.

Each kernel on its first data set with ``outer_par`` 1, 2, 4, 8 and 16, with HBM2E and with an ideal
network and memory, and what most cycles are spent on: where the DRAM or the network ends the
scaling.  A dash stands where the program does not fit the chip.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.stardust.runtimes import HBM, IDEAL, QUICK, TIMED, TimedKernel
from t2s.core.errors import UserError
from t2s.driver.capstan_result import CapstanResult

FACTORS = (1, 2, 4, 8, 16)


@dataclass(frozen=True, kw_only=True)
class PartitionedRun:
    """A run with so many partitions, and the same with an ideal network and memory."""

    factor: int
    hbm: CapstanResult
    ideal: CapstanResult


def partitioned(kernel: TimedKernel, part: float) -> list[PartitionedRun | None]:
    """A kernel on its first data set with each of ``FACTORS``; ``None`` where it does not fit."""
    inputs = kernel.operands(kernel.data[0].make(part * kernel.part))
    found: list[PartitionedRun | None] = []
    for factor in FACTORS:
        try:
            compiled = kernel.published.with_outer_par(factor)
        except UserError as error:
            if "does not fit the chip" not in str(error):
                raise
            found.append(None)
            continue
        hbm = compiled.simulate(inputs, memory=HBM)
        found.append(PartitionedRun(factor=factor, hbm=hbm, ideal=hbm.retime(memory=IDEAL)))
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--only", nargs="*", default=(), help="names of kernels")
    options = parser.parse_args(arguments)
    table = Table("kernel", "memory", *map(str, FACTORS), title="cycles over outer_par")
    for kernel in TIMED:
        if options.only and kernel.name not in options.only:
            continue
        runs = partitioned(kernel, QUICK if options.quick else 1.0)
        said: dict[str, Callable[[PartitionedRun], str]] = {
            "HBM2E": lambda run: f"{run.hbm.cycles:,}",
            "ideal": lambda run: f"{run.ideal.cycles:,}",
            "bound": lambda run: run.hbm.parts.bound.value,
        }
        for label, text in said.items():
            cells = ("-" if run is None else text(run) for run in runs)
            table.add_row(kernel.name, label, *cells, end_section=label == "bound")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
