"""Runs of programs that are cut short, by Ctrl-C or by a limit: which statements are done."""

from __future__ import annotations

from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.driver.program_result import ProgramResult
from t2s.simulator.report.errors import CycleLimitError, RunInterrupted
from t2s.simulator.report.result import SimResult

MOST_SHOWN = 6
"""Statements whose cycles are in a message; ``done`` has all."""


class ProgramInterrupted(RunInterrupted):
    """Ctrl-C ended the run of a program.

    ``done`` has the results of the statements whose graphs ended, and ``result`` what was measured
    of the graph that ran, or ``None``.
    """

    def __init__(self, name: str, at: str, done: ProgramResult, error: BaseException) -> None:
        self.done = done
        self.result: SimResult | None = getattr(error, "result", None)  # type: ignore[assignment]
        where = f"in the graph of {at}"
        if self.result is not None and self.result.cycles:
            where += f", of which {self.result.cycles:,} cycles were measured"
        KeyboardInterrupt.__init__(
            self,
            f"{name} was interrupted {where}; {_ended(done)}; done of this exception has results",
        )


class ProgramLimitError(CycleLimitError):
    """A program took more cycles than its limit; ``done`` has the statements that ended."""

    def __init__(self, name: str, at: str, done: ProgramResult, limit: int) -> None:
        self.done = done
        UserError.__init__(
            self,
            f"{name} had not ended after {limit:,} cycles, the limit",
            location=user_location(),
            expected="a run that ends within max_cycles, the cycles of all graphs together",
            given=f"a run that was cut short in the graph of {at}; {_ended(done)}",
            hint="raise max_cycles; print(error.done) shows what ended before",
        )


def _ended(done: ProgramResult) -> str:
    """The statements that ended, with their cycles."""
    if not done.runs:
        return "no statement had ended"
    shown = [f"{run.name} in {run.cycles:,}" for run in done.runs[:MOST_SHOWN]]
    more = len(done.runs) - len(shown)
    rest = f" and {more} more" if more else ""
    return f"{', '.join(shown)}{rest} had ended, {done.cycles:,} cycles in all"
