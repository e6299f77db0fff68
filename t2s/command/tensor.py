"""``t2s tensor``: index notation, formats and files in; cycles, stalls and graphs out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

import t2s
from t2s import sparse
from t2s.command.options import (
    DENSITY,
    Extents,
    RandomTensors,
    TensorFiles,
    TensorFormats,
    check_choice,
    device_names,
    engine_names,
    given_texts,
    memory_names,
    tensor_inputs,
)
from t2s.command.output import (
    INTERRUPTED,
    TENSOR,
    TENSOR_SEARCH,
    OutputRecord,
    compare,
    console_for,
    failed,
    output_records,
    print_record,
    result_record,
    without_lines,
)
from t2s.core.errors import T2SError, UnsupportedError, UserError
from t2s.core.files import check_place, write_texts
from t2s.graph.printer import graph_to_dot
from t2s.graph.serialize import graph_to_json
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import IDEAL, MEMORIES
from t2s.simulator.report.errors import RunInterrupted
from t2s.sparse_repr.concrete.unsupported import refuse_external
from t2s.sparse_repr.lowering.diagram import block_counts
from t2s.sparse_repr.notation.ir import Assignment, accesses, print_assignment

ENGINES = ("native", "python")
TARGETS = ("streams", "cgra", "capstan")
BUILD = Path("build")


def tensor(
    expression: Annotated[str, typer.Argument(help='for example "y(i)=A(i,j)*x(j)"')],
    formats: TensorFormats = None,
    files: TensorFiles = None,
    random: RandomTensors = None,
    sizes: Extents = None,
    order: Annotated[str | None, typer.Option(help='order of the loops, such as "i k j"')] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIABLE,OUTER,INNER,FACTOR", help="split a variable"),
    ] = None,
    locate: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:VARIABLE", help="locate into a dense level"),
    ] = None,
    scan: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:VARIABLE", help="scan a dense level, do not locate into it"),
    ] = None,
    parallelize: Annotated[
        list[str] | None,
        typer.Option(metavar="VARIABLE=LANES", help="deal a loop to copies of its body"),
    ] = None,
    schedules: Annotated[
        list[str] | None,
        typer.Option(
            "--schedule", "-s", metavar="DIRECTIVES", help="such as split(i,i0,i1,4),skip(j)"
        ),
    ] = None,
    transpose: Annotated[bool, typer.Option(help="transpose where the loops need it")] = False,
    target: Annotated[str, typer.Option(help="streams, cgra or capstan")] = "streams",
    device: Annotated[
        str,
        typer.Option(
            help="ideal, arria10, stratix10, alveo_u55c or aup_zu3", autocompletion=device_names
        ),
    ] = "ideal",
    memory: Annotated[
        str | None,
        typer.Option(
            help="ideal, or a DRAM such as hbm2e (capstan: hbm2e-1800 if none is named)",
            autocompletion=memory_names,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="native or python", autocompletion=engine_names)
    ] = "native",
    capacity: Annotated[int | None, typer.Option(help="tokens that a channel holds")] = None,
    seed: Annotated[int, typer.Option(help="seed of the random values")] = 0,
    out: Annotated[Path, typer.Option(help="folder for the graphs, as DOT and JSON")] = BUILD,
    report: Annotated[
        Path | None, typer.Option(help="write a page that says where the cycles went")
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="find the best loops, formats, lanes and directives")
    ] = False,
    lanes: Annotated[
        int | None, typer.Option(help="with --search: the most lanes (4)", min=1)
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="with --search: a tensor that keeps its format"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="with --search: end with the best so far after these")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="print JSON alone, for scripts: schema t2s.tensor/1")
    ] = False,
) -> None:
    """Compile index notation to streams, simulate it, check it against numpy."""
    console = console_for(json)
    try:
        check_choice("device", device, DEVICES)
        check_choice("memory", memory or IDEAL, (IDEAL, *MEMORIES))
        check_choice("engine", engine, ENGINES)
        check_choice("target", target, TARGETS)
        if report is not None:
            check_place(report)
        assignment = sparse.parse(expression, given_texts(formats))
        schedule = _schedule(order, split or [], locate or [], scan or [], parallelize or [])
        for text in given_texts(schedules):
            more = sparse.schedule(text)
            schedule = sparse.Schedule(directives=(*schedule.directives, *more.directives))
        schedule = schedule.transpose() if transpose else schedule

        def inputs() -> dict[str, Any]:
            return tensor_inputs(
                assignment, given_texts(files), random or [], given_texts(sizes), seed
            )

        if not search and not (lanes is None and fixed is None and seconds is None):
            raise UserError(
                "--lanes, --fixed and --seconds are options of a search",
                expected="--search beside them",
                hint="--parallelize VARIABLE=LANES deals a loop to lanes",
            )
        if search:
            others = (schedule.directives, target != "streams", report, engine != "native")
            if any(others) or capacity is not None:
                raise UserError(
                    "--search chooses the schedule, for streams",
                    expected="no directives, --target, --engine, --capacity and --report beside it",
                    hint="run the line that the search prints with --report",
                )
            wanted = _SearchOptions(device, memory, lanes or 4, tuple(fixed or ()), seconds, seed)
            _search(
                console,
                assignment,
                given_texts(formats),
                inputs(),
                given_texts(files),
                random or [],
                wanted,
                json,
            )
            return
        if target == "capstan":
            patterns = sparse.CapstanKernel(assignment, schedule)
            simulated = _Simulated(memory, engine, json or report is not None or memory is not None)
            ran = _run_patterns(console, patterns, inputs(), out, simulated, report)
        elif schedule.has_external:
            if target != "streams":
                refuse_external(schedule, "cells do not know it")
            if report is not None or json:
                refuse_external(schedule, "their calls take no cycles to report")
            _run_plan(console, assignment, schedule, inputs())
            return
        else:
            kernel = sparse.compile(assignment, schedule)
            arrays = inputs()
            _show_design(console, kernel)
            if target == "cgra":
                ran = _run_on_cells(console, kernel, arrays, out, seed, report)
            else:
                options = _StreamOptions(device, memory or IDEAL, engine, capacity)
                ran = _run_streams(console, kernel, arrays, out, options, report)
        if json:
            statement = print_assignment(assignment)
            record = {"expression": statement, "target": target, **result_record(ran.result)}
            print_record(TENSOR, {**record, "outputs": output_records([ran.output])})
    except RunInterrupted as interrupt:
        measured = interrupt.result
        typer.echo(str(measured if measured.cycles else interrupt).rstrip(), err=json)
        raise typer.Exit(code=INTERRUPTED) from None
    except (T2SError, OSError) as error:
        raise failed(without_lines(str(error))) from None


@dataclass(frozen=True)
class _Ran:
    """The result of a run (``None`` if nothing was simulated), and the output."""

    result: Any
    output: OutputRecord


@dataclass(frozen=True)
class _Simulated:
    """Options of a run: memory (``None``: the chip's), engine, and whether to count cycles."""

    memory: str | None
    engine: str
    wanted: bool


@dataclass(frozen=True)
class _StreamOptions:
    device: str
    memory: str
    engine: str
    capacity: int | None


@dataclass(frozen=True)
class _SearchOptions:
    device: str
    memory: str | None
    lanes: int
    fixed: tuple[str, ...]
    seconds: float | None
    seed: int


def _search(
    console: Console,
    assignment: Assignment,
    formats: list[str],
    inputs: dict[str, Any],
    files: list[str],
    random: list[str],
    options: _SearchOptions,
    json: bool,
) -> None:
    """Search, and print the ranking or its record."""
    found = sparse.search(
        print_assignment(assignment),
        inputs,
        formats=formats,
        fixed=options.fixed,
        lanes=options.lanes,
        device=options.device,
        memory=options.memory,
        seconds=options.seconds,
        seed=options.seed,
        progress=False if json else None,
    )
    named = dict(text.split("=", 1) for text in files)
    found = replace(found, sources=_sources(assignment, inputs, named, random, options.seed))
    console.out(str(found))
    if len(found.points) > 1:
        console.out(found.why(2))
    if json:
        print_record(TENSOR_SEARCH, _search_record(found))
    if found.interrupted:
        raise typer.Exit(code=INTERRUPTED)


def _sources(
    assignment: Assignment,
    inputs: dict[str, Any],
    files: dict[str, str],
    random: list[str],
    seed: int,
) -> dict[str, tuple[str, ...]]:
    """For each input the options that read or draw it again.

    The density is among them, because without one it follows from the declared format.
    """
    densities = dict(text.partition("=")[::2] for text in random)
    variables = {access.tensor: access.variables for access in accesses(assignment.value)}
    sources: dict[str, tuple[str, ...]] = {}
    for name, path in files.items():
        sources[name] = ("-i", f"{name}={path}")
    for name, given in densities.items():
        full = all(level.full for level in assignment.tensor(name).format.levels)
        sources[name] = ("--random", f"{name}={given or (1.0 if full else DENSITY)}")
        for variable, extent in zip(variables[name], inputs[name].shape, strict=True):
            sources[name] += ("-d", f"{variable}={extent}")
    if densities and seed:
        last = next(reversed(sources))
        sources[last] += ("--seed", str(seed))
    return sources


def _search_record(found: sparse.SparseSearchResult) -> dict[str, Any]:
    return {
        "expression": print_assignment(found.kernel.assignment),
        "cycles": found.cycles,
        "schedule": found.schedule,
        "formats": dict(found.formats),
        "finished": found.finished,
        "sampled": found.sampled,
        "checked": found.checked,
        "default_cycles": found.default_cycles,
        "simulated_cycles": found.simulated_cycles,
        "space": found.space,
        "refused": dict(found.refused),
        "ruled_out": found.ruled_out,
        "command": found.command,
        "program": found.program(),
        "points": [
            {
                "order": list(point.order),
                "formats": dict(point.formats),
                "lanes": point.lanes,
                "schedule": point.schedule,
                "blocks": point.blocks,
                "cycles": point.cycles,
                "measurement": point.measurement.value,
            }
            for point in found.points
        ],
    }


def _run_streams(
    console: Console,
    kernel: sparse.Kernel,
    inputs: dict[str, Any],
    folder: Path,
    options: _StreamOptions,
    page: Path | None,
) -> _Ran:
    """Write the graphs of the blocks, simulate and check them."""
    channels: dict[str, Any] = {} if options.capacity is None else {"capacity": options.capacity}
    _write_graphs(console, kernel, inputs, folder, channels)
    result = kernel.simulate(
        inputs, device=options.device, memory=options.memory, engine=options.engine, **channels
    )
    console.out(str(result).rstrip())
    if page is not None:
        console.out(f"wrote {result.report(page)}")
    name = kernel.assignment.result.tensor
    output = _compare(console, name, result.output, kernel.interpret(inputs))
    return _Ran(result, output)


def _run_patterns(
    console: Console,
    kernel: sparse.CapstanKernel,
    inputs: dict[str, Any],
    folder: Path,
    simulated: _Simulated,
    page: Path | None,
) -> _Ran:
    """Show loops, memories and resources, write Spatial, simulate and check the patterns.

    Patterns for which the chip's simulator has no units are interpreted without times, with a
    note, unless an option needs cycles.
    """
    type = kernel.bind(inputs).type
    console.out(print_assignment(kernel.assignment) + "\n")
    console.out(str(kernel))
    console.out(kernel.memories())
    console.out(f"{kernel.resources()}\n")
    for path in kernel.emit(folder, type=type):
        console.out(f"wrote {path}")
    result = None
    try:
        result = kernel.simulate(inputs, memory=simulated.memory, engine=simulated.engine)
    except UnsupportedError as error:
        if simulated.wanted:
            raise
        console.out(f"\nno cycles: {without_lines(str(error))}")
    if result is not None:
        console.out(f"\n{result}")
        if result.run.machine_trace is not None:
            console.out(f"wrote {result.picture().write(folder / 'picture.svg')}")
            if result.dram_bytes and result.entries:
                console.out(f"wrote {result.roofline().write(folder / 'roofline.svg')}")
        if page is not None:
            console.out(f"wrote {result.report(page)}")
    computed = kernel.interpret(inputs) if result is None else result.output
    name = kernel.assignment.result.tensor
    output = _compare(console, name, computed, kernel.interpret(inputs, level="notation"))
    return _Ran(result, output)


def _run_plan(
    console: Console, assignment: Assignment, schedule: sparse.Schedule, inputs: dict[str, Any]
) -> None:
    """Show the plan of external functions, run it, and check it."""
    plan: Any = sparse.compile(assignment, schedule)
    console.out(f"{plan}\n")
    result = plan.run(inputs)
    console.out(str(result))
    name = assignment.result.tensor
    _compare(console, name, result.output, sparse.interpret(assignment, inputs))


def _run_on_cells(
    console: Console,
    kernel: sparse.Kernel,
    inputs: dict[str, Any],
    folder: Path,
    seed: int,
    page: Path | None,
) -> _Ran:
    """Place the blocks on cells, run and check them, and write the assembly."""
    placed = t2s.cgra.place(kernel, inputs, seed=seed)
    console.out(str(placed))
    result = t2s.simulate(placed, inputs)
    console.out(str(result).rstrip())
    if page is not None:
        console.out(f"wrote {result.report(page)}")
    for path in write_texts(folder, placed.files):
        console.out(f"wrote {path}")
    name = kernel.assignment.result.tensor
    output = _compare(console, name, result.output, kernel.interpret(inputs))
    return _Ran(result, output)


def _compare(console: Console, name: str, output: Any, expected: Any) -> OutputRecord:
    verdict = compare(output, expected, tolerance=tolerance_of(expected))
    console.out(f"\n{verdict}")
    return OutputRecord(name=name, values=output, agreement=verdict)


def _show_design(console: Console, kernel: sparse.Kernel) -> None:
    console.out(print_assignment(kernel.assignment) + "\n")
    console.out(str(kernel))
    counts = block_counts(kernel.diagrams)
    console.out(", ".join(f"{count} {kind}" for kind, count in counts.items() if count) + "\n")


def _write_graphs(
    console: Console,
    kernel: sparse.Kernel,
    inputs: dict[str, Any],
    folder: Path,
    options: dict[str, Any],
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for graph in kernel.graphs(inputs, **options):
        for suffix, text in ((".dot", graph_to_dot(graph)), (".json", graph_to_json(graph))):
            path = folder / f"{graph.name}{suffix}"
            path.write_text(text, encoding="utf-8")
            console.out(f"wrote {path}")


def _schedule(
    order: str | None,
    splits: list[str],
    locates: list[str],
    scans: list[str],
    parallel: list[str],
) -> sparse.Schedule:
    schedule = sparse.Schedule()
    for text in splits:
        words = text.split(",")
        if len(words) != 4 or not words[3].isdecimal():
            raise UserError(
                f"--split {text} is not a split", expected="VARIABLE,OUTER,INNER,FACTOR"
            )
        schedule = schedule.split(words[0], words[1], words[2], int(words[3]))
    if order is not None:
        schedule = schedule.reorder(*order.replace(",", " ").split())
    for text in locates:
        name, _, variable = text.partition(":")
        if not variable:
            raise UserError(f"--locate {text} names no level", expected="NAME:VARIABLE")
        schedule = schedule.locate(name, variable)
    for text in scans:
        name, _, variable = text.partition(":")
        if not variable:
            raise UserError(f"--scan {text} names no level", expected="NAME:VARIABLE")
        schedule = schedule.scan(name, variable)
    for text in parallel:
        variable, _, lanes = text.partition("=")
        if not lanes.isdecimal():
            raise UserError(f"--parallelize {text} gives no lanes", expected="VARIABLE=LANES")
        schedule = schedule.parallelize(variable, int(lanes))
    return schedule


def tolerance_of(expected: np.ndarray[Any, Any]) -> float | None:
    """The tolerance of a result: streams sum in another order, so more bits may differ."""
    if expected.dtype.kind != "f":
        return None
    return 1e-9 * float(np.finfo(expected.dtype).eps / np.finfo(np.float64).eps)
