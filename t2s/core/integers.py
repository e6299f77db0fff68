"""Integers that a user passes: of Python, of numpy, and everything else with ``__index__``."""

from __future__ import annotations

import operator
from typing import SupportsIndex


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
