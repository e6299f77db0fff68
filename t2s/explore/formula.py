"""Closed forms of cycle counts: polynomials in numbers of tiles, fitted to exact runs.

In goes a function that counts the cycles of a design at given sizes, and the *step* of each size:
the elements of one tile, so that a size only counts by its number of tiles.  Out comes a
``CyclesFormula`` that agrees with every run, those it was fitted to and those it was checked on.
Static control repeats from tile to tile, so most designs have the form ``constant + interval *
product of tiles``, which two runs determine; others get a polynomial of a higher degree.  If no
polynomial agrees with all checks, as when units compete for memory bandwidth, a ``NoFormula`` with
a counterexample comes out instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import prod
from random import Random
from typing import Any

import numpy as np
import sympy

from t2s.core.display import NotebookCard, NotebookDisplay
from t2s.core.errors import UserError
from t2s.core.location import user_location
from t2s.core.validate import as_int

MOST_DEGREE = 3
"""The highest degree in the number of tiles of one size."""

MOST_RUNS = 64
"""The most runs that a polynomial is fitted to."""

_BASES = (1, 2, 3, 6, 12)
"""Numbers of tiles from which a formula may hold: a design that waits for an operator's latency,
or fills its channels, only repeats after some tiles."""

_FARTHEST = 24
"""Checks have up to this many tiles more than the fitted runs."""

Count = Callable[[Mapping[str, int]], int]
"""Counts the cycles of a design at given sizes."""


@dataclass(frozen=True, kw_only=True)
class CyclesFormula(NotebookDisplay):
    """The cycles of a design as a formula of its sizes; call it with the sizes by name.

    Attributes
    ----------
    design, device: the design, and its device.
    expression: a sympy expression of integer symbols with the names of the sizes.
    steps: elements of a tile, by size.
    least: the smallest value of each size for which the formula holds.
    whole: whether the formula only holds for sizes that are multiples of their steps.
    runs, checks: exact runs that the formula was fitted to, and others that it was checked on.
    """

    design: str
    device: str
    expression: Any
    steps: Mapping[str, int]
    least: Mapping[str, int]
    whole: bool
    runs: int
    checks: int

    def __call__(self, **sizes: int) -> int:
        """The cycles for sizes in the range of the formula; ``UserError`` for any others."""
        if set(sizes) != set(self.steps):
            raise self._refusal(
                "wrong sizes", ", ".join(self.steps), ", ".join(sizes) or "no sizes"
            )
        values: dict[str, int] = {}
        for name, size in sizes.items():
            number = as_int(size)
            if number is None or number < self.least[name]:
                expected = f"an integer from {self.least[name]}"
                raise self._refusal(f"{name} is out of range", expected, repr(size))
            if self.whole and number % self.steps[name]:
                expected = f"a multiple of {self.steps[name]}"
                raise self._refusal(f"{name} is out of range", expected, repr(size))
            values[name] = number
        return int(self.expression.subs({_symbol(name): size for name, size in values.items()}))

    def _refusal(self, problem: str, expected: str, given: str) -> UserError:
        return UserError(
            f"{problem} for the cycles formula of {self.design}",
            location=user_location(),
            expected=expected,
            given=given,
            hint="t2s.cycles counts the cycles of single sizes",
        )

    @property
    def range(self) -> str:
        """The sizes for which the formula holds, in words."""
        lower = ", ".join(f"{name} >= {size}" for name, size in self.least.items())
        whole = [f"{name} a multiple of {step}" for name, step in self.steps.items() if step > 1]
        return f"for {lower}" + (f", {', '.join(whole)}" if self.whole else "")

    def __str__(self) -> str:
        return (
            f"cycles of {self.design} on {self.device} = {self.expression}\n"
            f"{self.range}; fitted to {self.runs} runs, equal to {self.checks} others"
        )

    def _card(self) -> NotebookCard:
        return NotebookCard(
            title=f"Cycles of {self.design} on {self.device}",
            summary=(
                ("cycles", str(self.expression)),
                ("holds", self.range),
                ("evidence", f"fitted to {self.runs} runs, equal to {self.checks} others"),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class NoFormula:
    """A size at which the best candidate is wrong: its prediction, and the exact cycles."""

    sizes: Mapping[str, int]
    predicted: int
    cycles: int


def fit_formula(
    count: Count, steps: Mapping[str, int], *, design: str, device: str, checks: int
) -> CyclesFormula | NoFormula:
    """The simplest formula that agrees with ``checks`` runs besides those it is fitted to."""
    fitting = _Fitting(count=count, steps=steps)
    closest: NoFormula | None = None
    for candidate in fitting.candidates():
        bases = [candidate.base] * len(steps)
        failure = fitting.checked(candidate, fitting.drawn(bases, checks, whole=True))
        if failure is None:
            return _formula(fitting, candidate, checks, design=design, device=device)
        closest = min(filter(None, (closest, failure)), key=_distance)
    assert closest is not None  # there is a candidate for every base
    return closest


def _formula(
    fitting: _Fitting, candidate: _Candidate, checks: int, *, design: str, device: str
) -> CyclesFormula:
    """The formula of a candidate that holds for whole tiles: its range, and ragged tiles."""
    bases = fitting.lowest(candidate, checks)
    steps = fitting.steps
    ragged = all(step == 1 for step in steps.values()) or (
        fitting.checked(candidate, fitting.drawn(bases, checks, whole=False)) is None
    )
    tiles = {
        mark: _tiles(name, step, ragged)
        for mark, (name, step) in zip(fitting.marks, steps.items(), strict=True)
    }
    return CyclesFormula(
        design=design,
        device=device,
        expression=sympy.expand(sympy.expand_func(candidate.polynomial)).subs(tiles),
        steps=dict(steps),
        least={
            name: (base - 1) * step + 1 if ragged else base * step
            for base, (name, step) in zip(bases, steps.items(), strict=True)
        },
        whole=not ragged,
        runs=candidate.runs,
        checks=fitting.agreeing(candidate, ragged=ragged) - candidate.runs,
    )


def _distance(failure: NoFormula) -> float:
    """The relative error of a prediction."""
    return abs(failure.predicted - failure.cycles) / failure.cycles


def _symbol(name: str) -> Any:
    return sympy.Symbol(name, integer=True, positive=True)


def _tiles(name: str, step: int, ragged: bool) -> Any:
    """The number of tiles of a size."""
    return sympy.ceiling(_symbol(name) / step) if ragged else _symbol(name) / step


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A polynomial over the numbers of tiles, fitted from ``base`` tiles on by some runs."""

    base: int
    polynomial: Any
    runs: int


@dataclass(kw_only=True)
class _Fitting:
    """Exact runs of a design, each made once, and polynomials through them."""

    count: Count
    steps: Mapping[str, int]
    known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def cycles(self, sizes: tuple[int, ...]) -> int:
        """The exact cycles at sizes, in the order of ``steps``."""
        if sizes not in self.known:
            self.known[sizes] = self.count(dict(zip(self.steps, sizes, strict=True)))
        return self.known[sizes]

    def at_tiles(self, tiles: Sequence[int]) -> int:
        """The exact cycles at numbers of whole tiles."""
        return self.cycles(tuple(q * s for q, s in zip(tiles, self.steps.values(), strict=True)))

    @property
    def marks(self) -> list[Any]:
        """A symbol for the number of tiles of each size."""
        return [sympy.Symbol(f"q{number}") for number in range(len(self.steps))]

    def candidates(self) -> Iterator[_Candidate]:
        """Polynomials, those with the fewest runs first."""
        forms = [(2, self.product_form)]
        for degree in range(1, MOST_DEGREE + 1):
            runs = (degree + 1) ** len(self.steps)
            if runs <= MOST_RUNS:
                forms.append((runs, partial(self.grid_form, degree)))
        for runs, form in forms:
            for base in _BASES:
                yield _Candidate(base=base, polynomial=form(base), runs=runs)

    def product_form(self, base: int) -> Any:
        """``constant + interval * product of tiles``, through two runs."""
        low, high = (self.at_tiles([q] * len(self.steps)) for q in (base, base + 1))
        volume = [q ** len(self.steps) for q in (base, base + 1)]
        interval = sympy.Rational(high - low, volume[1] - volume[0])
        return low + interval * (sympy.Mul(*self.marks) - volume[0])

    def grid_form(self, degree: int, base: int) -> Any:
        """The polynomial of a degree in each size: Newton's forward differences on a grid."""
        axes = range(len(self.steps))
        shape = (degree + 1,) * len(self.steps)
        values = np.empty(shape, object)
        for offsets in product(*map(range, shape)):
            values[offsets] = self.at_tiles([base + offset for offset in offsets])
        for axis, order in product(axes, range(degree)):
            later = (slice(None),) * axis + (slice(order + 1, None),)
            values[later] = np.diff(values, axis=axis)[
                (slice(None),) * axis + (slice(order, None),)
            ]
        return sum(
            int(values[powers])
            * prod(sympy.binomial(q - base, k) for q, k in zip(self.marks, powers, strict=True))
            for powers in product(*map(range, shape))
        )

    def predicted(self, candidate: _Candidate, tiles: Sequence[int]) -> int:
        """The cycles of a candidate at numbers of tiles."""
        return int(candidate.polynomial.subs(dict(zip(self.marks, tiles, strict=True))))

    def checked(self, candidate: _Candidate, sizes: Sequence[tuple[int, ...]]) -> NoFormula | None:
        """The first of some sizes at which a candidate is wrong."""
        for values in sizes:
            tiles = [-(-v // s) for v, s in zip(values, self.steps.values(), strict=True)]
            predicted, cycles = self.predicted(candidate, tiles), self.cycles(values)
            if predicted != cycles:
                named = dict(zip(self.steps, values, strict=True))
                return NoFormula(sizes=named, predicted=predicted, cycles=cycles)
        return None

    def lowest(self, candidate: _Candidate, checks: int) -> list[int]:
        """The smallest number of tiles of each size from which a candidate holds."""
        bases = [candidate.base] * len(self.steps)
        for axis, smaller in product(range(len(bases)), _BASES):
            if smaller >= bases[axis]:
                continue
            lower = [*bases[:axis], smaller, *bases[axis + 1 :]]
            if self.checked(candidate, self.drawn(lower, checks, whole=True)) is None:
                bases = lower
        return bases

    def agreeing(self, candidate: _Candidate, *, ragged: bool) -> int:
        """The number of runs with which a candidate agrees, of whole tiles unless ``ragged``."""
        steps = self.steps.values()
        return sum(
            self.checked(candidate, [sizes]) is None
            for sizes in self.known
            if ragged or not any(size % step for size, step in zip(sizes, steps, strict=True))
        )

    def drawn(self, bases: Sequence[int], number: int, *, whole: bool) -> list[tuple[int, ...]]:
        """Sizes from some numbers of tiles on: the lowest corners, and random ones near and far.

        Without ``whole`` the last tiles are ragged.  The draw is always the same.
        """
        random = Random(f"{bases} {whole}")
        tiles = list(product(*((base, base + 1) for base in bases)))
        for turn in range(number):
            farthest = _FARTHEST if turn % 3 == 0 else MOST_DEGREE + 2
            tiles.append(tuple(base + random.randint(0, farthest) for base in bases))
        return [
            tuple(
                q * step if whole else (q - 1) * step + random.randint(1, step)
                for q, step in zip(counts, self.steps.values(), strict=True)
            )
            for counts in tiles
        ]
