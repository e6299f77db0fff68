"""Integers that a user passes: of Python, of numpy, and everything else with ``__index__``."""

from __future__ import annotations

import operator
from typing import Any


def whole(value: Any) -> int | None:
    """The Python integer of a value; ``None`` for what is no integer, truth values among it."""
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return None
    try:
        return operator.index(value)
    except TypeError:  # no integer, or an array of more than one element
        return None
