"""Our numbers beside published ones: ``python benchmarks/published.py [NAME ...]``.

Each row is a published FPGA design, written in t2s with the published array, tiles and sizes
(PairHMM: with larger batches).

* **Array utilization** is (steps of one PE) / cycles.  Ours is simulated at the published clock;
  theirs is the published throughput / (what all PEs do in one step x clock).
* **Cycles** are those of the whole published problem, to the cycle, by fast-forward: most of them
  are skipped because they repeat others exactly, and the table says how many were stepped through.
* **DSP blocks** are those of ``t2s.resources``; **lines** are those of the function that makes the
  design, without comments, docstring and ``return``.

Ours is flagged where it is more than 2 % (utilization) or 3 % (DSP blocks) off.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

import t2s
from t2s import Func, Graph
from t2s.graph.nodes import Node, Role
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.run import simulate_cycles

Design = Func | tuple[Func, ...]
ROOT = Path(__file__).resolve().parent.parent
BAND = 0.02
DSP_BAND = 0.03


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit of throughput, and how many operations per second it is."""

    name: str
    size: float


GFLOPS = Unit(name="GFLOPS", size=1e9)
GCUPS = Unit(name="GCUPS", size=1e9)  # elements of the tables of a dynamic program
MATRICES = Unit(name="K matrices/s", size=1e3)


@dataclass(frozen=True, kw_only=True)
class Family:
    """A file of designs that differ in their sizes.

    ``lanes`` names the number of lanes of a PE; ``operations`` are those of one lane in one step.
    """

    module: str
    function: str = "design"
    lanes: str | None = "lanes"
    operations: float = 2
    unit: Unit = GFLOPS

    @property
    def build(self) -> Callable[[Any], Design]:
        """The function that makes the design of given sizes."""
        function: Callable[[Any], Design] = getattr(load(self.module), self.function)
        return function

    def lanes_of(self, sizes: Any) -> int:
        """Lanes of each PE."""
        return 1 if self.lanes is None else int(getattr(sizes, self.lanes))

    def sizes(self, name: str) -> Any:
        """Sizes by their name in the file: a dataclass or a named tuple."""
        return getattr(load(self.module), name)


@dataclass(frozen=True)
class Row:
    """A published design: a file and its published sizes, and what is published about it.

    ``published`` is a throughput in the unit of the family, ``lines`` the length of the published
    specification; ``reason`` explains why ours is expected to differ by more than the band.
    """

    name: str
    family: Family
    sizes: str
    device: str
    megahertz: float
    published: float
    dsp_blocks: int
    lines: int | None = None
    reason: str | None = None


GEMM = Family(module="examples/gemm/systolic.py", function="gemm", lanes="KKK")
MTTKRP = Family(module="examples/mttkrp/mttkrp.py", operations=3)
TTM = Family(module="examples/ttm/ttm.py")
TTMC = Family(module="examples/ttmc/ttmc.py", operations=3)
CONVOLUTION = Family(module="examples/convolution/convolution.py")
CAPSULE = Family(module="examples/capsule/capsule.py")
PAIRHMM = Family(
    module="examples/pairhmm/pairhmm.py",
    lanes=None,
    operations=1,
    unit=GCUPS,
)
QR = Family(
    module="examples/qr/qr.py",
    lanes=None,
    operations=1 / (128 * 131 // 2),  # steps of a matrix: rows of 128, 128, 127, ... and 1
    unit=MATRICES,
)

TTMC_REASON = (
    "the published throughput is 15/16 of one step per cycle at the published clock (787.2 GFLOPS);"
    " no reason is given for it"
)
PAIRHMM_REASON = (
    "the published throughput is 5 to 7 % below one step per cycle; no reason is given for it. Ours"
    " interleaves 32 x 16 tables, the published array 14 x 14: a value takes 485 cycles from one"
    " side of our array to the other, and with 196 tables its utilization would be 0.40. Ours takes"
    " reads of different lengths, so every PE adds to the sum: 9 DSP blocks in each, or 1,392 if"
    " only the last row did. It is too large for an Arria 10"
)

ROWS = (
    Row("GEMM A10", GEMM, "ARRIA10", "arria10", 244.85, 620, 1305),
    Row("GEMM S10", GEMM, "STRATIX10", "stratix10", 251.69, 1790, 3605),
    Row("T2S-Tensor GEMM", GEMM, "ARRIA10", "arria10", 215, 549, 1282, 20),
    Row("T2S-Tensor MTTKRP", MTTKRP, "PUBLISHED", "arria10", 204, 700, 1224, 28),
    Row("T2S-Tensor TTM", TTM, "PUBLISHED", "arria10", 201, 562, 1416, 30),
    Row("T2S-Tensor TTMc", TTMC, "PUBLISHED", "arria10", 205, 738, 1368, 37, TTMC_REASON),
    Row("convolution A10", CONVOLUTION, "ARRIA10", "arria10", 237.58, 605, 1285),
    Row("convolution S10", CONVOLUTION, "STRATIX10", "stratix10", 211.14, 1509, 3584),
    Row("capsule A10", CAPSULE, "ARRIA10", "arria10", 224.01, 568, 1315),
    Row("capsule S10", CAPSULE, "STRATIX10", "stratix10", 219.2, 885, 3584),
    Row("PairHMM A10", PAIRHMM, "BOARD", "arria10", 229.67, 41.8, 1414, None, PAIRHMM_REASON),
    Row("PairHMM S10", PAIRHMM, "BOARD", "stratix10", 268.02, 47.9, 1402, None, PAIRHMM_REASON),
    Row("QR A10", QR, "PUBLISHED", "arria10", 244, 23.3, 268),
)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Cycles of a whole design, of which ``skipped`` repeat; ``steps`` are those of a PE."""

    cycles: int
    skipped: int
    steps: int

    @property
    def utilization(self) -> float:
        return self.steps / self.cycles


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row with our numbers."""

    row: Row
    counted: Counted
    peak: float
    dsp_blocks: int
    lines: int

    @property
    def published_utilization(self) -> float:
        return self.row.published / self.peak

    @property
    def throughput(self) -> float:
        return self.counted.utilization * self.peak

    @property
    def ratio(self) -> float:
        """Our utilization over theirs."""
        return self.counted.utilization / self.published_utilization


@cache
def load(path: str) -> ModuleType:
    """The module of a design file, which is not part of a package."""
    file = ROOT / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def specification_lines(function: Callable[..., Design]) -> int:
    """Lines of a function's body that hold code: no comment, docstring, empty line or return."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    body = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
    first, last = body[0].lineno, body[-1].lineno - 1  # which returns
    lines = (line.strip() for line in source.splitlines()[first - 1 : last])
    return sum(1 for line in lines if line and not line.startswith("#"))


def array_of(graph: Graph) -> Node:
    """The array of PEs: the node that computes."""
    (array,) = (node for node in graph.nodes if node.role is Role.COMPUTE)
    return array


def count_cycles(row: Row) -> tuple[Counted, Graph]:
    """Simulate the design of the published size; also its graph."""
    graph = t2s.lower(row.family.build(row.family.sizes(row.sizes)))
    result = simulate_cycles(graph, device=clocked(row))
    array = array_of(graph)
    steps = result.nodes[array.name].firings // array.pe_count
    return Counted(cycles=result.cycles, skipped=result.skipped, steps=steps), graph


def clocked(row: Row) -> Device:
    """The device at the clock of the published design."""
    device = DEVICES[row.device]
    return replace(device, name=row.name, clock_hz=round(row.megahertz * 1e6))


def measure(row: Row) -> Measured:
    counted, graph = count_cycles(row)
    family = row.family
    lanes = array_of(graph).pe_count * family.lanes_of(family.sizes(row.sizes))
    return Measured(
        row=row,
        counted=counted,
        peak=lanes * family.operations * row.megahertz * 1e6 / family.unit.size,
        dsp_blocks=t2s.resources(graph, device=row.device).dsp_blocks,
        lines=specification_lines(family.build),
    )


def flagged(off: float, band: float) -> str:
    """A signed difference in percent, with a mark where it leaves the band."""
    text = f"{off:+.1%}"
    return f"[bold red]{text} *[/]" if abs(off) > band else text


def table(measured: list[Measured]) -> Table:
    shown = Table(title="ours / published", title_justify="left")
    for header in ("design", "MHz", "cycles", "stepped", "utilization", "off", "throughput"):
        shown.add_column(header, justify="left" if header == "design" else "right")
    for header in ("DSP blocks", "off", "lines"):
        shown.add_column(header, justify="right")
    for item in measured:
        row, counted = item.row, item.counted
        digits = 0 if item.throughput >= 100 else 1
        shown.add_row(
            row.name,
            f"{row.megahertz:g}",
            f"{counted.cycles:,}",
            f"{counted.cycles - counted.skipped:,}",
            f"{counted.utilization:.3f} / {item.published_utilization:.3f}",
            flagged(item.ratio - 1, BAND),
            f"{item.throughput:,.{digits}f} / {row.published:,g} {row.family.unit.name}",
            f"{item.dsp_blocks:,} / {row.dsp_blocks:,}",
            flagged(item.dsp_blocks / row.dsp_blocks - 1, DSP_BAND),
            f"{item.lines} / {'-' if row.lines is None else row.lines}",
        )
    return shown


def remarks(measured: list[Measured]) -> Iterator[str]:
    for item in measured:
        if abs(item.ratio - 1) > BAND:
            reason = item.row.reason or "not explained"
            yield f"* {item.row.name}: {item.ratio - 1:+.1%} utilization: {reason}."


def main(names: list[str]) -> None:
    console = Console(width=150)
    rows = [row for row in ROWS if not names or any(name in row.name for name in names)]
    measured = []
    for row in rows:
        start = time.perf_counter()
        measured.append(measure(row))
        console.print(f"{row.name}: {time.perf_counter() - start:.1f} s", style="dim")
    console.print(table(measured))
    for text in remarks(measured):
        console.print(text, markup=False, highlight=False)


if __name__ == "__main__":
    main(sys.argv[1:])
