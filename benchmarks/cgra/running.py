"""How long a placed design takes to compile and to run: ``python -m benchmarks.cgra.running``.

Prints, in seconds of the processor: lowering and placing, the first run of the lifted graph (with
the lift and with compiling), the second run, and a run of the interpreter, with the cells times
cycles that it does in a second.  Goals: compiling 10 s on 32 x 32 cells and 1 s on 8 x 8, a first
run of 10,000 cycles 5 s, and 0.2 million cells times cycles in a second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import t2s
from t2s import Func
from tests.backends.cgra import designs

DESIGNS: tuple[tuple[str, str, Callable[[], Func]], ...] = (
    ("GEMM 2, 2, 4", "cgra8", lambda: designs.gemm(2, 2, 4, 16, 16, 4, buffered=True)),
    ("GEMM 4, 4, 4", "cgra16", lambda: designs.gemm(4, 4, 4, 16, 16, 8, buffered=True)),
    ("GEMM 8, 8, 4", "cgra32", lambda: designs.gemm(8, 8, 4, 16, 16, 39, buffered=True)),
    ("TTM 4, 4, 4, 4", "cgra32", lambda: designs.ttm(4, 4, 4, 4)),
    ("MTTKRP 4, 4, 4, 2", "cgra32", lambda: designs.mttkrp(4, 4, 4, 2)),
    ("TTMc 2, 2, 2, 4, 4", "cgra32", lambda: designs.ttmc(2, 2, 2, 4, 4)),
    ("convolution 3 x 3", "cgra32", lambda: designs.convolution(3, 4, 7, 24, 24)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="designs whose name has this in it")
    parser.add_argument("--no-steps", action="store_true", help="without the interpreter")
    asked = parser.parse_args()
    heads = ("cycles", "place", "first", "second", "steps", "M/s")
    print(f"{'design':22}{'fabric':8}" + "".join(f"{head:>10}" for head in heads))
    for name, fabric, made in DESIGNS:
        if asked.only not in name:
            continue
        func = made()
        generator = np.random.default_rng(0)
        inputs = {
            tensor.array: generator.standard_normal(tensor.shape)
            for tensor in t2s.lower(func).tensors
            if tensor.role.value == "input"
        }
        start = time.process_time()
        placed = t2s.cgra.place(func, fabric=fabric)
        seconds = [time.process_time() - start]
        cycles = 0
        for _ in range(2):
            start = time.process_time()
            cycles = t2s.simulate(placed, inputs, progress=False).cycles
            seconds.append(time.process_time() - start)
        if not asked.no_steps:
            start = time.process_time()
            run = placed.run(inputs)
            seconds.append(time.process_time() - start)
            assert run.cycles == cycles
            seconds.append(cycles * len(run.cells) / seconds[-1] / 1e6)
        print(f"{name:22}{fabric:8}{cycles:10,}" + "".join(f"{item:10.2f}" for item in seconds))


if __name__ == "__main__":
    main()
