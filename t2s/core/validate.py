"""Validate arguments: one form of error for wrong types, and integers of any library."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location

T = TypeVar("T")


def checked_kind(what: str, value: object, kind: type[T], expected: str) -> T:
    """The value, if it is of that kind.  Raises ``UserError`` with the user's line if not."""
    if isinstance(value, kind):
        return value
    raise UserError(
        f"{what} has the wrong type",
        location=user_location(),
        expected=expected,
        given=repr(value),
    )


def checked_list(what: str, values: Any, kind: type[T], expected: str) -> Sequence[T]:
    """A list or tuple whose items are of one kind.  Raises ``UserError`` with the user's line."""
    items = checked_kind(what, values, Sequence, expected)  # type: ignore[type-abstract]
    for number, item in enumerate(items):
        checked_kind(f"item {number} of {what}", item, kind, expected)
    return items


def checked_folder(what: str, value: object) -> Path:
    """The path of a folder.  Raises ``UserError`` with the user's line for anything else."""
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        if isinstance(text, str) and text and "\0" not in text:
            return Path(text)
    raise UserError(
        f"{what} must be a path",
        location=user_location(),
        expected="a str or a Path that names a folder",
        given=repr(value),
    )


def checked_file(what: str, value: object) -> Path:
    """The path of a file.  Raises ``UserError`` with the user's line for anything else."""
    if isinstance(value, str | os.PathLike) and isinstance(text := os.fspath(value), str):
        return Path(text)
    raise UserError(
        f"{what} must be a path",
        location=user_location(),
        expected="a str or a Path that names a file",
        given=repr(value)[:200],
    )


def checked_seconds(what: str, value: object) -> float:
    """A time in seconds, more than 0.  Raises ``UserError`` with the user's line if it is none."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if number and not isinstance(value, bool) and value > 0:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    raise UserError(
        f"{what} must be a time in seconds",
        location=user_location(),
        expected="a number of seconds, more than 0",
        given=repr(value),
    )


def as_int(value: Any) -> int | None:
    """The Python integer of a value; ``None`` for what is not an integer, truth values among it."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return None
    try:
        return operator.index(value)
    except TypeError:  # no integer, or an array of more than one element
        return None
