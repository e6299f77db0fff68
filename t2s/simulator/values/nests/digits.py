"""The iterations of a PE in a mixed radix, and static analysis over their digits.

Loops that the compiler fused are taken apart again by ``//`` and ``%`` with constants.  A loop that
is divided by constants becomes several **digits**, any other loop is one digit, and nearly all
conditions and indices of designs are then conjunctions and sums of terms with one digit each:

* A condition selects a list of values of every digit: the iterations that satisfy it are the
  *product* of these lists, and the position of an iteration among them is a number in the mixed
  radix of their lengths.  So token numbers are known without counting.
* An index is a constant plus, for every digit, the entry of a *table*.

Both are exact.  Anything else raises ``Opaque``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from t2s.core.expr import (
    TRUE,
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Local,
    Parameter,
    conjuncts,
    evaluate,
    index_names,
)
from t2s.core.identity_cache import IdentityCache
from t2s.core.ops import Array, Op
from t2s.core.types import value_range
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.control.domains import divisors
from t2s.graph.graph import Graph
from t2s.graph.nodes import PEArray

Numbers = NDArray[np.int64]

LONGEST_TABLE = 1 << 20
"""Entries of a table, at most: longer loops are not worth a table."""


class Opaque(Exception):
    """An expression has a form that the analysis of loop nests does not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """One digit of a loop index, which is the sum of ``unit * digit`` over the loop's digits."""

    name: str
    loop: str
    unit: int
    values: Numbers


Product = tuple[Numbers, ...]
"""A set of iterations: the ascending values of every digit."""


def positions(within: Numbers, values: Numbers) -> Numbers | None:
    """The positions of values in a list (``None`` if equal); ``Opaque`` if some are missing."""
    if within is values:
        return None
    at = np.searchsorted(within, values)
    if len(at) and (at[-1] >= len(within) or not np.array_equal(within[at], values)):
        raise Opaque
    return at


def picked(table: Numbers, at: Numbers | None) -> Numbers:
    """The entries of a table at the ``positions`` of some values."""
    return table if at is None else table[at]


def spread(table: Numbers, at: Numbers | None, length: int) -> Numbers:
    """The inverse of ``picked``; zeros elsewhere."""
    if at is None:
        return table
    result = np.zeros(length, np.int64)
    result[at] = table
    return result


def size(points: Product) -> int:
    """Number of iterations of a product."""
    return prod(len(values) for values in points)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitSum:
    """``base`` plus, for each digit that has a table, its entry at the position of the digit.

    Tables run over all values of a digit and start with 0.
    """

    base: int
    tables: Mapping[int, Numbers]


def normalized(base: int, tables: Mapping[int, Numbers]) -> DigitSum:
    """A sum whose tables start with 0; tables of zeros are left out."""
    tables_ = {}
    for digit, table in tables.items():
        first = int(table[0]) if len(table) else 0
        base += first
        if (table != first).any():
            tables_[digit] = table - first
    return DigitSum(base=base, tables=tables_)


class NodeDigits:
    """The digits of the PEs of a node whose loop bounds are the same on all PEs.

    ``parameters`` are the scalars that the bounds and the control depend on.
    """

    def __init__(self, graph: Graph, node: PEArray, parameters: Mapping[str, Array]) -> None:
        self.node = node
        self._parameters = dict(parameters)
        ends = [channel.source_index for channel in graph.outputs_of(node.name)]
        ends += [channel.sink_index for channel in graph.inputs_of(node.name)]
        self._divisors = divisors([*node.body, *(index for end in ends for index in end)])
        self._space = frozenset(dimension.name for dimension in node.space)
        self._frames: dict[tuple[tuple[int, int], ...], DigitFrame] = {}
        names = [index_names(e) for loop in node.loops for e in (loop.minimum, loop.extent)]
        if any(used - self._space for used in names):
            raise Opaque
        self._bounds = None if any(names) else self._bounds_of(self._parameters)

    def frame(self, point: tuple[int, ...]) -> tuple[DigitFrame, dict[str, Array]]:
        """The digits of a PE, and the names of its place and of the parameters."""
        known: dict[str, Array] = dict(self._parameters)
        for dimension, at in zip(self.node.space, point, strict=True):
            known[dimension.name] = np.int32(at)
        key = self._bounds or self._bounds_of(known)
        if key not in self._frames:
            self._frames[key] = DigitFrame(self.node, key, self._divisors)
        return self._frames[key], known

    def _bounds_of(self, known: Mapping[str, Array]) -> tuple[tuple[int, int], ...]:
        """The minimum and the trip count of every loop."""
        pairs = ((loop.minimum, loop.extent) for loop in self.node.loops)
        values = ((int(evaluate(low, dict(known))), extent) for low, extent in pairs)
        return tuple((low, max(0, int(evaluate(e, dict(known))))) for low, e in values)


class DigitFrame:
    """The digits of PEs with equal loop bounds, and the analysis of expressions over them."""

    def __init__(
        self, node: PEArray, bounds: Sequence[tuple[int, int]], divisors: Mapping[str, set[int]]
    ) -> None:
        self.bounds = dict(zip((loop.name for loop in node.loops), bounds, strict=True))
        self.digits: tuple[Digit, ...] = tuple(
            digit
            for loop, (low, extent) in zip(node.loops, bounds, strict=True)
            for digit in _digits_of(loop.name, low, extent, divisors.get(loop.name, set()))
        ) or (_ONCE,)
        self.all: Product = tuple(digit.values for digit in self.digits)
        self._of_loop: dict[str, list[int]] = {digit.loop: [] for digit in self.digits}
        for number, digit in enumerate(self.digits):
            self._of_loop[digit.loop].append(number)
        self._number = {digit.name: number for number, digit in enumerate(self.digits)}
        self._forms: dict[int, tuple[Expr, Expr, tuple[str, ...]]] = {}
        self._used = IdentityCache[Expr, list[int]]()
        self._values: dict[tuple[int, tuple[int, ...]], tuple[int | None, Array]] = {}
        self._sums: dict[tuple[int, tuple[int, ...]], DigitSum] = {}
        self._products: dict[tuple[int, tuple[int, ...]], Product] = {}

    def sum(self, expr: Expr, known: Mapping[str, Array]) -> DigitSum:
        """The value of an integer expression."""
        form, key = self._form(expr, known)
        if key not in self._sums:
            self._sums[key] = normalized(*self._split(form, known))
        return self._sums[key]

    def points(self, condition: Expr | None, known: Mapping[str, Array]) -> Product:
        """The iterations in which a condition holds (``None``: all)."""
        if condition is None:
            condition = TRUE
        _, key = self._form(condition, known)
        if key not in self._products:
            self._products[key] = self._within_bounds(self._where_true(condition, known))
        return self._products[key]

    def _where_true(self, condition: Expr, known: Mapping[str, Array]) -> Product:
        """The digit values at which a condition holds, including values beyond loop bounds.

        Most conditions of large arrays depend on the place, and exclude it before any digit
        matters, so masks are made only for digits in a condition.
        """
        masks: dict[int, Array] = {}
        for factor in conjuncts(condition):
            digit, holds = self.single(factor, known)
            if digit is not None:
                masks[digit] = holds & masks[digit] if digit in masks else holds
            elif not holds:
                return tuple(values[:0] for values in self.all)
        return tuple(
            values if number not in masks or masks[number].all() else values[masks[number]]
            for number, values in enumerate(self.all)
        )

    def single(self, expr: Expr, known: Mapping[str, Array]) -> tuple[int | None, Array]:
        """The value of an expression of one digit, over all values of it; ``None``: of no digit.

        Vectors are excluded: their lanes would be mistaken for digit values.
        """
        if expr.type.lanes > 1:
            raise Opaque
        form, key = self._form(expr, known)
        if key not in self._values:
            self._values[key] = self._evaluate(form, known)
        return self._values[key]

    def _evaluate(self, form: Expr, known: Mapping[str, Array]) -> tuple[int | None, Array]:
        used = self._used.get(form, self._digits_in)
        if len(used) > 1:
            raise Opaque
        environment = dict(known)
        for number in used:
            environment[self.digits[number].name] = self.all[number].astype(np.int32)
        with np.errstate(all="ignore"):
            value = np.asarray(evaluate(form, environment))
        return (used[0] if used else None), value

    def _form(
        self, expr: Expr, known: Mapping[str, Array]
    ) -> tuple[Expr, tuple[int, tuple[int, ...]]]:
        """The expression over digits, and a cache key with the entries of ``known`` it uses."""
        if id(expr) not in self._forms:
            form = rewrite(expr, self._digit)
            for term in walk(form):
                if isinstance(term, Local) or (
                    isinstance(term, Parameter) and term.name not in known
                ):
                    raise Opaque
            place = tuple(sorted(index_names(form) - self._number.keys() - self._of_loop.keys()))
            self._forms[id(expr)] = (expr, form, place)
        _, form, place = self._forms[id(expr)]
        return form, (id(expr), tuple(int(known[name]) for name in place))

    def _digit(self, term: Term) -> Term | None:
        """``loop // constant`` and ``loop % constant`` as digits."""
        match term:
            case Apply(
                operator=Op.FLOOR_DIVIDE | Op.MODULO as operator,
                operands=(Index(name=loop), Const(value=int() as by)),
            ) if len(self._of_loop.get(loop, [])) == 2:
                high, low = (self.digits[number] for number in self._of_loop[loop])
                if high.unit == by:
                    return Index(name=(low if operator is Op.MODULO else high).name)
        return None

    def _digits_in(self, form: Expr) -> list[int]:
        """The numbers of the digits in an expression, outermost first."""
        names = index_names(form)
        used = {number for name, number in self._number.items() if name in names}
        for name in names:
            used.update(self._of_loop.get(name, []))
        return sorted(used)

    def _split(self, form: Expr, known: Mapping[str, Array]) -> tuple[int, dict[int, Numbers]]:
        """Split a sum into terms of one digit each."""
        used = self._used.get(form, self._digits_in)
        if len(used) <= 1 and not self._is_whole_loop(form):
            digit, value = self._evaluate(form, known)
            if digit is None:
                return int(value), {}
            return 0, {digit: np.broadcast_to(value, self.all[digit].shape).astype(np.int64)}
        match form:
            case Index(name=loop):
                parts = [(self.digits[number].unit, number) for number in self._of_loop[loop]]
                base, tables = 0, {number: unit * self.all[number] for unit, number in parts}
            case Apply(operator=Op.ADD | Op.SUBTRACT as operator, operands=(left, right)):
                sign = 1 if operator is Op.ADD else -1
                base, tables = self._split(left, known)
                more, others = self._split(right, known)
                base += sign * more
                for digit, table in others.items():
                    tables[digit] = tables.get(digit, 0) + sign * table
            case (
                Apply(operator=Op.MULTIPLY, operands=(Const(value=int() as by), operand))
                | Apply(operator=Op.MULTIPLY, operands=(operand, Const(value=int() as by)))
            ):
                base, tables = self._split(operand, known)
                base, tables = base * by, {digit: by * t for digit, t in tables.items()}
            case Cast(value=operand, type=type) if type.is_integer and operand.type.is_integer:
                base, tables = self._split(operand, known)
            case _:
                raise Opaque
        _refuse_overflow(form, base, tables)
        return base, tables

    def _is_whole_loop(self, form: Expr) -> bool:
        return isinstance(form, Index) and len(self._of_loop.get(form.name, [])) > 1

    def _within_bounds(self, points: Product) -> Product:
        """The points, checked to be iterations of the loops."""
        if any(len(values) == 0 for values in points):
            return tuple(values[:0] for values in points)
        for loop, (low, extent) in self.bounds.items():
            numbers = self._of_loop[loop]
            first = sum(self.digits[n].unit * int(points[n][0]) for n in numbers)
            last = sum(self.digits[n].unit * int(points[n][-1]) for n in numbers)
            if first < low or last >= low + extent:
                raise Opaque
        return points


def _digits_of(loop: str, low: int, extent: int, divisors: set[int]) -> list[Digit]:
    """Two digits for a loop that is divided by a constant, else one."""
    high = low + extent
    if len(divisors) == 1 and low >= 0 and extent > 0 and high > (by := next(iter(divisors))):
        names = f"{loop} // {by}", f"{loop} % {by}"
        tops = _numbers(low // by, (high - 1) // by + 1)
        return [
            Digit(name=names[0], loop=loop, unit=by, values=tops),
            Digit(name=names[1], loop=loop, unit=1, values=_numbers(0, by)),
        ]
    return [Digit(name=loop, loop=loop, unit=1, values=_numbers(low, high))]


def _numbers(low: int, high: int) -> Numbers:
    if high - low > LONGEST_TABLE:
        raise Opaque
    return np.arange(low, high, dtype=np.int64)


_ONCE = Digit(name="(once)", loop="(once)", unit=1, values=_numbers(0, 1))
"""The digit of PEs without loops, which fire once, to tell no iteration from a single one."""


def _refuse_overflow(form: Expr, base: int, tables: Mapping[int, Numbers]) -> None:
    """Refuse sums that would wrap around in the graph, because they are exact integers here."""
    low, high = value_range(form.type)
    least = base + sum(int(t.min()) for t in tables.values() if len(t))
    most = base + sum(int(t.max()) for t in tables.values() if len(t))
    if least < low or most > high:
        raise Opaque
