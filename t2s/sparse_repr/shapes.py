"""Orders, shapes and sizes that users give: whole numbers, within what can be stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t2s.core.errors import UserError
from t2s.core.integers import whole
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
    given: Sequence[Any] = shape if isinstance(shape, Sequence) or hasattr(shape, "__len__") else ()
    numbers = [whole(extent) for extent in given]
    made = tuple(number for number in numbers if number is not None)
    listed = given is shape and not isinstance(shape, str | bytes)
    inside = all(0 <= number <= LARGEST_EXTENT for number in made)
    if not listed or len(made) < len(numbers) or not inside or len(made) > MOST_MODES:
        raise UserError(
            f"this is no shape of {what}",
            location=location or user_location(),
            expected=f"a tuple of at most {MOST_MODES} extents, integers from 0 to 2^63 - 1",
            given=repr(shape),
        )
    return made
