"""What representations cost: time and memory to build them, and how evenly machines are loaded.

    python benchmarks/representation.py build        5 million non-zeros, every representation
    python benchmarks/representation.py schedules    three policies on the matrices of a folder

``build`` prints seconds of processor time (the smallest of three runs) and the peak of memory
allocated meanwhile, over that of the CSR matrix itself.  ``schedules`` reads all .mtx files of
``--matrices`` and prints for each number of machines the padding at the ends of their streams and
the balance (mean over largest load).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from spmv import FOLDER, matrix_files

import t2s
from t2s import Float, Var
from t2s.representation import (
    ASAP,
    Columns,
    Index,
    Length,
    LongestFirst,
    MatrixParam,
    RoundRobin,
    Rows,
    Zero,
    dense_matrix,
    read_matrix,
)

POLICIES = {
    "ASAP": ASAP,
    "round-robin": RoundRobin,
    "longest first": LongestFirst,
}


def random_csr(rows: int, nnz: int) -> sparse.csr_array:
    """A float32 matrix with about ``nnz`` entries, uniformly at random."""
    generator = np.random.default_rng(1)
    places = np.unique(generator.integers(0, rows * rows, nnz))
    starts = np.searchsorted(places, np.arange(rows + 1) * rows)
    values = generator.random(places.size, dtype=np.float32)
    columns = (places % rows).astype(np.int32)
    return sparse.csr_array((values, columns, starts), shape=(rows, rows))


def build(rows: int, nnz: int) -> Iterator[tuple[str, float, float, float]]:
    """Name, seconds, peak memory over that of the matrix, padding."""
    matrix = random_csr(rows, nnz)
    own = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    gallery = t2s.representation.gallery
    for name, chain in {
        "CSR": gallery.csr(4),
        "CSC": gallery.csc(4),
        "CISR": gallery.cisr(4),
        "ELL": gallery.ell(4),
        "sliced ELL": gallery.sliced_ell(4),
        "blocked CSR": gallery.blocked_csr(4),
        "blocks of rows": gallery.row_blocks(2, 2),
        "COO": gallery.coo(4),
    }.items():
        A = MatrixParam(Float(32), 2, chain, name="A")
        seconds = min(_seconds(A, matrix) for _ in range(3))
        tracemalloc.start()
        storage = A.store(matrix)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        yield name, seconds, peak / own, storage.padding


def _seconds(A: MatrixParam, matrix: sparse.csr_array) -> float:
    start = time.process_time()
    A.store(matrix)
    return time.process_time() - start


def schedules(folder: Path, machines: tuple[int, ...]) -> Iterator[list[str]]:
    """A row for each matrix: name, size, and padding with balance of every policy."""
    for path in matrix_files(folder):
        try:
            matrix = read_matrix(path, Float(32))
        except t2s.errors.UserError:
            continue  # complex numbers
        row = [path.stem, f"{matrix.shape[0]} x {matrix.shape[1]}", str(matrix.nnz)]
        for count in machines:
            for policy in POLICIES.values():
                row_len, col_idx, job = Var("row_len"), Var("col_idx"), Var("job")
                chain = (
                    dense_matrix()
                    .pack(
                        Columns,
                        Length(row_len),
                        Index(col_idx),
                    )
                    .schedule(
                        Rows,
                        count,
                        policy,
                        Zero,
                        Index(job),
                    )
                )
                storage = MatrixParam(Float(32), 2, chain, name="A").store(matrix)
                row.append(f"{storage.padding:6.1%} {storage.balance:6.1%}")
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["build", "schedules"])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--nnz", type=int, default=5_000_000)
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--machines", type=int, nargs="+", default=[4, 16])
    chosen = parser.parse_args()
    table = Table(title="Time and memory of building" if chosen.what == "build" else "Policies")
    if chosen.what == "build":
        for head in ("representation", "seconds", "memory", "padding"):
            table.add_column(head, justify="left" if head == "representation" else "right")
        for name, seconds, memory, padding in build(chosen.rows, chosen.nnz):
            table.add_row(name, f"{seconds:.2f}", f"{memory:.1f}x", f"{padding:.1%}")
    else:
        for head in ("matrix", "size", "entries"):
            table.add_column(head, justify="right" if head == "entries" else "left", no_wrap=True)
        for count in chosen.machines:
            for name in POLICIES:
                head = f"{name}\n{count} machines\npadding balance"
                table.add_column(head, justify="right", no_wrap=True)
        for row in schedules(chosen.matrices, tuple(chosen.machines)):
            table.add_row(*row)
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
