"""Integers that a user passes: of Python, of numpy, and everything else with ``__index__``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from t2s.core.errors import UserError
from t2s.core.location import user_location


def whole(value: object) -> int | None:
    """The Python integer of a value; ``None`` for what is no integer, truth values among it."""
    if isinstance(value, bool) or type(value).__name__ == "bool" or not _has_index(value):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:  # arrays of more than one element have the method, too
        return None


def _has_index(value: object) -> bool:
    return isinstance(value, SupportsIndex)


def check_integer(value: object, what: str, least: int | None = None) -> int:
    """The Python integer of an argument; ``what`` begins the error for anything else."""
    number = whole(value)
    if number is None or (least is not None and number < least):
        raise UserError(
            f"{what} is no integer" if number is None else f"{what} is too small",
            location=user_location(),
            expected="an integer" if least is None else f"an integer of at least {least}",
            given=repr(value),
        )
    return number


def _is_list(value: Sequence[object] | np.ndarray[Any, Any]) -> bool:
    return value.ndim == 1 if isinstance(value, np.ndarray) else isinstance(value, tuple | list)


def check_shape(shape: object, what: str) -> tuple[int, ...]:
    """The extents of a shape as Python integers from 0."""
    extents = tuple(shape) if isinstance(shape, Sequence | np.ndarray) and _is_list(shape) else None
    if extents is None:
        raise UserError(
            f"the shape of {what} is no sequence of integers",
            location=user_location(),
            expected="for example (3, 4)",
            given=repr(shape),
        )
    return tuple(check_integer(n, f"an extent of the shape of {what}", 0) for n in extents)
