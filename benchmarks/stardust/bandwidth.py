"""Run times over the DRAM's bandwidth: ``python -m benchmarks.stardust.bandwidth [--quick]``.

Figure 10 of [Stardust]: twelve bandwidths from 20 to 2000 GB/s.  The memories are the HBM2E of 1800
GB/s with longer or shorter bursts: its channels, banks and rows, and their times in nanoseconds as
they are, rounded up to whole clocks.  Each kernel runs once and is timed again; times are relative
to those at the highest bandwidth.  The picture goes to ``build/stardust/figure_10.svg``, or to
``--out``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.stardust.runtimes import HBM, QUICK, TIMED, TimedKernel
from t2s.core.svg import PALETTE, LogPlot, SvgPicture, element, hover, picture, powers, stroke
from t2s.simulator.memory.spec import MEMORIES, Dram

BANDWIDTHS = tuple(round(float(number)) for number in np.geomspace(20, 2000, 12))
"""In GB/s."""

OF_DATA = ("tCCD_S", "tCCD_L", "turnaround")
"""Times that are as long as bursts, or parts of them; the others are those of the banks."""


def memory_of(bandwidth: int) -> Dram:
    """The memory of 1800 GB/s with bursts that take as long as they do at so many GB/s.

    A burst takes the least multiple of its clocks with which the clock is no slower.  With two
    clocks for any burst, a row would take 102 ns to open and read at 20 GB/s, where it takes 8 at
    1800 GB/s, and runs that wait for latencies alone would look as if bandwidth bound them.
    """
    base = MEMORIES[HBM]
    longer = Fraction(base.peak_bytes_per_second) / Fraction(bandwidth * 10**9)
    clocks = math.ceil(longer)
    faster = clocks / longer
    timing = {}
    for item in fields(base.timing):
        scale = clocks if item.name in OF_DATA else faster
        timing[item.name] = -(-getattr(base.timing, item.name) * scale // 1)
    return replace(
        base,
        name=f"hbm2e-{bandwidth}",
        description=f"HBM2E of {bandwidth} GB/s",
        clock_hz=base.clock_hz * faster,
        burst_clocks=base.burst_clocks * clocks,
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
    beside = plot.right + 20
    drawn = []
    for number, (name, row) in enumerate(relative.items()):
        color, y = PALETTE[number % len(PALETTE)], plot.top + 18 * number
        dashed = number >= len(PALETTE)
        said = hover(f"{name}: {row[0]:.2f} at {BANDWIDTHS[0]} GB/s")
        points = [*zip(map(float, BANDWIDTHS), row, strict=True)]
        drawn.append(plot.line(points, color, said, dashed=dashed))
        drawn.append(stroke(f"M{beside} {y + 7}h24", color, dashed=dashed))
        drawn.append(element("text", text=name, x=beside + 30, y=y + 11))
    return picture(
        beside + 140,
        plot.bottom + 50,
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
