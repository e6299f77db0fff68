"""``t2s chip``: a design in a file as a bitstream for a board, with open tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import t2s
from t2s.command.design import design_with_inputs
from t2s.command.options import Constants, DesignFile, FuncName, Seed, constants_of
from t2s.command.output import CHIP, console_for, exit_codes, print_record
from t2s.driver.compiled_kernel import Kernel
from t2s.driver.synthesize import Chip, Verification


def chip(
    file: DesignFile,
    func: FuncName = None,
    board: Annotated[
        str | None, typer.Option(help="ulx3s, colorlight-i5, tang-nano-20k or gatemate-evb")
    ] = None,
    part: Annotated[
        str | None, typer.Option(help="ecp5-25k, ecp5-45k or ecp5-85k, without a board")
    ] = None,
    memory: Annotated[str, typer.Option(help="bram, wishbone or axi-stream")] = "bram",
    clock: Annotated[float, typer.Option(metavar="MHZ", help="what routing aims for")] = 150.0,
    placement: Annotated[int, typer.Option(help="the seed of the placement")] = 1,
    capacity: Annotated[
        int, typer.Option(help="of a sparse kernel: the tokens that a channel holds")
    ] = 2,
    verify: Annotated[
        bool, typer.Option(help="also run the netlist, and compare it with the simulator")
    ] = False,
    out: Annotated[Path, typer.Option(help="the folder for all files")] = Path("chip"),
    seed: Seed = 0,
    constant: Constants = None,
    json: Annotated[
        bool, typer.Option("--json", help=f"print JSON alone, for scripts: schema {CHIP}")
    ] = False,
) -> None:
    """Synthesize, place and route a design with a self test, and pack a bitstream for a board."""
    console = console_for(json)
    with exit_codes(json):
        design, inputs = design_with_inputs(file, func, seed, 0, constants_of(constant or []))
        if isinstance(design, Kernel):
            design = design.design(capacity=capacity)
        made = t2s.synthesize(
            design,
            part,
            inputs,
            memory=memory,
            board=board,
            clock_mhz=clock,
            directory=out,
            seed=placement,
            progress=False if json else None,
        )
        console.out(str(made))
        found = made.verify(inputs) if verify else None
        if found is not None:
            console.out(str(found))
        if json:
            print_record(CHIP, _record(made, found, str(file)))
        if found is not None and not found.equal:
            raise typer.Exit(code=1)


def _record(chip: Chip, verified: Verification | None, file: str) -> dict[str, Any]:
    return {
        "design": chip.name,
        "file": file,
        "part": chip.part.name,
        "board": None if chip.board is None else chip.board.name,
        "luts": chip.luts,
        "flip_flops": chip.flip_flops,
        "dsps": chip.dsps,
        "rams": chip.rams,
        "cells": dict(chip.cells),
        "clock_mhz": chip.clock_mhz,
        "fmax_mhz": chip.fmax_mhz,
        "critical": None if chip.critical is None else str(chip.critical),
        "cycles": chip.cycles,
        "seconds": dict(chip.seconds),
        "bitstream": None if chip.bitstream is None else str(chip.bitstream),
        "verified": None if verified is None else verified.equal,
    }
