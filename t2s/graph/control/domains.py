"""The PEs and firings of a node as axes of numpy arrays, and very long loops by what control tells.

Control is static: conditions and index expressions depend on space indices, loop indices and
parameters only.  A ``Domain`` binds these names to arrays that broadcast against each other, one
axis per space dimension and per loop, so the value of an expression has extent 1 along every axis
it does not depend on, and a whole run is evaluated at the cost of the few axes that matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import isqrt, lcm, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Const,
    Expr,
    Index,
    Parameter,
    conjuncts,
    const,
    evaluate,
    index_names,
)
from t2s.core.identity_cache import IdentityCache
from t2s.core.intervals import Interval, interval
from t2s.core.ops import Array, Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.control.iterations import Iterations
from t2s.graph.nodes import Loop, PEArray

MOST_ITERATIONS = 1 << 26
"""Most iterations of one loop, or of a nest that is not a box; each takes some bytes."""

MOST_FIRINGS = 1 << 62
"""Most firings of one PE: cycles are counted in 64 bits."""

_LONG = 1 << 12
"""A loop of more iterations is taken as two, its quotients and its remainders, where it can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """PEs of a node that share one list of firings.

    Attributes
    ----------
    first_pe: position of the first of these PEs among the node's, in row-major space order.
    shape: extents, space axes first, then time axes; firings are in row-major order of time.
    space_rank: number of space axes.
    names: what every space dimension, loop and parameter is, as an array of the shape's rank.
        Of a ``LongLoop`` they are the indices of one iteration for all that are alike.
    division: the loop that is taken as two axes, if one is.
    long: the loop of which there are but a few iterations in ``shape`` and ``names``, if one is.
    start, firings: the firings of each PE are so many points of the time axes, from ``start`` on.
    """

    first_pe: int
    shape: tuple[int, ...]
    space_rank: int
    names: Mapping[str, Array]
    division: Division | None = None
    long: LongLoop | None = None
    start: int = 0
    firings: int
    _ranges: dict[str, Interval] = field(default_factory=dict, repr=False, compare=False)
    _values: IdentityCache[Expr, Array] = field(
        default_factory=IdentityCache, repr=False, compare=False
    )

    @property
    def pe_count(self) -> int:
        """Number of PEs."""
        return prod(self.shape[: self.space_rank])

    @property
    def partial(self) -> bool:
        """Whether there are points of the time axes that are not firings."""
        return self.firings < prod(self.extents)

    @property
    def extents(self) -> tuple[int, ...]:
        """Iterations of the time axes, all of them."""
        extents = list(self.shape[self.space_rank :])
        if self.long is not None:
            extents[self.long.axis : self.long.axis + 2] = [len(of) for of in self.long.classes]
        return tuple(extents)

    def value(self, expr: Expr) -> Array:
        """The value of a static expression; extent 1 along the axes it does not depend on.

        ``UndividedLoop`` if that cannot be said with the axes of the domain.
        """
        return self._values.get(expr, self._value)

    def _value(self, expr: Expr) -> Array:
        placed = expr if self.division is None else self.division.applied(expr)
        if self.long is not None:
            self.long.check(placed)
        with np.errstate(all="ignore"):
            value = np.asarray(evaluate(placed, dict(self.names)))
        return value.reshape(value.shape or (1,) * len(self.shape))

    def at(self, pe: int, firings: NDArray[np.int64]) -> dict[str, Array]:
        """What every name is at firings of a PE, which both count from 0."""
        space, extents = self.shape[: self.space_rank], self.extents
        where: tuple[Any, ...] = np.unravel_index(pe, space) if space else ()
        where += np.unravel_index(firings + self.start, extents) if extents else ()
        long, division, found = self.long, self.division, dict[str, Array]()
        for name, values in self.names.items():
            if np.ndim(values) == 0:
                found[name] = values
            elif long is None or name != long.loop:
                axes = zip(values.shape, where, strict=True)
                found[name] = np.asarray(values[tuple(0 if n == 1 else at for n, at in axes)])
        if division is not None:
            quotients, rests = found[division.quotient], found[division.remainder]
            found[division.loop] = quotients * division.base + rests
        if long is not None:
            row, column = where[self.space_rank + long.axis :][:2]
            found[long.loop] = long.minimum + row * long.base + column
        return found

    def factors(self, condition: Expr | None) -> tuple[Array, ...]:
        """Arrays that all hold where a condition does; none for ``None``, which is everywhere."""
        if 0 in self.shape:
            return (np.zeros((1,) * len(self.shape), np.bool_),)
        return tuple(self.value(factor) for factor in conjuncts(condition))

    def range_of(self, expr: Expr) -> Interval | None:
        """Bounds of an integer expression over the whole domain, by interval arithmetic.

        They are attained if no name occurs twice.
        """
        if self.division is not None:
            expr = self.division.applied(expr)
        for term in walk(expr):
            if isinstance(term, Index | Parameter) and term.name not in self._ranges:
                values = self.names[term.name]
                if values.size:
                    self._ranges[term.name] = int(values.min()), int(values.max())
        return interval(expr, self._ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A loop ``i`` as two axes: its quotients ``i // base`` and its remainders ``i % base``."""

    loop: str
    base: int

    @property
    def quotient(self) -> str:
        """The name of the axis of quotients."""
        return f"{self.loop} // {self.base}"

    @property
    def remainder(self) -> str:
        """The name of the axis of remainders."""
        return f"{self.loop} % {self.base}"

    def applied(self, expr: Expr) -> Expr:
        """The expression over the two axes; ``UndividedLoop`` if it uses the loop otherwise."""
        if self.loop not in index_names(expr):
            return expr
        divided = rewrite(expr, self._rule)
        if self.loop in index_names(divided):
            raise UndividedLoop
        return divided

    def _rule(self, term: Term) -> Term | None:
        match term:
            case Apply(
                operator=Op.MODULO, operands=(Index(name=self.loop), Const(value=int() as by))
            ) if by > 0 and self.base % by == 0:
                return Index(name=self.remainder) % by
            case Apply(
                operator=Op.FLOOR_DIVIDE, operands=(Index(name=self.loop), Const(value=int() as by))
            ) if by > 0 and by % self.base == 0:
                return Index(name=self.quotient) // (by // self.base)
        return None


def _division(node: PEArray) -> Division | None:
    """How the outermost loop of a node may be divided, if it is long and its body divides it."""
    if not node.loops:
        return None
    loop, extent = node.loops[0], node.loops[0].extent
    if not isinstance(extent, Const) or int(extent.value) <= _LONG:
        return None
    bases = [by for by in divisors(node.body).get(loop.name, ()) if by < int(extent.value)]
    return Division(loop=loop.name, base=max(bases)) if bases else None


def divisors(terms: Iterable[Term]) -> dict[str, set[int]]:
    """By loop, the constants above 1 that its index is divided by anywhere."""
    divisors: dict[str, set[int]] = {}
    for root in terms:
        for term in walk(root):
            match term:
                case Apply(
                    operator=Op.FLOOR_DIVIDE | Op.MODULO,
                    operands=(Index(name=name), Const(value=int() as by)),
                ) if by > 1:
                    divisors.setdefault(name, set()).add(by)
    return divisors


def domains(
    node: PEArray,
    parameters: Mapping[str, Array],
    *,
    separate: bool = False,
    divided: bool = False,
) -> tuple[Domain, ...]:
    """One domain for the whole node, or several where loop bounds differ between PEs.

    Points of the space domain without a PE have a domain without firings.

    ``separate`` forces one per PE; ``divided`` takes a long outermost loop as two axes where the
    body suggests it.  Raises ``UserError`` for a negative trip count and for more
    firings than ``MOST_FIRINGS``.
    """
    outer = len(node.space) if separate else _distinguishing(node)
    parts: list[Domain] = []
    ranges = [range(d.minimum, d.minimum + d.extent) for d in node.space]
    inner = tuple(d.extent for d in node.space[outer:])
    division = _division(node) if divided and outer == 0 else None
    for position, point in enumerate(product(*ranges[:outer])):
        known: dict[str, Array] = dict(parameters)
        for dimension, value in zip(node.space, point, strict=False):
            known[dimension.name] = np.int32(value)
        if node.has_pe((*point, *(values[0] for values in ranges[outer:]))):
            time = _time(node, known, division, divided)
        else:
            nothing = {loop.name: np.zeros(0, np.int32) for loop in node.loops}
            time = _Time(extents=(0,), names=nothing, firings=0)
        rank = len(inner) + len(time.extents)
        names = dict(known)
        for axis, values in enumerate(ranges[outer:]):
            name = node.space[outer + axis].name
            names[name] = _along(np.asarray(values, np.int32), axis, rank)
        for name, indices in time.names.items():
            names[name] = indices.reshape((1,) * len(inner) + indices.shape)
        parts.append(
            Domain(
                first_pe=position * prod(inner),
                shape=inner + time.extents,
                space_rank=len(inner),
                names=names,
                division=time.division,
                long=time.long,
                start=time.start,
                firings=time.firings,
            )
        )
    return tuple(parts)


def _distinguishing(node: PEArray) -> int:
    """How many of the outermost space dimensions decide about a PE's loops, or its being there."""
    used: frozenset[str] = index_names(node.exists) if node.exists is not None else frozenset()
    for loop in node.loops:
        used |= index_names(loop.minimum) | index_names(loop.extent)
    return max((at + 1 for at, d in enumerate(node.space) if d.name in used), default=0)


def _along(values: Array, axis: int, rank: int) -> Array:
    return values.reshape(tuple(-1 if position == axis else 1 for position in range(rank)))


@dataclass(frozen=True, kw_only=True)
class _Time:
    """The time axes of a domain and the loops over them; see ``Domain``."""

    extents: tuple[int, ...]
    names: Mapping[str, Array]
    division: Division | None = None
    long: LongLoop | None = None
    start: int = 0
    firings: int


def _time(
    node: PEArray, known: dict[str, Array], division: Division | None = None, divided: bool = False
) -> _Time:
    """The time axes and the loop indices over them: one axis per loop where the nest is a box.

    Loops from the first one that another's bounds depend on to the last one with such bounds are
    one axis together: the list of their iterations.  With ``divided`` a long loop may be two axes.
    """
    first, end = _dependent(node)
    extents: list[int] = []
    axes: list[dict[str, Array]] = []
    start = 0
    independent = [
        (loop, _scalar(loop.minimum, known), _scalar(loop.extent, known))
        for loop in (*node.loops[:first], *node.loops[end:])
    ]
    for loop, _, extent in independent:
        _check_extent(node, loop, extent)
    long = None
    if divided and division is None and first == end:
        long = long_loop(node, known, independent)
    for loop, low, extent in independent:
        extents.append(extent)
        if long is not None and loop.name == long.loop:
            axes += [{}, {}]
        elif division is not None and loop.name == division.loop:
            quotient, past = low // division.base, -(-(low + extent) // division.base)
            start = low % division.base
            axes += [
                {division.quotient: np.arange(quotient, past, dtype=np.int32)},
                {division.remainder: np.arange(division.base, dtype=np.int32)},
            ]
        else:
            _check_most(node, extent, MOST_ITERATIONS, "iterations of one loop")
            axes.append({loop.name: np.arange(low, low + extent, dtype=np.int32)})
    if end > first:
        together = _enumerated(node, node.loops[first:end], known)
        axes.insert(len(axes) - len(node.loops[end:]), together)
        extents.insert(first, len(together[node.loops[first].name]))
    firings = prod(extents)
    _check_most(node, firings, MOST_FIRINGS, "firings of one PE")
    names = {
        name: _along(values, axis, len(axes))
        for axis, axis_values in enumerate(axes)
        for name, values in axis_values.items()
    }
    shape = [len(next(iter(axis_values.values()), ())) for axis_values in axes]
    if long is not None:
        shape[long.axis : long.axis + 2] = long.indices.shape
        after = (1,) * (len(axes) - long.axis - 2)
        names[long.loop] = long.indices.reshape((1,) * long.axis + long.indices.shape + after)
    return _Time(
        extents=tuple(shape),
        names=names,
        division=division,
        long=long,
        start=start * prod(extents[1:]),
        firings=firings,
    )


def _dependent(node: PEArray) -> tuple[int, int]:
    """The loops from the first one used in bounds of others to the last one with such bounds."""
    loops = {loop.name for loop in node.loops}
    uses = [(index_names(loop.minimum) | index_names(loop.extent)) & loops for loop in node.loops]
    used = [at for at, loop in enumerate(node.loops) if any(loop.name in names for names in uses)]
    if not used:
        return len(node.loops), len(node.loops)
    return used[0], max(at for at, names in enumerate(uses) if names) + 1


def _enumerated(node: PEArray, loops: Sequence[Loop], known: dict[str, Array]) -> dict[str, Array]:
    """The indices of loops whose bounds depend on one another, in every iteration of them all."""
    iterations = Iterations(shape=(1,), names=known)
    for loop in loops:
        low, extents = iterations.bounds(loop)
        _check_extent(node, loop, int(extents.min(initial=0)))
        total = int(extents.sum())
        _check_most(node, total, MOST_ITERATIONS, "iterations of loops with dependent bounds")
        iterations = iterations.inside(loop.name, low, extents)
    return {loop.name: iterations.names[loop.name] for loop in loops}


def _scalar(expr: Expr, known: Mapping[str, Array]) -> int:
    with np.errstate(all="ignore"):
        return int(evaluate(expr, dict(known)))


def _check_extent(node: PEArray, loop: Loop, extent: int) -> None:
    if extent < 0:
        raise UserError(
            f"loop {loop.name!r} of {node.name!r} has a negative trip count",
            location=node.location,
            expected="an extent of at least 0 in every iteration of the loops around it",
            given=f"{extent}, from {show(loop.extent)}",
            hint="check the bounds and the parameters they are computed from",
        )


def _check_most(node: PEArray, count: int, most: int, what: str) -> None:
    if count > most:
        raise UserError(
            f"{node.name!r} has too many firings to simulate",
            location=node.location,
            expected=f"at most {most} {what}",
            given=f"{count}",
            hint="simulate a smaller problem, split the loop, or spread the loops over more PEs",
        )


# Very long loops, by the iterations that control tells apart.
#
# What a firing does depends on few things of a loop's index: how it compares with some numbers, and
# remainders.  So a loop is taken as two axes, iteration // base and iteration % base, and on both
# of them one iteration stands for all that are alike: time and memory grow with the square root of
# the trip count.

VERY_LONG = 1 << 20
"""A loop of more iterations is taken by those that its conditions tell apart, where it can be."""

_MOST_REMAINDERS = 1 << 12


class UndividedLoop(Exception):
    """An expression uses a loop other than by its quotients and remainders, or by comparisons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLoop:
    """A loop as two axes, base by base, of which each is known by iterations that stand for others.

    Attributes
    ----------
    loop, minimum, extent: the loop, and what its index runs through.
    axis: the time axis of iteration // base; that of iteration % base is the next one.
    base: iterations of the second axis.
    classes: for both axes, the number of the one that each iteration is like.
    indices: the indices of the iterations that stand for others, (first axis, second axis).
    told_apart: the terms in which conditions may use the index; everywhere in a class they are
        what they are in the iteration that stands for it.
    """

    loop: str
    minimum: int
    extent: int
    axis: int
    base: int
    classes: tuple[Array, Array]
    indices: Array
    told_apart: frozenset[Expr]

    def check(self, expr: Expr) -> None:
        """``UndividedLoop`` if an expression uses the loop otherwise than it is told apart."""

        def known(term: Term) -> Term | None:
            return const(0) if isinstance(term, Expr) and term in self.told_apart else None

        if self.loop in index_names(expr) and self.loop in index_names(rewrite(expr, known)):
            raise UndividedLoop

    def expanded(self, axes: Sequence[Array]) -> tuple[Array, ...]:
        """Labels of all iterations of the time axes, from labels of those that stand for others."""
        expanded = list(axes)
        for axis, classes in enumerate(self.classes, self.axis):
            expanded[axis] = expanded[axis][classes]
        return tuple(expanded)


def long_loop(
    node: PEArray, known: Mapping[str, Array], extents: Sequence[tuple[Loop, int, int]]
) -> LongLoop | None:
    """The first very long loop of a nest of (loop, minimum, extent), as iterations that differ."""
    for axis, (loop, low, extent) in enumerate(extents):
        if extent <= VERY_LONG:
            continue
        ends = {**known, loop.name: np.array([low, low + extent - 1])}
        breaks, modulus, terms = {0, extent - 1}, 1, set[Expr]()
        for condition in _conditions(node):
            for part in walk(condition):
                match part:
                    case Apply(operator=Op.MODULO, operands=(Index(name=name), Const(value=by))):
                        if name == loop.name and isinstance(by, int) and by > 0:
                            modulus = lcm(modulus, by)
                            terms.add(part)
                    case Apply(operator=operator, operands=(left, right)) if operator in _ORDERS:
                        crossing = _crossing(left, right, loop.name, ends)
                        if crossing is not None:
                            terms.add(part)
                            breaks |= {crossing - low, crossing - low + 1}
        outermost = all(other == 1 for _, _, other in extents[:axis])
        base = _base(extent, modulus, outermost)
        if base is not None:
            return _as_long(loop.name, low, extent, axis, base, modulus, breaks, frozenset(terms))
    return None


def _conditions(node: PEArray) -> Iterator[Expr]:
    """What control depends on, beside the indices of channels."""
    if node.active is not None:
        yield node.active
    for statement in node.body:
        match statement:
            case Receive() | Send() | Load() | Store():
                if statement.condition is not None:
                    yield statement.condition


_ORDERS = (Op.LESS, Op.LESS_EQUAL, Op.GREATER, Op.GREATER_EQUAL, Op.EQUAL, Op.NOT_EQUAL)


def _crossing(left: Expr, right: Expr, loop: str, known: Mapping[str, Array]) -> int | None:
    """The last index of a loop before its two sides cross, or where they meet, if both are linear.

    A comparison of them is another one from that index on, or from the next one, or nowhere else.
    ``known`` has the first and the last index of the loop.
    """
    first, second = _linear(left, loop, known), _linear(right, loop, known)
    if first is None or second is None or first[0] == second[0]:
        return None
    return (second[1] - first[1]) // (first[0] - second[0])


def _linear(expr: Expr, loop: str, known: Mapping[str, Array]) -> tuple[int, int] | None:
    """``a, b`` of an expression that is a * loop + b; ``None`` if it is not, or may wrap around."""
    match expr:
        case Const(value=int() as value) if not isinstance(value, bool):
            form = 0, value
        case Index(name=name) if name == loop:
            form = 1, 0
        case Index(name=name) | Parameter(name=name) if name in known:
            number = np.asarray(known[name])
            if number.ndim or number.dtype.kind not in "iu":
                return None
            form = 0, int(number)
        case Apply(
            operator=Op.ADD | Op.SUBTRACT | Op.MULTIPLY as operator, operands=(first, second)
        ):
            left, right = _linear(first, loop, known), _linear(second, loop, known)
            if left is None or right is None:
                return None
            if operator is not Op.MULTIPLY:
                sign = 1 if operator is Op.ADD else -1
                form = left[0] + sign * right[0], left[1] + sign * right[1]
            elif left[0] and right[0]:
                return None
            else:
                form = left[0] * right[1] + left[1] * right[0], left[1] * right[1]
        case _:
            return None
    ends = [form[0] * int(end) + form[1] for end in known[loop]]
    return form if min(ends) >= -(1 << 31) and max(ends) < 1 << 31 else None


def _base(extent: int, modulus: int, any_length: bool) -> int | None:
    """About the square root of an extent, where rows and columns together are fewest.

    It is a multiple of the modulus, and divides the extent unless ``any_length`` is possible: only
    the outermost loop may end inside of its last row.
    """
    if modulus > _MOST_REMAINDERS:
        return None
    root = isqrt(extent)
    if any_length:
        return -(-root // modulus) * modulus
    divisors = np.flatnonzero(extent % np.arange(1, VERY_LONG) == 0) + 1
    fitting = divisors[(divisors % modulus == 0) & (extent // divisors <= VERY_LONG)]
    return int(fitting[np.argmin(np.abs(fitting - root))]) if fitting.size else None


def _as_long(
    loop: str,
    low: int,
    extent: int,
    axis: int,
    base: int,
    modulus: int,
    breaks: set[int],
    terms: frozenset[Expr],
) -> LongLoop:
    """The loop as (extent / base) x base iterations.

    ``breaks`` are the first and the last iteration, and those at which a comparison changes.  Rows
    of the first axis without a break are like their neighbors without one; of their columns those
    are alike that lie between the same columns of breaks and have one remainder by ``modulus``.
    """
    inside = sorted(at for at in breaks if 0 <= at < extent)
    rows = -(-extent // base)
    starts = sorted({0} | {at // base + more for at in inside for more in (0, 1)} - {rows})
    first = np.searchsorted(starts, np.arange(rows), "right") - 1
    columns = np.arange(base)
    stretch = np.searchsorted(sorted({at % base for at in inside}), columns, "right")
    label = stretch * modulus + (columns + low) % modulus
    _, chosen, second = np.unique(label, return_index=True, return_inverse=True)
    where = np.add.outer(np.asarray(starts) * base, chosen)
    return LongLoop(
        loop=loop,
        minimum=low,
        extent=extent,
        axis=axis,
        base=base,
        classes=(first, second),
        indices=(low + np.minimum(where, extent - 1)).astype(np.int32),
        told_apart=terms,
    )
