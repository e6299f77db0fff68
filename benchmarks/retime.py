"""What re-timing costs: ``python benchmarks/retime.py`` or ``python -m benchmarks.retime``.

The GEMM of ``engine.py`` is timed again with other depths of all its channels; shown is processor
time per PE firing, the smallest of a few runs, and what fitting its depths takes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import t2s
from benchmarks.engine import gemm
from t2s.simulator.run import simulate_cycles

RUNS = 3
MUST, AIM = 20.0, 5.0


def main() -> None:
    graph = gemm(10, 8, 32, 128)
    result = simulate_cycles(graph)
    print(f"{result.firings:,} firings; must {MUST:.0f} ns per firing, aim {AIM:.0f}")
    for depth in (1, 2, 3, 8, 64):
        seconds = []
        for _ in range(RUNS):
            start = time.process_time()
            again = result.retime(dict.fromkeys(result.depths, depth), progress=False)
            seconds.append(time.process_time() - start)
        each = min(seconds) / again.firings * 1e9
        print(f"depth {depth:3}  {again.cycles:9,} cycles  {each:5.1f} ns per firing")
    start = time.process_time()
    fit = t2s.fit_depths(graph, progress=False)
    spent = time.process_time() - start
    print(f"fit_depths: {fit.runs} runs, {spent:.2f} s of processor time, {fit.guarantee}")


if __name__ == "__main__":
    main()
