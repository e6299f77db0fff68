"""A node as one kernel runs it: every PE makes its firing of an iteration before the next starts.

``LockstepNode`` is the node with time loops that all PEs share.  Where the bounds of a loop depend
on the PE, or not every point of the space domain has a PE, the loops run over the union and
``guard`` says which PEs take part.  Loops and space
dimensions of one iteration are folded away, and so are conditions that always or never hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from t2s.backends.base import Unsupported
from t2s.core.affine import tidy
from t2s.core.expr import (
    Expr,
    Index,
    apply,
    conjunction,
    conjuncts,
    const,
    index_names,
)
from t2s.core.ops import Op
from t2s.graph.body import Receive, Send, Statement
from t2s.graph.graph import Channel, Graph
from t2s.graph.intervals import (
    Interval,
    bound_over,
    from_linear_form,
    interval,
    linear_form,
)
from t2s.graph.nodes import PEArray, SpaceDimension
from t2s.graph.points import fold, fold_statement, without_unused


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfStep(Unsupported):
    """What PEs that share their iterations cannot do, and PEs in kernels of their own can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLoop:
    """A loop of the kernel: ``name`` runs from ``start`` up to, not including, ``stop``."""

    name: str
    start: Expr
    stop: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPort:
    """One end of a channel: when and where the node's PEs use it.

    The condition is split into factors over space only, time only, and both.
    """

    channel: Channel
    index: tuple[Expr, ...]
    space_factors: tuple[Expr, ...]
    time_factors: tuple[Expr, ...]
    mixed_factors: tuple[Expr, ...]

    @property
    def factors(self) -> tuple[Expr, ...]:
        return self.space_factors + self.time_factors + self.mixed_factors

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Everything that decides when and where the port is used."""
        return self.factors + self.index


@dataclass(frozen=True, kw_only=True)
class LockstepNode:
    """A node in lockstep; ``ranges`` holds the known ranges of its loops and space dimensions."""

    node: PEArray
    space: tuple[SpaceDimension, ...]
    loops: tuple[TimeLoop, ...]
    guard: Expr | None
    body: tuple[Statement, ...]
    ranges: dict[str, Interval]
    receives: dict[str, ChannelPort]
    sends: dict[str, ChannelPort]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def some_wait(self) -> bool:
        """Whether a PE may sit out iterations in which others fire."""
        space = {dimension.name for dimension in self.space}
        return self.guard is not None and not index_names(self.guard) <= space

    def points(self) -> Iterator[dict[str, int]]:
        """The PEs, in row-major order of the space dimensions."""
        names = [dimension.name for dimension in self.space]
        spans = [range(d.minimum, d.minimum + d.extent) for d in self.space]
        yield from (dict(zip(names, values, strict=True)) for values in product(*spans))


def lockstep(graph: Graph, node: PEArray) -> LockstepNode | Unsupported:
    """The node in lockstep, or why it has no such form."""
    ranges = {d.name: (d.minimum, d.minimum + d.extent - 1) for d in node.space}
    space_ranges = dict(ranges)
    fixed = {name: low for name, (low, high) in ranges.items() if low == high}
    loops: list[TimeLoop] = []
    guard = None if node.exists is None else conjunction(fold(node.exists, ranges, fixed))
    for loop in node.loops:
        minimum = fold(loop.minimum, ranges, fixed)
        stop = _tidy(fold(apply(Op.ADD, loop.minimum, loop.extent), ranges, fixed))
        start = _shared(minimum, space_ranges, ranges, min)
        end = _shared(stop, space_ranges, ranges, max)
        if start is None or end is None:
            return Unsupported(
                subject=f"node {node.name!r}",
                why=f"the bounds of loop {loop.name!r} depend on the PE without any limit",
                location=node.location,
            )
        low, high = interval(start, ranges), interval(end, ranges)
        if low is not None and high is not None:
            ranges[loop.name] = (low[0], high[1] - 1)
        if low is not None and high is not None and low[0] == low[1] == high[0] - 1 == high[1] - 1:
            fixed[loop.name] = low[0]
        else:
            loops.append(TimeLoop(name=loop.name, start=start, stop=end))
        at = fold(Index(name=loop.name), ranges, fixed)
        if start != minimum:
            guard = conjunction(guard, apply(Op.GREATER_EQUAL, at, minimum))
        if end != stop:
            guard = conjunction(guard, apply(Op.LESS, at, stop))
    return _with_body(graph, node, tuple(loops), guard, ranges, fixed)


def _shared(
    bound: Expr,
    space: dict[str, Interval],
    ranges: dict[str, Interval],
    best: Callable[[int, int], int],
) -> Expr | None:
    """The least or largest value that a bound has in any PE; ``None`` if that is not known."""
    found = bound_over(bound, space, best) or bound
    if not index_names(found) & space.keys():
        return found
    limits = interval(bound, ranges)
    return None if limits is None else const(best(*limits))


def _tidy(expr: Expr) -> Expr:
    form = linear_form(expr)
    return tidy(expr) if form is None else from_linear_form(form)


def _with_body(
    graph: Graph,
    node: PEArray,
    loops: tuple[TimeLoop, ...],
    guard: Expr | None,
    ranges: dict[str, Interval],
    fixed: dict[str, int],
) -> LockstepNode:
    def folded(expr: Expr) -> Expr:
        return fold(expr, ranges, fixed)

    space = tuple(dimension for dimension in node.space if dimension.extent > 1)
    names = frozenset(dimension.name for dimension in space)
    body = without_unused(
        [kept for s in node.body if (kept := fold_statement(s, folded)) is not None]
    )
    receives: dict[str, ChannelPort] = {}
    sends: dict[str, ChannelPort] = {}
    for statement in body:
        match statement:
            case Receive(channel=name, condition=condition):
                channel = graph.channel(name)
                index = tuple(folded(expr) for expr in channel.sink_index)
                receives[name] = _port(channel, index, conjunction(guard, condition), names)
            case Send(channel=name, condition=condition):
                channel = graph.channel(name)
                index = tuple(folded(expr) for expr in channel.source_index)
                sends[name] = _port(channel, index, conjunction(guard, condition), names)
    return LockstepNode(
        node=node,
        space=space,
        loops=loops,
        guard=guard,
        body=body,
        ranges=ranges,
        receives=receives,
        sends=sends,
    )


def _port(
    channel: Channel, index: tuple[Expr, ...], condition: Expr | None, space: frozenset[str]
) -> ChannelPort:
    factors = conjuncts(condition)
    used = [index_names(factor) for factor in factors]
    paired = list(zip(factors, used, strict=True))
    return ChannelPort(
        channel=channel,
        index=index,
        space_factors=tuple(f for f, names in paired if names and names <= space),
        time_factors=tuple(f for f, names in paired if not names & space),
        mixed_factors=tuple(f for f, names in paired if names & space and names - space),
    )
