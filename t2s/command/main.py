"""The ``t2s`` command: take a design file from its definition to cycles and OpenCL.

A design file is a Python file that defines Funcs at module level, such as
``examples/gemm/gemm.py``.  ``t2s run FILE`` runs the output Funcs: those that no other Func reads.
See ``design.py`` for what else a design file may define.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import t2s
from t2s.command.cgra import cgra
from t2s.command.chip import chip
from t2s.command.compare import compare
from t2s.command.design import (
    RANDOM_SIZE,
    Funcs,
    Inputs,
    LoadedDesign,
    find_design,
    graph_inputs,
    kernel_inputs,
    product_inputs,
    program_inputs,
)
from t2s.command.devices import devices
from t2s.command.external import external
from t2s.command.options import (
    DEFAULT_DEVICE,
    ENGINES,
    Constants,
    DesignFile,
    DeviceName,
    EngineName,
    FuncName,
    MemoryName,
    RandomSize,
    Seed,
    check_choice,
    constants_of,
)
from t2s.command.output import (
    INTERRUPTED,
    RUN,
    OutputRecord,
    console_for,
    exit_codes,
    output_records,
    print_record,
    result_record,
)
from t2s.command.output import compare as agreement
from t2s.command.report import report
from t2s.command.search import search
from t2s.command.tensor import tensor
from t2s.command.tia import tia
from t2s.core.errors import UnsupportedError
from t2s.core.files import write_texts
from t2s.driver.assignment_design import SparseResult
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.func_design import is_sparse
from t2s.driver.hardware import find_backend
from t2s.driver.program_result import ProgramResult
from t2s.driver.statement_program import Program
from t2s.graph.graph import Graph
from t2s.graph.printer import summarize_graph
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import IDEAL, MEMORIES
from t2s.simulator.report.result import SimResult

app = typer.Typer(help="Compile and simulate designs for spatial hardware.")


app.command()(tensor)
app.command()(cgra)
app.command()(report)
app.command()(compare)
app.command()(search)
app.command()(chip)
app.command()(devices)
app.add_typer(tia, name="tia")
app.add_typer(external, name="external")


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"t2s {t2s.__version__}")
        raise typer.Exit


@app.callback()
def _command(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="and exit")
    ] = False,
) -> None:
    """Compile and simulate designs for spatial hardware."""


@app.command()
def run(
    file: DesignFile,
    func: FuncName = None,
    device: DeviceName = DEFAULT_DEVICE,
    memory: MemoryName = None,
    engine: EngineName = "native",
    out: Annotated[Path | None, typer.Option(help="folder for the OpenCL")] = None,
    emulate: Annotated[bool, typer.Option(help="also run the OpenCL on the emulator")] = False,
    seed: Seed = 0,
    size: RandomSize = RANDOM_SIZE,
    constant: Constants = None,
    json: Annotated[
        bool, typer.Option("--json", help="print JSON alone, for scripts: schema t2s.run/1")
    ] = False,
) -> None:
    """Print loop nest, graph, resources, cycles and stalls; check against numpy; write OpenCL."""
    console = console_for(json)
    with exit_codes(json):
        constants = constants_of(constant or [])
        check_choice("device", device, DEVICES)
        if memory is not None:
            check_choice("memory", memory, (IDEAL, *MEMORIES))
        check_choice("engine", engine, ENGINES)
        loaded = find_design(file, func)
        run = _CommandRun(console, device, memory, engine, emulate, out, loaded.name)
        result = _run(run, file, loaded, seed, size, constants)
        options = {"--func": func, "--device": device, "--memory": memory}
        if device == DEFAULT_DEVICE:
            del options["--device"]
        words = [word for name, text in options.items() if text for word in (name, text)]
        words += ["--seed", str(seed)] if seed else []
        words += ["--size", str(size)] if size != RANDOM_SIZE else []
        words += [word for text in constant or [] for word in ("--set", text)]
        console.out(f"\npictures of this run: {shlex.join(['t2s', 'report', str(file), *words])}")
        if json:
            record = {"design": loaded.name, "file": str(file), **result_record(result)}
            outputs = output_records(run.outputs)
            print_record(RUN, {**record, "outputs": outputs, "files": run.files})


@app.command()
def program(file: DesignFile, func: FuncName = None) -> None:
    """Print a design as the Python text that makes it: definitions and directives."""
    with exit_codes():
        match find_design(file, func).design:
            case tuple() as outputs:
                console_for(False).out(t2s.program(outputs).rstrip())
            case design:
                t2s.program(design)  # type: ignore[arg-type]  # refused, as in Python


def _run(
    run: _CommandRun,
    file: Path,
    loaded: LoadedDesign,
    seed: int,
    size: int,
    constants: Mapping[str, int],
) -> SimResult | SparseResult | ProgramResult:
    match loaded.design:
        case Graph() as graph:
            return _run_graph(run, graph, graph_inputs(graph, seed, loaded.given(seed)))
        case Kernel() as kernel:
            return _run_kernel(run, kernel, kernel_inputs(kernel, seed, size, loaded.given(seed)))
        case Program() as program:
            return _run_program(run, program, program_inputs(file, program, loaded.given(seed)))
        case (product,) if is_sparse(product):
            graph, inputs = product_inputs(product, seed, size, loaded.given(seed))
            return _run_funcs(run, (product,), graph, inputs)
        case outputs:
            design = outputs[0] if len(outputs) == 1 else outputs
            arrays = loaded.given(seed)
            _section(run.console, "loop nest")
            run.console.out(t2s.print_loop_nest(design, constants).rstrip())
            graph = t2s.lower(design, constants)
            inputs = graph_inputs(graph, seed, arrays)
            return _run_funcs(run, outputs, graph, {**constants, **inputs})


@dataclass(frozen=True)
class _CommandRun:
    """One run of the command: its options, where it prints and writes, and what it computed."""

    console: Console
    device: str
    memory: str | None
    engine: str
    emulate: bool
    out: Path | None
    name: str
    outputs: list[OutputRecord] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def _run_funcs(run: _CommandRun, outputs: Funcs, graph: Graph, inputs: Inputs) -> SimResult:
    design = outputs[0] if len(outputs) == 1 else outputs
    if isinstance(design, t2s.Func) and is_sparse(design):
        simulated: t2s.Func | Graph = design
        expected = {design.name: t2s.interpret(design, inputs)}
    else:
        simulated = graph
        expected = t2s.interpret(outputs, inputs)
        needed = {tensor.array for tensor in graph.tensors} | {p.name for p in graph.parameters}
        inputs = {name: value for name, value in inputs.items() if name in needed}
    _describe(run, graph)
    result: SimResult = t2s.simulate(
        simulated, inputs, device=run.device, memory=run.memory, engine=run.engine
    )
    _report(run, result)
    _compare_all(run, "simulator", result.outputs, expected)
    _write_opencl(run, graph, run.name)
    if run.emulate:
        _compare_all(run, "emulator", t2s.emulate(simulated, inputs), expected)
    return result


def _run_graph(run: _CommandRun, graph: Graph, inputs: Inputs) -> SimResult:
    _describe(run, graph)
    result: SimResult = t2s.simulate(
        graph, inputs, device=run.device, memory=run.memory, engine=run.engine
    )
    _report(run, result)
    expected = t2s.interpret(graph, inputs)
    _compare_all(run, "simulator", result.outputs, expected)
    _write_opencl(run, graph, run.name)
    if run.emulate:
        _compare_all(run, "emulator", t2s.emulate(graph, inputs), expected)
    return result


def _run_kernel(run: _CommandRun, kernel: Kernel, inputs: Inputs) -> SparseResult:
    _section(run.console, "loops")
    run.console.out(str(kernel).rstrip())
    graphs = kernel.graphs(inputs)
    for graph in graphs:
        _describe(run, graph)
    result = kernel.simulate(inputs, device=run.device, memory=run.memory, engine=run.engine)
    _section(run.console, "simulation")
    run.console.out(str(result).rstrip())
    expected = {run.name: kernel.interpret(inputs)}
    _compare_all(run, "simulator", {run.name: result.output}, expected)
    for graph in graphs:
        _write_opencl(run, graph, graph.name)
    return result


def _run_program(run: _CommandRun, program: Program, inputs: Inputs) -> ProgramResult:
    _section(run.console, "statements")
    run.console.out(str(program).rstrip())
    _section(run.console, "loops")
    run.console.out(program.print_loop_nest().rstrip())
    result = program.simulate(inputs, device=run.device, memory=run.memory, engine=run.engine)
    _section(run.console, "simulation")
    run.console.out(str(result).rstrip())
    expected = program.interpret(inputs)
    stored = {name: array for name, array in expected.items() if name in result.tensors}
    _compare_all(run, "simulator", {name: result[name] for name in stored}, stored)
    graphs = [graph for of_one in program.graphs(inputs).values() for graph in of_one]
    for graph in graphs:
        if not _write_opencl(run, graph, graph.name):
            break  # the others are of the same kind
    return result


def _describe(run: _CommandRun, graph: Graph) -> None:
    _section(run.console, "graph")
    run.console.out(summarize_graph(graph).rstrip())
    if DEVICES[run.device].fabric is not None:
        _section(run.console, "resources")
        run.console.out(_resources(graph, run.device))


def _report(run: _CommandRun, result: SimResult) -> None:
    _section(run.console, "simulation")
    run.console.out(str(result).rstrip())
    if result.interrupted:
        raise typer.Exit(code=INTERRUPTED)


def _compare_all(
    run: _CommandRun, what: str, outputs: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Compare every output; print its name if there are several."""
    if what == "simulator":
        run.console.out()
    for name, array in expected.items():
        label = what if len(expected) == 1 else f"{what}, {name}"
        verdict = agreement(outputs[name], array, what=label)
        run.console.out(verdict)
        if what == "simulator":
            agrees = verdict.removeprefix(f"{label}: ")
            run.outputs.append(OutputRecord(name=name, values=outputs[name], agreement=agrees))


def _resources(graph: Graph, device: str) -> str:
    """The resource estimate, or the reason why there is none."""
    try:
        return str(t2s.resources(graph, device=device)).rstrip()
    except UnsupportedError as error:
        return f"no estimate: {error}"


def _write_opencl(run: _CommandRun, graph: Graph, name: str) -> bool:
    """Write the OpenCL, if there is one; that is an error only if the user asked for OpenCL."""
    folder = run.out if run.out is not None else Path("build") / name
    try:
        for path in write_texts(folder, find_backend("opencl_fpga").emit(graph)):
            run.console.out(f"wrote {path}")
            run.files.append(str(path))
    except UnsupportedError as error:
        if run.out is not None:
            raise
        run.console.out(f"no OpenCL: {error}")
        return False
    return True


def _section(console: Console, title: str) -> None:
    console.print()
    console.rule(title, align="left")


def main() -> None:
    """The entry point of the command."""
    app()
