"""Our numbers beside published ones: ``python benchmarks/published.py [NAME ...]``.

Each row is a published FPGA design, written in t2s with the published array, tiles and sizes.

* **Array utilisation** is (vector steps of one PE) / cycles.  Ours is simulated at the published
  clock; theirs is the published throughput / (PEs x lanes x operations x clock).
* **Cycles at the published size** are extrapolated.  The design is simulated to the cycle with 1, 2
  and 3 blocks of results, everything else at its published size.  If each further block costs the
  same number of cycles, exactly, the count for all blocks follows; if not, the row says by how much
  the costs differ and the larger one is used.
* **DSP blocks** are those of ``t2s.resources``; **lines** are those of the function ``design`` that
  are no comment and no docstring.

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
from t2s.graph.nodes import Role
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.run import simulate_cycles

ROOT = Path(__file__).resolve().parent.parent
BAND = 0.02
DSP_BAND = 0.03
RUNS = (1, 2, 3)  # blocks that are simulated


@dataclass(frozen=True, kw_only=True)
class Row:
    """A published design and ours.

    ``module`` and ``sizes`` name the file and its published sizes; ``operations`` are those of one
    lane in one step; ``published`` is a throughput in ``unit``; ``reason`` explains why ours is
    expected to differ by more than the band.
    """

    name: str
    module: str
    sizes: str
    device: str
    megahertz: float
    operations: int
    published: float
    unit: str = "GFLOPS"
    dsp_blocks: int | None = None
    lines: int | None = None
    reason: str | None = None


ROWS = (
    Row(
        name="GEMM A10",
        module="benchmarks/gemm.py",
        sizes="ARRIA10",
        device="arria10",
        megahertz=244.85,
        operations=2,
        published=620,
        dsp_blocks=1305,
    ),
    Row(
        name="GEMM S10",
        module="benchmarks/gemm.py",
        sizes="STRATIX10",
        device="stratix10",
        megahertz=251.69,
        operations=2,
        published=1790,
        dsp_blocks=3605,
    ),
    Row(
        name="T2S-Tensor GEMM",
        module="benchmarks/gemm.py",
        sizes="ARRIA10",
        device="arria10",
        megahertz=215,
        operations=2,
        published=549,
        dsp_blocks=1282,
        lines=20,
    ),
    Row(
        name="T2S-Tensor MTTKRP",
        module="examples/mttkrp/mttkrp.py",
        sizes="PUBLISHED",
        device="arria10",
        megahertz=204,
        operations=3,
        published=700,
        dsp_blocks=1224,
        lines=28,
    ),
    Row(
        name="T2S-Tensor TTM",
        module="examples/ttm/ttm.py",
        sizes="PUBLISHED",
        device="arria10",
        megahertz=201,
        operations=2,
        published=562,
        dsp_blocks=1416,
        lines=30,
    ),
    Row(
        name="T2S-Tensor TTMc",
        module="examples/ttmc/ttmc.py",
        sizes="PUBLISHED",
        device="arria10",
        megahertz=205,
        operations=3,
        published=738,
        dsp_blocks=1368,
        lines=37,
        reason="the published throughput is 6 % below one step per cycle at the published clock, "
        "for which no reason is given; this design has no stall that would cost as much",
    ),
    Row(
        name="convolution A10",
        module="examples/convolution/convolution.py",
        sizes="ARRIA10",
        device="arria10",
        megahertz=237.58,
        operations=2,
        published=605,
        dsp_blocks=1285,
    ),
    Row(
        name="convolution S10",
        module="examples/convolution/convolution.py",
        sizes="STRATIX10",
        device="stratix10",
        megahertz=211.14,
        operations=2,
        published=1509,
        dsp_blocks=3584,
    ),
    Row(
        name="capsule A10",
        module="examples/capsule/capsule.py",
        sizes="ARRIA10",
        device="arria10",
        megahertz=224.01,
        operations=2,
        published=568,
        dsp_blocks=1315,
    ),
    Row(
        name="capsule S10",
        module="examples/capsule/capsule.py",
        sizes="STRATIX10",
        device="stratix10",
        megahertz=219.2,
        operations=2,
        published=885,
        dsp_blocks=3584,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Cycles of a design with ``RUNS`` blocks, and what follows for all of its ``blocks``."""

    runs: tuple[int, ...]
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
        return self.runs[0] + (self.blocks - 1) * max(self.differences)

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


def specification_lines(function: Callable[..., Func]) -> int:
    """Lines of a function's body that hold code: no comment, no docstring, no empty line."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    body = definition.body[1:] if ast.get_docstring(definition) is not None else definition.body
    first, last = body[0].lineno, body[-1].end_lineno
    lines = (line.strip() for line in source.splitlines()[first - 1 : last])
    return sum(1 for line in lines if line and not line.startswith("#"))


def with_blocks(sizes: Any, count: int) -> Any:
    """The sizes with so many blocks of results, along the first index."""
    if isinstance(sizes.blocks, int):
        return replace(sizes, blocks=count, **_one_image(sizes))
    blocks = (count, *(1 for _ in sizes.blocks[1:]))
    return replace(sizes, blocks=blocks, **_one_image(sizes))


def _one_image(sizes: Any) -> dict[str, int]:
    return {"images": 1} if hasattr(sizes, "images") else {}


def all_blocks(sizes: Any) -> int:
    """The number of blocks of the published size."""
    blocks = sizes.blocks if isinstance(sizes.blocks, int) else prod(sizes.blocks)
    return int(blocks) * int(getattr(sizes, "images", 1))


def count_cycles(row: Row) -> tuple[Counted, Graph]:
    """Simulate a few blocks; the graph is that of a single one."""
    module = load(row.module)
    sizes = getattr(module, row.sizes)
    device = clocked(row)
    graphs = [module.design(with_blocks(sizes, count)).lower() for count in RUNS]
    results = [simulate_cycles(graph, device=device) for graph in graphs]
    compute = next(node for node in results[0].nodes.values() if node.role is Role.COMPUTE)
    return (
        Counted(
            runs=tuple(result.cycles for result in results),
            blocks=all_blocks(sizes),
            steps=compute.firings // compute.pe_count,
        ),
        graphs[0],
    )


def clocked(row: Row) -> Device:
    """The device at the clock of the published design."""
    device = DEVICES[row.device]
    return replace(device, name=row.name, clock_hz=round(row.megahertz * 1e6))


def measure(row: Row) -> Measured:
    module = load(row.module)
    sizes = getattr(module, row.sizes)
    counted, graph = count_cycles(row)
    lanes = sizes.rows * sizes.columns * sizes.lanes
    return Measured(
        row=row,
        counted=counted,
        peak=lanes * row.operations * row.megahertz / 1e3,
        dsp_blocks=t2s.resources(graph, device=row.device).dsp_blocks,
        lines=specification_lines(module.design),
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
        dsps = row.dsp_blocks
        shown.add_row(
            row.name,
            f"{row.megahertz:g}",
            f"{counted.cycles:,}{'' if counted.affine else ' ~'}",
            f"{counted.utilisation:.3f} / {item.published_utilisation:.3f}",
            flagged(item.ratio - 1, BAND),
            f"{item.throughput:,.0f} / {row.published:,g} {row.unit}",
            f"{item.dsp_blocks:,} / {'-' if dsps is None else f'{dsps:,}'}",
            "-" if dsps is None else flagged(item.dsp_blocks / dsps - 1, DSP_BAND),
            f"{item.lines} / {'-' if row.lines is None else row.lines}",
        )
    return shown


def remarks(measured: list[Measured]) -> Iterator[str]:
    yield (
        "Cycles: simulated with 1, 2 and 3 blocks of results and extrapolated to all of them; every"
        " further block has to cost the same number of cycles."
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
