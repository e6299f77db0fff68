"""The nest of loops that all PEs of a node share, if they run in lockstep.

If the bounds of a loop depend on the PE, or not every point of the space domain has a PE, the loops
run over the union, and a guard says which PEs take part.  Loops and space dimensions of one
iteration are folded away, and so are conditions that always or never hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, conjunction, const, index_names
from t2s.core.intervals import Interval, bound_over, from_linear_form, interval, linear_form
from t2s.graph.body import SpaceDimension, Statement
from t2s.graph.nodes import Loop, PEArray
from t2s.graph.specialize import fold, fold_statement, without_unused


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLoop:
    """A loop of the kernel: ``name`` runs from ``start`` up to, not including, ``stop``."""

    name: str
    start: Expr
    stop: Expr

    @property
    def counted(self) -> Loop:
        """A loop from its start and extent."""
        extent = self.stop - self.start
        return Loop(name=self.name, minimum=self.start, extent=extent)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNest:
    """The loops, the guard and the body of a node in lockstep.

    ``ranges`` holds the known ranges of loops and space dimensions, ``fixed`` those of one
    iteration, and ``unlimited`` names a loop whose bounds depend on the PE without any limit.
    """

    space: tuple[SpaceDimension, ...]
    loops: tuple[TimeLoop, ...]
    guard: Expr | None
    body: tuple[Statement, ...]
    ranges: dict[str, Interval]
    fixed: dict[str, int]
    unlimited: str | None

    def folded(self, expr: Expr) -> Expr:
        """An expression of the node, with what is known about its indices."""
        return fold(expr, self.ranges, self.fixed)


def shared_nest(node: PEArray) -> SharedNest:
    """The nest of a node, with the loops up to one without limit."""
    ranges = {d.name: (d.minimum, d.minimum + d.extent - 1) for d in node.space}
    space_ranges = dict(ranges)
    fixed = {name: low for name, (low, high) in ranges.items() if low == high}
    loops: list[TimeLoop] = []
    guard = None if node.exists is None else conjunction(fold(node.exists, ranges, fixed))
    unlimited: str | None = None
    for loop in node.loops:
        minimum = fold(loop.minimum, ranges, fixed)
        stop = _tidy(fold(loop.minimum + loop.extent, ranges, fixed))
        start = _shared(minimum, space_ranges, ranges, min)
        end = _shared(stop, space_ranges, ranges, max)
        if start is None or end is None:
            unlimited = loop.name
            break
        low, high = interval(start, ranges), interval(end, ranges)
        if low is not None and high is not None:
            ranges[loop.name] = (low[0], high[1] - 1)
        if low is not None and high is not None and low[0] == low[1] == high[0] - 1 == high[1] - 1:
            fixed[loop.name] = low[0]
        else:
            loops.append(TimeLoop(name=loop.name, start=start, stop=end))
        at = fold(Index(name=loop.name), ranges, fixed)
        if start != minimum:
            guard = conjunction(guard, at >= minimum)
        if end != stop:
            guard = conjunction(guard, at < stop)
    folded = (fold_statement(s, lambda expr: fold(expr, ranges, fixed)) for s in node.body)
    return SharedNest(
        space=tuple(dimension for dimension in node.space if dimension.extent > 1),
        loops=tuple(loops),
        guard=guard,
        body=without_unused([statement for statement in folded if statement is not None]),
        ranges=ranges,
        fixed=fixed,
        unlimited=unlimited,
    )


def _shared(
    bound: Expr,
    space: dict[str, Interval],
    ranges: dict[str, Interval],
    best: Callable[[int, int], int],
) -> Expr | None:
    """The least or largest value of a bound over all PEs; ``None`` if unknown."""
    shared_bound = bound_over(bound, space, best) or bound
    if not index_names(shared_bound) & space.keys():
        return shared_bound
    limits = interval(bound, ranges)
    return None if limits is None else const(best(*limits))


def _tidy(expr: Expr) -> Expr:
    form = linear_form(expr)
    return tidy(expr) if form is None else from_linear_form(form)
