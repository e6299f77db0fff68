"""PE firings per second of the simulator: ``python benchmarks/engine.py`` from the repository root.

The design is a GEMM on 10 x 8 PEs, 16 float32 multiply-adds wide, 32 x 32 results per PE.  Values
and cycles are computed together, as a user gets them; checking and flattening the graph and
compiling the design are included.  The Python engine, the oracle, runs a smaller one.  Rates are
per second of processor time of one core, so that other work on the machine does not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

import t2s
from t2s import Float, Func, Graph, ImageParam, RDom, Var
from t2s.simulator.result import SimResult
from t2s.simulator.run import simulate_cycles

RUNS = 5
GOAL = 20e6
LANES = 16


def gemm(rows: int, columns: int, tile: int, steps: int) -> Graph:
    """C = A B^T on ``rows`` x ``columns`` PEs, ``tile`` x ``tile`` results on each."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, steps * LANES, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, rows * tile).bound(j, 0, columns * tile)
    ii, jj, kk = t2s.variables("ii jj kk")
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.update().tile(j, i, jj, ii, columns, rows).split(k, k, kk, LANES)
    C.reorder(kk, j, i, k).unroll(ii, jj).vload(A, B)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    C.forward(A_loader, jj).forward(B_loader, ii)
    return C.lower()


def inputs_of(graph: Graph) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        name: generator.standard_normal(graph.tensor(name).shape, dtype=np.float32)
        for name in ("A", "B")
    }


def firings_per_second(run: Callable[[], SimResult], runs: int = RUNS) -> float:
    """The median over some runs, after one that warms the caches."""
    firings = run().firings
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return firings / statistics.median(seconds)


def main() -> None:
    large, small = gemm(10, 8, 32, 512), gemm(2, 2, 4, 4)
    large_inputs, small_inputs = inputs_of(large), inputs_of(small)
    together = firings_per_second(lambda: t2s.simulate(large, large_inputs))
    cycles = firings_per_second(lambda: simulate_cycles(large))
    python = firings_per_second(lambda: t2s.simulate(small, small_inputs, engine="python"), 3)
    result = t2s.simulate(large, large_inputs)
    expected = large_inputs["A"].astype(np.float64) @ large_inputs["B"].T.astype(np.float64)
    error = np.abs(result.outputs["C"] - expected).max() / np.abs(expected).max()
    print(f"design                     {result.cycles:,} cycles, {result.firings:,} PE firings")
    print(f"largest error              {error:.1e} of the largest result")
    print(f"native, values and cycles  {together / 1e6:8.1f} M firings/s (goal {GOAL / 1e6:.0f})")
    print(f"native, cycles only        {cycles / 1e6:8.1f} M firings/s")
    print(f"python, values and cycles  {python / 1e6:8.4f} M firings/s")
    print(f"native / python            {together / python:8,.0f}")


if __name__ == "__main__":
    main()
