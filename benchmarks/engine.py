"""How fast the simulator is on dense designs: ``python -m benchmarks.engine`` from the root.

Every row is a goal: a rate or a time, what it must be, and what was measured, in processor time of
one core, the best of some runs, so that other work on the machine counts as little as possible;
then the same at the clock that the goals are for (``clock.py``), measured with the row.

* **Stepping** is the array kernel without fast-forward, on a GEMM with one step of 16 float32
  multiply-adds in each PE and cycle.  Stalls close every load and store unit in one of 8 cycles at
  random, which no regime survives: nothing repeats, and back-pressure is real.
* **GEMM 1024**: values (bit for bit those of the plain engine) and cycles of the T2S-Tensor design,
  10 x 8 PEs x 16 lanes, from a lowered graph; the first run prepares the design, later ones do not.
* **The published GEMM** is the Arria 10 design of ``published.py``, 1.07e9 cycles.  There, and in
  the next row, every run prepares the graph anew; only the compiled code is kept.
* **SCALE-Sim's GEMM** is 512 x 512 x 512 on 32 x 32 PEs, for which SCALE-Sim 3.0.0 takes 21.3 s,
  without values and without FIFOs, on an AMD EPYC of 3.2 GHz.

PE-cycles count the PEs that compute, not those that load, store or pass on.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import t2s
from benchmarks.clock import REFERENCE_GHZ, slowness
from benchmarks.published import ROWS, clocked
from t2s import Float, Func, Graph, ImageParam, RandomStalls, RDom, Var
from t2s.simulator.program.build import build_program
from t2s.simulator.run import simulate_cycles
from t2s.simulator.times.array.run import ArrayMachine

LANES = 16
SCALE_SIM_SECONDS = 21.3
STALLS = RandomStalls(seed=1, one_in=8)


def gemm(rows: int, columns: int, tile: int, steps: int, lanes: int = LANES) -> Graph:
    """C = A B^T on ``rows`` x ``columns`` PEs, ``tile`` x ``tile`` results on each."""
    A, B = ImageParam(Float(32), 2, name="A"), ImageParam(Float(32), 2, name="B")
    i, j, k = Var("i"), Var("j"), RDom(0, steps * lanes, name="k")
    C = Func("C")
    C[i, j] = 0.0
    C[i, j] += A[i, k] * B[j, k]
    C.bound(i, 0, rows * tile).bound(j, 0, columns * tile)
    ii, jj, kk = t2s.variables("ii jj kk")
    A_loader, B_loader, C_unloader = t2s.funcs("A_loader B_loader C_unloader")
    C.update().tile(j, i, jj, ii, columns, rows)
    if lanes > 1:
        C.split(k, k, kk, lanes)
        C.reorder(kk, j, i, k).unroll(ii, jj).vload(A, B)
    else:
        C.reorder(j, i, k).unroll(ii, jj)
    C.isolate_producer(A, A_loader).isolate_producer(B, B_loader).isolate_consumer(C_unloader)
    C.forward(A_loader, jj).forward(B_loader, ii)
    return C.lower()


def inputs_of(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    """Random A and B of a GEMM."""
    generator = np.random.default_rng(0)
    return {
        name: generator.standard_normal(graph.tensor(name).shape, dtype=np.float32)
        for name in ("A", "B")
    }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A row of the table; ``better`` says whether larger numbers are.

    ``slowness``: how many times longer this machine took then than one of the reference clock.
    """

    name: str
    measured: float
    unit: str
    must: float
    aim: float
    better: str = "less"
    slowness: float = field(default_factory=slowness)

    @property
    def scaled(self) -> float:
        """What it would be at the reference clock."""
        if self.better == "more":
            return self.measured * self.slowness
        return self.measured / self.slowness

    @property
    def met(self) -> bool:
        if self.better == "more":
            return self.scaled >= self.must
        return self.scaled <= self.must


def seconds(run: Callable[[], Any], runs: int = 5) -> float:
    """Processor time of the fastest of some runs."""
    found = []
    for _ in range(runs):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def stepping(rows: int, columns: int, tile: int, steps: int, stalls: RandomStalls | None) -> float:
    """PE-cycles per second, in thousand millions."""
    program = build_program(gemm(rows, columns, tile, steps), "ideal", None, stalls=stalls)
    rates = []
    for _ in range(3):
        machine = ArrayMachine(program)
        start = time.process_time()
        machine.advance(1 << 40)
        rates.append(machine.cycle * rows * columns / (time.process_time() - start))
    return max(rates) / 1e9


def values_and_cycles() -> tuple[float, float]:
    """Seconds of the first run of the GEMM of 1024, and of a later one."""
    row = next(row for row in ROWS if row.name == "T2S-Tensor GEMM")
    sizes = replace_sizes(row.family.sizes(row.sizes))
    graph = t2s.lower(row.family.build(sizes))
    inputs = inputs_of(graph)

    def run() -> None:
        t2s.simulate(graph, inputs)

    return seconds(run, 1), seconds(run, 6)


def replace_sizes(sizes: Any) -> Any:
    """The smallest number of published tiles that holds 1024 x 1024 x 1024."""
    tiles_i = -(-1024 // (sizes.II * sizes.III))
    tiles_j = -(-1024 // (sizes.JJ * sizes.JJJ))
    tiles_k = -(-1024 // (sizes.KK * sizes.KKK))
    changes = {"I": tiles_i, "J": tiles_j, "K": tiles_k}
    return sizes._replace(**changes) if isinstance(sizes, tuple) else replace(sizes, **changes)


def published() -> float:
    """Seconds from the lowered graph of the published GEMM to its cycles."""
    row = ROWS[0]
    graph = t2s.lower(row.family.build(row.family.sizes(row.sizes)))
    return seconds(lambda: simulate_cycles(replace(graph), device=clocked(row)), 3)


def scale_sim() -> float:
    """How many times SCALE-Sim's time is ours, from the lowered graph."""
    graph = gemm(32, 32, 16, 512, lanes=1)
    return SCALE_SIM_SECONDS / seconds(lambda: simulate_cycles(replace(graph), engine="array"), 3)


def outcomes() -> list[Outcome]:
    first, later = values_and_cycles()
    rate = "G PE-cycles/s"
    return [
        Outcome(
            name="stepping 10 x 8, stalls",
            measured=stepping(10, 8, 32, 512, STALLS),
            unit=rate,
            must=0.5,
            aim=1.5,
            better="more",
        ),
        Outcome(
            name="stepping 10 x 8, no stalls",
            measured=stepping(10, 8, 32, 512, None),
            unit=rate,
            must=0.5,
            aim=1.5,
            better="more",
        ),
        Outcome(
            name="stepping 32 x 32, stalls",
            measured=stepping(32, 32, 8, 512, STALLS),
            unit=rate,
            must=1,
            aim=4,
            better="more",
        ),
        Outcome(
            name="GEMM 1024, values and cycles, later",
            measured=later,
            unit="s",
            must=0.25,
            aim=0.06,
        ),
        Outcome(
            name="GEMM 1024, values and cycles, first", measured=first, unit="s", must=2, aim=0.6
        ),
        Outcome(name="published GEMM, cycles", measured=published(), unit="s", must=1, aim=0.05),
        Outcome(
            name="SCALE-Sim's GEMM, cycles",
            measured=scale_sim(),
            unit="times faster",
            must=100,
            aim=500,
            better="more",
        ),
    ]


def main() -> None:
    shown = Table(title="dense simulation", title_justify="left")
    for header in ("", "measured", f"at {REFERENCE_GHZ} GHz", "must", "aim", ""):
        shown.add_column(header, justify="left" if not header else "right")
    for outcome in outcomes():
        shown.add_row(
            outcome.name,
            f"{outcome.measured:.3g} {outcome.unit}",
            f"{outcome.scaled:.3g}",
            f"{outcome.must:g}",
            f"{outcome.aim:g}",
            "" if outcome.met else "[bold red]*[/]",
        )
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
