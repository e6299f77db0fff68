"""Limits and observers of a run, and a progress bar for the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.progress import ProgressBar
from t2s.core.validate import as_int


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The cycle limit of a run; ``None`` for no limit.

    With ``give_up`` an engine may stop as soon as it is certain that the run takes more than
    ``max_cycles``, or when it has stepped through ``most_steps`` cycles of single PEs.  Then
    ``at_least`` of the result says what it takes, and its measurements are unspecified.
    """

    max_cycles: int | None = None
    give_up: bool = False
    most_steps: int | None = None


def checked_limits(max_cycles: int | None) -> Limits:
    """The limits of a run; ``UserError`` unless it is a number of cycles or ``None``."""
    if max_cycles is None:
        return Limits()
    count = as_int(max_cycles)
    if count is None or count < 1:
        raise UserError(
            "max_cycles is not a number of cycles",
            location=user_location(),
            expected="an integer of at least 1, or None",
            given=repr(max_cycles),
        )
    return Limits(max_cycles=count)


class Observer(Protocol):
    """Receives the progress of a run, a few times per second."""

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """``cycle`` cycles are simulated; ``done`` of ``total`` units of work are finished.

        A unit of work is the time or the value of a firing, or both if an engine computes them
        together.
        """


# A progress bar on the terminal, for runs that take a while.


class Progress(ProgressBar):
    """An observer that shows a bar; see ``ProgressBar``."""

    def advanced(self, *, cycle: int, done: int, total: int) -> None:
        """See ``engine.Observer``."""
        self._show(done, total, cycle=f"cycle {cycle:,}")

    def _columns(self) -> list[Any]:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

        return [
            TextColumn("simulating"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[cycle]}"),
        ]
