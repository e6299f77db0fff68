"""The hardware against the simulator: ``python benchmarks/referee.py [--random N] [NAME ...]``.

Every example, at a small size, is emitted as SystemVerilog and built by Verilator, once.  The
hardware then runs on three devices, one of them short of bandwidth, with its own channel depths and
with all channels 1, 2, 3, 8 and 64 tokens deep, with and without pseudo-random stalls of its load
and store units.  Each run has to end as the simulator's does with both of its kernels, deadlocks
included, with the same cycle count, and every node has to make the same number of firings, the
first and the last of them in the same cycles.  Runs with the design's own depths compute values,
which have to be the simulator's, bit for bit.

``--random N`` does the same with N random graphs.  The exit code is 1 if anything differs.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import t2s
from benchmarks.random_graphs import random_device, random_graph
from t2s import Graph
from t2s.backends.verilog.timing import Stalling, Timing, largest
from t2s.backends.verilog.verilator import HardwareModel, HardwareResult, build_hardware
from t2s.graph.graph import TensorRole
from t2s.hardware_driver import hardware_timing
from t2s.simulator.build import build_program
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.engine import Limits, find_engine
from t2s.simulator.program import SimProgram
from t2s.simulator.result import SimResult

DEPTHS = (None, 1, 2, 3, 8, 64)
NARROW = replace(
    DEVICES["arria10"], name="arria10 of 3.5 bytes per cycle", memory_bytes_per_second=752_500_000
)
ENGINES = ("native", "array")
STALLS = (None, t2s.RandomStalls(seed=1, one_in=8), t2s.RandomStalls(seed=2, one_in=2))


def module_of(path: str) -> ModuleType:
    """A file of the examples."""
    file = ROOT / "examples" / f"{path}.py"
    spec = importlib.util.spec_from_file_location(f"referee_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tiny(path: str, size: str = "TINY") -> Callable[[], Any]:
    """The design of an example of its smallest size."""

    def make() -> Any:
        module = module_of(path)
        return module.design(getattr(module, size))

    return make


def smallest_gemm(path: str) -> Any:
    """The GEMM of the T2S-Tensor paper, with every extent 2."""
    module = module_of(path)
    return module.gemm(module.TINY._replace(**dict.fromkeys(module.TINY._fields, 2)))


def ladder(step: int) -> Any:
    """A step of the ladder for matrices of 8 x 8."""
    module = module_of("gemm/ladder")
    module.SIZE = 8  # type: ignore[attr-defined]
    return module.design(step)


def examples() -> dict[str, Callable[[], Any]]:
    """All designs by name."""
    mappings = module_of("convolution_1d/mappings").MAPPINGS
    steps = range(len(module_of("gemm/ladder").STEPS))
    return {
        "gemm": lambda: module_of("gemm/gemm").C,
        "dot_product": lambda: module_of("gemm/dot_product").C,
        "systolic": lambda: smallest_gemm("gemm/systolic"),
        "chains": lambda: smallest_gemm("gemm/chains"),
        **{f"ladder {n}": (lambda n=n: ladder(n)) for n in steps},
        "mttkrp": tiny("mttkrp/mttkrp"),
        "ttm": tiny("ttm/ttm"),
        "ttmc": tiny("ttmc/ttmc"),
        "convolution": tiny("convolution/convolution"),
        "capsule": tiny("capsule/capsule"),
        "gbmv": tiny("gbmv/gbmv"),
        "gbmv, 2 banks": tiny("gbmv/gbmv", "TINY_BANKS"),
        "ger": tiny("ger/ger"),
        "syrk": tiny("syrk/syrk"),
        **{
            f"convolution_1d {name}": (
                lambda name=name: module_of("convolution_1d/mappings").design(name)
            )
            for name in mappings
        },
        "block_matching": lambda: module_of("block_matching/block_matching").design(2, 2, 1),
        "pairhmm": tiny("pairhmm/pairhmm"),
        "qr": tiny("qr/qr"),
        "lu": lambda: module_of("lu/lu").design(),
        "trsm": lambda: module_of("trsm/trsm").design(),
    }


@dataclass(kw_only=True)
class Row:
    """What was compared for one design."""

    name: str
    pes: int = 0
    channels: int = 0
    build_seconds: float = 0.0
    runs: int = 0
    deadlocks: int = 0
    cycles: int = 0
    hardware_seconds: float = 0.0
    values: int = 0
    differences: list[str] = field(default_factory=list)


def random_inputs(graph: Graph) -> dict[str, Any]:
    """Small numbers for all inputs and parameters."""
    generator = np.random.default_rng(1)
    inputs: dict[str, Any] = {}
    for tensor in graph.tensors:
        if tensor.role is TensorRole.INPUT:
            values = generator.integers(1, 9, tensor.shape)
            inputs[tensor.array] = values.astype(tensor.type.numpy)
    return inputs


def referee(
    name: str,
    graph: Graph,
    devices: Sequence[Device],
    depths: Sequence[int | None],
    runtime: Path | None = None,
) -> Row:
    """Build one design and compare all of its runs; ``runtime`` keeps what builds share."""
    row = Row(name=name, pes=sum(n.pe_count for n in graph.nodes), channels=len(graph.channels))
    scalars = {p.name: p.type.numpy.type(3) for p in graph.parameters}
    programs = [build_program(graph, device, random_inputs(graph), scalars) for device in devices]
    machines = [
        (program if depth is None else deep(program, depth), depth)
        for program in programs
        for depth in depths
    ]
    timings = [hardware_timing(program) for program, _ in machines]
    with tempfile.TemporaryDirectory(prefix="t2s-referee-") as temporary:
        start = time.perf_counter()
        model = build_hardware(
            graph, timings[0], largest(*timings), Path(temporary), runtime=runtime
        )
        row.build_seconds = time.perf_counter() - start
        for (program, depth), timing in zip(machines, timings, strict=True):
            for stalls in STALLS:
                compare(row, model, replace(program, stalls=stalls), timing, depth)
    return row


def deep(program: SimProgram, depth: int) -> SimProgram:
    """The program, times only, with all channels of that depth."""
    return program.with_capacities({channel.name: depth for channel in program.graph.channels})


def compare(
    row: Row, model: HardwareModel, program: SimProgram, timing: Timing, depth: int | None
) -> None:
    """One run of both."""
    stalls = program.stalls
    results = {name: find_engine(name).run(program, Limits()) for name in ENGINES}
    expected = results["native"]
    start = time.perf_counter()
    stalling = stalls and Stalling(seed=stalls.seed, one_in=stalls.one_in)
    found = model.run(
        timing, program.inputs, program.parameters, stalling=stalling or None, time_limit=600
    )
    row.hardware_seconds += time.perf_counter() - start
    row.runs += 1
    row.cycles += found.cycles
    row.deadlocks += expected.deadlock is not None
    row.values += sum(array.size for array in expected.outputs.values())
    where = f"{row.name} on {program.device.name}, depth {depth}, {stalls}"
    for name, result in results.items():
        texts = differences(program, result, found)
        row.differences += [f"{where}, engine {name}: {text}" for text in texts]


def differences(program: SimProgram, expected: SimResult, found: HardwareResult) -> Iterator[str]:
    """What the hardware did otherwise."""
    if found.ending.name != expected.ending.name:
        yield f"ends with {found.ending.name}, not {expected.ending.name}"
    if found.cycles != expected.cycles:
        yield f"takes {found.cycles} cycles, not {expected.cycles}"
    for timing in program.nodes:
        node = expected.nodes[timing.node.name]
        fired = found.firings[timing.instances]
        first, last = found.first[timing.instances], found.last[timing.instances]
        seen = (int(fired.sum()), int(first[fired > 0].min(initial=2**62)), int(last.max()))
        wanted = (node.firings, node.first_firing or 2**62, node.last_firing or 0)
        if seen != wanted:
            yield f"{node.name} fires {seen}, not {wanted} (number, first, last)"
    left = sum(channel.tokens for channel in expected.tokens_left)
    if expected.deadlock is None and int(found.held.sum()) != left:
        yield f"{int(found.held.sum())} tokens are left, not {left}"
    for name, array in expected.outputs.items():
        got = found.outputs.get(name)
        if got is None or not np.array_equal(got, array, equal_nan=array.dtype.kind == "f"):
            yield f"other values in {name}"


def show(rows: Sequence[Row]) -> None:
    """The table, and everything that differs."""
    table = Table(title="hardware in Verilator beside the simulator")
    for heading in ("design", "PEs", "channels", "runs", "deadlocks", "cycles", "values",
                    "build s", "runs s", "differences"):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "design" else "right")
    for row in rows:
        table.add_row(
            row.name,
            *(f"{n:,}" for n in (row.pes, row.channels, row.runs, row.deadlocks, row.cycles)),
            f"{row.values:,}",
            f"{row.build_seconds:.1f}",
            f"{row.hardware_seconds:.1f}",
            str(len(row.differences)),
        )
    console = Console(width=120)
    console.print(table)
    total = sum(row.runs for row in rows)
    different = [text for row in rows for text in row.differences]
    for text in different[:40]:
        console.print(text, soft_wrap=True, highlight=False)
    console.print(f"{len(rows)} designs, {total} runs, {len(different)} differences")


def main(runtime: Path) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="examples; all if there are none")
    parser.add_argument("--random", type=int, default=0, help="so many random graphs")
    parser.add_argument("--seed", type=int, default=0, help="of the first random graph")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", t2s.T2SWarning)
    rows: list[Row] = []
    devices = (DEVICES["ideal"], DEVICES["arria10"], NARROW)
    for name, make in examples().items():
        if name in arguments.names or not (arguments.names or arguments.random):
            rows.append(referee(name, t2s.lower(make()), devices, DEPTHS, runtime))
            print(f"{name}: {len(rows[-1].differences)} differences", flush=True)
    for seed in range(arguments.seed, arguments.seed + arguments.random):
        graph = random_graph(seed)
        rows.append(referee(f"random {seed}", graph, random_device(seed), (None, 1, 2), runtime))
        print(f"random {seed}: {len(rows[-1].differences)} differences", flush=True)
    show(rows)
    return 1 if any(row.differences for row in rows) else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="t2s-referee-runtime-") as shared:
        sys.exit(main(Path(shared)))
