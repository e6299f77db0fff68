"""The nest of loops that all PEs of a node share, if they run in lockstep.

If the bounds of a loop depend on the PE, or not every point of the space domain has a PE, the loops
run over the union, and a guard says which PEs take part.  Loops and space dimensions of one
iteration are folded away, and so are conditions that always or never hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from t2s.core.affine import tidy
from t2s.core.expr import Expr, Index, conjunction, const, index_names
from t2s.core.intervals import Interval, bound_over, from_linear_form, interval, linear_form
from t2s.core.walk import walk
from t2s.graph.body import Receive, Send, SpaceDimension, Statement
from t2s.graph.graph import Graph
from t2s.graph.nodes import Loop, Node, PEArray
from t2s.graph.specialize import Point, fold, fold_statement, without_unused


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


def alone(node: PEArray, point: Point) -> PEArray:
    """The node with the PE at a point only, which exists."""
    space = tuple(
        replace(dimension, minimum=at, extent=1)
        for dimension, at in zip(node.space, point, strict=True)
    )
    return replace(node, space=space, exists=None, active=None)


def keeps_together(graph: Graph, node: PEArray) -> bool:
    """Whether all PEs of a node may be one kernel in a graph with machines.

    If not, each of them is a kernel of its own there.
    """
    taken, sent = graph.inputs_of(node.name), graph.outputs_of(node.name)
    channels = [*taken, *sent]
    if node.registers or node.exists is not None or any(channel.shape for channel in channels):
        return False
    ends = {(channel.source if taken else channel.sink) for channel in channels}
    if bool(taken) == bool(sent) or len(ends) != 1 or ends == {node.name}:
        return False
    names = {channel.name for channel in channels}
    return _every_firing(node, names) and _at_once(graph.node(ends.pop()), names)


def _every_firing(node: PEArray, names: set[str]) -> bool:
    """Whether a PE that uses one of these channels does so in each of its firings."""
    places = {dimension.name for dimension in node.space}
    return all(_names(condition) <= places for condition in _conditions(node, names))


def _at_once(node: Node, names: set[str]) -> bool:
    """Whether the other end uses all of these channels in the same firings of the same PE."""
    if isinstance(node, PEArray):
        alike = len(set(_conditions(node, names))) == 1
        return alike and _every_firing(node, names)
    return all(_all_or_none(path.rule.takes, names) for path in node.paths()) and all(
        _all_or_none(tuple(put.channel for put in path.rule.puts), names) for path in node.paths()
    )


def _all_or_none(used: tuple[str, ...], names: set[str]) -> bool:
    return names <= set(used) or not names & set(used)


def _conditions(node: PEArray, names: set[str]) -> list[Expr | None]:
    return [
        statement.condition
        for statement in node.body
        if isinstance(statement, Receive | Send) and statement.channel in names
    ]


def _names(condition: Expr | None) -> set[str]:
    if condition is None:
        return set()
    return {term.name for term in walk(condition) if isinstance(term, Index)}
