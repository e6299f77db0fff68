"""What ``sparse.search`` finds for A * A^T: the best beside the default and the worst point.

    python benchmarks/sparse_search.py --matrices FOLDER --only cavity02 jagmesh7 lp_e226

The worst is of the orders with compressed levels everywhere, or everywhere but outside, without
lanes.  Seconds are of CPU.
"""

from __future__ import annotations

import argparse
from itertools import permutations
from pathlib import Path

from scipy import sparse as sp

import t2s
from t2s import sparse
from t2s.core.display import Table

FOLDER = Path(__file__).parent / "matrices"
STATEMENT = "X(i,j)=B(i,k)*C(k,j)"
MODES = {"X": "ij", "B": "ik", "C": "kj"}


def worst_of(inputs: dict[str, sp.csr_array]) -> int:
    """The most cycles over the six orders, with compressed levels."""
    found = []
    for order in permutations("ijk"):
        formats = {
            name: "ss" if order.index(modes[0]) < order.index(modes[1]) else "ss:1,0"
            for name, modes in MODES.items()
        }
        kernel = sparse.compile(sparse.parse(STATEMENT, formats), sparse.Schedule().reorder(*order))
        found.append(t2s.cycles(kernel, inputs))
    return max(found)


def main() -> None:
    """Search for each matrix, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="+", default=["karate", "lp_afiro"])
    parser.add_argument("--lanes", type=int, default=4)
    parser.add_argument("--fixed", nargs="*", default=["X"])
    parser.add_argument("--directives", nargs="*", default=["skip"])
    arguments = parser.parse_args()
    rows = []
    for name in arguments.only:
        path = arguments.matrices / f"{name}.mtx"
        if not path.is_file():
            raise SystemExit(f"no {path.name} in {arguments.matrices}: name a folder by --matrices")
        matrix = sp.csr_array(sparse.to_scipy(sparse.read(path)).astype(float))
        inputs = {"B": matrix, "C": sp.csr_array(matrix.T)}
        found = sparse.search(
            STATEMENT,
            inputs,
            formats={"X": "ss", "B": "ss", "C": "ss"},
            fixed=arguments.fixed,
            lanes=arguments.lanes,
            directives=arguments.directives,
        )
        default = "-" if found.default_cycles is None else f"{found.default_cycles:,}"
        best = f"{' '.join(found.best.order)} {found.best.formats_text} {found.schedule}"
        cells = f"{worst_of(inputs):,}", default, f"{found.cycles:,}", f"{found.cpu_seconds:.0f}"
        rows.append((name, *cells, f"{found.tried}", best))
        print(rows[-1], flush=True)
    headers = ("matrix", "worst", "default", "best", "CPU s", "points", "the best")
    table = Table(title=STATEMENT, headers=headers, rows=tuple(rows), left=frozenset({0, 6}))
    print(table.text())


if __name__ == "__main__":
    main()
