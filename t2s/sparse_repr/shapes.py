"""Orders, shapes and sizes that users give: whole numbers, within what can be stored."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location

MOST_MODES = 32
LARGEST_EXTENT = (1 << 63) - 1


def checked_order(order: Any, least: int, location: SourceLocation | None = None) -> int:
    """A number of modes.  Raises ``UserError`` unless it is an integer from ``least`` to 32."""
    number = whole(order)
    if number is None or not least <= number <= MOST_MODES:
        raise UserError(
            "this is no number of modes",
            location=location or user_location(),
            expected=f"an integer from {least} to {MOST_MODES}",
            given=repr(order),
        )
    return number


def checked_shape(
    shape: Any, what: str = "the tensor", location: SourceLocation | None = None
) -> tuple[int, ...]:
    """The extents of a shape.  Raises ``UserError`` unless they are integers from 0 on."""
    given = _listed(shape)
    numbers = [whole(extent) for extent in given or ()]
    made = tuple(number for number in numbers if number is not None)
    inside = all(0 <= number <= LARGEST_EXTENT for number in made)
    if given is None or len(made) < len(numbers) or not inside:
        raise UserError(
            f"this is no shape of {what}",
            location=location or user_location(),
            expected=f"a tuple of at most {MOST_MODES} extents, integers from 0 to 2^63 - 1",
            given=reprlib.repr(shape),
        )
    return made


def _listed(shape: Any) -> list[Any] | None:
    """What a list, a tuple or a vector of at most 32 elements lists; nothing else is walked."""
    match shape:
        case str() | bytes() | bytearray() | memoryview():
            return None
        case np.ndarray() if shape.ndim != 1:
            return None
        case Sequence() | np.ndarray():
            return list(shape) if len(shape) <= MOST_MODES else None
    return None
