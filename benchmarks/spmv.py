"""Sparse matrix-vector products on real matrices: cycles against the bound, and what is in the way.

    python benchmarks/spmv.py                     both designs on all matrices of --matrices
    python benchmarks/spmv.py --only G32 lpl3     some of them
    python benchmarks/spmv.py --show              the tables of what has been measured

Every measurement is a line of ``--results``; what is there already is not measured again.

* *CISR m*: the design of ``examples/spmv/cisr.py`` on m machines, rows to the first free one.
* *blocks m*: that of ``examples/spmv/row_blocks.py``, two machines with m / 2 multipliers each.

The *bound* is the larger of the steps of the machines (values with padding, over the multipliers)
and of the bytes that have to be moved (matrix, structure, x and y, once) over the device's
bandwidth.  *fraction* is the bound over the cycles of the run, from the first load to the last
store, *streaming* the same without the latency of memory, which matters for small matrices only.
What comes on top of the bound is in five columns, which add up to the cycles (where the bytes are
the bound, some of them are moved in these times too):

* *latency*: of the first load and of the last store;
* *x*: until x is on the chip, so that the first product can be formed;
* *decoder*: firings of the decoder that give no step, since a row is empty;
* *memory*: the machines wait for values, because units share the bandwidth;
* *y*: the adders' latency behind the last product, and the lines of y that are left then.

*stalls* are cycles in which a reduction circuit waits for its own additions.  Where the fraction is
below 90 %, *cause* names the largest of these.  Values are compared with scipy's: int32 have to be
equal, float32 within n * eps * sum |a x| for a row of n values; *error* is the largest error over
that bound.

A matrix fits the device if a copy of x for each multiplier, and y, fit its RAM blocks (512 words of
32 bits each); those that do not are named and left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

import t2s
from t2s import Float, Int
from t2s.report.product_report import ProductReport
from t2s.representation import product_report, read_matrix, structure
from t2s.simulator.devices import DEVICES

EXAMPLES = Path(__file__).parent.parent / "examples" / "spmv"
DEVICE = DEVICES["arria10"]
COUNTS = (2, 4, 8, 16, 32)
GOAL = 0.9
RAM_WORDS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement; ``steps`` and all other times are in cycles."""

    matrix: str
    design: str
    count: int
    entries: int
    fits: bool
    padding: float = 0.0
    balance: float = 0.0
    steps: int = 0
    bound: int = 0
    cycles: int = 0
    latency: int = 0
    x: int = 0
    decoder: int = 0
    memory: int = 0
    y: int = 0
    stalls: int = 0
    integers: bool = False
    error: float = 0.0
    rate: float = 0.0

    @property
    def fraction(self) -> float:
        """The bound over the cycles."""
        return self.bound / max(1, self.cycles)

    @property
    def streaming(self) -> float:
        """The bound over the cycles without the latency of memory."""
        return self.bound / max(1, self.cycles - self.latency)

    @property
    def cause(self) -> str:
        """What takes most of the cycles beyond the bound, where these are many."""
        if self.fraction >= GOAL:
            return ""
        causes = {
            "latency of memory": self.latency,
            "filling x": self.x,
            "empty rows": self.decoder,
            "shared bandwidth": self.memory,
            "rest of y": self.y,
            "reduction": self.stalls,
        }
        return max(causes, key=lambda name: causes[name])


def example(name: str) -> ModuleType:
    """A file of ``examples/spmv`` as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def designs() -> dict[str, Callable[[int, t2s.Type], t2s.Func]]:
    """The two designs, by the number of multipliers."""
    cisr, row_blocks = example("cisr"), example("row_blocks")
    return {
        "CISR": lambda count, type: cisr.spmv(count, type),
        "blocks": lambda count, type: row_blocks.spmv(count, type),
    }


GENERATED = "Trefethen_20000"
FOLDER = Path(__file__).parent / "matrices"
"""Small matrices; its README says where each comes from."""


def matrix_file(folder: Path, name: str) -> Path:
    """The file of a matrix; ends the program with where to get it, if it is not in ``folder``."""
    path = folder / f"{name}.mtx"
    if not path.is_file():
        raise SystemExit(
            f"no {path.name} in {folder}: get it from the SuiteSparse Matrix Collection (in Matrix "
            "Market format), put it into a folder, and name that by --matrices"
        )
    return path


def matrix_files(folder: Path) -> list[Path]:
    """The files of all matrices of a folder; ends the program if there are none."""
    paths = sorted(folder.glob("*.mtx"))
    if not paths:
        raise SystemExit(f"no .mtx files in {folder}")
    return paths


def matrices(folder: Path) -> tuple[str, ...]:
    """The names of all matrices of a folder, and of one that is generated."""
    return (*(path.stem for path in matrix_files(folder)), GENERATED)


def matrix_of(folder: Path, name: str) -> sparse.csr_array:
    """A matrix by its name."""
    if name == GENERATED:
        return trefethen(20_000)
    return read_matrix(matrix_file(folder, name), Float(32))


def trefethen(size: int) -> sparse.csr_array:
    """Primes on the diagonal, 1 where the distance from it is a power of two."""
    sieve = np.ones(size * 12, bool)
    sieve[:2] = False
    for number in range(2, int(len(sieve) ** 0.5) + 1):
        sieve[number * number :: number] &= not sieve[number]
    primes = np.flatnonzero(sieve)[:size].astype(np.float32)
    distances = [1 << bit for bit in range((size - 1).bit_length())]
    lines = [np.ones(size - d, np.float32) for d in distances]
    diagonals = [primes, *lines, *lines]
    offsets = [0, *distances, *(-d for d in distances)]
    return sparse.csr_array(sparse.diags_array(diagonals, offsets=offsets, format="csr"))


def fits(matrix: sparse.csr_array, design: str, count: int) -> bool:
    """Whether the copies of x, and y, fit the RAM blocks of the device."""
    rows, columns = matrix.shape
    banks = 1 if design == "CISR" else 2
    blocks = -(-columns // RAM_WORDS) * count + -(-rows // RAM_WORDS) * banks
    return DEVICE.ram_blocks is None or blocks <= DEVICE.ram_blocks


def measure(name: str, design: str, count: int, folder: Path) -> Row:
    """Simulate a product of floats and one of integers, and compare both with scipy."""
    matrix, make = matrix_of(folder, name), designs()[design]
    row = {"matrix": name, "design": design, "count": count, "entries": matrix.nnz}
    if not fits(matrix, design, count):
        return Row(**row, fits=False)
    generator = np.random.default_rng(7)
    x = generator.standard_normal(matrix.shape[1]).astype(np.float32)
    y = make(count, Float(32))
    graph, arrays = t2s.lower(y, {"A": matrix}), structure(y, {"A": matrix})
    inputs = {**arrays, "x": x}
    t2s.simulate(graph, inputs, device=DEVICE)  # compiles the design
    start = time.process_time()
    result = t2s.simulate(graph, inputs, device=DEVICE)
    seconds = time.process_time() - start
    return Row(
        **row,
        fits=True,
        **account(product_report(y, result, {"A": matrix})),
        padding=1 - matrix.nnz / max(1, arrays["A_values"].size),
        balance=balance(arrays["A_col_idx"]),
        integers=integers_agree(matrix, make(count, Int(32))),
        error=largest_error(matrix, x, result.outputs["y"]),
        rate=result.firings / seconds,
    )


def balance(columns: np.ndarray) -> float:
    """The mean load of the machines over the largest; slots behind the last value are -1."""
    loads = (columns >= 0).sum(axis=1)
    return float(loads.mean() / max(1, loads.max()))


def account(report: ProductReport) -> dict[str, int]:
    """Where the cycles of a run are."""
    return {
        "steps": report.steps,
        "bound": report.bound,
        "cycles": report.cycles,
        "latency": report.latency,
        "x": report.x,
        "decoder": report.decoder,
        "memory": report.waits,
        "y": report.y,
        "stalls": report.stalls,
    }


def integers_agree(matrix: sparse.csr_array, y: t2s.Func) -> bool:
    """Whether int32 products are those of scipy."""
    generator = np.random.default_rng(8)
    values = generator.integers(-9, 10, matrix.nnz).astype(np.int32)
    whole = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    x = generator.integers(-9, 10, matrix.shape[1]).astype(np.int32)
    found = t2s.simulate(y, {"A": whole, "x": x}, device=DEVICE).outputs["y"]
    return bool(np.array_equal(found, whole @ x))


def largest_error(matrix: sparse.csr_array, x: np.ndarray, found: np.ndarray) -> float:
    """The largest error of a row, over the bound of its rounding errors."""
    exact = matrix.astype(np.float64) @ x.astype(np.float64)
    size = abs(matrix).astype(np.float64) @ abs(x).astype(np.float64)
    allowed = np.diff(matrix.indptr) * np.finfo(np.float32).eps * size
    return float((np.abs(found - exact) / np.where(allowed > 0, allowed, 1)).max(initial=0.0))


def show(console: Console, rows: list[Row]) -> None:
    """A table for each design and number of multipliers, and a line about all."""
    for design, count in dict.fromkeys((row.design, row.count) for row in rows):
        chosen = [row for row in rows if (row.design, row.count) == (design, count)]
        table = Table(title=f"{design} {count}", title_justify="left", box=None, pad_edge=False)
        table.add_column("matrix", no_wrap=True)
        heads = "entries padding balance steps bound cycles fraction streaming"
        times = "latency x decoder memory y stalls"
        for head in (*heads.split(), *times.split(), "int32", "error"):
            table.add_column(head, justify="right", no_wrap=True)
        table.add_column("cause", no_wrap=True)
        for row in chosen:
            table.add_row(*cells(row))
        console.print(table)
        console.print()
    measured = [row for row in rows if row.fits]
    right = [row for row in measured if row.integers and row.error <= 1]
    console.print(f"{len(measured)} runs, values right in {len(right)}; device {DEVICE.name}")
    for design, count in dict.fromkeys((row.design, row.count) for row in measured):
        chosen = [row for row in measured if (row.design, row.count) == (design, count)]
        high = sum(row.fraction >= GOAL for row in chosen)
        steady = sum(row.streaming >= GOAL for row in chosen)
        console.print(
            f"{design} {count}: {high} of {len(chosen)} at {GOAL:.0%} or more,"
            f" {steady} without the latency of memory"
        )


def cells(row: Row) -> list[str]:
    """The row of a table."""
    if not row.fits:
        return [row.matrix, str(row.entries), *[""] * 15, "x does not fit the device"]
    times = (row.latency, row.x, row.decoder, row.memory, row.y, row.stalls)
    return [
        row.matrix,
        str(row.entries),
        f"{row.padding:.1%}",
        f"{row.balance:.1%}",
        str(row.steps),
        str(row.bound),
        str(row.cycles),
        f"{row.fraction:.1%}",
        f"{row.streaming:.1%}",
        *map(str, times),
        "equal" if row.integers else "WRONG",
        f"{row.error:.2f}",
        row.cause,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--machines", type=int, nargs="+", default=list(COUNTS))
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--results", type=Path, default=Path("spmv.jsonl"))
    parser.add_argument("--show", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    rows: dict[tuple[str, str, int], Row] = {}
    if chosen.results.exists():
        for line in chosen.results.read_text().splitlines():
            row = Row(**json.loads(line))
            rows[row.matrix, row.design, row.count] = row
    if not chosen.show:
        wanted = [
            (matrix, design, count)
            for design in designs()
            for count in chosen.machines
            for matrix in matrices(chosen.matrices)
            if not chosen.only or matrix in chosen.only
        ]
        missing = [key for key in wanted if key not in rows]
        for number, key in enumerate(missing):
            row = rows[key] = measure(*key, chosen.matrices)
            with chosen.results.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            done = f"{number + 1} of {len(missing)}"
            print(f"{done}: {' '.join(map(str, key))} {row.fraction:.1%} {row.cause}", flush=True)
    kept = [row for row in rows.values() if not chosen.only or row.matrix in chosen.only]
    kept = [row for row in kept if row.count in chosen.machines]
    show(Console(width=200), sorted(kept, key=lambda row: (row.design, row.count)))


if __name__ == "__main__":
    main()
