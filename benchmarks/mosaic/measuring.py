"""What the figures of [Mosaic] have in common: plans side by side, and who wins where.

A figure has points (a size, a density, a matrix), and at each point plans of one statement: our
compiled loops, and calls of every function of every library that is there whose statement is the
part, as it stands or with the variables fixed that the paper fixes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from t2s import Float, external, sparse
from t2s.errors import UserError
from t2s.libraries.calling import availability
from t2s.libraries.registry import LIBRARIES
from t2s.sparse_repr.notation.ir import Assignment
from t2s.sparse_repr.notation.parse import parse_expression

LOOPS = "loops"
RUNS = 5
LONG = 1.0
"""Seconds of a run beyond which it is not repeated."""

KIND = np.dtype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part that functions may compute, with variables fixed around their calls.

    With ``converts`` its operands may be stored in another way first, with ``densify`` as arrays.
    """

    text: str
    fixed: tuple[str, ...] = ()
    converts: bool = False
    densify: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of [Mosaic].

    Attributes
    ----------
    published: which wins where, as the paper says.
    statement: what is computed, over the formats of its tensors.
    points: labels and inputs, small ones if quick.
    parts: what calls may compute; ``more`` are other plans, as text, by their names.
    """

    number: int
    title: str
    published: str
    statement: Assignment
    points: Callable[[bool], Iterator[tuple[str, dict[str, Any]]]]
    parts: tuple[Part, ...]
    more: tuple[tuple[str, str], ...] = ()
    loops: str = "assume(1 == 1)"


@dataclass(frozen=True, kw_only=True)
class MeasuredFigure:
    """Seconds of every plan at every point."""

    figure: Figure
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)

    def winners(self) -> Iterator[tuple[str, str, float]]:
        """At each point the fastest plan, and how much faster than loops."""
        for point, taken in self.seconds.items():
            best = min(taken, key=taken.__getitem__)
            yield point, best, taken[LOOPS] / taken[best]

    def text(self) -> str:
        """A table, and below it what is fastest where beside what the paper says.

        Behind a stroke are the variables for each of which there is a call.
        """
        names = list(dict.fromkeys(name for one in self.seconds.values() for name in one))
        wide = max(map(len, (*self.seconds, "ms")))
        lines = [f"Figure {self.figure.number}: {self.figure.title}"]
        lines.append(f"{'ms':{wide}} " + " ".join(f"{name:>18}" for name in names))
        for point, taken in self.seconds.items():
            cells = (f"{1e3 * taken[name]:18.4g}" if name in taken else " " * 18 for name in names)
            lines.append(f"{point:{wide}} " + " ".join(cells))
        for point, best, times in self.winners():
            lines.append(f"  {point}: {best}, {times:.2f} x of loops")
        return "\n".join((*lines, f"  published: {self.figure.published}"))


def plans_of(figure: Figure) -> dict[str, external.ExternalPlan]:
    """The plans of a figure by their names; of functions that are not there, none."""
    statement = figure.statement
    found = {LOOPS: sparse.compile(statement, figure.loops)}
    for name, text in figure.more:
        found[name] = sparse.compile(statement, text)
    for part in figure.parts:
        value = sparse.Notation(parse_expression(part.text), {})
        for library, one in LIBRARIES.items():
            if not availability(one.description).there:
                continue
            for own, function in one.functions.items():
                types = function.capability.types
                if types and Float(32) not in types:
                    continue
                schedule = sparse.Schedule()
                if part.fixed:
                    schedule = schedule.fix(*part.fixed)
                try:
                    if part.densify or part.converts:
                        schedule = schedule.map(value, function, densify=part.densify)
                    else:
                        schedule = schedule.bind(value, function)
                    plan = sparse.compile(statement, schedule)
                except UserError:
                    continue
                call = plan.program.calls[0].mapping
                if set(call.fixed) == set(part.fixed) and not call.promoted:
                    each = f"/{','.join(part.fixed)}" if part.fixed else ""
                    found[f"{library}.{own}{each}"] = plan
    return found


def measured(figure: Figure, *, quick: bool) -> MeasuredFigure:
    """The median of some runs of each plan, after one that compiles its loops."""
    made = MeasuredFigure(figure=figure)
    plans = plans_of(figure)
    for label, inputs in figure.points(quick):
        expected = None
        taken = made.seconds.setdefault(label, {})
        for name, plan in plans.items():
            result = plan.run(inputs, type=Float(32))
            if expected is None:
                expected = result.output
            if not np.allclose(result.output, expected, rtol=1e-3, atol=1e-3):
                raise AssertionError(f"{name} differs in figure {figure.number} at {label}")
            runs = 1 if quick or result.seconds > LONG else RUNS
            seconds = [plan.run(inputs, type=Float(32)).seconds for _ in range(runs)]
            taken[name] = statistics.median(seconds)
    return made


def random_dense(*shape: int, seed: int = 1) -> Any:
    """Small whole numbers, so that sums of any order are alike."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(KIND)


def random_sparse(rows: int, columns: int, density: float, format: str, seed: int = 1) -> Any:
    """A matrix with entries at random places, at least one of them."""
    generator = np.random.default_rng(seed)
    count = max(1, round(rows * columns * density))
    places = generator.choice(rows * columns, count, replace=False)
    table = np.stack(np.divmod(np.sort(places), columns), axis=1)
    values = generator.integers(1, 4, count).astype(KIND)
    return sparse.from_coordinates(table, values, (rows, columns), format)
