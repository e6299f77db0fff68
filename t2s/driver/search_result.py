"""``Found``: the designs that a search timed, its bound for all others, and why they lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2s.core.display import NotebookCard, NotebookDisplay, Preformatted, Table
from t2s.core.errors import T2SWarning, UserError
from t2s.core.files import write_file
from t2s.core.location import user_location
from t2s.core.names import counted
from t2s.core.svg import ChartPoint, SvgPicture, point_chart
from t2s.core.validate import as_int, checked_file
from t2s.design_space.branch_and_bound import Objective
from t2s.design_space.columns import Budget
from t2s.design_space.workers import Ending
from t2s.driver.many import compare
from t2s.driver.page_writer import write_page
from t2s.driver.program import program
from t2s.driver.simulate import times
from t2s.spatial.schedule import ScheduledFunc

if TYPE_CHECKING:
    from t2s.report.comparison import Comparison
    from t2s.simulator.devices import Device
    from t2s.simulator.report.result import SimResult

AnyDesign = ScheduledFunc | tuple[ScheduledFunc, ...]
"""A Func, or several outputs."""

SHOWN_DESIGNS = 10
MOST_OF_FRONT = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundDesign:
    """A design that a search timed, and which is built when it is asked for.

    ``t2s.compare`` takes it as the run that counts its cycles.

    Attributes
    ----------
    cycles: exact.
    dsp, ram: blocks.
    bytes: loaded and stored.
    energy: by the prices of the search; ``None`` without any.
    decisions: the design in words.
    device, constants: what it was timed on, and with which sizes.
    """

    cycles: int
    dsp: int
    ram: int
    bytes: int
    energy: float | None
    decisions: str
    device: Device = field(repr=False)
    constants: Mapping[str, Any] = field(repr=False)
    _build: Callable[[], AnyDesign] = field(repr=False)

    @cached_property
    def design(self) -> AnyDesign:
        """The Func with its directives, or the outputs with theirs."""
        return self._build()

    @cached_property
    def run(self) -> SimResult:
        """A run that counts its cycles, with a report page: where they went, without values."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", T2SWarning)
            result: SimResult = times(self.design, self.constants or None, device=self.device)
        return result

    def program(self) -> str:
        """The Python lines that make it; see ``t2s.program``."""
        return program(self.design)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found(NotebookDisplay):
    """The result of ``t2s.search``.

    Attributes
    ----------
    name: of the Func, or of the outputs.
    objective: what was looked for.
    designs: those that were timed and fit the budget, the best one first.
    lower_bound: no design of the space within the budget takes fewer cycles, or less energy if that
        is the objective.
    device: the one whose cycles they are, with its memory.
    space: what is in the space of designs, and what is left out.
    tried: designs that were built and run, ``refused`` of which the compiler refused, by reason,
        ``over_budget`` of which took more blocks than predicted, and the runs of ``cut`` of which
        were cut short: they take more cycles than a better design, or the time was over.
    bounded: designs, and families of designs, whose bounds were computed; those of families cut the
        others.
    complete: whether nothing better is left in the space; of a front, whether all of it is there.
    smallest: if time is the objective, whether it is proved that no design of the space is as fast
        with fewer RAM blocks, or as many and fewer DSP blocks.
    ending: why the search ended.
    """

    name: str
    objective: Objective
    designs: tuple[FoundDesign, ...]
    lower_bound: float
    device: Device
    budget: Budget
    space: str
    tried: int
    refused: Mapping[str, int]
    over_budget: int
    cut: int
    bounded: int
    complete: bool
    smallest: bool
    ending: Ending

    @property
    def best(self) -> FoundDesign:
        return self.designs[0]

    @property
    def design(self) -> AnyDesign:
        """The best design: a Func, or outputs, with directives, which all verbs take."""
        return self.best.design

    @property
    def cycles(self) -> int:
        """The exact cycles of the best design."""
        return self.best.cycles

    @property
    def gap(self) -> float:
        """How much better than the best design another one could be at most: 0.01 for 1 %."""
        value = self._value(self.best)
        return value / self.lower_bound - 1 if self.lower_bound else 0.0

    def _value(self, found: FoundDesign) -> float:
        """What the objective minimizes."""
        if self.objective is Objective.ENERGY and found.energy is not None:
            return found.energy
        return found.cycles

    @cached_property
    def front(self) -> tuple[FoundDesign, ...]:
        """The timed designs of which no other is as good in cycles, DSP, RAM and bytes at once.

        The fastest is the first.
        """

        def costs(found: FoundDesign) -> tuple[int, ...]:
            return found.cycles, found.ram, found.dsp, found.bytes

        front: list[FoundDesign] = []
        for found in sorted(self.designs, key=costs):
            if not any(
                all(a <= b for a, b in zip(costs(other), costs(found), strict=True))
                for other in front
            ):
                front.append(found)
        return tuple(front)

    def program(self) -> str:
        """The best design as the Python lines that make it; see ``t2s.program``."""
        return self.best.program()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the program."""
        return tuple(self.program().splitlines())

    def save(self, path: str | Path) -> Path:
        """Write the program to a file, which ``t2s run`` runs to the same cycles."""
        file = checked_file("the path of a program", path)
        write_file(file, self.program().encode())
        return file

    def why(self, place: int) -> str:
        """Why the design in this place (2 is the runner-up) lost: from a run of both."""
        number = as_int(place)
        if number is None or not 2 <= number <= len(self.designs):
            places = f"an integer from 2 to {len(self.designs)}"
            raise UserError(
                "why() needs the place of another design",
                location=user_location(),
                expected=places if len(self.designs) > 1 else "a search that timed several designs",
                given=repr(place),
            )
        best, other = self.best, self.designs[number - 1]
        comparison = compare(best, other, names=("the best design", f"design {number}"))
        lines = [comparison.sentence.partition(" The largest change")[0]]
        ours, theirs = best.decisions.split("; "), other.decisions.split("; ")
        differ = [
            f"{b} in place of {a}"
            for part, by in zip(ours, theirs, strict=False)
            for a, b in zip(part.split(", "), by.split(", "), strict=False)
            if a != b
        ]
        if differ:
            lines.append(f"It has {', '.join(differ)}.")
        lines.append(_reason(comparison, best, other))
        return "\n".join(lines)

    @property
    def runner_up(self) -> int | None:
        """The place of the first design that is not as good as the best one, if there is any."""
        places = zip(count(1), self.designs)
        value = self._value(self.best)
        return next((place for place, each in places if self._value(each) > value), None)

    def report(self, path: str | Path) -> Path:
        """Write a page for a browser: the result, the front, the runners-up, the best run.

        Raises ``UserError`` for a file that cannot be written.
        """
        from t2s.report.page.markup import rows_view, table_view, tag

        numbers = rows_view("the result", ("", ""), self.summary, frozenset({0, 1}))
        sections = [
            ("search", f"The best design of {self.name}", numbers),
            ("front", "Cycles against blocks", self._pictures + table_view(self.front_table)),
            ("runners-up", "The best designs", table_view(self.table)),
        ]
        if (place := self.runner_up) is not None:
            why = "".join(tag("p", text=line) for line in self.why(place).splitlines())
            sections.append(("why", f"Why design {place} lost", why))
        lines = tag("pre", text=self.program())
        sections.append(("program", "The best design as a program", lines))
        return write_page(self.name, (self.best.run,), path, sections=sections)

    @property
    def _pictures(self) -> str:
        return "".join(map(str, self._charts()))

    def _charts(self) -> list[SvgPicture]:
        """Pictures of the blocks in which designs differ."""
        kinds = ("dsp", "ram")
        return [
            self.picture(kind)
            for kind in kinds
            if len({getattr(found, kind) for found in self.designs}) > 1
        ]

    def picture(self, cost: str = "dsp") -> SvgPicture:
        """The timed designs: cycles against ``"dsp"`` or ``"ram"`` blocks, or ``"bytes"``."""
        if cost not in (names := {"dsp": "DSP blocks", "ram": "RAM blocks", "bytes": "bytes"}):
            raise UserError(
                "cost= must be one of the costs that a picture shows",
                location=user_location(),
                expected=f"one of {', '.join(map(repr, names))}",
                given=repr(cost),
            )
        sizes: dict[tuple[int, int], int] = {}  # the first design of these costs
        for place, found in enumerate(self.designs, 1):
            sizes.setdefault((getattr(found, cost), found.cycles), place)

        def is_best(size: int, cycles: int) -> bool:
            return not any(a <= size and b <= cycles and (a, b) != (size, cycles) for a, b in sizes)

        points = [
            ChartPoint(x=size, y=cycles, name=str(place), best=is_best(size, cycles))
            for (size, cycles), place in sizes.items()
        ]
        title = f"cycles against {names[cost]} of the designs that were timed"
        return point_chart(title, points, across=names[cost], up="cycles")

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The result as (label, text)."""
        best = self.best
        energy = () if best.energy is None else (("energy", _number(best.energy)),)
        ended = {
            Ending.INTERRUPTED: "Ctrl-C ended the search",
            Ending.GONE: "the executor was gone",
            Ending.DEADLINE: "the time was over",
        }.get(self.ending)
        cut = f", {self.cut:,} of them cut short" if self.cut else ""
        searched = f"{self.tried:,} designs timed{cut}, {self.bounded:,} bounded"
        return (
            ("cycles", f"{best.cycles:,} on {self.device.name}"),
            *energy,
            ("bound", self._proof),
            ("blocks", f"{best.dsp:,} DSP, {best.ram:,} RAM"),
            ("memory", f"{best.bytes:,} bytes"),
            ("design", best.decisions),
            ("searched", f"{searched}; {ended}" if ended and not self.complete else searched),
            *((f"refused {number}", reason) for reason, number in self.refused.items()),
        )

    @property
    def _proof(self) -> str:
        left = f"none is below {self.lower_bound:,.10g}: at most {self.gap:.2%} is left"
        match self.objective:
            case Objective.TIME:
                proved = "proved: no design of the space is faster"
                if self.complete and self.smallest:
                    return f"{proved}, and none as fast takes fewer RAM blocks"
                return f"{proved}; one as fast may take fewer blocks" if self.complete else left
            case Objective.ENERGY:
                proved = "proved: no design of the space takes less energy"
                return proved if self.complete else left
            case Objective.FRONT:
                front = counted(len(self.front), "design")
                if self.complete:
                    return f"proved: the front of the space, {front}"
                return f"{front} on the front, which others may join; {left} of the cycles"

    @property
    def table(self) -> Table:
        """The best designs, ten at most."""
        return _table("the best designs", self.designs[:SHOWN_DESIGNS], count(1))

    @property
    def front_table(self) -> Table:
        """The front, the fastest first, without rows in between if there are many.

        ``found.front[k - 1]`` is the design of row ``k``.
        """
        front = self.front
        places: Sequence[int] = range(len(front))
        if len(front) > MOST_OF_FRONT:
            chosen = np.linspace(0, len(front) - 1, MOST_OF_FRONT).round().astype(int)
            places = chosen.tolist()
        title = f"the front, {counted(len(front), 'design')}"
        return _table(title, [front[at] for at in places], [at + 1 for at in places])

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self.summary)
        lines = [f"{label.ljust(width)}  {text}" for label, text in self.summary]
        shown = self.front_table if self.objective is Objective.FRONT else self.table
        return "\n".join([*lines, "", shown.text()])

    def __repr__(self) -> str:
        return f"<Found {self.name}: {self.cycles:,} cycles, {self._proof}>"

    def _card(self) -> NotebookCard:
        text = Preformatted(title="The best design as a program", text=self.program())
        return NotebookCard(
            title=f"The best design of {self.name}",
            summary=self.summary,
            parts=(*self._charts(), self.table, text),
        )


def _table(title: str, designs: Sequence[FoundDesign], places: Iterable[int]) -> Table:
    priced = any(found.energy is not None for found in designs)
    rows = tuple(
        (
            str(place),
            f"{found.cycles:,}",
            f"{found.dsp:,}",
            f"{found.ram:,}",
            f"{found.bytes:,}",
            *((_number(found.energy or 0.0),) if priced else ()),
            found.decisions,
        )
        for place, found in zip(places, designs, strict=False)
    )
    headers = ("", "cycles", "DSP", "RAM", "bytes", *(("energy",) if priced else ()), "design")
    return Table(title=title, headers=headers, rows=rows, left=frozenset({len(headers) - 1}))


def _number(energy: float) -> str:
    return f"{energy:,.0f}" if energy >= 1000 else f"{energy:.4g}"


def _reason(comparison: Comparison, best: FoundDesign, other: FoundDesign) -> str:
    """The largest change of what PEs did, or the costs that decide between equal cycles."""
    causes = [cause for cause in comparison.causes if cause.change]
    if best.cycles != other.cycles and causes:
        most = causes[0]
        text = f"The largest change is {most.use.text}: {most.after:,} cycles of a PE"
        return f"{text} in place of {most.before:,}."
    costs = (("RAM blocks", "ram"), ("DSP blocks", "dsp"), ("bytes", "bytes"), ("energy", "energy"))
    for name, cost in costs:
        a, b = getattr(best, cost), getattr(other, cost)
        if a != b:
            return f"It takes {b:,} {name} in place of {a:,}."
    return "It is as good in everything that is counted, and was found later."
