"""Inputs that options of a command give: files, random values, extents of variables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from t2s import sparse
from t2s.core.errors import UserError
from t2s.sparse_repr.notation.ir import Assignment, accesses

DENSITY = 0.1
"""Share of the elements of a random sparse tensor that are not zero."""


def given_texts(texts: list[str] | None) -> list[str]:
    """What a short option was given, be it written ``-f A:ds`` or, as TACO does, ``-f=A:ds``."""
    return [text.removeprefix("=") for text in texts or []]


def tensor_inputs(
    assignment: Assignment, files: list[str], random: list[str], sizes: list[str], seed: int
) -> dict[str, Any]:
    """The inputs of an assignment: from files, and random ones.  Raises ``UserError``."""
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
    """The extents that files and ``--size`` options give."""
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
    """The extent of a variable.  Raises ``UserError`` if nothing says it."""
    if variable not in extents:
        raise UserError(
            f"nothing says how far the variable {variable} of {tensor_name} goes",
            expected=f"--size {variable}=EXTENT, or a file with that variable",
        )
    return extents[variable]


def density_given(text: str, number: str) -> float:
    """The density in a ``--random`` option.  Raises ``UserError`` if it is none."""
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
