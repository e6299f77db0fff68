"""Sparse products on Intel's FPGA emulator: equal to the simulator's, matrix by matrix.

    python benchmarks/spmv_emulated.py                 the small matrices here, both designs
    python benchmarks/spmv_emulated.py --only karate   some of them, or others of --matrices

Every product is emitted as OpenCL, built and run on the emulator, and simulated.  The vectors y of
both have to be equal bit by bit, and as scipy's within n * eps * sum |a x| for a row of n values.
Kernels are threads on the emulator and wait actively: seconds are those of this computer.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from spmv import FOLDER, example, matrix_file, matrix_files

import t2s
from t2s import Float
from t2s.representation import read_matrix

TIME_LIMIT = 600


def compare(y: t2s.Func, matrix: sparse.csr_array) -> tuple[bool, float, float]:
    """Whether emulator and simulator agree, the error over its bound, and seconds emulated."""
    x = np.random.default_rng(7).standard_normal(matrix.shape[1]).astype(np.float32)
    inputs = {"A": matrix, "x": x}
    simulated = t2s.simulate(y, inputs, device="arria10").outputs["y"]
    start = time.perf_counter()
    emulated = t2s.emulate(y, inputs, time_limit=TIME_LIMIT)["y"]
    seconds = time.perf_counter() - start
    exact = matrix.astype(np.float64) @ x.astype(np.float64)
    size = abs(matrix).astype(np.float64) @ abs(x).astype(np.float64)
    allowed = np.diff(matrix.indptr) * np.finfo(np.float32).eps * size
    error = np.abs(emulated - exact) / np.where(allowed > 0, allowed, 1)
    return emulated.tobytes() == simulated.tobytes(), float(error.max(initial=0.0)), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[path.stem for path in matrix_files(FOLDER)])
    chosen = parser.parse_args()
    count = chosen.machines
    designs = {
        f"CISR {count}": lambda: example("cisr").spmv(count),
        f"blocks {count}": lambda: example("row_blocks").spmv(count),
    }
    table = Table(box=None, pad_edge=False)
    table.add_column("matrix", no_wrap=True)
    for head in ("rows", "columns", "entries", "design", "emulator", "error / bound", "seconds"):
        table.add_column(head, justify="right", no_wrap=True)
    wrong = 0
    for name in chosen.only:
        matrix = read_matrix(matrix_file(chosen.matrices, name), Float(32))
        for design, make in designs.items():
            same, error, seconds = compare(make(), matrix)
            wrong += not same or error > 1
            answer = "equal" if same else "DIFFERS"
            sizes = (str(matrix.shape[0]), str(matrix.shape[1]), str(matrix.nnz))
            table.add_row(name, *sizes, design, answer, f"{error:.2f}", f"{seconds:.0f}")
            print(f"{name} {design}: {answer} {seconds:.0f} s", flush=True)
    Console(width=120).print(table)
    print(f"{table.row_count - wrong} of {table.row_count} products right and equal")


if __name__ == "__main__":
    main()
