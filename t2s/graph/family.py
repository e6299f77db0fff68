"""Graphs that differ in numbers only, as one graph whose numbers are formulas of parameters.

A design of other sizes, or with another tile, often lowers to a graph of the same *structure*:
equal but for some integers, such as extents, factors of subscripts and depths.  A ``GraphFamily``
has such a graph, and each of these integers as a sum of at most two products of parameters.  It is
learned from graphs that were lowered, and accepted only if it also gives graphs that it was not
learned from.

The formulas are found and not proved.  Whoever uses a family stays within the range of the graphs
that it was made from, goes on comparing some of its graphs with lowered ones, and lowers what
matters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, product
from math import prod
from typing import Any

from t2s.core.location import SourceLocation
from t2s.core.types import Type
from t2s.graph.graph import Graph

Parameters = tuple[tuple[int, ...], ...]
"""For each quantity, its values in several units: a size in elements, and in tiles."""

Units = tuple[int, ...]
"""A product of parameters: which of the values of each quantity is in it; -1 if none is."""

MOST_PRODUCTS = 1 << 10
"""The most products of parameters among which formulas are sought."""

FEW_PRODUCTS = 32
"""Of so few products all sums of two are tried."""


@dataclass(frozen=True, slots=True)
class NumberFormula:
    """A constant and multiples of products of parameters."""

    constant: Fraction
    terms: tuple[tuple[Fraction, Units], ...]

    def at(self, parameters: Parameters) -> int | None:
        """The value; ``None`` if it is not an integer."""
        value = self.constant + sum(
            factor * _product(parameters, units) for factor, units in self.terms
        )
        return int(value) if value.denominator == 1 else None


def _product(parameters: Parameters, units: Units) -> int:
    return prod(values[unit] for values, unit in zip(parameters, units, strict=True) if unit >= 0)


@dataclass(frozen=True)
class GraphFamily:
    """The graphs of one structure; see the module's text.

    ``formulas`` are those of the numbers that differ, by their position among all numbers.
    """

    example: Graph
    formulas: dict[int, NumberFormula]
    least: Parameters
    most: Parameters

    def __contains__(self, parameters: Parameters) -> bool:
        """Whether the parameters are within the range of the graphs that made the family."""
        bounds = zip(self.least, parameters, self.most, strict=True)
        return all(
            low <= value <= high
            for group in bounds
            for low, value, high in zip(*group, strict=True)
        )

    def over(self, points: Collection[Parameters]) -> GraphFamily:
        """The family for the range of other points, whose graphs it gives."""
        return replace(self, least=_pick(min, points), most=_pick(max, points))

    def numbers_at(self, parameters: Parameters) -> dict[int, int] | None:
        """The numbers that differ within the family; ``None`` if a formula gives a fraction."""
        values = {formula: formula.at(parameters) for formula in set(self.formulas.values())}
        numbers = {position: values[formula] for position, formula in self.formulas.items()}
        known = {position: number for position, number in numbers.items() if number is not None}
        return known if len(known) == len(numbers) else None

    def graph(self, parameters: Parameters) -> Graph | None:
        """The graph for some parameters."""
        numbers = self.numbers_at(parameters)
        if numbers is None or self._builder is None:
            return None if numbers is None else self.example
        graph = self._builder(numbers)
        assert isinstance(graph, Graph)
        return graph

    @cached_property
    def _builder(self) -> Builder | None:
        return _builder(self.example, 0, self.formulas)[0]

    def gives(self, parameters: Parameters, graph: Graph) -> bool:
        """Whether the family's graph for these parameters is this one, but for locations."""
        own = self.graph(parameters)
        return own is not None and structure_of(own) == structure_of(graph)


def family_of(
    fitted: Sequence[tuple[Parameters, Graph]], others: Sequence[tuple[Parameters, Graph]]
) -> GraphFamily | None:
    """The family of some graphs that also gives all others; ``None`` if there is none."""
    example = fitted[0][1]
    structure, _ = structure_of(example)
    numbers: list[tuple[int, ...]] = []
    for _, graph in fitted:
        own, integers = structure_of(graph)
        if own != structure:
            return None
        numbers.append(integers)
    points = [parameters for parameters, _ in fitted]
    fitting = _Fitting(points)
    formulas: dict[int, NumberFormula] = {}
    for position, values in enumerate(zip(*numbers, strict=True)):
        if min(values) == max(values):
            continue
        formula = fitting.formula(values)
        if formula is None:
            return None
        formulas[position] = formula
    everywhere = [*points, *(parameters for parameters, _ in others)]
    family = GraphFamily(
        example=example,
        formulas=formulas,
        least=_pick(min, everywhere),
        most=_pick(max, everywhere),
    )
    return family if all(family.gives(*other) for other in others) else None


def _pick(choose: Callable[..., int], points: Collection[Parameters]) -> Parameters:
    return tuple(
        tuple(choose(values) for values in zip(*groups, strict=True))
        for groups in zip(*points, strict=True)
    )


class _Fitting:
    """Finds formulas of numbers that are known at some points."""

    def __init__(self, points: Sequence[Parameters]) -> None:
        self.points = points
        self.columns: dict[Units, tuple[int, ...]] = {}
        self.known: dict[tuple[int, ...], NumberFormula | None] = {}
        seen: set[tuple[int, ...]] = set()
        ranges = [range(-1, len(values)) for values in points[0]]
        if prod(map(len, ranges)) > MOST_PRODUCTS:
            return
        for units in sorted(product(*ranges), key=lambda units: sum(u >= 0 for u in units)):
            column = tuple(_product(point, units) for point in points)
            # products that are equal at all points would be equal in use, too
            if column not in seen and min(column) < max(column):
                seen.add(column)
                self.columns[units] = column

    def formula(self, values: tuple[int, ...]) -> NumberFormula | None:
        """The simplest formula with these values."""
        if values not in self.known:
            self.known[values] = next(self._formulas(values), None)
        return self.known[values]

    def _formulas(self, values: tuple[int, ...]) -> Iterator[NumberFormula]:
        for units, column in self.columns.items():
            solution = _solved(values, (column,))
            if solution is not None:
                yield NumberFormula(solution[0], ((solution[1], units),))
        for units, other in self._pairs():
            solution = _solved(values, (self.columns[units], self.columns[other]))
            if solution is not None:
                terms = ((solution[1], units), (solution[2], other))
                yield NumberFormula(solution[0], terms)

    def _pairs(self) -> Iterator[tuple[Units, Units]]:
        """Products and parts of them; all pairs of products, if those are few."""
        if len(self.columns) <= FEW_PRODUCTS:
            yield from combinations(self.columns, 2)
            return
        for units in self.columns:
            choices = [(unit,) if unit < 0 else (-1, unit) for unit in units]
            for part in product(*choices):
                if part != units and part in self.columns:
                    yield units, part


def _solved(
    values: tuple[int, ...], columns: tuple[tuple[int, ...], ...]
) -> tuple[Fraction, ...] | None:
    """Constant and factors with which multiples of the columns add up to all of the values."""
    rows = [
        [*(column[at] - column[0] for column in columns), values[at] - values[0]]
        for at in range(1, len(values))
    ]
    factors = _factors(rows, len(columns))
    if factors is None:
        return None
    for *row, right in rows:
        if sum((f * x for f, x in zip(factors, row, strict=True)), Fraction(0)) != right:
            return None
    known = sum((f * c[0] for f, c in zip(factors, columns, strict=True)), Fraction(0))
    return (Fraction(values[0]) - known, *factors)


def _factors(rows: Sequence[Sequence[int]], count: int) -> tuple[Fraction, ...] | None:
    """The solution of the first equations that determine one; ``None`` if none do."""
    if count == 1:
        return next(((Fraction(right, x),) for x, right in rows if x), None)
    for at, (a, b, right) in enumerate(rows):
        if not (a or b):
            continue
        for c, d, other in rows[at + 1 :]:
            determinant = a * d - b * c
            if determinant:
                first = Fraction(right * d - b * other, determinant)
                second = Fraction(a * other - right * c, determinant)
                return (first, second) if first and second else None
        return None
    return None


# The integers of a graph, in the order of its fields.


def structure_of(graph: Graph) -> tuple[tuple[object, ...], tuple[int, ...]]:
    """All of a graph but its integers and locations; and its integers."""
    structure: list[object] = []
    numbers: list[int] = []
    _collect(graph, structure, numbers)
    return tuple(structure), tuple(numbers)


def _collect(part: Any, structure: list[object], numbers: list[int]) -> None:
    kind: Any = type(part)
    if kind is int:
        structure.append(int)
        numbers.append(part)
    elif kind is tuple:
        structure.append(len(part))
        for item in part:
            _collect(item, structure, numbers)
    elif kind is SourceLocation:
        structure.append(None)
    elif kind is not Type and is_dataclass(part):
        structure.append(kind)
        for name in _names_of(kind):
            _collect(getattr(part, name), structure, numbers)
    else:
        structure.append((kind, repr(part) if kind is float else part))


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


Builder = Callable[[dict[int, int]], Any]
"""Makes a part of a graph with other integers, which are given by position."""


def _builder(part: Any, at: int, positions: Container[int]) -> tuple[Builder | None, int]:
    """What makes a part whose first integer is number ``at``, and the number after its last one.

    The builder is ``None`` for a part that has no integer at one of the positions.
    """
    kind: Any = type(part)
    if kind is int:
        own = at
        return (lambda numbers: numbers[own]) if at in positions else None, at + 1
    if kind is tuple:
        builders = []
        for item in part:
            builder, at = _builder(item, at, positions)
            builders.append((builder, item))
        if all(builder is None for builder, _ in builders):
            return None, at
        return lambda n: tuple(old if make is None else make(n) for make, old in builders), at
    if kind is SourceLocation or kind is Type or not is_dataclass(part):
        return None, at
    values = {name: getattr(part, name) for name in _names_of(kind)}
    makers: dict[str, Builder] = {}
    for name, value in values.items():
        builder, at = _builder(value, at, positions)
        if builder is not None:
            makers[name] = builder
    if not makers:
        return None, at
    return lambda n: kind(**(values | {name: make(n) for name, make in makers.items()})), at
