"""The arguments and options that several commands take, each with its help and completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from t2s.command.choices import device_names, engine_names, memory_names

DesignFile = Annotated[Path, typer.Argument(help="a Python file that defines Funcs")]
FuncName = Annotated[str | None, typer.Option(help="the Func to run, if there are several")]
DeviceName = Annotated[
    str, typer.Option(help="ideal, arria10 or stratix10", autocompletion=device_names)
]
MemoryName = Annotated[
    str | None,
    typer.Option(
        help="ideal, ddr4-2133, ddr4-2133x2 or hbm2e, for the device's own",
        autocompletion=memory_names,
    ),
]
EngineName = Annotated[
    str, typer.Option(help="native, array, table or python", autocompletion=engine_names)
]
MaxCycles = Annotated[int | None, typer.Option(help="cut the run short", min=1)]
Seed = Annotated[int, typer.Option(help="seed of the random inputs")]
RandomSize = Annotated[int, typer.Option(help="rows and columns of random sparse operands", min=1)]
Constants = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="value of a Param used in bounds"),
]

TensorFormats = Annotated[
    list[str] | None,
    typer.Option("--format", "-f", metavar="NAME:LEVELS[:MODES]", help="A:ds or A:ds:1,0"),
]
TensorFiles = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=FILE", help="a .mtx, .tns or .npy file"),
]
RandomTensors = Annotated[
    list[str] | None,
    typer.Option(
        "--random", metavar="NAME[=DENSITY]", help="random values, and how many are stored"
    ),
]
Extents = Annotated[
    list[str] | None,
    typer.Option("--size", "-d", metavar="VARIABLE=EXTENT", help="extent of a variable"),
]
