"""``t2s cgra``: place a design on an array of cells, run it, and write its files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import t2s
from t2s.command.design import (
    LoadedDesign,
    find_design,
    graph_inputs,
    kernel_inputs,
    product_inputs,
)
from t2s.command.options import RandomSize, Seed
from t2s.command.output import compare, exit_codes
from t2s.core.files import write_texts
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.func_design import is_sparse


def cgra(
    file: Annotated[Path, typer.Argument(help="a Python file that defines a design")],
    func: Annotated[
        str | None, typer.Option(help="the Func to place, if there are several")
    ] = None,
    fabric: Annotated[
        str | None, typer.Option(help="cgra8, cgra16 or cgra32; the smallest that is large enough")
    ] = None,
    place_seed: Annotated[int, typer.Option(help="chooses among placements")] = 0,
    interval: Annotated[
        int, typer.Option(help="operations of a PE that may share a cell, and take turns")
    ] = 1,
    seed: Seed = 0,
    size: RandomSize = 16,
    out: Annotated[Path | None, typer.Option(help="folder for assembly, places, picture")] = None,
) -> None:
    """Print the placement of a design, its cycles and stalls; check it against numpy; write it."""
    console = Console(highlight=False)
    with exit_codes():
        options = {"fabric": fabric, "seed": place_seed, "interval": interval}
        _place_and_run(console, find_design(file, func), options, seed, size, out)


def _place_and_run(
    console: Console,
    loaded: LoadedDesign,
    options: dict[str, Any],
    seed: int,
    size: int,
    out: Path | None,
) -> None:
    design: Any = loaded.design
    arrays = loaded.given(seed)
    match design:
        case Kernel() as kernel:
            inputs = kernel_inputs(kernel, seed, size, arrays)
        case (product,) if is_sparse(product):
            design = product
            inputs = product_inputs(product, seed, size, arrays)[1]
        case _:
            design = design[0] if isinstance(design, tuple) and len(design) == 1 else design
            inputs = graph_inputs(t2s.lower(design), seed, arrays)
    sparse = isinstance(design, Kernel) or (isinstance(design, t2s.Func) and is_sparse(design))
    placed = t2s.cgra.place(design, inputs if sparse else None, **options)
    console.out(str(placed))
    result: Any = t2s.simulate(placed, inputs)
    console.out(str(result).rstrip())
    expected = t2s.interpret(design, inputs)
    by_name = expected if isinstance(expected, dict) else {loaded.name: expected}
    outputs = {loaded.name: result.output} if isinstance(design, Kernel) else result.outputs
    for name, array in by_name.items():
        console.out(compare(outputs[name], array, what=f"simulator, {name}"))
    if out is not None:
        for path in write_texts(out, placed.files):
            console.out(f"wrote {path}")
