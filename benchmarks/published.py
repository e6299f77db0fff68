"""Our numbers beside published ones: ``python benchmarks/published.py [NAME ...]``.

Each row is a published FPGA design, written in t2s with the published array, tiles and sizes
(PairHMM: with larger batches).

* **Array utilisation** is (steps of one PE) / cycles.  Ours is simulated at the published clock;
  theirs is the published throughput / (what all PEs do in one step x clock).
* **Cycles at the published size** are extrapolated.  The design is simulated to the cycle with 1, 2
  and 3 blocks of results (QR: 5, 6 and 7 matrices, after its buffers have filled), everything else
  at its published size.  If each further block costs the same number of cycles, exactly, the count
  for all blocks follows; if not, the row says by how much the costs differ and the larger one is
  used.
* **DSP blocks** are those of ``t2s.resources``; **lines** are those of the function that makes the
  design, without comments, docstring and ``return``.

Ours is flagged where it is more than 2 % (utilisation) or 3 % (DSP blocks) off.
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
from math import prod
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

    ``outer`` names the sizes that count blocks of results, each a number or a tuple of numbers,
    ``lanes`` the number of lanes of a PE; ``operations`` are those of one lane in one step.
    ``runs`` are the numbers of blocks that are simulated, in steps of one.
    """

    module: str
    function: str = "design"
    outer: tuple[str, ...] = ("blocks",)
    lanes: str | None = "lanes"
    operations: float = 2
    unit: Unit = GFLOPS
    runs: tuple[int, int, int] = (1, 2, 3)

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

    def with_blocks(self, sizes: Any, count: int) -> Any:
        """The sizes with so many blocks of results, along the first index."""
        counts: dict[str, Any] = {}
        for name in self.outer:
            value = getattr(sizes, name)
            here = 1 if counts else count
            counts[name] = (here, *(1 for _ in value[1:])) if isinstance(value, tuple) else here
        return sizes._replace(**counts) if isinstance(sizes, tuple) else replace(sizes, **counts)

    def all_blocks(self, sizes: Any) -> int:
        """The number of blocks of the published size."""
        values = (getattr(sizes, name) for name in self.outer)
        return prod(prod(value) if isinstance(value, tuple) else value for value in values)


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


GEMM = Family(module="examples/gemm/systolic.py", function="gemm", outer=("I", "J"), lanes="KKK")
MTTKRP = Family(module="examples/mttkrp/mttkrp.py", operations=3)
TTM = Family(module="examples/ttm/ttm.py")
TTMC = Family(module="examples/ttmc/ttmc.py", operations=3)
CONVOLUTION = Family(module="examples/convolution/convolution.py", outer=("blocks", "images"))
CAPSULE = Family(module="examples/capsule/capsule.py")
PAIRHMM = Family(
    module="examples/pairhmm/pairhmm.py",
    outer=("batches",),
    lanes=None,
    operations=1,
    unit=GCUPS,
)
QR = Family(
    module="examples/qr/qr.py",
    outer=("batch",),
    lanes=None,
    operations=1 / (128 * 131 // 2),  # steps of a matrix: rows of 128, 128, 127, ... and 1
    unit=MATRICES,
    runs=(5, 6, 7),
)

TTMC_REASON = (
    "the published throughput is 15/16 of one step per cycle at the published clock (787.2 GFLOPS);"
    " no reason is given for it"
)
PAIRHMM_REASON = (
    "the published throughput is 5 to 7 % below one step per cycle; no reason is given for it. Ours"
    " interleaves 32 x 16 tables, the published array 14 x 14: a value takes 485 cycles from one"
    " side of our array to the other, and with 196 tables its utilisation would be 0.40. Ours takes"
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
    """Cycles of a design with ``first`` blocks and with one and two more, and of all ``blocks``.

    ``steps`` are those of a PE for one block.
    """

    runs: tuple[int, ...]
    first: int = 1
    blocks: int
    steps: int

    @property
    def differences(self) -> tuple[int, int]:
        """What the second and the third block cost."""
        first, second, third = self.runs
        return second - first, third - second

    @property
    def affine(self) -> bool:
        return self.differences[0] == self.differences[1]

    @property
    def cycles(self) -> int:
        """Of all blocks."""
        return self.runs[0] + (self.blocks - self.first) * max(self.differences)

    @property
    def utilisation(self) -> float:
        return self.steps * self.blocks / self.cycles


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row with our numbers."""

    row: Row
    counted: Counted
    peak: float
    dsp_blocks: int
    lines: int

    @property
    def published_utilisation(self) -> float:
        return self.row.published / self.peak

    @property
    def throughput(self) -> float:
        return self.counted.utilisation * self.peak

    @property
    def ratio(self) -> float:
        """Our utilisation over theirs."""
        return self.counted.utilisation / self.published_utilisation


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
    """Simulate a few blocks; the graph is that of the smallest run."""
    family, sizes, device = row.family, row.family.sizes(row.sizes), clocked(row)
    graphs = [t2s.lower(family.build(family.with_blocks(sizes, count))) for count in family.runs]
    results = [simulate_cycles(graph, device=device) for graph in graphs]
    array = array_of(graphs[0])
    return (
        Counted(
            runs=tuple(result.cycles for result in results),
            first=family.runs[0],
            blocks=family.all_blocks(sizes),
            steps=results[0].nodes[array.name].firings // array.pe_count // family.runs[0],
        ),
        graphs[0],
    )


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
    for header in ("design", "MHz", "cycles, all blocks", "utilisation", "off", "throughput"):
        shown.add_column(header, justify="left" if header == "design" else "right")
    for header in ("DSP blocks", "off", "lines"):
        shown.add_column(header, justify="right")
    for item in measured:
        row, counted = item.row, item.counted
        digits = 0 if item.throughput >= 100 else 1
        shown.add_row(
            row.name,
            f"{row.megahertz:g}",
            f"{counted.cycles:,}{'' if counted.affine else ' ~'}",
            f"{counted.utilisation:.3f} / {item.published_utilisation:.3f}",
            flagged(item.ratio - 1, BAND),
            f"{item.throughput:,.{digits}f} / {row.published:,g} {row.family.unit.name}",
            f"{item.dsp_blocks:,} / {row.dsp_blocks:,}",
            flagged(item.dsp_blocks / row.dsp_blocks - 1, DSP_BAND),
            f"{item.lines} / {'-' if row.lines is None else row.lines}",
        )
    return shown


def remarks(measured: list[Measured]) -> Iterator[str]:
    yield (
        "Cycles: simulated with three numbers of blocks of results and extrapolated to all of them;"
        " every further block has to cost the same number of cycles."
    )
    for item in measured:
        if not item.counted.affine:
            second, third = item.counted.differences
            yield (
                f"~ {item.row.name}: the second block costs {second:,} cycles and the third"
                f" {third:,} ({abs(third / second - 1):.4%} apart); the larger one is used."
            )
    for item in measured:
        if abs(item.ratio - 1) > BAND:
            reason = item.row.reason or "not explained"
            yield f"* {item.row.name}: {item.ratio - 1:+.1%} utilisation: {reason}."


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
