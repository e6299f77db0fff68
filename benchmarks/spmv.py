"""Sparse matrix-vector products on real matrices: cycles against the bound, and what is in the way.

    python benchmarks/spmv.py                          both designs, all matrices of --matrices
    python benchmarks/spmv.py --machines 8 16 32       more machines, rows dealt out in turn

The bound is the larger of the steps of the machines (their values with padding) and the bytes that
are moved over the bandwidth of the device.  "fraction" is the bound over the cycles of the run,
from the first load to the last store.  The largest cause of the rest is one of: filling x (before
the first product), draining y (after the last), the decoder (one row of a machine, or of all
machines together, in a cycle), and memory in between.  "MHz" are firings per second of processor
time, in millions, once the design is compiled.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

import t2s
from t2s import Float

EXAMPLES = Path(__file__).parent.parent / "examples" / "spmv"
DEVICE = "arria10"
BYTES_PER_CYCLE = 34.1e9 / 215e6


def example(name: str) -> ModuleType:
    """A file of ``examples/spmv`` as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(y: t2s.Func, matrix: sparse.csr_array) -> dict[str, object]:
    """Simulate a product and compare with scipy."""
    x = np.random.default_rng(7).standard_normal(matrix.shape[1]).astype(np.float32)
    arrays = t2s.structure(y, A=matrix)
    graph = t2s.lower(y, A=matrix)
    t2s.simulate(graph, {**arrays, "x": x}, device=DEVICE)  # compiles the design
    start = time.process_time()
    result = t2s.simulate(graph, {**arrays, "x": x}, device=DEVICE)
    seconds = time.process_time() - start
    exact = matrix.astype(np.float64) @ x.astype(np.float64)
    scale = abs(matrix).astype(np.float64) @ abs(x).astype(np.float64)
    error = np.abs(result.outputs["y"] - exact) / np.where(scale > 0, scale, 1)
    names = list(result.nodes)
    multiplier = result.nodes[next(n for n in names if n.endswith("multiplier"))]
    moved = sum(array.nbytes for array in arrays.values()) + x.nbytes + result.outputs["y"].nbytes
    steps = multiplier.firings // multiplier.pe_count
    bound = max(steps, moved / BYTES_PER_CYCLE)
    return {
        "steps": steps,
        "padding": 1 - matrix.nnz / arrays["A_values"].size,
        "cycles": result.cycles,
        "fraction": bound / result.cycles,
        "cause": cause(result, multiplier, int(bound)),
        "error": float(error.max(initial=0.0)),
        "rate": result.firings / seconds,
    }


def cause(result: Any, multiplier: Any, bound: int) -> str:
    """What takes most of the cycles beyond the steps."""
    before = multiplier.first_firing
    working = multiplier.last_firing - multiplier.first_firing + 1
    after = result.cycles - multiplier.last_firing
    taker = result.nodes.get("Y", multiplier)  # what takes the rows
    late = sum(count for name, count in taker.starved_by.items() if name.endswith("_row"))
    slow = "decoder" if 2 * late > taker.starved else "memory"
    causes = {
        f"x and memory {before}": before,
        f"y and memory {after}": after,
        f"{slow} {working - bound}": working - bound,
    }
    return max(causes, key=lambda name: causes[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--matrices", type=Path, default=Path("../shared/matrices"))
    parser.add_argument("--machines", type=int, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    chosen = parser.parse_args()
    cisr, row_blocks = example("cisr"), example("row_blocks")
    designs = {
        "CISR, 4 machines": lambda: cisr.spmv(),
        "blocks, 2 machines": lambda: row_blocks.spmv(8),
    }
    for count in chosen.machines:
        designs[f"CISR, {count}"] = lambda count=count: cisr.spmv(count)
        designs[f"in turn, {count}"] = lambda count=count: cisr.spmv(count, policy=t2s.RoundRobin)
    print(
        f"{'matrix':26} {'entries':>7} {'design':18} {'padding':>7} {'steps':>7} {'cycles':>7}"
        f" {'fraction':>8} {'error':>8} {'MHz':>5}  largest cause of the rest"
    )
    for path in sorted(chosen.matrices.glob("*.mtx")):
        if chosen.only and path.stem not in chosen.only:
            continue
        matrix = t2s.read_matrix(path, Float(32))
        for name, make in designs.items():
            row = measure(make(), matrix)
            print(
                f"{path.stem:26} {matrix.nnz:7} {name:18} {row['padding']:7.1%} {row['steps']:7}"
                f" {row['cycles']:7} {row['fraction']:8.1%} {row['error']:8.1e}"
                f" {row['rate'] / 1e6:5.2f}  {row['cause']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
