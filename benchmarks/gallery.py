"""Every representation of the gallery in hardware: cycles of one product on real matrices.

    python -m benchmarks.gallery                          float32, 4 machines, all of --matrices
    python -m benchmarks.gallery --only jagmesh7 --machines 8 --type int32

Results are compared with scipy: integers exactly; floats within n * eps times the sum of the
absolute values of the n terms of a row ("error" is the largest share of that sum).  The bound is
the larger of the steps of a machine and the bytes moved over the bandwidth of the device;
"fraction" is the bound over the cycles of the run, and "cause" what takes most of the rest where it
is below 90 %, as ``t2s.representation.product_report`` has them.  Every row is a line
of ``--results``; what is there already is not measured again.
A representation that would store more than ``--most`` values for each entry is left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import t2s
from benchmarks.spmv import FOLDER, matrix_files
from t2s import Float, Func, ImageParam, Int, RDom, Var
from t2s.representation import Chain, MatrixParam, gallery, product_report, read_matrix

GALLERY = {
    "CSR": gallery.csr,
    "CSC": gallery.csc,
    "CISR": gallery.cisr,
    "ELL": gallery.ell,
    "sliced ELL": gallery.sliced_ell,
    "blocked CSR": gallery.blocked_csr,
    "blocked CSC": gallery.blocked_csc,
    "row blocks": gallery.row_blocks,
    "DCSR": gallery.dcsr,
    "COO": gallery.coo,
    "DIA": gallery.dia,
}
TYPES = {"float32": Float(32), "int32": Int(32)}
DEVICE = "arria10"


def product(A: MatrixParam) -> Func:
    """y = A x, without directives."""
    x = ImageParam(A.type, 1, name="x")
    ip, jp, r = Var("ip"), RDom(0, A.values.extent(1), name="jp"), Var("r")
    i, j = A.inverse_map(ip, jp)
    y = Func("y")
    y[r] = 0
    y[i] += A.values[ip, jp] * x[j]
    return y


def values_for_an_entry(name: str, matrix: sparse.csr_array) -> float:
    """About how many values a padded representation stores for each entry."""
    lengths = np.diff(matrix.indptr)
    stored = matrix.nnz
    if name == "ELL":
        stored = matrix.shape[0] * lengths.max(initial=0)
    elif name == "DIA":
        rows = np.repeat(np.arange(matrix.shape[0]), lengths)
        stored = matrix.shape[0] * np.unique(matrix.indices - rows).size
    return float(stored / max(1, matrix.nnz))


def measure(chain: Chain, matrix: sparse.csr_array, type: t2s.Type) -> list[str]:
    """A row of the table: padding, steps, cycles, fraction, error, cause."""
    A = MatrixParam(type, 2, chain, name="A")
    y, storage = product(A), A.store(matrix)
    x = np.random.default_rng(7).standard_normal(matrix.shape[1])
    x = (8 * x if type.is_integer else x).astype(type.numpy)
    result = t2s.simulate(y, {"A": storage, "x": x}, device=DEVICE)
    error = difference(matrix, x, result.outputs["y"])
    report = product_report(y, result, {"A": storage})
    return [
        f"{report.padding:.1%}", f"{report.balance:.1%}", f"{report.steps:,}",
        f"{report.cycles:,}", f"{report.fraction:.1%}", error, report.cause,
    ]  # fmt: skip


def difference(matrix: sparse.csr_array, x: np.ndarray, y: np.ndarray) -> str:
    """How far a result is from scipy's; ``AssertionError`` where it is too far."""
    if np.issubdtype(x.dtype, np.integer):
        np.testing.assert_array_equal(y, matrix @ x)
        return "exact"
    exact = matrix.astype(np.float64) @ x.astype(np.float64)
    scale = abs(matrix).astype(np.float64) @ abs(x).astype(np.float64)
    share = np.abs(y - exact) / np.where(scale > 0, scale, 1)
    terms = np.maximum(1, np.diff(matrix.indptr))
    assert (share <= terms * np.finfo(x.dtype).eps).all(), share.max()
    return f"{share.max(initial=0.0):.0e}"


def rows(folder: Path, chosen: argparse.Namespace) -> Iterator[list[str]]:
    """All rows of the table."""
    known: dict[str, list[str]] = {}
    if chosen.results.exists():
        known = dict(json.loads(line) for line in chosen.results.read_text().splitlines())
    type = TYPES[chosen.type]
    for path in matrix_files(folder):
        if chosen.only and path.stem not in chosen.only:
            continue
        try:
            matrix = sparse.csr_array(read_matrix(path, Float(64)))
        except t2s.errors.UserError:
            continue  # complex numbers
        if not chosen.least <= matrix.nnz <= chosen.largest:
            continue
        if type.is_integer:
            matrix.data = np.sign(matrix.data) * (1 + np.arange(matrix.nnz) % 9)
        matrix = matrix.astype(type.numpy)
        for name, make in GALLERY.items():
            if chosen.chains and name not in chosen.chains:
                continue
            key = f"{path.stem} {name} {chosen.machines} {chosen.type}"
            if key not in known and values_for_an_entry(name, matrix) <= chosen.most:
                known[key] = measure(make(machines=chosen.machines), matrix, type)
                with chosen.results.open("a") as file:
                    file.write(json.dumps([key, known[key]]) + "\n")
            if key in known:
                yield [path.stem, f"{matrix.nnz:,}", name, *known[key]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--results", type=Path, default=Path("gallery.jsonl"))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--chains", nargs="*", default=[], help="names of representations")
    parser.add_argument("--machines", type=int, default=4)
    parser.add_argument("--type", choices=list(TYPES), default="float32")
    parser.add_argument("--least", type=int, default=1, help="entries of a matrix, at least")
    parser.add_argument("--largest", type=int, default=100_000, help="entries of a matrix, at most")
    parser.add_argument("--most", type=float, default=8.0, help="stored values for each entry")
    chosen = parser.parse_args()
    table = Table(title=f"{chosen.machines} machines, {chosen.type}, {DEVICE}")
    heads = "matrix,entries,chain,padding,balance,steps,cycles,fraction,error,cause"
    for head in heads.split(","):
        left = head in ("matrix", "chain", "cause")
        table.add_column(head, justify="left" if left else "right", no_wrap=True)
    for row in rows(chosen.matrices, chosen):
        table.add_row(*row)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
