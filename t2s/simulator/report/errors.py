"""Errors of runs that do not end properly: deadlocks, leftover tokens, truncated runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2s.core.errors import UserError
from t2s.core.location import SourceLocation, user_location
from t2s.core.names import counted
from t2s.simulator.report.deadlock import SHOWN_WAITS, DeadlockReport

if TYPE_CHECKING:
    from t2s.simulator.report.result import SimResult


class DeadlockError(UserError):
    """A run could not end; ``result`` has the measurements so far, with the deadlock report."""

    def __init__(self, result: SimResult, report: DeadlockReport) -> None:
        self.result = result
        super().__init__(
            report.message,
            location=report.waits[0].location if report.waits else None,
            expected="every PE to make all its firings",
            given="a cycle of waiting PEs" if report.closed else "PEs that wait for ever",
            hint=report.hint,
            notes=_notes(report),
        )


class TokensLeftError(DeadlockError):
    """A run ended with tokens left in channels: a node sends more than its receiver takes."""

    def __init__(self, result: SimResult) -> None:
        self.result = result
        worst = result.tokens_left[0]
        total = sum(entry.tokens for entry in result.tokens_left)
        UserError.__init__(
            self,
            f"{_left(total)} at the end, {worst.tokens} of them in channel "
            f"{worst.channel!r} from {worst.sender!r} to {worst.receiver!r}",
            location=worst.location,
            expected="every token that is sent to be received",
            given=f"{counted(worst.sent, 'token')} sent in "
            f"{counted(worst.sender_firings, 'firing')} of {worst.sender!r}, {worst.received:,} "
            f"received in {counted(worst.receiver_firings, 'firing')} of {worst.receiver!r}",
            hint="compare the loops and conditions at the two ends of the channel",
            notes=[
                (entry.location, f"{_left(entry.tokens)} in {entry.channel!r} as well")
                for entry in result.tokens_left[1:4]
            ],
        )


def _left(tokens: int) -> str:
    return f"{counted(tokens, 'token')} {'is' if tokens == 1 else 'are'} left"


def _notes(report: DeadlockReport) -> list[tuple[SourceLocation | None, str]]:
    notes: list[tuple[SourceLocation | None, str]] = []
    for wait in report.waits[:SHOWN_WAITS]:
        notes.append((wait.location, str(wait)))
        if wait.channel_location not in (None, wait.location):
            notes.append((wait.channel_location, f"channel {wait.channel!r} is made here"))
    if len(report.waits) > SHOWN_WAITS:
        notes.append((None, f"... and {len(report.waits) - SHOWN_WAITS} more"))
    if report.closed:
        notes.append((None, f"and so back to {report.waits[0].pe}"))
    return notes


# A truncated run is an error for callers that need a complete one.
#
# ``simulate`` returns a partial result, marked as such.  A number or a tensor cannot carry such a
# mark, so functions that return those call ``require_complete``.


class CycleLimitError(UserError):
    """A run reached its cycle limit; ``result`` has the measurements so far."""

    def __init__(self, result: SimResult) -> None:
        self.result = result
        super().__init__(
            f"{result.graph!r} had not ended after {result.cycles:,} cycles, the limit",
            location=user_location(),
            expected="a run that ends within max_cycles",
            given=f"{result.firings:,} firings made when it was cut short"
            if result.firings
            else "a longer run, of which nothing is measured",
            hint="raise max_cycles; print(error.result) shows the measurements so far",
        )


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a run; ``result`` has the measurements so far."""

    def __init__(self, result: SimResult) -> None:
        self.result = result
        if not result.cycles:
            super().__init__(
                f"{result.graph!r} was interrupted before its first cycle was measured, while "
                "its values were computed"
            )
            return
        super().__init__(
            f"{result.graph!r} was interrupted after {result.cycles:,} cycles and "
            f"{result.firings:,} firings; the result of this exception has what was measured"
        )


def require_complete(result: SimResult) -> SimResult:
    """The result of a complete run; raises ``CycleLimitError`` or ``RunInterrupted`` otherwise."""
    if result.limit_reached:
        raise CycleLimitError(result)
    if result.interrupted:
        raise RunInterrupted(result)
    return result
