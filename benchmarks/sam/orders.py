"""The six orders of a matrix product (papers/001, Fig. 12): ``python benchmarks/sam/orders.py``.

X(i,j) = B(i,k) C(k,j) with 250 x 100 and 100 x 250 uniformly random matrices, 95 % sparse, with as
many entries as the published ones.  Cycles with channels without bounds beside the published ones,
then what bounded channels cost: ``depth`` is the capacity of each, and "equal" says that all have
just that, also where ways of different length meet.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from chart import bars, page
from inputs import left, right
from rich.console import Console
from rich.table import Table

from t2s import UserError
from t2s.sparse import Kernel, Schedule, parse
from t2s.sparse_repr.streams import UNBOUNDED

PUBLISHED = {
    "ijk": 662574,
    "jik": 662574,
    "ikj": 25235,
    "jki": 24910,
    "kij": 30833,
    "kji": 30898,
}
DEPTHS = (8, 4, 2, 1)


def kernel_of(order: str) -> Kernel:
    """The product in an order of loops, with tensors stored in that order."""

    def stored(name: str, modes: str) -> str:
        first, second = (order.index(mode) for mode in modes)
        return f"{name}:ss" if first < second else f"{name}:ss:1,0"

    formats = [stored("B", "ik"), stored("C", "kj"), stored("X", "ij")]
    return Kernel(parse("X(i,j)=B(i,k)*C(k,j)", formats), Schedule().reorder(" ".join(order)))


def cycles_of(kernel: Kernel, depth: int, *, balance: bool = True) -> int | None:
    """Cycles of a run whose values are right; ``None`` if its channels are too small to finish."""
    inputs = {"B": left(), "C": right()}
    try:
        result = kernel.simulate(inputs, capacity=depth, balance=balance)
    except UserError as error:
        if "deadlock" not in error.message:
            raise
        return None
    if not np.array_equal(result.output, inputs["B"] @ inputs["C"]):
        raise AssertionError(f"wrong values: {kernel}")
    return result.cycles


def share(cycles: int | None, base: int) -> str:
    """What is added to the base, in percent."""
    return "deadlock" if cycles is None else f"{100 * (cycles / base - 1):+.1f} %"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/orders.html"))
    options = parser.parse_args()
    table = Table("order", "cycles", "published", "deviation", title="Fig. 12")
    bounded = Table("order", *(f"depth {depth}" for depth in DEPTHS), title="bounded channels")
    for depth in DEPTHS:
        bounded.add_column(f"equal {depth}")
    found = {}
    for order, published in PUBLISHED.items():
        kernel = kernel_of(order)
        cycles = cycles_of(kernel, UNBOUNDED)
        assert cycles is not None
        found[order] = cycles
        table.add_row(
            order, f"{cycles:,}", f"{published:,}", f"{100 * (cycles / published - 1):+.2f} %"
        )
        cells = [
            share(cycles_of(kernel, depth, balance=balance), cycles)
            for balance in (True, False)
            for depth in DEPTHS
        ]
        bounded.add_row(order, *cells)
    console = Console(width=120)
    console.print(table, bounded)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    page(
        "Matrix products",
        [bars("Six orders", {"here": found, "published": PUBLISHED})],
        options.out,
    )
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
