"""Arguments and options that commands share: help, completion, and the inputs they describe."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from t2s import sparse
from t2s.core.errors import UserError
from t2s.simulator.devices import DEVICES
from t2s.simulator.memory.spec import IDEAL, MEMORIES
from t2s.sparse_repr.notation.ir import Assignment, accesses

# Options that several commands share.

DEFAULT_DEVICE = "arria10"
"""The device of design files without ``--device``."""

ENGINES = ("native", "array", "table", "python")


def device_names(incomplete: str) -> list[str]:
    """The devices whose names start with ``incomplete``, for shell completion."""
    return [name for name in DEVICES if name.startswith(incomplete)]


def memory_names(incomplete: str) -> list[str]:
    """The memories whose names start with ``incomplete``."""
    return [name for name in (IDEAL, *MEMORIES) if name.startswith(incomplete)]


def engine_names(incomplete: str) -> list[str]:
    """The engines whose names start with ``incomplete``."""
    return [name for name in ENGINES if name.startswith(incomplete)]


def constants_of(options: list[str]) -> dict[str, int]:
    """The values of ``--set NAME=VALUE`` options."""
    constants: dict[str, int] = {}
    for text in options:
        name, _, value = text.partition("=")
        if not (name.isidentifier() and value.lstrip("-").isdecimal()):
            raise UserError(f"--set {text} gives no value", expected="--set NAME=INTEGER")
        constants[name] = int(value)
    return constants


def check_choice(option: str, value: str, choices: Iterable[str]) -> None:
    """Raise ``UserError`` unless the value is one of the choices."""
    if value not in choices:
        raise UserError(f"unknown {option} {value}", expected=f"one of {', '.join(choices)}")


DesignFile = Annotated[Path, typer.Argument(help="a Python file that defines Funcs")]
FuncName = Annotated[str | None, typer.Option(help="the Func to run, if there are several")]
DeviceName = Annotated[
    str,
    typer.Option(
        help="ideal, arria10, stratix10, alveo_u55c or aup_zu3", autocompletion=device_names
    ),
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


# Inputs that options describe: files, random values, extents of variables.

DENSITY = 0.1
"""Share of the elements of a random sparse tensor that are not zero."""


def given_texts(texts: list[str] | None) -> list[str]:
    """The values of a short option, written ``-f A:ds`` or, as in TACO, ``-f=A:ds``."""
    return [text.removeprefix("=") for text in texts or []]


def tensor_inputs(
    assignment: Assignment, files: list[str], random: list[str], sizes: list[str], seed: int
) -> dict[str, Any]:
    """The inputs of an assignment, from files and at random.  Raises ``UserError``."""
    read = {access.tensor: access for access in accesses(assignment.value)}
    inputs: dict[str, Any] = {}
    for text in files:
        name, _, path = text.partition("=")
        _check_tensor("--input", name, tuple(read))
        if not path:
            raise UserError(f"--input {text} names no file", expected="NAME=FILE")
        _check_new(name, inputs)
        inputs[name] = sparse.read(path)
    densities: dict[str, float] = {}
    for text in random:
        name, _, number = text.partition("=")
        _check_tensor("--random", name, tuple(read))
        _check_new(name, (*inputs, *densities))
        densities[name] = density_given(text, number) if number else -1.0
    missing = [name for name in read if name not in inputs and name not in densities]
    if missing:
        raise UserError(
            f"the input {missing[0]} is missing",
            expected=f"--input {missing[0]}=FILE or --random {missing[0]}",
        )
    extents = extents_given(assignment, inputs, sizes)
    generator = np.random.default_rng(seed)
    for name, density in densities.items():
        shape = tuple(extent_given(extents, variable, name) for variable in read[name].variables)
        is_dense = all(level.full for level in assignment.tensor(name).format.levels)
        part = (1.0 if is_dense else DENSITY) if density < 0 else density
        values = generator.random(shape) * (generator.random(shape) < part)
        inputs[name] = np.asarray(values)
    return inputs


def extents_given(
    assignment: Assignment, inputs: dict[str, Any], sizes: list[str]
) -> dict[str, int]:
    """The extents that files and ``--size`` options determine."""
    extents: dict[str, int] = {}
    for access in accesses(assignment.value):
        if access.tensor in inputs:
            extents.update(zip(access.variables, inputs[access.tensor].shape, strict=False))
    names = {name for access in accesses(assignment.value) for name in access.variables}
    names |= set(assignment.result.variables)
    for text in sizes:
        name, _, number = text.partition("=")
        if name not in names or not number.isdecimal():
            raise UserError(
                f"--size {text} gives no extent",
                expected=f"VARIABLE=EXTENT, with a variable of {', '.join(sorted(names))}",
            )
        if extents.setdefault(name, int(number)) != int(number):
            raise UserError(
                f"--size {text} is not the extent of {name}", expected=f"{extents[name]}"
            )
    return extents


def extent_given(extents: dict[str, int], variable: str, tensor_name: str) -> int:
    """The extent of a variable.  Raises ``UserError`` if no file and no option determines it."""
    if variable not in extents:
        raise UserError(
            f"the extent of {variable} in {tensor_name} is unknown",
            expected=f"--size {variable}=EXTENT, or a file with that variable",
        )
    return extents[variable]


def density_given(text: str, number: str) -> float:
    """The density in a ``--random`` option.  Raises ``UserError`` unless it is in (0, 1]."""
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UserError(f"--random {text} gives no density", expected="a number from 0 to 1")
    return value


def _check_tensor(option: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise UserError(
            f"{option} names {name}, which the expression does not read",
            expected=f"one of {', '.join(names)}" if names else "no inputs",
        )


def _check_new(name: str, before: Collection[str]) -> None:
    if name in before:
        raise UserError(
            f"there are two inputs for {name}", expected="one --input or --random for each tensor"
        )
