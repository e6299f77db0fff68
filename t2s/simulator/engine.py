"""What an engine is.

An engine runs a ``SimProgram`` and measures it.  Engines differ in speed only: every engine gives
the same values, cycles and stall counters.
"""

from __future__ import annotations

from typing import Protocol

from t2s.simulator.limits import Limits, Observer
from t2s.simulator.program.sim_program import SimProgram
from t2s.simulator.report.result import SimResult


class Engine(Protocol):
    """Runs programs.

    A deadlock, a cycle limit and an interrupt from the keyboard are not raised: they are in the
    result, with everything measured so far and without outputs.
    """

    @property
    def name(self) -> str:
        """The name that users choose the engine by."""

    def run(
        self, program: SimProgram, limits: Limits, observer: Observer | None = None
    ) -> SimResult:
        """Run from the first cycle."""
