"""What ``sparse.search`` finds for real matrices, beside the exhaustive truth of the same space.

    python benchmarks/sparse_search.py --matrices FOLDER --only cavity02 jagmesh7 lp_e226
    python benchmarks/sparse_search.py --check --expressions SpMM SpMSpM SDDMM

With ``--check`` every legal point of the space is compiled and run by itself, without bounds and
samples, until it ends or has taken as many cycles as the least of those before: the least cycles of
the space.  *Regret* is what the search is above it.  ``--long`` is the number of cycles from which
points are ranked by samples.  Seconds are of CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse as sp

import t2s
from t2s import sparse
from t2s.core.display import Table
from t2s.driver import sparse_search
from t2s.errors import T2SError

FOLDER = Path(__file__).parent / "matrices"
COLUMNS = 8
"""Columns of dense operands."""

EXPRESSIONS: dict[str, tuple[str, dict[str, str]]] = {
    "SpMM": ("X(i,j)=B(i,k)*C(k,j)", {"X": "dd", "B": "ds"}),
    "SpMSpM": ("X(i,j)=B(i,k)*C(k,j)", {"X": "ss", "B": "ss", "C": "ss"}),
    "SDDMM": ("X(i,j)=B(i,j)*C(i,k)*D(k,j)", {"X": "ss", "B": "ss"}),
}


def inputs_of(name: str, matrix: sp.csr_array) -> dict[str, Any]:
    """The operands of an expression: the matrix, and its transpose or dense ones."""
    rows, columns = matrix.shape
    random = np.random.default_rng(0)
    match name:
        case "SpMM":
            return {"B": matrix, "C": random.standard_normal((columns, COLUMNS))}
        case "SpMSpM":
            return {"B": matrix, "C": sp.csr_array(matrix.T)}
    shapes = {"C": (rows, COLUMNS), "D": (COLUMNS, columns)}
    return {"B": matrix} | {key: random.standard_normal(shape) for key, shape in shapes.items()}


def least_of_all(name: str, inputs: Mapping[str, Any], arguments: argparse.Namespace) -> int:
    """The least cycles of the space, by a plain loop over all of its points."""
    expression, formats = EXPRESSIONS[name]
    assignment = sparse_search._declared(expression, formats, inputs)
    kinds = sparse_search.checked_directives(arguments.directives)
    space, _ = sparse_search._space(
        assignment, inputs, arguments.fixed, "ds", kinds, arguments.lanes, None
    )
    least: int | None = None
    for group in space.candidates():
        for candidate in group:
            try:
                kernel = candidate.kernel(space.assignment)
                run = t2s.simulate(kernel, inputs, max_cycles=least, progress=False)
            except T2SError:  # refused, or cut
                continue
            least = run.cycles if least is None else min(least, run.cycles)
    assert least is not None
    return least


def main() -> None:
    """Search for each matrix and expression, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="+", default=["karate", "lp_afiro"])
    parser.add_argument("--expressions", nargs="+", choices=EXPRESSIONS, default=["SpMSpM"])
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--fixed", nargs="*", default=["X"])
    parser.add_argument("--directives", nargs="*", default=["skip"])
    parser.add_argument("--long", type=int, default=sparse_search.LONG_RUN)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    sparse_search.LONG_RUN = arguments.long
    rows = []
    for matrix_name in arguments.only:
        path = arguments.matrices / f"{matrix_name}.mtx"
        if not path.is_file():
            raise SystemExit(f"no {path.name} in {arguments.matrices}: name a folder by --matrices")
        matrix = sp.csr_array(sparse.to_scipy(sparse.read(path)).astype(float))
        matrix.sort_indices()
        for name in arguments.expressions:
            expression, formats = EXPRESSIONS[name]
            inputs = inputs_of(name, matrix)
            found = sparse.search(
                expression,
                inputs,
                formats=formats,
                fixed=arguments.fixed,
                lanes=arguments.lanes,
                directives=arguments.directives,
            )
            default = "-" if found.default_cycles is None else f"{found.default_cycles:,}"
            cells = [default, f"{found.cycles:,}"]
            full = sum(point.measurement.value == "full run" for point in found.points)
            cells += [f"{found.tried + found.ruled_out}", f"{found.tried}", f"{full}"]
            cells.append(f"{found.cpu_seconds:.0f}")
            if arguments.check:
                began = time.process_time()
                least = least_of_all(name, inputs, arguments)
                regret = f"{(found.cycles - least) / least:.1%}"
                cells += [regret, f"{time.process_time() - began:.0f}"]
            best = f"{' '.join(found.best.order)} {found.best.formats_text} {found.schedule}"
            rows.append((matrix_name, name, *cells, best))
            print(rows[-1], flush=True)
    headers = ["matrix", "", "default", "best", "points", "run", "to the end", "CPU s"]
    headers += ["regret", "CPU s of all"] if arguments.check else []
    table = Table(
        title=f"up to {arguments.lanes} lanes",
        headers=(*headers, "the best"),
        rows=tuple(rows),
        left=frozenset({0, 1, len(headers)}),
    )
    print(table.text())


if __name__ == "__main__":
    main()
