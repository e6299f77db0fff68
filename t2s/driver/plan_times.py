"""Times of the steps of a plan, by how they are known."""

from __future__ import annotations

from dataclasses import dataclass

from t2s.plan.ir import Step
from t2s.plan.printer import print_step


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTimes:
    """Seconds, by how they are known.

    Attributes
    ----------
    measured: on this machine.
    simulated: cycles of hardware at its clock.
    transfers: predicted from the latencies and bandwidths of links.
    """

    measured: float = 0.0
    simulated: float = 0.0
    transfers: float = 0.0

    def __add__(self, other: PlanTimes) -> PlanTimes:
        return PlanTimes(
            measured=self.measured + other.measured,
            simulated=self.simulated + other.simulated,
            transfers=self.transfers + other.transfers,
        )

    @property
    def total(self) -> float:
        """All of it; print the times to see of what it is the sum."""
        return self.measured + self.simulated + self.transfers

    def __str__(self) -> str:
        parts = [
            (self.measured, "measured"),
            (self.simulated, "simulated"),
            (self.transfers, "of transfers, predicted"),
        ]
        shown = [f"{shown_seconds(seconds)} {what}" for seconds, what in parts if seconds]
        return " + ".join(shown) or f"{shown_seconds(0.0)} measured"


def shown_seconds(seconds: float) -> str:
    """In milliseconds, down to a nanosecond."""
    return f"{seconds * 1e3:.{3 if seconds >= 1e-4 or not seconds else 6}f} ms"


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What became of a step.

    Attributes
    ----------
    times: how long it took, and how that is known.
    calls: of the function; ``cycles`` those of all of them, of hardware.
    copied: bytes that operands and results needed beside it; ``moved`` those that went over a link.
    note: on the guard that was taken, if there was one.
    """

    step: Step
    times: PlanTimes
    calls: int = 0
    cycles: int = 0
    copied: int = 0
    moved: int = 0
    note: str = ""

    @property
    def seconds(self) -> float:
        """All of its times."""
        return self.times.total

    def __str__(self) -> str:
        text = f"{print_step(self.step)}: {self.times}"
        if self.cycles:
            text += f", {self.cycles} cycles"
        if self.calls:
            text += f", {self.calls} call{'s' if self.calls > 1 else ''}"
        if self.copied:
            text += f", {self.copied} bytes copied"
        if self.moved:
            text += f", {self.moved} bytes moved"
        return f"{text}, {self.note}" if self.note else text
