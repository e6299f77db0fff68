"""``t2s report``: simulate a design file, and write the page about its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import t2s
from t2s.command.choices import (
    DEFAULT_DEVICE,
    check_choice,
    constants_of,
    device_names,
    memory_names,
)
from t2s.command.design import RANDOM_SIZE, design_with_inputs
from t2s.command.tensor import INTERRUPTED, failed
from t2s.core.errors import T2SError, UserError
from t2s.core.files import check_place
from t2s.driver.compiled_kernel import Kernel
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.presets import IDEAL, MEMORIES
from t2s.simulator.report.stuck import DeadlockError

Window = tuple[int, int]


def report(
    file: Annotated[Path, typer.Argument(help="a Python file that defines Funcs")],
    out: Annotated[Path | None, typer.Option(help="the page; FILE.html if not given")] = None,
    func: Annotated[str | None, typer.Option(help="the Func to run, if there are several")] = None,
    device: Annotated[
        str,
        typer.Option(help="ideal, arria10 or stratix10", autocompletion=device_names),
    ] = DEFAULT_DEVICE,
    memory: Annotated[
        str | None,
        typer.Option(
            help="ideal, ddr4-2133, ddr4-2133x2 or hbm2e, for the device's own",
            autocompletion=memory_names,
        ),
    ] = None,
    window: Annotated[
        list[str] | None,
        typer.Option(metavar="FIRST:LAST", help="cycles to see one by one"),
    ] = None,
    ladder: Annotated[
        bool, typer.Option(help="what each directive bought; runs all again")
    ] = False,
    depths: Annotated[bool, typer.Option(help="the smallest depths that cost nothing")] = False,
    max_cycles: Annotated[int | None, typer.Option(help="cut the run short", min=1)] = None,
    seed: Annotated[int, typer.Option(help="seed of the random inputs")] = 0,
    size: Annotated[
        int, typer.Option(help="rows and columns of random sparse operands", min=1)
    ] = RANDOM_SIZE,
    constant: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="value of a Param used in bounds"),
    ] = None,
) -> None:
    """Write a page that says where the cycles of a design went, for any browser."""
    console = Console(highlight=False)
    page = out if out is not None else Path(f"{file.stem}.html")
    try:
        check_place(page)
        check_choice("device", device, DEVICES)
        if memory is not None:
            check_choice("memory", memory, (IDEAL, *MEMORIES))
        options: dict[str, Any] = {"windows": [_window(text) for text in window or []]}
        design, inputs = design_with_inputs(file, func, seed, size, constants_of(constant or []))
        try:
            result = t2s.simulate(
                design, inputs, device=device, memory=memory, max_cycles=max_cycles
            )
        except DeadlockError as error:
            error.result.report(page)
            console.out(f"wrote {page}")
            raise
        if depths:
            options["depths"] = t2s.fit_depths(
                design, inputs, device=device, memory=memory, progress=False
            )
        if ladder:
            options["ladder"] = design
        if not isinstance(design, Kernel):
            options["inputs"] = inputs
        console.out(f"wrote {result.report(page, **options)}")
    except t2s.RunInterrupted as interrupt:
        console.out(str(interrupt))
        raise typer.Exit(code=INTERRUPTED) from None
    except (T2SError, OSError) as error:
        raise failed(str(error)) from None


def _window(text: str) -> Window:
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal()):
        raise UserError(f"--window {text} is no window", expected="FIRST:LAST, two cycles")
    return int(first), int(last)
