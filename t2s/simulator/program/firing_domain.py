"""The PEs and firings of a node as axes of numpy arrays, for evaluating control all at once.

Control is static: conditions and index expressions depend on space indices, loop indices and
parameters only.  A ``Domain`` binds these names to arrays that broadcast against each other, one
axis per space dimension and per loop, so the value of an expression has extent 1 along every axis
it does not depend on, and a whole run is evaluated at the cost of the few axes that matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from t2s.core.errors import UserError
from t2s.core.expr import (
    Apply,
    Cast,
    Const,
    Expr,
    Index,
    Parameter,
    Select,
    apply,
    conjuncts,
    const,
    evaluate,
    index_names,
)
from t2s.core.ops import Array, Op
from t2s.core.printer import show
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.nodes import Loop, PEArray
from t2s.simulator.program.long_loops import LongLoop, UndividedLoop, long_loop

Interval = tuple[int, int]


def interval(expr: Expr, names: Mapping[str, Array]) -> Interval | None:
    """Bounds of an integer expression where every name lies in the range of its array.

    The bounds are attained if no name occurs twice; ``None`` where nothing is known.
    """
    match expr:
        case Const(value=int() as value):
            return value, value
        case Index(name=name) | Parameter(name=name):
            values = names[name]
            return (int(values.min()), int(values.max())) if values.size else None
        case Cast(value=value, type=type) if type.is_integer and value.type.is_integer:
            return interval(value, names)
        case Select(if_true=if_true, if_false=if_false):
            left, right = interval(if_true, names), interval(if_false, names)
            if left is None or right is None:
                return None
            return min(left[0], right[0]), max(left[1], right[1])
        case Apply(operator=operator, operands=(first, second)):
            left, right = interval(first, names), interval(second, names)
            return None if left is None or right is None else _combined(operator, left, right)
    return None


def _combined(operator: Op, left: Interval, right: Interval) -> Interval | None:
    match operator:
        case Op.ADD:
            return left[0] + right[0], left[1] + right[1]
        case Op.SUBTRACT:
            return left[0] - right[1], left[1] - right[0]
        case Op.MULTIPLY:
            products = [a * b for a in left for b in right]
            return min(products), max(products)
        case Op.MINIMUM:
            return min(left[0], right[0]), min(left[1], right[1])
        case Op.MAXIMUM:
            return max(left[0], right[0]), max(left[1], right[1])
        case Op.FLOOR_DIVIDE if right[0] == right[1] > 0:
            return left[0] // right[0], left[1] // right[0]
        case Op.MODULO if right[0] == right[1] > 0:
            by = right[0]
            if left[0] // by == left[1] // by:
                return left[0] % by, left[1] % by
            return 0, by - 1
    return None


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
        found = list(self.shape[self.space_rank :])
        if self.long is not None:
            found[self.long.axis : self.long.axis + 2] = [len(of) for of in self.long.classes]
        return tuple(found)

    def value(self, expr: Expr) -> Array:
        """The value of a static expression; extent 1 along the axes it does not depend on.

        ``UndividedLoop`` if that cannot be said with the axes of the domain.
        """
        if self.division is not None:
            expr = self.division.applied(expr)
        if self.long is not None:
            self.long.check(expr)
        with np.errstate(all="ignore"):
            value = np.asarray(evaluate(expr, dict(self.names)))
        return value.reshape(value.shape or (1,) * len(self.shape))

    def factors(self, condition: Expr | None) -> tuple[Array, ...]:
        """Arrays that all hold where a condition does; none for ``None``, which is everywhere."""
        if 0 in self.shape:
            return (np.zeros((1,) * len(self.shape), np.bool_),)
        return tuple(self.value(factor) for factor in conjuncts(condition))

    def range_of(self, expr: Expr) -> tuple[int, int] | None:
        """Bounds of an integer expression over the whole domain, by interval arithmetic."""
        if self.division is not None:
            expr = self.division.applied(expr)
        return interval(expr, self.names)


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
        divided = rewrite(expr, self._rule)
        if self.loop in index_names(divided):
            raise UndividedLoop
        return divided

    def _rule(self, term: Term) -> Term | None:
        quotient, remainder = Index(name=self.quotient), Index(name=self.remainder)
        match term:
            case Apply(
                operator=Op.MODULO, operands=(Index(name=self.loop), Const(value=int() as by))
            ) if by > 0 and self.base % by == 0:
                return apply(Op.MODULO, remainder, const(by))
            case Apply(
                operator=Op.FLOOR_DIVIDE, operands=(Index(name=self.loop), Const(value=int() as by))
            ) if by > 0 and by % self.base == 0:
                return apply(Op.FLOOR_DIVIDE, quotient, const(by // self.base))
        return None


def _division(node: PEArray) -> Division | None:
    """How the outermost loop of a node may be divided, if it is long and its body divides it."""
    if not node.loops:
        return None
    loop, extent = node.loops[0], node.loops[0].extent
    if not isinstance(extent, Const) or int(extent.value) <= _LONG:
        return None
    bases = [
        by
        for statement in node.body
        for term in walk(statement)
        for by in _divisors(term, loop.name)
        if 1 < by < int(extent.value)
    ]
    return Division(loop=loop.name, base=max(bases)) if bases else None


def _divisors(term: Term, loop: str) -> tuple[int, ...]:
    match term:
        case Apply(
            operator=Op.FLOOR_DIVIDE | Op.MODULO,
            operands=(Index(name=name), Const(value=int() as by)),
        ) if name == loop:
            return (by,)
    return ()


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
    found: list[Domain] = []
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
        found.append(
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
    return tuple(found)


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
        for axis, found in enumerate(axes)
        for name, values in found.items()
    }
    shape = [len(next(iter(found.values()), ())) for found in axes]
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
    names: dict[str, Array] = {}
    count = 1
    for loop in loops:
        environment = {**known, **names}
        with np.errstate(all="ignore"):
            low = np.broadcast_to(evaluate(loop.minimum, environment), (count,)).astype(np.int64)
            extent = np.broadcast_to(evaluate(loop.extent, environment), (count,)).astype(np.int64)
        if count:
            _check_extent(node, loop, int(extent.min()))
        total = int(extent.sum())
        _check_most(node, total, MOST_ITERATIONS, "iterations of loops with dependent bounds")
        starts = np.repeat(np.cumsum(extent) - extent, extent)
        names = {name: np.repeat(values, extent) for name, values in names.items()}
        inner = np.arange(total) - starts + np.repeat(low, extent)
        names[loop.name] = inner.astype(np.int32)
        count = total
    return names


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


def _check_most(node: PEArray, given: int, most: int, what: str) -> None:
    if given > most:
        raise UserError(
            f"{node.name!r} has too many firings to simulate",
            location=node.location,
            expected=f"at most {most} {what}",
            given=f"{given}",
            hint="simulate a smaller problem, split the loop, or spread the loops over more PEs",
        )
