"""``Found``: the designs that a search timed, its bound for all others, and why they lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2s.core.display import NotebookCard, NotebookDisplay, Table
from t2s.core.errors import T2SWarning, UserError
from t2s.core.files import write_file
from t2s.core.location import user_location
from t2s.core.validate import as_int, checked_file
from t2s.design_space.space import Budget
from t2s.driver.many import compare
from t2s.driver.program import program
from t2s.driver.simulate import times
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.simulator.devices import Device
    from t2s.simulator.report.result import SimResult


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundDesign:
    """A design that a search timed, and which is built when it is asked for.

    Attributes
    ----------
    cycles: exact.
    dsp, ram: blocks.
    bytes: loaded and stored.
    decisions: the design in words.
    device, constants: what it was timed on, and with which sizes.
    """

    cycles: int
    dsp: int
    ram: int
    bytes: int
    decisions: str
    device: Device = field(repr=False)
    constants: Mapping[str, Any] = field(repr=False)
    _build: Callable[[], ScheduledFunc] = field(repr=False)

    @cached_property
    def design(self) -> ScheduledFunc:
        """The Func with its directives."""
        return self._build()

    @cached_property
    def run(self) -> SimResult:
        """A run that counts its cycles: ``t2s.compare`` takes it, and it has a report page."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", T2SWarning)
            result: SimResult = times(self.design, self.constants or None, device=self.device)
        return result


@dataclass(frozen=True, kw_only=True, eq=False)
class Found(NotebookDisplay):
    """The result of ``t2s.search``.

    Attributes
    ----------
    designs: those that were timed and fit the budget, the best one first.
    lower_bound: no design of the space within the budget takes fewer cycles.
    device: the one whose cycles they are, with its memory.
    tried: designs that were built and run, ``refused`` of which the compiler refused, by reason,
        and ``over_budget`` of which took more blocks than predicted.
    bounded: designs whose bounds were computed; the bounds of whole arrays of PEs cut the others.
    complete: whether nothing better is left in the space.
    """

    designs: tuple[FoundDesign, ...]
    lower_bound: int
    device: Device
    budget: Budget
    tried: int
    refused: Mapping[str, int]
    over_budget: int
    bounded: int
    complete: bool

    @property
    def best(self) -> FoundDesign:
        return self.designs[0]

    @property
    def design(self) -> ScheduledFunc:
        """The best design: a Func with directives, which all verbs take."""
        return self.best.design

    @property
    def cycles(self) -> int:
        """The exact cycles of the best design."""
        return self.best.cycles

    @property
    def gap(self) -> float:
        """How much faster than the best design another one could be at most: 0.01 for 1 %."""
        return self.cycles / self.lower_bound - 1

    @cached_property
    def front(self) -> tuple[FoundDesign, ...]:
        """The timed designs of which no other is as good in cycles, DSP, RAM and bytes at once."""

        def costs(found: FoundDesign) -> tuple[int, ...]:
            return found.cycles, found.dsp, found.ram, found.bytes

        front: list[FoundDesign] = []
        for found in self.designs:
            if not any(
                all(a <= b for a, b in zip(costs(other), costs(found), strict=True))
                for other in front
            ):
                front.append(found)
        return tuple(front)

    def program(self) -> str:
        """The best design as the Python lines that make it; see ``t2s.program``."""
        return program(self.design)

    def save(self, path: str | Path) -> Path:
        """Write the program to a file, which ``t2s run`` runs to the same cycles."""
        file = checked_file("the path of a program", path)
        write_file(file, self.program().encode())
        return file

    def why(self, place: int) -> str:
        """Why the design in this place (2 is the runner-up) is slower than the best one."""
        number = as_int(place)
        if number is None or not 2 <= number <= len(self.designs):
            raise UserError(
                "why() needs the place of another design",
                location=user_location(),
                expected=f"an integer from 2 to {len(self.designs)}",
                given=repr(place),
            )
        other = self.designs[number - 1]
        return compare(self.best, other, names=("the best design", f"design {number}")).sentence

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The result as (label, text)."""
        best = self.best
        proof = (
            "proved: no design of the space is faster"
            if self.complete
            else f"none is below {self.lower_bound:,}: at most {self.gap:.2%} is left"
        )
        return (
            ("cycles", f"{best.cycles:,} on {self.device.name}"),
            ("bound", proof),
            ("blocks", f"{best.dsp:,} DSP, {best.ram:,} RAM"),
            ("memory", f"{best.bytes:,} bytes"),
            ("design", best.decisions),
            ("searched", f"{self.tried:,} designs timed, {self.bounded:,} bounded"),
            *((f"refused {number}", reason) for reason, number in self.refused.items()),
        )

    @property
    def table(self) -> Table:
        """The best designs, ten at most."""
        rows = tuple(
            (str(at), f"{d.cycles:,}", f"{d.dsp:,}", f"{d.ram:,}", f"{d.bytes:,}", d.decisions)
            for at, d in zip(count(1), self.designs[:10])
        )
        return Table(
            title="the best designs",
            headers=("", "cycles", "DSP", "RAM", "bytes", "design"),
            rows=rows,
            left=frozenset({5}),
        )

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        lines = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        return "\n".join([*lines, "", self.table.text()])

    def _card(self) -> NotebookCard:
        title = f"The best design of {self.design.name}"
        return NotebookCard(title=title, summary=self.summary, parts=(self.table,))
