"""Requests per second of the DRAM model: ``python benchmarks/memory.py`` from the repository root.

A request is one burst.  *Stream* reads bursts one after the other, *random* bursts anywhere, and
*random, 1/3 writes* writes some of them; all are there from the beginning, so that the memory is
always busy.  The speeds are per second of processor time, the best of several runs.  The last lines
are those of whole simulations: load units that move 64 bytes per cycle, with everything around.

DRAMsim3 did 0.21 M (stream) and 0.16 M (random) requests per second with one channel of DDR4-3200,
0.54 M and 0.14 M with 8 channels of HBM2, measured once on a machine like ours (2 cores of an AMD
EPYC, Zen 4).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import t2s
from t2s import Float, Func, ImageParam
from t2s.llvm.kernels import CompiledKernel
from t2s.llvm.operands import Argument
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory import dram as model
from t2s.simulator.memory.spec import MEMORIES, Dram
from t2s.simulator.run import simulate_cycles
from t2s.simulator.times.table_layout import SOURCES

MUST, AIM = 1.0, 5.0
DRAMSIM3 = {
    ("ddr4-2133", "stream"): 0.21,
    ("ddr4-2133", "random"): 0.16,
    ("hbm2e", "stream"): 0.54,
    ("hbm2e", "random"): 0.14,
}
REQUESTS = 1_000_000
RUNS = 5
ELEMENTS = 1 << 24
ACCESS_ALL = CompiledKernel(
    module=model.__name__,
    name=model.access_all.__name__,
    sources=SOURCES,
    arguments=(Argument.INT64_ARRAY,) * 7,
)

Requests = tuple[NDArray[np.int64], NDArray[np.int64]]


def stream(dram: Dram) -> Requests:
    """Bursts one after the other."""
    return np.arange(REQUESTS), np.zeros(REQUESTS, np.int64)


def random(dram: Dram) -> Requests:
    """Bursts anywhere in the memory."""
    bursts = dram.capacity // dram.burst_bytes
    return np.random.default_rng(0).integers(0, bursts, REQUESTS), np.zeros(REQUESTS, np.int64)


def random_writes(dram: Dram) -> Requests:
    """Bursts anywhere, one in three written."""
    bursts, _ = random(dram)
    return bursts, (np.arange(REQUESTS) % 3 == 0).astype(np.int64)


PATTERNS: dict[str, Callable[[Dram], Requests]] = {
    "stream": stream,
    "random": random,
    "random, 1/3 writes": random_writes,
}


def speed(dram: Dram, requests: Requests) -> tuple[float, float]:
    """Requests per second of processor time, and the share of the peak bandwidth."""
    bursts, writes = requests
    clocks, ends = np.zeros(REQUESTS, np.int64), np.zeros(REQUESTS, np.int64)
    parameters = model.new_parameters(dram)
    best = float("inf")
    for _ in range(RUNS + 1):  # the first run compiles
        state, counts = model.new_state(dram), model.new_counts(dram)
        begin = time.process_time()
        ACCESS_ALL(parameters, state, counts, clocks, bursts, writes, ends)
        best = min(best, time.process_time() - begin)
    offered = int(ends.max()) * dram.channels
    return REQUESTS / best, REQUESTS * dram.burst_clocks / offered


def plus_one(size: int) -> Func:
    """y = x + 1, 16 floats at a time."""
    x, y, (i, ii) = ImageParam(Float(32), 1, name="x"), Func("y"), t2s.variables("i ii")
    loader, unloader = t2s.funcs("loader unloader")
    y[i] = x[i] + 1.0
    y.bound(i, 0, size).split(i, i, ii, 16).vload(x)
    y.isolate_producer(x, loader).isolate_consumer(unloader)
    unloader.vstore(y)
    return y


def whole_run(memory: str) -> str:
    """The speed of a simulation with a memory, as text."""
    graph, device = plus_one(ELEMENTS).lower(), DEVICES["arria10"].with_memory(memory)
    best = float("inf")
    for _ in range(RUNS):
        begin = time.process_time()
        result = simulate_cycles(graph, device=device)
        best = min(best, time.process_time() - begin)
    text = f"{memory:10} {result.cycles:11,} cycles in {best:.2f} s"
    if result.memory is not None:
        moved = sum(channel.reads + channel.writes for channel in result.memory.channels)
        text += (
            f", {moved / best / 1e6:.1f} M requests/s, {result.memory.share_of_peak:.1%} of peak"
        )
    return text


def main() -> None:
    console = Console()
    table = Table(title="DRAM model")
    for header in ("memory", "requests", "M requests/s", "of the aim", "of DRAMsim3", "of peak"):
        table.add_column(header, justify="left" if header in ("memory", "requests") else "right")
    for name in ("ddr4-2133", "hbm2e"):
        for pattern, requests in PATTERNS.items():
            rate, share = speed(MEMORIES[name], requests(MEMORIES[name]))
            peer = DRAMSIM3.get((name, pattern))
            ratio = f"{rate / 1e6 / peer:.0f}x" if peer else "-"
            table.add_row(
                name,
                pattern,
                f"{rate / 1e6:.1f}",
                f"{rate / 1e6 / AIM:.1f}x",
                ratio,
                f"{share:.1%}",
            )
    console.print(table)
    console.print(
        f"must {MUST} M requests/s, aim {AIM} M; a row below the aim has less than 1.0x\n"
    )
    console.print(f"y = x + 1, {ELEMENTS:,} floats, cycles only, checking the graph included")
    for name in ("ideal", "ddr4-2133", "hbm2e"):
        console.print(whole_run(name))


if __name__ == "__main__":
    main()
