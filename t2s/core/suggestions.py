"""What a user may have meant by a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """``did you mean unroll?``, for the known name that is written most alike; ``None`` for none.

    Upper and lower case count as alike.
    """
    spelled = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), spelled, n=1, cutoff=0.7)
    return f"did you mean {spelled[found[0]]}?" if found else None
