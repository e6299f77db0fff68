"""The cost of values apart from time: ``python benchmarks/values.py`` from the repository root.

GEMM 1024^3 on 10 x 8 PEs of 16 lanes, 32 x 32 results each, in two shapes: operands straight from
the loaders (``benchmarks/engine.py``), and the paper's design with feeders, buffers and a drain
(``examples/gemm/systolic.py``); 1024 is padded to whole tiles.  The other kernels have the sizes
that their examples run with, and are small: what a run costs besides its loops shows there.

* **first** is a new design: following the values, emitting and compiling code, and one run.
* **again** is one run of a design that is ready.
* **ns** is the latter per firing of all PEs that compute.
* **rings** is the same by rings between PEs, firing by firing (the large GEMMs: with one tile).

The limit is a plain loop over one tile that stays in the cache, which rounds like the design.
numba compiles it, which t2s does not depend on (``python -m pip install numba``).  sgemm is numpy's
product of the same size, which does not round between a multiplication and the addition.  All times
are of one core's processor, the least of some runs.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

import t2s
from benchmarks.engine import gemm, inputs_of
from examples.gemm import systolic
from t2s import Graph
from t2s.graph.graph import TensorRole
from t2s.graph.nodes import Role
from t2s.llvm.compile import cache_directory
from t2s.simulator.run import simulate_cycles
from t2s.simulator.values.compute import compute_values, compute_with_rings

RUNS = 5
KERNELS = ("mttkrp.mttkrp", "ttm.ttm", "ttmc.ttmc", "convolution.convolution", "capsule.capsule")
GOAL = 0.25


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of a design, and firings of the PEs that compute."""

    name: str
    firings: int
    first: float
    again: float
    rings: float


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def least(run: Callable[[], object], runs: int = RUNS) -> float:
    return min(seconds(run) for _ in range(runs))


def random_inputs(graph: Graph) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        tensor.array: generator.standard_normal(tensor.shape).astype(tensor.type.numpy)
        for tensor in graph.tensors
        if tensor.role is TensorRole.INPUT
    }


def computing(graph: Graph) -> int:
    """Firings of the PEs that compute."""
    nodes = {node.name for node in graph.nodes if node.role is Role.COMPUTE}
    result = simulate_cycles(graph)
    return sum(row.firings for name, row in result.nodes.items() if name in nodes)


def cost(name: str, graph: Graph, smaller: Graph | None = None) -> Cost:
    """``smaller`` is what rings run instead; its time per firing is scaled to the graph."""
    inputs, other = random_inputs(graph), smaller or graph
    others = random_inputs(other)
    first = seconds(lambda: compute_values(graph, inputs))
    again = least(lambda: compute_values(graph, inputs))
    compute_with_rings(other, others)
    rings = least(lambda: compute_with_rings(other, others), 2)
    firings = computing(graph)
    scale = 1.0 if smaller is None else firings / computing(smaller)
    return Cost(name=name, firings=firings, first=first, again=again, rings=scale * rings)


def paper(i: int, j: int, k: int) -> Graph:
    sizes = systolic.ARRIA10._replace(I=i, J=j, K=k)
    return t2s.lower(systolic.gemm(sizes))


def designs() -> list[tuple[str, Graph, Graph | None]]:
    found: list[tuple[str, Graph, Graph | None]] = [
        ("GEMM 320 x 256 x 1024", gemm(10, 8, 32, 64), None),
        ("GEMM 1024^3, paper", paper(4, 4, 2), paper(1, 1, 1)),
    ]
    for name in KERNELS:
        module = importlib.import_module(f"examples.{name}")
        found.append((name.split(".")[1], t2s.lower(module.design(module.SMALL)), None))
    return found


@numba.njit(error_model="numpy")
def tile_products(a: np.ndarray, b: np.ndarray, c: np.ndarray, times: int) -> None:
    """``c[i, j] += a[i] . b[:, j]`` of 16 lanes as a balanced tree, again and again."""
    for _ in range(times):
        for i in range(c.shape[0]):
            x = a[i]
            for j in range(c.shape[1]):
                low = (x[0] * b[0, j] + x[1] * b[1, j]) + (x[2] * b[2, j] + x[3] * b[3, j])
                low += (x[4] * b[4, j] + x[5] * b[5, j]) + (x[6] * b[6, j] + x[7] * b[7, j])
                high = (x[8] * b[8, j] + x[9] * b[9, j]) + (x[10] * b[10, j] + x[11] * b[11, j])
                high += (x[12] * b[12, j] + x[13] * b[13, j]) + (
                    x[14] * b[14, j] + x[15] * b[15, j]
                )
                c[i, j] += low + high


def limit() -> float:
    """Nanoseconds per firing of a plain loop over a tile in the cache."""
    a, b = np.ones((32, 16), np.float32), np.ones((16, 32), np.float32)
    c, times = np.zeros((32, 32), np.float32), 2000
    tile_products(a, b, c, 1)
    return least(lambda: tile_products(a, b, c, times)) / (times * c.size) * 1e9


def main() -> None:
    table = Table("design", "M firings", "first s", "again s", "ns", "rings s", "rings / again")
    costs = [cost(*design) for design in designs()]
    for row in costs:
        table.add_row(
            row.name,
            f"{row.firings / 1e6:.2f}",
            f"{row.first:.3f}",
            f"{row.again:.4f}",
            f"{row.again / row.firings * 1e9:.2f}",
            f"{row.rings:.3f}",
            f"{row.rings / row.again:.0f}",
        )
    console = Console()
    console.print(table)
    a, b = (inputs_of(gemm(1, 1, 1024, 64))[name] for name in "AB")
    sgemm = least(lambda: a @ b.T)
    large = costs[1]
    console.print(
        f"sgemm 1024^3        {sgemm:.4f} s; the paper's design takes "
        f"{large.again / sgemm:.1f} times as long"
    )
    console.print(f"a loop in the cache {limit():.2f} ns per firing of 16 lanes")
    console.print(f"goal                {GOAL} s for GEMM 1024^3, values and cycles")
    console.print(f"compiled code is in {cache_directory()}")


if __name__ == "__main__":
    main()
