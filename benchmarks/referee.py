"""The hardware against the simulator: ``python benchmarks/referee.py [--random N] [NAME ...]``.

Every example, at a small size, is emitted as SystemVerilog and built by Verilator, once.  The
hardware then runs on three devices, one of them short of bandwidth, with its own channel depths and
with all channels 1, 2, 3, 8 and 64 tokens deep, with and without pseudo-random stalls of its load
and store units.  Each run has to end as the simulator's does, deadlocks included, with the same
cycle count, and every node has to make the same number of firings, the first and the last of them
in the same cycles.  Runs with the design's own depths, and all runs of designs whose control
depends on data, compute values, which have to be the simulator's, bit for bit.

``--chip TECHNOLOGY`` does it with the text of a chip: times are constants, so every device and
depth is a build of its own; values are in the pipeline stages of the device's latencies, loads
answer late, and primitives of the technology are modeled.  What a chip cannot have is counted as
refused.

``--random N`` does the same with N random graphs, ``--machines N`` with N random graphs of
machines, from seed ``--seed`` on.  A name selects the examples that begin with it, ``--list`` shows
them.  With ``--results FILE`` the rows are kept in a file; what is in it already is not run again.
The exit code is 1 if anything differs.
"""

# ruff: noqa: E402
from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import t2s
from benchmarks.random_graphs import random_device, random_graph
from benchmarks.random_machines import random_machines
from benchmarks.referee_designs import Case, examples
from t2s import Graph
from t2s.backends.base import DeviceTimes, Stalling
from t2s.backends.verilog.limits import largest
from t2s.backends.verilog.machine_ranges import Ranges, ranges_of
from t2s.backends.verilog.machine_sizes import sizes_of
from t2s.backends.verilog.technology import GENERIC, TECHNOLOGIES, Technology, find_technology
from t2s.backends.verilog.verilator import HardwareModel, HardwareResult, build_hardware
from t2s.driver.device_times import device_times
from t2s.driver.synthesize import differences
from t2s.graph.graph import TensorRole
from t2s.simulator.devices import DEVICES, Device
from t2s.simulator.engine_registry import find_engine
from t2s.simulator.limits import Limits
from t2s.simulator.program.build import build_program
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.result import SimResult

DEPTHS = (None, 1, 2, 3, 8, 64)
NARROW = replace(
    DEVICES["arria10"], name="arria10 of 3.5 bytes per cycle", memory_bytes_per_second=752_500_000
)
ENGINES = ("native", "array")
MACHINE_ENGINES = ("native", "python")
STALLS = (None, t2s.RandomStalls(seed=1, one_in=8), t2s.RandomStalls(seed=2, one_in=2))
CHIP_DEPTHS = (None, 1, 2, 3, 8)
CHIP_STALLS = (*STALLS, t2s.RandomStalls(seed=3, one_in=4))


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
    refused: list[str] = field(default_factory=list)
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
    inputs: Mapping[str, Any] | None = None,
) -> Row:
    """Build one design and compare all of its runs; ``runtime`` keeps what builds share.

    Without ``inputs`` small random numbers are given.
    """
    row = Row(name=name, pes=sum(n.pe_count for n in graph.nodes), channels=len(graph.channels))
    scalars = {p.name: p.type.numpy.type(3) for p in graph.parameters}
    given = random_inputs(graph) if inputs is None else inputs
    programs = [build_program(graph, device, given, scalars) for device in devices]
    settings = [
        (program if depth is None else deep(program, depth), depth)
        for program in programs
        for depth in depths
    ]
    timings = [device_times(program) for program, _ in settings]
    with tempfile.TemporaryDirectory(prefix="t2s-referee-") as temporary:
        start = time.perf_counter()
        bounds = largest(*timings, graph=graph, inputs=programs[0].inputs)
        model = build_hardware(graph, timings[0], bounds, Path(temporary), runtime=runtime)
        row.build_seconds = time.perf_counter() - start
        for (program, depth), timing in zip(settings, timings, strict=True):
            for stalls in STALLS if program.accesses_memory.any() else (None,):
                compare(row, model, replace(program, stalls=stalls), timing, depth)
    return row


def chip_referee(
    name: str,
    graph: Graph,
    devices: Sequence[Device],
    depths: Sequence[int | None],
    runtime: Path | None = None,
    inputs: Mapping[str, Any] | None = None,
    technology: Technology = GENERIC,
) -> Row:
    """Build one design as a chip for each device and depth, and compare all of its runs."""
    row = Row(name=name, pes=sum(n.pe_count for n in graph.nodes), channels=len(graph.channels))
    scalars = {p.name: p.type.numpy.type(3) for p in graph.parameters}
    given = random_inputs(graph) if inputs is None else inputs
    for device in devices:
        own = build_program(graph, device, given, scalars)
        ranges = ranges_in(own)
        for depth in depths:
            program = own if depth is None else deep(own, depth)
            timing = device_times(program)
            bounds = largest(timing, graph=graph, inputs=own.inputs)
            with tempfile.TemporaryDirectory(prefix="t2s-referee-") as temporary:
                folder, start = Path(temporary), time.perf_counter()
                try:
                    model = build_hardware(
                        graph,
                        timing,
                        bounds,
                        folder,
                        runtime=runtime,
                        constant=True,
                        technology=technology,
                        ranges=ranges,
                    )
                except t2s.errors.UnsupportedError as error:
                    row.refused.append(f"{name} on {device.name}, depth {depth}: {error}")
                    continue
                row.build_seconds += time.perf_counter() - start
                for stalls in CHIP_STALLS if program.accesses_memory.any() else (None,):
                    compare(row, model, replace(program, stalls=stalls), timing, depth)
    return row


def ranges_in(program: SimProgram) -> Ranges:
    """What a chip for the inputs of a program has of its machines."""
    result = find_engine("native").run(program, Limits())
    sizes = sizes_of(program.graph, {**program.inputs, **result.outputs})
    return ranges_of(program.graph, sizes)


def deep(program: SimProgram, depth: int) -> SimProgram:
    """The program with all channels of that depth; times only, if they do not depend on values."""
    changed = program.with_capacities({c.name: depth for c in program.graph.channels})
    return replace(changed, inputs=program.inputs) if program.graph.machines else changed


def compare(
    row: Row, model: HardwareModel, program: SimProgram, timing: DeviceTimes, depth: int | None
) -> None:
    """One run of both."""
    stalls = program.stalls
    engines = MACHINE_ENGINES if program.graph.machines else ENGINES
    results = {name: find_engine(name).run(program, Limits()) for name in engines}
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
        texts = all_differences(program, result, found)
        row.differences += [f"{where}, engine {name}: {text}" for text in texts]


def all_differences(
    program: SimProgram, expected: SimResult, found: HardwareResult
) -> Iterator[str]:
    """What the hardware did otherwise, and how many tokens it left where it says so."""
    yield from differences(found, expected)
    left = sum(channel.tokens for channel in expected.tokens_left)
    counted = found.held.size > 0  # a chip does not say what is left
    if counted and expected.deadlock is None and int(found.held.sum()) != left:
        yield f"{int(found.held.sum())} tokens are left, not {left}"


def show(rows: Sequence[Row]) -> None:
    """The table, and everything that differs."""
    table = Table(title="hardware in Verilator beside the simulator")
    for heading in ("design", "PEs", "channels", "runs", "deadlocks", "cycles", "values",
                    "build s", "runs s", "refused", "differences"):  # fmt: skip
        table.add_column(heading, justify="left" if heading == "design" else "right")
    for row in rows:
        table.add_row(
            row.name,
            *(f"{n:,}" for n in (row.pes, row.channels, row.runs, row.deadlocks, row.cycles)),
            f"{row.values:,}",
            f"{row.build_seconds:.1f}",
            f"{row.hardware_seconds:.1f}",
            str(len(row.refused)),
            str(len(row.differences)),
        )
    console = Console(width=120)
    console.print(table)
    total = sum(row.runs for row in rows)
    different = [text for row in rows for text in row.differences]
    for text in (*different[:40], *(text for row in rows for text in row.refused[:1])):
        console.print(text, soft_wrap=True, highlight=False)
    console.print(f"{len(rows)} designs, {total} runs, {len(different)} differences")


def finished(results: Path | None) -> dict[str, Row]:
    """The rows that are in the file already."""
    if results is None or not results.exists():
        return {}
    rows = [Row(**json.loads(line)) for line in results.read_text().splitlines()]
    return {row.name: row for row in rows}


def jobs(arguments: argparse.Namespace) -> Iterator[tuple[str, Callable[[Path], Row]]]:
    """What is asked for, by name."""
    chip = None if arguments.chip is None else find_technology(arguments.chip)
    seeds = range(arguments.seed, arguments.seed + max(arguments.random, arguments.machines))
    if arguments.names or not seeds:
        devices = (DEVICES["ideal"], DEVICES["arria10"], NARROW)
        for name, make in examples().items():
            if not arguments.names or name.startswith(tuple(arguments.names)):
                yield name, lambda at, name=name, make=make: row_of(name, make(), devices, at, chip)
    for kind, count, make_graph in (
        ("random", arguments.random, lambda seed: Case(graph=random_graph(seed))),
        ("machines", arguments.machines, machines_of),
    ):
        for seed in seeds[:count]:
            yield (
                f"{kind} {seed}",
                lambda at, kind=kind, seed=seed, make=make_graph: row_of(
                    f"{kind} {seed}", make(seed), random_device(seed), at, chip, (None, 1, 2)
                ),
            )


def machines_of(seed: int) -> Case:
    """Random machines with their inputs."""
    graph, inputs = random_machines(seed)
    return Case(graph=graph, inputs=inputs)


def row_of(
    name: str,
    case: Case,
    devices: Sequence[Device],
    runtime: Path,
    chip: Technology | None = None,
    depths: Sequence[int | None] | None = None,
) -> Row:
    """The comparison of one design."""
    if chip is not None:
        chosen = depths or CHIP_DEPTHS
        return chip_referee(name, case.graph, devices, chosen, runtime, case.inputs, chip)
    return referee(name, case.graph, devices, depths or DEPTHS, runtime, case.inputs)


def main(runtime: Path) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="how examples begin; all if there are none")
    parser.add_argument("--list", action="store_true", help="the names of the examples")
    parser.add_argument("--chip", choices=sorted(TECHNOLOGIES), help="the text of a chip")
    parser.add_argument("--random", type=int, default=0, help="so many random graphs")
    parser.add_argument("--machines", type=int, default=0, help="so many random machines")
    parser.add_argument("--seed", type=int, default=0, help="of the first random graph")
    parser.add_argument("--results", type=Path, help="a file that keeps the rows")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(examples()))
        return 0
    warnings.simplefilter("ignore", t2s.errors.T2SWarning)
    known = finished(arguments.results)
    rows: list[Row] = []
    wanted = list(jobs(arguments))
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("designs", total=len(wanted))
        for name, run in wanted:
            progress.update(task, description=name)
            if name in known:
                rows.append(known[name])
            else:
                rows.append(run(runtime))
                keep(arguments.results, rows[-1])
            progress.advance(task)
    show(rows)
    return 1 if any(row.differences for row in rows) else 0


def keep(results: Path | None, row: Row) -> None:
    """Add a row to the file."""
    if results is not None:
        with results.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="t2s-referee-runtime-") as shared:
        sys.exit(main(Path(shared)))
