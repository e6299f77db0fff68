"""Blocks of the expressions of [SAM, Table 1]: ``python benchmarks/sam/table1.py``.

Every cell is the number of blocks here; where it differs, the published one is behind it, and the
last column says why.  The chart shows all blocks of each expression.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from chart import bars, page
from expressions import COLUMNS, TABLE
from rich.console import Console
from rich.table import Table

from t2s.sparse_repr.lowering.diagram import block_counts


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/table1.html"))
    options = parser.parse_args()
    table = Table("expression", *COLUMNS, "why", title="Table 1")
    here, there, equal = {}, {}, 0
    for row in TABLE:
        counts = block_counts(row.kernel().diagrams)
        found = tuple(counts[column] for column in COLUMNS)
        cells = [
            str(ours) if ours == theirs else f"{ours} ({theirs})"
            for ours, theirs in zip(found, row.published, strict=True)
        ]
        same = found == row.published
        equal += same
        table.add_row(row.name, *cells, "" if same else row.reason or "not explained")
        here[row.name], there[row.name] = sum(found), sum(row.published)
    console = Console(width=150)
    console.print(table)
    console.print(f"{equal} of {len(TABLE)} rows are those of the paper")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure = bars("Blocks", {"here": here, "published": there}, up="blocks")
    page("Blocks of expressions", [figure], options.out)
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
