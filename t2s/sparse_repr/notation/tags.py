"""Properties that a tensor may be declared to have, for external functions that ask for them."""

from __future__ import annotations

from collections.abc import Sequence

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation

SYMMETRIC = "symmetric"


def checked_properties(
    given: str | Sequence[str], location: SourceLocation | None
) -> tuple[str, ...]:
    """Properties of ``"symmetric"`` or of a list of them.  Raises ``UserError`` for others."""
    listed = given.split() if isinstance(given, str) else given
    found = tuple(listed) if isinstance(listed, Sequence) else (listed,)
    for name in found:
        if name != SYMMETRIC:
            raise UserError(
                f"there is no property {name!r}",
                location=location,
                expected=SYMMETRIC,
            )
    return found
