"""Very long loops, by the iterations that control tells apart.

What a firing does depends on few things of a loop's index: how it compares with some numbers, and
remainders.  So a loop is taken as two axes, iteration // base and iteration % base, and on both of
them one iteration stands for all that are alike: time and memory grow with the square root of
the trip count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt, lcm

import numpy as np

from t2s.core.expr import Apply, Const, Expr, Index, Parameter, const, index_names
from t2s.core.ops import Array, Op
from t2s.core.walk import Term, rewrite, walk
from t2s.graph.body import Load, Receive, Send, Store
from t2s.graph.nodes import Loop, PEArray

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
        found = list(axes)
        for axis, classes in enumerate(self.classes, self.axis):
            found[axis] = found[axis][classes]
        return tuple(found)


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
                        found = _crossing(left, right, loop.name, ends)
                        if found is not None:
                            terms.add(part)
                            breaks |= {found - low, found - low + 1}
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
            found = 0, value
        case Index(name=name) if name == loop:
            found = 1, 0
        case Index(name=name) | Parameter(name=name) if name in known:
            number = np.asarray(known[name])
            if number.ndim or number.dtype.kind not in "iu":
                return None
            found = 0, int(number)
        case Apply(
            operator=Op.ADD | Op.SUBTRACT | Op.MULTIPLY as operator, operands=(first, second)
        ):
            left, right = _linear(first, loop, known), _linear(second, loop, known)
            if left is None or right is None:
                return None
            if operator is not Op.MULTIPLY:
                sign = 1 if operator is Op.ADD else -1
                found = left[0] + sign * right[0], left[1] + sign * right[1]
            elif left[0] and right[0]:
                return None
            else:
                found = left[0] * right[1] + left[1] * right[0], left[1] * right[1]
        case _:
            return None
    ends = [found[0] * int(end) + found[1] for end in known[loop]]
    return found if min(ends) >= -(1 << 31) and max(ends) < 1 << 31 else None


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
