"""Units of the chip for ten kernels: ``python -m benchmarks.stardust.resources``.

Ours, and table 6 of [Stardust] in brackets; at the published ``outer_par``, then at the largest
that fits.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks.stardust.paper import PAPER
from t2s.backends.capstan.resources import CHIP, ChipResources, ChipUnit

HEADERS = ("kernel", "outer_par", *(unit.value for unit in ChipUnit), "limits")


def published_resources() -> Table:
    """The units of each kernel at the published factor, the published ones in brackets."""
    table = Table(*HEADERS, title="Table 6: units, published in brackets")
    for row in PAPER:
        ours = row.kernel().resources()
        cells = [f"{one.used} ({row.units[one.unit]})" for one in ours]
        limits = f"{ours.limiting.unit.value} ({row.limiting.value})"
        table.add_row(row.name, str(row.outer_par), *cells, limits)
    return table


def fitted_resources(count: int) -> Table:
    """The units of the first kernels with ``outer_par="fit"``."""
    table = Table(*HEADERS, title='outer_par="fit", published in brackets')
    for row in PAPER[:count]:
        ours: ChipResources = row.fitted().resources()
        cells = [f"{one.used} ({one.share:.0%})" for one in ours]
        factor = f"{ours.outer_par} ({row.outer_par})"
        table.add_row(row.name, factor, *cells, ours.limiting.unit.value)
    return table


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fit three kernels instead of ten")
    options = parser.parse_args(arguments)
    console = Console(width=120)
    console.print(published_resources())
    console.print(fitted_resources(3 if options.quick else len(PAPER)))
    console.print("the chip has " + ", ".join(f"{CHIP[unit]} {unit.value}" for unit in ChipUnit))


if __name__ == "__main__":
    main()
