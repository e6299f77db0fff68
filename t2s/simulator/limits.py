"""Where a run is cut short, and who is told how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from t2s.core.checks import whole
from t2s.core.errors import UserError
from t2s.core.location import user_location


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a run is cut short: after ``max_cycles`` cycles, or nowhere.

    With ``give_up`` an engine may stop earlier, as soon as it is certain that the run takes more
    than ``max_cycles``; what it has measured until then is not promised.
    """

    max_cycles: int | None = None
    give_up: bool = False


def checked_limits(max_cycles: int | None) -> Limits:
    """The limits of a run; ``UserError`` unless it is a number of cycles or ``None``."""
    if max_cycles is None:
        return Limits()
    count = whole(max_cycles)
    if count is None or count < 1:
        raise UserError(
            "max_cycles is not a number of cycles",
            location=user_location(),
            expected="an integer of at least 1, or None",
            given=repr(max_cycles),
        )
    return Limits(max_cycles=count)


class Observer(Protocol):
    """Is told of the progress of a run, a few times per second."""

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """``cycle`` cycles are simulated; ``done`` of ``total`` units of work are finished.

        A unit is the time or the value of a firing, or both where an engine finds them together.
        """
