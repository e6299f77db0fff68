"""``t2s cgra``: place a design on an array of cells, run it, and write its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import t2s
from t2s.command.agreement import compare
from t2s.command.design import find_design, graph_inputs
from t2s.command.tensor import INTERRUPTED, failed
from t2s.core.errors import T2SError, UserError
from t2s.core.files import write_texts
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.func_design import is_sparse
from t2s.graph.graph import Graph


def cgra(
    file: Annotated[Path, typer.Argument(help="a Python file that defines Funcs or a Graph")],
    func: Annotated[
        str | None, typer.Option(help="the Func to place, if there are several")
    ] = None,
    fabric: Annotated[
        str | None, typer.Option(help="cgra8, cgra16 or cgra32; the smallest that is large enough")
    ] = None,
    place_seed: Annotated[int, typer.Option(help="chooses among placements")] = 0,
    seed: Annotated[int, typer.Option(help="seed of the random inputs")] = 0,
    out: Annotated[Path | None, typer.Option(help="folder for assembly, places, picture")] = None,
) -> None:
    """Print where a design is placed, its cycles and its stalls; check against numpy; write it."""
    console = Console(highlight=False)
    try:
        _place_and_run(console, file, func, fabric, place_seed, seed, out)
    except t2s.RunInterrupted as interrupt:
        console.out(str(interrupt))
        raise typer.Exit(code=INTERRUPTED) from None
    except (T2SError, OSError) as error:
        raise failed(str(error)) from None


def _place_and_run(
    console: Console,
    file: Path,
    func: str | None,
    fabric: str | None,
    place_seed: int,
    seed: int,
    out: Path | None,
) -> None:
    found = find_design(file, func)
    design = _dense(found.design, file)
    inputs = graph_inputs(t2s.lower(design), seed, found.given(seed))
    placed = t2s.place(design, fabric=fabric, seed=place_seed)
    console.out(str(placed))
    result = t2s.simulate(placed, inputs)
    console.out(str(result).rstrip())
    expected = t2s.interpret(design, inputs)
    by_name = expected if isinstance(expected, dict) else {found.name: expected}
    for name, array in by_name.items():
        console.out(compare(result.outputs[name], array, what=f"simulator, {name}"))
    if out is not None:
        for path in write_texts(out, placed.files):
            console.out(f"wrote {path}")


def _dense(design: object, file: Path) -> object:
    """A Func, several, or a graph; the command makes inputs for nothing else."""
    match design:
        case Kernel():
            pass
        case (only,) if not is_sparse(only):
            return only
        case Graph() | tuple() if isinstance(design, Graph) or not is_sparse(design[0]):
            return design
    raise UserError(
        f"{file} defines a design with sparse operands",
        expected="Funcs of dense arrays, or a Graph",
        hint="t2s.place(design, inputs) places it from Python",
    )
