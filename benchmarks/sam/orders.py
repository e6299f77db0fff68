"""The six orders of a matrix product [SAM, Fig. 12]: ``python benchmarks/sam/orders.py``.

X(i,j) = B(i,k) C(k,j) with 250 x 100 and 100 x 250 uniformly random matrices, 95 % sparse, with as
many entries as the published ones.  Cycles with channels without bounds beside the published ones,
then what bounded channels cost.  A published queue of depth N takes a token as long as it holds N
or fewer, so it holds N + 1, which is the capacity of ours: the columns say "depth (capacity)".  A
channel of one token passes one in every second cycle, there and here.  "equal" are channels that
all hold just that many; else those where ways of different length meet hold more, as the compiler
makes them.  The published figures (in parentheses) are of other, smaller inputs; that simulator
crashes on ikj, and does not end on ijk at depth 0.

Last, who waits at depth 4.  The node with the most firings takes nearly all cycles of a run without
bounds; the cycles in which it is blocked are those that the run takes more.  In ikj and jki that is
the scanner of k: matching k come in bursts, each is the reference of a fiber of 13 entries on
average, and a channel with less room for them than a burst has stops the scanners before it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from chart import bars, page
from expressions import TABLE
from inputs import Array, left, matrix, right
from rich.console import Console
from rich.table import Table

from t2s.errors import UserError
from t2s.sparse import Kernel, Schedule, SparseResult, parse
from t2s.sparse_repr.streams import UNBOUNDED

PUBLISHED = {
    "ijk": 662574,
    "jik": 662574,
    "ikj": 25235,
    "jki": 24910,
    "kij": 30833,
    "kji": 30898,
}
DEPTHS = (8, 4, 2, 1, 0)
BOUNDED = {
    "ijk": (0.0, 0.0, 0.0, 20.6, None),
    "kij": (0.0, 0.0, 11.3, 41.3, 113.6),
    "elementwise sum": (0.0, 0.0, 0.0, 17.2, 120.8),
    "residual": (0.0, 0.0, 0.0, 15.3, 128.8),
    "tensor times matrix": (0.0, 0.0, 0.0, 22.2, 142.0),
}
"""What published queues of ``DEPTHS`` add to the cycles, in percent; ``None`` without an end."""


def kernel_of(order: str) -> Kernel:
    """The product in an order of loops, with tensors stored in that order."""

    def stored(name: str, modes: str) -> str:
        first, second = (order.index(mode) for mode in modes)
        return f"{name}:ss" if first < second else f"{name}:ss:1,0"

    formats = [stored("B", "ik"), stored("C", "kj"), stored("X", "ij")]
    return Kernel(
        parse("X(i,j)=B(i,k)*C(k,j)", formats), Schedule().scan().reorder(" ".join(order))
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel and inputs for it."""

    kernel: Kernel
    inputs: Mapping[str, Array]

    def run(self, capacity: int, *, balance: bool = True) -> SparseResult | None:
        """A run whose values are right; ``None`` if its channels are too small to finish."""
        try:
            result = self.kernel.simulate(self.inputs, capacity=capacity, balance=balance)
        except UserError as error:
            if "deadlock" not in error.message:
                raise
            return None
        if not np.array_equal(result.output, self.kernel.interpret(self.inputs)):
            raise AssertionError(f"wrong values: {self.kernel}")
        return result


def cases() -> dict[str, Case]:
    """The six orders, and the other expressions whose bounded channels are published."""
    product = {"B": left(), "C": right()}
    found = {order: Case(kernel=kernel_of(order), inputs=product) for order in PUBLISHED}
    rows = {row.name: row.kernel() for row in TABLE}
    square = {name: matrix(40, 40, 80, seed) for seed, name in enumerate("BC")}
    vectors = {name: matrix(1, 60, 30, seed)[0] for seed, name in enumerate("bd")}
    cube = matrix(20, 80, 80, 5).reshape(20, 8, 10)
    return found | {
        "elementwise sum": Case(kernel=rows["MMAdd"], inputs=square),
        "residual": Case(kernel=rows["Residual"], inputs={**vectors, "C": matrix(60, 60, 180, 2)}),
        "tensor times matrix": Case(
            kernel=rows["TTM"], inputs={"B": cube, "C": matrix(12, 10, 40, 6)}
        ),
    }


def share(run: SparseResult | None, base: int, published: float | None) -> str:
    """What is added to the base, in percent, and the published figure if there is one."""
    ours = "deadlock" if run is None else f"{100 * (run.cycles / base - 1):+.1f}"
    return ours if published is None else f"{ours} ({published:+.1f})"


def who_waits(free: SparseResult, bounded: SparseResult) -> tuple[str, str, str, str]:
    """The busiest node without bounds, how long it is blocked with them, and by what.

    That is the channel that saves most of the cycles if it alone has no bound.
    """
    busiest = max(free.stages[-1].nodes.values(), key=lambda node: node.firings)
    run, more = bounded.stages[-1], bounded.cycles - free.cycles
    blocked = run.nodes[busiest.name].blocked
    cause = "-"
    if more:
        names = [channel.name for channel in run.program.graph.channels]
        saved = {name: run.cycles - run.retime({name: UNBOUNDED}).cycles for name in names}
        best = max(names, key=lambda name: saved[name])
        cause = f"{best}: {saved[best]:,} of them"
    return f"{busiest.name}, {busiest.firings:,}", f"{blocked:,}", f"{more:,}", cause


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("build/orders.html"))
    options = parser.parse_args()
    table = Table("order", "cycles", "published", "deviation", title="Fig. 12")
    bounded = Table("%", "cycles", title="bounded channels: depth (capacity)")
    for kind in ("", "equal "):
        for depth in DEPTHS:
            bounded.add_column(f"{kind}{depth} ({depth + 1})")
    waits = Table(
        "depth 4", "busiest, firings", "blocked", "cycles more", "because of", title="who waits"
    )
    found = {}
    for name, case in cases().items():
        free = case.run(UNBOUNDED)
        assert free is not None
        cycles = free.cycles
        if name in PUBLISHED:
            published = PUBLISHED[name]
            found[name] = cycles
            off = f"{100 * (cycles / published - 1):+.2f} %"
            table.add_row(name, f"{cycles:,}", f"{published:,}", off)
        theirs = BOUNDED.get(name, (None,) * len(DEPTHS))
        runs = {depth: case.run(depth + 1) for depth in DEPTHS}
        equal = {depth: case.run(depth + 1, balance=False) for depth in DEPTHS}
        cells = [share(runs[depth], cycles, None) for depth in DEPTHS]
        cells += [share(equal[depth], cycles, at) for depth, at in zip(DEPTHS, theirs, strict=True)]
        bounded.add_row(name, f"{cycles:,}", *cells)
        four = runs[4]
        assert four is not None
        waits.add_row(name, *who_waits(free, four))
    console = Console(width=140)
    console.print(table, bounded, waits)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    page(
        "Matrix products",
        [bars("Six orders", {"here": found, "published": PUBLISHED})],
        options.out,
    )
    console.print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
