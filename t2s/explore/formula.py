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

_LATER = (24, 48, 96, 192, 384)
"""Numbers of tiles of one size from which another part may take longest: a product that is stored
while the next one is summed waits for the store until sums are long enough."""

_FARTHEST = 24
"""Checks have up to this many tiles more than the fitted runs."""

_FAR = 1000
"""One check for each size has this many tiles more of that size."""

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

    @property
    def evidence(self) -> str:
        """How it is known."""
        return f"fitted to {self.runs} runs, checked at {self.checks} other sizes"

    def __str__(self) -> str:
        return (
            f"cycles of {self.design} on {self.device} = {self.expression}\n"
            f"{self.range}; {self.evidence}"
        )

    def _card(self) -> NotebookCard:
        return NotebookCard(
            title=f"Cycles of {self.design} on {self.device}",
            summary=(
                ("cycles", str(self.expression)),
                ("holds", self.range),
                ("evidence", self.evidence),
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
    for form, runs in fitting.forms():
        for base in _BASES:
            candidate, failure = fitting.fitted(form, [base] * len(steps), runs, checks)
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
    """A polynomial over the numbers of tiles, fitted from ``bases`` tiles on by some runs."""

    bases: tuple[int, ...]
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
        return self.cycles(self.whole(tiles))

    @property
    def marks(self) -> list[Any]:
        """A symbol for the number of tiles of each size."""
        return [sympy.Symbol(f"q{number}") for number in range(len(self.steps))]

    def forms(self) -> Iterator[tuple[Callable[[Sequence[int]], Any], int]]:
        """Ways to fit a polynomial from some tiles on, and their runs; the fewest runs first."""
        yield self.product_form, 2
        for degree in range(1, MOST_DEGREE + 1):
            runs = (degree + 1) ** len(self.steps)
            if runs <= MOST_RUNS:
                yield partial(self.grid_form, degree), runs

    def fitted(
        self, form: Callable[[Sequence[int]], Any], bases: list[int], runs: int, checks: int
    ) -> tuple[_Candidate, NoFormula | None]:
        """A candidate that agrees with checks near and far, or the first that it does not.

        If it is only wrong far along one size, it is fitted from more tiles of that size on.
        """
        axis: int | None = None
        while True:
            candidate = _Candidate(bases=tuple(bases), polynomial=form(bases), runs=runs)
            failure = self.checked(candidate, self.drawn(bases, checks, whole=True))
            if failure is None:
                far = [self.checked(candidate, [sizes]) for sizes in self.far(bases)]
                failure = next(filter(None, far), None)
                axis = None if failure is None else far.index(failure)
            later = [base for base in _LATER if axis is not None and base > bases[axis]]
            if failure is None or axis is None or not later:
                return candidate, failure
            bases[axis] = later[0]

    def product_form(self, bases: Sequence[int]) -> Any:
        """``constant + interval * product of tiles``, through two runs."""
        later = [base + 1 for base in bases]
        low, high = self.at_tiles(bases), self.at_tiles(later)
        interval = sympy.Rational(high - low, prod(later) - prod(bases))
        return low + interval * (sympy.Mul(*self.marks) - prod(bases))

    def grid_form(self, degree: int, bases: Sequence[int]) -> Any:
        """The polynomial of a degree in each size: Newton's forward differences on a grid."""
        axes = range(len(self.steps))
        shape = (degree + 1,) * len(self.steps)
        values = np.empty(shape, object)
        for offsets in product(*map(range, shape)):
            values[offsets] = self.at_tiles([b + o for b, o in zip(bases, offsets, strict=True)])
        for axis, order in product(axes, range(degree)):
            later = (slice(None),) * axis + (slice(order + 1, None),)
            values[later] = np.diff(values, axis=axis)[
                (slice(None),) * axis + (slice(order, None),)
            ]
        return sum(
            int(values[powers])
            * prod(
                sympy.binomial(mark - base, k)
                for mark, base, k in zip(self.marks, bases, powers, strict=True)
            )
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
        bases = list(candidate.bases)
        for axis in range(len(bases)):
            wrong, smaller = 0, 1
            while smaller < bases[axis]:
                lower = [*bases[:axis], smaller, *bases[axis + 1 :]]
                if self.checked(candidate, self.below(lower, axis, bases[axis], checks)) is None:
                    bases = lower
                else:
                    wrong = smaller
                smaller = (wrong + bases[axis] + 1) // 2
        return bases

    def below(
        self, bases: Sequence[int], axis: int, until: int, checks: int
    ) -> list[tuple[int, ...]]:
        """Sizes from some numbers of tiles on, with fewer than ``until`` of one size."""
        random = Random(f"{bases} {axis}")
        tiles = [[base + more for base in bases] for more in (0, 1)]
        tiles += [
            [base + random.randint(0, MOST_DEGREE + 2) for base in bases] for _ in range(checks)
        ]
        for number, counts in enumerate(tiles):
            counts[axis] = bases[axis] if number < 2 else random.randint(bases[axis], until - 1)
        return [self.whole(counts) for counts in tiles]

    def far(self, bases: Sequence[int]) -> list[tuple[int, ...]]:
        """For each size many tiles of it, and some of the others."""
        return [
            self.whole([base + (_FAR if other == axis else 2) for other, base in enumerate(bases)])
            for axis in range(len(bases))
        ]

    def whole(self, tiles: Sequence[int]) -> tuple[int, ...]:
        """Sizes of whole tiles."""
        return tuple(q * s for q, s in zip(tiles, self.steps.values(), strict=True))

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
