"""Cycles with parts of the chip changed: ``python -m benchmarks.stardust.ablation [--quick]``.

Each kernel runs once on its first data set with HBM2E and is timed again: with queues of other
depths in front of the banks, other rounds of their allocators, other moves between lanes in the
network, and other queues in front of units.  Cells are cycles beside those of the chip as it is; a
dash stands where no memory is behind the network.  The scanner has one width, 512 bits and 16
outputs, which the machines of scans are written for.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from benchmarks.stardust.runtimes import HBM, QUICK, TIMED, TimedKernel
from t2s.driver.capstan_result import CapstanResult

OF_BANKS = {"queue_depth": (1, 8), "rounds": (1, 3), "lane_moves": (0, 2)}
"""Values of ``Banked`` beside its own: 16, 2 and 1."""
OF_UNITS = {"queue_words": (64, 512)}
"""Values of ``CapstanTimes`` beside its own: 256."""


def changed(run: CapstanResult) -> Iterator[float | None]:
    """Cycles of each change beside those of the run; ``None`` without shared memories."""
    for name, values in OF_BANKS.items():
        for value in values:
            if run.run.shared is None:
                yield None
            else:
                banked = replace(run.run.shared.banked, **{name: value})
                yield run.retime(network=banked).cycles / run.cycles
    for name, values in OF_UNITS.items():
        for value in values:
            times = replace(run.times, **{name: value})
            yield run.retime(times=times).cycles / run.cycles


def first_run(kernel: TimedKernel, part: float) -> CapstanResult:
    """The run of a kernel on its first data set."""
    inputs = kernel.operands(kernel.data[0].make(part * kernel.part))
    return kernel.published.kernel().simulate(inputs, memory=HBM)


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--only", nargs="*", default=(), help="names of kernels")
    options = parser.parse_args(arguments)
    heads = [
        f"{name.replace('_', ' ')} {n}"
        for name, values in (OF_BANKS | OF_UNITS).items()
        for n in values
    ]
    table = Table("kernel", "cycles", *heads, title="cycles beside those of the chip as it is")
    for kernel in TIMED:
        if options.only and kernel.name not in options.only:
            continue
        run = first_run(kernel, QUICK if options.quick else 1.0)
        cells = ("-" if ratio is None else f"{ratio:.2f}" for ratio in changed(run))
        table.add_row(kernel.name, f"{run.cycles:,}", *cells)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
