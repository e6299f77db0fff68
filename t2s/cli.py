"""The ``t2s`` command: run a design file from its definition to cycles and OpenCL.

A design file is a Python file that defines Funcs at module level, such as
``examples/gemm/gemm.py``.  ``t2s run FILE`` runs the output Func: the one that no other Func reads.
"""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

import t2s
from t2s.cli_tensor import INTERRUPTED, tensor
from t2s.core.errors import T2SError, UnsupportedError, UserError
from t2s.core.files import write_texts
from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.func.collect import needed_funcs
from t2s.graph.graph import Graph, TensorRole
from t2s.graph.printer import summarize_graph
from t2s.hardware_driver import find_backend
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.presets import IDEAL, MEMORIES

app = typer.Typer(add_completion=False, help="Compile and simulate designs for spatial hardware.")

# largest difference to numpy, relative to the largest element, that counts as a match
TOLERANCE = {16: 2e-2, 32: 1e-5, 64: 1e-13}

ENGINES = ("native", "array", "table", "python")


app.command()(tensor)


@app.callback()
def _command() -> None:
    """Compile and simulate designs for spatial hardware."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="a Python file that defines Funcs")],
    func: Annotated[str | None, typer.Option(help="the Func to run, if there are several")] = None,
    device: Annotated[str, typer.Option(help="ideal, arria10 or stratix10")] = "arria10",
    memory: Annotated[
        str | None,
        typer.Option(help="ideal, ddr4-2133, ddr4-2133x2 or hbm2e, for the device's own"),
    ] = None,
    engine: Annotated[str, typer.Option(help="native, array, table or python")] = "native",
    out: Annotated[Path | None, typer.Option(help="folder for the OpenCL")] = None,
    emulate: Annotated[bool, typer.Option(help="also run the OpenCL on the emulator")] = False,
    seed: Annotated[int, typer.Option(help="seed of the random inputs")] = 0,
    constant: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="value of a Param used in bounds"),
    ] = None,
) -> None:
    """Print loop nest, graph, resources, cycles and stalls; check against numpy; write OpenCL."""
    console = Console(highlight=False)
    try:
        constants = _constants(constant or [])
        _run(console, file, func, device, memory, engine, out, emulate, seed, constants)
    except (T2SError, OSError) as error:
        text = f"[bold red]error:[/] {escape(str(error))}"
        Console(stderr=True, highlight=False).print(text, soft_wrap=True)
        raise typer.Exit(code=1) from None


def _run(
    console: Console,
    file: Path,
    func: str | None,
    device: str,
    memory: str | None,
    engine: str,
    out: Path | None,
    emulate: bool,
    seed: int,
    constants: dict[str, int],
) -> None:
    _check_choice("device", device, DEVICES)
    if memory is not None:
        _check_choice("memory", memory, (IDEAL, *MEMORIES))
    _check_choice("engine", engine, ENGINES)
    design = find_design(file, func)
    _section(console, "loop nest")
    console.out(t2s.print_loop_nest(design, **constants).rstrip())
    graph = t2s.lower(design, **constants)
    _section(console, "graph")
    console.out(summarize_graph(graph).rstrip())
    if DEVICES[device].fabric is not None:
        _section(console, "resources")
        console.out(_resources(graph, device))
    inputs = random_inputs(graph, seed)
    result = t2s.simulate(graph, inputs, device=device, memory=memory, engine=engine)
    _section(console, "simulation")
    console.out(str(result).rstrip())
    if result.interrupted:
        raise typer.Exit(code=INTERRUPTED)
    expected = t2s.interpret(design, {**constants, **inputs})
    console.out("\n" + compare("simulator", result.outputs[design.name], expected))
    _write_opencl(console, graph, out)
    if emulate:
        outputs = t2s.emulate(graph, inputs)
        console.out(compare("emulator", outputs[design.name], expected))


def _resources(graph: Graph, device: str) -> str:
    """The estimate, or why there is none."""
    try:
        return str(t2s.resources(graph, device=device)).rstrip()
    except UnsupportedError as error:
        return f"no estimate: {error}"


def _write_opencl(console: Console, graph: Graph, out: Path | None) -> None:
    """Write the OpenCL; what it cannot express is an error only if the user asked for it."""
    folder = out if out is not None else Path("build") / graph.name
    try:
        for path in write_texts(folder, find_backend("opencl_fpga").emit(graph)):
            console.out(f"wrote {path}")
    except UnsupportedError as error:
        if out is not None:
            raise
        console.out(f"no OpenCL: {error}")


def _constants(given: list[str]) -> dict[str, int]:
    """The values of ``--set NAME=VALUE`` options."""
    constants: dict[str, int] = {}
    for text in given:
        name, _, value = text.partition("=")
        if not (name.isidentifier() and value.lstrip("-").isdecimal()):
            raise UserError(f"--set {text} gives no value", expected="--set NAME=INTEGER")
        constants[name] = int(value)
    return constants


def _check_choice(option: str, given: str, choices: Iterable[str]) -> None:
    if given not in choices:
        raise UserError(f"there is no {option} {given}", expected=f"one of {', '.join(choices)}")


def _section(console: Console, title: str) -> None:
    console.print()
    console.rule(title, align="left")


def find_design(file: Path, name: str | None) -> t2s.Func:
    """Execute a design file and return the Func to run.

    Raises ``UserError`` if the file is missing, fails, or defines no Func, or several outputs.
    """
    if not file.is_file():
        raise UserError(f"there is no file {file}", hint="give the path of a Python file")
    values = _execute(file)
    defined = {f.name: f for f in values.values() if isinstance(f, t2s.Func) and f.written}
    if name is not None:
        if name not in defined:
            raise UserError(
                f"{file} defines no Func {name}",
                expected=", ".join(sorted(defined)) or "a Func at module level",
                given=name,
            )
        return defined[name]
    read = {
        other.name
        for func in defined.values()
        for other in needed_funcs((func,))
        if other is not func
    }
    outputs = sorted(defined.keys() - read)
    if len(outputs) != 1:
        raise UserError(
            f"{file} defines {len(outputs)} Funcs that could be run",
            expected="one Func that no other Func reads",
            given=", ".join(outputs)
            or ("Funcs that read each other" if defined else "no Func with a definition"),
            hint="choose one with --func" if defined else None,
        )
    return defined[outputs[0]]


def _execute(file: Path) -> dict[str, Any]:
    """The names that a Python file defines.  Its own exceptions become a ``UserError``."""
    sys.path.insert(0, str(file.resolve().parent))
    try:
        return runpy.run_path(str(file), run_name="t2s_design")
    except T2SError:
        raise
    except Exception as error:
        raise UserError(
            f"{file} raised {type(error).__name__}: {error}",
            location=_place(error, str(file)),
            hint=f"python {file} shows the whole traceback",
        ) from error
    finally:
        sys.path.pop(0)


def _place(error: Exception, file: str) -> SourceLocation | None:
    """The innermost line of a file that an exception went through."""
    if isinstance(error, SyntaxError):
        return SourceLocation(error.filename or file, error.lineno or 1)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == file and frame.lineno is not None
    ]
    return SourceLocation(file, lines[-1]) if lines else None


def random_inputs(graph: Graph, seed: int) -> dict[str, Any]:
    """Random inputs for a graph: floats in [0, 1), small integers, random bools."""
    generator = np.random.default_rng(seed)
    tensors = [tensor for tensor in graph.tensors if tensor.role is TensorRole.INPUT]
    inputs = {t.array: _random(generator, t.type, t.shape) for t in tensors}
    scalars = {p.name: _random(generator, p.type, ())[()] for p in graph.parameters}
    return {**inputs, **scalars}


def _random(generator: np.random.Generator, type: Type, shape: tuple[int, ...]) -> Any:
    if type.is_float:
        return np.asarray(generator.random(shape)).astype(type.numpy)
    return np.asarray(generator.integers(0, 2 if type.is_bool else 10, shape)).astype(type.numpy)


def compare(what: str, given: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> str:
    """One line: whether an output matches numpy, exactly or within the tolerance of its type.

    Raises ``T2SError`` if it does not.
    """
    if np.array_equal(given, expected):
        return f"{what}: matches numpy exactly"
    if expected.dtype.kind in "iub":
        raise T2SError(f"{what}: does not match numpy")
    wide, reference = given.astype(np.float64), expected.astype(np.float64)
    scale = float(np.max(np.abs(reference))) or 1.0
    difference = float(np.max(np.abs(wide - reference))) / scale
    allowed = TOLERANCE[expected.dtype.itemsize * 8]
    if not difference <= allowed:
        raise T2SError(f"{what}: differs from numpy by {difference:.1e}, allowed {allowed:.0e}")
    return (
        f"{what}: matches numpy (largest difference {difference:.1e} of the largest element, "
        f"allowed {allowed:.0e})"
    )


def main() -> None:
    """The entry point of the command."""
    app()
