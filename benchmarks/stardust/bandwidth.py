"""Run times over the DRAM's bandwidth: ``python -m benchmarks.stardust.bandwidth [--quick]``.

Figure 10 of papers/000: twelve bandwidths from 20 to 2000 GB/s.  The memories are the HBM2E of 1800
GB/s at other clocks: its channels, banks and rows, its times in nanoseconds as they are, rounded up
to whole clocks.  Each kernel runs once and is timed again; times are relative to those at the
highest bandwidth.  The picture goes to ``build/stardust/figure_10.svg``, or to ``--out``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.stardust.runtimes import HBM, QUICK, TIMED, TimedKernel
from t2s.backends.capstan.log_plot import BOTTOM, RIGHT, TOP, LogPlot, legend_line, powers
from t2s.core.svg import PALETTE, SvgPicture, element, hover, picture
from t2s.simulator.memory.presets import MEMORIES
from t2s.simulator.memory.spec import Dram

BANDWIDTHS = tuple(round(float(number)) for number in np.geomspace(20, 2000, 12))
"""In GB/s."""


def memory_of(bandwidth: int) -> Dram:
    """The memory of 1800 GB/s at the clock with which it has so many GB/s."""
    base = MEMORIES[HBM]
    faster = Fraction(bandwidth * 10**9) / Fraction(base.peak_bytes_per_second)
    timing = {
        item.name: -(-getattr(base.timing, item.name) * faster // 1)
        for item in fields(base.timing)
        if item.name not in ("tCCD_S", "tCCD_L", "turnaround")
    }
    return replace(
        base,
        name=f"hbm2e-{bandwidth}",
        description=f"HBM2E of {bandwidth} GB/s",
        clock_hz=base.clock_hz * faster,
        timing=replace(base.timing, **timing),
    )


def cycles_over_bandwidth(kernel: TimedKernel, part: float) -> list[int]:
    """The cycles of a kernel on its first data set."""
    inputs = kernel.operands(kernel.data[0].make(part * kernel.part))
    run = kernel.published.kernel().simulate(inputs)
    return [run.retime(memory=memory_of(bandwidth)).cycles for bandwidth in BANDWIDTHS]


def largest_rise(cycles: list[int]) -> float:
    """The largest share by which cycles rise from a bandwidth to the next."""
    return max(after / before - 1 for before, after in pairwise(cycles))


def figure_10(cycles: Mapping[str, list[int]]) -> SvgPicture:
    """Times beside those at the highest bandwidth over GB/s, a line for each kernel.

    When all colors are used the next lines are dashed.
    """
    relative = {name: [one / row[-1] for one in row] for name, row in cycles.items()}
    rates = [rate for row in relative.values() for rate in row]
    plot = LogPlot(x=powers(map(float, BANDWIDTHS)), y=powers(rates))
    drawn = []
    for number, (name, row) in enumerate(relative.items()):
        color, y = PALETTE[number % len(PALETTE)], TOP + 18 * number
        dashed = number >= len(PALETTE)
        said = hover(f"{name}: {row[0]:.2f} at {BANDWIDTHS[0]} GB/s")
        points = [*zip(map(float, BANDWIDTHS), row, strict=True)]
        drawn.append(plot.line(points, color, said, dashed=dashed))
        drawn.append(legend_line(RIGHT, y + 7, color, dashed=dashed))
        drawn.append(element("text", text=name, x=RIGHT + 30, y=y + 11))
    return picture(
        RIGHT + 140,
        BOTTOM,
        *plot.axes("GB/s", f"time, {BANDWIDTHS[-1]} GB/s = 1"),
        *drawn,
        title="run time over the bandwidth of the DRAM",
        description="; ".join(
            f"{name}: " + ", ".join(f"{rate:.2f}" for rate in row) for name, row in relative.items()
        )
        + f" at {', '.join(map(str, BANDWIDTHS))} GB/s. Both axes are logarithmic.",
    )


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--only", nargs="*", default=(), help="names of kernels")
    parser.add_argument("--out", type=Path, default=Path("build/stardust"), help="folder")
    options = parser.parse_args(arguments)
    table = Table("kernel", *map(str, BANDWIDTHS), title="Figure 10: run time over GB/s")
    rows = {}
    for kernel in TIMED:
        if options.only and kernel.name not in options.only:
            continue
        cycles = cycles_over_bandwidth(kernel, QUICK if options.quick else 1.0)
        rows[kernel.name] = cycles
        table.add_row(kernel.name, *(f"{count / cycles[-1]:.2f}" for count in cycles))
    console = Console(width=120)
    console.print(table)
    options.out.mkdir(parents=True, exist_ok=True)
    console.print(f"wrote {figure_10(rows).write(options.out / 'figure_10.svg')}")


if __name__ == "__main__":
    main()
