"""``t2s search``: the best design of a definition in a file, as a program, a page or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import t2s
from t2s.command.design import find_design
from t2s.command.options import (
    Constants,
    DesignFile,
    DeviceName,
    FuncName,
    MemoryName,
    check_choice,
    constants_of,
)
from t2s.command.output import INTERRUPTED, SEARCH, console_for, exit_codes, print_record
from t2s.core.errors import UserError
from t2s.design_space.workers import Ending
from t2s.driver.search_result import Found, FoundDesign
from t2s.simulator.devices import DEVICES


def search(
    file: DesignFile,
    func: FuncName = None,
    device: DeviceName = "arria10",
    memory: MemoryName = None,
    objective: Annotated[str, typer.Option(help="time, front or energy")] = "time",
    energy: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=ENERGY", help='for example "DRAM byte=20", multiply=3.7'),
    ] = None,
    dsp: Annotated[int | None, typer.Option(help="the most DSP blocks")] = None,
    ram: Annotated[int | None, typer.Option(help="the most RAM blocks")] = None,
    seconds: Annotated[float, typer.Option(help="when to stop with the best so far")] = 60.0,
    executor: Annotated[
        str | None,
        typer.Option(help="a number of processes, processes, dask://HOST:PORT or ray"),
    ] = None,
    journal: Annotated[Path | None, typer.Option(help="keeps what was timed, to go on")] = None,
    out: Annotated[Path | None, typer.Option(help="the file for the program")] = None,
    report: Annotated[Path | None, typer.Option(help="the file for the page")] = None,
    constant: Constants = None,
    json: Annotated[
        bool, typer.Option("--json", help=f"print JSON alone, for scripts: schema {SEARCH}")
    ] = False,
) -> None:
    """Find the best design of a Func without directives, and print it as a program."""
    console = console_for(json)
    with exit_codes(json):
        check_choice("device", device, DEVICES)
        loaded = find_design(file, func)
        found = t2s.search(
            loaded.design,  # type: ignore[arg-type]  # refused, as in Python
            constants_of(constant or []),
            device=device,
            memory=memory,
            objective=objective,
            energy=_prices(energy),
            dsp=dsp,
            ram=ram,
            seconds=seconds,
            executor=int(executor) if executor and executor.isdecimal() else executor,
            journal=journal,
            progress=False if json else None,
        )
        console.out(str(found))
        if found.runner_up is not None:
            console.out(f"\n{found.why(found.runner_up)}")
        if out is None:
            console.out(f"\n{found.program().rstrip()}")
        else:
            console.out(f"wrote {found.save(out)}")
        if report is not None:
            console.out(f"wrote {found.report(report)}")
        if json:
            print_record(SEARCH, _record(found, str(file)))
        if found.ending is Ending.INTERRUPTED:
            raise typer.Exit(code=INTERRUPTED)


def _prices(texts: list[str] | None) -> dict[str, float] | None:
    if texts is None:
        return None
    prices: dict[str, float] = {}
    for text in texts:
        kind, _, number = text.rpartition("=")
        try:
            prices[kind] = float(number)
        except ValueError:
            raise UserError(
                "--energy needs a kind of access and a number",
                expected='--energy "DRAM byte=20" or --energy multiply=3.7',
                given=repr(text),
            ) from None
    return prices


def _record(found: Found, file: str) -> dict[str, Any]:
    ranked = list(found.designs)
    return {
        "design": found.name,
        "file": file,
        "device": found.device.name,
        "memory": None if found.device.memory is None else found.device.memory.name,
        "objective": found.objective.value,
        "budget": {"dsp": found.budget.dsp, "ram": found.budget.ram},
        "cycles": found.cycles,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "complete": found.complete,
        "smallest": found.smallest,
        "ended": found.ending.value,
        "space": found.space,
        "tried": found.tried,
        "bounded": found.bounded,
        "over_budget": found.over_budget,
        "cut": found.cut,
        "refused": dict(found.refused),
        "program": found.program(),
        "designs": [_design(each) for each in ranked],
        "front": [ranked.index(each) for each in found.front],
    }


def _design(found: FoundDesign) -> dict[str, Any]:
    return {
        "cycles": found.cycles,
        "dsp_blocks": found.dsp,
        "ram_blocks": found.ram,
        "bytes": found.bytes,
        "energy": found.energy,
        "decisions": found.decisions,
    }
