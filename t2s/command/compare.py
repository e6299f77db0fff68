"""``t2s compare``: simulate two design files, and break their difference down by cause."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import t2s
from t2s.command.design import RANDOM_SIZE, design_with_inputs
from t2s.command.options import (
    DEFAULT_DEVICE,
    Constants,
    RandomSize,
    Seed,
    check_choice,
    constants_of,
    device_names,
    memory_names,
)
from t2s.command.output import (
    COMPARE,
    comparison_record,
    console_for,
    exit_codes,
    print_record,
)
from t2s.core.errors import UserError
from t2s.core.files import check_place
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import IDEAL, MEMORIES


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="a Python file with a design")],
    after: Annotated[Path, typer.Argument(metavar="B", help="another one, or the same")],
    func: Annotated[
        list[str] | None, typer.Option(help="the Func to run; given twice, those of A and of B")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="ideal, arria10, stratix10, alveo_u55c or aup_zu3; twice for those of A and of B",
            autocompletion=device_names,
        ),
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            help="a memory for the device's own; given twice, those of A and of B",
            autocompletion=memory_names,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="also write a page for a browser")] = None,
    max_cycles: Annotated[int | None, typer.Option(help="cut the runs short", min=1)] = None,
    seed: Seed = 0,
    size: RandomSize = RANDOM_SIZE,
    constant: Constants = None,
    json: Annotated[
        bool, typer.Option("--json", help="print JSON alone, for scripts: schema t2s.compare/1")
    ] = False,
) -> None:
    """Print how two designs differ, and the causes of their difference in cycles."""
    console = console_for(json)
    with exit_codes(json):
        if out is not None:
            check_place(out)
        results: list[Any] = []
        for file, name, target, kind in zip(
            (before, after),
            _for_both("--func", func, None),
            _for_both("--device", device, DEFAULT_DEVICE),
            _for_both("--memory", memory, None),
            strict=True,
        ):
            check_choice("device", target, DEVICES)
            if kind is not None:
                check_choice("memory", kind, (IDEAL, *MEMORIES))
            loaded = design_with_inputs(file, name, seed, size, constants_of(constant or []))
            results.append(t2s.simulate(*loaded, device=target, memory=kind, max_cycles=max_cycles))
        comparison = t2s.compare(*results)
        console.out(str(comparison))
        if out is not None:
            console.out(f"\nwrote {comparison.report(out)}")
        if json:
            print_record(COMPARE, comparison_record(comparison))


def _for_both(option: str, texts: list[str] | None, otherwise: str | None) -> tuple[Any, Any]:
    """The values of an option for A and for B; a single value is for both."""
    values: list[str | None] = [*texts] if texts else [otherwise]
    if len(values) > 2:
        raise UserError(
            f"{option} is given {len(values)} times", expected="once, or once for each design"
        )
    return values[0], values[-1]
