"""``t2s tensor``: index notation, formats and files in; cycles, stalls and graphs out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

import t2s
from t2s import sparse
from t2s.command.agreement import compare
from t2s.command.tensor_inputs import tensor_inputs
from t2s.core.errors import T2SError, UserError
from t2s.core.files import check_place, write_texts
from t2s.graph.dot import graph_to_dot
from t2s.graph.serialize import graph_to_json
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.presets import IDEAL, MEMORIES
from t2s.simulator.report.cut_short import RunInterrupted
from t2s.sparse_repr.concrete.for_other_targets import refuse_external
from t2s.sparse_repr.lowering.diagram import block_counts
from t2s.sparse_repr.notation.ir import Assignment, print_assignment

ENGINES = ("native", "python")
TARGETS = ("streams", "cgra", "capstan")
BUILD = Path("build")

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""

_SNIPPET = re.compile(r"  --> |   \d+ \| ")


def tensor(
    expression: Annotated[str, typer.Argument(help='for example "y(i)=A(i,j)*x(j)"')],
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", metavar="NAME:LEVELS[:MODES]", help="A:ds or A:ds:1,0"),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--input", "-i", metavar="NAME=FILE", help="a .mtx, .tns or .npy file"),
    ] = None,
    random: Annotated[
        list[str] | None,
        typer.Option("--random", metavar="NAME[=DENSITY]", help="random values"),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", "-d", metavar="VARIABLE=EXTENT", help="extent of a variable"),
    ] = None,
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
    device: Annotated[str, typer.Option(help="ideal, arria10 or stratix10")] = "ideal",
    memory: Annotated[
        str | None,
        typer.Option(help="ideal, or a DRAM such as hbm2e; capstan is simulated with it"),
    ] = None,
    engine: Annotated[str, typer.Option(help="native or python")] = "native",
    capacity: Annotated[int | None, typer.Option(help="tokens that a channel holds")] = None,
    seed: Annotated[int, typer.Option(help="seed of the random values")] = 0,
    out: Annotated[Path, typer.Option(help="folder for the graphs, as DOT and JSON")] = BUILD,
    report: Annotated[
        Path | None, typer.Option(help="write a page that says where the cycles went")
    ] = None,
) -> None:
    """Compile index notation to streams, simulate it, check it against numpy."""
    console = Console(highlight=False)
    try:
        _check_choice("device", device, tuple(DEVICES))
        _check_choice("memory", memory or IDEAL, (IDEAL, *MEMORIES))
        _check_choice("engine", engine, ENGINES)
        _check_choice("target", target, TARGETS)
        if report is not None:
            check_place(report)
        assignment = sparse.parse(expression, given_texts(formats))
        schedule = _schedule(order, split or [], locate or [], scan or [], parallelize or [])
        for text in given_texts(schedules):
            more = sparse.schedule(text)
            schedule = sparse.Schedule(directives=(*schedule.directives, *more.directives))
        schedule = schedule.transpose() if transpose else schedule
        if target == "capstan":
            patterns = sparse.CapstanKernel(assignment, schedule)
            inputs = tensor_inputs(
                assignment, given_texts(files), random or [], given_texts(sizes), seed
            )
            _run_patterns(console, patterns, inputs, out, (memory, engine), report)
            return
        if schedule.has_external:
            if target != "streams":
                refuse_external(schedule, "cells do not know it")
            inputs = tensor_inputs(
                assignment, given_texts(files), random or [], given_texts(sizes), seed
            )
            if report is not None:
                refuse_external(schedule, "their calls take no cycles to report")
            _run_plan(console, assignment, schedule, inputs)
            return
        kernel = sparse.compile(assignment, schedule)
        inputs = tensor_inputs(
            assignment, given_texts(files), random or [], given_texts(sizes), seed
        )
        _show_design(console, kernel)
        if target == "cgra":
            _run_on_cells(console, kernel, inputs, out, seed, report)
            return
        options: dict[str, Any] = {} if capacity is None else {"capacity": capacity}
        _write_graphs(console, kernel, inputs, out, options)
        result = kernel.simulate(
            inputs, device=device, memory=memory or IDEAL, engine=engine, **options
        )
        console.out(str(result).rstrip())
        if report is not None:
            console.out(f"wrote {result.report(report)}")
        _compare(console, result.output, kernel.interpret(inputs))
    except RunInterrupted as interrupt:
        measured = interrupt.result
        console.out(str(measured if measured.cycles else interrupt).rstrip())
        raise typer.Exit(code=INTERRUPTED) from None
    except (T2SError, OSError) as error:
        raise failed(without_lines(str(error))) from None


def _run_patterns(
    console: Console,
    kernel: sparse.CapstanKernel,
    inputs: dict[str, Any],
    folder: Path,
    simulated: tuple[str | None, str],
    page: Path | None,
) -> None:
    """Show loops, memories and resources, write Spatial, and check what the patterns compute.

    ``simulated`` is the memory to simulate with, if there is to be one, and the engine.  A page
    needs a run, so that it is one with ideal memory if none is named.
    """
    type = kernel.bind(inputs).type
    console.out(print_assignment(kernel.assignment) + "\n")
    console.out(str(kernel))
    console.out(kernel.memories())
    console.out(f"{kernel.resources()}\n")
    for path in kernel.emit(folder, type=type):
        console.out(f"wrote {path}")
    memory, engine = simulated
    memory = IDEAL if memory is None and page is not None else memory
    found = kernel.interpret(inputs) if memory is None else None
    if memory is not None:
        result = kernel.simulate(inputs, memory=memory, engine=engine)
        console.out(f"\n{result}")
        if result.run.trace is not None:
            console.out(f"wrote {result.picture().write(folder / 'picture.svg')}")
            if result.dram_bytes and result.entries:
                console.out(f"wrote {result.roofline().write(folder / 'roofline.svg')}")
        found = result.tensor.to_dense()
        if page is not None:
            console.out(f"wrote {result.report(page)}")
    _compare(console, found, kernel.interpret(inputs, level="notation"))


def _run_plan(
    console: Console, assignment: Assignment, schedule: sparse.Schedule, inputs: dict[str, Any]
) -> None:
    """Show the plan of external functions, run it, and check it."""
    plan = sparse.compile(assignment, schedule)
    console.out(f"{plan}\n")
    result = plan.run(inputs)
    console.out(str(result))
    _compare(console, result.output, sparse.interpret(assignment, inputs))


def _run_on_cells(
    console: Console,
    kernel: sparse.Kernel,
    inputs: dict[str, Any],
    folder: Path,
    seed: int,
    page: Path | None,
) -> None:
    """Place the blocks on cells, run and check them, and write the assembly."""
    placed = t2s.place(kernel, inputs, seed=seed)
    console.out(str(placed))
    result = t2s.simulate(placed, inputs)
    console.out(str(result).rstrip())
    if page is not None:
        console.out(f"wrote {result.report(page)}")
    for path in write_texts(folder, placed.files):
        console.out(f"wrote {path}")
    _compare(console, result.output, kernel.interpret(inputs))


def _compare(console: Console, found: Any, expected: Any) -> None:
    console.out("\n" + compare(found, expected, tolerance=tolerance_of(expected)))


def failed(said: str) -> typer.Exit:
    """Print what is wrong; the exit that a command ends with."""
    text = f"[bold red]error:[/] {escape(said)}"
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)
    return typer.Exit(code=1)


def given_texts(texts: list[str] | None) -> list[str]:
    """What a short option was given, be it written ``-f A:ds`` or, as TACO does, ``-f=A:ds``."""
    return [text.removeprefix("=") for text in texts or []]


def without_lines(text: str) -> str:
    """An error without the line of Python that it shows: here there is only the command."""
    return "\n".join(line for line in text.splitlines() if not _SNIPPET.match(line))


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


def _check_choice(option: str, given: str, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise UserError(f"there is no {option} {given}", expected=f"one of {', '.join(choices)}")


def tolerance_of(expected: np.ndarray[Any, Any]) -> float | None:
    """Sums of streams are made in another order, so that some bits more than usual may differ."""
    if expected.dtype.kind != "f":
        return None
    return 1e-9 * float(np.finfo(expected.dtype).eps / np.finfo(np.float64).eps)
