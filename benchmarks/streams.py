"""Block firings per second of the stream engine: ``python benchmarks/streams.py [--quick]``.

Sparse elementwise products and sums, matrix products in three orders, SDDMM and MTTKRP run with
values and times, and are timed again from what their blocks did.  All numbers are processor time,
the least of several runs, with the compiled code in the cache.  Other work on the machine slows
this one down for seconds at a time, so all designs are measured in turn, in several rounds.  The
clock is measured too, as far as this process gets it: the published simulators were timed at 3.2
GHz.  Numbers that are compared with theirs, or with a goal, are scaled
to that clock (*at 3.2*), and marked: ``aim``, ``must``, or ``-`` where even that is missed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.clock import REFERENCE_GHZ, gigahertz
from benchmarks.stream_designs import (
    Arrays,
    compressed,
    elementwise,
    inner_product,
    mttkrp,
    outer_product,
    row_product,
    sddmm,
)
from t2s.core.ops import Op
from t2s.graph.graph import Graph
from t2s.simulator.limits import Limits
from t2s.simulator.native_engine import NativeEngine, retime
from t2s.simulator.program.build import build_program
from t2s.simulator.report.result import SimResult
from t2s.simulator.values.machine_values import stream_values

ROUNDS, RUNS, LONG_ENOUGH = 4, 3, 0.3
"""Rounds, runs of a design in each of them, at least, and seconds that these take together."""

UNBOUNDED = 1 << 30

SAM_MS = {("*", 2000): 2390, ("+", 2000): 2980, ("*", 4000): 19200}
"""The published simulator, which has channels without bounds, on that processor."""

DAM_MS = {
    ("*", 2000): {2: 100, 16: 40, 256: 30},
    ("+", 2000): {2: 170, 16: 120, 256: 90},
    ("*", 4000): {2: 380, 16: 140, 256: 120},
    ("+", 4000): {2: 650, 16: 380, 256: 320},
}
"""DAM with one worker, by depth of the channels, on that processor."""


def least(run: Callable[[], object], runs: int = RUNS) -> float:
    """Milliseconds of processor time of the fastest run, of more runs where they are short."""
    times: list[float] = []
    while len(times) < runs or sum(times) < LONG_ENOUGH:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1e3


@dataclass(frozen=True, slots=True)
class Round:
    """Milliseconds of the parts of a design and of a whole run, at a clock in GHz."""

    values: float
    times: float
    whole: float
    clock: float

    def scaled(self, milliseconds: float) -> float:
        """The same at the clock of the published simulators."""
        return milliseconds * self.clock / REFERENCE_GHZ


@dataclass(slots=True)
class Measured:
    """A design in channels of one depth, and what was measured of it."""

    name: str
    depth: int
    graph: Graph
    inputs: Arrays
    result: SimResult | None = None
    rounds: list[Round] = field(default_factory=list)

    def measure(self) -> None:
        """One round."""
        program = build_program(self.graph, "ideal", self.inputs)
        engine = NativeEngine()
        self.result = engine.run(program, Limits())
        trace = self.result.machine_trace
        assert trace is not None
        self.rounds.append(
            Round(
                values=least(lambda: stream_values(self.graph, self.inputs, {})),
                times=least(lambda: retime(program, trace)),
                whole=least(lambda: engine.run(program, Limits())),
                clock=gigahertz(),
            )
        )

    @property
    def best(self) -> Round:
        """The round with the fastest whole run."""
        return min(self.rounds, key=lambda found: found.scaled(found.whole))

    @property
    def scaled(self) -> float:
        """Milliseconds of a whole run at the clock of the published simulators."""
        return self.best.scaled(self.best.whole)

    @property
    def firings(self) -> int:
        return 0 if self.result is None else self.result.firings

    @property
    def rate(self) -> float:
        """Millions of firings per second, values and times, at that clock."""
        return self.firings / self.scaled / 1e3

    @property
    def retime(self) -> float:
        """Nanoseconds per firing to time the design again, at that clock."""
        return min(found.scaled(found.times) for found in self.rounds) * 1e6 / self.firings


@dataclass(frozen=True, slots=True)
class Goal:
    """What a number must be, and what it aims at; the larger, or the smaller, the better."""

    must: float
    aim: float

    def mark(self, value: float) -> str:
        """Which of the two is reached."""
        sign = 1 if self.aim >= self.must else -1
        reached = [name for name in ("aim", "must") if sign * value >= sign * getattr(self, name)]
        return reached[0] if reached else "-"

    def shown(self, value: float) -> str:
        """The value with its mark."""
        return (
            f"{value:.0f} {self.mark(value)}" if value >= 100 else f"{value:.1f} {self.mark(value)}"
        )


LIMIT_NS = 3.0
"""Nanoseconds per firing of the fastest prototype there is, values and times of whole streams in
channels without bounds, at the same clock."""

TIMES_SAM, TIMES_DAM = Goal(200, 1000), Goal(5, 15)
FIRINGS = Goal(50, inf)
RETIME = Goal(20, 5)


def matrix(shape: tuple[int, ...], density: float, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 9, shape)
    return np.where(generator.random(shape) < density, values, 0)


def table(title: str, *more: str) -> Table:
    """An empty table; ``more`` are its last columns."""
    made = Table(title=title)
    for column in ("design", "depth", "times by"):
        made.add_column(column)
    columns = ("cycles", "firings", "values, ms", "times, ms", "both, ms", "GHz")
    scaled = ("both at 3.2", "M firings/s at 3.2", "of the limit", "retime, ns at 3.2")
    for column in (*columns, *scaled, *more):
        made.add_column(column, justify="right")
    return made


def row(found: Measured) -> list[str]:
    """The cells that all designs have."""
    assert found.result is not None
    best = found.best
    return [
        found.name,
        "none" if found.depth == UNBOUNDED else str(found.depth),
        found.result.kernel,
        f"{found.result.cycles:,}",
        f"{found.firings:,}",
        f"{best.values:.2f}",
        f"{best.times:.2f}",
        f"{best.whole:.2f}",
        f"{best.clock:.2f}",
        f"{found.scaled:.2f}",
        FIRINGS.shown(found.rate),
        f"{found.rate * LIMIT_NS / 1e3:.0%}",
        RETIME.shown(found.retime),
    ]


def elementwise_designs(sizes: tuple[int, ...]) -> Iterator[Measured]:
    """The designs that the published simulators were timed on."""
    for size in sizes:
        inputs = {
            key: array
            for seed, name in enumerate("BC")
            for key, array in compressed(name, "ij", matrix((size, size), 0.02, seed)).items()
        }
        for operator, sign in ((Op.MULTIPLY, "*"), (Op.ADD, "+")):
            for depth in (2, 16, 256):
                graph = elementwise(operator, depth)
                yield Measured(f"{sign}, {size} x {size}", depth, graph, inputs)


def elementwise_table(designs: Iterable[Measured]) -> Table:
    """Beside the published simulators."""
    made = table("elementwise, 2 % non-zeros", "times SAM", "times DAM")
    for found in designs:
        sign, size = found.name[0], int(found.name.split()[-1])
        sam = SAM_MS.get((sign, size))
        made.add_row(
            *row(found),
            TIMES_SAM.shown(sam / found.scaled) if sam else "",
            TIMES_DAM.shown(DAM_MS[sign, size][found.depth] / found.scaled),
        )
    return made


def product_designs(depths: tuple[int, ...]) -> Iterator[Measured]:
    """Matrix products on the inputs of [SAM, Figs. 11 and 12], or of their statistics.

    Two of them take so few milliseconds that what every run costs once is a large part; they are
    shown with matrices four times as wide and high, too.
    """
    b, c = matrix((250, 100), 0.05, 0), matrix((100, 250), 0.05, 1)
    large_b, large_c = matrix((1000, 400), 0.05, 0), matrix((400, 1000), 0.05, 1)
    wide, deep = np.ones((250, 100)), np.ones((100, 100))
    cube = matrix((100, 60, 60), 0.02, 2)
    factors = {"C_vals": matrix((60, 32), 1, 3), "D_vals": matrix((60, 32), 1, 4)}
    floats = {name: array.reshape(-1).astype(np.float32) for name, array in factors.items()}
    dense = {"C_vals": wide.reshape(-1), "D_vals": deep.reshape(-1)}
    dense = {name: array.astype(np.float32) for name, array in dense.items()}
    for depth in depths:
        for name, graph, inputs in (
            (
                "ijk",
                inner_product(depth),
                {**compressed("B", "ik", b), **compressed("C", "jk", c.T)},
            ),
            ("ikj", row_product(depth), {**compressed("B", "ik", b), **compressed("C", "kj", c)}),
            (
                "kij",
                outer_product(depth),
                {**compressed("B", "ki", b.T), **compressed("C", "kj", c)},
            ),
            (
                "ikj, 4 x as wide",
                row_product(depth),
                {**compressed("B", "ik", large_b), **compressed("C", "kj", large_c)},
            ),
            (
                "kij, 4 x as wide",
                outer_product(depth),
                {**compressed("B", "ki", large_b.T), **compressed("C", "kj", large_c)},
            ),
            ("SDDMM, K = 100", sddmm(250, 100, 100, depth), {**compressed("B", "ij", b), **dense}),
            ("MTTKRP", mttkrp(60, 60, 32, depth), {**compressed("B", "ikl", cube), **floats}),
        ):
            yield Measured(name, depth, graph, inputs)


def main() -> None:
    sizes = (2000,) if "--quick" in sys.argv else (2000, 4000)
    console = Console(width=None if sys.stdout.isatty() else 180)
    elements = list(elementwise_designs(sizes))
    products = list(product_designs((UNBOUNDED, 16, 2)))
    rounds = [design for _ in range(ROUNDS) for design in (*elements, *products)]
    for design in track(rounds, "designs", console=Console(stderr=True)):
        design.measure()
    console.print(elementwise_table(elements))
    made = table("products")
    for found in products:
        made.add_row(*row(found))
    console.print(made)


if __name__ == "__main__":
    main()
