"""The operand of a sparse product in banks: RAM blocks saved against cycles lost.

    python benchmarks/banks.py                               8 machines, 8 and 16 banks
    python benchmarks/banks.py --only lp_e226 --machines 16 --banks 16 32

For every matrix the design of ``examples/spmv/cisr.py`` with a copy of x for each multiplier, and
with one x that all share, in banks of two ports.  *RAM* counts blocks of 512 words for x;
*conflicts* are cycles in which a bank did not let a step pass, the mean of all banks; *lost* is the
share of cycles more than with copies.  Both give the same values, which are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from spmv import DEVICE, FOLDER, RAM_WORDS, example, matrix_of

import t2s
from t2s import Float, Func
from t2s.representation import product_report

MATRICES = ("lp_e226", "jagmesh7", "cavity02", "G32", "bwm2000", "gemat1")


def blocks(columns: int, memories: int) -> int:
    """RAM blocks of so many memories, each with its share of the columns."""
    return memories * -(-columns // RAM_WORDS)


def rows(folder: Path, chosen: argparse.Namespace) -> Iterator[list[str]]:
    """All rows of the table."""
    cisr = example("cisr")
    for name in chosen.only:
        matrix = matrix_of(folder, name)
        x = np.random.default_rng(7).standard_normal(matrix.shape[1]).astype(np.float32)
        inputs = {"A": matrix, "x": x}

        def run(y: Func, inputs: dict[str, object] = inputs) -> t2s.SimResult:
            return t2s.simulate(y, inputs, device=DEVICE)

        columns = matrix.shape[1]
        for machines in chosen.machines:
            copies = run(cisr.spmv(machines))
            for banks in chosen.banks:
                y = cisr.spmv(machines, Float(32), banks=banks)
                banked = run(y)
                np.testing.assert_array_equal(banked.outputs["y"], copies.outputs["y"])
                report = product_report(y, banked, {"A": matrix})
                yield [
                    name,
                    f"{columns:,}",
                    str(machines),
                    str(banks),
                    str(blocks(columns, machines)),
                    str(blocks(-(-columns // banks), banks)),
                    f"{copies.cycles:,}",
                    f"{banked.cycles:,}",
                    f"{report.conflicts:,}",
                    f"{banked.cycles / copies.cycles - 1:.1%}",
                ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--matrices", type=Path, default=FOLDER)
    parser.add_argument("--only", nargs="+", default=list(MATRICES))
    parser.add_argument("--machines", type=int, nargs="+", default=[8])
    parser.add_argument("--banks", type=int, nargs="+", default=[8, 16])
    chosen = parser.parse_args()
    table = Table(title=f"x in banks, {DEVICE.name}", box=None, pad_edge=False)
    table.add_column("matrix", no_wrap=True)
    heads = "columns,machines,banks,RAM copies,RAM banks,cycles copies,cycles banks,conflicts,lost"
    for head in heads.split(","):
        table.add_column(head, justify="right")
    for row in rows(chosen.matrices, chosen):
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
