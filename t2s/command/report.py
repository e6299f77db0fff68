"""``t2s report``: simulate a design file, and write a page about its run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import t2s
from t2s.command.design import RANDOM_SIZE, design_with_inputs
from t2s.command.options import (
    DEFAULT_DEVICE,
    Constants,
    DesignFile,
    DeviceName,
    FuncName,
    MaxCycles,
    MemoryName,
    RandomSize,
    Seed,
    check_choice,
    constants_of,
)
from t2s.command.output import exit_codes
from t2s.core.errors import UserError
from t2s.core.files import check_place
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.statement_program import Program
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import IDEAL, MEMORIES
from t2s.simulator.report.errors import DeadlockError

Window = tuple[int, int]


def report(
    file: DesignFile,
    out: Annotated[Path | None, typer.Option(help="the page; FILE.html if not given")] = None,
    func: FuncName = None,
    device: DeviceName = DEFAULT_DEVICE,
    memory: MemoryName = None,
    window: Annotated[
        list[str] | None,
        typer.Option(metavar="FIRST:LAST", help="cycles to see one by one"),
    ] = None,
    ladder: Annotated[
        bool, typer.Option(help="what each directive bought; runs all again")
    ] = False,
    depths: Annotated[bool, typer.Option(help="the smallest depths that cost nothing")] = False,
    max_cycles: MaxCycles = None,
    seed: Seed = 0,
    size: RandomSize = RANDOM_SIZE,
    constant: Constants = None,
) -> None:
    """Write an HTML page that shows where the cycles of a design went."""
    console = Console(highlight=False)
    page = out if out is not None else Path(f"{file.stem}.html")
    with exit_codes():
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
        if not isinstance(design, Kernel | Program):
            options["inputs"] = inputs
        console.out(f"wrote {result.report(page, **options)}")


def _window(text: str) -> Window:
    first, _, last = text.partition(":")
    if not (first.isdecimal() and last.isdecimal()):
        raise UserError(f"--window {text} is not a window", expected="FIRST:LAST, two cycles")
    return int(first), int(last)
